//! Manifests against a cluster: what an apply of them would change, by a dry run in the API server. What it fills in by
//! itself, and what controllers have written, is the same on both sides and so no difference. Nothing is written.

mod ask;
mod compare;
mod given;

pub(crate) use ask::{By, ask};
pub(crate) use compare::{Counts, Effect, FieldDifference, ManifestChange};
pub(crate) use given::{Given, given};
