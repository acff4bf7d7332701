//! What the files of several components say of those around them, and how the Config API is used.

use opensdn_crds::component;
use opensdn_crds::pod::{AuthMode, KeystoneAuthParameters};
use serde_json::{Value, json};

use crate::component::{Credentials, Given, Password};
use crate::peers::{Peer, Peers};
use crate::release::Release;

/// The name of a Cassandra for analytics begins so; others are of config (tf-operator,
/// `pkg/apis/tf/v1alpha1/cassandra_types.go:156`).
const ANALYTICS_DATABASE: &str = "analyticsdb";
/// No field changes it.
pub(in crate::components) const KAFKA: u16 = component::row("AnalyticsAlarm").fixed_port("kafka");
/// As tf-operator has it (`pkg/apis/tf/v1alpha1/auth_types.go:60-80`).
const KEYSTONE_PASSWORD: &str = "contrail123";

/// The database of analytics, or the only one.
pub(in crate::components) fn analytics_database(peers: &Peers) -> Option<&Peer> {
    let own = peers.of_kind("Cassandra").find(|peer| is_of_analytics(&peer.name));
    own.or_else(|| peers.first("Cassandra"))
}

/// The database of config, or the only one.
pub(in crate::components) fn config_database(peers: &Peers) -> Option<&Peer> {
    let own = peers.of_kind("Cassandra").find(|peer| !is_of_analytics(&peer.name));
    own.or_else(|| peers.first("Cassandra"))
}

/// Whether a Cassandra of that name is for analytics.
pub(in crate::components) fn is_of_analytics(name: &str) -> bool {
    name.starts_with(ANALYTICS_DATABASE)
}

/// For the templates: lists of the members of those around, each with the separator that its files need.
///
/// `*_nodes` are addresses with commas; other lists are `ADDRESS:PORT` with spaces, and
/// with commas where the name ends in `_comma`.
pub(in crate::components) fn around(given: &Given<'_>) -> Value {
    let peers = given.peers;
    let addresses =
        |kind: &str| peers.first(kind).map(|peer| peer.addresses.join(",")).unwrap_or_default();
    let port = |kind: &str, field: &str| peers.first(kind).map_or(0, |peer| peer.port(field));
    let config_database = config_database(peers);
    let database =
        |field: &str| config_database.map(|one| one.endpoints(field).join(" ")).unwrap_or_default();
    let spaced = |kind: &str, field: &str| peers.list(kind, field);
    let comma = |kind: &str, field: &str| peers.list(kind, field).replace(' ', ",");
    let kafka = |peer: &Peer| {
        let endpoints = peer.addresses.iter().map(|address| format!("{address}:{KAFKA}"));
        endpoints.collect::<Vec<_>>().join(" ")
    };
    let is_by_thrift = given.release == Release::UpToR21;
    json!({
        "config_nodes": addresses("Config"),
        "config_api": spaced("Config", "apiPort"),
        "config_port": port("Config", "apiPort"),
        "collectors": spaced("Analytics", "collectorPort"),
        "analytics_nodes": addresses("Analytics"),
        "analytics_api": spaced("Analytics", "analyticsPort"),
        "analytics_port": port("Analytics", "analyticsPort"),
        "control_nodes": addresses("Control"),
        "snmp_nodes": addresses("AnalyticsSnmp"),
        "alarm_nodes": addresses("AnalyticsAlarm"),
        "kafka": peers.first("AnalyticsAlarm").map(kafka).unwrap_or_default(),
        "has_query_engine": peers.first("QueryEngine").is_some(),
        // The port is that of the driver.
        "database_of_python": database(if is_by_thrift { "port" } else { "cqlPort" }),
        "is_by_thrift": is_by_thrift,
        "database_cql": database("cqlPort"),
        "database_cql_port": config_database.map_or(0, |one| one.port("cqlPort")),
        "database_jmx_port": config_database.map_or(0, |one| one.port("jmxLocalPort")),
        "zookeeper_comma": comma("Zookeeper", "clientPort"),
        "zookeeper": spaced("Zookeeper", "clientPort"),
        "rabbitmq_nodes": addresses("Rabbitmq"),
        "rabbitmq_port": port("Rabbitmq", "port"),
        "rabbitmq_comma": comma("Rabbitmq", "port"),
        "rabbitmq": spaced("Rabbitmq", "port"),
        "redis": spaced("Redis", "redisPort"),
        "redis_port": port("Redis", "redisPort"),
        "is_from_r25": given.release == Release::FromR25,
        "auth": authentication(given),
    })
}

/// How the Config API knows who asks, for the templates. Without Keystone all but the mode means nothing.
fn authentication(given: &Given<'_>) -> Value {
    let mode = if keystone(given).is_some() { "keystone" } else { "noauth" };
    let keystone = keystone_parameters(given);
    let text = |given: Option<String>, default: &str| {
        given.filter(|given| !given.is_empty()).unwrap_or_else(|| default.to_owned())
    };
    let protocol = text(keystone.auth_protocol, "https");
    let address = text(keystone.address, "127.0.0.1");
    json!({
        "mode": mode,
        "is_https": protocol == "https",
        "protocol": protocol,
        "address": address,
        "port": keystone.port.unwrap_or(5000),
        "admin_port": keystone.admin_port.unwrap_or(35357),
        "tenant": text(keystone.admin_tenant, "admin"),
        "user": text(keystone.admin_username, "admin"),
        "region": text(keystone.region, "RegionOne"),
        "user_domain": text(keystone.user_domain_name, "Default"),
        "project_domain": text(keystone.project_domain_name, "Default"),
        "insecure": keystone.insecure.unwrap_or(true),
        "password": if keystone_secret(given).is_some() {
            "@credentials/keystone/password@"
        } else {
            "@credentials/own/keystone-password@"
        },
    })
}

/// Where it asks Keystone.
pub(in crate::components) fn keystone(given: &Given<'_>) -> Option<KeystoneAuthParameters> {
    let parameters = given.common.auth_parameters.as_ref()?;
    (parameters.auth_mode == Some(AuthMode::Keystone)).then(|| keystone_parameters(given))
}

/// What is said of Keystone, whether it is asked or not.
pub(in crate::components) fn keystone_parameters(given: &Given<'_>) -> KeystoneAuthParameters {
    let parameters = given.common.auth_parameters.as_ref();
    let parameters = parameters.and_then(|auth| auth.keystone_auth_parameters.clone());
    parameters.unwrap_or_default()
}

/// The Secret with the password of the administrator.
pub(in crate::components) fn keystone_secret(given: &Given<'_>) -> Option<String> {
    let secret = given.common.auth_parameters.as_ref()?.keystone_secret_name.clone();
    secret.filter(|name| !name.is_empty())
}

/// The Secrets whose keys the files of a component name that uses the message bus and Keystone.
pub(in crate::components) fn credentials(given: &Given<'_>) -> Vec<Credentials> {
    let bus = given.peers.first("Rabbitmq").map(|peer| {
        let secret =
            peer.text("secret").map_or_else(|| format!("{}-secret", peer.name), str::to_owned);
        Credentials { folder: "rabbitmq", secret }
    });
    let keystone = keystone(given).and_then(|_| keystone_secret(given));
    let keystone = keystone.map(|secret| Credentials { folder: "keystone", secret });
    bus.into_iter().chain(keystone).collect()
}

/// The password for Keystone, where it is in the spec and not in a Secret.
pub(in crate::components) fn passwords(given: &Given<'_>) -> Vec<Password> {
    let keystone = keystone(given).filter(|_| keystone_secret(given).is_none());
    let password = keystone.map(|keystone| Password {
        key: "keystone-password",
        given: keystone.admin_password.or_else(|| Some(KEYSTONE_PASSWORD.to_owned())),
        letters: 0,
    });
    password.into_iter().collect()
}
