//! The types against the samples of `deploy/samples` and the cases of `tests/cases`: what is
//! read is written again, field by field. It holds with feature `kube` and without:
//! `cargo test -p opensdn-crds --no-default-features --test types`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::path::{Path, PathBuf};

use opensdn_crds::{
    admission_policy::AdmissionPolicySpec, analytics::AnalyticsSpec,
    analytics_alarm::AnalyticsAlarmSpec, analytics_snmp::AnalyticsSnmpSpec,
    cassandra::CassandraSpec, config::ConfigSpec, control::ControlSpec,
    kubemanager::KubemanagerSpec, link_local_service::LinkLocalServiceSpec, manager::ManagerSpec,
    nested_cluster::NestedClusterSpec, query_engine::QueryEngineSpec, rabbitmq::RabbitmqSpec,
    redis::RedisSpec, unique_claim::UniqueClaimSpec, upgrade::UpgradeSpec, vrouter::VrouterSpec,
    vrouter_profile::VrouterProfileSpec, webui::WebuiSpec, zookeeper::ZookeeperSpec,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[test]
fn samples_are_written_as_they_were_read() {
    let mut kinds = std::collections::BTreeSet::new();
    for path in files(&here().join("../deploy/samples")) {
        for object in documents(&path) {
            kinds.insert(object["kind"].as_str().unwrap().to_owned());
            assert_eq!(written_again(&object), object["spec"], "{}", path.display());
        }
    }
    assert_eq!(kinds.len(), 20, "a sample of each kind: {kinds:?}");
}

#[test]
fn accepted_cases_are_read() {
    for path in files(&here().join("tests/cases")) {
        for case in documents(&path) {
            if case["expect"] == "accept" && case["object"]["spec"].is_object() {
                let mut wanted = case["object"]["spec"].clone();
                without_nulls(&mut wanted);
                assert_eq!(written_again(&case["object"]), wanted, "{}", path.display());
            }
        }
    }
}

#[test]
fn unknown_fields_are_no_error() {
    let spec: ZookeeperSpec = read(&json!({
        "serviceConfiguration": { "clientPort": 2181, "logLevel": "SYS_DEBUG" }
    }));
    assert_eq!(spec.service_configuration.client_port, Some(2181));
}

#[cfg(feature = "kube")]
#[test]
fn an_object_without_a_spec_is_read_as_one_with_an_empty_spec() {
    macro_rules! check {
        ($($module:ident::$kind:ident),+ $(,)?) => {$(
            let object: opensdn_crds::$module::$kind = read(&json!({
                "apiVersion": "tf.tungsten.io/v1alpha1", "kind": stringify!($kind),
                "metadata": { "name": "sample", "namespace": "tf" }
            }));
            assert_eq!(object.metadata.name.as_deref(), Some("sample"));
            assert_eq!(object.spec, Default::default());
        )+};
    }
    check!(
        analytics::Analytics,
        analytics_alarm::AnalyticsAlarm,
        analytics_snmp::AnalyticsSnmp,
        cassandra::Cassandra,
        config::Config,
        control::Control,
        kubemanager::Kubemanager,
        manager::Manager,
        query_engine::QueryEngine,
        rabbitmq::Rabbitmq,
        redis::Redis,
        vrouter::Vrouter,
        webui::Webui,
        zookeeper::Zookeeper,
    );
}

#[test]
fn status_of_tf_operator_is_read() {
    use opensdn_crds::vrouter::{AgentState, VrouterStatus};
    let status: opensdn_crds::manager::ManagerStatus = read(&json!({
        "zookeeper": { "active": true, "name": "zookeeper1" },
        "cassandras": [{ "active": false, "name": "configdb1" }],
        "ziuState": -1,
        "conditions": [{ "type": "Ready", "status": "False" }]
    }));
    assert_eq!(status.conditions.unwrap()[0].status, "False");
    let status: opensdn_crds::config::ConfigStatus = read(&json!({
        "active": true, "degraded": false, "endpoint": "10.96.0.7", "configChanged": false,
        "nodes": { "config1-config-statefulset-0": { "ip": "10.0.0.1", "hostname": "a" } }
    }));
    assert_eq!(status.common.active, Some(true));
    assert_eq!(status.common.nodes.unwrap().len(), 1);
    let status: VrouterStatus = read(&json!({
        "active": true, "activeOnControllers": true,
        "agents": [{ "name": "node-0", "status": "Upgrading", "controlNodes": "10.0.0.1" }]
    }));
    assert_eq!(status.agents.unwrap()[0].status, Some(AgentState::Upgrading));
}

#[test]
fn defaults_of_our_own_kinds_are_read() {
    use opensdn_crds::admission_policy::{Mode, Operation};
    let spec: AdmissionPolicySpec = read(&json!({
        "module": { "builtIn": "plaintext" }, "kinds": [{ "kind": "ConfigMap" }]
    }));
    assert_eq!(spec.mode, Mode::Enforce);
    let rule = &spec.kinds.unwrap()[0];
    assert_eq!(rule.group, "");
    assert_eq!(rule.operations, [Operation::Create, Operation::Update]);
}

fn written_again(object: &Value) -> Value {
    fn again<S: DeserializeOwned + Serialize>(spec: &Value) -> Value {
        serde_json::to_value(read::<S>(spec)).unwrap()
    }
    let spec = &object["spec"];
    match object["kind"].as_str().unwrap() {
        "AdmissionPolicy" => again::<AdmissionPolicySpec>(spec),
        "Analytics" => again::<AnalyticsSpec>(spec),
        "AnalyticsAlarm" => again::<AnalyticsAlarmSpec>(spec),
        "AnalyticsSnmp" => again::<AnalyticsSnmpSpec>(spec),
        "Cassandra" => again::<CassandraSpec>(spec),
        "Config" => again::<ConfigSpec>(spec),
        "Control" => again::<ControlSpec>(spec),
        "Kubemanager" => again::<KubemanagerSpec>(spec),
        "LinkLocalService" => again::<LinkLocalServiceSpec>(spec),
        "NestedCluster" => again::<NestedClusterSpec>(spec),
        "Manager" => again::<ManagerSpec>(spec),
        "QueryEngine" => again::<QueryEngineSpec>(spec),
        "Rabbitmq" => again::<RabbitmqSpec>(spec),
        "Redis" => again::<RedisSpec>(spec),
        "UniqueClaim" => again::<UniqueClaimSpec>(spec),
        "Upgrade" => again::<UpgradeSpec>(spec),
        "Vrouter" => again::<VrouterSpec>(spec),
        "VrouterProfile" => again::<VrouterProfileSpec>(spec),
        "Webui" => again::<WebuiSpec>(spec),
        "Zookeeper" => again::<ZookeeperSpec>(spec),
        other => panic!("no type for {other}"),
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error} in {value:#}"))
}

/// A null counts as unset, and what is unset is not written. Defaults of our own kinds are.
fn without_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(without_nulls);
        if fields.contains_key("module") {
            fields.entry("mode").or_insert_with(|| json!("enforce"));
        }
        if fields.contains_key("holder") {
            fields["holder"]["group"] = json!("");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

fn documents(path: &Path) -> Vec<Value> {
    serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
