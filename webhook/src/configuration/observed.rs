//! One of the two webhook configurations: as the API server has it, by its watch, and what this process
//! has made of it.

use std::time::Duration;

use kube::Client;
use opensdn_policy_host::Step;
use opensdn_runtime::watch::{Event, Parts, SingleObject, WatchSpec, watch_parts};
use serde_json::Value;
use tokio::sync::mpsc;

use super::object;
use super::restraint::Restraint;

/// How often a quiet watch has to be answered.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A configuration as the API server has it.
#[derive(Debug)]
enum Observed {
    /// It has not been read yet.
    Unknown,
    /// There is none and, as far as this process knows, never was.
    Absent,
    /// There is none any more.
    Deleted,
    /// This one.
    Present(Value),
}

/// Why a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// What it should say is another.
    Change,
    /// There never was one, as far as this process knows.
    Absent,
    /// It was deleted.
    Deleted,
    /// Another client changed it.
    Tampered,
}

/// The configuration of one step.
pub(super) struct Configuration {
    pub(super) step: Step,
    observed: Observed,
    events: mpsc::Receiver<Event>,
    watched: SingleObject,
    /// What it should have said when it last said so, while this process leads.
    accepted: Option<Value>,
    /// How often it has been put right.
    pub(super) restraint: Restraint,
}

impl Configuration {
    /// Starts to watch it.
    pub(super) fn watch(client: Client, step: Step) -> Self {
        let spec = WatchSpec {
            path: format!("/apis/admissionregistration.k8s.io/v1/{}", object::plural(step)),
            name: Some(object::NAME.to_owned()),
            label_selector: String::new(),
            metadata_only: false,
            heartbeat: HEARTBEAT,
        };
        // Who has written what says whether it was tampered with.
        Self::of(step, watch_parts(client, spec, Parts::WithManagers))
    }

    fn of(step: Step, events: mpsc::Receiver<Event>) -> Self {
        let watched = SingleObject::default();
        let restraint = Restraint::default();
        Self { step, observed: Observed::Unknown, events, watched, accepted: None, restraint }
    }

    /// What its watch says next.
    pub(super) async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Takes what its watch says.
    pub(super) fn observe(&mut self, event: Event) {
        let is_known = matches!(&event, Event::Apply(object) if self.is_newer_than(object));
        match self.watched.read(event) {
            // What this process has written since is newer than what the watch still has to report.
            Some(Some(_)) if is_known => {}
            Some(Some(object)) => self.observed = Observed::Present(object),
            Some(None) => self.remove(),
            None => {}
        }
    }

    /// There is none, says the watch.
    fn remove(&mut self) {
        match self.observed {
            Observed::Unknown => self.observed = Observed::Absent,
            Observed::Absent | Observed::Deleted => {}
            Observed::Present(_) => {
                tracing::error!(
                    kind = object::kind(self.step),
                    "lost the webhook configuration: it was deleted, and requests pass without a \
                     review until it is restored"
                );
                self.observed = Observed::Deleted;
            }
        }
    }

    fn is_newer_than(&self, object: &Value) -> bool {
        let version = |object: &Value| -> Option<u64> {
            object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
        };
        self.object().is_some_and(|observed| version(object) < version(observed))
    }

    /// The object, if there is one.
    pub(super) fn object(&self) -> Option<&Value> {
        match &self.observed {
            Observed::Present(object) => Some(object),
            Observed::Unknown | Observed::Absent | Observed::Deleted => None,
        }
    }

    /// Whether it has been read.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.observed, Observed::Unknown)
    }

    /// Why it is to be written; none, if it is as it should be. A user who changes our policies does not
    /// change what was accepted; one who changes the configuration does. A process that leads only since a
    /// moment has accepted nothing: it judges by what the configuration carries.
    pub(super) fn cause(&self, desired: &Value) -> Option<Cause> {
        let object = match &self.observed {
            Observed::Unknown | Observed::Absent => return Some(Cause::Absent),
            Observed::Deleted => return Some(Cause::Deleted),
            Observed::Present(object) => object,
        };
        if object::is_as(object, desired) {
            return None;
        }
        let is_ours = match &self.accepted {
            Some(accepted) => object::is_as(object, accepted),
            None => !object::is_changed_by_others(object),
        };
        Some(if is_ours { Cause::Change } else { Cause::Tampered })
    }

    /// What it said that was right: what this process has accepted, else what it says now.
    pub(super) fn known(&self) -> Option<&Value> {
        self.accepted.as_ref().or(self.object())
    }

    /// Whether this process knows what it said.
    pub(super) fn has_accepted(&self) -> bool {
        self.accepted.is_some()
    }

    /// It says what it should.
    pub(super) fn accept(&mut self, desired: Value) {
        self.accepted = Some(desired);
    }

    /// Another process decides what it says.
    pub(super) fn leave_to_others(&mut self) {
        self.accepted = None;
    }

    /// This process has written it.
    pub(super) fn written(&mut self, stored: Value, desired: Value) {
        self.observed = Observed::Present(stored);
        self.accept(desired);
    }
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::watch::Listed;
    use serde_json::json;

    use super::*;

    fn desired(rule: &str) -> Value {
        let entries = json!([{"name": "ours.validate.opensdn.io", "rules": [rule]}]);
        object::signed(json!({"metadata": {}, "webhooks": entries}))
    }

    fn observed(object: Value) -> Configuration {
        let mut configuration = Configuration::of(Step::Validate, mpsc::channel(1).1);
        configuration.observe(Event::Apply(object));
        configuration
    }

    #[test]
    fn what_is_as_it_should_be_is_not_written() {
        assert_eq!(observed(desired("a")).cause(&desired("a")), None);
        assert_eq!(observed(desired("a")).cause(&desired("b")), Some(Cause::Change));
    }

    #[test]
    fn a_change_by_somebody_else_is_one_also_for_a_process_that_leads_only_since_then() {
        let mut changed = desired("a");
        changed["webhooks"][0]["matchConditions"] = json!([{"expression": "false"}]);
        let mut emptied = desired("a");
        emptied["webhooks"] = json!([]);
        let mut signed_again = object::signed(changed.clone());
        let fields = json!({"f:webhooks": {}});
        let managers = json!([{"manager": "kubectl-edit", "fieldsV1": fields}]);
        signed_again["metadata"]["managedFields"] = managers;
        for object in [changed, emptied, signed_again] {
            let mut configuration = observed(object.clone());
            for wanted in ["a", "b"] {
                let cause = configuration.cause(&desired(wanted));
                assert_eq!(cause, Some(Cause::Tampered), "{wanted}: {object}");
            }
            configuration.accept(desired("a"));
            assert_eq!(configuration.cause(&desired("a")), Some(Cause::Tampered), "{object}");
        }
    }

    #[test]
    fn what_went_is_not_what_never_was() {
        let mut configuration = Configuration::of(Step::Validate, mpsc::channel(1).1);
        assert!(!configuration.is_known());
        configuration.observe(Event::Init);
        configuration.observe(Event::InitDone(Listed::default()));
        assert_eq!(configuration.cause(&desired("a")), Some(Cause::Absent));
        configuration.observe(Event::Apply(desired("a")));
        configuration.observe(Event::Delete(desired("a")));
        assert_eq!(configuration.cause(&desired("a")), Some(Cause::Deleted));
    }
}
