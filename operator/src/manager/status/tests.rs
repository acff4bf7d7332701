//! What the status of a Manager says.

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

#[test]
fn it_progresses_while_one_of_its_services_does_and_says_which() {
    let progress = |rows: &[Row], paused: Option<&str>| {
        let conditions = status(&manager(), rows, None, paused, "now").conditions.unwrap();
        let one = conditions.iter().find(|one| one.type_ == PROGRESSING).unwrap().clone();
        (one.status, one.message.unwrap())
    };
    let comes = |kind| Row { is_progressing: true, ..row(kind, false, "1 of 3 pods ready") };
    let rows = [row("Redis", false, "lost"), comes("Zookeeper"), comes("Config")];
    let said = |status: &str, message: &str| (status.to_owned(), message.to_owned());
    assert_eq!(progress(&rows, None), said("True", "Zookeeper a: 1 of 3 pods ready; 1 more"));
    assert_eq!(progress(&rows[..1], None), said("False", "no service progresses"));
    assert_eq!(progress(&rows, Some("a user wants it")), said("False", "a user wants it"));
}

#[test]
fn the_first_certificate_to_expire_is_said_with_its_service() {
    let service = Service {
        facts: facts("Redis"),
        name: "r".into(),
        labels: BTreeMap::default(),
        spec: json!({}),
    };
    let row = |expire: &str| {
        let status = json!({"observedGeneration": 1, "certificatesExpire": expire});
        let object = json!({"metadata": {"name": "r", "generation": 1}, "status": status});
        Row::of(&service, serde_json::from_value(object).ok().as_ref())
    };
    let (early, late) = ("2027-11-30T08:00:00Z", "2027-12-01T08:00:00Z");
    let rows = [
        Row { facts: facts("Webui"), ..row(late) },
        row(early),
        // What a user writes there is no time.
        row("soon"),
    ];
    let status = json!(status(&manager(), &rows, None, None, "now"));
    let first = json!({"time": early, "kind": "Redis", "name": "r"});
    assert_eq!(status["firstCertificateToExpire"], first);
    assert_eq!(status["services"][0]["certificatesExpire"], late);
    assert!(status["services"][2].get("certificatesExpire").is_none());
}
