//! What the status of a Manager says (pure): a row for each service with what it waits for, and all of them
//! together. The fields of tf-operator are filled too.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use opensdn_crds::component::{Component, Count};
use opensdn_crds::manager::{ManagerStatus, ServiceState};
use opensdn_crds::status::{
    CommonStatus, Condition, ConditionStatus, Conditions, IntrospectStatus, PAUSED, READY, STALLED,
};
use opensdn_upgrade::images;
use serde_json::{Map, Value, json};

use crate::introspect::bounded;
use crate::report::{AVAILABLE, DEGRADED};
use crate::services::Service;

/// Longest message of a service, in bytes.
const MOST_MESSAGE: usize = 1024;
/// As many nodes as the schema has room for.
const MOST_NODES: usize = 1024;

/// How a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its kind.
    pub facts: &'static Component,
    /// Its name.
    pub name: String,
    /// Whether it is as its object says.
    pub is_ready: bool,
    /// Whether it can do its work.
    pub is_active: bool,
    /// Whether only a person can help.
    pub is_stalled: bool,
    /// One word, for programs.
    pub reason: String,
    /// How it is, or what it waits for, or what to do.
    pub message: String,
    /// The nodes on which it runs.
    pub nodes: Vec<String>,
    /// The tags of its images.
    pub versions: Vec<String>,
    /// What its daemons say of themselves.
    pub introspect: Option<IntrospectStatus>,
}

impl Row {
    /// A service with which something is wrong that only a person can put right.
    #[must_use]
    pub fn stalled(facts: &'static Component, name: &str, reason: &str, message: String) -> Self {
        Self {
            facts,
            name: name.to_owned(),
            is_ready: false,
            is_active: false,
            is_stalled: true,
            reason: reason.to_owned(),
            message,
            nodes: Vec::new(),
            versions: Vec::new(),
            introspect: None,
        }
    }

    /// A service by what its object says.
    #[must_use]
    pub fn of(service: &Service, object: Option<&DynamicObject>) -> Self {
        let Service { facts, name, spec, .. } = service;
        let status = object.and_then(|object| object.data.get("status").cloned());
        let status: CommonStatus =
            status.and_then(|status| serde_json::from_value(status).ok()).unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let condition = |type_: &str| conditions.iter().find(|one| one.type_ == type_);
        let is_true = |type_: &str| condition(type_).is_some_and(|one| one.status == "True");
        let generation = object.and_then(|object| object.metadata.generation);
        // What is said of an earlier spec is not said of this one.
        let is_seen = generation.is_some() && status.observed_generation == generation;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (reason, mut message) = match condition(READY) {
            Some(Condition { reason, message, .. }) if is_seen => (text(reason), text(message)),
            _ => ("NotSeen".to_owned(), "its object was written; nothing is known yet".to_owned()),
        };
        let nodes: BTreeSet<String> =
            status.nodes.into_iter().flatten().filter_map(|(_, node)| node.hostname).collect();
        // Anyone who may write the status of a component can write much.
        message.truncate(message.floor_char_boundary(MOST_MESSAGE));
        Self {
            facts,
            name: name.clone(),
            is_ready: is_seen && is_true(READY),
            is_active: status.active.unwrap_or_default(),
            is_stalled: is_seen && is_true(STALLED),
            reason,
            message,
            nodes: nodes.into_iter().take(MOST_NODES).collect(),
            versions: versions(spec),
            introspect: status.introspect.map(bounded),
        }
    }

    fn title(&self) -> String {
        format!("{} {}", self.facts.kind, self.name)
    }

    fn state(&self) -> ServiceState {
        ServiceState {
            kind: self.facts.kind.to_owned(),
            name: self.name.clone(),
            ready: Some(self.is_ready),
            reason: Some(self.reason.clone()),
            message: Some(self.message.clone()),
            nodes: Some(self.nodes.clone()).filter(|nodes| !nodes.is_empty()),
            versions: Some(self.versions.clone()).filter(|versions| !versions.is_empty()),
            introspect: self.introspect.clone(),
        }
    }
}

/// The tags, or digests, of the images, each once.
fn versions(spec: &Value) -> Vec<String> {
    let containers = spec.pointer("/serviceConfiguration/containers").and_then(Value::as_array);
    let images = containers.into_iter().flatten().filter_map(|one| one.get("image")?.as_str());
    let tags = images.filter_map(images::digest_or_tag);
    let tags: BTreeSet<String> = tags.map(str::to_owned).collect();
    tags.into_iter().collect()
}

/// The status of a Manager. `wrong` is what is wrong with the Manager itself, `now` RFC 3339.
#[must_use]
pub fn status(
    manager: &DynamicObject,
    rows: &[Row],
    wrong: Option<&str>,
    paused: Option<&str>,
    now: &str,
) -> ManagerStatus {
    let before = before(manager);
    let earlier = before.conditions.unwrap_or_default();
    let mut conditions = Conditions::after(&earlier);
    let generation = manager.metadata.generation;
    let mut set = |type_: &str, is: bool, reason: &str, message: &str| {
        let status = if is { ConditionStatus::True } else { ConditionStatus::False };
        conditions.set(type_, status, reason, message, generation, now);
    };
    let counts = |is: fn(&Row) -> bool, word: &str| {
        let number = rows.iter().filter(|row| is(row)).count();
        (number == rows.len(), format!("{number} of {} services {word}", rows.len()))
    };
    let (active, text) = counts(|row| row.is_active, "active");
    set(AVAILABLE, active, if active { "AllActive" } else { "NotActive" }, &text);
    let (ready, text) = counts(|row| row.is_ready, "ready");
    let text = match worst(rows) {
        Some(row) => format!("{text}; {}: {}", row.title(), row.message),
        None => text,
    };
    if !ready {
        set(DEGRADED, true, "NotReady", &text);
    }
    if let Some(why) = paused {
        set(PAUSED, true, "Annotation", why);
    }
    let stalled = worst(rows).filter(|row| row.is_stalled);
    match (wrong, stalled) {
        (Some(wrong), _) => conditions.stalled("UnreadableSpec", wrong, generation, now),
        (None, Some(row)) => {
            let message = format!("{}: {}", row.title(), row.message);
            conditions.stalled(&row.reason, &message, generation, now);
        }
        (None, None) if ready => conditions.ready("ServicesReady", &text, generation, now),
        (None, None) => conditions.reconciling("ServicesNotReady", &text, generation, now),
    }
    ManagerStatus {
        services: Some(rows.iter().map(Row::state).collect()),
        conditions: Some(conditions.into_vec()),
        observed_generation: generation,
        ..as_tf_operator(rows)
    }
}

/// The one to be looked at first: what nothing else can wait for.
fn worst(rows: &[Row]) -> Option<&Row> {
    let waiting = rows.iter().filter(|row| !row.is_ready);
    waiting.min_by_key(|row| (!row.is_stalled, depth(row.facts)))
}

/// How many kinds stand below it, one upon the other.
fn depth(facts: &Component) -> usize {
    let needs = facts.needs.iter().filter_map(|need| Component::of_kind(need.kind));
    needs.map(|need| depth(need) + 1).max().unwrap_or(0)
}

/// What tf-operator says of each service, under the keys of the spec.
fn as_tf_operator(rows: &[Row]) -> ManagerStatus {
    let mut status = Map::new();
    for row in rows {
        let state = json!({"name": row.name, "active": row.is_active});
        match row.facts.count {
            Count::One => drop(status.insert(row.facts.key.to_owned(), state)),
            Count::Many => {
                let list = status.entry(row.facts.key).or_insert_with(|| json!([]));
                if let Value::Array(list) = list {
                    list.push(state);
                }
            }
        }
    }
    serde_json::from_value(Value::Object(status)).unwrap_or_default()
}

/// What of a stored status is ours.
#[must_use]
pub fn before(manager: &DynamicObject) -> ManagerStatus {
    let status = manager.data.get("status").cloned().unwrap_or_default();
    let status: ManagerStatus = serde_json::from_value(status).unwrap_or_default();
    ManagerStatus { crd_status: None, ziu_state: None, ..status }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use opensdn_crds::component::COMPONENTS;

    use super::*;

    fn facts(kind: &str) -> &'static Component {
        Component::of_kind(kind).unwrap()
    }

    fn row(kind: &str, is_ready: bool, message: &str) -> Row {
        Row {
            is_ready,
            is_active: is_ready,
            is_stalled: false,
            ..Row::stalled(facts(kind), "a", "Reason", message.to_owned())
        }
    }

    fn manager() -> DynamicObject {
        serde_json::from_value(
            json!({"metadata": {"name": "m", "generation": 3}, "status": {"ziuState": -1}}),
        )
        .unwrap()
    }

    fn said(rows: &[Row]) -> (String, String, String) {
        let status = status(&manager(), rows, None, None, "now");
        let conditions = status.conditions.unwrap();
        let ready = conditions.iter().find(|one| one.type_ == READY).unwrap();
        let stalled = conditions.iter().any(|one| one.type_ == STALLED);
        let text = |text: &Option<String>| text.clone().unwrap();
        (format!("{} {stalled}", ready.status), text(&ready.reason), text(&ready.message))
    }

    #[test]
    fn all_ready_is_ready_and_tf_operators_fields_have_their_forms() {
        let rows = [row("Redis", true, "1 of 1"), row("Zookeeper", true, "3 of 3")];
        assert_eq!(
            said(&rows),
            ("True false".into(), "ServicesReady".into(), "2 of 2 services ready".into())
        );
        let status = json!(status(&manager(), &rows, None, None, "now"));
        assert_eq!(status["redis"], json!([{"name": "a", "active": true}]));
        assert_eq!(status["zookeeper"], json!({"name": "a", "active": true}));
        assert_eq!(status["services"][0]["kind"], "Redis");
        assert!(status.get("ziuState").is_none(), "it is tf-operator's");
        assert_eq!(said(&[]).0, "True false", "of nothing nothing is missing");
    }

    #[test]
    fn what_others_wait_for_is_named_first_and_what_needs_a_person_before_all() {
        let rows = [row("Config", false, "waits"), row("Zookeeper", false, "1 of 3 pods ready")];
        let (ready, reason, message) = said(&rows);
        assert_eq!((&*ready, &*reason), ("False false", "ServicesNotReady"));
        assert_eq!(message, "0 of 2 services ready; Zookeeper a: 1 of 3 pods ready");

        let image = Row { is_stalled: true, ..row("Webui", false, "no image for webuiweb") };
        let (ready, reason, message) = said(&[rows[1].clone(), image]);
        assert_eq!((&*ready, &*reason), ("False true", "Reason"));
        assert_eq!(message, "Webui a: no image for webuiweb");
    }

    #[test]
    fn what_is_said_of_an_earlier_spec_counts_for_nothing() {
        let service = Service {
            facts: facts("Redis"),
            name: "r".into(),
            labels: BTreeMap::default(),
            spec: json!({"serviceConfiguration": {"containers": [
                {"image": "registry.example.com:5000/redis:R24.1"}, {"image": "a/b@sha256:1"}, {"image": "c"}]}}),
        };
        let object = |seen: i64| {
            let condition = json!({"type": "Ready", "status": "True", "reason": "PodsReady"});
            let nodes = json!({"p0": {"hostname": "n1"}, "p1": {"hostname": "n0"}});
            serde_json::from_value::<DynamicObject>(json!({"metadata": {"name": "r", "generation": 2},
                "status": {"active": true, "observedGeneration": seen, "conditions": [condition], "nodes": nodes}}))
            .unwrap()
        };
        let new = Row::of(&service, Some(&object(2)));
        assert_eq!((new.is_ready, &*new.reason), (true, "PodsReady"));
        assert_eq!(
            (new.nodes, new.versions),
            (vec!["n0".into(), "n1".into()], vec!["R24.1".into(), "sha256:1".into()])
        );
        let old = Row::of(&service, Some(&object(1)));
        assert_eq!((old.is_ready, old.is_active, &*old.reason), (false, true, "NotSeen"));
        assert!(!Row::of(&service, None).is_ready);
    }

    #[test]
    fn what_a_user_writes_into_the_status_of_a_service_stays_small_in_the_managers() {
        let service = Service {
            facts: facts("Redis"),
            name: "r".into(),
            labels: BTreeMap::default(),
            spec: json!({}),
        };
        let nodes: Map<String, Value> = (0..3000)
            .map(|number| (format!("p{number}"), json!({"hostname": format!("n{number}")})))
            .collect();
        let condition = json!({"type": "Ready", "status": "False", "message": "ä".repeat(100_000)});
        let object = json!({"metadata": {"name": "r", "generation": 1},
            "status": {"observedGeneration": 1, "conditions": [condition], "nodes": nodes}});
        let row = Row::of(&service, serde_json::from_value(object).ok().as_ref());
        assert_eq!((row.message.len(), row.nodes.len()), (MOST_MESSAGE, MOST_NODES));
    }

    #[test]
    fn every_kind_has_its_place_below_what_needs_it() {
        for component in COMPONENTS {
            let below =
                |need: &opensdn_crds::component::Need| depth(facts(need.kind)) < depth(component);
            assert!(component.needs.iter().all(below), "{}", component.kind);
        }
    }
}
