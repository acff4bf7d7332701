//! Makes the cluster as it shall be: writes what differs, deletes what is not wanted any more, and makes no
//! call for what is so already.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_runtime::apply::{Context, Deletion, Exactly, apply_as, delete_exactly_as};
use opensdn_runtime::call::CallError;
use serde_json::Value;

use super::fetch::Fetched;
use crate::build::Intent;
use crate::cache::{Cache, Kind};
use crate::metrics::Metrics;
use crate::names::APPLIED;

/// Writes the intents in their order, and deletes what else the object owns of our kinds.
///
/// # Errors
/// A call fails; what was written before stays, and the next pass continues.
pub(super) async fn apply(
    ctx: &Context,
    cache: &Cache,
    metrics: &Metrics,
    fetched: &Fetched,
    intents: &[Intent],
) -> Result<(), CallError> {
    for intent in intents {
        let live = fetched.owned.get(&(intent.kind, intent.name.clone()));
        if live.is_some_and(|live| is_so(&intent.object, live)) {
            metrics.skipped(intent.kind);
            continue;
        }
        write(ctx, cache, intent.kind, &intent.object).await?;
    }
    for ((kind, name), live) in &fetched.owned {
        // Only a budget is wanted at one time and not at another; all else goes with its owner. Whoever may make
        // objects can give them our label and owner.
        if *kind != Kind::PodDisruptionBudget
            || intents.iter().any(|one| one.kind == *kind && one.name == *name)
        {
            continue;
        }
        delete(ctx, *kind, live).await?;
    }
    Ok(())
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
