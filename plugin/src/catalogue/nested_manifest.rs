//! What `validate` finds in manifests of nested mode, and `nested registry-secret` and `nested insecure-registry` around
//! them, explained. Codes, titles and remedies of the former are those of `opensdn-nested-workloads`.

use opensdn_nested_workloads::{self as workloads, RULES};

use super::{Finder, Meaning, Severity};

/// What happens otherwise, by the code of a rule.
const REASONS: [(&str, &str); 15] = [
    (
        "OSDN3030",
        "kube-manager compares the variable with the text 1. With 0, or without it, it takes the nodes for machines \
         with vrouters of their own; with any other value it is in a mode that is neither.",
    ),
    (
        "OSDN3034",
        "The name is in the name of each interface that kube-manager makes. The CNI plugin asks the vrouter agent \
         for it by the name of its own cluster, and finds none.",
    ),
    (
        "OSDN3041",
        "Of a key that is in a mapping twice only the last one counts. In upstream's manifest spec is there twice, \
         the first time with the selector alone: the API server refuses what is left, so that the manifest cannot \
         be applied as it is.",
    ),
    (
        "OSDN3042",
        "The API server refuses a workload whose selector does not fit the labels of its own pods.",
    ),
    (
        "OSDN3043",
        "Neither kubeadm nor another installer of Kubernetes sets the label; upstream's set-node-labels.sh does, and where \
         it has not run the pod stays Pending.",
    ),
    (
        "OSDN3044",
        "Since Kubernetes 1.24 kubeadm taints its control plane by node-role.kubernetes.io/control-plane, no longer \
         by node-role.kubernetes.io/master: where all other nodes are left out, the pod stays Pending.",
    ),
    (
        "OSDN3045",
        "A node that the CNI agent leaves out has no CNI plugin. It stays NotReady, and pods on it get no network.",
    ),
    (
        "OSDN3046",
        "Everyone who may read ConfigMaps reads it, and by envFrom it is in the environment of a privileged pod on \
         every node. It is the password of a user who may change the whole cloud.",
    ),
    ("OSDN3047", "Who gets hold of the account's token, which is on the node, has the cluster."),
    (
        "OSDN3048",
        "kubelet passes over it; a second kubectl apply fails, since the list is merged by a name that is not there.",
    ),
    (
        "OSDN3049",
        "The token is valid until its Secret is deleted, and kube-manager sends it without looking at the \
         certificate of the API server: who is on the way has it.",
    ),
    (
        "OSDN3050",
        "In nested mode nothing elects one of several kube-managers. Two of them give the same VLAN to different \
         pods, and each deletes what it does not know.",
    ),
    (
        "OSDN3051",
        "Without a probe a pod counts as ready as soon as its process runs, long before it is connected to the \
         cloud: kubectl rollout status says nothing.",
    ),
    (
        "OSDN3052",
        "At SYS_DEBUG the image's scripts trace each of their commands, those that put passwords into variables among \
         them.",
    ),
    (
        "OSDN3053",
        "The image fills a list that is missing with another: where analytics or the database are on other nodes \
         than the Config API, kube-manager does not find them.",
    ),
];

/// Code, who finds it, how bad it is, what is wrong, what happens otherwise, what to do.
const SETUP: [(&str, Severity, &str, &str, &str); 6] = [
    (
        "OSDN3061",
        Severity::Deny,
        "the Secret of the registry is missing, or kubelet cannot read it",
        "kubelet takes Secrets of the types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. Over others, and \
         those without the key of their type, it passes: it pulls without a login, and the registry refuses. With one that \
         does not parse it pulls nothing.",
        "make it: kubectl opensdn nested registry-secret NAME --registry HOST --username USER --password-file FILE",
    ),
    (
        "OSDN3062",
        Severity::Warn,
        "the Secret has no login for the registry of an image",
        "kubelet compares the registry with the keys of auths and pulls without a login where none fits. That goes \
         well with a public registry, or where nodes have logins of their own; with --online it is tried, and an \
         error where it does not.",
        "make the Secret again with --registry set to the host of the image",
    ),
    (
        "OSDN3063",
        Severity::Deny,
        "pods do not refer to the Secret of the registry, or are in another namespace",
        "kubelet looks for a Secret in the namespace of the pod alone, and only for those that the pod or its service \
         account names in imagePullSecrets.",
        "name it by nested manifest --registry-secret, and make it in the namespace of the pods",
    ),
    (
        "OSDN3064",
        Severity::Warn,
        "the registry refuses the login, or has not the image",
        "The registry was asked from this machine, with the logins of the Secret, as kubelet would ask it.",
        "look at user, password, registry and tag; make the Secret again: kubectl opensdn nested registry-secret",
    ),
    (
        "OSDN3065",
        Severity::Deny,
        "a node does not pull from the registry, since it speaks no TLS or its certificate is not known",
        "Each node's runtime has to be given the registry as an insecure one, in a file of its own.",
        "kubectl opensdn nested insecure-registry --registry HOST says what to write on which node",
    ),
    (
        "OSDN3066",
        Severity::Deny,
        "/etc/docker/daemon.json is not one JSON object",
        "The old document has a second object appended to the file. docker does not start with that.",
        "merge them: kubectl opensdn nested insecure-registry --registry HOST --existing daemon.json",
    ),
];

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    rules().chain(setup())
}

fn rules() -> impl Iterator<Item = (&'static str, Meaning)> {
    RULES.iter().map(|rule| {
        let why = REASONS.iter().find(|(code, _)| *code == rule.code);
        let severity = match rule.severity {
            workloads::Severity::Error => Severity::Deny,
            workloads::Severity::Warning => Severity::Warn,
        };
        let why = why.map(|(_, why)| *why).unwrap_or_default();
        (rule.code, meaning(Finder::Validate, severity, [rule.title, why, rule.hint]))
    })
}

fn setup() -> impl Iterator<Item = (&'static str, Meaning)> {
    SETUP.iter().map(|(code, severity, title, why, remedy)| {
        (*code, meaning(Finder::NestedSetup, *severity, [title, why, remedy]))
    })
}

fn meaning(found_by: Finder, severity: Severity, [title, why, remedy]: [&str; 3]) -> Meaning {
    Meaning {
        found_by,
        policy: None,
        severity,
        title: title.to_owned(),
        why: why.to_owned(),
        remedy: remedy.to_owned(),
        rules: Vec::new(),
        sources: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_of_manifests_has_a_reason_and_no_reason_is_left_over() {
        let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
        let reasons: BTreeSet<&str> = REASONS.iter().map(|(code, _)| *code).collect();
        assert_eq!(rules, reasons);
    }

    #[test]
    fn every_code_that_the_setup_of_a_cluster_gives_is_explained() {
        let sources = [
            include_str!("../../../lib/nested-workloads/src/registry.rs"),
            include_str!("../../../lib/nested-workloads/src/insecure_registry.rs"),
            include_str!("../nested/registry_check.rs"),
            include_str!("../commands/nested/insecure_registry.rs"),
        ];
        let codes = sources.iter().flat_map(|text| {
            text.match_indices("OSDN").filter_map(|(at, _)| text.get(at..at + "OSDN3061".len()))
        });
        let given: BTreeSet<&str> = codes.collect();
        let explained: BTreeSet<&str> = SETUP.iter().map(|(code, ..)| *code).collect();
        assert_eq!(given, explained);
    }
}
