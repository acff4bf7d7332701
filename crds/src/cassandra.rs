//! Cassandra: the config database and the analytics database. Spec, status and the rules of one
//! object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;
use crate::storage::Storage;

enumeration! {
    /// Where Cassandra keeps what is not yet on disk.
    pub enum MemtableAllocationType {
        /// On the Java heap.
        HeapBuffers = "heap_buffers",
        /// Outside the heap, names on it.
        OffheapBuffers = "offheap_buffers",
        /// Outside the heap.
        OffheapObjects = "offheap_objects",
    }
}

/// What a Cassandra database shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Cassandra",
        plural = "cassandras",
        shortname = "tfcas",
        namespaced,
        status = "CassandraStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Cassandra is a Cassandra database, of the configuration (configdb1) or of analytics (analyticsdb1): one member on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CassandraSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only Cassandra has.
    pub service_configuration: CassandraConfiguration,
}

/// The settings of a Cassandra database.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct CassandraConfiguration {
    /// The images of containers cassandra, nodemanager and provisioner.
    pub containers: Option<Vec<Container>>,
    /// Thrift port of the clients. Default 9161; of analyticsdb1 usually 9160.
    pub port: Option<i64>,
    /// CQL port of the clients. Default 9041; of analyticsdb1 usually 9042.
    pub cql_port: Option<i64>,
    /// Port between the members. Default 7012; of analyticsdb1 usually 7010.
    pub storage_port: Option<i64>,
    /// TLS port between the members. Default 7013; of analyticsdb1 usually 7011.
    pub ssl_storage_port: Option<i64>,
    /// Port of the management interface. Default 7201; of analyticsdb1 usually 7200.
    pub jmx_local_port: Option<i64>,
    /// Java heap at start, such as 512M or 4g. Set both heap sizes or neither.
    pub min_heap_size: Option<String>,
    /// Largest Java heap, such as 4g; at most half of the node's memory. Set both heap sizes or
    /// neither.
    pub max_heap_size: Option<String>,
    /// GiB, used or free, below which the node manager calls the disk of the data too small. Default 4.
    #[serde(rename = "minimumDiskGB")]
    pub minimum_disk_gb: Option<i64>,
    /// Whether the Reaper repairs this database. Default false.
    pub reaper_enabled: Option<bool>,
    /// Port of the Reaper's API. Default 8071.
    pub reaper_app_port: Option<i64>,
    /// Port of the Reaper's administration. Default 8072.
    pub reaper_adm_port: Option<i64>,
    /// No effect in tf-operator: members listen on the address of the pod.
    pub listen_address: Option<String>,
    /// No effect in tf-operator: always true.
    #[serde(rename = "startRPC")]
    pub start_rpc: Option<bool>,
    /// Tuning, written into cassandra.yaml.
    pub cassandra_parameters: Option<CassandraParameters>,
    /// Volumes for what the members store. Default: a folder of each node below
    /// /var/lib/contrail.
    pub storage: Option<Storage>,
}

/// Tuning of Cassandra. 0 or unset means the default.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = parameter_constraints))]
#[serde(rename_all = "camelCase")]
pub struct CassandraParameters {
    /// MiB per second of all compactions. Default 16.
    pub compaction_throughput_mb_per_sec: Option<i64>,
    /// Default 32.
    pub concurrent_reads: Option<i64>,
    /// Default 32.
    pub concurrent_writes: Option<i64>,
    /// Default 32.
    pub concurrent_counter_writes: Option<i64>,
    /// Default 32.
    pub concurrent_materialized_view_writes: Option<i64>,
    /// Default 1.
    pub concurrent_compactors: Option<i64>,
    /// Default 2.
    pub memtable_flush_writers: Option<i64>,
    /// Where what is not yet on disk is kept. Default heap_buffers.
    pub memtable_allocation_type: Option<MemtableAllocationType>,
}

/// What became of a Cassandra database.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CassandraStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The ports in use.
    pub ports: Option<CassandraStatusPorts>,
}

/// The ports in use, as strings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CassandraStatusPorts {
    /// Thrift port.
    pub port: Option<String>,
    /// CQL port.
    pub cql_port: Option<String>,
    /// Management port.
    pub jmx_port: Option<String>,
}

/// As many digits at most as fit into the integers of CEL once they are bytes.
#[cfg(feature = "kube")]
const HEAP_SIZE: &str = "^([1-9][0-9]{0,14}|[1-9][0-9]{0,8}[kKmMgG])$";

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    const HEAP: &str = "OSDN1502";
    let minimum = bytes("minHeapSize");
    let maximum = bytes("maxHeapSize");
    let _ = crate::schema::Fields::of(schema)
        .ports(
            "OSDN1519",
            &[
                "port",
                "cqlPort",
                "storagePort",
                "sslStoragePort",
                "jmxLocalPort",
                "reaperAppPort",
                "reaperAdmPort",
            ],
        )
        .matches(
            HEAP,
            &["minHeapSize", "maxHeapSize"],
            HEAP_SIZE,
            16,
            "a number of bytes, or with k, m or g, such as 4g",
        )
        .rule(
            HEAP,
            &format!("{minimum} == 0 || {maximum} == 0 || {minimum} <= {maximum}"),
            "minHeapSize must not be larger than maxHeapSize",
        );
}

#[cfg(feature = "kube")]
fn parameter_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).at_least(
        "OSDN1507",
        &[
            "compactionThroughputMbPerSec",
            "concurrentReads",
            "concurrentWrites",
            "concurrentCounterWrites",
            "concurrentMaterializedViewWrites",
            "concurrentCompactors",
            "memtableFlushWriters",
        ],
        0,
        "0 (the default) or more",
    );
}

/// CEL for the size in bytes; 0 when it is unset or unreadable, which another rule reports.
#[cfg(feature = "kube")]
fn bytes(field: &str) -> String {
    let text = format!("self.{field}");
    let number =
        format!("int({text}.lowerAscii().replace('k', '').replace('m', '').replace('g', ''))");
    let factor = format!(
        "({text}.matches('[kK]') ? {} : {text}.matches('[mM]') ? {} : {text}.matches('[gG]') ? {} : 1)",
        1 << 10,
        1 << 20,
        1 << 30
    );
    format!("(has({text}) && {text}.matches('{HEAP_SIZE}') ? {number} * {factor} : 0)")
}
