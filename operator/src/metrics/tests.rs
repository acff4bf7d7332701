//! Which series there are.

use serde_json::json;

use super::*;

fn object(value: serde_json::Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn lines(registry: &Registry, name: &str) -> Vec<String> {
    let text = opensdn_runtime::metrics::encode(registry).unwrap();
    let begin = format!("{name}{{");
    text.lines().filter(|line| line.starts_with(&begin)).map(str::to_owned).collect()
}

#[test]
fn a_service_that_is_gone_has_no_series_any_more() {
    let (metrics, registry) = Metrics::new();
    let manager = object(json!({"metadata": {"namespace": "tf", "name": "m"}}));
    let is = ServiceIs { ready: true, paused: false };
    let ready = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), is)).collect();
    for (services, count) in [(&["a", "b"][..], 2), (&["b"], 1), (&[], 0)] {
        metrics.services(&manager, ready(services));
        for name in ["opensdn_service_ready", "opensdn_paused"] {
            assert_eq!(lines(&registry, name).len(), count, "{name}");
        }
    }
}

#[test]
fn a_margin_has_the_labels_of_its_service_and_may_be_below_zero() {
    let (metrics, registry) = Metrics::new();
    let manager = object(json!({"metadata": {"namespace": "tf", "name": "m"}}));
    let zookeeper = object(json!({"metadata": {"namespace": "tf", "name": "z", "uid": "1"}}));
    metrics.margin(&zookeeper, Some(&manager), "Zookeeper", Some(-1));
    let series = r#"opensdn_quorum_margin{manager="tf/m",service="Zookeeper/z"} -1"#;
    assert_eq!(lines(&registry, "opensdn_quorum_margin"), [series]);
    metrics.margin(&zookeeper, Some(&manager), "Zookeeper", None);
    assert!(lines(&registry, "opensdn_quorum_margin").is_empty());
}

#[test]
fn an_object_has_one_margin_whatever_its_owners_were_and_another_of_its_name_keeps_its_own() {
    let (metrics, registry) = Metrics::new();
    let owned_by = |owner: &str, uid: &str| {
        let owner = json!({"apiVersion": "x.y/v1", "kind": "Manager", "name": owner, "uid": "u", "controller": true});
        object(
            json!({"metadata": {"namespace": "tf", "name": "z", "uid": uid, "ownerReferences": [owner]}}),
        )
    };
    let manager = object(json!({"metadata": {"namespace": "tf", "name": "m"}}));
    let shown = || lines(&registry, "opensdn_quorum_margin");
    for owner in ["a", "b", "c"] {
        metrics.margin(&owned_by(owner, "1"), None, "Zookeeper", Some(1));
        assert_eq!(shown(), [r#"opensdn_quorum_margin{manager="",service="Zookeeper/z"} 1"#]);
    }
    let series = r#"opensdn_quorum_margin{manager="tf/m",service="Zookeeper/z"} 0"#;
    metrics.margin(&owned_by("m", "1"), Some(&manager), "Zookeeper", Some(0));
    assert_eq!(shown(), [series]);
    metrics.margin(&owned_by("m", "2"), Some(&manager), "Zookeeper", Some(0));
    metrics.margin(&owned_by("m", "1"), None, "Zookeeper", None);
    assert_eq!(shown(), [series], "that of the second");
    metrics.margin(&owned_by("m", "2"), None, "Zookeeper", None);
    assert!(shown().is_empty());
}
