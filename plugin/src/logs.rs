//! Logs of many containers as one: which containers (`sources`) and which files on nodes (`files`), lines with their times
//! and levels (`line`, `time`), and how they are merged (`merged`).

pub(crate) mod files;
pub(crate) mod line;
pub(crate) mod merged;
pub(crate) mod sources;
mod time;
