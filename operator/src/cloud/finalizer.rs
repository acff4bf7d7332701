//! What keeps an object until what it has in a cloud is taken away, and no longer than a while: a cloud that does not
//! answer must not keep a namespace from going.

use std::time::Duration;

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation, TestOperation};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::runtime::events::{Event, EventType};
use opensdn_runtime::apply::{apply_as, patch_as};
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
    // By an apply with nothing else in it, so that finalizers of others stay as they are.
    let mut intent = DynamicObject::new(&object.name_any(), resource);
    let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
    intent.types = Some(TypeMeta { api_version, kind });
    intent.metadata.namespace = object.namespace();
    // One that is gone is not made again, and another of the name is not changed.
    intent.metadata.uid = object.uid();
    intent.metadata.finalizers = Some(vec![RELEASE_CLOUD.to_owned()]);
    intent.data = json!({});
    apply_as(&ctx.writer, resource, &intent).await.map(drop)
}

/// Lets the object go, whoever has set the finalizer: an export that was applied again, or a backup, has it from another
/// writer, and an apply takes away only what is one's own. Where the object has changed meanwhile nothing is done: that
/// change is an event, and by it the next pass comes.
pub(super) async fn release(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
) -> Result<(), CallError> {
    let Some(patch) = removal(object) else { return Ok(()) };
    match patch_as(&ctx.writer, resource, object, patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        patched => patched.map(drop),
    }
}

/// What takes the finalizer away, if the object has it, and nothing where it has changed meanwhile.
fn removal(object: &DynamicObject) -> Option<Patch> {
    let at = object.finalizers().iter().position(|one| one == RELEASE_CLOUD)?;
    let pointer = |text: String| PointerBuf::parse(text).ok();
    let path = pointer(format!("/metadata/finalizers/{at}"))?;
    let uid = pointer("/metadata/uid".to_owned())?;
    Some(Patch(vec![
        PatchOperation::Test(TestOperation { path: uid, value: json!(object.uid()) }),
        PatchOperation::Test(TestOperation { path: path.clone(), value: json!(RELEASE_CLOUD) }),
        PatchOperation::Remove(RemoveOperation { path }),
    ]))
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
    fn the_finalizer_is_taken_away_from_where_it_is_and_no_other() {
        let object = |finalizers: serde_json::Value| {
            serde_json::from_value::<DynamicObject>(
                json!({"metadata": {"name": "a", "uid": "u", "finalizers": finalizers}}),
            )
            .unwrap()
        };
        let of_others = object(json!(["b/c"]));
        assert!(removal(&of_others).is_none());
        let patch = removal(&object(json!(["b/c", RELEASE_CLOUD, "d/e"]))).unwrap();
        let mut stored =
            json!({"metadata": {"uid": "u", "finalizers": ["b/c", RELEASE_CLOUD, "d/e"]}});
        json_patch::patch(&mut stored, &patch).unwrap();
        assert_eq!(stored["metadata"]["finalizers"], json!(["b/c", "d/e"]));
        for other in [
            json!({"uid": "u", "finalizers": ["x/y", "b/c", RELEASE_CLOUD]}),
            json!({"uid": "v", "finalizers": ["b/c", RELEASE_CLOUD]}),
        ] {
            let mut stored = json!({ "metadata": other });
            assert!(json_patch::patch(&mut stored, &patch).is_err(), "{stored}");
        }
    }

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
