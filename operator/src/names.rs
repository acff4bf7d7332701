//! The names and labels of what the operator makes: those of tf-operator where a running cluster
//! depends on them, so that taking a cluster over makes nothing twice (operator.md 2.0).

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_upgrade::digest::digest;

use crate::kind::{Kind, Workload};

/// The name under which the operator writes fields, and the value of [`MANAGED_BY`].
pub const OPERATOR: &str = opensdn_deploy::names::operator::NAME;
/// The name under which it writes what has become of the network.
pub const NETWORK_OPERATOR: &str = "opensdn-operator-network";
/// The name under which it sets images in a Manager.
pub const UPGRADE_OPERATOR: &str = "opensdn-operator-upgrade";
/// The label by which the operator finds what it has made.
pub const MANAGED_BY: &str = opensdn_deploy::names::MANAGED_BY_LABEL;
/// The label of the kind of component, on objects and pods.
pub const TYPE: &str = "tf_manager";
/// Annotation with a digest of what was applied last: a field that is gone since is known by it.
pub const APPLIED: &str = "opensdn.io/applied";
/// Annotation of a pod template with a digest of the files that a running container does not read
/// again.
pub const CONFIGURATION: &str = "opensdn.io/configuration";
/// Annotation by which the pods that tf-operator has made are recreated now, of a component or of all of a Manager.
pub const RECREATE: &str = "opensdn.io/recreate";
/// Annotation by which the operator leaves everything that an object owns as it is.
pub const PAUSED: &str = "opensdn.io/paused";

/// Label of a pod that has a volume of its own: what keeps it. Several StatefulSets of one component are apart by it.
pub const HOME: &str = "opensdn.io/home";
/// Annotation of such a StatefulSet, and of the volume: their node.
pub const NODE: &str = "opensdn.io/node";

/// Annotation of a node with addresses that its status does not have, with commas between.
pub const ADDRESSES: &str = "opensdn.io/addresses";

/// Annotation of a node that a user has drained, with the name of the Upgrade for which.
pub const DRAINED_FOR: &str = opensdn_upgrade::drain::ANNOTATION;

/// Annotation by which no pod of a component runs, or of all of a Manager; what they have stored stays.
pub const STOPPED: &str = "opensdn.io/stopped";
/// Annotation of a Secret with certificates: those that were issued before this time (RFC 3339) are issued again, in turn.
pub const RENEW: &str = opensdn_deploy::names::operator::RENEW;
/// Annotation of a Manager with what may be deleted, as `Kind/name`, with commas between.
pub const CONFIRM_LOSS: &str = "opensdn.io/confirm-loss";
/// Annotation of an object without a controller with the name of the Manager that may have it.
pub const ADOPT: &str = "opensdn.io/adopt";

/// What keeps an object until what it has in a cloud is taken away.
pub const RELEASE_CLOUD: &str = "opensdn.io/cloud";
/// Annotation of an object that is deleted: what it has in a cloud stays there, if that cannot be taken away.
pub const LEAVE_BEHIND: &str = "opensdn.io/leave-behind";
/// Annotation of a NestedCluster with what is allowed that is refused otherwise, with commas between.
pub const ALLOW: &str = "opensdn.io/allow";

/// The Secret of a namespace with the CA that the operator made.
pub const CA_SECRET: &str = "opensdn-ca";
/// The Secret of a namespace with the CA that a user gives: tf-operator's.
pub const GIVEN_CA_SECRET: &str = opensdn_deploy::names::operator::GIVEN_CA_SECRET;
/// Its certificate, with others that are to be trusted.
pub const GIVEN_CA_CERTIFICATE: &str = "ca-bundle.crt";
/// Its key.
pub const GIVEN_CA_KEY: &str = "ca-priv-key.pem";
/// Its certificate as cert-manager writes it, then those above it.
pub const TLS_CERTIFICATE: &str = "tls.crt";
/// The root of these, where it is known.
pub const TLS_ROOT: &str = "ca.crt";
/// Its key as cert-manager writes it.
pub const TLS_KEY: &str = "tls.key";
/// The ConfigMap of a namespace with the certificates that are trusted.
pub const TRUST: &str = opensdn_deploy::names::operator::TRUST;
/// Its key.
pub const TRUST_KEY: &str = "ca-bundle.crt";
/// Its annotation with the time at which its bundle was published.
pub const PUBLISHED: &str = "opensdn.io/published-at";
/// Of the same ConfigMap: which CAs in it have issued nothing of what is in place any more, and since when.
pub const LEAVING: &str = "opensdn.io/leaving-since";
/// Of a request to a signer: the UID of whose certificate it is.
pub const REQUESTED_FOR: &str = "opensdn.io/requested-for";
/// The end of the names of Secrets with the certificates of pods.
pub const CERTIFICATES: &str = "-secret-certificates";
/// The end of the names of Secrets with the keys of certificates that a signer is asked for.
pub const REQUESTS: &str = "-secret-requests";

/// The component that an object is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The word for its kind.
    pub word: String,
    /// Its name.
    pub name: String,
}

impl Instance {
    /// Labels of its objects, its pods, and the selector of these.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let Self { word, name } = self;
        [(TYPE.to_owned(), word.clone()), (word.clone(), name.clone())].into()
    }

    /// Whether an object has these, which anybody can set.
    #[must_use]
    pub fn has_labels(&self, object: &DynamicObject) -> bool {
        self.labels().iter().all(|(key, value)| object.labels().get(key) == Some(value))
    }

    /// Its StatefulSet.
    #[must_use]
    pub fn stateful_set(&self) -> String {
        format!("{}-{}-statefulset", self.name, self.word)
    }

    /// The StatefulSet of the one pod on a node, where each node has a volume. Kubernetes makes labels of 63 characters and names of
    /// hosts of it, which take no dots: where it would be too long or has some the name of the node is a digest.
    #[must_use]
    pub fn stateful_set_on(&self, node: &str) -> String {
        const LONGEST: usize = 52;
        let start = format!("{}-{}-", self.name, self.word);
        if start.len() + node.len() <= LONGEST && !node.contains('.') {
            return start + node;
        }
        start + &digest(node, 5)
    }

    /// Its DaemonSet.
    #[must_use]
    pub fn daemon_set(&self) -> String {
        format!("{}-{}-daemonset", self.name, self.word)
    }

    /// What keeps its pods, by kind and name.
    #[must_use]
    pub fn keeper(&self, workload: Workload) -> (Kind, String) {
        let name = match workload {
            Workload::StatefulSet => self.stateful_set(),
            Workload::DaemonSet => self.daemon_set(),
        };
        (workload.kind(), name)
    }

    /// Whether that keeps its usual pods, by its name: one for all, or a StatefulSet for a node. Whoever may make workloads can give them
    /// our owner and labels: of another name none is ours.
    #[must_use]
    pub fn is_keeper(&self, kind: Kind, keeper: &DynamicObject) -> bool {
        let name = keeper.name_any();
        let single = [Workload::StatefulSet, Workload::DaemonSet].map(|one| self.keeper(one));
        let of_node = keeper.annotations().get(NODE).filter(|_| kind == Kind::StatefulSet);
        let is_of_node = of_node.is_some_and(|node| self.stateful_set_on(node) == name);
        is_of_node || single.contains(&(kind, name))
    }

    /// Its ConfigMap. Not that of tf-operator, `NAME-WORD-configmap`: each of its pods looks at its files every ten seconds, and where one
    /// of them changes starts its daemon again (the agent of a vrouter reads it again) within another minute, whatever is waited for.
    #[must_use]
    pub fn config_map(&self) -> String {
        format!("{}-{}-files", self.name, self.word)
    }

    /// The volume of its ConfigMap.
    #[must_use]
    pub fn config_volume(&self) -> String {
        format!("{}-{}-volume", self.name, self.word)
    }

    /// The Secret with the certificates of its pods, and their volume.
    #[must_use]
    pub fn certificates(&self) -> String {
        format!("{}{CERTIFICATES}", self.name)
    }

    /// The Secret with the keys of certificates that a signer is asked for; no pod mounts it.
    #[must_use]
    pub fn requests(&self) -> String {
        format!("{}{REQUESTS}", self.name)
    }

    /// The Secret with the token of its ServiceAccount.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{}-{}-secret", self.name, self.word)
    }

    /// Its Service.
    #[must_use]
    pub fn service(&self) -> String {
        format!("{}-{}", self.name, self.word)
    }

    /// Its ServiceAccount.
    #[must_use]
    pub fn service_account(&self) -> String {
        format!("{}-{}-service-account", self.name, self.word)
    }

    /// Its PodDisruptionBudget.
    #[must_use]
    pub fn disruption_budget(&self) -> String {
        format!("{}-{}", self.name, self.word)
    }
}

/// Labels of an object that the operator made.
#[must_use]
pub fn managed(labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut labels = labels;
    labels.insert(MANAGED_BY.to_owned(), OPERATOR.to_owned());
    labels
}

/// Why what the object owns is left as it is: its own annotation, or that of its Manager.
#[must_use]
pub fn paused(object: &DynamicObject, manager: Option<&DynamicObject>) -> Option<String> {
    let whose = whose_annotation(PAUSED, object, manager)?;
    Some(format!("the annotation {PAUSED} is set{whose}: nothing is changed until it is removed"))
}

/// Why no pod of the component runs: its own annotation, or that of its Manager.
#[must_use]
pub fn stopped(object: &DynamicObject, manager: Option<&DynamicObject>) -> Option<String> {
    let whose = whose_annotation(STOPPED, object, manager)?;
    Some(format!("the annotation {STOPPED} is set{whose}: no pod runs until it is removed"))
}

/// Why pods that tf-operator has made are recreated: the component's own annotation, or that of its Manager.
#[must_use]
pub fn recreate(object: &DynamicObject, manager: Option<&DynamicObject>) -> Option<String> {
    let whose = whose_annotation(RECREATE, object, manager)?;
    Some(format!("the annotation {RECREATE} is set{whose}"))
}

/// Nothing where neither has the annotation; what is to be said of the Manager's.
fn whose_annotation(
    annotation: &str,
    object: &DynamicObject,
    manager: Option<&DynamicObject>,
) -> Option<String> {
    let is_set = |object: &DynamicObject| {
        object.annotations().get(annotation).is_some_and(|value| value != "false")
    };
    if is_set(object) {
        return Some(String::new());
    }
    let manager = manager.filter(|manager| is_set(manager))?;
    Some(format!(" on Manager {}", manager.name_any()))
}

/// The Secret with the passwords of a component. `end` is what its name ends with, where that is not `secret`.
#[must_use]
pub fn own_secret(component: &str, end: Option<&str>) -> String {
    format!("{component}-{}", end.unwrap_or("secret"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn annotated(name: &str, annotation: &str, value: &str) -> DynamicObject {
        let metadata = json!({"name": name, "annotations": {(annotation): value}});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn what_is_named_after_a_node_fits_into_labels_and_has_no_dots() {
        let name = "n".repeat(30);
        let instance = Instance { word: "zookeeper".to_owned(), name };
        let long = "m".repeat(63);
        let all = ["master", "a.b", "a-b", &long].map(|node| instance.stateful_set_on(node));
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(all.iter().all(|name| name.len() <= 52 && !name.contains('.')), "{all:?}");
        assert!(all[0].ends_with("-master") && different.len() == 4, "{all:?}");
    }

    #[test]
    fn what_is_asked_of_a_manager_is_asked_of_each_of_its_services() {
        let none = annotated("redis1", "other", "true");
        for (annotation, why) in [
            (PAUSED, paused as fn(&DynamicObject, Option<&DynamicObject>) -> Option<String>),
            (STOPPED, stopped),
            (RECREATE, recreate),
        ] {
            let manager = annotated("cluster1", annotation, "true");
            let said = why(&none, Some(&manager)).unwrap();
            assert!(said.contains(annotation) && said.contains("on Manager cluster1"), "{said}");
            let own = why(&annotated("redis1", annotation, "true"), Some(&manager)).unwrap();
            assert!(!own.contains("Manager"), "{own}");
            assert_eq!(why(&none, Some(&annotated("cluster1", annotation, "false"))), None);
            assert_eq!(why(&none, None), None);
        }
    }
}
