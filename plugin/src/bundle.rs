//! A support bundle: what a person who helps needs of a cluster, in one archive without secrets. `plan` says what is
//! collected, with the pages of daemons in `introspect`; `collect` asks for it, `cleaner` has `redactor` take secrets out of
//! it, by what `redact` knows of them and by what Secrets of the cluster have (`known`), and addresses where that is wanted
//! (`addresses`); `writing` puts it into the `archive` as it comes. What could not be had is in the manifest with the
//! reason; an archive is written in any case.

mod addresses;
mod archive;
mod cleaner;
pub(crate) mod collect;
pub(crate) mod introspect;
pub(crate) mod judged;
mod known;
pub(crate) mod plan;
pub(crate) mod redact;
pub(crate) mod redactor;
pub(crate) mod report;
pub(crate) mod writing;

pub(crate) use addresses::Pseudonyms;
