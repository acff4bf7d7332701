//! What is read alike of objects as the API server has them.

use serde_json::Value;

/// Its condition of that type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").find(|one| text(one, "/type") == type_)
}

/// The items of a list in it.
pub(crate) fn list<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = &'a Value> + Clone + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A text in it, empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a container was started, by one of its states. One of a pod that was ended before counts as terminated, too, by a
/// reason of the kubelet's own (`pkg/kubelet/status/status_manager.go`, `TerminatePod`).
pub(crate) fn was_started(status: &Value, state: &str) -> bool {
    let is = |state: &str| status.pointer(state).is_some_and(|state| !state.is_null());
    let ended = format!("{state}/terminated");
    is(&format!("{state}/running"))
        || (is(&ended) && text(status, &format!("{ended}/reason")) != "ContainerStatusUnknown")
}
