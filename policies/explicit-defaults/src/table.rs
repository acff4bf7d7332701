//! The defaults themselves: kind by kind, as tf-operator has them in its code. Those of ports are in
//! the table of components.

use opensdn_policy_components::{
    component::{ANALYTICS_DATABASE_PORTS, Component, Setting},
    is_analytics_database,
};
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
    ("/analyticsDataTTL", Number(48)),
    ("/analyticsConfigAuditTTL", Number(2160)),
    ("/analyticsStatisticsTTL", Number(4)),
    ("/analyticsFlowTTL", Number(2)),
];

/// Without it tf-operator's process ends with a panic.
pub(crate) const REAPER: &str = "/reaperEnabled";

const CASSANDRA: Defaults = &[
    ("/minimumDiskGB", Number(4)),
    (REAPER, Switch(false)),
    ("/cassandraParameters/compactionThroughputMbPerSec", Number(16)),
    ("/cassandraParameters/concurrentReads", Number(32)),
    ("/cassandraParameters/concurrentWrites", Number(32)),
    ("/cassandraParameters/concurrentCounterWrites", Number(32)),
    ("/cassandraParameters/concurrentMaterializedViewWrites", Number(32)),
    ("/cassandraParameters/concurrentCompactors", Number(1)),
    ("/cassandraParameters/memtableFlushWriters", Number(2)),
    ("/cassandraParameters/memtableAllocationType", Text("heap_buffers")),
];

const CONFIG: Defaults = &[
    ("/apiWorkerCount", Number(1)),
    ("/useExternalTFTP", Switch(false)),
    ("/bgpAutoMesh", Switch(true)),
    ("/bgpEnable4Byte", Switch(false)),
    ("/globalASNNumber", Number(64512)),
];

const CONTROL: Defaults = &[("/asnNumber", Number(64512))];

pub(crate) const FABRIC_SNAT: &str = "/ipFabricSnat";

const KUBEMANAGER: Defaults = &[
    ("/cloudOrchestrator", Text("kubernetes")),
    ("/ipFabricSubnets", Text("10.64.0.0/12")),
    ("/ipFabricForwarding", Switch(false)),
    (FABRIC_SNAT, Switch(true)),
    ("/hostNetworkService", Switch(false)),
];

const RABBITMQ: Defaults =
    &[("/mirroredQueueMode", Text("all")), ("/clusterPartitionHandling", Text("autoheal"))];

const VROUTER: Defaults = &[
    ("/cloudOrchestrator", Text("kubernetes")),
    ("/hypervisorType", Text("kvm")),
    ("/logLocal", Number(1)),
    ("/sslEnable", Switch(true)),
];

const ZOOKEEPER: Defaults = &[("/adminEnabled", Switch(true))];

/// The defaults of a kind, by pointers below its serviceConfiguration: those of its ports first.
pub(crate) fn defaults_of(kind: &str, name: &str) -> impl Iterator<Item = (String, Static)> {
    let others = match kind {
        "Analytics" => ANALYTICS,
        "Cassandra" => CASSANDRA,
        "Config" => CONFIG,
        "Control" => CONTROL,
        "Kubemanager" => KUBEMANAGER,
        "Rabbitmq" => RABBITMQ,
        "Vrouter" => VROUTER,
        "Zookeeper" => ZOOKEEPER,
        _ => &[],
    };
    let ports = ports_of(kind, name);
    ports.chain(others.iter().map(|(path, value)| ((*path).to_owned(), *value)))
}

/// The fields that are ports, with their numbers.
fn ports_of(kind: &str, name: &str) -> impl Iterator<Item = (String, Static)> {
    let is_second = kind == "Cassandra" && is_analytics_database(name);
    let ports = Component::of_kind(kind).map(|component| component.ports).unwrap_or_default();
    ports.iter().filter_map(move |port| {
        let (Setting::Field(field) | Setting::ShownAs(field)) = port.setting else { return None };
        let mut second = ANALYTICS_DATABASE_PORTS.iter().filter(|_| is_second);
        let other = second.find(|(other, _)| *other == field).map(|(_, number)| *number);
        Some((format!("/{field}"), Number(other.unwrap_or(port.number).into())))
    })
}
