//! What tf-operator has made runs on as it is until something of it is to change: taking a cluster over recreates no pod.
//! Its workload only gets the operator's label, by which it is watched. The status of the component, which no user of the
//! namespace may write, has its UID and generation, and a digest of what the operator would make of it. While they are the same
//! nothing is written, neither the workload nor the files of its pods, whose scripts are tf-operator's. From the first difference
//! on it is as any other: its pods are recreated one after the other.

use std::time::Duration;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, TestOperation};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use opensdn_crds::status::{CommonStatus, TakenOver};
use opensdn_pki::Authorities;
use opensdn_runtime::apply::{patch_as, read_as};
use opensdn_runtime::call::CallError;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::fetch::Fetched;
use super::{Context, Error, authorities, refused_or_failed, take_over};
use crate::build::{Secrets, Valid, build, digest};
use crate::canary::Pace;
use crate::component::{ComponentKind, word};
use crate::ensemble::record::Record;
use crate::kind::Kind;
use crate::names::{self, APPLIED, Instance, MANAGED_BY, OPERATOR};
use crate::node::{Node, addresses_of};
use crate::object::{controller_of, is_controlled_by, list, number, text};

/// What is known of a workload that tf-operator has made: what the status of the component says, which only operators write.
/// A component whose status no pass has written yet is looked at. Later none is taken for tf-operator's: who may change workloads
/// could have the operator leave one as it is.
///
/// # Errors
/// A call fails.
pub(super) async fn known(
    ctx: &Context,
    component: &'static dyn ComponentKind,
    resource: &ApiResource,
    fetched: &Fetched,
    before: &CommonStatus,
) -> Result<Option<TakenOver>, CallError> {
    if before.observed_generation.is_some() {
        return Ok(before.taken_over.clone());
    }
    let object = &fetched.object;
    let (namespace, name) = (object.namespace(), object.name_any());
    let instance = Instance { word: word(component.facts()), name: name.clone() };
    let (kind, workload) = instance.keeper(component.workload());
    let namespace = namespace.as_deref();
    let there = read_as(&ctx.writer, &kind.resource(), namespace, &workload).await?;
    let Some(there) = there.filter(|there| is_of_tf_operator(there, object)) else {
        return Ok(None);
    };
    // Of what is kept in the cache it is not known who has written it.
    let stored: Option<DynamicObject> = read_as(&ctx.writer, resource, namespace, &name).await?;
    let is_same = |stored: &DynamicObject| stored.metadata.uid == object.metadata.uid;
    let others_made_it = stored.filter(is_same).is_some_and(|stored| {
        take_over::is_of_others(stored.metadata.managed_fields.as_deref().unwrap_or_default())
    });
    Ok(others_made_it.then(|| TakenOver {
        uid: there.uid().unwrap_or_default(),
        generation: there.metadata.generation,
        would_be: None,
        differs_since: None,
    }))
}

/// So long a difference lasts that no change of the component has brought: the label of a node or a Secret that is away for a moment
/// is no reason to have all pods recreated.
const SETTLE: Duration = Duration::from_secs(60);
/// So many nodes are named in a reason.
const MOST_NODES: usize = 5;

/// Whether the component's workload is left as tf-operator has made it, and until when. Has it watched then, and notes what would be
/// made of it. Of one that is not left nothing is known any more.
///
/// # Errors
/// A call fails, or a template is wrong.
pub(super) async fn stays(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    authorities: &Authorities,
    known: &mut Option<TakenOver>,
) -> Result<Option<Duration>, Error> {
    // All but what is taken over, and that costs them nothing.
    let Some(before) = known.as_mut() else { return Ok(None) };
    let (kind, name) = valid.keeper();
    let live = fetched.owned.get(&(kind, name.clone()));
    let there = match live {
        Some(live) => Some((**live).clone()),
        None => {
            let namespace = fetched.object.namespace();
            read_as(&ctx.writer, &kind.resource(), namespace.as_deref(), &name).await?
        }
    };
    let wanted = wanted(ctx, fetched, valid)?;
    let has_its_ca = authorities::uses_given(
        &ctx.cache,
        &fetched.namespace(),
        authorities,
        OffsetDateTime::now_utc(),
    );
    let why = match &there {
        Some(there) if is_as_it_was(there, before) => {
            if !has_its_ca || authorities::is_rotating(authorities) {
                let why = "another CA than before issues certificates".to_owned();
                // None was given from the beginning.
                Some(if seen(fetched).is_none() { Why::Now(why) } else { Why::Lasting(why) })
            } else {
                why_not(fetched, valid, there, before, wanted.as_deref())
            }
        }
        _ => Some(Why::Now(
            "it is another one than tf-operator made, or was changed since".to_owned(),
        )),
    };
    let left = match why {
        None => {
            before.differs_since = None;
            super::LONGEST_PAUSE
        }
        Some(Why::Lasting(_)) if !lasts(before) => SETTLE + Duration::from_secs(1),
        Some(Why::Lasting(why) | Why::Now(why)) => {
            let (kind, namespace) = (kind.name(), fetched.namespace());
            tracing::info!(kind, namespace, name, why, "recreates pods that tf-operator made");
            *known = None;
            return Ok(None);
        }
    };
    before.would_be = before.would_be.take().or(wanted);
    if let Some(there) = &there {
        watch(ctx, kind, there).await?;
    }
    if live.is_none() {
        // So that it is seen when its certificates are to be issued again.
        watch_certificates(ctx, fetched, valid).await?;
    }
    Ok(Some(left))
}

/// Why pods of tf-operator are to be recreated.
#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// That was asked for, or somebody has changed what they are made of.
    Now(String),
    /// If it stays so.
    Lasting(String),
}

/// The generation of the component that the last pass has seen.
fn seen(fetched: &Fetched) -> Option<i64> {
    number(&fetched.object.data, "/status/observedGeneration")
}

/// Whether it was different for long, and notes since when.
fn lasts(before: &mut TakenOver) -> bool {
    let now = OffsetDateTime::now_utc();
    let since = before.differs_since.as_deref();
    let since = since.and_then(|since| OffsetDateTime::parse(since, &Rfc3339).ok());
    match since.filter(|since| *since <= now) {
        Some(since) => now - since >= SETTLE,
        None => {
            before.differs_since = Some(super::now());
            false
        }
    }
}

/// Whether tf-operator has made it for the component, and the operator has written nothing of its spec.
fn is_of_tf_operator(there: &DynamicObject, component: &DynamicObject) -> bool {
    let fields = there.metadata.managed_fields.as_deref().unwrap_or_default();
    is_controlled_by(there, &component.uid().unwrap_or_default())
        && there.metadata.deletion_timestamp.is_none()
        && !there.annotations().contains_key(APPLIED)
        && !take_over::is_of_operator(fields)
}

/// Whether it is that very object, with the spec that it had: the API server counts generations of that. What the cache has may be
/// a little older.
fn is_as_it_was(there: &DynamicObject, before: &TakenOver) -> bool {
    there.metadata.uid.as_ref() == Some(&before.uid)
        && there.metadata.deletion_timestamp.is_none()
        && there.metadata.generation <= before.generation
        && !there.annotations().contains_key(APPLIED)
}

/// The digest of what the operator would make of the workload and the files of its pods. None, as long as that is not known:
/// the Manager has not written the component yet, or there is no node for it.
fn wanted(ctx: &Context, fetched: &Fetched, valid: &Valid) -> Result<Option<String>, Error> {
    let is_written = fetched.object.annotations().contains_key(APPLIED);
    if valid.nodes.is_empty() || (controller_of(&fetched.object).is_some() && !is_written) {
        return Ok(None);
    }
    let valid = by_nodes_alone(valid);
    let intents = build(&ctx.templates, &fetched.object, &valid, Secrets::default());
    let intents = intents.map_err(refused_or_failed)?;
    let kinds = [Kind::ConfigMap, Kind::StatefulSet, Kind::DaemonSet];
    let of_pods = intents.iter().filter(|intent| kinds.contains(&intent.kind));
    let digests = of_pods.filter_map(|intent| intent.object.annotations().get(APPLIED));
    Ok(Some(digest(digests.map(String::as_bytes))))
}

/// Without what comes and goes: whether peers are active, and which pods there are.
fn by_nodes_alone(valid: &Valid) -> Valid {
    let mut valid = Valid { waits_for: None, pace: Pace::default(), ..valid.clone() };
    valid.addresses = addresses_of(&valid.nodes);
    valid.addresses.dedup();
    if let Some(members) = &mut valid.members {
        members.record = Record::first(&valid.addresses);
    }
    valid
}

/// Why its pods are to be recreated, if they are (pure).
fn why_not(
    fetched: &Fetched,
    valid: &Valid,
    there: &DynamicObject,
    before: &TakenOver,
    wanted: Option<&str>,
) -> Option<Why> {
    let certificates = fetched.owned.get(&(Kind::Secret, valid.instance.certificates()));
    if certificates.is_some_and(|secret| secret.annotations().contains_key(names::RENEW)) {
        return Some(Why::Now("its certificates are to be issued again".to_owned()));
    }
    let recreated = || names::recreate(&fetched.object, fetched.manager.as_deref());
    if let Some(why) = valid.stopped.clone().or_else(recreated) {
        return Some(Why::Now(why));
    }
    let Some((would_be, wanted)) = before.would_be.as_deref().zip(wanted) else {
        return changed_meanwhile(valid, there).map(Why::Now);
    };
    match (would_be == wanted, seen(fetched) == fetched.object.metadata.generation) {
        (true, _) => None,
        (false, false) => Some(Why::Now("the component was changed".to_owned())),
        (false, true) => Some(Why::Lasting(format!(
            "what is around it has changed: its nodes (now {}), or what it needs",
            first(&valid.nodes)
        ))),
    }
}

/// The names of the first of them.
fn first(nodes: &[Node]) -> String {
    let more = nodes.len().saturating_sub(MOST_NODES);
    let names: Vec<&str> = nodes.iter().take(MOST_NODES).map(|node| &*node.name).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// What tf-operator has not made so any more before it ended: another number of pods, or other images.
fn changed_meanwhile(valid: &Valid, there: &DynamicObject) -> Option<String> {
    if valid.nodes.is_empty() {
        return None;
    }
    let replicas = number(&there.data, "/spec/replicas");
    if replicas.is_some_and(|replicas| replicas != i64::from(valid.replicas())) {
        return Some(format!("it is to have {} pods", valid.replicas()));
    }
    let runs = |container: &str| {
        let pod = "/spec/template/spec";
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|part| list(&there.data, &format!("{pod}/{part}")).collect::<Vec<_>>())
            .find(|one| text(one, "/name") == container)
    };
    let other = valid.images.iter().find(|(container, wanted)| {
        runs(container).is_some_and(|one| text(one, "/image") != wanted.image)
    });
    other.map(|(container, wanted)| {
        format!("container {container} is to run the image {}", wanted.image)
    })
}

/// Has it watched: gives it the operator's label, and changes nothing else of it. Of an object that is another one by now nothing is
/// written.
async fn watch(ctx: &Context, kind: Kind, there: &DynamicObject) -> Result<(), CallError> {
    if there.labels().get(MANAGED_BY).is_some_and(|by| by == OPERATOR) {
        return Ok(());
    }
    let labels = PointerBuf::from_tokens(["metadata", "labels"]);
    let (path, value) = match &there.metadata.labels {
        Some(_) => {
            let label = labels.with_trailing_token(MANAGED_BY);
            (label, json!(OPERATOR))
        }
        None => (labels, json!({ (MANAGED_BY): OPERATOR })),
    };
    let patch = Patch(vec![
        PatchOperation::Test(TestOperation {
            path: PointerBuf::from_tokens(["metadata", "uid"]),
            value: json!(there.metadata.uid),
        }),
        PatchOperation::Add(AddOperation { path, value }),
    ]);
    if let Some(stored) = patch_as(&ctx.writer, &kind.resource(), there, patch).await? {
        ctx.cache.put(kind, stored);
    }
    Ok(())
}

async fn watch_certificates(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
) -> Result<(), CallError> {
    let (resource, name) = (Kind::Secret.resource(), valid.instance.certificates());
    let namespace = fetched.object.namespace();
    let there: Option<DynamicObject> =
        read_as(&ctx.writer, &resource, namespace.as_deref(), &name).await?;
    let uid = fetched.object.uid().unwrap_or_default();
    match there.filter(|there| is_controlled_by(there, &uid)) {
        Some(there) => watch(ctx, Kind::Secret, &there).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::build::Image;
    use crate::build::valid::tests::valid;

    fn workload(replicas: i64, image: &str, annotations: &Value) -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "n-w-statefulset", "annotations": annotations,
                "ownerReferences": [{"apiVersion": "a/v1", "kind": "Redis", "name": "n", "uid": "u", "controller": true}],
                "managedFields": [{"manager": "tf-operator", "operation": "Update", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "redis", "image": image}]}}}}))
        .unwrap()
    }

    fn with_image(image: &str) -> Valid {
        let image = Image { image: image.to_owned(), command: None };
        Valid { images: [("redis", image)].into(), ..valid() }
    }

    #[test]
    fn what_was_changed_before_it_was_seen_is_made_at_once() {
        let as_it_was = workload(2, "redis:1", &json!({}));
        assert_eq!(changed_meanwhile(&with_image("redis:1"), &as_it_was), None);
        let why = changed_meanwhile(&with_image("redis:2"), &as_it_was).unwrap();
        assert!(why.contains("container redis is to run the image redis:2"), "{why}");
        let fewer = workload(1, "redis:1", &json!({}));
        let why = changed_meanwhile(&with_image("redis:1"), &fewer).unwrap();
        assert_eq!(why, "it is to have 2 pods");
        let nowhere = Valid { nodes: Vec::new(), ..with_image("redis:2") };
        assert_eq!(changed_meanwhile(&nowhere, &fewer), None, "labels of nodes come and go");
    }

    #[test]
    fn what_the_operator_has_written_or_another_owns_is_not_tf_operators() {
        let component: DynamicObject =
            serde_json::from_value(json!({"metadata": {"name": "n", "uid": "u"}})).unwrap();
        let is =
            |annotations: Value| is_of_tf_operator(&workload(2, "i", &annotations), &component);
        assert!(is(json!({})) && !is(json!({(APPLIED): "digest"})));
        let mut applied = workload(2, "i", &json!({}));
        applied.metadata.managed_fields = None;
        assert!(is_of_tf_operator(&applied, &component), "a restore takes off who has written it");
        let fields =
            json!([{"manager": OPERATOR, "operation": "Apply", "fieldsV1": {"f:spec": {}}}]);
        applied.metadata.managed_fields = serde_json::from_value(fields).unwrap();
        assert!(!is_of_tf_operator(&applied, &component), "the operator has written its spec");
        let mut others = component.clone();
        others.metadata.uid = Some("another".to_owned());
        assert!(!is_of_tf_operator(&workload(2, "i", &json!({})), &others));
    }

    #[test]
    fn a_workload_that_was_changed_or_made_again_since_is_not_as_it_was() {
        let known = TakenOver { uid: "w".to_owned(), generation: Some(3), ..TakenOver::default() };
        let is = |uid: &str, generation: i64, annotations: Value| {
            let mut there = workload(2, "i", &annotations);
            there.metadata.uid = Some(uid.to_owned());
            there.metadata.generation = Some(generation);
            is_as_it_was(&there, &known)
        };
        assert!(is("w", 3, json!({})) && is("w", 2, json!({})), "the cache may lag");
        assert!(!is("w", 4, json!({})) && !is("x", 1, json!({})));
        assert!(!is("w", 3, json!({(APPLIED): "digest"})));
    }

    #[test]
    fn a_difference_counts_when_it_has_lasted_for_a_minute() {
        let ago = |seconds: i64| {
            let at = OffsetDateTime::now_utc() - time::Duration::seconds(seconds);
            let differs_since = Some(at.format(&Rfc3339).unwrap());
            TakenOver { differs_since, ..TakenOver::default() }
        };
        assert!(lasts(&mut ago(61)) && !lasts(&mut ago(50)));
        let mut first = TakenOver::default();
        assert!(!lasts(&mut first) && first.differs_since.is_some(), "from now on");
        let mut to_come = ago(-3600);
        assert!(!lasts(&mut to_come) && to_come.differs_since != ago(-3600).differs_since);
    }

    #[test]
    fn pods_that_come_and_go_change_nothing_of_what_would_be_made() {
        let mut seen = valid();
        seen.nodes[0].address = Some("192.0.2.1".to_owned());
        let mut with_pods = seen.clone();
        with_pods.addresses = vec!["192.0.2.1".to_owned(), "198.51.100.7".to_owned()];
        with_pods.waits_for = Some("waits for Config config1".to_owned());
        let (one, other) = (by_nodes_alone(&seen), by_nodes_alone(&with_pods));
        assert_eq!(one.addresses, ["192.0.2.1"]);
        assert_eq!((&one.addresses, &one.waits_for), (&other.addresses, &other.waits_for));
    }
}
