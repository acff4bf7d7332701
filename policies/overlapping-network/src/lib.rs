//! Networks that kube-manager or a nested cluster is given, and that do not go with those of the cluster.
//!
//! ```yaml
//! kind: Kubemanager
//! spec:
//!   serviceConfiguration:
//!     ipFabricSubnets: 10.96.0.0/12      # the Services' network of the cluster
//! ```
//!
//! What the cluster has is looked up: networks of pods and addresses in Node objects, networks of Services in
//! ServiceCIDRs; the networks of a cloud that no object lists are not seen here. That an address of a LinkLocalService
//! lies in a network of kube-manager is said of the service, by `duplicate-link-local`: tenants may have thousands, and to
//! look at all of them would take longer than a policy has. What kube-manager gives to pods is a warning. Refused is that a nested one would reach no Service, and that a NestedCluster takes addresses
//! away that the cluster itself uses. podSubnet and serviceSubnet count with our operator alone, so that outside nested
//! mode they are a warning: tf-operator takes what the cluster says of itself.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use opensdn_policy_components::{ComponentView, Network, Owners, Services, null_as_default};
use opensdn_policy_sdk::{
    Failure, Index, Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict,
    policy,
};
use serde::{Deserialize, de::IgnoredAny};

mod addresses;

use addresses::Addresses;

const OVERLAP: Message = Message {
    code: "OSDN1702",
    severity: Severity::Warn,
    title: "a network of kube-manager overlaps with one of the cluster",
    explanation: "kube-manager gives pods addresses of ipFabricSubnets that nothing else may have: where the \
        network overlaps with that of pods, Services or nodes, two have one address, and which of them is \
        reached differs from node to node. Addresses of 169.254.0.0/16, and those of link-local services, every \
        vrouter takes for itself. Where the field is unset it is 10.64.0.0/12. With our operator podSubnet is the \
        network of all other pods, and the same holds for it; tf-operator does not read it.",
    hint: "choose a network that the cluster does not use: kubectl get nodes -o wide, and kubectl get \
        servicecidrs",
};

const SERVICES: Message = Message {
    code: "OSDN3035",
    severity: Severity::Deny,
    title: "kube-manager is given networks of Services that are not the cluster's",
    explanation: "It makes the load balancer of each Service in the networks of serviceSubnet: a Service whose \
        ClusterIP lies in none of them, that of the Kubernetes API above all, is not reached by pods. tf-operator does \
        not read the field, so outside nested mode, which our operator alone has, it is a warning.",
    hint: "give the networks of kubectl get servicecidrs, with blanks or commas between them, or leave serviceSubnet out",
};

const OF_A_NODE: Message = Message {
    code: "OSDN3002",
    severity: Severity::Deny,
    title: "an address for link-local services of a nested cluster is that of a node",
    explanation: "Every vrouter takes all traffic to the address, from every network of the cloud and on all ports: \
        no workload reaches the node any more.",
    hint: "choose addresses in serviceAddresses that nothing else in the cloud has",
};

const OF_THE_CLUSTER: Message = Message {
    code: "OSDN3004",
    severity: Severity::Deny,
    title: "addresses for link-local services of a nested cluster are of pods or Services",
    explanation: "Every vrouter takes all traffic to these addresses, from every network of the cloud and on all \
        ports: the pod or the Service that has one is not reached any more.",
    hint: "choose addresses in serviceAddresses that nothing else in the cloud has",
};

const TOO_FEW: Message = Message {
    code: "OSDN3013",
    severity: Severity::Warn,
    title: "a nested cluster has too few addresses for link-local services",
    explanation: "With link-local services each node of the underlay needs an address of its own, and the vrouters need one; \
        with Fabric SNAT the vrouters alone. Nodes that have theirs by rows of an earlier plan keep them, else the plan \
        ends here.",
    hint: "add addresses to serviceAddresses; which are needed says: kubectl opensdn nested plan -f FILE",
};

/// With their addresses, unlike the index of `duplicate-link-local`.
const NODES: Index = Index {
    name: "networks-of-nodes",
    group: "",
    kind: "Node",
    key: "",
    reads: &["/spec/podCIDRs", "/status/addresses"],
};

const SERVICE_CIDRS: Index = Index {
    name: "service-cidrs",
    group: "networking.k8s.io",
    kind: "ServiceCIDR",
    key: "",
    reads: &["/spec/cidrs"],
};

/// What kube-manager gets where the field is unset: upstream's `pkg/apis/tf/v1alpha1/defaults.go:180`.
const DEFAULT: &str = "10.64.0.0/12";

const LINK_LOCAL: &str = "169.254.0.0/16";

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/nested")]
    nested: Option<IgnoredAny>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Kubemanager")]
struct Kubemanager {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "NestedCluster")]
struct NestedCluster {
    #[read("/spec/serviceAddresses")]
    addresses: Option<Vec<String>>,
    #[read("/spec/connectivity")]
    connectivity: Option<String>,
    #[read("/spec/services")]
    services: Option<Underlay>,
}

/// The services of the underlay, without the port of the vrouters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Underlay {
    config: Option<Fabric>,
    analytics: Option<Fabric>,
    config_database: Option<Fabric>,
    rabbitmq: Option<Fabric>,
    zookeeper: Option<Fabric>,
    keystone: Option<Fabric>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Fabric {
    #[serde(deserialize_with = "null_as_default")]
    addresses: Vec<String>,
}

impl Underlay {
    /// The addresses of its nodes.
    fn nodes(&self) -> BTreeSet<Ipv4Addr> {
        let Self { config, analytics, config_database, rabbitmq, zookeeper, keystone } = self;
        let all = [config, analytics, config_database, rabbitmq, zookeeper, keystone];
        let addresses = all.into_iter().flatten().flat_map(|service| &service.addresses);
        addresses.filter_map(|text| text.parse().ok()).collect()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Configuration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Configuration {
    #[serde(deserialize_with = "null_as_default")]
    ip_fabric_subnets: String,
    #[serde(deserialize_with = "null_as_default")]
    ip_fabric_forwarding: bool,
    #[serde(deserialize_with = "null_as_default")]
    pod_subnet: String,
    #[serde(deserialize_with = "null_as_default")]
    service_subnet: String,
    nested: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    address: String,
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { nested, services: Some(services) }) = &request.object else {
        return Ok(());
    };
    for component in services.walk().filter(|component| component.kind == "Kubemanager") {
        judge(&component, nested.is_some(), verdict)?;
    }
    Ok(())
}

fn kubemanager(request: &Request<Kubemanager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Kubemanager { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
    if owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    judge(&ComponentView::standalone(&request.kind, &request.name, spec), false, verdict)
}

fn nested_cluster(
    request: &Request<NestedCluster>,
    _: &NoSettings,
    verdict: &mut Verdict,
) -> Outcome {
    let given = request.object.as_ref().and_then(|cluster| cluster.addresses.as_ref());
    for (number, text) in given.into_iter().flatten().enumerate() {
        let Some(addresses) = Addresses::parse(text) else { continue };
        let at = Pointer::from("/spec/serviceAddresses").index(number);
        match used(&addresses)? {
            Some(Used::Network(other)) => {
                verdict.add(OF_THE_CLUSTER.at(at).says(format!("{text} overlaps with {other}")));
            }
            Some(Used::Node(other)) => {
                verdict.add(OF_A_NODE.at(at).says(format!("{text} has {other}")));
            }
            None => {}
        }
    }
    if let Some(cluster) = &request.object {
        judge_number(cluster, verdict);
    }
    Ok(())
}

/// An address of the underlay itself is given to no service.
fn judge_number(cluster: &NestedCluster, verdict: &mut Verdict) {
    let Some(given) = cluster.addresses.as_ref().filter(|given| !given.is_empty()) else { return };
    let given: Option<Vec<Addresses>> = given.iter().map(|text| Addresses::parse(text)).collect();
    // What cannot be read the schema refuses.
    let Some(given) = given else { return };
    let nodes = cluster.services.as_ref().map(Underlay::nodes).unwrap_or_default();
    let is_link_local = cluster.connectivity.as_deref() == Some("LinkLocal");
    let needed = if is_link_local { nodes.len() + 1 } else { 1 };
    let have = Addresses::number_without(&given, &nodes, needed);
    if have < needed {
        let text = format!("there are {have} addresses for {needed} that are needed");
        verdict.add(TOO_FEW.at("/spec/serviceAddresses").says(text));
    }
}

fn judge(component: &ComponentView<'_, Spec>, nested: bool, verdict: &mut Verdict) -> Outcome {
    let configuration = &component.spec.service_configuration;
    let at = component.setting("/ipFabricSubnets");
    let given = &configuration.ip_fabric_subnets;
    // Without forwarding no pod gets an address of the default.
    let is_default = matches!(given.trim(), "" | DEFAULT);
    let (texts, default) = match (is_default, configuration.ip_fabric_forwarding) {
        (true, true) => (DEFAULT, ", the default,"),
        // explicit-defaults writes it where its user has not.
        (true, false) => ("", ""),
        (false, _) => (&**given, ""),
    };
    for text in texts.split_whitespace() {
        let Some(network) = Network::parse(text) else { continue };
        if let Some(other) = used_of_the_fabric(&network.into())? {
            verdict.add(OVERLAP.at(&at).says(format!("{text}{default} overlaps with {other}")));
        }
    }
    judge_pods(component, verdict)?;
    let readers =
        if nested || configuration.nested.is_some() { Readers::All } else { Readers::Ours };
    judge_services(component, readers, verdict)
}

/// Who has kube-manager read podSubnet and serviceSubnet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Our operator; tf-operator does not.
    Ours,
    /// Nested mode, which tf-operator does not have.
    All,
}

/// The networks of a text, as our operator separates them.
fn networks(text: &str) -> impl Iterator<Item = (&str, Network)> {
    let all = text.split(|letter: char| letter == ',' || letter.is_whitespace());
    all.filter_map(|one| Some((one, Network::parse(one)?)))
}

/// The pods' network of the nodes is what podSubnet is meant to be.
fn judge_pods(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) -> Outcome {
    for (text, network) in networks(&component.spec.service_configuration.pod_subnet) {
        let addresses = network.into();
        let other = match of_link_local(&addresses) {
            Some(other) => Some(other),
            None => match of_services(&addresses)? {
                Some(other) => Some(other),
                None => of_nodes(&addresses)?,
            },
        };
        if let Some(other) = other {
            let text = format!(
                "with our operator it is the pods' network, and {text} overlaps with {other}"
            );
            verdict.add(OVERLAP.at(component.setting("/podSubnet")).says(text));
        }
    }
    Ok(())
}

/// What has some of the addresses that kube-manager would give to pods, in words.
fn used_of_the_fabric(addresses: &Addresses) -> Result<Option<String>, Failure> {
    if let Some(link_local) = of_link_local(addresses) {
        return Ok(Some(link_local));
    }
    Ok(used(addresses)?.map(|(Used::Network(other) | Used::Node(other))| other))
}

fn of_link_local(addresses: &Addresses) -> Option<String> {
    let meets = Addresses::parse(LINK_LOCAL).is_some_and(|link_local| addresses.meet(link_local));
    meets.then(|| format!("the link-local addresses {LINK_LOCAL}"))
}

fn of_services(addresses: &Addresses) -> Result<Option<String>, Failure> {
    let mut services = service_networks()?.into_iter();
    let found = services.find(|(_, network, _)| addresses.meet((*network).into()));
    Ok(found.map(|(text, _, name)| format!("the Services' network {text} (ServiceCIDR {name})")))
}

fn of_nodes(addresses: &Addresses) -> Result<Option<String>, Failure> {
    for node in NODES.find("")? {
        for Address { address } in node.part::<Vec<Address>>(1)?.unwrap_or_default() {
            if address.parse().is_ok_and(|address| addresses.contain(address)) {
                return Ok(Some(format!("the address {address} of the node {}", node.name())));
            }
        }
    }
    Ok(None)
}

/// What uses an address already, in words.
enum Used {
    Network(String),
    Node(String),
}

/// What of the cluster has some of the addresses.
fn used(addresses: &Addresses) -> Result<Option<Used>, Failure> {
    if let Some(services) = of_services(addresses)? {
        return Ok(Some(Used::Network(services)));
    }
    for node in NODES.find("")? {
        for text in node.part::<Vec<String>>(0)?.unwrap_or_default() {
            if Network::parse(&text).is_some_and(|pods| addresses.meet(pods.into())) {
                let text = format!("the pods' network {text} (node {})", node.name());
                return Ok(Some(Used::Network(text)));
            }
        }
        for Address { address } in node.part::<Vec<Address>>(1)?.unwrap_or_default() {
            if address.parse().is_ok_and(|address| addresses.contain(address)) {
                let text = format!("the address {address} of the node {}", node.name());
                return Ok(Some(Used::Node(text)));
            }
        }
    }
    Ok(None)
}

/// The networks of Services, with the names of their ServiceCIDRs.
fn service_networks() -> Result<Vec<(String, Network, String)>, Failure> {
    let mut networks = Vec::new();
    for object in SERVICE_CIDRS.find("")? {
        for text in object.part::<Vec<String>>(0)?.unwrap_or_default() {
            if let Some(network) = Network::parse(&text) {
                networks.push((text, network, object.name().to_owned()));
            }
        }
    }
    Ok(networks)
}

/// Without networks of its own it uses the cluster's.
fn judge_services(
    component: &ComponentView<'_, Spec>,
    readers: Readers,
    verdict: &mut Verdict,
) -> Outcome {
    let given = &component.spec.service_configuration.service_subnet;
    let own: Vec<Network> = networks(given).map(|(_, network)| network).collect();
    if own.is_empty() {
        return Ok(());
    }
    for (text, network, name) in service_networks()? {
        if own.iter().any(|one| one.covers(&network)) {
            continue;
        }
        // The API server takes the first address for itself, as the Service kubernetes.
        let has_api = own.iter().any(|one| one.contains(network.first()));
        let finding = SERVICES.at(component.setting("/serviceSubnet"));
        let has = if has_api { "not all" } else { "nothing" };
        let said =
            format!("{given} has {has} of the Services' network {text} (ServiceCIDR {name})");
        verdict.add(match (readers, has_api) {
            (Readers::All, false) => finding.says(said),
            (Readers::All, true) => finding.severity(Severity::Warn).says(said),
            (Readers::Ours, _) => {
                let said = format!("{said}, and our operator has kube-manager take it; tf-operator does not read it");
                finding.severity(Severity::Warn).says(said)
            }
        });
    }
    Ok(())
}

policy! {
    name: "overlapping-network",
    summary: "networks that are given go with those of the cluster",
    settings: NoSettings,
    messages: [OVERLAP, SERVICES, OF_A_NODE, OF_THE_CLUSTER, TOO_FEW],
    indexes: [NODES, SERVICE_CIDRS],
    validate: [manager, kubemanager, nested_cluster],
}
