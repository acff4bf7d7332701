//! Makes the cluster as it shall be: writes what differs, deletes what is not wanted any more, and makes no
//! call for what is so already.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_runtime::apply::{
    Context, Deletion, Exactly, apply_as, delete_exactly_as, patch_as, read_as,
};
use opensdn_runtime::call::CallError;
use serde_json::Value;

use super::fetch::Fetched;
use super::live::{self, Behind, LiveError};
use super::take_over;
use super::validate::Invalid;
use crate::build::Intent;
use crate::cache::Cache;
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::names::{ADOPT, APPLIED, NODE};
use crate::object::controller_of;

/// Why not all is as it shall be. What was written before stays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// The next pass continues.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Another has an object of that name.
    #[error("{}", .0.message)]
    NotOurs(Invalid),
    /// It was decided by what is not so any more.
    #[error(transparent)]
    Behind(#[from] Behind),
}

impl From<LiveError> for ApplyError {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Call(error) => Self::Call(error),
            LiveError::Behind(behind) => Self::Behind(behind),
        }
    }
}

/// Writes the intents in their order, and deletes what else the object owns of our kinds.
///
/// # Errors
/// A call fails, or an object is another's.
pub(super) async fn apply(
    ctx: &Context,
    cache: &Cache,
    metrics: &Metrics,
    fetched: &Fetched,
    intents: &[Intent],
) -> Result<(), ApplyError> {
    let is_home =
        |one: &Intent| one.kind == Kind::StatefulSet && one.object.annotations().contains_key(NODE);
    // Without a node there are none, and those that there are stay.
    let has_homes = intents.iter().any(is_home);
    let mut kinds = intents.iter().map(|one| one.kind);
    let mut owned = fetched.owned.keys().map(|(kind, _)| *kind);
    let stays_as_it_is =
        owned.any(|kind| kind == Kind::StatefulSet) && kinds.all(|kind| kind != Kind::StatefulSet);
    let mut written: Vec<Kind> = Vec::new();
    // Volumes have been looked at before.
    for intent in intents.iter().filter(|intent| intent.kind != Kind::PersistentVolumeClaim) {
        let live = fetched.owned.get(&(intent.kind, intent.name.clone()));
        if live.is_some_and(|live| is_so(&intent.object, live)) {
            metrics.skipped(intent.kind);
            continue;
        }
        if written.is_empty() {
            live::is_current(ctx, &fetched.object).await?;
        }
        write_one(ctx, cache, fetched, intent).await?;
        written.push(intent.kind);
    }
    for ((kind, name), live) in &fetched.owned {
        if intents.iter().any(|one| one.kind == *kind && one.name == *name) {
            continue;
        }
        // Only a budget is wanted at one time and not at another, and the StatefulSet of a node that has been given up and its pod
        // has ended; all else goes with its owner. Anyone who may make objects can give them our label and owner.
        let is_over = match kind {
            Kind::PodDisruptionBudget => !stays_as_it_is,
            Kind::StatefulSet => has_homes && live.annotations().contains_key(NODE),
            _ => false,
        };
        if !is_over {
            continue;
        }
        if !written.contains(&Kind::StatefulSet) {
            live::may_shrink(ctx, fetched).await?;
        } else if *kind == Kind::StatefulSet {
            // When the others are known as they are now.
            continue;
        }
        // The StatefulSet of a budget was written just now, and looked at before.
        delete(ctx, *kind, live).await?;
        cache.mark_going(*kind, live);
    }
    Ok(())
}

/// Writes one of them, if it is not another's.
///
/// # Errors
/// As [`apply`].
pub(super) async fn apply_one(
    ctx: &Context,
    cache: &Cache,
    fetched: &Fetched,
    intent: &Intent,
) -> Result<(), ApplyError> {
    live::is_current(ctx, &fetched.object).await?;
    write_one(ctx, cache, fetched, intent).await
}

async fn write_one(
    ctx: &Context,
    cache: &Cache,
    fetched: &Fetched,
    intent: &Intent,
) -> Result<(), ApplyError> {
    let live = fetched.owned.get(&(intent.kind, intent.name.clone()));
    if let Some(live) = live {
        live::may_overwrite(ctx, fetched, live, intent).await?;
    }
    // What tf-operator has made may be watched already, and was never applied.
    if live.is_none_or(|live| !live.annotations().contains_key(APPLIED))
        && let Some(message) = not_ours(ctx, fetched, intent).await?
    {
        return Err(ApplyError::NotOurs(Invalid { reason: "NotOurs", message }));
    }
    Ok(write_intent(ctx, cache, intent).await?)
}

/// Applies it. What others have written beside it stays then, and may be what the API server does not take together with it: a
/// workload of that kind becomes the operator's as a whole first.
async fn write_intent(ctx: &Context, cache: &Cache, intent: &Intent) -> Result<(), CallError> {
    match write(ctx, cache, intent.kind, &intent.object).await {
        Err(error) if error.is_invalid() => {
            if take_over::whole(ctx, intent.kind, &intent.object).await? {
                write(ctx, cache, intent.kind, &intent.object).await
            } else {
                Err(error)
            }
        }
        written => written,
    }
}

/// So often an object is read again that others write at the same time.
pub(super) const TRIES: usize = 5;

/// Why an object of that name is left alone; else it is taken over, where tf-operator has made it. It is read, once before it is made: watches report only what has
/// our label, which anybody can take off and set.
async fn not_ours(
    ctx: &Context,
    fetched: &Fetched,
    intent: &Intent,
) -> Result<Option<String>, CallError> {
    let namespace = intent.object.namespace();
    let resource = intent.kind.resource();
    for _ in 0..TRIES {
        let there: Option<DynamicObject> =
            read_as(ctx, &resource, namespace.as_deref(), &intent.name).await?;
        let Some(there) = there else { return Ok(None) };
        if let Some(why) = belongs_to_others(&there, intent, &fetched.object) {
            return Ok(Some(why));
        }
        let Some(patch) = take_over::patch(intent.kind, &there) else { return Ok(None) };
        if patch_as(ctx, &resource, &there, patch).await?.is_some() {
            let (kind, name) = (intent.kind.name(), &intent.name);
            tracing::info!(kind, namespace, name, "took over what another program had written");
            return Ok(None);
        }
        // Its status was written meanwhile.
    }
    let (kind, name) = (intent.kind.name(), &intent.name);
    Ok(Some(format!(
        "{kind} {name} cannot be taken over: others write it all the time; it is tried again"
    )))
}

/// Why an object is not to be written, though it has the name: it is another's, or a user has made it for
/// himself. What tf-operator has made for the component is the component's.
fn belongs_to_others(
    there: &DynamicObject,
    intent: &Intent,
    component: &DynamicObject,
) -> Option<String> {
    let (kind, name) = (intent.kind.name(), &intent.name);
    let whose = component.name_any();
    let owner_kind = component.types.as_ref().map_or("", |types| &types.kind);
    match controller_of(there) {
        // An earlier one of the name, as this one is the one that there is now: what that had goes by itself, or is this one's.
        Some(owner) if owner.kind == owner_kind && owner.name == whose => None,
        Some(owner) => Some(format!(
            "{kind} {name} belongs to {} {}: give one of the two another name",
            owner.kind, owner.name
        )),
        None if there.annotations().get(ADOPT) == Some(&whose) => None,
        // It has made it, and a user has taken the owner off.
        None if there.annotations().contains_key(APPLIED) => None,
        None => Some(format!(
            "{kind} {name} was there before and is not the operator's: delete it, give {owner_kind} {whose} another \
             name, or have it overwritten: kubectl annotate -n {} {}/{name} {ADOPT}={whose}",
            component.namespace().unwrap_or_default(),
            kind.to_lowercase(),
        )),
    }
}

/// Applies one object, and has the cache know it at once.
///
/// # Errors
/// The call fails.
pub(crate) async fn write(
    ctx: &Context,
    cache: &Cache,
    kind: Kind,
    object: &DynamicObject,
) -> Result<(), CallError> {
    let resource = kind.resource();
    let stored = apply_as(ctx, &resource, object).await?;
    tracing::info!(
        kind = kind.name(),
        namespace = stored.metadata.namespace,
        name = stored.metadata.name,
        "applied"
    );
    cache.put(kind, stored);
    Ok(())
}

/// Deletes that very object, unless it is going already.
///
/// # Errors
/// The call fails.
pub(crate) async fn delete(
    ctx: &Context,
    kind: Kind,
    object: &DynamicObject,
) -> Result<(), CallError> {
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let deletion = delete_exactly_as(ctx, &kind.resource(), object, Exactly::ThisObject).await?;
    if deletion == Deletion::Deleted {
        let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
        tracing::info!(kind = kind.name(), namespace, name, "deleted");
    }
    Ok(())
}

/// Whether an object is as the intent wants it: the last that was applied was this intent, so nothing that
/// is gone from it is left, and what it names has these values. Others may have added to it.
pub(crate) fn is_so(intent: &DynamicObject, live: &DynamicObject) -> bool {
    let metadata = |object: &DynamicObject| serde_json::to_value(&object.metadata);
    intent.annotations().get(APPLIED) == live.annotations().get(APPLIED)
        && covers(&live.data, &intent.data)
        && metadata(live)
            .ok()
            .zip(metadata(intent).ok())
            .is_some_and(|(live, intent)| covers(&live, &intent))
}

fn covers(live: &Value, intent: &Value) -> bool {
    match (live, intent) {
        (Value::Object(live), Value::Object(intent)) => intent.iter().all(|(key, value)| {
            // An empty value is the same as none.
            live.get(key).map_or_else(|| is_empty(value), |live| covers(live, value))
        }),
        // Lists come back in the order in which they were sent.
        (Value::Array(live), Value::Array(intent)) => {
            live.len() == intent.len()
                && live.iter().zip(intent).all(|(live, intent)| covers(live, intent))
        }
        (live, intent) => live == intent,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(object: Value) -> DynamicObject {
        serde_json::from_value(object).unwrap()
    }

    fn live() -> DynamicObject {
        object(
            json!({"metadata": {"name": "a", "uid": "u", "annotations": {(APPLIED): "1", "of": "others"}},
            "spec": {"replicas": 3, "added": "by the API server",
                "containers": [{"name": "redis", "image": "i", "imagePullPolicy": "Always"}]}}),
        )
    }

    fn intent() -> DynamicObject {
        object(json!({"metadata": {"name": "a", "annotations": {(APPLIED): "1"}},
            "spec": {"replicas": 3, "containers": [{"name": "redis", "image": "i"}], "empty": {}}}))
    }

    fn whose(there: Value) -> Option<String> {
        let component = object(json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis",
            "metadata": {"name": "redis1", "namespace": "tf", "uid": "u"}}));
        let intent = Intent {
            kind: Kind::ConfigMap,
            name: "a".to_owned(),
            object: object(json!({"metadata": {"name": "a"}})),
        };
        belongs_to_others(&object(json!({ "metadata": there })), &intent, &component)
    }

    fn owned_by(kind: &str, name: &str) -> Value {
        json!({"ownerReferences": [{"apiVersion": "a/v1", "kind": kind, "name": name, "uid": "x", "controller": true}]})
    }

    #[test]
    fn an_object_that_another_made_is_left_alone_until_he_gives_it_away() {
        let why = whose(json!({})).unwrap();
        assert!(
            why.contains("kubectl annotate -n tf configmap/a opensdn.io/adopt=redis1"),
            "{why}"
        );
        assert_eq!(whose(json!({"annotations": {(ADOPT): "redis1"}})), None);
        assert!(whose(json!({"annotations": {(ADOPT): "redis2"}})).is_some());
        assert_eq!(whose(json!({"annotations": {(APPLIED): "digest"}})), None, "ours once");
        let label = json!({"labels": {"app.kubernetes.io/managed-by": "opensdn-operator"}});
        assert!(whose(label).is_some(), "anybody can set a label");
    }

    #[test]
    fn an_object_of_another_owner_is_never_taken() {
        let mut adopted = owned_by("Redis", "redis2");
        adopted["annotations"] = json!({(ADOPT): "redis1"});
        assert!(whose(adopted).unwrap().contains("belongs to Redis redis2"));
        assert!(whose(owned_by("Config", "redis1")).is_some());
        assert_eq!(whose(owned_by("Redis", "redis1")), None, "tf-operator has made it");
    }

    #[test]
    fn what_the_api_server_and_others_add_is_no_difference() {
        assert!(is_so(&intent(), &live()));
    }

    #[test]
    fn a_changed_value_is_a_difference_also_deep_in_a_list() {
        let mut changed = live();
        changed.data["spec"]["containers"][0]["image"] = "other".into();
        assert!(!is_so(&intent(), &changed));
        let mut changed = live();
        changed.data["spec"]["replicas"] = 2.into();
        assert!(!is_so(&intent(), &changed));
    }

    #[test]
    fn an_element_too_many_or_too_few_is_a_difference() {
        let mut more = live();
        more.data["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "injected"}));
        assert!(!is_so(&intent(), &more));
        let mut fewer = live();
        fewer.data["spec"]["containers"] = json!([]);
        assert!(!is_so(&intent(), &fewer));
    }

    #[test]
    fn a_field_that_is_gone_from_the_intent_is_known_by_the_digest() {
        let mut before = live();
        before.annotations_mut().insert(APPLIED.to_owned(), "of another intent".to_owned());
        assert!(!is_so(&intent(), &before));
    }
}
