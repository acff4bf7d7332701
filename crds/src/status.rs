//! What the status of every component has in common. The fields of one kind's status are with
//! the kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// One aspect of an object's state, in the form that `kubectl wait` and kstatus read.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = condition))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about: Ready, Reconciling, Stalled, Waiting.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// One word that says why, for programs.
    pub reason: Option<String>,
    /// Why, and what is awaited or to be done, for people.
    pub message: Option<String>,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: Option<String>,
    /// The generation of the spec that the condition is about.
    pub observed_generation: Option<i64>,
}

/// A pod of the component and the node that it runs on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// Address of the pod, which is that of its node or of its data network.
    pub ip: Option<String>,
    /// Name by which the other members know the pod.
    pub hostname: Option<String>,
}

enumeration! {
    /// How a daemon is, in the words of contrail-status.
    pub enum DaemonWord {
        /// It works.
        Active = "active",
        /// Another one of its kind works, and it waits until that ends.
        Backup = "backup",
        /// It runs and does not work.
        Initializing = "initializing",
        /// It does not answer.
        Timeout = "timeout",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

/// A daemon that is not active.
#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DaemonState {
    /// Its pod.
    pub pod: String,
    /// The node of that.
    pub node: String,
    /// Its container.
    pub container: String,
    /// How it is.
    pub state: DaemonWord,
    /// What it says of that.
    pub message: Option<String>,
}

/// Sessions of a protocol.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionCounts {
    /// How many are up.
    pub up: Option<i32>,
    /// How many there are to be.
    pub all: Option<i32>,
}

/// What the daemons of a service say of themselves: their pages of introspect, which the operator asks for every half a
/// minute. Not in tf-operator.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IntrospectStatus {
    /// How many work, or wait for another of their kind to end.
    pub functional: Option<i32>,
    /// How many were asked: those whose containers run.
    pub daemons: Option<i32>,
    /// Of how many of them it is not known whether they work.
    pub unknown: Option<i32>,
    /// Those that are anything but active, ten at most; those that wait for another to end are the last of them.
    pub not_active: Option<Vec<DaemonState>>,
    /// Of Vrouter: agents that have a session with a control node, of all.
    pub xmpp: Option<SessionCounts>,
    /// Of Vrouter: the sessions of all agents with control nodes.
    pub xmpp_sessions: Option<SessionCounts>,
    /// Of Control: the BGP sessions of all its nodes. One between two of these is counted at either end.
    pub bgp: Option<SessionCounts>,
}

/// A workload of tf-operator that the operator leaves as it is until something of it is to change. Not in tf-operator.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TakenOver {
    /// UID of the StatefulSet or DaemonSet.
    pub uid: String,
    /// Its generation when the operator first saw it.
    pub generation: Option<i64>,
    /// Digest of what the operator would make of it: when that is another one its pods are recreated.
    pub would_be: Option<String>,
    /// Since when something around it is different, such as its nodes: its pods are recreated when that lasts for a minute. RFC 3339.
    pub differs_since: Option<String>,
}

/// The status fields of every component except Vrouter.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = conditions))]
#[serde(rename_all = "camelCase")]
pub struct CommonStatus {
    /// Whether the service can do its work: enough of its pods are ready.
    pub active: Option<bool>,
    /// Whether fewer pods are ready than wanted.
    pub degraded: Option<bool>,
    /// The pods of the service by name.
    pub nodes: Option<BTreeMap<String, NodeInfo>>,
    /// Whether the configuration changed in the last pass. Written by tf-operator only.
    pub config_changed: Option<bool>,
    /// The state in detail; see the condition Ready first.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// What its daemons say of themselves.
    pub introspect: Option<IntrospectStatus>,
    /// When the first of its certificates expires, RFC 3339. They are renewed long before. Not in tf-operator.
    pub certificates_expire: Option<String>,
    /// The workload of tf-operator that stays as it is.
    pub taken_over: Option<TakenOver>,
}

#[cfg(feature = "kube")]
fn condition(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).set(
        "lastTransitionTime",
        "format",
        serde_json::json!("date-time"),
    );
}

/// Makes the field `conditions` a map keyed by type, so that several writers can each own theirs.
#[cfg(feature = "kube")]
pub(crate) fn conditions(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .set("conditions", "x-kubernetes-list-type", serde_json::json!("map"))
        .set("conditions", "x-kubernetes-list-map-keys", serde_json::json!(["type"]));
}

/// The status of a condition, as Kubernetes has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// It cannot be found out.
    Unknown,
}

impl ConditionStatus {
    /// As it is written.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The object is as its spec wants it.
pub const READY: &str = "Ready";
/// It is on its way there; waiting alone may help. Only present when True.
pub const RECONCILING: &str = "Reconciling";
/// It will not get there by waiting. Only present when True.
pub const STALLED: &str = "Stalled";
/// Nothing that the object owns is written, as a user wants it.
pub const PAUSED: &str = "Paused";
/// The reason of an object that is ready without pods, as a user wants it.
pub const STOPPED: &str = "Stopped";

/// Most characters of a message, far more than we write: what is in it of others must not make the status too large to store.
const LONGEST_MESSAGE: usize = 4096;

/// What one writer has to say in `status.conditions`, by the rules of kstatus.
///
/// The result has only what was set since: it is meant for server-side apply, by which a condition
/// that its writer no longer sets goes, and those of other writers stay.
#[derive(Clone, Debug)]
pub struct Conditions<'a> {
    before: &'a [Condition],
    set: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    /// None yet; `before` are those that the object has.
    #[must_use]
    pub fn after(before: &'a [Condition]) -> Self {
        Self { before, set: Vec::new() }
    }

    /// Sets a condition. Its transition time is `now` (RFC 3339), unless it had the same status
    /// before: then it keeps the time of that.
    pub fn set(
        &mut self,
        type_: &str,
        status: ConditionStatus,
        reason: &str,
        message: &str,
        generation: Option<i64>,
        now: &str,
    ) {
        let status = status.label();
        let mut before = self.before.iter();
        let same = before.find(|before| before.type_ == type_ && before.status == status);
        let since = same.and_then(|before| before.last_transition_time.as_deref()).unwrap_or(now);
        self.set.retain(|condition| condition.type_ != type_);
        self.set.push(Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.chars().take(LONGEST_MESSAGE).collect()),
            last_transition_time: Some(since.to_owned()),
            observed_generation: generation,
        });
    }

    /// The object is as its spec wants it: Ready is True, and neither Reconciling nor Stalled is
    /// there.
    pub fn ready(&mut self, reason: &str, message: &str, generation: Option<i64>, now: &str) {
        self.set(READY, ConditionStatus::True, reason, message, generation, now);
        self.set.retain(|condition| ![RECONCILING, STALLED].contains(&condition.type_.as_str()));
    }

    /// The object is on its way: Ready is False, Reconciling True.
    pub fn reconciling(&mut self, reason: &str, message: &str, generation: Option<i64>, now: &str) {
        self.set(READY, ConditionStatus::False, reason, message, generation, now);
        self.set(RECONCILING, ConditionStatus::True, reason, message, generation, now);
        self.set.retain(|condition| condition.type_ != STALLED);
    }

    /// The object waits for a person: Ready is False, Stalled True.
    pub fn stalled(&mut self, reason: &str, message: &str, generation: Option<i64>, now: &str) {
        self.set(READY, ConditionStatus::False, reason, message, generation, now);
        self.set(STALLED, ConditionStatus::True, reason, message, generation, now);
        self.set.retain(|condition| condition.type_ != RECONCILING);
    }

    /// What was set under that type.
    #[must_use]
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.set.iter().find(|condition| condition.type_ == type_)
    }

    /// All that were set, in the order in which they were.
    #[must_use]
    pub fn into_vec(self) -> Vec<Condition> {
        self.set
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, ConditionStatus, Conditions, READY};

    const EARLIER: &str = "2026-01-01T00:00:00Z";
    const NOW: &str = "2026-01-02T00:00:00Z";

    fn condition(type_: &str, status: &str, time: &str) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(time.to_owned()),
            ..Condition::default()
        }
    }

    fn written(conditions: Conditions<'_>) -> Vec<(String, String, String)> {
        let all = conditions.into_vec().into_iter();
        all.map(|one| (one.type_, one.status, one.last_transition_time.unwrap_or_default()))
            .collect()
    }

    fn triple(type_: &str, status: &str, time: &str) -> (String, String, String) {
        (type_.to_owned(), status.to_owned(), time.to_owned())
    }

    #[test]
    fn a_message_is_cut_before_it_makes_the_status_too_large() {
        let mut conditions = Conditions::after(&[]);
        let said = "é".repeat(1 << 20);
        conditions.reconciling("Waiting", &said, Some(3), NOW);
        let all = conditions.into_vec();
        let lengths: Vec<_> = all.iter().map(|one| one.message.as_ref().unwrap().len()).collect();
        assert_eq!(lengths, [8192, 8192]);
    }

    #[test]
    fn the_transition_time_stays_until_the_status_changes() {
        for (status, expected) in [("True", EARLIER), ("False", NOW), ("Unknown", NOW)] {
            let before = [condition(READY, status, EARLIER)];
            let mut conditions = Conditions::after(&before);
            conditions.set(READY, ConditionStatus::True, "Running", "all run", Some(3), NOW);
            let all = conditions.into_vec();
            let one = all.first().unwrap();
            assert_eq!(one.last_transition_time.as_deref(), Some(expected), "{status}");
            assert_eq!(
                (one.reason.as_deref(), one.observed_generation),
                (Some("Running"), Some(3))
            );
        }
    }

    #[test]
    fn reconciling_and_stalled_are_there_only_when_true() {
        let before = [
            condition("Ready", "False", EARLIER),
            condition("Reconciling", "True", EARLIER),
            condition("OfAnotherWriter", "True", EARLIER),
        ];
        let mut conditions = Conditions::after(&before);
        conditions.reconciling("Waiting", "for pods", None, NOW);
        let waiting = [triple("Ready", "False", EARLIER), triple("Reconciling", "True", EARLIER)];
        assert_eq!(written(conditions.clone()), waiting);

        conditions.stalled("BadImage", "no such image", None, NOW);
        let stuck = [triple("Ready", "False", EARLIER), triple("Stalled", "True", NOW)];
        assert_eq!(written(conditions.clone()), stuck);

        conditions.ready("Running", "all run", None, NOW);
        assert_eq!(written(conditions), [triple("Ready", "True", NOW)]);
    }

    #[test]
    fn the_last_word_on_a_condition_counts() {
        let mut conditions = Conditions::after(&[]);
        conditions.set("Waiting", ConditionStatus::True, "A", "a", None, NOW);
        conditions.set("Waiting", ConditionStatus::Unknown, "B", "b", None, NOW);
        assert_eq!(written(conditions), [triple("Waiting", "Unknown", NOW)]);
    }
}
