//! On which nodes tf-operator counts members, and on which it waits for them.

use opensdn_policy_components::{
    ComponentView,
    nodes::{Node, Selector, matches, nodes_with},
};
use opensdn_policy_sdk::{Message, Outcome, Pointer, Severity, Verdict};

use crate::{Common, Spec};

pub(crate) const EMPTY_SELECTOR: Message = Message {
    code: "OSDN1201",
    severity: Severity::Deny,
    title: "without a node selector tf-operator waits for pods on all nodes",
    explanation: "The pods go to the nodes with the label node-role.kubernetes.io/master; the check that \
        all have come counts every node of the cluster. With one worker the files of the service are \
        never rendered, and its pods wait for them.",
    hint: "set nodeSelector: {node-role.kubernetes.io/master: \"\"} in the commonConfiguration of each service but \
        the vrouters; that of the Manager would take the vrouters off all other nodes",
};

pub(crate) const NO_MASTER: Message = Message {
    code: "OSDN1203",
    severity: Severity::Warn,
    title: "no node has the label by which tf-operator knows the control plane",
    explanation: "It asks for node-role.kubernetes.io/master alone, and for no other label, where a node \
        selector is unset, and to know whether the vrouters of the control plane run. kubeadm has not \
        set it since 1.24.",
    hint: "label the nodes: kubectl label node NODE node-role.kubernetes.io/master=",
};

pub(crate) const TOO_MANY: Message = Message {
    code: "OSDN1204",
    severity: Severity::Deny,
    title: "tf-operator can number ten members only",
    explanation: "A member of ZooKeeper, RabbitMQ or Kafka takes the last character of its pod's name for \
        its number: the eleventh has that of the first.",
    hint: "let the node selector match ten nodes at most; three or five are usual",
};

pub(crate) const KAFKA: Message = Message {
    code: "OSDN1209",
    severity: Severity::Warn,
    title: "Kafka has fewer members than the copies that tf-operator asks for",
    explanation: "The number of copies of each topic is taken from the members of ZooKeeper, up to \
        three. With fewer members of Kafka its topics cannot be created.",
    hint: "put analyticsAlarm on as many nodes as ZooKeeper",
};

pub(crate) const FIRST_GROUP: Message = Message {
    code: "OSDN1211",
    severity: Severity::Deny,
    title: "the first group of vrouters does not run on the whole control plane",
    explanation: "tf-operator makes the other services only when the agents of the first group in the \
        list are active on every node with the label node-role.kubernetes.io/master. On a node that the \
        group does not match none ever is, and nothing says so.",
    hint: "put the group that matches the control plane first in spec.services.vrouters",
};

pub(crate) const LEAVES_OUT: Message = Message {
    code: "OSDN1216",
    severity: Severity::Warn,
    title: "tf-operator never counts a group of vrouters as active that leaves nodes out",
    explanation: "It looks for an agent of each group on every node of the cluster, whatever the node \
        selector says. The group works, but its status never says active, so that the Manager is never \
        Ready and the operator looks at the group again every few seconds.",
    hint: "let one group run on all nodes, or look at the agents in the status of each Vrouter instead of \
        the condition Ready",
};

const MASTER: &str = "node-role.kubernetes.io/master";
/// Every node has it; kubelet sets it.
const SYSTEM: (&str, &str) = ("kubernetes.io/os", "linux");

fn label(key: &str, value: &str) -> Selector {
    Selector::from([(key.to_owned(), value.to_owned())])
}

/// The selector that counts, a component's own or else the Manager's, and where it is.
fn placed<'a>(
    common: &'a Common,
    component: &'a ComponentView<'_, Spec>,
) -> (&'a Selector, Pointer) {
    let own = &component.spec.common_configuration.node_selector;
    if own.is_empty() && !common.node_selector.is_empty() {
        return (&common.node_selector, "/spec/commonConfiguration/nodeSelector".into());
    }
    (own, component.shared("/nodeSelector"))
}

fn effective<'a>(common: &'a Common, component: &'a ComponentView<'_, Spec>) -> &'a Selector {
    placed(common, component).0
}

pub(crate) fn judge(
    common: &Common,
    components: &[ComponentView<'_, Spec>],
    verdict: &mut Verdict,
) -> Outcome {
    let master = label(MASTER, "");
    let masters = nodes_with(&master)?;
    let nodes = nodes_with(&label(SYSTEM.0, SYSTEM.1))?;
    // Nothing is known of the nodes: then nothing is said of them.
    if nodes.is_empty() && masters.is_empty() {
        return Ok(());
    }
    let services: Vec<_> =
        components.iter().filter(|component| component.kind != "Vrouter").collect();
    let unset: Vec<_> =
        services.iter().filter(|component| effective(common, component).is_empty()).collect();
    if !unset.is_empty() && nodes.len() > masters.len() {
        let titles: Vec<_> = unset.iter().map(|component| component.title()).collect();
        let text = format!(
            "a limit of tf-operator: without a node selector it waits for pods on all {} nodes, and \
             {} have the label {MASTER}: {}",
            nodes.len(),
            masters.len(),
            titles.join(", ")
        );
        verdict.add(EMPTY_SELECTOR.at("/spec/commonConfiguration/nodeSelector").says(text));
    }
    let asks = unset.iter().any(|_| true)
        || services.iter().any(|component| effective(common, component).contains_key(MASTER));
    if asks && masters.is_empty() {
        let text = format!("a limit of tf-operator: no node has the label {MASTER}");
        verdict.add(NO_MASTER.at("/spec/commonConfiguration/nodeSelector").says(text));
    }
    judge_numbers(common, components, &masters, verdict)?;
    judge_first_group(common, components, &masters, verdict);
    judge_groups(common, components, &nodes, verdict);
    Ok(())
}

/// How many members a service has, as tf-operator places them.
fn members(
    common: &Common,
    component: &ComponentView<'_, Spec>,
    masters: &[Node],
) -> Result<usize, opensdn_policy_sdk::Failure> {
    let selector = effective(common, component);
    if selector.is_empty() { Ok(masters.len()) } else { Ok(nodes_with(selector)?.len()) }
}

fn judge_numbers(
    common: &Common,
    components: &[ComponentView<'_, Spec>],
    masters: &[Node],
    verdict: &mut Verdict,
) -> Outcome {
    let of_kind = |kind: &str| components.iter().find(|component| component.kind == kind);
    for component in
        ["AnalyticsAlarm", "Rabbitmq", "Zookeeper"].iter().filter_map(|kind| of_kind(kind))
    {
        let number = members(common, component, masters)?;
        if number > 10 {
            let text = format!(
                "a limit of tf-operator: {} would have {number} members, and it numbers ten",
                component.title()
            );
            verdict.add(TOO_MANY.at(component.shared("/nodeSelector")).says(text));
        }
    }
    if let (Some(kafka), Some(zookeeper)) = (of_kind("AnalyticsAlarm"), of_kind("Zookeeper")) {
        let (brokers, copies) =
            (members(common, kafka, masters)?, members(common, zookeeper, masters)?.min(3));
        if brokers < copies {
            let text = format!(
                "a limit of tf-operator: Kafka would have {brokers} members and topics of {copies} copies"
            );
            verdict.add(KAFKA.at(kafka.shared("/nodeSelector")).says(text));
        }
    }
    Ok(())
}

fn judge_first_group(
    common: &Common,
    components: &[ComponentView<'_, Spec>],
    masters: &[Node],
    verdict: &mut Verdict,
) {
    let Some(first) = components.iter().find(|component| component.kind == "Vrouter") else {
        return;
    };
    let (selector, at) = placed(common, first);
    let left_out: Vec<&str> = masters
        .iter()
        .filter(|node| !matches(&node.labels, selector))
        .map(|node| node.name.as_str())
        .collect();
    if !left_out.is_empty() {
        let text = format!(
            "a limit of tf-operator: it waits for agents of {}, the first group, on nodes that it does \
             not match: {}",
            first.title(),
            left_out.join(", ")
        );
        verdict.add(FIRST_GROUP.at(at).says(text));
    }
}

fn judge_groups(
    common: &Common,
    components: &[ComponentView<'_, Spec>],
    nodes: &[Node],
    verdict: &mut Verdict,
) {
    for group in components.iter().filter(|component| component.kind == "Vrouter") {
        let (selector, at) = placed(common, group);
        let number = nodes.iter().filter(|node| !matches(&node.labels, selector)).count();
        if number > 0 {
            let text = format!(
                "a limit of tf-operator: {} is never active, for it leaves out {number} of {} nodes",
                group.title(),
                nodes.len()
            );
            verdict.add(LEAVES_OUT.at(at).says(text));
        }
    }
}
