//! What a plan is made from besides the cloud: the spec of a NestedCluster, read here once, and what is chosen beside
//! it. What cannot be read becomes a finding, and the rest is planned all the same, so that one run shows all that is
//! wrong. Deliberately not here: flags and files from which the choices come.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{Connectivity, FabricService, NestedClusterSpec, Services};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::Code;
use crate::finding::{Finding, Report, Subject};
use crate::live::Fact;
use crate::pool::Pool;
use crate::roles::{Naming, Profile, Role};
use crate::subnet::Subnet;

/// What a cluster wants.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name in OpenSDN.
    pub cluster: String,
    /// How it reaches the underlay.
    pub connectivity: Connectivity,
    /// The network of its nodes.
    pub network: NetworkName,
    /// The services of the underlay but for the vrouter.
    pub services: BTreeMap<Role, Service>,
    /// The port of the vrouter agents.
    pub vrouter_port: u16,
    /// Service addresses that may be taken.
    pub pool: Pool,
    /// What is chosen beside the spec.
    pub choices: Choices,
    /// What could not be read.
    pub problems: Vec<Finding>,
}

/// The fully qualified name of a virtual network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkName {
    /// The domain.
    pub domain: String,
    /// The project.
    pub project: String,
    /// The network.
    pub name: String,
}

/// A service of the underlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its nodes; rows are numbered in this order.
    pub nodes: BTreeSet<Ipv4Addr>,
    /// Its port as virtual machines see it.
    pub port: u16,
    /// Its port in the fabric.
    pub fabric_port: u16,
}

/// What is chosen beside the spec.
#[derive(Clone, Debug)]
pub struct Choices {
    /// By what the cluster's record is known: unique and without an end, such as the uuid of its kube-system.
    pub record: String,
    /// Which release's ports are the defaults.
    pub profile: Profile,
    /// How new rows are named.
    pub naming: Naming,
    /// Service addresses that are given to certain nodes of the underlay.
    pub node_addresses: BTreeMap<Ipv4Addr, Ipv4Addr>,
    /// The service address that is given to the vrouters.
    pub vrouter_address: Option<Ipv4Addr>,
    /// What is allowed that is refused otherwise.
    pub permissions: Permissions,
    /// The cluster itself.
    pub kubernetes: Kubernetes,
    /// By which driver the images speak to the config database. Nothing: that which the profile says.
    pub driver: Option<Fact<Driver>>,
    /// Of services that speak TLS, the names and addresses in their certificates.
    pub certificates: BTreeMap<Role, Fact<BTreeSet<String>>>,
    /// Passwords that have a `%` in them, by the names of their variables. The passwords themselves are not wanted.
    /// Nothing: no password is part of the plan.
    pub percent_passwords: Option<Fact<Vec<String>>>,
}

/// How images speak to the config database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// By CQL, which needs ZooKeeper too.
    Cql,
    /// By Thrift.
    Thrift,
}

/// Whether something is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    /// It is an error.
    #[default]
    Refused,
    /// It is a warning.
    Granted,
}

/// What is allowed that is refused otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Service addresses in subnets of virtual networks, where they are unused.
    pub subnet_overlap: Permission,
    /// Rows of others that have our keys are replaced.
    pub take_over: Permission,
    /// A node's own fabric address as its service address.
    pub own_fabric_address: Permission,
    /// What carries the cluster's name and is of no known owner counts as ours.
    pub adopt_name: Permission,
    /// What the cluster has in the cloud and does not want any more is taken away.
    pub prune: Permission,
}

/// The cluster itself.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// Networks of pods; none: see `not_given`.
    pub pod_subnets: Vec<Subnet>,
    /// Networks of Services; none: see `not_given`.
    pub service_subnets: Vec<Subnet>,
    /// Networks of pods in the fabric; none: see `not_given`.
    pub fabric_subnets: Vec<Subnet>,
    /// What networks are that are not given.
    pub not_given: NotGiven,
    /// The InternalIPs of the nodes by their names.
    pub nodes: Fact<BTreeMap<String, Ipv4Addr>>,
    /// The ClusterIP of the Service `kubernetes`.
    pub api_service: Fact<Ipv4Addr>,
}

/// What the networks of a cluster are that are not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NotGiven {
    /// Those that the image of kube-manager takes.
    #[default]
    OfImage,
    /// Not known, and why: somebody else makes the workloads.
    Unknown(String),
}

impl Kubernetes {
    /// The networks that kube-manager has in the end, as far as they are known, with what they are of.
    pub(crate) fn subnets(&self) -> Vec<(&'static str, Subnet)> {
        let of = |what, given: &[Subnet], default: [u8; 4]| {
            let is_of_image = given.is_empty() && self.not_given == NotGiven::OfImage;
            let default = Subnet::new(default.into(), 12).filter(|_| is_of_image);
            let all: Vec<Subnet> = given.iter().copied().chain(default).collect();
            all.into_iter().map(move |subnet| (what, subnet))
        };
        of("pods", &self.pod_subnets, [10, 32, 0, 0])
            .chain(of("Services", &self.service_subnets, [10, 96, 0, 0]))
            .chain(of("pods in the fabric", &self.fabric_subnets, [10, 64, 0, 0]))
            .collect()
    }

    /// Why some of them are not known.
    pub(crate) fn unknown_subnets(&self) -> Option<&str> {
        let all = [&self.pod_subnets, &self.service_subnets, &self.fabric_subnets];
        match &self.not_given {
            NotGiven::Unknown(why) if all.into_iter().any(Vec::is_empty) => Some(why),
            _ => None,
        }
    }
}

impl NetworkName {
    /// With colons, as OpenSDN writes it.
    #[must_use]
    pub fn joined(&self) -> String {
        format!("{}:{}:{}", self.domain, self.project, self.name)
    }
}

impl Input {
    /// Reads the spec.
    #[must_use]
    pub fn new(spec: &NestedClusterSpec, choices: Choices) -> Self {
        let mut report = Report::default();
        let (pool, wrong) = Pool::read(&spec.service_addresses);
        for error in wrong {
            let about = Subject::Field("serviceAddresses".to_owned());
            report.find(Code::AddressUnusable, about, error.to_string(), "correct or remove it");
        }
        let profile = choices.profile;
        let vrouter_port = port("vrouterPort", spec.services.vrouter_port, &mut report);
        Self {
            cluster: spec.cluster_name.clone(),
            connectivity: spec.connectivity.unwrap_or(Connectivity::FabricSnat),
            network: network(&spec.cluster_network, &mut report),
            services: services(&spec.services, profile, &mut report),
            vrouter_port: vrouter_port.unwrap_or(profile.port(Role::Vrouter)),
            pool,
            choices,
            problems: report.findings,
        }
    }

    /// Every node of the control plane.
    pub(crate) fn control_plane(&self) -> BTreeSet<Ipv4Addr> {
        self.services.values().flat_map(|service| service.nodes.iter().copied()).collect()
    }

    pub(crate) fn is_link_local(&self) -> bool {
        self.connectivity == Connectivity::LinkLocal
    }
}

fn network(given: &VirtualNetwork, report: &mut Report) -> NetworkName {
    let domain = given.domain.as_deref().filter(|domain| !domain.is_empty());
    for (field, value) in [("project", &given.project), ("name", &given.name)] {
        if value.trim().is_empty() {
            report.find(
                Code::NetworkMissing,
                Subject::Field(format!("clusterNetwork.{field}")),
                format!("clusterNetwork.{field} is empty"),
                "name the virtual network of the nodes: kube-manager takes exactly one",
            );
        }
    }
    NetworkName {
        domain: domain.unwrap_or("default-domain").to_owned(),
        project: given.project.clone(),
        name: given.name.clone(),
    }
}

fn services(given: &Services, profile: Profile, report: &mut Report) -> BTreeMap<Role, Service> {
    let config = Some(&given.config);
    // As upstream's containers derive these lists (base/common.sh).
    let database = given.config_database.as_ref().filter(|one| !one.addresses.is_empty());
    let database = database.or(config);
    let all = [
        (Role::Config, "services.config", config, None),
        (Role::Analytics, "services.analytics", given.analytics.as_ref(), config),
        (Role::Rabbitmq, "services.rabbitmq", given.rabbitmq.as_ref(), database),
        (Role::ConfigDatabase, "services.configDatabase", given.config_database.as_ref(), config),
        (Role::Zookeeper, "services.zookeeper", given.zookeeper.as_ref(), database),
        (Role::Keystone, "services.keystone", given.keystone.as_ref(), None),
    ];
    let mut services = BTreeMap::new();
    for (role, field, service, default) in all.into_iter().filter(|(role, ..)| profile.has(*role)) {
        let nodes = match (service.filter(|one| !one.addresses.is_empty()), default) {
            (Some(service), _) => nodes(field, service, report),
            // What is wrong with these is reported of that service.
            (None, Some(default)) => nodes(field, default, &mut Report::default()),
            (None, None) => BTreeSet::new(),
        };
        let port = service.and_then(|one| port(&format!("{field}.port"), one.port, report));
        let port = port.unwrap_or(profile.port(role));
        if !nodes.is_empty() {
            services.insert(role, Service { nodes, port, fabric_port: port });
        }
    }
    services
}

fn nodes(field: &str, service: &FabricService, report: &mut Report) -> BTreeSet<Ipv4Addr> {
    let mut nodes = BTreeSet::new();
    for text in &service.addresses {
        let address = text.trim().parse::<Ipv4Addr>().ok();
        let about = || Subject::Field(format!("{field}.addresses"));
        match address {
            Some(address) if address.is_loopback() => report.find(
                Code::LoopbackTarget,
                about(),
                format!("{field} has the address {address}, which is that of each compute node"),
                LOOPBACK_HINT,
            ),
            Some(address) if is_host(address) => drop(nodes.insert(address)),
            _ => report.find(
                Code::TargetNotIpv4,
                about(),
                format!("{field} has the address {text:?}, which is no IPv4 address of a host"),
                "give the IPv4 address of the node in the fabric",
            ),
        }
    }
    nodes
}

/// Also said of rows.
pub(crate) const LOOPBACK_HINT: &str = "give the node's real address in the fabric: on the node itself it takes the \
    same path";

fn port(field: &str, given: Option<i64>, report: &mut Report) -> Option<u16> {
    let given = given?;
    let port = u16::try_from(given).ok().filter(|port| *port > 0);
    if port.is_none() {
        let message = format!("{field} is {given}");
        report.find(
            Code::PortOutOfRange,
            Subject::Field(field.to_owned()),
            message,
            "give a port from 1 to 65535",
        );
    }
    port
}

/// Whether one machine can have it as its address towards others.
pub(crate) fn is_host(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

#[cfg(test)]
mod tests;
