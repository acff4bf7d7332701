//! What a cluster has, as it was read once: each part is known, absent, or unknown with the reason. The pure parts of
//! `status` and `check` judge that and nothing else. How it is asked for is in `snapshot/ask.rs`.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

pub(crate) mod ask;
pub(crate) mod certificates;
pub(crate) mod places;
pub(crate) mod tf_operator;

/// A part of the cluster, and what came of asking for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Read<T> {
    /// It is this.
    Known(T),
    /// It is not there: the API server does not serve the kind, or has no such object.
    #[default]
    Absent,
    /// It is not known, and why.
    Unknown(String),
}

impl<T> Read<T> {
    /// The same of what is made of the value.
    pub(crate) fn map<U>(self, of: impl FnOnce(T) -> U) -> Read<U> {
        match self {
            Self::Known(value) => Read::Known(of(value)),
            Self::Absent => Read::Absent,
            Self::Unknown(why) => Read::Unknown(why),
        }
    }

    pub(crate) fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// What is there, and this where nothing is.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) fn or(self, absent: T) -> Result<T, String> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Absent => Ok(absent),
            Self::Unknown(why) => Err(why),
        }
    }

    pub(crate) fn why_unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::Known(_) | Self::Absent => None,
        }
    }
}

impl<T> Read<Vec<T>> {
    /// What is there; nothing where it is absent or unknown.
    pub(crate) fn items(&self) -> &[T] {
        self.known().map_or(&[], Vec::as_slice)
    }
}

/// The text at a pointer; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The items of the list at a pointer.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A label of an object. Not by pointer: labels have slashes.
pub(crate) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(name)?.as_str()
}

/// An annotation of an object.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// The object with its namespace, as people name it.
pub(crate) fn title(object: &Value) -> String {
    format!("{}/{}", namespace(object), name(object))
}

/// The labels by which a workload knows its pods, as a query has them: `app=a,tier=b`.
pub(crate) fn match_labels(workload: &Value) -> String {
    let labels = workload.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<String>>().join(",")
}

/// Whether the pod has come to its end: another has its place.
pub(crate) fn has_ended(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

/// A condition of the object's status.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").find(|one| text(one, "/type") == type_)
}

/// Whether the condition has this status.
pub(crate) fn condition_is(object: &Value, type_: &str, status: &str) -> bool {
    condition(object, type_).is_some_and(|one| text(one, "/status") == status)
}

/// Whether all that the kubelet of a node misses is a network of pods: what OpenSDN is installed for. The kubelet reports
/// the errors of the runtime's network in `Ready` (Kubernetes `pkg/kubelet/nodestatus/setters.go`).
pub(crate) fn waits_for_network(node: &Value) -> bool {
    const WORDS: [&str; 3] =
        ["NetworkPluginNotReady", "NetworkReady=false", "cni plugin not initialized"];
    condition(node, "Ready").is_some_and(|ready| {
        let message = text(ready, "/message");
        text(ready, "/status") == "False" && WORDS.iter().any(|word| message.contains(word))
    })
}

/// What the Deployment of upstream's operator is called.
pub(crate) const TF_OPERATOR: &str = "tf-operator";
/// The policy of what upstream's operator cannot do with manifests that are right.
pub(crate) const TF_OPERATOR_LIMITS: &str = "tf-operator-limits";

/// Whether the AdmissionPolicy puts that policy in force, whatever its own name, so that who writes hears of it.
pub(crate) fn limits_tf_operator(policy: &Value) -> bool {
    text(policy, "/spec/module/builtIn") == TF_OPERATOR_LIMITS
        && text(policy, "/spec/mode") != "audit"
}

/// A time as the API server writes it.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// For how long, as ages are written.
pub(crate) fn duration(time: std::time::Duration) -> String {
    age(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// How long ago, as kubectl writes ages: `4m12s`, `41d`.
pub(crate) fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=599 if seconds % 60 != 0 => format!("{minutes}m{}s", seconds % 60),
        120..=10_799 => format!("{minutes}m"),
        10_800..=28_799 if minutes % 60 != 0 => format!("{hours}h{}m", minutes % 60),
        10_800..=172_799 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ages_are_short() {
        let written = [5, 119, 252, 600, 7200, 20_000, 90_000, 3_600_000].map(age);
        assert_eq!(written, ["5s", "119s", "4m12s", "10m", "120m", "5h33m", "25h", "41d"]);
        assert_eq!(age(-5), "0s", "clocks differ");
    }

    #[test]
    fn labels_with_slashes_are_found() {
        let object = json!({"metadata": {"labels": {"a/b": "c"}}});
        assert_eq!((label(&object, "a/b"), label(&object, "a")), (Some("c"), None));
    }
}
