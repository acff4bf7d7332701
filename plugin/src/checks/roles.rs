//! On which nodes components are to run, and whether there are enough of them.

use std::collections::BTreeSet;

use opensdn_crds::component::Component;
use serde_json::{Value, json};

use super::patch::in_file;
use super::planned::is_planned;
use super::report::Verdict;
use super::world::{Service, World, is_of_control_plane, is_up};
use super::{few, number_of};
use crate::snapshot::{Read, label, list, name, text};

/// Those that decide by majority.
const QUORUM: [&str; 3] = ["Cassandra", "Rabbitmq", "Zookeeper"];
const LABEL: &str = "node-role.kubernetes.io/control-plane";
const MASTER: &str = "node-role.kubernetes.io/master";
const OWN: &str = "/commonConfiguration/nodeSelector";
const CORDON: &str = "node.kubernetes.io/unschedulable";
/// Taints that follow the state of a node, which is judged by itself.
pub(crate) const PASSING: [&str; 8] = [
    CORDON,
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
];
/// What a node is, and not what it is for: nobody selects another value of it.
const NATURE: [&str; 3] = ["kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname"];

/// The labels of the nodes of a service: its own selector, else its Manager's.
fn selector<'a>(service: &Service<'a>) -> Option<&'a serde_json::Map<String, Value>> {
    let of = |value: &'a Value, at: &str| {
        value.pointer(at).and_then(Value::as_object).filter(|map| !map.is_empty())
    };
    of(service.spec, OWN).or_else(|| of(service.manager, "/spec/commonConfiguration/nodeSelector"))
}

/// Whether the service has labels of its own.
fn own_selector(service: &Service<'_>) -> bool {
    let own = service.spec.pointer(OWN).and_then(Value::as_object);
    own.is_some_and(|map| !map.is_empty())
}

fn is_on_all_nodes(facts: &Component) -> bool {
    facts.kind == "Vrouter"
}

pub(super) fn is_selected(service: &Service<'_>, node: &Value) -> bool {
    match selector(service) {
        Some(selector) => selector.iter().all(|(key, value)| label(node, key) == value.as_str()),
        None => is_on_all_nodes(service.facts) || is_of_control_plane(node),
    }
}

/// The nodes on which something of ours is to run; all where no Manager says.
pub(super) fn chosen<'a>(world: &World, nodes: &'a [Value]) -> BTreeSet<&'a str> {
    let services = world.services();
    let is_chosen = |node: &&Value| {
        services.is_empty() || services.iter().any(|service| is_selected(service, node))
    };
    nodes.iter().filter(is_chosen).map(name).collect()
}

/// A taint that keeps the pods of the service away.
fn taint<'a>(service: &Service<'_>, node: &'a Value) -> Option<&'a str> {
    let own: Vec<&Value> = list(service.spec, "/commonConfiguration/tolerations").collect();
    let common = list(service.manager, "/spec/commonConfiguration/tolerations");
    let tolerations: Vec<&Value> = if own.is_empty() { common.collect() } else { own };
    if tolerations.is_empty() {
        // The default tolerates all.
        return None;
    }
    let is_tolerated = |taint: &Value| {
        tolerations.iter().any(|toleration| {
            let of = |key: &str| text(toleration, key);
            let is_effect = ["", text(taint, "/effect")].contains(&of("/effect"));
            let is_key = ["", text(taint, "/key")].contains(&of("/key"));
            let is_value = of("/operator") == "Exists" || of("/value") == text(taint, "/value");
            is_effect && is_key && is_value
        })
    };
    // A pod that tolerates the taint of a cordoned node starts there (Kubernetes, plugin NodeUnschedulable); those of a
    // DaemonSet do by themselves.
    let is_cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    let cordon = json!({"key": CORDON, "effect": "NoSchedule"});
    if is_cordoned && !is_on_all_nodes(service.facts) && !is_tolerated(&cordon) {
        return Some(CORDON);
    }
    let mut taints =
        list(node, "/spec/taints").filter(|taint| !PASSING.contains(&text(taint, "/key")));
    let bad =
        taints.find(|taint| text(taint, "/effect") != "PreferNoSchedule" && !is_tolerated(taint));
    bad.map(|taint| text(taint, "/key"))
}

/// Whether a pod of the service is put on the node as soon as that is up.
pub(super) fn may_run(service: &Service<'_>, node: &Value) -> bool {
    is_selected(service, node) && taint(service, node).is_none()
}

fn is_usable(service: &Service<'_>, node: &Value) -> bool {
    let system = label(node, "kubernetes.io/os").unwrap_or("linux");
    is_up(node) && system == "linux" && taint(service, node).is_none()
}

pub(super) fn roles(world: &World) -> Verdict {
    let nodes = match &world.nodes {
        Read::Known(nodes) => nodes,
        Read::Absent => return Verdict::uncertain("the API server has no nodes"),
        Read::Unknown(why) => return Verdict::uncertain(format!("nodes may not be read: {why}")),
    };
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!(
            "Managers, which say where components run, may not be read: {why}"
        ));
    }
    let services = world.services();
    if services.is_empty() {
        return without_manager(nodes);
    }
    let mut even = Vec::new();
    for service in &services {
        let selected: Vec<&Value> =
            nodes.iter().filter(|node| is_selected(service, node)).collect();
        let usable = selected.iter().filter(|node| is_usable(service, node)).count();
        let title = format!("{} {}", service.facts.kind, service.name);
        if usable == 0 {
            return none(service, &title, nodes, &selected);
        }
        if QUORUM.contains(&service.facts.kind) && selected.len().is_multiple_of(2) {
            even.push(format!("{title} on {}", selected.len()));
        }
    }
    if !even.is_empty() {
        let message = format!(
            "an even number of members has no more tolerance than one less: {}",
            few(&even)
        );
        return Verdict::warn(message);
    }
    Verdict::ok(format!("each of {} has nodes", number_of(services.len(), "service")))
}

/// Before there is a Manager: its default is the control plane.
fn without_manager(nodes: &[Value]) -> Verdict {
    let labelled: Vec<&Value> = nodes.iter().filter(|node| is_of_control_plane(node)).collect();
    let up = labelled.iter().filter(|node| is_up(node)).count();
    if up > 0 {
        return Verdict::ok(format!("of the control plane: {}", number_of(up, "node")));
    }
    if let Some(first) = labelled.first() {
        let message = format!("no node of the control plane is ready: {}", name(first));
        return Verdict::warn(message).fix(format!("kubectl describe node {}", name(first)));
    }
    Verdict::warn(
        "no node is labelled as one of the control plane, where components run unless a Manager has a \
         nodeSelector",
    )
    .fix("kubectl label node NODE node-role.kubernetes.io/control-plane=")
}

/// Why no node can run it, and what to do.
fn none(service: &Service<'_>, title: &str, nodes: &[Value], selected: &[&Value]) -> Verdict {
    if let Some(first) = selected.first() {
        let why = taint(service, first).map_or("not ready".to_owned(), |key| {
            format!("has the taint {key}, which is not tolerated")
        });
        return Verdict::fail(format!(
            "{title}: none of the selected nodes can take it; {}: {why}",
            name(first)
        ))
        .fix(format!("kubectl describe node {}", name(first)));
    }
    let Some(selector) = selector(service) else {
        return Verdict::fail(format!(
            "{title}: no ready, schedulable node is of the control plane"
        ))
        .fix("kubectl label node NODE node-role.kubernetes.io/control-plane=");
    };
    // What no node has is why; a key that some node has as it is wanted is not.
    let missing = selector.iter().filter_map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        let is_there = nodes.iter().any(|node| label(node, key) == Some(value));
        (!is_there).then_some((key, value))
    });
    for (key, value) in missing {
        let other = nodes.iter().find_map(|node| label(node, key));
        if let Some(other) = other.filter(|_| !NATURE.contains(&key.as_str())) {
            let message = format!(
                "{title}: nodes have the label {key} with the value {other:?}, and not {value:?}"
            );
            return Verdict::fail(message).fix(select(service, key, other));
        }
        let is_legacy = key == MASTER;
        if is_legacy && nodes.iter().any(is_of_control_plane) {
            let message = format!(
                "{title}: no node has the label {key}, which Kubernetes does not give since 1.24"
            );
            return Verdict::fail(message)
                .fix(format!("kubectl label nodes -l {} {key}={value}", LABEL));
        }
    }
    let labels: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    Verdict::fail(format!("{title}: no node has the labels {}", labels.join(", ")))
        .fix(format!("kubectl label node NODE {}", labels.join(" ")))
}

/// The command that has the value selected that nodes have, where the selector stands: that of a service counts alone.
fn select(service: &Service<'_>, key: &str, value: &str) -> String {
    let (place, manager) = (crate::snapshot::namespace(service.manager), name(service.manager));
    let start = format!("kubectl patch managers.tf.tungsten.io {manager} -n {place}");
    if is_planned(service.manager) {
        let at = service.at.as_deref().unwrap_or(service.facts.key).replace('/', ".");
        let at = if own_selector(service) { format!("services.{at}.spec.") } else { String::new() };
        let field = format!("spec.{at}commonConfiguration.nodeSelector");
        return in_file(place, manager, &field, &json!({ key: value }));
    }
    if !own_selector(service) {
        let selector = json!({"spec": {"commonConfiguration": {"nodeSelector": { key: value }}}});
        return format!("{start} --type=merge -p '{selector}'");
    }
    // A merge would replace a list of services with one entry.
    let at = service.at.as_deref().unwrap_or(service.facts.key);
    let key = key.replace('~', "~0").replace('/', "~1");
    let path = format!("/spec/services/{at}/spec/commonConfiguration/nodeSelector/{key}");
    let replace = json!([{"op": "replace", "path": path, "value": value}]);
    format!("{start} --type=json -p '{replace}'")
}
