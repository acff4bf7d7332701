//! Huge pages of a node: how many there are and are free, on which NUMA nodes, and where they are mounted.

use serde::{Deserialize, Serialize};

use crate::Seen;

/// Huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HugePages {
    /// Those of 2 MiB.
    pub of_2_mib: u64,
    /// Those of 2 MiB that are free.
    pub free_of_2_mib: u64,
    /// Those of 1 GiB.
    pub of_1_gib: u64,
    /// Those of 1 GiB that are free.
    pub free_of_1_gib: u64,
    /// Where file systems of huge pages are mounted on the node; not known in an answer of an older release, as of what
    /// follows.
    pub mounts: Seen<Vec<HugePageMount>>,
    /// What each NUMA node has; none where the kernel knows no NUMA.
    pub numa_nodes: Seen<Vec<NumaPages>>,
}

/// A file system of huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HugePageMount {
    /// Where it is.
    pub path: String,
    /// How large its pages are; nothing where that is not said.
    #[serde(default)]
    pub mebibytes_of_page: Option<u64>,
}

/// Huge pages of a NUMA node, of 2 MiB and of 1 GiB together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaPages {
    /// Its number.
    pub node: u32,
    /// How many MiB it has.
    pub mebibytes: u64,
    /// How many MiB of them are free.
    pub free: u64,
}
