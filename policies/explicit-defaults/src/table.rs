//! The defaults themselves: kind by kind, as tf-operator has them in its code.

use opensdn_policy_components::is_analytics_database;
use opensdn_policy_sdk::Operation;
use serde::Serialize;

/// A default value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Static {
    Number(i64),
    Switch(bool),
    Text(&'static str),
}

use Static::{Number, Switch, Text};

type Defaults = &'static [(&'static str, Static)];

/// Below `keystoneAuthParameters`, with authMode keystone.
pub(crate) const KEYSTONE: Defaults = &[
    ("/authProtocol", Text("https")),
    ("/port", Number(5000)),
    ("/adminTenant", Text("admin")),
    ("/region", Text("RegionOne")),
    ("/userDomainName", Text("Default")),
    ("/projectDomainName", Text("Default")),
];

/// In a Config that has the block.
pub(crate) const LINK_LOCAL: Defaults = &[
    ("/linklocalServiceConfig/ipFabricServicePort", Number(8775)),
    ("/linklocalServiceConfig/name", Text("metadata")),
    ("/linklocalServiceConfig/ip", Text("169.254.169.254")),
    ("/linklocalServiceConfig/port", Number(80)),
];

const ANALYTICS: Defaults = &[
    ("/analyticsPort", Number(8081)),
    ("/collectorPort", Number(8086)),
    ("/analyticsIntrospectPort", Number(8090)),
    ("/collectorIntrospectPort", Number(8089)),
    ("/analyticsDataTTL", Number(48)),
    ("/analyticsConfigAuditTTL", Number(2160)),
    ("/analyticsStatisticsTTL", Number(4)),
    ("/analyticsFlowTTL", Number(2)),
];

const CASSANDRA: Defaults = &[
    ("/minimumDiskGB", Number(4)),
    ("/reaperEnabled", Switch(false)),
    ("/reaperAppPort", Number(8071)),
    ("/reaperAdmPort", Number(8072)),
    ("/cassandraParameters/compactionThroughputMbPerSec", Number(16)),
    ("/cassandraParameters/concurrentReads", Number(32)),
    ("/cassandraParameters/concurrentWrites", Number(32)),
    ("/cassandraParameters/concurrentCounterWrites", Number(32)),
    ("/cassandraParameters/concurrentMaterializedViewWrites", Number(32)),
    ("/cassandraParameters/concurrentCompactors", Number(1)),
    ("/cassandraParameters/memtableFlushWriters", Number(2)),
    ("/cassandraParameters/memtableAllocationType", Text("heap_buffers")),
];

const CASSANDRA_PORTS: Defaults = &[
    ("/port", Number(9161)),
    ("/cqlPort", Number(9041)),
    ("/storagePort", Number(7012)),
    ("/sslStoragePort", Number(7013)),
    ("/jmxLocalPort", Number(7201)),
];

/// Upstream's template has these for the second Cassandra: on the host's network it cannot have
/// those of the first.
const ANALYTICS_DATABASE_PORTS: Defaults = &[
    ("/port", Number(9160)),
    ("/cqlPort", Number(9042)),
    ("/storagePort", Number(7010)),
    ("/sslStoragePort", Number(7011)),
    ("/jmxLocalPort", Number(7200)),
];

const CONFIG: Defaults = &[
    ("/apiPort", Number(8082)),
    ("/apiAdminPort", Number(8095)),
    ("/apiIntrospectPort", Number(8084)),
    ("/apiWorkerCount", Number(1)),
    ("/schemaIntrospectPort", Number(8087)),
    ("/svcMonitorIntrospectPort", Number(8088)),
    ("/deviceManagerIntrospectPort", Number(8096)),
    ("/useExternalTFTP", Switch(false)),
    ("/bgpAutoMesh", Switch(true)),
    ("/bgpEnable4Byte", Switch(false)),
    ("/globalASNNumber", Number(64512)),
];

const CONTROL: Defaults = &[
    ("/asnNumber", Number(64512)),
    ("/bgpPort", Number(179)),
    ("/xmppPort", Number(5269)),
    ("/dnsPort", Number(53)),
    ("/dnsIntrospectPort", Number(8092)),
];

const KUBEMANAGER: Defaults = &[
    ("/cloudOrchestrator", Text("kubernetes")),
    ("/ipFabricSubnets", Text("10.64.0.0/12")),
    ("/ipFabricForwarding", Switch(false)),
    ("/ipFabricSnat", Switch(true)),
    ("/hostNetworkService", Switch(false)),
];

const RABBITMQ: Defaults = &[
    ("/port", Number(5673)),
    ("/erlEpmdPort", Number(4371)),
    ("/mirroredQueueMode", Text("all")),
    ("/clusterPartitionHandling", Text("autoheal")),
];

const REDIS: Defaults = &[("/redisPort", Number(6389))];

const VROUTER: Defaults = &[
    ("/cloudOrchestrator", Text("kubernetes")),
    ("/hypervisorType", Text("kvm")),
    ("/logLocal", Number(1)),
    ("/sslEnable", Switch(true)),
];

const ZOOKEEPER: Defaults = &[
    ("/clientPort", Number(2181)),
    ("/electionPort", Number(2888)),
    ("/serverPort", Number(3888)),
    ("/adminEnabled", Switch(true)),
    ("/adminPort", Number(2182)),
];

/// The defaults of a kind, by pointers below its serviceConfiguration.
pub(crate) fn defaults_of(
    kind: &str,
    name: &str,
    operation: Operation,
) -> impl Iterator<Item = (&'static str, Static)> {
    let (first, second): (Defaults, Defaults) = match kind {
        "Analytics" => (ANALYTICS, &[]),
        "Cassandra" => (cassandra_ports(name, operation), CASSANDRA),
        "Config" => (CONFIG, &[]),
        "Control" => (CONTROL, &[]),
        "Kubemanager" => (KUBEMANAGER, &[]),
        "Rabbitmq" => (RABBITMQ, &[]),
        "Redis" => (REDIS, &[]),
        "Vrouter" => (VROUTER, &[]),
        "Zookeeper" => (ZOOKEEPER, &[]),
        _ => (&[], &[]),
    };
    first.iter().chain(second).copied()
}

/// A database that exists and does not name its ports has been running with those of the code: to
/// write others would move it.
fn cassandra_ports(name: &str, operation: Operation) -> Defaults {
    if is_analytics_database(name) && operation == Operation::Create {
        ANALYTICS_DATABASE_PORTS
    } else {
        CASSANDRA_PORTS
    }
}
