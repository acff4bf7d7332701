//! The ports of the services. All are on the network of the node, so on one node each is free for
//! one service only.

use opensdn_policy_components::{
    ComponentView,
    component::{self, Component, Open, Setting, Transport},
};
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::{Spec, configuration::Configuration, placement::Placed};

pub(crate) const OF_DATABASES: Message = Message {
    code: "OSDN1503",
    severity: Severity::Deny,
    title: "two databases on one node have the same ports",
    explanation: "Every Cassandra has the ports of the config database unless it says otherwise, \
        and both run on the network of the node: the second one does not start.",
    hint: "give analyticsdb1 ports of its own: port 9160, cqlPort 9042, sslStoragePort 7011, \
        jmxLocalPort 7200",
};

pub(crate) const TAKEN: Message = Message {
    code: "OSDN1519",
    severity: Severity::Deny,
    title: "two services on one node have the same port",
    explanation: "All services run on the network of the node: the second one to start ends with \
        an error, again and again.",
    hint: "change the port of one of them, or put them on different nodes",
};

/// A port with the field that it comes from; none for a port that no field changes.
#[derive(Clone, Copy)]
struct Port {
    number: i64,
    field: Option<&'static str>,
}

/// The TCP ports that a service opens.
fn ports(component: &ComponentView<'_, Spec>) -> Vec<Port> {
    let configuration = &component.spec.service_configuration;
    let ports = Component::of_kind(component.kind).map(|known| known.ports).unwrap_or_default();
    let tcp = ports.iter().filter(|port| port.transport != Transport::Udp);
    tcp.flat_map(|port| numbers(port, configuration)).collect()
}

/// A port of the table with the numbers that it has by this configuration; none if it is not open.
fn numbers(
    port: &component::Port,
    configuration: &Configuration,
) -> impl Iterator<Item = Port> + use<> {
    let usual = i64::from(port.number);
    let (field, first) = match port.setting {
        Setting::Fixed | Setting::ShownAs(_) => (None, usual),
        Setting::Field(field) => (Some(field), configuration.number(field).unwrap_or(usual)),
        Setting::Above(field, more) => {
            let own = configuration.number(field);
            (Some(field), own.map_or(usual, |own| own.saturating_add(more.into())))
        }
    };
    let count = match port.open {
        Open::Always => 1,
        Open::Never => 0,
        Open::WhenTrue(field) => i64::from(configuration.switch(field) == Some(true)),
        Open::UnlessFalse(field) => i64::from(configuration.switch(field) != Some(false)),
        Open::PerWorker(field) => configuration.number(field).unwrap_or(1).clamp(1, 64) - 1,
    };
    (0..count).map(move |above| Port { number: first.saturating_add(above), field })
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
