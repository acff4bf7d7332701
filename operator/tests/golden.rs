//! Whole objects of whole inputs: each folder of `golden/` has `in.yaml`, an object and what is around it, and
//! `out.yaml`, all that is applied for it. `UPDATE=1` writes the latter again; what it then shows is a change
//! for every cluster, and pods may restart.
//!
//! Certificates are random, so that of their Secret only the keys are compared.

use std::path::Path;

use crate::built::{ClusterState, Ended};
use opensdn_crds::component::{
    CONFIG_DATABASE_NODE_MANAGER, Component, DATABASE_NODE_MANAGER, Port, Setting,
};
use opensdn_operator::build::Intent;
use opensdn_operator::kind::Kind;
use serde_json::Value;

/// What is applied for the first object, given the others.
fn built(documents: Vec<Value>) -> Vec<Intent> {
    let around = ClusterState::of(documents);
    around.intents(&around.object).unwrap()
}

/// The golden file of a case, where that is not as it is to be; `UPDATE=1` writes it.
pub(crate) fn stale_file(case: &Path, out: &str) -> Option<String> {
    let path = case.join("out.yaml");
    if std::fs::read_to_string(&path).unwrap_or_default() == out {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, out).unwrap();
        return None;
    }
    Some(path.display().to_string())
}

#[test]
fn all_objects_are_as_in_their_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    let mut stale = Vec::new();
    for case in cases {
        let input = std::fs::read_to_string(case.join("in.yaml")).unwrap();
        let documents = serde_saphyr::from_multiple(&input).unwrap();
        let intents = built(documents).into_iter();
        let texts = intents.map(|intent| serde_saphyr::to_string(&intent.object).unwrap());
        let out = texts.collect::<Vec<_>>().join("---\n");
        stale.extend(stale_file(&case, &out));
    }
    assert!(stale.is_empty(), "run again with UPDATE=1 and look at the changes of: {stale:?}");
}

/// Thrift's library is in images up to R21.4 alone, and CQL needs the other port.
#[test]
fn daemons_in_python_reach_the_config_database_by_the_port_of_their_driver() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut drivers = std::collections::BTreeSet::new();
    for case in std::fs::read_dir(folder).unwrap() {
        let input = std::fs::read_to_string(case.unwrap().path().join("in.yaml")).unwrap();
        let is_by_thrift = input.contains(":R21.4\"}");
        let intents = built(serde_saphyr::from_multiple(&input).unwrap());
        let files = intents.iter().filter_map(|one| one.object.data["data"].as_object()).flatten();
        for (key, text) in files.filter_map(|(key, text)| Some((key, text.as_str()?))) {
            let is_python = text.contains("[DEFAULTS]");
            let servers = text.lines().find(|line| {
                line.starts_with("config_db_server_list")
                    || line.starts_with("cassandra_server_list")
            });
            let Some(servers) = servers.filter(|_| is_python) else { continue };
            let port = if is_by_thrift { ":9161" } else { ":9041" };
            assert!(servers.contains(port), "{key}: {servers}");
            assert_eq!(text.contains("\ncassandra_driver = cql\n"), !is_by_thrift, "{key}");
            drivers.insert(is_by_thrift);
        }
    }
    assert_eq!(drivers.len(), 2);
}

#[test]
fn an_object_that_cannot_be_read_is_refused_and_changes_nothing_of_the_others() {
    let mut documents: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("golden/redis/in.yaml")).unwrap();
    let applied = |documents: &[Value]| -> Vec<Value> {
        built(documents.to_vec()).iter().map(|one| one.object.data.clone()).collect()
    };
    let before = applied(&documents);
    let mut unreadable = documents[0].clone();
    unreadable["metadata"]["name"] = "redis2".into();
    unreadable["metadata"]["uid"] = "another".into();
    unreadable["metadata"]["resourceVersion"] = "1".into();
    unreadable["spec"]["serviceConfiguration"] = "text".into();
    documents.push(unreadable.clone());
    assert_eq!(applied(&documents), before);
    let refused = ClusterState::of(documents).intents(&unreadable).unwrap_err();
    assert!(refused.contains("failed to read spec"), "{refused}");
}

#[test]
fn a_member_more_restarts_none_of_the_others() {
    let input = include_str!("golden/redis/in.yaml");
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(input).unwrap();
    let template = |documents: &[Value]| {
        let intents = built(documents.to_vec());
        let spec = intents.last().unwrap().object.data["spec"].clone();
        (spec["replicas"].clone(), spec["template"].clone())
    };
    let (before, template_before) = template(&documents);
    let mut node = documents.iter().find(|one| one["kind"] == "Node").unwrap().clone();
    node["metadata"]["name"] = "another".into();
    node["status"]["addresses"][0]["address"] = "192.0.2.99".into();
    documents.push(node);
    let (after, template_after) = template(&documents);
    assert_eq!((before, after), (3.into(), 4.into()));
    assert_eq!(template_before, template_after);
}

/// Of each case the passwords of its own are looked for, and what a spec gives in clear text.
#[test]
fn no_config_map_has_a_password() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for case in std::fs::read_dir(folder).unwrap() {
        let path = case.unwrap().path();
        let input = std::fs::read_to_string(path.join("in.yaml")).unwrap();
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&input).unwrap();
        let spec = &mut documents[0]["spec"];
        spec["commonConfiguration"]["authParameters"] = serde_json::json!({"authMode": "keystone",
            "keystoneAuthParameters": {"address": "keystone", "adminPassword": "tell-nobody"}});
        for field in ["password", "erlangCookie", "rndckey", "metadataProxySecret"] {
            spec["serviceConfiguration"][field] = "tell-nobody".into();
        }
        for intent in built(documents).iter().filter(|one| one.kind != Kind::Secret) {
            let text = serde_json::to_string(&intent.object).unwrap();
            assert!(
                !text.contains("tell-nobody"),
                "{}: {} {}",
                path.display(),
                intent.kind.name(),
                intent.name
            );
            assert!(!text.contains("contrail123"), "{}: {}", path.display(), intent.name);
        }
    }
}

#[test]
fn no_pod_is_given_a_secret_of_the_operators_own() {
    for (case, field) in [
        ("config-r25-keystone", "/spec/commonConfiguration/authParameters/keystoneSecretName"),
        ("rabbitmq", "/spec/serviceConfiguration/secret"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
        let around = ClusterState::read(&path.join("in.yaml"));
        for secret in ["opensdn-ca", "redis1-secret-certificates"] {
            let mut object = around.object.clone();
            let (parent, key) = field.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = secret.into();
            let Ended::Refused(message) = around.built(&object) else {
                panic!("{case} mounts {secret}")
            };
            assert!(message.contains(secret), "{message}");
        }
    }
}

#[test]
fn of_a_named_secret_pods_see_only_the_keys_that_their_files_have() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rabbitmq");
    let around = ClusterState::read(&path.join("in.yaml"));
    let mut object = around.object.clone();
    object["spec"]["serviceConfiguration"]["secret"] = "kubemanager1-kubemanager-secret".into();
    let intents = around.intents(&object).unwrap();
    let keeper = intents.iter().find(|intent| intent.kind == Kind::StatefulSet).unwrap();
    let volumes = keeper.object.data["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let named: Vec<&Value> = volumes
        .iter()
        .map(|volume| &volume["secret"])
        .filter(|secret| secret["secretName"] == "kubemanager1-kubemanager-secret")
        .collect();
    let keys = named[0]["items"].as_array().unwrap().iter().map(|item| item["key"].clone());
    assert_eq!(
        (named.len(), keys.collect::<Vec<_>>()),
        (1, ["user", "password", "vhost"].map(Value::from).to_vec())
    );
}

/// The table of components is what policies, the status and other components read.
#[test]
fn probes_ask_the_ports_that_the_table_of_components_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut asked = std::collections::BTreeSet::new();
    for case in std::fs::read_dir(folder).unwrap() {
        let around = ClusterState::read(&case.unwrap().path().join("in.yaml"));
        let facts = Component::of_kind(around.object["kind"].as_str().unwrap()).unwrap();
        let settings = &around.object["spec"]["serviceConfiguration"];
        let mut ports: Vec<i64> = facts.ports.iter().map(|port| number(port, settings)).collect();
        if facts.kind == "Cassandra" {
            ports.extend([CONFIG_DATABASE_NODE_MANAGER, DATABASE_NODE_MANAGER].map(i64::from));
        }
        for intent in around.intents(&around.object).unwrap() {
            let containers = intent.object.data["spec"]["template"]["spec"]["containers"].clone();
            for container in containers.as_array().into_iter().flatten() {
                for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                    for how in ["tcpSocket", "httpGet"] {
                        if let Some(port) = container[probe][how]["port"].as_i64() {
                            assert!(ports.contains(&port), "{}: {port} {ports:?}", facts.kind);
                            asked.insert(facts.kind);
                        }
                    }
                }
            }
        }
    }
    assert!(asked.len() >= 10, "{asked:?}");
}

/// Where it listens with these settings.
fn number(port: &Port, settings: &Value) -> i64 {
    let of = |field: &str| settings[field].as_i64().filter(|given| *given != 0);
    match port.setting {
        Setting::Fixed | Setting::ShownAs(_) => port.number.into(),
        Setting::Field(field) => of(field).unwrap_or(port.number.into()),
        Setting::Above(field, more) => {
            of(field).map_or(port.number.into(), |given| given + i64::from(more))
        }
    }
}

/// What a schema does not have, the API server drops.
#[test]
fn each_field_of_a_status_is_one_of_its_kind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let definitions = opensdn_crds::all();
    let mut with_ports = std::collections::BTreeSet::new();
    for case in std::fs::read_dir(folder).unwrap() {
        let around = ClusterState::read(&case.unwrap().path().join("in.yaml"));
        let kind = around.object["kind"].as_str().unwrap().to_owned();
        let definition = definitions.iter().find(|one| one.spec.names.kind == kind).unwrap();
        let definition = serde_json::to_value(definition).unwrap();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
        let status = around.status(&around.object).unwrap();
        within(&status, definition.pointer(schema).unwrap(), &kind);
        if status["ports"].is_object() {
            with_ports.insert(kind);
        }
    }
    let expected = ["Cassandra", "Control", "Webui", "Zookeeper"];
    assert_eq!(Vec::from_iter(with_ports), expected, "those of which tf-operator says it");
}

fn within(value: &Value, schema: &Value, place: &str) {
    let Some(fields) = value.as_object() else {
        assert!(!value.is_i64() || schema["type"] == "integer", "{place}: {value} {schema}");
        assert!(!value.is_string() || schema["type"] == "string", "{place}: {value} {schema}");
        return;
    };
    for (name, value) in fields {
        let of_all = Some(&schema["additionalProperties"]).filter(|of_all| of_all.is_object());
        let schema = schema["properties"].get(name).or(of_all);
        let schema = schema.unwrap_or_else(|| panic!("{place} has no {name}"));
        within(value, schema, &format!("{place}.{name}"));
    }
}

#[test]
fn the_status_has_the_address_of_the_service_and_the_secret_in_use() {
    let of = |case: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        ClusterState::read(&folder.join(case).join("in.yaml"))
    };
    let config = of("config");
    let object = config.object.clone();
    let intents = config.intents(&object).unwrap();
    let service = intents.into_iter().find(|one| one.kind == Kind::Service).unwrap();
    let mut service = serde_json::to_value(service.object).unwrap();
    assert_eq!(config.status(&object).unwrap().get("endpoint"), None, "it has none yet");
    service["spec"]["clusterIP"] = "10.96.0.7".into();
    let status = config.with(service).status(&object).unwrap();
    assert_eq!(status["endpoint"], "10.96.0.7", "{status:#}");

    let rabbitmq = of("rabbitmq");
    let status = rabbitmq.status(&rabbitmq.object).unwrap();
    let name = rabbitmq.object["metadata"]["name"].as_str().unwrap();
    assert_eq!(status["secret"], format!("{name}-secret"));
}

#[test]
fn what_is_deleted_and_held_by_a_finalizer_is_said() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/redis");
    let around = ClusterState::read(&folder.join("in.yaml"));
    let object = around.object.clone();
    let intents = around.intents(&object).unwrap();
    let keeper = intents.into_iter().find(|one| one.kind == Kind::StatefulSet).unwrap();
    let mut keeper = serde_json::to_value(keeper.object).unwrap();
    keeper["metadata"]["deletionTimestamp"] = "2026-11-24T00:00:00Z".into();
    keeper["metadata"]["finalizers"] = serde_json::json!(["example.com/held"]);
    let status = around.with(keeper).status(&object).unwrap();
    let conditions = status["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").unwrap();
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"ObjectGoes".into()));
    assert!(ready["message"].as_str().unwrap().contains("example.com/held"), "{ready}");
}
