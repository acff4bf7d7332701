//! The worked example of upstream's document, with the database by CQL: config, message bus and the rest on
//! 192.168.1.100 to .102, Keystone on .200.

use opensdn_crds::nested::{Endpoint, Nested, Underlay, VirtualNetwork};
use opensdn_nested_workloads::{
    ApiServer, Images, Inputs, Keystone, Object, Protocol, SecretKey, Subnets, Workloads,
};
use serde_json::Value;

pub(crate) fn endpoint(addresses: &[&str]) -> Endpoint {
    let addresses = addresses.iter().map(|&one| one.to_owned()).collect();
    Endpoint { addresses, ..Endpoint::default() }
}

fn key(secret: &str, key: &str) -> SecretKey {
    SecretKey { secret: secret.to_owned(), key: key.to_owned() }
}

fn inputs(underlay: Underlay, keystone: &str) -> Inputs {
    let text = str::to_owned;
    Inputs {
        nested: Nested {
            cluster_name: text("k8s-a"),
            cluster_network: VirtualNetwork {
                domain: None,
                project: text("admin"),
                name: text("nodes"),
            },
            underlay,
            cni: None,
        },
        images: Images::of_release("registry.example/opensdn", "R25.1"),
        api_server: ApiServer { host: text("192.168.7.10"), port: 6443 },
        subnets: Subnets {
            pod: vec![text("10.32.0.0/12")],
            service: vec![text("10.96.0.0/12")],
            ip_fabric: Vec::new(),
        },
        keystone: Some(Keystone {
            host: text(keystone),
            port: 35357,
            protocol: Protocol::Http,
            domain: text("Default"),
            user: text("admin"),
            project: text("admin"),
            password: key("keystone", "password"),
            escaped_password: None,
        }),
        ..Inputs::default()
    }
}

/// By fabric SNAT: the services at their own addresses.
pub(crate) fn option_1() -> Inputs {
    let database = ["192.168.1.100", "192.168.1.101", "192.168.1.102"];
    let underlay = Underlay {
        config: endpoint(&["192.168.1.100"]),
        vrouter: endpoint(&["10.10.10.5"]),
        config_database: Some(endpoint(&database)),
        zookeeper: Some(endpoint(&database)),
        analytics: Some(endpoint(&["192.168.1.100", "192.168.1.101"])),
        ..Underlay::default()
    };
    inputs(underlay, "192.168.1.200")
}

/// By link-local services alone, with what is optional beside it.
pub(crate) fn option_2() -> Inputs {
    let database = ["10.10.10.1", "10.10.10.2", "10.10.10.3"];
    let tls = |addresses: &[&str]| Endpoint { tls: Some(true), ..endpoint(addresses) };
    let underlay = Underlay {
        config: tls(&["10.10.10.1"]),
        vrouter: endpoint(&["10.10.10.5"]),
        config_database: Some(endpoint(&database)),
        rabbitmq: Some(tls(&["10.10.10.1"])),
        rabbitmq_secret_name: Some("rabbitmq".to_owned()),
        zookeeper: Some(endpoint(&database)),
        analytics: Some(endpoint(&["10.10.10.1", "10.10.10.2"])),
        ca_secret_name: Some("underlay-ca".to_owned()),
    };
    let mut inputs = inputs(underlay, "10.10.10.4");
    inputs.registry_secret = Some("regcred".to_owned());
    inputs.secrets_digest = Some("0123abcd".to_owned());
    inputs.managed_by = Some("kubectl-opensdn".to_owned());
    if let Some(keystone) = &mut inputs.keystone {
        keystone.protocol = Protocol::Https;
        keystone.escaped_password = Some(key("keystone", "escaped"));
    }
    inputs
}

/// Not a list of texts: the order of fields is that of the types.
pub(crate) fn yaml(workloads: &Workloads) -> String {
    let texts = workloads.objects().into_iter().map(|one| serde_saphyr::to_string(&one).unwrap());
    texts.collect::<Vec<_>>().join("---\n")
}

pub(crate) fn values(workloads: &Workloads) -> Vec<Value> {
    let value = |one: &Object<'_>| serde_json::to_value(one).unwrap();
    workloads.objects().iter().map(value).collect()
}
