//! Whether nodes can pull the images of components: which node pulls which of them, for which others it stands, and what came
//! of it. What its pods are, and what their statuses say, is in `pods`, making and removing them in `run`. Deliberately not
//! here: what it means (`crate::checks::images`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Nodes;
use crate::checks::images::{Needed, needed};
use crate::checks::world::World;
use crate::snapshot::{name, text};

pub(crate) mod pods;
pub(crate) mod run;

/// On so many nodes images are pulled at most.
pub(crate) const MOST_NODES: usize = 32;
/// So many images a node pulls at most: a Manager with each component has about forty.
const MOST_IMAGES: usize = 64;

/// Which nodes pull.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum On {
    /// One of those that are alike, and need the same.
    #[default]
    Pools,
    /// Each.
    All,
}

/// What a node pulls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pulls {
    /// So many others are alike, and need the same.
    pub(crate) alike: usize,
    /// Images by where their pods are, and with which Secrets.
    pub(crate) needed: Needed,
}

/// What came of an image on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pull {
    /// It is there.
    Done,
    /// It cannot be pulled: what the kubelet says.
    Failed(String),
    /// That is not known, because of this.
    Unknown(String),
}

/// What came of it on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pulled {
    /// So many others are alike, and need the same.
    pub(crate) alike: usize,
    /// By images.
    pub(crate) images: BTreeMap<String, Pull>,
}

/// What came of it, by nodes.
pub(crate) type AllPulled = BTreeMap<String, Pulled>;

/// Which of the nodes pull what; and those of which it is not known, with the reason.
pub(crate) fn plan(world: &World, nodes: &Nodes, on: On) -> (BTreeMap<String, Pulls>, AllPulled) {
    let mut plan: BTreeMap<String, Pulls> = BTreeMap::new();
    let mut unknown = AllPulled::new();
    // By what they are alike.
    let mut pools: BTreeMap<Pool, String> = BTreeMap::new();
    for node in world.nodes.items() {
        let node_name = name(node);
        let Some(silent) = nodes.get(node_name) else { continue };
        let mut needed = needed(world, node);
        if needed.is_empty() {
            continue;
        }
        let mut of_node = Pulled::default();
        let mut note = |images: BTreeSet<String>, why: &str| {
            let all = images.into_iter().map(|image| (image, Pull::Unknown(why.to_owned())));
            of_node.images.extend(all);
        };
        let pool = (on == On::Pools).then(|| Pool::of(node, &needed));
        let first = pool.as_ref().and_then(|pool| plan.get_mut(pools.get(pool)?));
        if let Some(why) = silent {
            needed.into_values().for_each(|images| note(images, why));
        } else if let Some(first) = first {
            first.alike += 1;
        } else if plan.len() >= MOST_NODES {
            let why = format!(
                "images are pulled on {MOST_NODES} nodes at most: name others with --node or -l"
            );
            needed.into_values().for_each(|images| note(images, &why));
        } else {
            let why = format!("a node pulls {MOST_IMAGES} images at most");
            note(bounded(&mut needed), &why);
            pools.extend(pool.map(|pool| (pool, node_name.to_owned())));
            plan.insert(node_name.to_owned(), Pulls { alike: 0, needed });
        }
        if !of_node.images.is_empty() {
            unknown.insert(node_name.to_owned(), of_node);
        }
    }
    (plan, unknown)
}

/// What nodes have that pull alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pool {
    node: [String; 4],
    needed: Needed,
}

impl Pool {
    fn of(node: &Value, needed: &Needed) -> Self {
        let facts = ["architecture", "osImage", "containerRuntimeVersion", "kubeletVersion"];
        let node = facts.map(|fact| text(node, &format!("/status/nodeInfo/{fact}")).to_owned());
        Self { node, needed: needed.clone() }
    }
}

/// Takes away what is too much.
fn bounded(needed: &mut Needed) -> BTreeSet<String> {
    let mut room = MOST_IMAGES;
    let mut rest = BTreeSet::new();
    for images in needed.values_mut() {
        let last = images.iter().nth(room).cloned();
        room = room.saturating_sub(images.len());
        if let Some(last) = last {
            rest.append(&mut images.split_off(&last));
        }
    }
    needed.retain(|_, images| !images.is_empty());
    rest
}

#[cfg(test)]
mod tests;
