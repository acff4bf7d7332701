//! What becomes of objects of contrail-operator and of release 2011.

use opensdn_manifests::{Schemas, Source, read};

use super::*;

fn converted(object: &Value) -> (Value, Vec<String>) {
    let mut notes = Vec::new();
    let shapes = Shapes::new().unwrap();
    let result = convert(object.clone(), &shapes, &mut notes).unwrap();
    let shown = |note: &Note| format!("{} {}", note.field, note.what);
    (result.unwrap_or_default(), notes.iter().map(shown).collect())
}

/// As `validate` judges it by its schema.
fn problems(object: &Value) -> Vec<String> {
    let document = read(&Source::new("test", object.to_string())).documents.pop().unwrap();
    let found = Schemas::new(opensdn_crds::all()).check(&document, None).into_iter();
    found.map(|problem| format!("{:?} {}", problem.pointer, problem.message)).collect()
}

fn sample(name: &str) -> Value {
    let path = format!("{}/tests/cmd/convert/manager.in/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn has(notes: &[String], start: &str) -> bool {
    notes.iter().any(|note| note.starts_with(start))
}

/// Every field that was there is in the result, or a note names it or one around it.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                paths(value, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str);
                let at = name.map_or_else(|| at.to_string(), str::to_owned);
                paths(item, &format!("{path}[{at}]"), found);
            }
        }
        _ => found.push(path.trim_start_matches('.').to_owned()),
    }
}

#[test]
fn managers_of_both_operators_pass_our_schema_and_no_field_goes_without_a_note() {
    for name in ["contrail-operator.yaml", "release-2011.yaml", "release-2011-rendered.yaml"] {
        let before = sample(name);
        let (after, notes) = converted(&before);
        assert_eq!(problems(&after), [""; 0], "{name}");
        assert_eq!(after["apiVersion"], "tf.tungsten.io/v1alpha1");
        let (mut fields, mut kept) = (Vec::new(), Vec::new());
        paths(&before, "", &mut fields);
        paths(&after, "", &mut kept);
        for field in fields {
            let is_told = notes.iter().any(|note| {
                let (named, _) = note.split_once(' ').unwrap();
                !named.is_empty() && field.starts_with(named)
            });
            assert!(kept.contains(&field) || is_told, "{name}: {field} is gone: {notes:#?}");
        }
        let again = converted(&after);
        assert_eq!(again, (after, vec![]), "{name}: a second time changes nothing");
    }
}

#[test]
fn services_are_where_the_new_operator_has_them() {
    let (after, notes) = converted(&sample("contrail-operator.yaml"));
    let services = &after["spec"]["services"];
    assert_eq!(services["zookeeper"]["metadata"]["name"], "zookeeper1");
    assert_eq!(services["kubemanager"]["metadata"]["name"], "kubemanager1");
    let analytics = &services["analytics"]["spec"]["serviceConfiguration"];
    assert_eq!(analytics["analyticsDataTTL"], 2);
    assert_eq!(analytics["containers"][0]["name"], "analyticsapi");
    assert_eq!(
        services["redis"][0]["spec"]["serviceConfiguration"]["containers"][0]["name"],
        "redis"
    );
    assert_eq!(services["queryengine"]["metadata"]["name"], "queryengine1");
    let config = &services["config"]["spec"];
    assert_eq!(config["commonConfiguration"]["logLevel"], "debug");
    assert_eq!(
        config["serviceConfiguration"]["linklocalServices"][0]["ipFabricServiceHost"],
        "10.0.0.9"
    );
    let vrouter = &services["vrouters"][0]["spec"]["serviceConfiguration"];
    assert!(vrouter["vrouterGateway"].is_string() && vrouter["gateway"].is_null());
    assert_eq!(vrouter["encapsulationPriorities"], json!(["VXLAN", "MPLSoUDP"]));
    assert!(has(&notes, "spec.services.command dropped"), "{notes:#?}");
    assert!(has(&notes, "spec.services.zookeepers[0] is now spec.services.zookeeper"));
    assert_eq!(after["spec"]["commonConfiguration"]["authParameters"]["authMode"], "keystone");
}

#[test]
fn no_note_has_a_value_that_may_be_a_secret() {
    for name in ["contrail-operator.yaml", "release-2011.yaml"] {
        let (_, notes) = converted(&sample(name));
        let all = notes.join("\n");
        assert!(!all.contains("planted"), "{all}");
    }
    assert!(sample("contrail-operator.yaml").to_string().matches("planted").count() > 2);
}

#[test]
fn a_field_that_nobody_knows_is_told() {
    let (after, notes) = converted(&json!({
        "apiVersion": "contrail.juniper.net/v1alpha1", "kind": "Control",
        "metadata": {"name": "control1", "uid": "1",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"spec\":{\"password\":\"planted\"}}"}}, "status": {},
        "spec": {"serviceConfiguration": {"bgpPort": 179, "brandNew": {"a": 1}}},
    }));
    let expected = [
        "apiVersion is now tf.tungsten.io/v1alpha1",
        "status dropped: the operator writes it",
        "metadata.uid dropped: the API server writes it",
        "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration dropped: it is the whole object as it was, with what \
         is dropped, and kubectl apply writes it again",
        "spec.serviceConfiguration.brandNew dropped: Control has no such field",
    ];
    assert_eq!(notes, expected);
    assert_eq!(after["spec"], json!({"serviceConfiguration": {"bgpPort": 179}}));
    assert_eq!(after["metadata"], json!({"name": "control1"}));
}

#[test]
fn what_was_set_twice_keeps_the_new_field() {
    let (after, notes) = converted(&json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter", "metadata": {"name": "v"},
        "spec": {"serviceConfiguration":
            {"gateway": "10.1.0.1", "vrouterGateway": "10.1.0.2", "dataSubnet": "10.1.0.0/24"}},
    }));
    assert_eq!(after["spec"]["serviceConfiguration"]["vrouterGateway"], "10.1.0.2");
    assert!(notes[0].ends_with("spec.serviceConfiguration.vrouterGateway is set too, and stays"));
}

#[test]
fn other_objects_stay_kinds_without_a_place_go_and_unknown_ones_are_refused() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let (after, notes) = converted(&secret);
    assert_eq!((after, notes.len()), (secret, 1));
    let group = "contrail.juniper.net/v1alpha1";
    let (after, notes) = converted(&json!({"apiVersion": group, "kind": "Swift"}));
    assert!(after.is_null() && has(&notes, " dropped"), "{notes:?}");
    let shapes = Shapes::new().unwrap();
    for (api_version, kind) in [(group, "Nothing"), ("contrail.juniper.net/v2", "Manager")] {
        let object = json!({"apiVersion": api_version, "kind": kind});
        assert!(convert(object, &shapes, &mut Vec::new()).is_err());
    }
}

#[test]
fn all_containers_that_release_2011_renders_have_a_place() {
    let (after, notes) = converted(&sample("release-2011-rendered.yaml"));
    let lost: Vec<_> = notes
        .iter()
        .filter(|note| note.contains("containers[") && note.contains("dropped"))
        .collect();
    assert!(lost.is_empty(), "{lost:#?}");
    let names = |pointer: &str| -> Vec<String> {
        let list = after
            .pointer(&format!("/spec/services/{pointer}/spec/serviceConfiguration/containers"));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("redis/0"), ["redis", "stunnel"]);
    assert_eq!(names("analytics"), ["analyticsapi", "collector", "nodemanager", "provisioner"]);
    let config = names("config");
    assert!(
        config.contains(&"nodemanager".to_owned()) && config.contains(&"provisioner".to_owned())
    );
    assert!(has(&notes, "spec.services.cassandras[0] keeps its data"), "{notes:#?}");
}

#[test]
fn containers_by_name_become_a_list() {
    let (after, notes) = converted(&json!({
        "apiVersion": "contrail.juniper.net/v1alpha1", "kind": "Manager", "metadata": {"name": "m"},
        "spec": {"keystoneSecretInstance": "admin", "services": {"config": {"metadata": {"name": "config1"},
            "spec": {"serviceConfiguration": {"containers":
                {"api": {"image": "a"}, "collector": {"image": "c"}}}}}}},
    }));
    let services = &after["spec"]["services"];
    let of =
        |service: &str| services[service]["spec"]["serviceConfiguration"]["containers"].clone();
    assert_eq!(of("config"), json!([{"name": "api", "image": "a"}]));
    assert_eq!(of("analytics"), json!([{"name": "collector", "image": "c"}]));
    assert_eq!(
        after.pointer("/spec/commonConfiguration/authParameters/keystoneSecretName"),
        Some(&json!("admin"))
    );
    assert!(has(&notes, "spec.services.config.spec.serviceConfiguration.containers is a list now"));
}
