//! Asks nodes what only they know: a namespace of its own, a DaemonSet of the operator's image in it, whose pods look and
//! answer in their logs, and nothing afterwards. What is looked for is in `wanted`, the two objects in `objects`, what a
//! pod that does not answer is waiting for in `waiting`, reading logs in `answer`, and the order of it all in `run`.
//! Deliberately not here: what an answer means (`crate::checks`), and how a node is looked at (`operator`).

use std::collections::BTreeMap;

use opensdn_node_probe::{NodeFindings, Seen};

mod answer;
mod objects;
mod requests;
pub(crate) mod run;
mod waiting;
pub(crate) mod wanted;

/// What a node answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// What it sees of itself.
    pub(crate) findings: NodeFindings,
    /// By so many microseconds its clock is ahead of ours.
    pub(crate) ahead: Seen<i64>,
}

/// By the names of nodes; else why there is none.
pub(crate) type Answers = BTreeMap<String, Result<Answer, String>>;
