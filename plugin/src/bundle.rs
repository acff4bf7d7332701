//! A support bundle: what a person who helps needs of a cluster, in one archive without secrets. `plan` says what is
//! collected, with the pages of daemons in `introspect`; `collect` asks for it, `redactor` takes secrets out of it, by what
//! `redact` knows of them, and addresses where that is wanted (`addresses`); `archive` writes it. What could not be had is
//! in the manifest with the reason; an archive is written in any case.

mod addresses;
pub(crate) mod archive;
pub(crate) mod collect;
pub(crate) mod introspect;
pub(crate) mod judged;
pub(crate) mod plan;
pub(crate) mod redact;
pub(crate) mod redactor;
pub(crate) mod report;

pub(crate) use addresses::Pseudonyms;
