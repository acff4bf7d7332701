//! Upgrades as the plugin shows them: the cluster as a plan needs it (`world`), a plan (`plan`) with what users notice
//! meanwhile (`disruption`) and which pods are replaced (`restarts`), the Managers that could have newer images (`outdated`), how far one has come
//! (`report`), what has happened since the last look (`progress`), what a user wants of one (`edit`, `way_back`, `attach`),
//! and all of a namespace (`history`). All of it is pure but `requests`, which reads and writes the cluster, `follow`, which
//! watches one, and `last_lines`, which shows what a container wrote that failed. What a plan is, and what is next, is decided in `opensdn-upgrade`; the operator carries it out.

pub(crate) mod attach;
mod disruption;
pub(crate) mod edit;
pub(crate) mod follow;
pub(crate) mod history;
pub(crate) mod last_lines;
pub(crate) mod next_command;
pub(crate) mod outdated;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod requests;
mod restarts;
pub(crate) mod stage;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod way_back;
pub(crate) mod world;
