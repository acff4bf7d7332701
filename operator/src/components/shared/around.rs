//! What the files of several components say of those around them, and how the Config API is used.

use opensdn_crds::component;
use serde_json::{Value, json};

use super::keystone;

use crate::component::{Credentials, Given, Password};
use crate::peers::{Peer, Peers};
use crate::release::Release;

/// The name of a Cassandra for analytics begins so; others are of config (tf-operator,
/// `pkg/apis/tf/v1alpha1/cassandra_types.go:156`).
const ANALYTICS_DATABASE: &str = "analyticsdb";
/// No field changes it.
pub(in crate::components) const KAFKA: u16 = component::row("AnalyticsAlarm").fixed_port("kafka");

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
    let mode = if keystone::is_asked(given.common) { "keystone" } else { "noauth" };
    let said = keystone::parameters(given.common);
    let login = keystone::Login::of(given.common);
    json!({
        "mode": mode,
        "is_https": login.protocol == "https",
        "protocol": login.protocol,
        "address": login.address,
        "port": said.port.unwrap_or(5000),
        "admin_port": login.admin_port,
        "tenant": login.tenant,
        "user": login.user,
        "region": keystone::text(said.region, "RegionOne"),
        "user_domain": login.user_domain,
        "project_domain": login.project_domain,
        "insecure": login.insecure,
        "password": if keystone::secret(given.common).is_some() {
            "@credentials/keystone/password@"
        } else {
            "@credentials/own/keystone-password@"
        },
    })
}

/// The Secrets whose keys the files of a component name that uses the message bus and Keystone.
pub(in crate::components) fn credentials(given: &Given<'_>) -> Vec<Credentials> {
    let bus = given.peers.first("Rabbitmq").map(|peer| {
        let secret =
            peer.text("secret").map_or_else(|| format!("{}-secret", peer.name), str::to_owned);
        of_bus(secret)
    });
    let keystone = keystone::secret(given.common).filter(|_| keystone::is_asked(given.common));
    let keystone = keystone.map(keystone::credentials);
    bus.into_iter().chain(keystone).collect()
}

/// The keys of the message bus.
pub(in crate::components) fn of_bus(secret: String) -> Credentials {
    Credentials { folder: "rabbitmq", secret, keys: &["user", "password", "vhost"] }
}

/// The password for Keystone, where it is in the spec and not in a Secret.
pub(in crate::components) fn passwords(given: &Given<'_>) -> Vec<Password> {
    let common = given.common;
    let is_own = keystone::is_asked(common) && keystone::secret(common).is_none();
    let password = is_own.then(|| Password {
        key: keystone::OWN_KEY,
        given: keystone::parameters(common)
            .admin_password
            .or_else(|| Some(keystone::PASSWORD.to_owned())),
        letters: 0,
    });
    password.into_iter().collect()
}
