//! The volumes of a service that has one for each of its nodes: which there are to be, and how large. They grow, and never shrink or
//! go: nothing but a user deletes one. What is decided is pure; [`apply`] writes it.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::storage::Storage;
use opensdn_runtime::apply::read_as;
use opensdn_runtime::error_chain;

use super::apply::{ApplyError, apply_one, is_so};
use super::fetch::Fetched;
use super::validate::Invalid;
use super::{Context, Error};
use crate::build::{Claim, Home, Intent, Valid, claim_of};
use crate::component::Description;
use crate::kind::{Kind, Workload};
use crate::names::{NODE, TYPE};
use crate::node::Node;
use crate::object::{number, text};
use crate::pod::Pod;
use crate::quantity::{bytes, mebibytes, of_mebibytes};

const FIELD: &str = "spec.serviceConfiguration.storage";
/// Where a claim has its size, its class, and how much it has been given.
const SIZE: &str = "/spec/resources/requests/storage";
const CLASS: &str = "/spec/storageClassName";
const CAPACITY: &str = "/status/capacity/storage";
/// What it has been given.
const VOLUME: &str = "/spec/volumeName";

/// A service that stores something in one way is not moved to the other: its members would start empty.
///
/// # Errors
/// The settings say another way than it runs in.
pub(super) fn are_as_before(fetched: &Fetched, description: &Description) -> Result<(), Invalid> {
    let has_volumes = description.storage.is_some();
    let mut sets = fetched.keepers(Workload::StatefulSet);
    let Some(set) = sets.find(|set| node_of(set).is_some() != has_volumes) else { return Ok(()) };
    let set = set.name_any();
    Err(if has_volumes { added(&set) } else { removed(&set) })
}

/// Why volumes cannot be given to what runs without.
pub(super) fn added(set: &str) -> Invalid {
    Invalid {
        reason: "StorageAdded",
        message: format!(
            "{FIELD} is set, and StatefulSet {set} stores in folders of its nodes: with volumes its members would start empty. Remove \
             storage; only a service that is created with it has volumes"
        ),
    }
}

fn removed(set: &str) -> Invalid {
    Invalid {
        reason: "StorageRemoved",
        message: format!(
            "{FIELD} is not set, and StatefulSet {set} stores in a volume: in folders of the nodes its members would start empty. Set \
             {FIELD} as it was"
        ),
    }
}

/// The node of a StatefulSet of one pod.
fn node_of(set: &DynamicObject) -> Option<&String> {
    set.annotations().get(NODE)
}

/// The nodes that have a pod, by address: what is on record, else all of these; and those whose StatefulSet there is, whatever
/// became of the record. Each has the address that its node has now, and of a node that is gone and has no StatefulSet nothing is kept.
pub(super) fn homes_of(
    fetched: &Fetched,
    recorded: Option<BTreeMap<String, String>>,
    nodes: &[Node],
) -> BTreeMap<String, String> {
    let there = |name: &str| fetched.nodes.iter().find(|node| node.name == name);
    let sets: Vec<_> = fetched.keepers(Workload::StatefulSet).collect();
    let has_set = |node: &String| sets.iter().any(|set| node_of(set) == Some(node));
    let of_nodes = || {
        let all = nodes.iter();
        all.filter_map(|node| Some((node.address.clone()?, node.name.clone()))).collect()
    };
    let recorded = recorded.filter(|homes| !homes.is_empty());
    let replicas = |set: &DynamicObject| number(&set.data, "/spec/replicas").unwrap_or_default();
    // A service that is stopped and has lost its record has those that there are.
    let is_stopped =
        recorded.is_none() && !sets.is_empty() && sets.iter().all(|set| replicas(set) == 0);
    let recorded = match recorded {
        Some(homes) => homes,
        None if is_stopped => BTreeMap::new(),
        None => of_nodes(),
    };
    let is_of_another = |address: &String, node: &String| {
        nodes.iter().any(|one| one.address.as_ref() == Some(address) && one.name != *node)
    };
    let (mut homes, mut moved) = (BTreeMap::new(), Vec::new());
    for (address, node) in recorded {
        match there(&node).map(|now| now.address.clone()) {
            Some(Some(now)) if now != address => moved.push((now, address, node)),
            Some(_) => drop(homes.insert(address, node)),
            None if !has_set(&node) => {}
            // It is given up there, and the other one has a home of its own.
            None if is_of_another(&address, &node) => drop(homes.insert(node.clone(), node)),
            None => drop(homes.insert(address, node)),
        }
    }
    // For a moment two nodes may have one address, as when they change places: neither loses its home by that.
    for (now, before, node) in moved {
        let free = [now, before].into_iter().find(|address| !homes.contains_key(address));
        homes.insert(free.unwrap_or_else(|| node.clone()), node);
    }
    for set in sets {
        let runs = is_stopped || replicas(set) > 0;
        let Some(node) =
            node_of(set).filter(|node| runs && !homes.values().any(|one| one == *node))
        else {
            continue;
        };
        let address = there(node).and_then(|node| node.address.clone());
        let address = address.filter(|address| !homes.contains_key(address));
        homes.insert(address.unwrap_or_else(|| node.clone()), node.clone());
    }
    homes
}

/// Notes where pods are to be, with their volumes, by what is on record of the members; nothing where a service has none.
pub(super) fn settle(fetched: &Fetched, valid: &mut Valid) {
    if let Some((homes, refused)) = homes(fetched, valid) {
        (valid.homes, valid.refused_volume) = (Some(homes), refused);
    }
}

/// And why one of them is not as the settings say.
fn homes(fetched: &Fetched, valid: &Valid) -> Option<(Vec<Home>, Option<String>)> {
    let storage = valid.description.storage.as_ref()?;
    let homes = valid.members.as_ref()?.record.homes.as_ref()?;
    let mut nodes: Vec<_> = homes.values().map(|node| (node, false)).collect();
    for set in fetched.keepers(Workload::StatefulSet) {
        let keeper = Some((Kind::StatefulSet, set.name_any()));
        let runs = fetched.pods.iter().any(|pod| pod.keeper == keeper);
        nodes.extend(node_of(set).filter(|_| runs).map(|node| (node, true)));
    }
    // What is to be there comes before what ends.
    nodes.sort_unstable();
    nodes.dedup_by_key(|(node, _)| *node);
    let mut refused = None;
    let homes = nodes.into_iter().map(|(node, ends)| {
        let stateful_set = valid.instance.stateful_set_on(node);
        let name = format!("data-{stateful_set}");
        let there = fetched.claims.get(&name).map(|claim| &**claim);
        let (claim, why) = decide(storage, name, node, there);
        refused = refused.take().or(why.filter(|_| !ends));
        Home { node: node.clone(), stateful_set, claim, ends }
    });
    Some((homes.collect(), refused))
}

/// A volume by what is there, and why it is not what is wanted.
fn decide(
    storage: &Storage,
    name: String,
    node: &str,
    there: Option<&DynamicObject>,
) -> (Claim, Option<String>) {
    let written = mebibytes(&storage.size).map_or_else(|| storage.size.clone(), of_mebibytes);
    let wanted = storage.class.clone().filter(|class| !class.is_empty());
    let Some(there) = there else {
        return (Claim { name, class: wanted, size: written }, None);
    };
    let (stored, of_class) = (text(&there.data, SIZE), text(&there.data, CLASS));
    // Where the cluster has no default one may be named later.
    let class = if of_class.is_empty() { wanted.as_deref() } else { Some(of_class) };
    let is_other_class = wanted.is_some() && class != wanted.as_deref();
    let size = size_of(there, &written).to_owned();
    let is_other_size = bytes(&size) != bytes(&written);
    let of = format!("volume {name} of node {node}");
    let class = class.map(str::to_owned);
    if text(&there.data, VOLUME).is_empty() {
        // Kubernetes takes no other size for it, and there is nothing in it.
        let differs = is_other_class || bytes(stored) != bytes(&written);
        let why = differs.then(|| {
            format!(
                "{of} is not made yet, and waits with {stored} of class {of_class}: there is nothing in it. To have it as {FIELD} says \
                 now: kubectl delete pvc -n {} {name}",
                there.namespace().unwrap_or_default()
            )
        });
        return (Claim { name, class, size: stored.to_owned() }, why);
    }
    let why = if is_other_class {
        Some(format!(
            "{FIELD}.class is {}, and {of} is of class {of_class}, which never changes: set it back to {of_class}",
            wanted.unwrap_or_default()
        ))
    } else {
        is_other_size.then(|| {
            format!(
                "{FIELD}.size is {}, and {of} has {size}: volumes never shrink. Set it to {size} or more",
                storage.size
            )
        })
    };
    (Claim { name, class, size }, why)
}

/// What a volume that is there is to have: what is wanted, where that is no less than it has. What it was to have and does not yet
/// may be taken back.
fn size_of<'a>(there: &'a DynamicObject, wanted: &'a str) -> &'a str {
    let (stored, has) = (text(&there.data, SIZE), text(&there.data, CAPACITY));
    let (Some(of_wanted), Some(of_stored)) = (bytes(wanted), bytes(stored)) else { return stored };
    let is_taken_back = bytes(has).is_some_and(|has| of_stored > of_wanted && of_wanted > has);
    if of_wanted > of_stored || is_taken_back { wanted } else { stored }
}

/// A volume that goes when its pod ends, by its name.
pub(super) fn going<'a>(fetched: &Fetched, valid: &'a Valid, pod: &Pod) -> Option<&'a str> {
    let (_, set) = pod.keeper.as_ref()?;
    let home = valid.homes.as_ref()?.iter().find(|home| home.stateful_set == *set)?;
    let claim = fetched.claims.get(&home.claim.name)?;
    claim.metadata.deletion_timestamp.as_ref().map(|_| &*home.claim.name)
}

/// The first volume that goes, and what comes of it.
pub(super) fn leaving(fetched: &Fetched, valid: &Valid) -> Option<String> {
    let (pod, claim) =
        fetched.pods.iter().find_map(|pod| Some((pod, going(fetched, valid, pod)?)))?;
    Some(format!(
        "volume {claim} is being deleted, and what is stored in it is lost when pod {} ends; the operator leaves that pod alone. Where it \
         is meant: kubectl delete pod -n {} {}",
        pod.name,
        fetched.namespace(),
        pod.name
    ))
}

/// What still grows: Kubernetes has been asked, and its driver or the node is not done.
pub(super) fn growing(fetched: &Fetched, valid: &Valid) -> Option<String> {
    let homes = valid.homes.as_ref()?.iter().filter(|home| !home.ends);
    homes.into_iter().find_map(|home| {
        let claim = fetched.claims.get(&home.claim.name)?;
        let (size, has) = (text(&claim.data, SIZE), text(&claim.data, CAPACITY));
        (bytes(size)? > bytes(has)?).then(|| {
            format!(
                "volume {} of node {} grows from {has} to {size}: waits for its driver and the kubelet; see kubectl describe pvc -n {} {}",
                home.claim.name,
                home.node,
                fetched.namespace(),
                home.claim.name
            )
        })
    })
}

/// That a claim of that name is the service's: what has an owner goes with that, and of another service it is that one's.
fn is_ours(fetched: &Fetched, there: &DynamicObject) -> Result<(), Error> {
    let name = there.name_any();
    let of_another = there.labels().contains_key(TYPE) && !fetched.instance.has_labels(there);
    let message = match there.owner_references().first() {
        Some(owner) => format!(
            "PersistentVolumeClaim {name} belongs to {} {}, and goes with it: take its ownerReferences out, or delete it",
            owner.kind, owner.name
        ),
        None if of_another => format!(
            "PersistentVolumeClaim {name} has the labels of another service: give one of the two another name"
        ),
        None => return Ok(()),
    };
    Err(Error::Refused(Invalid { reason: "NotOurs", message }))
}

/// The intent by the claim that there is, which may be another than was known.
fn by(
    fetched: &Fetched,
    valid: &Valid,
    wanted: &Intent,
    there: &DynamicObject,
) -> Result<Intent, Error> {
    let Some(storage) = &valid.description.storage else { return Ok(wanted.clone()) };
    let node = wanted.object.annotations().get(NODE).map(String::as_str).unwrap_or_default();
    let (claim, _) = decide(storage, wanted.name.clone(), node, Some(there));
    let mut intent = claim_of(&fetched.object, valid, node, &claim)?;
    intent.object.metadata.resource_version.clone_from(&there.metadata.resource_version);
    Ok(intent)
}

/// In the API server's words, with what helps where it is the class (Kubernetes,
/// `plugin/pkg/admission/storage/persistentvolume/resize/admission.go`).
fn not_grown(error: &str) -> String {
    let hint = if error.contains("must support resize") {
        "; its StorageClass has to have allowVolumeExpansion: true"
    } else {
        ""
    };
    format!("{error}{hint}. Or set {FIELD}.size to what the volume has")
}

/// Writes the volumes that are not so yet. Returns why one does not grow.
///
/// # Errors
/// A call fails, or one is another's.
pub(super) async fn apply(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    intents: &[Intent],
) -> Result<Option<String>, Error> {
    const KIND: Kind = Kind::PersistentVolumeClaim;
    let mut refused = None;
    for intent in intents.iter().filter(|intent| intent.kind == KIND) {
        let live = fetched.claims.get(&intent.name);
        if let Some(live) = live.filter(|live| is_so(&intent.object, live)) {
            is_ours(fetched, live)?;
            ctx.metrics.skipped(KIND);
            continue;
        }
        // What a watch brought may be older than what has grown since.
        let namespace = fetched.object.namespace();
        let there: Option<DynamicObject> =
            read_as(&ctx.writer, &KIND.resource(), namespace.as_deref(), &intent.name).await?;
        let intent = match &there {
            Some(there) => {
                is_ours(fetched, there)?;
                by(fetched, valid, intent, there)?
            }
            None => intent.clone(),
        };
        if let Some(there) = there.as_ref().filter(|there| is_so(&intent.object, there)) {
            ctx.cache.put(KIND, there.clone());
            continue;
        }
        match apply_one(&ctx.writer, &ctx.cache, fetched, &intent).await {
            Err(ApplyError::Call(error))
                if there.is_some()
                    && error.is_refusal()
                    && !error.is_conflict()
                    && error.missing_grant().is_none() =>
            {
                refused.get_or_insert_with(|| not_grown(&error_chain(&error)));
            }
            done => done?,
        }
    }
    Ok(refused)
}

#[cfg(test)]
mod tests;
