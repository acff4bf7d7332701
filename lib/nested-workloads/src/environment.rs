//! The environment of both containers: variables as upstream's entrypoints read them
//! (tf-container-builder, `containers/kubernetes/{kube-manager,cni-init}/entrypoint.sh`, `containers/base/common.sh`).
//!
//! Lists of nodes have commas, networks blanks: kube-manager splits the latter at white space. What is secret
//! comes as a reference to a key of a Secret and is in no ConfigMap.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMap, EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector,
};
use opensdn_crds::pod::LogLevel;
use sha2::{Digest as _, Sha256};

use crate::checked::{Checked, IP_FABRIC_SUBNET, Network, Transport};
use crate::inputs::{FloatingIpPool, Keystone, Protocol, SecretKey};
use crate::pod::{AUTHORITIES, TOKEN_FILE, metadata};

/// What a container reads, by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// The ConfigMap of kube-manager.
pub(crate) fn of_kube_manager(checked: &Checked<'_>) -> ConfigMap {
    let mut all = Variables::new();
    extend(&mut all, &cluster(checked));
    extend(&mut all, &underlay(checked));
    extend(&mut all, &authentication(checked));
    extend(&mut all, &log(checked));
    config_map(checked, &checked.names.kube_manager_environment(), all)
}

/// The ConfigMap of the CNI agent, which logs in nowhere.
pub(crate) fn of_cni_agent(checked: &Checked<'_>) -> ConfigMap {
    let vrouter = &checked.services.vrouter;
    let mut all = Variables::new();
    extend(
        &mut all,
        &[
            ("KUBEMANAGER_NESTED_MODE", "1".to_owned()),
            ("KUBERNETES_CLUSTER_NAME", checked.given.nested.cluster_name.clone()),
            // Upstream's spelling.
            ("KUBERNESTES_NESTED_VROUTER_VIP", vrouter.addresses.clone()),
            ("VROUTER_PORT", vrouter.port.to_string()),
            ("VROUTER_MTU", checked.mtu.to_string()),
        ],
    );
    if let Some(interface) = &checked.given.parent_interface {
        extend(&mut all, &[("PHYSICAL_INTERFACE", interface.clone())]);
    }
    config_map(checked, &checked.names.cni_agent_environment(), all)
}

fn config_map(checked: &Checked<'_>, name: &str, variables: Variables) -> ConfigMap {
    ConfigMap { metadata: metadata(checked, name), data: Some(variables), ..ConfigMap::default() }
}

fn extend(all: &mut Variables, more: &[(&str, String)]) {
    all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
}

/// Containers read their environment at the start only: another digest in the pod's annotation restarts them.
pub(crate) fn digest(map: &ConfigMap) -> String {
    let mut hash = Sha256::new();
    for (name, value) in map.data.iter().flatten() {
        hash.update(format!("{name}={value}\n"));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cluster(checked: &Checked<'_>) -> Vec<(&'static str, String)> {
    let given = checked.given;
    let fabric = &given.fabric;
    let subnets = &given.subnets;
    let ip_fabric = match subnets.ip_fabric.as_slice() {
        [] => IP_FABRIC_SUBNET.to_owned(),
        all => all.join(" "),
    };
    vec![
        ("CLOUD_ORCHESTRATOR", "kubernetes".to_owned()),
        // Any other value that is not 0 gives a mode that is neither.
        ("KUBEMANAGER_NESTED_MODE", "1".to_owned()),
        ("KUBERNETES_API_SERVER", given.api_server.host.clone()),
        ("KUBERNETES_API_SECURE_PORT", checked.api_port.to_string()),
        ("K8S_TOKEN_FILE", TOKEN_FILE.to_owned()),
        ("KUBERNETES_CLUSTER_NAME", given.nested.cluster_name.clone()),
        ("KUBERNETES_CLUSTER_DOMAIN", checked.network.domain.to_owned()),
        ("KUBERNETES_CLUSTER_NETWORK", network_literal(&checked.network)),
        ("KUBERNETES_POD_SUBNETS", subnets.pod.join(" ")),
        ("KUBERNETES_SERVICE_SUBNETS", subnets.service.join(" ")),
        ("KUBERNETES_IP_FABRIC_SUBNETS", ip_fabric),
        ("KUBERNETES_IP_FABRIC_FORWARDING", fabric.forwarding.to_string()),
        ("KUBERNETES_IP_FABRIC_SNAT", fabric.snat.to_string()),
        ("KUBERNETES_HOST_NETWORK_SERVICE", fabric.host_network_service.to_string()),
        ("KUBERNETES_PUBLIC_FIP_POOL", pool_literal(given.floating_ip_pool.as_ref())),
    ]
}

/// A literal of Python. No part has a quote or a backslash: that has been checked.
fn network_literal(network: &Network<'_>) -> String {
    let Network { domain, project, name } = network;
    format!("{{'domain': '{domain}', 'project': '{project}', 'name': '{name}'}}")
}

fn pool_literal(pool: Option<&FloatingIpPool>) -> String {
    let Some(FloatingIpPool { domain, project, network, name }) = pool else {
        return "{}".to_owned();
    };
    format!(
        "{{'domain': '{domain}', 'project': '{project}', 'network': '{network}', 'name': '{name}'}}"
    )
}

/// With every list that upstream would derive of another, since each may be on nodes of its own.
fn underlay(checked: &Checked<'_>) -> Vec<(&'static str, String)> {
    let services = &checked.services;
    let config = &services.config;
    let mut all = vec![
        // What lists that are of no use here are derived of, instead of an address of this node.
        ("CONTROLLER_NODES", config.addresses.clone()),
        ("CONFIG_NODES", config.addresses.clone()),
        ("CONFIG_API_PORT", config.port.to_string()),
        ("CONFIG_API_SSL_ENABLE", python(config.transport)),
        ("ANALYTICS_NODES", services.analytics.addresses.clone()),
        ("COLLECTOR_PORT", services.analytics.port.to_string()),
        ("SANDESH_SSL_ENABLE", python(services.analytics.transport)),
        ("CONFIGDB_NODES", services.config_database.addresses.clone()),
        ("CONFIGDB_CQL_PORT", services.config_database.port.to_string()),
        ("CONFIGDB_CASSANDRA_DRIVER", "cql".to_owned()),
        ("CASSANDRA_SSL_ENABLE", python(services.config_database.transport)),
        ("ZOOKEEPER_NODES", services.zookeeper.addresses.clone()),
        ("ZOOKEEPER_PORT", services.zookeeper.port.to_string()),
        ("RABBITMQ_NODES", services.rabbitmq.addresses.clone()),
        ("RABBITMQ_NODE_PORT", services.rabbitmq.port.to_string()),
        ("RABBITMQ_USE_SSL", python(services.rabbitmq.transport)),
    ];
    if services.rabbitmq.transport == Transport::Tls
        && checked.given.client_certificate_secret.is_none()
    {
        // The entrypoint would name files that are not there; an empty name means none.
        all.push(("KUBERNETES__VNC__kombu_ssl_certfile", String::new()));
        all.push(("KUBERNETES__VNC__kombu_ssl_keyfile", String::new()));
    }
    all
}

/// As Python's reader of INI files takes it.
fn python(transport: Transport) -> String {
    match transport {
        Transport::Plain => "False".to_owned(),
        Transport::Tls => "True".to_owned(),
    }
}

fn authentication(checked: &Checked<'_>) -> Vec<(&'static str, String)> {
    let Some(keystone) = &checked.given.keystone else {
        return vec![("AUTH_MODE", "noauth".to_owned())];
    };
    let protocol = match keystone.protocol {
        Protocol::Http => "http",
        Protocol::Https => "https",
    };
    let mut all = vec![
        ("AUTH_MODE", "keystone".to_owned()),
        ("KEYSTONE_AUTH_HOST", keystone.host.clone()),
        ("KEYSTONE_AUTH_ADMIN_PORT", checked.keystone_port.to_string()),
        ("KEYSTONE_AUTH_PROTO", protocol.to_owned()),
        ("KEYSTONE_AUTH_URL_VERSION", "/v3".to_owned()),
        // Upstream's default is True.
        ("KEYSTONE_AUTH_INSECURE", "False".to_owned()),
        ("KEYSTONE_AUTH_ADMIN_USER", keystone.user.clone()),
        ("KEYSTONE_AUTH_ADMIN_TENANT", keystone.project.clone()),
        ("KEYSTONE_AUTH_USER_DOMAIN_NAME", keystone.domain.clone()),
        ("KEYSTONE_AUTH_PROJECT_DOMAIN_NAME", keystone.domain.clone()),
    ];
    if checked.given.checks_keystone() {
        all.push(("KEYSTONE_AUTH_CA_CERTFILE", AUTHORITIES.to_owned()));
    }
    all
}

/// The entrypoints trace themselves at SYS_DEBUG, passwords included, so that only the daemon gets that level.
fn log(checked: &Checked<'_>) -> Vec<(&'static str, String)> {
    let level = |text: &str| ("LOG_LEVEL", text.to_owned());
    match checked.given.log_level {
        None => vec![level("SYS_NOTICE")],
        Some(LogLevel::Info) => vec![level("SYS_INFO")],
        Some(LogLevel::Debug) => {
            vec![level("SYS_INFO"), ("KUBERNETES__DEFAULTS__log_level", "SYS_DEBUG".to_owned())]
        }
        Some(LogLevel::Warning) => vec![level("SYS_WARN")],
        Some(LogLevel::Error) => vec![level("SYS_ERR")],
        Some(LogLevel::Critical) => vec![level("SYS_CRIT")],
        Some(LogLevel::None) => vec![level("SYS_EMERG")],
    }
}

/// kube-manager's variables that are secret, or differ from node to node.
pub(crate) fn references(checked: &Checked<'_>) -> Vec<EnvVar> {
    let given = checked.given;
    // Else it would be looked for among the addresses of config, and then be that of any interface.
    let mut all = vec![of_node("KUBEMANAGER_NODES")];
    if let Some(keystone) = &given.keystone {
        all.extend(of_keystone(keystone));
    }
    if let Some(secret) = &given.nested.underlay.rabbitmq_secret_name {
        let key = |key: &str| SecretKey { secret: secret.clone(), key: key.to_owned() };
        all.push(secret_variable("RABBITMQ_USER", &key("user")));
        all.push(secret_variable("RABBITMQ_PASSWORD", &key("password")));
        all.push(secret_variable("RABBITMQ_VHOST", &key("vhost")));
    }
    if let Some(escaped) = &given.escaped_rabbitmq_password {
        all.push(secret_variable("KUBERNETES__VNC__rabbit_password", escaped));
    }
    all
}

fn of_keystone(keystone: &Keystone) -> Vec<EnvVar> {
    let mut all = vec![secret_variable("KEYSTONE_AUTH_ADMIN_PASSWORD", &keystone.password)];
    // It is appended to the file, where the last value of a key counts.
    if let Some(escaped) = &keystone.escaped_password {
        all.push(secret_variable("KUBERNETES__AUTH__auth_password", escaped));
    }
    all
}

fn secret_variable(name: &str, key: &SecretKey) -> EnvVar {
    let secret =
        SecretKeySelector { key: key.key.clone(), name: key.secret.clone(), optional: None };
    let source = EnvVarSource { secret_key_ref: Some(secret), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() }
}

/// A variable with the node's address.
pub(crate) fn of_node(name: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: "status.hostIP".to_owned(), api_version: None };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() }
}
