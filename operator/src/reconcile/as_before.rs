//! What tf-operator has made runs on as it is until something of it is to change: taking a cluster over recreates no pod.
//! Its workload only gets the operator's label, by which it is watched, and an annotation with a digest of what the operator
//! would make of it. While that is the same nothing is written, neither the workload nor the files of its pods, whose scripts
//! are tf-operator's. From the first difference on it is as any other: its pods are recreated one after the other.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_pki::Authorities;
use opensdn_runtime::apply::read_as;
use serde_json::{Value, json};

use super::fetch::Fetched;
use super::{Context, Error, apply, authorities, take_over};
use crate::build::{Secrets, Valid, build, digest};
use crate::canary::Pace;
use crate::ensemble::record::Record;
use crate::kind::Kind;
use crate::names::{self, APPLIED, AS_BEFORE, MANAGED_BY, OPERATOR};
use crate::node::addresses_of;
use crate::object::{controller_of, is_controlled_by, list, text};

/// Whether the component's workload is left as tf-operator has made it. Marks it so when it is seen for the first time.
///
/// # Errors
/// A call fails, or a template is wrong.
pub(super) async fn stays(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    authorities: &Authorities,
) -> Result<bool, Error> {
    let (kind, name) = valid.keeper();
    let live = fetched.owned.get(&(kind, name.clone()));
    // All but what is taken over, and that costs them nothing.
    if live.is_some_and(|live| live.annotations().contains_key(APPLIED)) {
        return Ok(false);
    }
    let given_ca = ctx.cache.get(Kind::GivenCa, &fetched.namespace(), names::GIVEN_CA_SECRET);
    let there = match live {
        Some(live) => Some((**live).clone()),
        // It would not stay.
        None if given_ca.is_none() => return Ok(false),
        None => {
            let namespace = fetched.object.namespace();
            read_as(&ctx.writer, &kind.resource(), namespace.as_deref(), &name).await?
        }
    };
    let Some(there) = there.filter(|there| is_of_tf_operator(there, &fetched.object)) else {
        return Ok(false);
    };
    let wanted = wanted(ctx, fetched, valid)?;
    let before = there.annotations().get(AS_BEFORE).map(String::as_str);
    let why = if given_ca.is_none() || authorities::is_rotating(authorities) {
        Some("another CA than before issues certificates".to_owned())
    } else {
        why_not(fetched, valid, &there, before, wanted.as_deref())
    };
    if let Some(why) = why {
        tracing::info!(
            kind = kind.name(),
            namespace = fetched.namespace(),
            name,
            why,
            "recreates pods that tf-operator made"
        );
        return Ok(false);
    }
    let digest = before.filter(|before| !before.is_empty()).or(wanted.as_deref());
    mark(ctx, kind, &there, digest.unwrap_or_default()).await?;
    if live.is_none() {
        // So that it is seen when its certificates are to be issued again.
        mark_certificates(ctx, fetched, valid).await?;
    }
    Ok(true)
}

/// Whether tf-operator has made it for the component, and the operator has written nothing of its spec.
fn is_of_tf_operator(there: &DynamicObject, component: &DynamicObject) -> bool {
    let annotations = there.annotations();
    let fields = there.metadata.managed_fields.as_deref().unwrap_or_default();
    is_controlled_by(there, &component.uid().unwrap_or_default())
        && there.metadata.deletion_timestamp.is_none()
        && !annotations.contains_key(APPLIED)
        // Of what is kept in the cache it is not known who has written it.
        && (annotations.contains_key(AS_BEFORE) || take_over::is_written_by_others(fields))
}

/// The digest of what the operator would make of the workload and the files of its pods. None, as long as that is not known:
/// the Manager has not written the component yet, or there is no node for it.
fn wanted(ctx: &Context, fetched: &Fetched, valid: &Valid) -> Result<Option<String>, Error> {
    let is_written = fetched.object.annotations().contains_key(APPLIED);
    if valid.nodes.is_empty() || (controller_of(&fetched.object).is_some() && !is_written) {
        return Ok(None);
    }
    let valid = by_nodes_alone(valid);
    let intents = build(&ctx.templates, &fetched.object, &valid, Secrets::default())?;
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
    before: Option<&str>,
    wanted: Option<&str>,
) -> Option<String> {
    let certificates = fetched.owned.get(&(Kind::Secret, valid.instance.certificates()));
    if certificates.is_some_and(|secret| secret.annotations().contains_key(names::RENEW)) {
        return Some("its certificates are to be issued again".to_owned());
    }
    let recreated = || names::recreate(&fetched.object, fetched.manager.as_deref());
    if let Some(why) = valid.stopped.clone().or_else(recreated) {
        return Some(why);
    }
    match before.filter(|before| !before.is_empty()).zip(wanted) {
        Some((before, wanted)) => {
            (before != wanted).then(|| "what it is to be has changed".to_owned())
        }
        None => changed_meanwhile(valid, there),
    }
}

/// What tf-operator has not made so any more before it ended: another number of pods, or other images.
fn changed_meanwhile(valid: &Valid, there: &DynamicObject) -> Option<String> {
    if valid.nodes.is_empty() {
        return None;
    }
    let replicas = there.data.pointer("/spec/replicas").and_then(Value::as_i64);
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

/// Has it watched, and remembers what would be made of it.
async fn mark(ctx: &Context, kind: Kind, there: &DynamicObject, digest: &str) -> Result<(), Error> {
    let is_watched = there.labels().get(MANAGED_BY).is_some_and(|by| by == OPERATOR);
    if is_watched && there.annotations().get(AS_BEFORE).is_some_and(|before| before == digest) {
        return Ok(());
    }
    let annotations = json!({ (AS_BEFORE): digest });
    apply::write(&ctx.writer, &ctx.cache, kind, &metadata(kind, there, annotations)).await?;
    Ok(())
}

/// Only what is said of it beside its spec. Of an object that is another one by now nothing is written.
fn metadata(kind: Kind, there: &DynamicObject, annotations: Value) -> DynamicObject {
    let resource = kind.resource();
    let mut object = DynamicObject::new(&there.name_any(), &resource);
    object.metadata.namespace = there.namespace();
    object.metadata.uid = there.uid();
    object.metadata.labels = Some([(MANAGED_BY.to_owned(), OPERATOR.to_owned())].into());
    object.metadata.annotations = serde_json::from_value(annotations).ok();
    object
}

async fn mark_certificates(ctx: &Context, fetched: &Fetched, valid: &Valid) -> Result<(), Error> {
    let (resource, name) = (Kind::Secret.resource(), valid.instance.certificates());
    let namespace = fetched.object.namespace();
    let there: Option<DynamicObject> =
        read_as(&ctx.writer, &resource, namespace.as_deref(), &name).await?;
    let uid = fetched.object.uid().unwrap_or_default();
    let Some(there) = there.filter(|there| is_controlled_by(there, &uid)) else { return Ok(()) };
    let object = metadata(Kind::Secret, &there, json!({}));
    apply::write(&ctx.writer, &ctx.cache, Kind::Secret, &object).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
        assert!(is(json!({})) && is(json!({(AS_BEFORE): ""})));
        assert!(!is(json!({(APPLIED): "digest"})) && !is(json!({(APPLIED): "d", (AS_BEFORE): ""})));
        let mut applied = workload(2, "i", &json!({}));
        applied.metadata.managed_fields = None;
        assert!(!is_of_tf_operator(&applied, &component), "no other has written its spec");
        let mut others = component.clone();
        others.metadata.uid = Some("another".to_owned());
        assert!(!is_of_tf_operator(&workload(2, "i", &json!({})), &others));
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
