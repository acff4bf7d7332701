//! Upgrades as they are shown and changed, each from the few lines of its status that matter.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

mod changes;
mod texts;

use opensdn_crds::upgrade::Upgrade;
use serde_json::{Value, json};

/// An Upgrade with this spec and this status.
fn upgrade(spec: Value, status: Value) -> Upgrade {
    let mut spec_with_manager = json!({"manager": "cluster1", "version": "R25.1"});
    let more = spec.as_object().cloned().unwrap_or_default();
    spec_with_manager.as_object_mut().unwrap().extend(more);
    serde_json::from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "to-r25-1", "namespace": "tf", "uid": "1", "generation": 2,
            "creationTimestamp": "2026-11-25T08:00:00Z"},
        "spec": spec_with_manager, "status": status}))
    .unwrap()
}

/// The status of waves and steps as `wave state` and `step wave state`.
fn status(phase: &str, waves: &[&str], steps: &[&str]) -> Value {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let no_way_back = |wave: &str| {
        let mut all = waves.iter().map(|text| words(text));
        let is_it = all.any(|words| words[0] == wave && words.len() > 2);
        is_it.then_some("Cassandra/c: earlier ones do not read it")
    };
    let all = waves.iter().map(|text| {
        let words = words(text);
        json!({"name": words[0], "state": words[1], "noWayBack": no_way_back(&words[0])})
    });
    let steps = steps.iter().map(|text| {
        let words = words(text);
        let images = json!([{"container": "api", "from": "x/api:R24.1", "to": "x/api:R25.1"}]);
        json!({"id": words[0], "wave": words[1], "state": words[2], "images": images,
            "attempts": 1, "ran": true, "noWayBack": no_way_back(&words[1])})
    });
    json!({"phase": phase, "observedGeneration": 2, "waves": all.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>()})
}
