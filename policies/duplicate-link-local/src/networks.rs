//! What has an address already, as far as the settings and the cluster say.

use std::net::Ipv4Addr;

use opensdn_policy_components::Network;
use opensdn_policy_sdk::{Failure, Index};

use crate::Settings;

pub(crate) const NODES: Index =
    Index { name: "nodes", group: "", kind: "Node", key: "", reads: &["/spec/podCIDRs"] };

pub(crate) const NODES_BY_ADDRESS: Index = Index {
    name: "nodes-by-address",
    group: "",
    kind: "Node",
    key: "/status/addresses/*/address",
    reads: &["/metadata/name"],
};

pub(crate) const SERVICE_CIDRS: Index = Index {
    name: "service-cidrs",
    group: "networking.k8s.io",
    kind: "ServiceCIDR",
    key: "",
    reads: &["/spec/cidrs"],
};

/// By namespace: a Kubemanager gives its networks to the Config of its own namespace, so it says
/// nothing of what the Config of another one has.
pub(crate) const KUBEMANAGERS: Index = Index {
    name: "kubemanagers",
    group: "tf.tungsten.io",
    kind: "Kubemanager",
    key: "/metadata/namespace",
    reads: &[
        "/spec/serviceConfiguration/ipFabricSubnets",
        "/spec/serviceConfiguration/ipFabricForwarding",
    ],
};

/// What a Kubemanager uses that does not say otherwise.
const DEFAULT_FABRIC: &str = "10.64.0.0/12";

/// Who has an address, in words.
pub(crate) enum Owner {
    /// It does.
    Certain(String),
    /// Pods may get it, as their namespace says.
    Possible(String),
}

/// The networks that the settings name; the cluster's are looked up, those of Kubemanagers in the
/// namespace of the object that is judged.
pub(crate) struct Networks<'a> {
    of_settings: Vec<(&'static str, String, Network)>,
    namespace: &'a str,
}

impl<'a> Networks<'a> {
    /// # Errors
    /// A setting is no IPv4 network.
    pub(crate) fn new(settings: &Settings, namespace: &'a str) -> Result<Self, Failure> {
        let mut networks = Vec::new();
        for (setting, subnets) in [
            ("podSubnets", &settings.pod_subnets),
            ("serviceSubnets", &settings.service_subnets),
            ("fabricSubnets", &settings.fabric_subnets),
        ] {
            for text in subnets {
                let network = Network::parse(text).ok_or_else(|| {
                    Failure(format!("the setting {setting} has {text:?}, which is no IPv4 network"))
                })?;
                networks.push((setting, text.clone(), network));
            }
        }
        Ok(Self { of_settings: networks, namespace })
    }

    /// Whose the address is, in words.
    ///
    /// # Errors
    /// The cluster does not say.
    pub(crate) fn owner_of(&self, ip: Ipv4Addr) -> Result<Option<Owner>, Failure> {
        if let Some(owner) = self.of_settings_or_cluster(ip)? {
            return Ok(Some(Owner::Certain(owner)));
        }
        // No cluster gives its pods addresses that are link-local.
        if ip.is_link_local() { Ok(None) } else { of_fabric(self.namespace, ip) }
    }

    fn of_settings_or_cluster(&self, ip: Ipv4Addr) -> Result<Option<String>, Failure> {
        let set = self.of_settings.iter().find(|(_, _, network)| network.contains(ip));
        if let Some((setting, text, _)) = set {
            return Ok(Some(format!("the network {text} (setting {setting})")));
        }
        // No cluster gives its pods, services or nodes addresses that are link-local.
        if ip.is_link_local() {
            return Ok(None);
        }
        if let Some(node) = NODES_BY_ADDRESS.find_first(&ip.to_string(), 1)?.first() {
            return Ok(Some(format!("the node {}", node.name())));
        }
        if let Some((text, name)) = listed(&SERVICE_CIDRS, ip)? {
            return Ok(Some(format!("the Services' network {text} (ServiceCIDR {name})")));
        }
        Ok(listed(&NODES, ip)?
            .map(|(text, name)| format!("the pods' network {text} (node {name})")))
    }
}

/// Pods have addresses of the fabric's network where ipFabricForwarding is true. Elsewhere those of isolated namespaces
/// have that ask for it (tf-controller, `kube_manager/vnc/vnc_kubernetes.py:523-532`, `vnc_namespace.py:502-509`), and of
/// a default that a user did not write none can be expected to.
fn of_fabric(namespace: &str, ip: Ipv4Addr) -> Result<Option<Owner>, Failure> {
    let mut possible = None;
    for object in KUBEMANAGERS.find(namespace)? {
        let given = object.part::<Option<String>>(0)?.flatten().unwrap_or_default();
        let forwards = object.part::<Option<bool>>(1)?.flatten().unwrap_or_default();
        let is_default = matches!(given.trim(), "" | DEFAULT_FABRIC);
        let networks = match (is_default, forwards) {
            (true, false) => continue,
            (true, true) => DEFAULT_FABRIC,
            (false, _) => &given,
        };
        let Some(text) = words(networks).find(|text| has(text, ip)) else { continue };
        let owner = format!(
            "the fabric's network {text} (ipFabricSubnets of Kubemanager {})",
            object.name()
        );
        if forwards {
            return Ok(Some(Owner::Certain(owner)));
        }
        possible = Some(Owner::Possible(owner));
    }
    Ok(possible)
}

/// kube-manager splits at white space; what is stored from earlier may have commas.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter == ',' || letter.is_whitespace())
}

fn has(network: &str, ip: Ipv4Addr) -> bool {
    Network::parse(network).is_some_and(|network| network.contains(ip))
}

/// The first network that contains the address, and the object that says so.
fn listed(index: &Index, ip: Ipv4Addr) -> Result<Option<(String, String)>, Failure> {
    for object in index.find("")? {
        let networks = object.part::<Vec<String>>(0)?.unwrap_or_default();
        if let Some(text) = networks.into_iter().find(|text| has(text, ip)) {
            return Ok(Some((text, object.name().to_owned())));
        }
    }
    Ok(None)
}
