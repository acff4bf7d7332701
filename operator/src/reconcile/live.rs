//! What is read again right before a write, as it is then. A pass decides by what watches have reported, which may be of before: a
//! component that is another one by now, or has another spec, has nothing written by what it was; a workload gets no fewer pods,
//! and none of its pods goes, while nodes, pods or the workload itself are not as it was decided by. The next pass sees what is.
//!
//! Deliberately not here: a resourceVersion in each write. Every status of a pod or a StatefulSet would be a conflict.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use opensdn_crds::component::Component;
use opensdn_runtime::apply::{Context, list_as, read_as};
use opensdn_runtime::call::CallError;

use super::fetch::Fetched;
use crate::build::Intent;
use crate::kind::{Kind, Workload};
use crate::node::Node;
use crate::object::{controller_of, number};
use crate::pod::Pod;

/// Something is not as it was when it was decided what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("decided by a state of {0} that is over: nothing is written by it")]
pub struct Behind(String);

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub(crate) enum LiveError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Behind(#[from] Behind),
}

/// That a component or Manager is still this one, and still says the same.
///
/// # Errors
/// It is not, or cannot be read.
pub(crate) async fn is_current(ctx: &Context, object: &DynamicObject) -> Result<(), LiveError> {
    let kind = object.types.as_ref().map_or("", |types| &types.kind);
    let kind = match Component::of_kind(kind) {
        Some(facts) => Kind::Component(facts.kind),
        None => Kind::Manager,
    };
    reads_the_same(ctx, kind, object).await
}

/// That an object of ours may be overwritten, where that has pods go or start again.
///
/// # Errors
/// It is not as it was decided by, or something else is not.
pub(super) async fn may_overwrite(
    ctx: &Context,
    fetched: &Fetched,
    live: &DynamicObject,
    intent: &Intent,
) -> Result<(), LiveError> {
    if ![Kind::StatefulSet, Kind::DaemonSet, Kind::Deployment].contains(&intent.kind) {
        return Ok(());
    }
    let pods = |object: &DynamicObject| number(&object.data, "/spec/replicas");
    if pods(&intent.object) < pods(live) {
        return may_shrink(ctx, fetched).await;
    }
    reads_the_same(ctx, intent.kind, live).await
}

/// That fewer pods are wanted than there are: the component, its workloads, the pods of its StatefulSets and their nodes
/// are as it was decided by.
///
/// # Errors
/// One of them is not, or cannot be read.
pub(super) async fn may_shrink(ctx: &Context, fetched: &Fetched) -> Result<(), LiveError> {
    is_current(ctx, &fetched.object).await?;
    let sets: Vec<_> = fetched.keepers(Workload::StatefulSet).collect();
    if sets.is_empty() {
        return Ok(());
    }
    for set in &sets {
        reads_the_same(ctx, Kind::StatefulSet, set).await?;
    }
    let pods = pods_of(ctx, fetched, &sets).await?;
    let known: Vec<&Pod> = fetched.pods.iter().collect();
    if let Some(name) = differing_pod(&known, &pods) {
        return Err(Behind(format!("pod {name}")).into());
    }
    let nodes: BTreeSet<String> = pods.into_iter().map(|pod| pod.node).collect();
    for node in nodes.iter().filter(|node| !node.is_empty()) {
        node_is_the_same(ctx, fetched, node).await?;
    }
    Ok(())
}

/// That a pod may go, to be made again: of a StatefulSet all are as it was decided by, of a DaemonSet this one is.
///
/// # Errors
/// One is not, or cannot be read.
pub(super) async fn may_replace(
    ctx: &Context,
    fetched: &Fetched,
    pod: &DynamicObject,
) -> Result<(), LiveError> {
    if controller_of(pod).is_some_and(|keeper| keeper.kind == Kind::StatefulSet.name()) {
        return may_shrink(ctx, fetched).await;
    }
    is_current(ctx, &fetched.object).await?;
    let name = pod.name_any();
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let resource = Kind::Pod.resource();
    let there = list_as(ctx, &resource, pod.metadata.namespace.as_deref(), &params).await?;
    let known = Pod::of(pod);
    let there: Vec<Pod> = there.iter().map(Pod::of).collect();
    match differing_pod(&[&known], &there) {
        Some(name) => Err(Behind(format!("pod {name}")).into()),
        None => Ok(()),
    }
}

/// By its UID, and the generation that each change of its spec has.
async fn reads_the_same(ctx: &Context, kind: Kind, known: &DynamicObject) -> Result<(), LiveError> {
    let (name, namespace) = (known.name_any(), known.namespace());
    let there: Option<DynamicObject> =
        read_as(ctx, &kind.resource(), namespace.as_deref(), &name).await?;
    if there.as_ref().is_some_and(|there| is_same(known, there)) {
        return Ok(());
    }
    Err(Behind(format!("{} {name}", kind.name())).into())
}

fn is_same(known: &DynamicObject, there: &DynamicObject) -> bool {
    let of = |object: &DynamicObject| (object.metadata.uid.clone(), object.metadata.generation);
    of(known) == of(there) && there.metadata.deletion_timestamp.is_none()
}

/// Those of these workloads, as they are now.
async fn pods_of(
    ctx: &Context,
    fetched: &Fetched,
    workloads: &[&Arc<DynamicObject>],
) -> Result<Vec<Pod>, CallError> {
    let labels = fetched.instance.labels();
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let params = ListParams::default().labels(&labels.join(","));
    let all = list_as(ctx, &Kind::Pod.resource(), Some(&fetched.namespace()), &params).await?;
    let is_theirs = |pod: &&DynamicObject| {
        controller_of(pod).is_some_and(|keeper| {
            workloads.iter().any(|one| one.metadata.uid.as_ref() == Some(&keeper.uid))
        })
    };
    Ok(all.iter().filter(is_theirs).map(Pod::of).collect())
}

/// One that is not as it is known, is not known, or is not there any more.
fn differing_pod(known: &[&Pod], there: &[Pod]) -> Option<String> {
    let of =
        |pod: &Pod| (pod.name.clone(), pod.created, pod.is_ready, pod.is_going, pod.node.clone());
    let known: BTreeSet<_> = known.iter().map(|pod| of(pod)).collect();
    let there: BTreeSet<_> = there.iter().map(of).collect();
    known.symmetric_difference(&there).next().map(|(name, ..)| name.clone())
}

/// Whether it is wanted there is decided by the labels of the node.
async fn node_is_the_same(ctx: &Context, fetched: &Fetched, name: &str) -> Result<(), LiveError> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let there = list_as(ctx, &Kind::Node.resource(), None, &params).await?;
    let there = there.first().map(|node| Node::of(node).labels);
    let known = fetched.nodes.iter().find(|node| node.name == name).map(|node| node.labels.clone());
    if there == known { Ok(()) } else { Err(Behind(format!("node {name}")).into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn object(uid: &str, generation: i64) -> DynamicObject {
        from_value(json!({"metadata": {"name": "a", "uid": uid, "generation": generation}}))
            .unwrap()
    }

    #[test]
    fn another_object_of_the_name_another_spec_and_one_that_goes_are_not_the_same() {
        let known = object("u", 1);
        assert!(is_same(&known, &object("u", 1)));
        assert!(!is_same(&known, &object("other", 1)));
        assert!(!is_same(&known, &object("u", 2)));
        let mut going = object("u", 1);
        going.metadata.deletion_timestamp =
            Some(from_value(json!("2026-11-30T00:00:00Z")).unwrap());
        assert!(!is_same(&known, &going));
    }

    fn pod(name: &str, created: &str, ready: &str) -> Pod {
        let pod = json!({"metadata": {"name": name, "creationTimestamp": created},
            "spec": {"nodeName": "n"}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        Pod::of(&from_value(pod).unwrap())
    }

    #[test]
    fn a_pod_that_came_went_was_made_again_or_is_not_ready_any_more_differs() {
        let (then, later) = ("2026-11-30T00:00:00Z", "2026-11-30T00:00:01Z");
        let [a, b] = ["a", "b"].map(|name| pod(name, then, "True"));
        let differs = |there: &[Pod]| differing_pod(&[&a, &b], there);
        assert_eq!(differs(&[b.clone(), a.clone()]), None);
        assert_eq!(differs(std::slice::from_ref(&a)).as_deref(), Some("b"));
        let three = [a.clone(), b.clone(), pod("c", then, "True")];
        assert_eq!(differs(&three).as_deref(), Some("c"));
        assert_eq!(differs(&[a.clone(), pod("b", later, "True")]).as_deref(), Some("b"));
        assert_eq!(differs(&[a.clone(), pod("b", then, "False")]).as_deref(), Some("b"));
    }
}
