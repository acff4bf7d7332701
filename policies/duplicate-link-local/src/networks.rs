//! What has an address already, as far as the settings and the cluster say.

use std::net::Ipv4Addr;

use opensdn_policy_components::Network;
use opensdn_policy_sdk::{Failure, Index};
use serde::Deserialize;

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
    reads: &["/spec/serviceConfiguration/ipFabricSubnets"],
};

/// What a Kubemanager uses that does not say otherwise.
const DEFAULT_FABRIC: &str = "10.64.0.0/12";

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
    pub(crate) fn owner_of(&self, ip: Ipv4Addr) -> Result<Option<String>, Failure> {
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
        if let Some((text, name)) = listed(&SERVICE_CIDRS, "", ip)? {
            return Ok(Some(format!("the Services' network {text} (ServiceCIDR {name})")));
        }
        if let Some((text, name)) = listed(&NODES, "", ip)? {
            return Ok(Some(format!("the pods' network {text} (node {name})")));
        }
        Ok(listed(&KUBEMANAGERS, self.namespace, ip)?.map(|(text, name)| {
            format!("the fabric's network {text} (ipFabricSubnets of Kubemanager {name})")
        }))
    }
}

/// A list of networks, or one string with spaces between them, as kube-manager splits it; what is stored
/// from earlier may have commas.
#[derive(Deserialize)]
#[serde(untagged)]
enum Subnets {
    List(Vec<String>),
    Text(String),
}

/// The first network that contains the address, and the object that says so.
fn listed(index: &Index, key: &str, ip: Ipv4Addr) -> Result<Option<(String, String)>, Failure> {
    for object in index.find(key)? {
        let subnets = match object.part::<Subnets>(0)? {
            Some(Subnets::List(subnets)) => subnets,
            Some(Subnets::Text(text)) if !text.is_empty() => {
                text.split([' ', ',']).map(str::to_owned).collect()
            }
            _ if index.name == KUBEMANAGERS.name => vec![DEFAULT_FABRIC.to_owned()],
            _ => continue,
        };
        let fits = |text: &String| Network::parse(text).is_some_and(|network| network.contains(ip));
        if let Some(text) = subnets.into_iter().find(fits) {
            return Ok(Some((text, object.name().to_owned())));
        }
    }
    Ok(None)
}
