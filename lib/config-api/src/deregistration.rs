//! Removal of nodes from the Config API that are gone without return: what upstream's provisioning scripts do on `del`,
//! but by name, address and cluster, and never by the name alone. Deliberately not here: whether a node is gone.

mod node;

use std::fmt;
use std::net::IpAddr;

use serde_json::json;

use crate::client::{ConfigApi, Error, Refusal};
use crate::operations::{Element, Object, Version};
use crate::ownership::ClusterId;
use crate::vrouter_config::ANNOTATIONS;

pub use node::NodeKind;

use node::{CLUSTER, is_vhost0};

/// So many deletions at most: one may be answered and lost, where clocks of servers differ.
const ATTEMPTS: usize = 3;

/// The node that is meant. All of it has to be as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// What it is.
    pub kind: NodeKind,
    /// Its name there, which is that of its host.
    pub name: &'a str,
    /// Its address there.
    pub address: IpAddr,
    /// Its sub-cluster, where it was registered with one; stored of control nodes and virtual routers.
    pub sub_cluster: Option<&'a str>,
    /// Ours. Upstream's scripts store none: then the rest decides; that of another cluster is never ours.
    pub cluster: &'a ClusterId,
}

/// What becomes of a virtual router with virtual machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workloads {
    /// It stays.
    Respect,
    /// It is deleted all the same. What the Config API itself refuses to delete stays even so.
    Ignore,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its kind.
    pub kind: String,
    /// Its full name, with colons.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
}

impl fmt::Display for Named {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.kind, self.name)
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deregistered {
    /// What was deleted, in this order, also where the node itself is left.
    pub deleted: Vec<Named>,
    /// What has become of the node.
    pub node: Fate,
}

/// What has become of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was deleted.
    Deleted,
    /// There was none of this name.
    Absent,
    /// It is still there.
    Left(Why),
}

/// Why a node is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has the name, but is another node.
    Another(Vec<Mismatch>),
    /// These refer to it, are on it or are below it.
    InUse(Vec<Named>),
    /// The Config API refuses, and nothing is seen that refers to it.
    Refused(String),
    /// It has been registered again after it was deleted.
    Registered,
    /// It changes all the time, or a deletion that is answered is not done.
    Unsettled,
}

/// In what a node is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Of what.
    pub what: &'static str,
    /// As it is expected.
    pub expected: String,
    /// As it is stored.
    pub found: String,
}

impl fmt::Display for Why {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Another(all) => {
                to.write_str("it is another node:")?;
                let one = |one: &Mismatch| {
                    format!(" its {} is {:?} and not {:?}", one.what, one.found, one.expected)
                };
                to.write_str(&all.iter().map(one).collect::<Vec<String>>().join(","))
            }
            Self::InUse(all) => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                write!(to, "it is in use by {}: delete these first", all.join(", "))
            }
            Self::Refused(said) => write!(to, "the Config API refuses to delete it: {said}"),
            Self::Registered => to.write_str(
                "it has been registered again after it was deleted: stop its provisioner first",
            ),
            Self::Unsettled => to.write_str(
                "it changes all the time, or the Config API does not do what it answers; try again",
            ),
        }
    }
}

/// Deletes a node, with what upstream deletes with it, in its order: of a virtual router first its interface vhost0.
///
/// # Errors
/// The Config API does not answer, or refuses for another reason than that the node is in use.
pub async fn deregister(
    api: &ConfigApi,
    expected: &Expected<'_>,
    workloads: Workloads,
) -> Result<Deregistered, Error> {
    let mut deleted: Vec<Named> = Vec::new();
    let kind = expected.kind.object();
    for _ in 0..=ATTEMPTS {
        let found = find(api, expected).await?;
        let own = deleted.iter().find(|one| one.kind == kind).map(|one| one.uuid.clone());
        let node = match (found, own) {
            (None, None) => Fate::Absent,
            (None, Some(_)) => Fate::Deleted,
            (Some((uuid, _)), Some(own)) if own != uuid => Fate::Left(Why::Registered),
            (Some((uuid, object)), _) => {
                match attempt(api, expected, workloads, &uuid, &object, &mut deleted).await? {
                    Some(why) => Fate::Left(why),
                    None => continue,
                }
            }
        };
        return Ok(Deregistered { deleted, node });
    }
    // It is still there, so it has not been deleted.
    deleted.retain(|one| one.kind != kind);
    Ok(Deregistered { deleted, node: Fate::Left(Why::Unsettled) })
}

/// Notes on a node that it is of this cluster, so that no other cluster deletes it. What is another node is not marked.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn mark(api: &ConfigApi, expected: &Expected<'_>) -> Result<Marked, Error> {
    let Some((uuid, object)) = find(api, expected).await? else { return Ok(Marked::Absent) };
    let mismatches = node::mismatches(expected, &object.fields);
    if !mismatches.is_empty() {
        return Ok(Marked::Another(mismatches));
    }
    if !node::is_marked(&object.fields) {
        let value = json!({"key": CLUSTER, "value": expected.cluster.to_string()});
        let (field, operation, position) = (ANNOTATIONS, "set", CLUSTER);
        api.update(&uuid, &[Element::Put { field, operation, position, value }]).await?;
    }
    Ok(Marked::Marked)
}

/// What came of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It is there.
    Marked,
    /// There is no such node.
    Absent,
    /// It is another node.
    Another(Vec<Mismatch>),
}

/// A node as it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// What it is.
    pub kind: NodeKind,
    /// Its name.
    pub name: String,
    /// Its address, where it is one.
    pub address: Option<IpAddr>,
    /// Its sub-cluster, where it has one.
    pub sub_cluster: Option<String>,
    /// The cluster that is noted on it.
    pub cluster: Option<String>,
}

impl fmt::Display for Registered {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.kind.object(), self.name.escape_debug())?;
        match self.address {
            Some(address) => write!(to, " ({address})"),
            None => Ok(()),
        }
    }
}

/// The nodes of a kind, of all clusters, by name. Routers of the network are none.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn registered(api: &ConfigApi, kind: NodeKind) -> Result<Vec<Registered>, Error> {
    let fields = kind.fields();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let read = |one| node::registered(kind, &one);
    let mut nodes: Vec<_> = api.list(kind.object(), &fields, &[], read).await?;
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(nodes)
}

async fn find(api: &ConfigApi, expected: &Expected<'_>) -> Result<Option<(String, Object)>, Error> {
    let kind = expected.kind.object();
    let Some(uuid) = api.id_of(kind, &expected.kind.full_name(expected.name)).await? else {
        return Ok(None);
    };
    Ok(api.whole(kind, &uuid).await?.map(|object| (uuid, object)))
}

/// Deletes the node once; why it is left, or nothing where it is to be looked for again.
async fn attempt(
    api: &ConfigApi,
    expected: &Expected<'_>,
    workloads: Workloads,
    uuid: &str,
    object: &Object,
    deleted: &mut Vec<Named>,
) -> Result<Option<Why>, Error> {
    let mismatches = node::mismatches(expected, &object.fields);
    if !mismatches.is_empty() {
        return Ok(Some(Why::Another(mismatches)));
    }
    let (vhost0, users): (Vec<Named>, Vec<Named>) =
        node::users(expected.kind, &object.fields, workloads)
            .into_iter()
            .partition(|one| is_vhost0(expected, one));
    // Nothing is deleted in part. Of other kinds the Config API knows best which references are in its way.
    if expected.kind == NodeKind::VirtualRouter && !users.is_empty() {
        return Ok(Some(Why::InUse(users)));
    }
    let kind = expected.kind.object();
    // What was checked may be another node by now: it may have been registered with another address.
    if api.version(kind, uuid, &object.etag).await? == Version::Outdated {
        return Ok(None);
    }
    let name = expected.kind.full_name(expected.name).join(":");
    let own = Named { kind: kind.to_owned(), name, uuid: uuid.to_owned() };
    for one in vhost0.into_iter().chain([own]) {
        if let Some(why) = delete(api, &one).await? {
            return Ok(Some(why));
        }
        if !deleted.contains(&one) {
            deleted.push(one);
        }
    }
    Ok(None)
}

/// Deletes an object; why not, if it is in use.
async fn delete(api: &ConfigApi, named: &Named) -> Result<Option<Why>, Error> {
    let said = match api.delete(&named.kind, &named.uuid).await {
        Ok(()) => return Ok(None),
        Err(Error::Refused { refusal: Refusal::Conflict(said), .. }) => said,
        Err(error) => return Err(error),
    };
    let object = api.whole(&named.kind, &named.uuid).await?.unwrap_or_default();
    let users = node::referrers(&object.fields);
    Ok(Some(if users.is_empty() { Why::Refused(said) } else { Why::InUse(users) }))
}

#[cfg(test)]
mod tests;
