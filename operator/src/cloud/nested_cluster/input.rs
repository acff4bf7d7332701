//! From a NestedCluster to the input of its plan. Where the operator runs in that very cluster, which what runs in
//! the namespace shows, it knows the nodes and networks.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_config_api::edit::Foreign;
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_nested::{
    Choices, Fact, Input, Kubernetes, Naming, NotGiven, Permission, Permissions, Profile, Subnet,
};

use crate::cache::Cache;
use crate::cloud::condition::Said;
use crate::cluster::Cluster;
use crate::components::config_api::nested_networks;
use crate::kind::Kind;
use crate::names::ALLOW;
use crate::node::Node;

const NOT_HERE: &str = "the operator does not run in that cluster, as nothing in the namespace has its \
    clusterName in its nested settings";
const NOT_READ: &str = "the operator does not read it";

/// What is known of the Kubernetes cluster.
pub(super) struct Facts(Kubernetes);

impl Facts {
    /// As the caches have it.
    pub(super) fn of(cache: &Cache, object: &DynamicObject, spec: &NestedClusterSpec) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let Some([pods, services, fabric]) = nested_networks(cache, &namespace, &spec.cluster_name)
        else {
            return Self(Kubernetes {
                pod_subnets: Vec::new(),
                service_subnets: Vec::new(),
                fabric_subnets: Vec::new(),
                not_given: NotGiven::Unknown(NOT_HERE.to_owned()),
                nodes: Fact::Unknown(NOT_HERE.to_owned()),
                api_service: Fact::Unknown(NOT_HERE.to_owned()),
            });
        };
        let cluster = Cluster::read(cache);
        let nodes = cache.list(Kind::Node, "");
        Self(Kubernetes {
            pod_subnets: subnets(&pods, &cluster.pod_subnets),
            service_subnets: subnets(&services, &cluster.service_subnets),
            fabric_subnets: subnets(&fabric, &[]),
            not_given: NotGiven::OfImage,
            nodes: addresses(nodes.iter().map(|node| Node::of(node))),
            api_service: Fact::Unknown(NOT_READ.to_owned()),
        })
    }
}

/// Those that are given, with commas or blanks between, else the others.
fn subnets(given: &str, others: &[String]) -> Vec<Subnet> {
    let given: Vec<&str> = given.split([',', ' ']).filter(|one| !one.is_empty()).collect();
    match given.is_empty() {
        true => others.iter().filter_map(|text| text.parse().ok()).collect(),
        false => given.into_iter().filter_map(|text| text.parse().ok()).collect(),
    }
}

fn addresses(nodes: impl Iterator<Item = Node>) -> Fact<BTreeMap<String, Ipv4Addr>> {
    let mut known = BTreeMap::new();
    for node in nodes {
        let Some(address) = node.address.as_ref().and_then(|address| address.parse().ok()) else {
            return Fact::Unknown(format!("the node {} has no InternalIP of IPv4", node.name));
        };
        known.insert(node.name, address);
    }
    Fact::Known(known)
}

/// The input of the plan.
///
/// # Errors
/// What is to be said of an annotation that cannot be read.
pub(super) fn input(
    record: &ClusterId,
    spec: &NestedClusterSpec,
    facts: Facts,
    object: &DynamicObject,
) -> Result<Input, Said> {
    let choices = Choices {
        record: record.to_string(),
        profile: Profile::default(),
        naming: Naming::default(),
        node_addresses: BTreeMap::new(),
        vrouter_address: None,
        permissions: permissions(object)?,
        kubernetes: facts.0,
        driver: None,
        certificates: BTreeMap::new(),
        percent_passwords: None,
    };
    Ok(Input::new(spec, choices))
}

/// What becomes of rows of others at our addresses and ports.
pub(super) fn foreign(input: &Input) -> Foreign {
    match input.choices.permissions.take_over {
        Permission::Granted => Foreign::TakeOver,
        Permission::Refused => Foreign::Respect,
    }
}

/// By the annotation, in the words of the plugin's flags.
fn permissions(object: &DynamicObject) -> Result<Permissions, Said> {
    let mut permissions = Permissions::default();
    let given = object.annotations().get(ALLOW).map(String::as_str).unwrap_or_default();
    for word in given.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let permission = match word {
            "subnet-overlap" => &mut permissions.subnet_overlap,
            "own-address" => &mut permissions.own_fabric_address,
            "take-over" => &mut permissions.take_over,
            "adopt-name" => &mut permissions.adopt_name,
            "prune" => &mut permissions.prune,
            _ => {
                let message = format!(
                    "the annotation {ALLOW} has {word:?}: it can be subnet-overlap, own-address, take-over, adopt-name, prune, \
                     with commas between"
                );
                return Err(Said::stalled("AnnotationUnreadable", message));
            }
        };
        *permission = Permission::Granted;
    }
    Ok(permissions)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(annotations: serde_json::Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "tf", "uid": "u",
            "annotations": annotations}}))
        .unwrap()
    }

    fn spec() -> NestedClusterSpec {
        serde_json::from_value(json!({"clusterName": "k8s-a", "clusterNetwork": {"project": "admin", "name": "vms"},
            "configApi": {"urls": ["http://192.0.2.1:8082"]}, "services": {"config": {"addresses": ["192.0.2.1"]}},
            "serviceAddresses": ["10.10.10.1"]}))
        .unwrap()
    }

    #[test]
    fn permissions_are_given_by_the_words_of_the_flags() {
        let of = |text: &str| permissions(&object(json!({ (ALLOW): text })));
        let all = of("adopt-name, take-over").unwrap();
        assert_eq!((all.adopt_name, all.take_over), (Permission::Granted, Permission::Granted));
        assert_eq!(all.subnet_overlap, Permission::Refused);
        assert!(of("everything").is_err());
        assert_eq!(of("").unwrap().adopt_name, Permission::Refused);
    }

    #[test]
    fn nodes_are_known_only_where_the_operator_runs_in_that_cluster() {
        let (cache, object, spec) = (Cache::default(), object(json!({})), spec());
        let nodes = |cache: &Cache| Facts::of(cache, &object, &spec).0.nodes;
        let stored = |kind: &str, name: &str, namespace: Option<&str>, data: serde_json::Value| {
            let mut object: DynamicObject = serde_json::from_value(json!({"apiVersion": "a/v1", "kind": kind,
                "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}}))
            .unwrap();
            object.data = data;
            object
        };
        let status =
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]}});
        cache.put(Kind::Node, stored("Node", "master1", None, status));
        assert!(matches!(nodes(&cache), Fact::Unknown(_)));
        let other = json!({"spec": {"serviceConfiguration": {"nested": {"clusterName": "k8s-b"}}}});
        cache.put(Kind::Component("Kubemanager"), stored("Kubemanager", "b", Some("tf"), other));
        assert!(matches!(nodes(&cache), Fact::Unknown(_)));
        let facts = Facts::of(&cache, &object, &spec).0;
        assert!(matches!(facts.not_given, NotGiven::Unknown(_)), "another cluster's networks");
        let ours = json!({"spec": {"serviceConfiguration": {"podSubnet": "10.40.0.0/16,10.41.0.0/16",
            "nested": {"clusterName": "k8s-a"}}}});
        cache.put(Kind::Component("Kubemanager"), stored("Kubemanager", "a", Some("tf"), ours));
        let Fact::Known(known) = nodes(&cache) else { panic!("unknown") };
        assert_eq!(known["master1"].to_string(), "10.0.0.5");
        let facts = Facts::of(&cache, &object, &spec).0;
        let pods: Vec<String> = facts.pod_subnets.iter().map(ToString::to_string).collect();
        assert_eq!(pods, ["10.40.0.0/16", "10.41.0.0/16"]);
        assert_eq!(facts.not_given, NotGiven::OfImage);
    }
}
