//! A support bundle: what a person who helps needs of a cluster, in one archive. `plan` says what is collected,
//! `collect` asks for it, `redact` takes secrets out of it, `archive` writes it. What could not be had is in the
//! manifest with the reason; an archive is written in any case.

pub(crate) mod archive;
pub(crate) mod collect;
pub(crate) mod plan;
pub(crate) mod redact;
pub(crate) mod report;
