//! What is made of the worked example, whole and by its promises. `UPDATE=1` writes the golden files again.

use std::collections::BTreeMap;
use std::path::Path;

use opensdn_crds::nested::{Cni, Endpoint};
use opensdn_crds::pod::LogLevel;
use opensdn_nested_workloads::{
    FloatingIpPool, HostAlias, Inputs, Phase, Plugins, SecretKey, Token, Workloads, render,
};
use serde_json::{Value, json};

use crate::example::{endpoint, option_1, option_2, values, yaml};

fn environment(workloads: &Workloads) -> BTreeMap<String, String> {
    workloads.kube_manager_environment.data.clone().unwrap()
}

fn pod(value: &Value) -> &Value {
    &value["spec"]["template"]["spec"]
}

#[test]
fn the_worked_example_is_as_in_its_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut stale = Vec::new();
    for (name, inputs) in [("option-1.yaml", option_1()), ("option-2.yaml", option_2())] {
        let made = yaml(&render(&inputs).unwrap());
        let path = folder.join(name);
        if std::fs::read_to_string(&path).unwrap_or_default() == made {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, made).unwrap();
        } else {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "run again with UPDATE=1 and look at the changes of: {stale:?}");
}

#[test]
fn a_selector_is_all_labels_of_its_pods() {
    for inputs in [option_1(), option_2()] {
        let objects = values(&render(&inputs).unwrap());
        let workloads: Vec<_> =
            objects.iter().filter(|one| one.pointer("/spec/selector").is_some()).collect();
        assert_eq!(workloads.len(), 2);
        for one in workloads {
            let labels = &one["spec"]["template"]["metadata"]["labels"];
            assert_eq!(&one["spec"]["selector"]["matchLabels"], labels);
            assert!(labels["app.kubernetes.io/name"].is_string());
        }
    }
}

#[test]
fn no_password_is_in_a_config_map_and_the_cni_agent_has_no_credentials() {
    for inputs in [option_1(), option_2()] {
        let workloads = render(&inputs).unwrap();
        for map in [&workloads.kube_manager_environment, &workloads.cni_agent_environment] {
            let keys = map.data.iter().flatten().map(|(key, _)| key.to_lowercase());
            assert_eq!(keys.filter(|key| key.contains("password")).count(), 0);
        }
        let agent = serde_json::to_string(&workloads.cni_agent).unwrap();
        assert!(!agent.contains("secret") && !agent.contains("AUTH"), "{agent}");
        let keys: Vec<_> = workloads.cni_agent_environment.data.as_ref().unwrap().keys().collect();
        assert!(keys.iter().all(|key| !key.contains("KEYSTONE") && !key.contains("RABBIT")));
    }
}

#[test]
fn pull_secrets_are_there_only_with_a_name() {
    for (inputs, expected) in
        [(option_1(), Value::Null), (option_2(), json!([{"name": "regcred"}]))]
    {
        let workloads = render(&inputs).unwrap();
        for one in [json!(workloads.kube_manager), json!(workloads.cni_agent)] {
            assert_eq!(pod(&one)["imagePullSecrets"], expected);
        }
    }
}

#[test]
fn lists_of_nodes_have_commas_and_networks_have_blanks() {
    let mut inputs = option_1();
    inputs.nested.underlay.config = endpoint(&["192.168.1.100", "192.168.1.101"]);
    inputs.nested.underlay.rabbitmq = Some(endpoint(&["192.168.1.103", "192.168.1.104"]));
    for all in [&mut inputs.subnets.pod, &mut inputs.subnets.service] {
        all.push("172.16.0.0/16".to_owned());
    }
    inputs.subnets.ip_fabric = vec!["10.64.0.0/12".to_owned(), "172.17.0.0/16".to_owned()];
    let variables = environment(&render(&inputs).unwrap());
    for (name, value) in [
        ("CONFIG_NODES", "192.168.1.100,192.168.1.101"),
        ("CONTROLLER_NODES", "192.168.1.100,192.168.1.101"),
        ("ANALYTICS_NODES", "192.168.1.100,192.168.1.101"),
        ("CONFIGDB_NODES", "192.168.1.100,192.168.1.101,192.168.1.102"),
        ("ZOOKEEPER_NODES", "192.168.1.100,192.168.1.101,192.168.1.102"),
        ("RABBITMQ_NODES", "192.168.1.103,192.168.1.104"),
        ("KUBERNETES_POD_SUBNETS", "10.32.0.0/12 172.16.0.0/16"),
        ("KUBERNETES_SERVICE_SUBNETS", "10.96.0.0/12 172.16.0.0/16"),
        ("KUBERNETES_IP_FABRIC_SUBNETS", "10.64.0.0/12 172.17.0.0/16"),
        (
            "KUBERNETES_CLUSTER_NETWORK",
            "{'domain': 'default-domain', 'project': 'admin', 'name': 'nodes'}",
        ),
    ] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn the_message_bus_and_zookeeper_without_addresses_have_those_of_the_config_database() {
    let mut inputs = option_1();
    let underlay = &mut inputs.nested.underlay;
    underlay.zookeeper = None;
    underlay.rabbitmq = Some(Endpoint { port: Some(5672), ..Endpoint::default() });
    let variables = environment(&render(&inputs).unwrap());
    assert_ne!(variables["CONFIGDB_NODES"], variables["CONFIG_NODES"]);
    for name in ["ZOOKEEPER_NODES", "RABBITMQ_NODES"] {
        assert_eq!(variables[name], variables["CONFIGDB_NODES"], "{name}");
    }
    assert_eq!(variables["RABBITMQ_NODE_PORT"], "5672");
}

#[test]
fn a_service_without_addresses_has_those_of_config() {
    let mut inputs = option_1();
    let underlay = &mut inputs.nested.underlay;
    underlay.config_database = None;
    underlay.analytics = None;
    underlay.zookeeper = None;
    underlay.rabbitmq = Some(Endpoint { port: Some(5672), ..Endpoint::default() });
    let variables = environment(&render(&inputs).unwrap());
    for name in ["CONFIGDB_NODES", "ANALYTICS_NODES", "ZOOKEEPER_NODES", "RABBITMQ_NODES"] {
        assert_eq!(variables[name], "192.168.1.100", "{name}");
    }
    assert_eq!(
        (variables["RABBITMQ_NODE_PORT"].as_str(), variables["COLLECTOR_PORT"].as_str()),
        ("5672", "8086")
    );
}

#[test]
fn the_level_of_debugging_reaches_the_daemon_and_not_the_trace_of_the_entrypoint() {
    let mut inputs = option_1();
    inputs.log_level = Some(LogLevel::Debug);
    let variables = environment(&render(&inputs).unwrap());
    assert_eq!(variables["LOG_LEVEL"], "SYS_INFO");
    assert_eq!(variables["KUBERNETES__DEFAULTS__log_level"], "SYS_DEBUG");
}

#[test]
fn a_change_of_settings_or_secrets_restarts_whom_it_concerns() {
    let annotations = |inputs: &Inputs| {
        let made = render(inputs).unwrap();
        let of = |value: Value| value["spec"]["template"]["metadata"]["annotations"].clone();
        [of(json!(made.kube_manager)), of(json!(made.cni_agent))]
    };
    let [manager, agent] = annotations(&option_1());
    let mut inputs = option_1();
    inputs.secrets_digest = Some("1".to_owned());
    let after = annotations(&inputs);
    assert!(after[0] != manager && after[1] == agent);
    inputs.nested.cni = Some(Cni { image: None, mtu: Some(1400) });
    assert_ne!(annotations(&inputs)[1], agent);
}

#[test]
fn variants_change_only_what_they_are_about() {
    let mut inputs = option_1();
    inputs.plugins = Plugins::Kept;
    inputs.parent_interface = Some("eth1".to_owned());
    inputs.token = Token::InSecret("mine".to_owned());
    inputs.host_aliases =
        vec![HostAlias { ip: "192.168.7.10".to_owned(), names: vec!["master1".to_owned()] }];
    inputs.escaped_rabbitmq_password =
        Some(SecretKey { secret: "mine".to_owned(), key: "bus".to_owned() });
    inputs.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    let part = || "a".to_owned();
    inputs.floating_ip_pool =
        Some(FloatingIpPool { domain: part(), project: part(), network: part(), name: part() });
    let made = render(&inputs).unwrap();
    assert!(made.token_secret.is_none());
    let variables = environment(&made);
    let pool = "{'domain': 'a', 'project': 'a', 'network': 'a', 'name': 'a'}";
    assert_eq!(variables["KUBERNETES_PUBLIC_FIP_POOL"], pool);
    let (manager, agent) = (json!(made.kube_manager), json!(made.cni_agent));
    assert_eq!(pod(&manager)["volumes"][1]["secret"]["secretName"], "mine");
    assert_eq!(pod(&manager)["hostAliases"][0]["hostnames"], json!(["master1"]));
    assert_eq!(pod(&manager)["nodeSelector"], json!({"disk": "ssd"}));
    assert!(pod(&manager)["affinity"].is_null());
    assert!(manager.to_string().contains("KUBERNETES__VNC__rabbit_password"));
    let environment = made.cni_agent_environment.data.unwrap();
    assert_eq!(environment["PHYSICAL_INTERFACE"], "eth1");
    assert!(pod(&agent)["containers"][0]["env"].is_null());
    assert_eq!(pod(&agent)["initContainers"][0]["command"][0], "install");
    let mounts = &pod(&agent)["containers"][0]["volumeMounts"][1];
    assert_eq!(mounts, &json!({"mountPath": "/host/opt_cni_bin", "name": "unused-plugins"}));
}

#[test]
fn objects_are_applied_in_phases() {
    let made = render(&option_2()).unwrap();
    let phases: Vec<_> =
        made.objects().into_iter().map(opensdn_nested_workloads::Object::phase).collect();
    assert!(phases.is_sorted());
    assert_eq!((phases.first(), phases.last()), (Some(&Phase::Access), Some(&Phase::KubeManager)));
}

/// A place of the inputs that holds a text.
type Place = (&'static str, fn(&mut Inputs) -> &mut String);

fn some<T: Default>(value: &mut Option<T>) -> &mut T {
    value.get_or_insert_default()
}

const PLACES: &[Place] = &[
    ("nested.clusterName", |inputs| &mut inputs.nested.cluster_name),
    ("nested.clusterNetwork.domain", |inputs| some(&mut inputs.nested.cluster_network.domain)),
    ("nested.clusterNetwork.project", |inputs| &mut inputs.nested.cluster_network.project),
    ("nested.clusterNetwork.name", |inputs| &mut inputs.nested.cluster_network.name),
    ("nested.underlay.config.addresses", |i| &mut i.nested.underlay.config.addresses[0]),
    ("nested.underlay.vrouter.addresses", |i| &mut i.nested.underlay.vrouter.addresses[0]),
    ("nested.underlay.analytics.addresses", |inputs| {
        &mut some(&mut inputs.nested.underlay.analytics).addresses[0]
    }),
    ("nested.underlay.configDatabase.addresses", |inputs| {
        &mut some(&mut inputs.nested.underlay.config_database).addresses[0]
    }),
    ("nested.underlay.zookeeper.addresses", |inputs| {
        &mut some(&mut inputs.nested.underlay.zookeeper).addresses[0]
    }),
    ("nested.underlay.caSecretName", |i| some(&mut i.nested.underlay.ca_secret_name)),
    ("nested.underlay.rabbitmqSecretName", |i| some(&mut i.nested.underlay.rabbitmq_secret_name)),
    ("images.kube_manager", |inputs| &mut inputs.images.kube_manager),
    ("images.cni", |inputs| &mut inputs.images.cni),
    ("namespace", |inputs| &mut inputs.namespace),
    ("names_prefix", |inputs| &mut inputs.names_prefix),
    ("managed_by", |inputs| some(&mut inputs.managed_by)),
    ("registry_secret", |inputs| some(&mut inputs.registry_secret)),
    ("secrets_digest", |inputs| some(&mut inputs.secrets_digest)),
    ("client_certificate_secret", |inputs| some(&mut inputs.client_certificate_secret)),
    ("api_server.host", |inputs| &mut inputs.api_server.host),
    ("subnets.pod", |inputs| &mut inputs.subnets.pod[0]),
    ("subnets.service", |inputs| &mut inputs.subnets.service[0]),
    ("parent_interface", |inputs| some(&mut inputs.parent_interface)),
    ("keystone.host", |inputs| &mut inputs.keystone.as_mut().unwrap().host),
    ("keystone.domain", |inputs| &mut inputs.keystone.as_mut().unwrap().domain),
    ("keystone.user", |inputs| &mut inputs.keystone.as_mut().unwrap().user),
    ("keystone.project", |inputs| &mut inputs.keystone.as_mut().unwrap().project),
    ("keystone.password.secret", |i| &mut i.keystone.as_mut().unwrap().password.secret),
    ("keystone.password.key", |i| &mut i.keystone.as_mut().unwrap().password.key),
];

#[test]
fn a_value_that_would_leave_its_place_is_refused_with_its_field_wherever_it_is() {
    for hostile in ["a\nb: c", "a\"b", "a'b", "$(id)", "{{ x }}", "`id`", "a\\b", "50%", "a\0"] {
        for (field, place) in PLACES {
            let mut inputs = option_1();
            *place(&mut inputs) = hostile.to_owned();
            let refused = render(&inputs).unwrap_err();
            let one = refused.0.iter().find(|one| one.field == *field);
            assert_eq!(one.map(|one| one.value.as_str()), Some(hostile), "{field}: {refused}");
            assert!(!refused.to_string().contains('\n'), "{refused}");
        }
    }
}

#[test]
fn all_that_is_wrong_is_found_at_once() {
    let mut inputs = option_1();
    inputs.nested.cluster_name = "K8s".to_owned();
    inputs.subnets.pod = Vec::new();
    inputs.api_server.port = 0;
    let refused = render(&inputs).unwrap_err();
    let mut fields: Vec<_> = refused.0.iter().map(|one| one.field.as_str()).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["api_server.port", "nested.clusterName", "subnets.pod"]);
    assert!(refused.to_string().contains("nested.clusterName is \"K8s\""), "{refused}");
}

/// What is refused when that is changed in option 1.
#[track_caller]
fn refuses(field: &str, change: impl Fn(&mut Inputs)) {
    let mut inputs = option_1();
    change(&mut inputs);
    let refused = render(&inputs).unwrap_err();
    assert!(refused.0.iter().any(|one| one.field == field), "{refused}");
}

#[test]
fn what_kube_manager_cannot_do_is_refused() {
    let with = |port, tls| Endpoint { port, tls, ..endpoint(&["192.168.1.100"]) };
    refuses("nested.underlay.zookeeper.port", |inputs| {
        inputs.nested.underlay.zookeeper = Some(with(Some(0), None));
    });
    refuses("nested.underlay.configDatabase.port", |inputs| {
        inputs.nested.underlay.config_database = Some(with(Some(9161), None));
    });
    refuses("nested.underlay.rabbitmq.port", |inputs| {
        inputs.nested.underlay.rabbitmq = Some(with(Some(65536), None));
    });
    refuses("nested.underlay.vrouter.tls", |inputs| {
        inputs.nested.underlay.vrouter.tls = Some(true);
    });
    refuses("nested.underlay.vrouter.addresses", |inputs| {
        inputs.nested.underlay.vrouter = endpoint(&["10.10.10.5", "10.10.10.6"]);
    });
    refuses("nested.underlay.config.addresses", |inputs| {
        inputs.nested.underlay.config = endpoint(&["10.0.0.1", "10.0.0.1"]);
    });
    refuses("nested.underlay.caSecretName", |inputs| {
        inputs.nested.underlay.config.tls = Some(true);
    });
    refuses("client_certificate_secret", |inputs| {
        inputs.nested.underlay.ca_secret_name = Some("ca".to_owned());
        inputs.nested.underlay.analytics = Some(with(None, Some(true)));
    });
    for mtu in [0, 67, 65536, -1] {
        refuses("nested.cni.mtu", |inputs| {
            inputs.nested.cni = Some(Cni { image: None, mtu: Some(mtu) });
        });
    }
}

#[test]
fn certificates_are_where_upstreams_programs_look_for_them() {
    let mut inputs = option_2();
    inputs.client_certificate_secret = Some("kube-manager-tls".to_owned());
    let made = render(&inputs).unwrap();
    assert!(!environment(&made).contains_key("KUBERNETES__VNC__kombu_ssl_keyfile"));
    let manager = json!(made.kube_manager);
    let volume = pod(&manager)["volumes"].as_array().unwrap().last().unwrap();
    let paths = volume["projected"]["sources"].as_array().unwrap().iter();
    let paths = paths.flat_map(|one| one["secret"]["items"].as_array().unwrap());
    let paths: Vec<_> = paths.map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["certs/ca-cert.pem", "certs/server.pem", "private/server-privkey.pem"]);
}
