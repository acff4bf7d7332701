//! Ports of nodes that other pods claim, by what they declare.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use opensdn_crds::component::{COMPONENTS, Component, Open, Setting, Transport};
use serde_json::Value;

use super::report::{NodeResult, Outcome, Verdict};
use super::world::{World, is_of_control_plane};
use super::{few, number_of, roles};
use crate::snapshot::{Read, has_ended, list, name, namespace, number, text, title};

/// What listens on the network of a node without declaring it, by a part of its image: port, and what it is. Whether it
/// does is a setting of its own that pods do not show, but for that of Calico. Not MetalLB's FRR: its bgpd is started
/// with `-p 0` and listens nowhere (metallb `config/frr/frr-cm.yaml`).
const UNDECLARED: [(&str, &str, i64); 3] = [
    ("calico/node", "Calico's BIRD", 179),
    ("calico-node", "Calico's BIRD", 179),
    ("kube-router", "kube-router's BGP", 179),
];
/// Listens on port 53 of one address of the node's own. What named does beside it is not known.
const NODE_LOCAL_DNS: &str = "k8s-dns-node-cache";
/// Workers of the Config API whose ports are looked at.
const MOST_WORKERS: i64 = 64;
/// The ports of nodes that Services are given, unless the API server has others.
const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;
pub(super) const NODE_PORTS_FLAG: &str = "--service-node-port-range=";
/// The variables of containers that are looked at; of no other is the value read.
pub(super) const VARIABLES: [&str; 3] = [METRICS, METRICS_PORT, BACKEND];
const METRICS: &str = "FELIX_PROMETHEUSMETRICSENABLED";
const METRICS_PORT: &str = "FELIX_PROMETHEUSMETRICSPORT";
const BACKEND: &str = "CALICO_NETWORKING_BACKEND";

/// A port that a component listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    pub(crate) number: i64,
    pub(crate) protocol: &'static str,
    pub(crate) kind: &'static str,
    /// What the number is unless a field says another: by it the port is known.
    pub(crate) default: u16,
}

fn protocols(transport: Transport) -> &'static [&'static str] {
    match transport {
        Transport::Tcp => &["TCP"],
        Transport::Udp => &["UDP"],
        Transport::TcpAndUdp => &["TCP", "UDP"],
    }
}

/// The ports of a component with these settings.
pub(super) fn of_service(facts: &Component, spec: &Value) -> Vec<Port> {
    let field = |name: &str| number(spec, &format!("/serviceConfiguration/{name}"));
    let flag = |name: &str| {
        spec.pointer(&format!("/serviceConfiguration/{name}")).and_then(Value::as_bool)
    };
    let mut ports = Vec::new();
    for port in facts.ports {
        let is_open = match port.open {
            Open::Always => true,
            Open::WhenTrue(name) => flag(name) == Some(true),
            Open::UnlessFalse(name) => flag(name) != Some(false),
            Open::PerWorker(name) => field(name).is_some_and(|workers| workers > 1),
            Open::Never => false,
        };
        let stated = match port.setting {
            Setting::Field(name) => field(name),
            Setting::Above(name, more) => field(name).map(|base| base + i64::from(more)),
            Setting::Fixed | Setting::ShownAs(_) => None,
        };
        if !is_open {
            continue;
        }
        let number = stated.unwrap_or(i64::from(port.number));
        // The first worker has a port of its own.
        let more = match port.open {
            Open::PerWorker(name) => field(name).unwrap_or_default().clamp(2, MOST_WORKERS) - 2,
            _ => 0,
        };
        for number in number..=number + more {
            let each = protocols(port.transport).iter();
            ports.extend(each.map(|protocol| Port {
                number,
                protocol,
                kind: facts.kind,
                default: port.number,
            }));
        }
    }
    ports
}

/// The ports of the components, with their kinds: by the Managers, and of all kinds where there is none.
pub(crate) fn ours(world: &World) -> BTreeMap<(i64, &'static str), &'static str> {
    let services = world.services();
    let mut ports: Vec<Port> = Vec::new();
    for service in &services {
        ports.extend(of_service(service.facts, service.spec));
    }
    for facts in COMPONENTS.iter().filter(|_| services.is_empty()) {
        ports.extend(of_service(facts, &Value::Null));
    }
    ports.into_iter().map(|port| ((port.number, port.protocol), port.kind)).collect()
}

/// The ports of each node: by the Managers; of all kinds, on the nodes of the control plane but for vrouters, where there
/// is none. Without nodes those of all.
pub(crate) fn of_nodes(world: &World) -> BTreeMap<&str, BTreeSet<Port>> {
    let services = world.services();
    let nodes = world.nodes.items();
    let mut ports: BTreeMap<&str, BTreeSet<Port>> = BTreeMap::new();
    for node in nodes {
        for service in services.iter().filter(|service| roles::is_selected(service, node)) {
            ports.entry(name(node)).or_default().extend(of_service(service.facts, service.spec));
        }
        for facts in COMPONENTS.iter().filter(|_| services.is_empty()) {
            if facts.kind == "Vrouter" || is_of_control_plane(node) {
                ports.entry(name(node)).or_default().extend(of_service(facts, &Value::Null));
            }
        }
    }
    ports
}

/// What a pod claims on its node: port, protocol, and how sure that is.
fn claims(pod: &Value) -> Vec<(i64, String, Outcome)> {
    let is_host = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let mut found = Vec::new();
    for container in list(pod, "/spec/containers") {
        let image = text(container, "/image");
        let sure = if image.contains(NODE_LOCAL_DNS) { Outcome::Warn } else { Outcome::Fail };
        for port in list(container, "/ports") {
            let claimed = number(port, "/hostPort").filter(|port| *port > 0);
            let claimed = claimed.or_else(|| number(port, "/containerPort").filter(|_| is_host));
            let protocol = match text(port, "/protocol") {
                "" => "TCP",
                protocol => protocol,
            };
            found.extend(claimed.map(|port| (port, protocol.to_owned(), sure)));
        }
        if !is_host {
            continue;
        }
        found.extend(felix(container).map(|port| (port, "TCP".to_owned(), Outcome::Fail)));
        let known = UNDECLARED.iter().filter(|(part, _, _)| image.contains(part));
        let known =
            known.filter_map(|(_, _, port)| Some((*port, "TCP".to_owned(), listens(container)?)));
        found.extend(known);
    }
    found
}

/// Whether the BGP of a network of pods listens: not where another backend is set, and not known where a ConfigMap says
/// which (Calico's own manifests and those of KubeSpray), or nothing does.
fn listens(container: &Value) -> Option<Outcome> {
    let mut variables = list(container, "/env");
    let backend = variables.find(|one| text(one, "/name") == BACKEND);
    match backend.map(|one| one.pointer("/value").and_then(Value::as_str)) {
        Some(Some("bird")) => Some(Outcome::Fail),
        Some(Some("")) | Some(None) | None => Some(Outcome::Uncertain),
        Some(Some(_)) => None,
    }
}

fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let found = list(container, "/env").find(|one| text(one, "/name") == name)?;
    Some(text(found, "/value"))
}

/// The metrics of Calico's Felix, where they are switched on.
fn felix(container: &Value) -> Option<i64> {
    let on = variable(container, METRICS)?;
    let port = variable(container, METRICS_PORT).and_then(|port| port.parse().ok());
    on.eq_ignore_ascii_case("true").then(|| port.unwrap_or(9091))
}

pub(super) fn claimed(world: &World) -> Verdict {
    let pods = match &world.pods {
        Read::Known(pods) => pods,
        Read::Absent => return Verdict::uncertain("the API server has no pods"),
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("pods of all namespaces may not be read: {why}"));
        }
    };
    if let Some(why) = world.nodes.why_unknown() {
        return Verdict::uncertain(format!("nodes may not be read: {why}"));
    }
    let ours = of_nodes(world);
    let mut clashes = Vec::new();
    for pod in pods.iter().filter(|pod| !world.is_ours(pod)) {
        let node = text(pod, "/spec/nodeName");
        let Some(ports) = ours.get(node).filter(|_| !has_ended(pod)) else { continue };
        for (port, protocol, result) in claims(pod) {
            let of = ports.iter().find(|one| one.number == port && one.protocol == protocol);
            if let Some(Port { kind, .. }) = of {
                let may = if result == Outcome::Fail { "" } else { ", if it listens there" };
                let message = format!("port {port}/{protocol} of {kind}: {}{may}", title(pod));
                clashes.push(NodeResult { name: node.to_owned(), result, message });
            }
        }
    }
    clashes.extend(among_node_ports(&ours, pods));
    clashes.sort_by(|one, other| (&one.name, &one.message).cmp(&(&other.name, &other.message)));
    clashes.dedup();
    let outcome = Outcome::worst(clashes.iter().map(|one| one.result));
    if outcome == Outcome::Ok {
        let all: BTreeSet<&Port> = ours.values().flatten().collect();
        let number = number_of(all.len(), "port");
        return Verdict::ok(format!("no other pod claims one of {number}"));
    }
    let texts: Vec<String> =
        clashes.iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
    Verdict::new(outcome, few(&texts)).on(clashes)
}

/// Ports that a Service may be given on every node, by chance or by its author: what listens there is not reached any more.
fn among_node_ports(ours: &BTreeMap<&str, BTreeSet<Port>>, pods: &[Value]) -> Vec<NodeResult> {
    let stated = node_ports(pods);
    let range = stated.clone().unwrap_or(NODE_PORTS);
    let (first, last) = (range.start(), range.end());
    let unless = if stated.is_some() { "" } else { ", unless the API server has others" };
    let mut found = Vec::new();
    for (node, ports) in ours {
        for Port { number, protocol, kind, .. } in
            ports.iter().filter(|one| range.contains(&one.number))
        {
            let message = format!(
                "port {number}/{protocol} of {kind}: Services are given ports of {first} to {last}{unless}"
            );
            let result = Outcome::Warn;
            found.push(NodeResult { name: (*node).to_owned(), result, message });
        }
    }
    found
}

/// Those of the API server, where it is a pod.
fn node_ports(pods: &[Value]) -> Option<RangeInclusive<i64>> {
    let is_own =
        |pod: &&Value| namespace(pod) == "kube-system" && name(pod).starts_with("kube-apiserver");
    pods.iter().filter(is_own).find_map(|pod| {
        let words = list(pod, "/spec/containers").flat_map(|container| {
            list(container, "/command").chain(list(container, "/args")).filter_map(Value::as_str)
        });
        let range = words.filter_map(|word| word.strip_prefix(NODE_PORTS_FLAG)).last()?;
        // `30000-32767`, or `30000+2767`.
        let (first, other) = range.split_once(['-', '+'])?;
        let (first, other): (i64, i64) = (first.trim().parse().ok()?, other.trim().parse().ok()?);
        Some(first..=if range.contains('+') { first + other } else { other })
    })
}
