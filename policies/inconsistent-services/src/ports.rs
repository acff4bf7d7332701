//! The ports of the services. All are on the network of the node, so on one node each is free for
//! one service only.

use std::fmt;

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use crate::{Configuration, Spec, placement::Placed};

pub(crate) const OF_DATABASES: Message = Message {
    code: "OSDN1503",
    severity: Severity::Deny,
    title: "two databases on one node have the same ports",
    explanation: "Every Cassandra has the ports of the config database unless it says otherwise, \
        and both run on the network of the node: the second one does not start.",
    hint: "give analyticsdb1 ports of its own: port 9160, cqlPort 9042, storagePort 7010, \
        sslStoragePort 7011, jmxLocalPort 7200",
};

pub(crate) const TAKEN: Message = Message {
    code: "OSDN1519",
    severity: Severity::Deny,
    title: "two services on one node have the same port",
    explanation: "All services run on the network of the node: the second one to start ends with \
        an error, again and again.",
    hint: "change the port of one of them, or put them on different nodes",
};

/// A number; what is none (some Vrouter fields are texts of the same name) counts as unset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number(Option<i64>);

impl Number {
    pub(crate) fn or(self, default: i64) -> i64 {
        self.0.unwrap_or(default)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number(Some(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(i64::try_from(number).ok()))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Number, E> {
        Ok(Number(None))
    }
}

/// A port with the field that it comes from; none for a port that no field changes.
#[derive(Clone, Copy)]
struct Port {
    number: i64,
    field: Option<&'static str>,
}

type Fields = &'static [(&'static str, fn(&Configuration) -> Number, i64)];

const ANALYTICS: Fields = &[
    ("analyticsPort", |fields| fields.analytics_port, 8081),
    ("analyticsIntrospectPort", |fields| fields.analytics_introspect_port, 8090),
    ("collectorPort", |fields| fields.collector_port, 8086),
    ("collectorIntrospectPort", |fields| fields.collector_introspect_port, 8089),
];
const CASSANDRA: Fields = &[
    ("port", |fields| fields.port, 9161),
    ("cqlPort", |fields| fields.cql_port, 9041),
    ("storagePort", |fields| fields.storage_port, 7012),
    ("sslStoragePort", |fields| fields.ssl_storage_port, 7013),
    ("jmxLocalPort", |fields| fields.jmx_local_port, 7201),
];
const REAPER: Fields = &[
    ("reaperAppPort", |fields| fields.reaper_app_port, 8071),
    ("reaperAdmPort", |fields| fields.reaper_adm_port, 8072),
];
const CONFIG: Fields = &[
    ("apiPort", |fields| fields.api_port, 8082),
    ("apiIntrospectPort", |fields| fields.api_introspect_port, 8084),
    ("apiAdminPort", |fields| fields.api_admin_port, 8095),
    ("schemaIntrospectPort", |fields| fields.schema_introspect_port, 8087),
    ("svcMonitorIntrospectPort", |fields| fields.svc_monitor_introspect_port, 8088),
    ("deviceManagerIntrospectPort", |fields| fields.device_manager_introspect_port, 8096),
];
const RABBITMQ: Fields =
    &[("port", |fields| fields.port, 5673), ("erlEpmdPort", |fields| fields.erl_epmd_port, 4371)];
const REDIS: Fields = &[("redisPort", |fields| fields.redis_port, 6389)];
const ZOOKEEPER: Fields = &[
    ("clientPort", |fields| fields.client_port, 2181),
    ("electionPort", |fields| fields.election_port, 2888),
    ("serverPort", |fields| fields.server_port, 3888),
];
const ZOOKEEPER_ADMINISTRATION: Fields = &[("adminPort", |fields| fields.admin_port, 2182)];

/// TCP ports that no field changes.
fn fixed_ports(kind: &str) -> &'static [i64] {
    match kind {
        "Analytics" => &[514, 3514],
        "AnalyticsAlarm" => &[5995, 9092],
        "AnalyticsSnmp" => &[5920, 5921],
        "Control" => &[179, 5269, 53, 8083, 8092, 8094],
        "QueryEngine" => &[8091],
        "Vrouter" => &[9091, 8085],
        "Webui" => &[8143, 8180, 3000, 3002],
        _ => &[],
    }
}

fn ports(component: &ComponentView<'_, Spec>) -> Vec<Port> {
    let configuration = &component.spec.service_configuration;
    let (first, second): (Fields, Fields) = match component.kind {
        "Analytics" => (ANALYTICS, &[]),
        "Cassandra" if configuration.reaper_enabled == Some(true) => (CASSANDRA, REAPER),
        "Cassandra" => (CASSANDRA, &[]),
        "Config" => (CONFIG, &[]),
        "Rabbitmq" => (RABBITMQ, &[]),
        "Redis" => (REDIS, &[]),
        "Zookeeper" if configuration.admin_enabled != Some(false) => {
            (ZOOKEEPER, ZOOKEEPER_ADMINISTRATION)
        }
        "Zookeeper" => (ZOOKEEPER, &[]),
        _ => (&[], &[]),
    };
    let of_fields = first.iter().chain(second).map(|(field, read, default)| Port {
        number: read(configuration).or(*default),
        field: Some(field),
    });
    let fixed = fixed_ports(component.kind);
    let fixed = fixed.iter().map(|number| Port { number: *number, field: None });
    of_fields.chain(fixed).chain(derived(component.kind, configuration)).collect()
}

/// Ports that are computed from a field.
fn derived(kind: &str, configuration: &Configuration) -> Vec<Port> {
    let at = |number, field| Port { number, field: Some(field) };
    match kind {
        "Rabbitmq" => {
            let port = configuration.port.or(5673);
            vec![at(port + 10_000, "port"), at(port + 20_000, "port")]
        }
        "Config" => {
            let workers = configuration.api_worker_count.or(1).clamp(0, 64);
            let workers = if workers > 1 { 0..workers } else { 0..0 };
            let introspection = configuration.api_introspect_port.or(8084);
            let administration = configuration.api_admin_port.or(8095);
            workers
                .flat_map(|worker| {
                    [
                        at(10_000 + introspection + worker, "apiIntrospectPort"),
                        at(20_000 + administration + worker, "apiAdminPort"),
                    ]
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

pub(crate) fn judge(placed: &[Placed<'_>], verdict: &mut Verdict) {
    let ports: Vec<_> = placed.iter().map(|placed| ports(placed.component)).collect();
    for (number, (own, own_ports)) in placed.iter().zip(&ports).enumerate() {
        judge_itself(own.component, own_ports, verdict);
        for (other, other_ports) in placed.iter().zip(&ports).take(number) {
            // Of these no two may share a node at all, and that has a code of its own.
            let alike = own.component.kind == other.component.kind;
            if alike && ["Control", "Vrouter"].contains(&own.component.kind) {
                continue;
            }
            let shared: Vec<(Port, Port)> = own_ports
                .iter()
                .filter_map(|port| {
                    let same = other_ports.iter().find(|other| other.number == port.number);
                    same.map(|other| (*port, *other))
                })
                .collect();
            if !shared.is_empty() && own.shares_nodes_with(other) {
                report(own, other, &shared, verdict);
            }
        }
    }
}

/// One finding for two services, with all ports that they share.
fn report(own: &Placed<'_>, other: &Placed<'_>, shared: &[(Port, Port)], verdict: &mut Verdict) {
    let alike = own.component.kind == other.component.kind;
    let databases = alike && own.component.kind == "Cassandra";
    let message = if databases { &OF_DATABASES } else { &TAKEN };
    let at = shared
        .iter()
        .find_map(|(port, _)| port.field.map(|field| own.component.setting("").key(field)))
        .or_else(|| {
            let mut fields = shared.iter().filter_map(|(_, port)| port.field);
            fields.next().map(|field| other.component.setting("").key(field))
        })
        .unwrap_or_else(|| own.component.setting(""));
    let list: Vec<_> = shared
        .iter()
        .map(|(port, other)| match (port.field, other.field) {
            (Some(field), _) => format!("{} ({field})", port.number),
            (None, Some(field)) => format!("{} ({field} there)", port.number),
            (None, None) => port.number.to_string(),
        })
        .collect();
    let (title, other_title, nodes) = (own.component.title(), other.component.title(), own.nodes());
    let text = format!("{title} on {nodes} has ports of {other_title} too: {}", list.join(", "));
    verdict.add(message.at(at).says(text));
}

/// Two ports of one service; the schema has rules of its own for ZooKeeper and RabbitMQ.
fn judge_itself(component: &ComponentView<'_, Spec>, ports: &[Port], verdict: &mut Verdict) {
    if ["Zookeeper", "Rabbitmq"].contains(&component.kind) {
        return;
    }
    for (number, port) in ports.iter().enumerate() {
        let mut before = ports.iter().take(number).filter_map(|before| {
            before.field.filter(|_| before.number == port.number && before.field != port.field)
        });
        if let Some(first) = before.next() {
            let field = port.field.unwrap_or(first);
            let text = format!(
                "{}: port {} is given to {first} and to {}",
                component.title(),
                port.number,
                port.field.unwrap_or("a part of it whose port is fixed")
            );
            verdict.add(TAKEN.at(component.setting("").key(field)).says(text));
        }
    }
}
