//! What keeps an object until what it has in a cloud is taken away, and no longer than a while: a cloud that does not
//! answer must not keep a namespace from going.

use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::runtime::events::{Event, EventType};
use opensdn_runtime::call::CallError;
use serde_json::json;

use crate::names::{LEAVE_BEHIND, RELEASE_CLOUD};
use crate::reconcile::Context;

/// How long it is tried.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Whether the object has it.
pub(super) fn is_set(object: &DynamicObject) -> bool {
    object.finalizers().iter().any(|one| one == RELEASE_CLOUD)
}

/// Sets it, before the first write into a cloud.
pub(super) async fn set(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
) -> Result<(), CallError> {
    write(ctx, resource, object, vec![RELEASE_CLOUD.to_owned()]).await
}

/// Lets the object go.
pub(super) async fn release(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
) -> Result<(), CallError> {
    match write(ctx, resource, object, Vec::new()).await {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        written => written,
    }
}

/// By an apply with nothing else in it, so that finalizers of others stay as they are.
async fn write(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
    finalizers: Vec<String>,
) -> Result<(), CallError> {
    let mut intent = DynamicObject::new(&object.name_any(), resource);
    let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
    intent.types = Some(TypeMeta { api_version, kind });
    intent.metadata.namespace = object.namespace();
    // One that is gone is not made again, and another of the name is not changed.
    intent.metadata.uid = object.uid();
    intent.metadata.finalizers = Some(finalizers);
    intent.data = json!({});
    opensdn_runtime::apply::apply_as(&ctx.writer, resource, &intent).await.map(drop)
}

/// Whether a user wants it to go with what it has left where it is.
pub(super) fn is_left(object: &DynamicObject) -> bool {
    object.annotations().get(LEAVE_BEHIND).is_some_and(|value| value != "false")
}

/// Why what could not be taken away is left where it is.
pub(super) fn left_behind(object: &DynamicObject, failing: Duration) -> Option<&'static str> {
    if is_left(object) {
        return Some("the annotation opensdn.io/leave-behind is set");
    }
    (failing > LIMIT).then_some("it has failed for ten minutes")
}

/// The Event about what is left.
pub(super) fn event(why: &str, failure: &str, remedy: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: "LeftBehind".to_owned(),
        note: Some(format!("left in the cloud what it has there, as {why}: {failure}; {remedy}")),
        action: "Delete".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_waits_for_its_cloud_for_ten_minutes_or_until_it_is_told_not_to() {
        let object = |annotations| {
            serde_json::from_value::<DynamicObject>(json!({"metadata": {"name": "a",
                "annotations": annotations}}))
            .unwrap()
        };
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let of_annotation = |value: &str| {
            let annotations = json!({ (LEAVE_BEHIND): value });
            left_behind(&object(annotations), Duration::ZERO).is_some()
        };
        assert_eq!(left_behind(&object(json!({})), minutes(9)), None);
        let failed = left_behind(&object(json!({})), minutes(11));
        assert_eq!(failed, Some("it has failed for ten minutes"));
        assert_eq!((of_annotation("true"), of_annotation("false")), (true, false));
    }
}
