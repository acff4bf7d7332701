//! The Event about what the leader writes into a status, where that is news: a policy that does not run any more, or
//! does. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use kube::{Resource as _, ResourceExt as _};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_crds::status::{Condition, READY};
use serde_json::Value;

use super::super::status::is_progress;

/// What this leader told last of each policy: the reason of its condition. What former leaders told is in the object,
/// and so is what was told before this one led.
#[derive(Debug, Default)]
pub(super) struct Told {
    reasons: BTreeMap<String, String>,
}

impl Told {
    /// Forgets everything: another replica may tell something from now on.
    pub(super) fn lead_ended(&mut self) {
        self.reasons.clear();
    }

    /// Forgets policies that are gone.
    pub(super) fn forget(&mut self, exists: impl Fn(&str) -> bool) {
        self.reasons.retain(|name, _| exists(name));
    }

    /// The Event about this status, if it is news: a loss, or the end of one. None while waiting alone may help, as where a
    /// replica starts.
    pub(super) fn event(&mut self, object: &AdmissionPolicy, status: &Value) -> Option<Event> {
        let after: Vec<Condition> =
            serde_json::from_value(status.get("conditions")?.clone()).ok()?;
        let after = after.iter().find(|one| one.type_ == READY)?;
        let (type_, reason) = match said(after) {
            ("True", reason) => (EventType::Normal, reason),
            ("False", reason) if !is_progress(reason) => (EventType::Warning, reason),
            _ => return None,
        };
        let name = object.name_any();
        // What a former leader has told is in the object.
        let before = self.reasons.get(&name).map(String::as_str).or_else(|| loss(object));
        let is_news = match type_ {
            EventType::Normal => before.is_some_and(|before| before != reason),
            EventType::Warning => before != Some(reason),
        };
        self.reasons.insert(name, reason.to_owned());
        is_news.then(|| Event {
            type_,
            reason: reason.to_owned(),
            note: after.message.clone(),
            action: "Load".to_owned(),
            secondary: None,
        })
    }
}

/// Why the policy does not run, as the object says.
fn loss(object: &AdmissionPolicy) -> Option<&str> {
    let mut conditions = object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.find(|one| one.type_ == READY)?;
    let reason = ready.reason.as_deref().unwrap_or_default();
    (ready.status == "False" && !is_progress(reason)).then_some(reason)
}

fn said(condition: &Condition) -> (&str, &str) {
    (&condition.status, condition.reason.as_deref().unwrap_or_default())
}

pub(super) fn about(object: &AdmissionPolicy) -> ObjectReference {
    ObjectReference { name: Some(object.name_any()), ..object.object_ref(&()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(status: &str, reason: &str) -> Value {
        json!({"type": READY, "status": status, "reason": reason, "message": format!("about {reason}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    /// The policy as it is stored with this condition.
    fn stored(before: Option<(&str, &str)>) -> AdmissionPolicy {
        let conditions: Vec<Value> =
            before.into_iter().map(|(status, reason)| condition(status, reason)).collect();
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy", "metadata": {"name": "p"},
            "spec": {"module": {"builtIn": "x"}}, "status": {"conditions": conditions}});
        serde_json::from_value(object).unwrap()
    }

    /// What is told of these conditions one after the other, by a leader that has found the first.
    fn told(found: Option<(&str, &str)>, after: &[(&str, &str)]) -> Vec<(bool, String)> {
        let (mut told, object) = (Told::default(), stored(found));
        assert_eq!(about(&object).name.as_deref(), Some("p"));
        let mut events = Vec::new();
        for (status, reason) in after {
            let status = json!({"conditions": [condition(status, reason)]});
            if let Some(event) = told.event(&object, &status) {
                assert_eq!(event.note, Some(format!("about {}", event.reason)));
                events.push((event.type_ == EventType::Warning, event.reason));
            }
        }
        events
    }

    #[test]
    fn who_leads_again_tells_what_is_news_since_another_has_told() {
        let (runs, full) = (("True", "Serving"), ("False", "CacheFull"));
        let mut leaders = [Told::default(), Told::default()];
        let mut object = stored(Some(runs));
        let mut tells = |leader: usize, after: (&str, &str)| {
            let conditions = json!({"conditions": [condition(after.0, after.1)]});
            let event = leaders[leader].event(&object, &conditions);
            object = stored(Some(after));
            // The Lease goes to the other one after each.
            leaders[leader].lead_ended();
            event.map(|event| event.reason)
        };
        for _ in 0..2 {
            assert_eq!(tells(0, full).as_deref(), Some("CacheFull"), "lost");
            assert_eq!(tells(1, full), None, "the other has told it");
            assert_eq!(tells(1, runs).as_deref(), Some("Serving"), "and its end");
            assert_eq!(tells(0, runs), None);
        }
        assert_eq!(tells(1, full).as_deref(), Some("CacheFull"));
        assert_eq!(tells(0, runs).as_deref(), Some("Serving"));
    }

    #[test]
    fn that_a_policy_is_lost_and_that_it_runs_is_told_once() {
        let (runs, full) = (("True", "Serving"), ("False", "CacheFull"));
        let (gone, loads, outdated) =
            (("False", "SourceUnreachable"), ("False", "Loading"), ("Unknown", "Outdated"));
        let warning = |reason: &str| (true, reason.to_owned());
        let normal = || (false, "Serving".to_owned());
        let both = vec![warning("CacheFull"), normal()];
        assert_eq!(told(Some(runs), &[full, full, loads, full, runs, runs, loads, runs]), both);
        assert_eq!(
            told(None, &[loads, runs, loads, runs, outdated, runs]),
            [],
            "replicas that start are no news"
        );
        assert_eq!(told(None, &[full, runs]), both, "it was never there");
        assert_eq!(told(Some(full), &[full, loads]), [], "another leader has told it");
        assert_eq!(told(Some(full), &[loads, runs]), [normal()]);
        assert_eq!(told(Some(full), &[gone]), [warning("SourceUnreachable")]);
    }
}
