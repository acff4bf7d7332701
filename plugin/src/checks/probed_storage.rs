//! Where databases write on nodes that were looked at: room, and what an earlier installation has left.

use opensdn_node_probe::{Directory, DirectoryState, NodeFindings, Seen};
use serde_json::Value;

use super::planned::is_planned;
use super::probed::{Said, each, worst};
use super::report::{Outcome, Verdict};
use super::world::{World, runs_on};
use crate::snapshot::{name, number};

/// Folders of data of components, by kind: the operator's, which are tf-operator's. A Cassandra has the second of its
/// two where there is another for analytics.
pub(crate) const DATA: [(&str, &str); 5] = [
    ("Cassandra", "/var/lib/contrail/database"),
    ("Cassandra", "/var/lib/contrail/config-database"),
    ("Rabbitmq", "/var/lib/contrail/rabbitmq"),
    ("Redis", "/var/lib/contrail/redis"),
    ("Zookeeper", "/var/lib/contrail/zookeeper"),
];
const GIB: u64 = 1 << 30;
/// What Cassandra's node manager wants in GiB, unless it is set.
const LEAST: i64 = 4;

/// The folders that are of the node, with the kinds that have them.
fn of_node<'a>(
    world: &'a World,
    node: &'a Value,
    findings: &'a NodeFindings,
) -> impl Iterator<Item = (&'static str, &'a Directory)> {
    findings.directories.iter().filter_map(move |one| {
        let (kind, _) = DATA.iter().find(|(_, path)| *path == one.path)?;
        (runs_on(world, kind, node) && stores_in_folders(world, kind)).then_some((*kind, one))
    })
}

/// Whether one of that kind has no volumes.
fn stores_in_folders(world: &World, kind: &str) -> bool {
    let services = world.services();
    let mut of_kind = services.iter().filter(|service| service.facts.kind == kind).peekable();
    let has_volumes = |spec: &Value| {
        spec.pointer("/serviceConfiguration/storage").is_some_and(|storage| !storage.is_null())
    };
    of_kind.peek().is_none() || of_kind.any(|one| !has_volumes(one.spec))
}

/// What a Cassandra is set to need, the most of several.
fn least(world: &World) -> u64 {
    let services = world.services();
    let of = services.iter().filter(|service| service.facts.kind == "Cassandra");
    let stated = of.filter_map(|one| number(one.spec, "/serviceConfiguration/minimumDiskGB"));
    u64::try_from(stated.max().unwrap_or(LEAST)).unwrap_or_default()
}

pub(super) fn room(world: &World) -> Verdict {
    let least = least(world);
    let good = format!(
        "{least} GiB and more are free where databases write; how fast it is was not measured"
    );
    each(world, &good, |node, findings| {
        let said = of_node(world, node, findings).map(|(_, one)| room_of(one, least));
        let mut said: Vec<Said> = said.collect();
        said.sort_by(|one, other| one.1.cmp(&other.1));
        said.dedup();
        worst(said, "there is room")
    })
}

fn room_of(one: &Directory, least: u64) -> Said {
    let path = &one.path;
    let space = match &one.state {
        Seen::Is(DirectoryState::Present { space, .. } | DirectoryState::Absent(space)) => space,
        Seen::Is(DirectoryState::NoFolder) => {
            return (Outcome::Fail, format!("{path} is no folder"));
        }
        Seen::Unknown(why) => return (Outcome::Uncertain, format!("{path} is not known: {why}")),
    };
    if space.read_only == Seen::Is(true) {
        return (Outcome::Fail, format!("{path} is on a file system that is mounted read-only"));
    }
    if space.free < least * GIB {
        let free = space.free / (GIB / 10);
        let text =
            format!("{path} has {}.{} GiB free of {least} that are needed", free / 10, free % 10);
        return (Outcome::Fail, text);
    }
    match &space.read_only {
        Seen::Is(_) => (Outcome::Ok, String::new()),
        Seen::Unknown(why) => {
            (Outcome::Uncertain, format!("whether {path} can be written is not known: {why}"))
        }
    }
}

pub(super) fn leftovers(world: &World) -> Verdict {
    each(world, "no data of an earlier installation", |node, findings| {
        let ours = world.ours_on(name(node));
        // With one, its pods may only be away: a service that is stopped, a node that was emptied.
        let has_manager = world.managers.items().iter().any(|one| !is_planned(one));
        let of = |(kind, one): (&str, &Directory)| match &one.state {
            Seen::Is(DirectoryState::Present { entries, .. }) if !entries.is_empty() => {
                match &ours {
                    Some(pods) if pods.is_empty() && has_manager => Some((
                        Outcome::Uncertain,
                        format!(
                            "{} has {}, and no pod of ours runs there: of {kind} before, or of one whose pods are away. Do not \
                             delete what may be its data",
                            one.path,
                            entries.join(", ")
                        ),
                    )),
                    Some(pods) if pods.is_empty() => Some((
                        Outcome::Fail,
                        format!("{} has {}: another {kind} left it", one.path, entries.join(", ")),
                    )),
                    // What a running one has is its own.
                    Some(_) => None,
                    None => Some((
                        Outcome::Uncertain,
                        format!("whose the data in {} is: pods may not be read", one.path),
                    )),
                }
            }
            Seen::Is(_) => None,
            Seen::Unknown(why) => {
                Some((Outcome::Uncertain, format!("{} is not known: {why}", one.path)))
            }
        };
        worst(of_node(world, node, findings).filter_map(of).collect(), "none")
    })
}
