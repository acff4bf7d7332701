//! What a nested cluster wants of its cloud: a NestedCluster in a file, flags, or a file with flags over it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use opensdn_config_api::edit::Foreign;
use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{Connectivity, FabricService, NestedClusterSpec};
use opensdn_nested::{Naming, Permission, Permissions, Profile, Subnet};
use serde_json::Value;

use super::connection::SaidBy;
use crate::exit::{Exit, Failure};
use crate::policy::objects;

/// What the cluster wants.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Nested cluster")]
pub(crate) struct SpecFlags {
    /// A file with a NestedCluster (YAML or JSON, - for standard input); flags win over it.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    filename: Option<PathBuf>,
    /// Name of the cluster in OpenSDN, which no other cluster of the cloud may have, nested or not.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// How nodes reach the services of the underlay [default: fabric-snat].
    #[arg(long, value_enum, value_name = "HOW")]
    connectivity: Option<How>,
    /// The virtual network of the nodes: DOMAIN:PROJECT:NAME, or PROJECT:NAME in default-domain.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    cluster_network: Option<VirtualNetwork>,
    /// Addresses of the Config API in the fabric.
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    config_nodes: Vec<Ipv4Addr>,
    /// Addresses of the collectors [default: those of the Config API].
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    analytics_nodes: Vec<Ipv4Addr>,
    /// Addresses of the message bus [default: those of the config database].
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    rabbitmq_nodes: Vec<Ipv4Addr>,
    /// Addresses of the config database [default: those of the Config API].
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    config_database_nodes: Vec<Ipv4Addr>,
    /// Addresses of ZooKeeper [default: those of the config database].
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    zookeeper_nodes: Vec<Ipv4Addr>,
    /// Addresses of Keystone [default: none].
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    keystone_nodes: Vec<Ipv4Addr>,
    /// Addresses for link-local services, unused in the whole cloud: addresses, networks, or ranges.
    #[arg(long, value_name = "IPS", value_delimiter = ',')]
    service_addresses: Vec<String>,
    #[command(flatten)]
    choices: ChoiceFlags,
}

/// What is chosen beside the spec.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct ChoiceFlags {
    /// Which release's services and ports are the defaults.
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    profile: Ports,
    /// How new link-local services are named.
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    naming: Names,
    /// The service address of a node of the underlay, such as 192.168.1.100=10.10.10.1.
    #[arg(long, value_name = "NODE=IP", value_parser = pair, value_delimiter = ',')]
    node_address: Vec<(Ipv4Addr, Ipv4Addr)>,
    /// The service address of the vrouters.
    #[arg(long, value_name = "IP")]
    vrouter_address: Option<Ipv4Addr>,
    /// Networks of pods, as kube-manager is to have them [default: 10.32.0.0/12, that of its image].
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pod_subnets: Vec<Subnet>,
    /// Networks of Services, as kube-manager is to have them [default: 10.96.0.0/12, that of its image].
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    service_subnets: Vec<Subnet>,
    /// Networks of pods in the fabric, as kube-manager is to have them [default: 10.64.0.0/12, that of its image].
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    fabric_subnets: Vec<Subnet>,
    /// Take service addresses although they are in the subnet of a virtual network.
    #[arg(long)]
    allow_subnet_overlap: bool,
    /// Take a node's own fabric address as its service address: VMs reach no other port of that node then.
    #[arg(long)]
    allow_own_address: bool,
    /// Replace link-local services of other owners that have our address and port.
    #[arg(long)]
    take_over: bool,
    /// Take what has the cluster's name in the cloud, and no known owner, for this cluster's.
    #[arg(long)]
    adopt_name: bool,
    /// Remove what the cluster has in the cloud and does not want any more: when the workloads use what replaces it.
    #[arg(long)]
    prune: bool,
}

/// How nodes reach the services of the underlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// By fabric SNAT on the network of the nodes, and one link-local service for the vrouter.
    FabricSnat,
    /// By a link-local service for each port of each service, which every VM of the cloud reaches.
    LinkLocal,
}

impl From<How> for Connectivity {
    fn from(how: How) -> Self {
        match how {
            How::FabricSnat => Self::FabricSnat,
            How::LinkLocal => Self::LinkLocal,
        }
    }
}

/// Which release's services and ports are the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Ports {
    /// Since 24.1: the database by CQL on 9041, and ZooKeeper.
    #[default]
    Cql,
    /// Up to 21.x: the database by Thrift on 9161, Keystone on 35357.
    Thrift,
    /// Those of the old documentation: as thrift.
    Doc,
}

/// How new link-local services are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Names {
    /// By the cluster, as labels of DNS: k8s-a-config.
    #[default]
    Scoped,
    /// As in the old documentation: Contrail Config.
    Doc,
}

fn network(text: &str) -> Result<VirtualNetwork, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (domain, project, name) = match parts[..] {
        [project, name] => (None, project, name),
        [domain, project, name] => (Some(domain.to_owned()), project, name),
        _ => return Err("must be PROJECT:NAME or DOMAIN:PROJECT:NAME".to_owned()),
    };
    if project.is_empty() || name.is_empty() || domain.as_deref() == Some("") {
        return Err("has an empty part: PROJECT:NAME or DOMAIN:PROJECT:NAME".to_owned());
    }
    Ok(VirtualNetwork { domain, project: project.to_owned(), name: name.to_owned() })
}

pub(crate) fn pair(text: &str) -> Result<(Ipv4Addr, Ipv4Addr), String> {
    let wrong = || format!("{text:?} is not such as 192.168.1.100=10.10.10.1");
    let (node, service) = text.split_once('=').ok_or_else(wrong)?;
    let address = |text: &str| text.trim().parse().map_err(|_| wrong());
    Ok((address(node)?, address(service)?))
}

impl SpecFlags {
    /// The spec that the file and the flags give.
    ///
    /// # Errors
    /// The file cannot be read, or something is missing.
    pub(crate) fn spec(&self) -> Result<NestedClusterSpec, Failure> {
        let spec = self.given()?;
        complete(&spec, &[config_nodes(&spec), service_addresses(&spec)])?;
        Ok(spec)
    }

    /// Who says where the Config API is: nodes that are flags win over the file.
    pub(crate) fn said_by(&self) -> SaidBy {
        match self.filename.is_some() && self.config_nodes.is_empty() {
            true => SaidBy::File,
            false => SaidBy::Flags,
        }
    }

    /// The same where the nodes of the Config API are asked of it.
    ///
    /// # Errors
    /// As of [`Self::spec`].
    pub(crate) fn spec_to_discover(&self) -> Result<NestedClusterSpec, Failure> {
        let spec = self.given()?;
        complete(&spec, &[service_addresses(&spec)])?;
        Ok(spec)
    }

    /// The same where no service address is taken: that of the vrouters has to be given.
    ///
    /// # Errors
    /// As of [`Self::spec`].
    pub(crate) fn spec_with_vrouter_address(&self) -> Result<NestedClusterSpec, Failure> {
        let spec = self.given()?;
        let vrouter = ("--vrouter-address", self.choices.vrouter_address.is_none());
        complete(&spec, &[config_nodes(&spec), vrouter])?;
        Ok(spec)
    }

    /// What the file and the flags give, be it complete or not.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn given(&self) -> Result<NestedClusterSpec, Failure> {
        let mut spec = match &self.filename {
            Some(path) => read(path)?,
            None => NestedClusterSpec {
                cluster_name: String::new(),
                connectivity: None,
                cluster_network: VirtualNetwork::default(),
                config_api: Default::default(),
                services: Default::default(),
                service_addresses: Vec::new(),
            },
        };
        self.override_in(&mut spec);
        Ok(spec)
    }

    fn override_in(&self, spec: &mut NestedClusterSpec) {
        if let Some(name) = &self.cluster_name {
            spec.cluster_name.clone_from(name);
        }
        if let Some(how) = self.connectivity {
            spec.connectivity = Some(how.into());
        }
        if let Some(network) = &self.cluster_network {
            spec.cluster_network.clone_from(network);
        }
        if !self.service_addresses.is_empty() {
            spec.service_addresses.clone_from(&self.service_addresses);
        }
        let services = &mut spec.services;
        put(&self.config_nodes, &mut services.config);
        for (nodes, service) in [
            (&self.analytics_nodes, &mut services.analytics),
            (&self.rabbitmq_nodes, &mut services.rabbitmq),
            (&self.config_database_nodes, &mut services.config_database),
            (&self.zookeeper_nodes, &mut services.zookeeper),
            (&self.keystone_nodes, &mut services.keystone),
        ] {
            if !nodes.is_empty() {
                put(nodes, service.get_or_insert_default());
            }
        }
    }

    /// What is chosen beside it.
    pub(crate) fn choices(&self) -> &ChoiceFlags {
        &self.choices
    }
}

/// A flag, and whether what it says is missing.
type Needed = (&'static str, bool);

fn config_nodes(spec: &NestedClusterSpec) -> Needed {
    ("--config-nodes", spec.services.config.addresses.is_empty())
}

fn service_addresses(spec: &NestedClusterSpec) -> Needed {
    ("--service-addresses", spec.service_addresses.is_empty())
}

/// Says all that is missing at once, with what a command needs besides.
fn complete(spec: &NestedClusterSpec, besides: &[Needed]) -> Result<(), Failure> {
    let always = [
        ("--cluster-name", spec.cluster_name.is_empty()),
        ("--cluster-network", spec.cluster_network.name.is_empty()),
    ];
    let missing: Vec<&str> = always
        .iter()
        .chain(besides)
        .filter(|(_, is_missing)| *is_missing)
        .map(|(flag, _)| *flag)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("it is not known what the cluster wants: {} missing", missing.join(", "));
    Err(Failure::usage(message, "give the flags, or a NestedCluster by -f FILE"))
}

/// A file's port stays.
fn put(nodes: &[Ipv4Addr], service: &mut FabricService) {
    if !nodes.is_empty() {
        service.addresses = nodes.iter().map(ToString::to_string).collect();
    }
}

fn read(path: &std::path::Path) -> Result<NestedClusterSpec, Failure> {
    let object = objects::one(path)?;
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind != "NestedCluster" {
        let message = format!("{} has a {kind}, and a NestedCluster is needed", path.display());
        let hint =
            "its fields: kubectl explain nestedcluster.spec, or deploy/samples/nested-cluster.yaml";
        return Err(Failure::new(Exit::Usage, "not-a-nested-cluster", message, hint));
    }
    let given = object.get("spec").cloned().unwrap_or_default();
    let message = format!("the NestedCluster in {} cannot be read", path.display());
    let hint = "kubectl opensdn validate says what is wrong with it";
    let unreadable =
        || Failure::new(Exit::Usage, "unreadable-nested-cluster", message.clone(), hint);
    let spec: NestedClusterSpec =
        serde_json::from_value(given.clone()).map_err(|error| unreadable().because(&error))?;
    let mut unknown = Vec::new();
    let read = serde_json::to_value(&spec).map_err(|error| unreadable().because(&error))?;
    collect_unknown(&given, &read, "spec", &mut unknown);
    if unknown.is_empty() {
        return Ok(spec);
    }
    let mut failure = unreadable();
    failure.causes.extend(unknown.iter().map(|field| format!("there is no field {field}")));
    Err(failure)
}

/// Fields that were given and not read: what they were to say would be lost without a word.
fn collect_unknown(given: &Value, read: &Value, path: &str, unknown: &mut Vec<String>) {
    for (name, value) in given.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match read.get(name) {
            Some(read) => collect_unknown(value, read, &path, unknown),
            None if value.is_null() => {}
            None => unknown.push(path),
        }
    }
}

impl ChoiceFlags {
    pub(crate) fn profile(&self) -> Profile {
        match self.profile {
            Ports::Cql => Profile::Cql,
            Ports::Thrift => Profile::Thrift,
            Ports::Doc => Profile::Doc,
        }
    }

    pub(crate) fn naming(&self) -> Naming {
        match self.naming {
            Names::Scoped => Naming::Scoped,
            Names::Doc => Naming::Doc,
        }
    }

    pub(crate) fn node_addresses(&self) -> BTreeMap<Ipv4Addr, Ipv4Addr> {
        self.node_address.iter().copied().collect()
    }

    pub(crate) fn vrouter_address(&self) -> Option<Ipv4Addr> {
        self.vrouter_address
    }

    pub(crate) fn permissions(&self) -> Permissions {
        let of = |is_given: bool| if is_given { Permission::Granted } else { Permission::Refused };
        Permissions {
            subnet_overlap: of(self.allow_subnet_overlap),
            take_over: of(self.take_over),
            own_fabric_address: of(self.allow_own_address),
            adopt_name: of(self.adopt_name),
            prune: of(self.prune),
        }
    }

    /// Whether link-local services of other owners are replaced.
    pub(crate) fn foreign(&self) -> Foreign {
        if self.take_over { Foreign::TakeOver } else { Foreign::Respect }
    }

    /// Networks of pods, of Services, and of pods in the fabric.
    pub(crate) fn subnets(&self) -> [&[Subnet]; 3] {
        [&self.pod_subnets, &self.service_subnets, &self.fabric_subnets]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{collect_unknown, network, pair};

    #[test]
    fn a_network_has_two_or_three_parts_and_none_is_empty() {
        let read = network("admin:vms").unwrap();
        assert_eq!(
            (read.domain, read.project.as_str(), read.name.as_str()),
            (None, "admin", "vms")
        );
        assert_eq!(network("d:admin:vms").unwrap().domain.as_deref(), Some("d"));
        for wrong in ["vms", "a::b", ":a:b", "a:", "a:b:c:d", ""] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pair_is_a_node_and_its_service_address() {
        let (node, service) = pair("192.168.1.100=10.10.10.1").unwrap();
        assert_eq!(
            (node.to_string(), service.to_string()),
            ("192.168.1.100".into(), "10.10.10.1".into())
        );
        assert!(pair("192.168.1.100").is_err() && pair("a=10.10.10.1").is_err());
    }

    #[test]
    fn a_field_that_is_not_read_is_found_wherever_it_is() {
        let given =
            json!({"a": 1, "services": {"zookeeper": {"port": 1, "fabricPort": 2}}, "none": null});
        let read = json!({"a": 1, "services": {"zookeeper": {"port": 1}}});
        let mut unknown = Vec::new();
        collect_unknown(&given, &read, "spec", &mut unknown);
        assert_eq!(unknown, ["spec.services.zookeeper.fabricPort"]);
    }
}
