//! Which of the things that are wrong are the causes of others: the dependencies of the components' table, and nodes
//! and our own programs below them.

use super::components::{Known, STOPPED};
use super::report::{Cause, ComponentStatus, Part, PodStatus, Word};
use super::surroundings::Nodes;
use crate::snapshot::places::Places;

/// Marks what is a cause and what is blocked by what; the causes in the order in which to look at them.
pub(super) fn find(
    known: Vec<Known>,
    nodes: &Nodes,
    around: &[Part],
    places: &Places,
) -> (Vec<ComponentStatus>, Vec<Cause>) {
    let mut known = known;
    for number in 0..known.len() {
        let Some(one) = known.get(number) else { continue };
        let verdict = judge(one, &known, nodes);
        if let Some(one) = known.get_mut(number) {
            verdict.write(&mut one.status);
        }
    }
    let mut causes: Vec<Cause> = around.iter().filter_map(|part| of_part(part, places)).collect();
    causes.extend(of_nodes(&known, nodes));
    known.sort_by_key(|one| (!one.is_stalled, super::depth(one.facts)));
    for one in known.iter().filter(|one| one.status.is_cause) {
        let mut cause = of_component(one, &known);
        if one.facts.kind == "Vrouter" {
            // It is what brings their network.
            cause.affects.extend(nodes.without_network().map(|node| format!("Node {}", node.name)));
        }
        causes.push(cause);
    }
    (known.into_iter().map(|one| one.status).collect(), causes)
}

enum Verdict {
    Fine,
    Cause,
    Blocked { by: Vec<String>, is_certain: bool },
}

impl Verdict {
    fn write(self, status: &mut ComponentStatus) {
        match self {
            Self::Fine => {}
            Self::Cause => status.is_cause = true,
            Self::Blocked { by, is_certain } => {
                (status.blocked_by, status.is_block_certain) = (by, is_certain);
            }
        }
    }
}

fn judge(one: &Known, all: &[Known], nodes: &Nodes) -> Verdict {
    let status = &one.status;
    if matches!(status.state, Word::Active | Word::Backup | Word::Unknown) {
        return Verdict::Fine;
    }
    let bad = || status.pods.iter().filter(|pod| pod.state != Word::Active);
    // Its reason is from before its pods were looked at, and those are no trouble then.
    if one.is_stalled || status.reason == STOPPED || bad().any(|pod| pod.is_own_trouble) {
        return Verdict::Cause;
    }
    if bad().next().is_some() && bad().all(|pod| nodes.is_bad(&pod.node)) {
        let mut by: Vec<String> = bad().map(|pod| format!("Node {}", pod.node)).collect();
        by.dedup();
        return Verdict::Blocked { by, is_certain: true };
    }
    let needs: Vec<&Known> = needs(one, all).filter(|need| !is_good(need)).collect();
    if needs.is_empty() {
        return Verdict::Cause;
    }
    // One that still does its work need not be why.
    let is_certain =
        status.reason == "NeedsNotReady" || needs.iter().any(|need| !need.is_available);
    let by = needs.iter().map(|need| need.status.title()).collect();
    Verdict::Blocked { by, is_certain }
}

fn is_good(one: &Known) -> bool {
    matches!(one.status.state, Word::Active | Word::Backup | Word::Unknown)
}

/// What it needs, of the same Manager, or beside it where it has none.
fn needs<'a>(one: &'a Known, all: &'a [Known]) -> impl Iterator<Item = &'a Known> {
    all.iter().filter(|other| {
        one.facts.needs.iter().any(|need| need.kind == other.facts.kind)
            && one.status.namespace == other.status.namespace
            && one.status.manager == other.status.manager
    })
}

fn of_component(one: &Known, all: &[Known]) -> Cause {
    let status = &one.status;
    let title = status.title();
    let affected = all.iter().filter(|other| {
        other.status.namespace == status.namespace && reaches(other, &title, all, 0)
    });
    let pod = worst_pod(status);
    let look = match pod {
        Some(PodStatus { name, daemon: Some(container), .. }) => {
            format!("kubectl logs -n {} {name} -c {container} --tail=100", status.namespace)
        }
        Some(pod) => format!("kubectl describe pod -n {} {}", status.namespace, pod.name),
        None => format!(
            "kubectl describe -n {} {}.tf.tungsten.io {}",
            status.namespace, one.facts.plural, status.name
        ),
    };
    Cause {
        kind: status.kind.clone(),
        name: status.name.clone(),
        namespace: status.namespace.clone(),
        message: why(status),
        since: pod.and_then(|pod| pod.since.clone()),
        affects: affected.map(|other| other.status.title()).collect(),
        look,
    }
}

/// Whether it waits for that, by way of others too.
fn reaches(one: &Known, title: &str, all: &[Known], steps: usize) -> bool {
    // No chain is longer than there are kinds.
    steps < 16
        && one.status.blocked_by.iter().any(|by| {
            by == title
                || needs(one, all)
                    .any(|need| need.status.title() == *by && reaches(need, title, all, steps + 1))
        })
}

/// The first of those with the worst trouble.
fn worst_pod(status: &ComponentStatus) -> Option<&PodStatus> {
    let bad = status.pods.iter().rev().filter(|pod| pod.state != Word::Active);
    bad.max_by_key(|pod| (pod.is_own_trouble, pod.state))
}

/// What is the matter: its pod's trouble says more than how many there are.
pub(super) fn why(status: &ComponentStatus) -> String {
    let pod = worst_pod(status);
    let on = |node: &str| if node.is_empty() { String::new() } else { format!(" on {node}") };
    match pod {
        Some(pod) if !pod.message.is_empty() && status.reason != STOPPED => {
            format!("{}{}: {}", pod.name, on(&pod.node), pod.message)
        }
        _ if status.message.is_empty() => status.reason.clone(),
        _ => status.message.clone(),
    }
}

fn of_nodes(all: &[Known], nodes: &Nodes) -> Vec<Cause> {
    let affected = |title: &str| {
        let blocked = all.iter().filter(|one| one.status.blocked_by.iter().any(|by| by == title));
        blocked.map(|one| one.status.title()).collect::<Vec<_>>()
    };
    let bad = nodes.bad().map(|node| {
        let affects = affected(&format!("Node {}", node.name));
        Cause {
            kind: "Node".to_owned(),
            name: node.name.clone(),
            namespace: String::new(),
            message: node.message.clone(),
            since: node.since.clone(),
            affects,
            look: format!("kubectl describe node {}", node.name),
        }
    });
    bad.filter(|cause| !cause.affects.is_empty()).collect()
}

fn of_part(part: &Part, places: &Places) -> Option<Cause> {
    part.degrades.then(|| Cause {
        kind: part.name.clone(),
        name: String::new(),
        namespace: String::new(),
        message: part.message.clone(),
        since: None,
        affects: Vec::new(),
        look: part.look.clone().unwrap_or_else(|| match part.name.as_str() {
            "operator" => format!("kubectl get pods -n {}", places.operator),
            "policies" => "kubectl get admissionpolicies".to_owned(),
            "certificates" => {
                "kubectl get secrets -A -l app.kubernetes.io/managed-by=opensdn-operator".to_owned()
            }
            _ => format!("kubectl get pods -n {}", places.webhook),
        }),
    })
}
