//! Asks nodes, and pods on them, what only they know: a namespace of its own, a DaemonSet of the operator's image in it
//! for each question, whose pods look and answer in their logs, and nothing afterwards. What `check` looks for is in
//! `wanted`, what nodes try of each other in `matrix`, which images
//! they pull in `pull`, by which image in `image`, the objects in `objects`, what a pod that does not answer is waiting for in
//! `waiting`, reading logs in `answer`, what earlier runs have left in `cleanup`, and the order of it all in `run`. Deliberately not here: what an answer means
//! (`crate::checks`, `crate::nested::verify`), and how a node is looked at (`operator`).

use std::collections::BTreeMap;

use opensdn_node_probe::{NodeFindings, Seen, Wanted};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::snapshot::{Read, condition, name, text};

mod answer;
pub(crate) mod cleanup;
pub(crate) mod image;
pub(crate) mod matrix;
mod objects;
pub(crate) mod peers;
pub(crate) mod pull;
mod requests;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod unseen;
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

/// The nodes that are meant; of one that cannot answer why.
pub(crate) type Nodes = BTreeMap<String, Option<String>>;

/// A question, and the pods that are asked it.
pub(crate) struct Asked {
    /// Name of their DaemonSet.
    pub(crate) name: String,
    /// On which network they are.
    pub(crate) network: Network,
    /// On which nodes.
    pub(crate) nodes: Nodes,
    /// What they look for.
    pub(crate) wanted: Wanted,
}

/// On which network a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// That of its node, of which it sees files too.
    Node,
    /// That of its node, of which it sees nothing else.
    NodeAlone,
    /// That of pods, as any other.
    Pods,
}

impl Asked {
    /// The same reason of every node.
    pub(crate) fn none(&self, why: &str) -> Answers {
        self.nodes.keys().map(|node| (node.clone(), Err(why.to_owned()))).collect()
    }
}

/// Those on which pods of ours can be, as they are programs for Linux.
pub(crate) fn nodes<'n>(all: impl IntoIterator<Item = &'n Value>) -> Nodes {
    let linux = all.into_iter().filter(|node| is_linux(node));
    linux.map(|node| (name(node).to_owned(), silent(node))).collect()
}

/// The nodes that were read.
///
/// # Errors
/// They may not be.
pub(crate) fn readable(nodes: &Read<Vec<Value>>) -> Result<&[Value], Failure> {
    if let Read::Unknown(why) = nodes {
        let message = format!("nodes may not be read: {why}");
        let hint = "your user needs the right to list nodes";
        return Err(Failure::new(Exit::Unreachable, "unknown-nodes", message, hint));
    }
    Ok(nodes.items())
}

fn is_linux(node: &Value) -> bool {
    text(node, "/status/nodeInfo/operatingSystem") != "windows"
}

/// Why a pod on the node would not start: its kubelet is not heard of.
fn silent(node: &Value) -> Option<String> {
    let ready = condition(node, "Ready").filter(|one| text(one, "/status") == "Unknown")?;
    Some(format!("its kubelet does not answer: {}", text(ready, "/message")))
}

#[cfg(test)]
mod tests;
