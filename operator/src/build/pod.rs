//! A pod of a component, on the network of its node.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, LocalObjectReference, NodeAffinity, NodeSelector, NodeSelectorRequirement,
    NodeSelectorTerm, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use opensdn_crds::pod::PodConfiguration;

use super::Valid;
use super::valid::Home;
use super::{container, volumes};
use crate::component::Container as Described;
use crate::kind::Workload;
use crate::names::STOPPED;
use crate::node::{CONTROL_PLANE, Taint};

/// The group of OpenSDN's users in its images.
const GROUP: i64 = 1999;

/// With a volume where it is at home.
pub(super) fn build(valid: &Valid, home: Option<&Home>) -> PodSpec {
    let common = &valid.common;
    let mut selector = common.node_selector.clone().filter(|selector| !selector.is_empty());
    let anywhere = selector.is_none() && valid.workload == Workload::StatefulSet;
    // A DaemonSet has no number of pods that could be none.
    if valid.workload == Workload::DaemonSet && valid.stopped.is_some() {
        selector.get_or_insert_default().insert(STOPPED.to_owned(), "true".to_owned());
    }
    // The operator has chosen.
    if home.is_some() {
        selector = None;
    }
    let containers = |described: &[Described]| {
        let given = described.iter().filter(|one| valid.images.contains_key(one.name));
        given.map(|one| container::build(valid, one)).collect::<Vec<_>>()
    };
    PodSpec {
        affinity: Some(Affinity {
            node_affinity: home.map(|home| on_node(&home.node)).or(anywhere.then(on_control_plane)),
            pod_anti_affinity: Some(one_on_a_node(valid)),
            ..Affinity::default()
        }),
        automount_service_account_token: Some(false),
        containers: containers(&valid.description.containers),
        init_containers: Some(containers(&valid.description.init_containers))
            .filter(|init| !init.is_empty()),
        dns_policy: Some("ClusterFirstWithHostNet".to_owned()),
        host_network: Some(true),
        image_pull_secrets: pull_secrets(common),
        node_selector: selector,
        priority_class_name: Some("system-node-critical".to_owned()),
        security_context: Some(PodSecurityContext {
            fs_group: Some(GROUP),
            // Else the files of a volume would be made readable for that group at every start.
            fs_group_change_policy: home.map(|_| "OnRootMismatch".to_owned()),
            supplemental_groups: Some(vec![GROUP]),
            ..PodSecurityContext::default()
        }),
        share_process_namespace: valid.description.shares_processes.then_some(true),
        service_account_name: Some(valid.instance.service_account()),
        termination_grace_period_seconds: valid.description.grace.map(i64::from),
        tolerations: Some(tolerations(common)),
        volumes: Some(volumes::build(valid, home)),
        ..PodSpec::default()
    }
}

/// By either label: what a selector cannot say.
fn on_control_plane() -> NodeAffinity {
    let term = |label: &str| NodeSelectorTerm {
        match_expressions: Some(vec![NodeSelectorRequirement {
            key: label.to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        }]),
        ..NodeSelectorTerm::default()
    };
    required(CONTROL_PLANE.iter().map(|label| term(label)).collect())
}

/// Any of these.
fn required(node_selector_terms: Vec<NodeSelectorTerm>) -> NodeAffinity {
    NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(NodeSelector {
            node_selector_terms,
        }),
        ..NodeAffinity::default()
    }
}

/// By the name of its object, as a DaemonSet does it.
fn on_node(name: &str) -> NodeAffinity {
    let term = NodeSelectorTerm {
        match_fields: Some(vec![NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![name.to_owned()]),
        }]),
        ..NodeSelectorTerm::default()
    };
    required(vec![term])
}

/// They have the ports of the node. A DaemonSet has one there anyway, so of those of its kind it is none but one.
fn one_on_a_node(valid: &Valid) -> PodAntiAffinity {
    let instance = &valid.instance;
    let (operator, values) = match valid.workload {
        Workload::StatefulSet => ("In", Some(vec![instance.name.clone()])),
        Workload::DaemonSet => ("Exists", None),
    };
    PodAntiAffinity {
        required_during_scheduling_ignored_during_execution: Some(vec![PodAffinityTerm {
            label_selector: Some(LabelSelector {
                match_expressions: Some(vec![LabelSelectorRequirement {
                    key: instance.word.clone(),
                    operator: operator.to_owned(),
                    values,
                }]),
                ..LabelSelector::default()
            }),
            topology_key: "kubernetes.io/hostname".to_owned(),
            ..PodAffinityTerm::default()
        }]),
        ..PodAntiAffinity::default()
    }
}

/// The Secrets with the logins of registries, if there are any: each once, as the API server takes it, and in one order, for that in
/// which they are given means nothing, and would make another template.
pub(crate) fn pull_secrets(common: &PodConfiguration) -> Option<Vec<LocalObjectReference>> {
    let names = common.image_pull_secrets.iter().flatten().filter(|name| !name.is_empty());
    let names: BTreeSet<_> = names.cloned().collect();
    let secrets = names.into_iter().map(|name| LocalObjectReference { name });
    Some(secrets.collect()).filter(|secrets: &Vec<_>| !secrets.is_empty())
}

/// Those that are given, in one order as well, and that of a node that is not ready, as the network must be there before it is.
/// tf-operator does not add it, and pods of DaemonSets tolerate only its other effect by themselves (`pkg/controller/daemon/util/daemonset_util.go` of Kubernetes). Else everything.
pub(crate) fn tolerations(common: &PodConfiguration) -> Vec<Toleration> {
    let everything = |effect: &str| Toleration {
        effect: Some(effect.to_owned()),
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    };
    let given = common.tolerations.as_ref().filter(|given| !given.is_empty());
    let Some(given) = given else {
        return vec![everything("NoSchedule"), everything("NoExecute")];
    };
    let mut all: Vec<Toleration> = given
        .iter()
        .cloned()
        .map(|one| Toleration {
            effect: one.effect,
            key: one.key,
            operator: one.operator,
            toleration_seconds: one.toleration_seconds,
            value: one.value,
        })
        .collect();
    let not_ready = Taint::not_ready();
    if !not_ready.is_tolerated(&all) {
        all.push(not_ready.toleration());
    }
    all.sort_by_cached_key(|one| {
        let one = one.clone();
        (one.key, one.operator, one.value, one.effect, one.toleration_seconds)
    });
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn made(given: &serde_json::Value) -> serde_json::Value {
        json!(tolerations(&from_value(json!({ "tolerations": given })).unwrap()))
    }

    #[test]
    fn pods_come_to_nodes_that_are_not_ready_whatever_tolerations_are_given() {
        const NOT_READY: &str = "node.kubernetes.io/not-ready";
        let not_ready = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"});
        let given = json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"});
        assert_eq!(made(&json!([given])), json!([given, not_ready]));
        for covering in [
            json!({"operator": "Exists"}),
            json!({"operator": "Exists", "effect": "NoSchedule"}),
            json!({"key": NOT_READY, "operator": "Exists"}),
            not_ready,
        ] {
            assert_eq!(made(&json!([covering])), json!([covering]));
        }
        let other = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"});
        assert_eq!(
            made(&json!([other])).as_array().map(Vec::len),
            Some(2),
            "that is another effect"
        );
    }
}
