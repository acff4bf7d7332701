//! Ports of nodes that other pods claim, by what they declare.

use std::collections::BTreeMap;

use opensdn_crds::component::{COMPONENTS, Open, Setting, Transport};
use serde_json::Value;

use super::report::{NodeResult, Outcome, Verdict};
use super::world::{World, title};
use super::{few, number_of};
use crate::snapshot::{Read, list, number, text};

/// What listens on the network of a node without declaring it, by a part of its image: port, and what it is.
const UNDECLARED: [(&str, &str, i64); 3] = [
    ("calico/node", "Calico's BIRD", 179),
    ("kube-router", "kube-router's BGP", 179),
    ("frrouting/frr", "FRR's BGP", 179),
];

/// The ports of the components, with their kinds: by the Managers, and of all kinds where there is none.
pub(crate) fn ours(world: &World) -> BTreeMap<(i64, &'static str), &'static str> {
    let services = world.services();
    let mut ports = BTreeMap::new();
    for facts in COMPONENTS {
        let specs: Vec<&Value> = services
            .iter()
            .filter(|service| service.facts.kind == facts.kind)
            .map(|service| service.spec)
            .collect();
        if !services.is_empty() && specs.is_empty() {
            continue;
        }
        // Without a Manager the numbers are the defaults.
        let specs = if specs.is_empty() { vec![&Value::Null] } else { specs };
        for (port, spec) in
            facts.ports.iter().flat_map(|port| specs.iter().map(move |spec| (port, *spec)))
        {
            let field = |name: &str| number(spec, &format!("/serviceConfiguration/{name}"));
            let stated = match port.setting {
                Setting::Field(name) => field(name),
                Setting::Above(name, more) => field(name).map(|base| base + i64::from(more)),
                Setting::Fixed | Setting::ShownAs(_) => None,
            };
            if !matches!(port.open, Open::Always | Open::UnlessFalse(_)) {
                continue;
            }
            let protocols: &[&'static str] = match port.transport {
                Transport::Tcp => &["TCP"],
                Transport::Udp => &["UDP"],
                Transport::TcpAndUdp => &["TCP", "UDP"],
            };
            for protocol in protocols {
                ports.insert((stated.unwrap_or(i64::from(port.number)), *protocol), facts.kind);
            }
        }
    }
    ports
}

/// What a pod claims on its node: port, protocol.
fn claims(pod: &Value) -> Vec<(i64, String)> {
    let is_host = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let mut found = Vec::new();
    for container in list(pod, "/spec/containers") {
        for port in list(container, "/ports") {
            let claimed = number(port, "/hostPort").filter(|port| *port > 0);
            let claimed = claimed.or_else(|| number(port, "/containerPort").filter(|_| is_host));
            let protocol = match text(port, "/protocol") {
                "" => "TCP",
                protocol => protocol,
            };
            found.extend(claimed.map(|port| (port, protocol.to_owned())));
        }
        found.extend(felix(container).filter(|_| is_host).map(|port| (port, "TCP".to_owned())));
        let image = text(container, "/image");
        let known = UNDECLARED.iter().filter(|(part, _, _)| is_host && image.contains(part));
        let known = known.filter(|_| !is_without_bird(container));
        found.extend(known.map(|(_, _, port)| (*port, "TCP".to_owned())));
    }
    found
}

fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let found = list(container, "/env").find(|one| text(one, "/name") == name)?;
    Some(text(found, "/value"))
}

/// The metrics of Calico's Felix, where they are switched on.
fn felix(container: &Value) -> Option<i64> {
    let on = variable(container, "FELIX_PROMETHEUSMETRICSENABLED")?;
    let port =
        variable(container, "FELIX_PROMETHEUSMETRICSPORT").and_then(|port| port.parse().ok());
    on.eq_ignore_ascii_case("true").then(|| port.unwrap_or(9091))
}

fn is_without_bird(container: &Value) -> bool {
    variable(container, "CALICO_NETWORKING_BACKEND")
        .is_some_and(|backend| !["", "bird"].contains(&backend))
}

pub(super) fn claimed(world: &World) -> Verdict {
    let pods = match &world.pods {
        Read::Known(pods) => pods,
        Read::Absent => return Verdict::uncertain("the API server has no pods"),
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("pods of all namespaces may not be read: {why}"));
        }
    };
    let ours = ours(world);
    let nodes = world.nodes.items();
    let chosen = super::roles::chosen(world, nodes);
    let mut clashes = Vec::new();
    for pod in pods.iter().filter(|pod| !world.is_ours(pod)) {
        let node = text(pod, "/spec/nodeName");
        let is_over = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
        // Where the nodes are not known each counts.
        let is_elsewhere = world.nodes.known().is_some() && !chosen.contains(node);
        if node.is_empty() || is_over || is_elsewhere {
            continue;
        }
        for (port, protocol) in claims(pod) {
            let kind = ours.iter().find(|((number, of), _)| *number == port && *of == protocol);
            if let Some((_, kind)) = kind {
                let message = format!("port {port}/{protocol} of {kind}: {}", title(pod));
                clashes.push(NodeResult { name: node.to_owned(), result: Outcome::Fail, message });
            }
        }
    }
    clashes.sort_by(|one, other| (&one.name, &one.message).cmp(&(&other.name, &other.message)));
    clashes.dedup();
    if clashes.is_empty() {
        return Verdict::ok(format!(
            "no other pod claims one of {}",
            number_of(ours.len(), "port")
        ));
    }
    let texts: Vec<String> =
        clashes.iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
    Verdict::fail(few(&texts)).on(clashes)
}
