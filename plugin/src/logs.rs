//! Logs of many containers as one: which containers (`sources`), lines with their times and levels (`line`), and how they
//! are merged (`merged`).

pub(crate) mod line;
pub(crate) mod merged;
pub(crate) mod sources;
