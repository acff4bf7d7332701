//! What the settings of a Cassandra come to: where its data is, and the values of its files.

use opensdn_crds::cassandra::{CassandraConfiguration, CassandraParameters};
use opensdn_crds::component::{CONFIG_DATABASE_NODE_MANAGER, DATABASE_NODE_MANAGER};
use opensdn_crds::pod::LogLevel;
use serde::de::Error as _;
use serde_json::{Value, json};

use super::super::shared::around::{around, is_of_analytics};
use super::super::shared::{logs, port};
use super::{KIND, ROW};
use crate::component::{Given, SettingsError, Volume};

const THRIFT: u16 = ROW.port_of_field("port");
pub(super) const CQL: u16 = ROW.port_of_field("cqlPort");
const JMX: u16 = ROW.port_of_field("jmxLocalPort");

/// What it is, and where it has its data on a node: tf-operator's, `C/cassandra/sts.go:99-110`. The folder of a
/// database is another when a second comes or goes, so it has a file that says whose it is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) node_type: &'static str,
    /// The port of the node manager.
    pub(super) node_manager: u16,
    pub(super) configuration: &'static str,
    /// The variable of the provisioner. Upstream's image takes config's nodes for those of a database of config.
    pub(super) nodes: &'static str,
    pub(super) data: Volume,
    pub(super) logs: Volume,
}

const DATABASE: Place = Place {
    node_type: "database",
    node_manager: DATABASE_NODE_MANAGER,
    configuration: "database-nodemgr.conf",
    nodes: "ANALYTICSDB_NODES",
    data: Volume::data("database-cassandra-data", "/var/lib/contrail/database"),
    logs: logs("/var/log/contrail/database"),
};
const CONFIG_DATABASE: Place = Place {
    node_type: "config-database",
    node_manager: CONFIG_DATABASE_NODE_MANAGER,
    configuration: "config-database-nodemgr.conf",
    nodes: "CONFIGDB_NODES",
    data: Volume::data("config-database-cassandra-data", "/var/lib/contrail/config-database"),
    logs: logs("/var/log/contrail/config-database"),
};

pub(super) fn place(given: &Given<'_>) -> Place {
    let is_alone = given.peers.of_kind(KIND).all(|peer| peer.name == given.name);
    if is_alone || is_of_analytics(given.name) { DATABASE } else { CONFIG_DATABASE }
}

pub(super) type Environment = Vec<(&'static str, String)>;

pub(super) fn environment(
    place: Place,
    cql: u16,
    settings: &CassandraConfiguration,
) -> Result<Environment, SettingsError> {
    let mut heap = Vec::new();
    for (option, field, given) in [
        ("-Xms", "minHeapSize", &settings.min_heap_size),
        ("-Xmx", "maxHeapSize", &settings.max_heap_size),
    ] {
        let Some(given) = given.as_deref().filter(|given| !given.is_empty()) else { continue };
        if !is_size(given) {
            let why = format!("{field} is {given:?}; write a number with k, m or g, as 4g");
            return Err(serde_json::Error::custom(why).into());
        }
        heap.push(format!("{option}{given}"));
    }
    let mut env = vec![("NODE_TYPE", place.node_type.to_owned()), ("CQLSH_PORT", cql.to_string())];
    if !heap.is_empty() {
        env.push(("JVM_EXTRA_OPTS", heap.join(" ")));
    }
    Ok(env)
}

/// The image's scripts split it into words and put it into a command.
fn is_size(text: &str) -> bool {
    let number = text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']).unwrap_or(text);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn values(
    given: &Given<'_>,
    settings: &CassandraConfiguration,
    place: Place,
    reaper: bool,
) -> Value {
    let own = given.peers.of_kind(KIND).find(|peer| peer.name == given.name);
    let own = own.map(|peer| peer.addresses.join(",")).unwrap_or_default();
    let mut values = json!({
        "name": given.name,
        "port": port(settings.port, THRIFT),
        "cql_port": port(settings.cql_port, CQL),
        "storage_port": port(settings.storage_port, ROW.port_of_field("storagePort")),
        "ssl_storage_port": port(settings.ssl_storage_port, ROW.port_of_field("sslStoragePort")),
        "jmx_port": port(settings.jmx_local_port, JMX),
        "reaper": reaper,
        "reaper_app_port": port(settings.reaper_app_port, ROW.port_of_field("reaperAppPort")),
        "reaper_adm_port": port(settings.reaper_adm_port, ROW.port_of_field("reaperAdmPort")),
        "minimum_disk_gb": settings.minimum_disk_gb.unwrap_or(4),
        "node_manager_level": node_manager_level(given),
        "provisioner": {(place.nodes): own},
        "around": around(given),
    });
    let parameters = parameters(settings.cassandra_parameters.clone().unwrap_or_default());
    if let (Value::Object(values), Value::Object(parameters)) = (&mut values, parameters) {
        values.extend(parameters);
    }
    values
}

fn parameters(given: CassandraParameters) -> Value {
    let number =
        |given: Option<i64>, default: i64| given.filter(|one| *one != 0).unwrap_or(default);
    json!({
        "compaction_throughput": number(given.compaction_throughput_mb_per_sec, 16),
        "concurrent_reads": number(given.concurrent_reads, 32),
        "concurrent_writes": number(given.concurrent_writes, 32),
        "concurrent_counter_writes": number(given.concurrent_counter_writes, 32),
        "concurrent_materialized_view_writes": number(given.concurrent_materialized_view_writes, 32),
        "concurrent_compactors": number(given.concurrent_compactors, 1),
        "memtable_flush_writers": number(given.memtable_flush_writers, 2),
        "memtable_allocation_type": given.memtable_allocation_type.map_or_else(|| json!("heap_buffers"), |one| json!(one)),
    })
}

/// tf-operator has other words for this node manager than for all others (`cassandra_types.go:267-277`).
fn node_manager_level(given: &Given<'_>) -> &'static str {
    match given.common.log_level {
        Some(LogLevel::Debug) => "DEBUG",
        Some(LogLevel::Error) => "ERROR",
        _ => "INFO",
    }
}

/// The ports as the status has them.
pub(super) fn ports(settings: &CassandraConfiguration) -> Value {
    let text = |given, default| port(given, default).to_string();
    json!({"ports": {
        "port": text(settings.port, THRIFT),
        "cqlPort": text(settings.cql_port, CQL),
        "jmxPort": text(settings.jmx_local_port, JMX),
    }})
}
