//! A link-local service whose address is taken, or cannot work.
//!
//! Every vrouter has one table of link-local services, by address and port. Of two entries with
//! one key the first wins and the other is dead, without a word, unless both say the same: those are one, and
//! share the claim. Of two with one name DNS has both addresses.
//!
//! ```yaml
//! kind: LinkLocalService
//! metadata: {name: clock}
//! spec: {ip: 169.254.10.1, port: 123, fabric: {addresses: [10.0.0.5], port: 123}}
//! ---
//! kind: LinkLocalService
//! metadata: {name: ntp}                     # refused: 169.254.10.1:123 is taken by clock
//! spec: {ip: 169.254.10.1, port: 123, fabric: {addresses: [10.0.0.6], port: 123}}
//! ```
//!
//! Uniqueness is claimed, not looked up, so it holds for creates at the same moment. A Config that
//! the operator makes of a Manager claims nothing that the Manager has: the Manager claims it. Which
//! entries those are is looked up in the Manager itself, since any user can write an
//! ownerReference; every other entry is the Config's own.
//!
//! A service's address is taken from every network of the cloud, on all ports. So it must be of
//! no use to anything else: not in a network of pods, services, nodes or the fabric, as far as the
//! cluster and the settings say. What a Kubemanager calls the fabric's counts in its own namespace:
//! that is where tf-operator looks for the Config that gets its networks, and who may write one there
//! decides nothing for others. For the whole cluster the settings say it.

mod entries;
mod names;
mod networks;

use opensdn_policy_components::{Item, Owner, Owners};
use opensdn_policy_sdk::{
    Failure, Index, Message, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use schemars::JsonSchema;
use serde::Deserialize;

use entries::{Entry, Service, Source, Table};
use networks::{KUBEMANAGERS, NODES, NODES_BY_ADDRESS, Networks, SERVICE_CIDRS};

/// Settings of the policy `duplicate-link-local`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// IPv4 networks of pods that the Node objects do not list.
    pub pod_subnets: Vec<String>,
    /// IPv4 networks of Services that the ServiceCIDR objects do not list.
    pub service_subnets: Vec<String>,
    /// IPv4 networks of nodes, gateways and other machines of the fabric, for every namespace. Those
    /// of a Kubemanager (`ipFabricSubnets`) count in its own namespace without being named here.
    pub fabric_subnets: Vec<String>,
}

const ADDRESS_TAKEN: Message = Message {
    code: "OSDN3009",
    severity: Severity::Deny,
    title: "the address and port of the link-local service are taken",
    explanation: "Vrouters keep link-local services by address and port and fill the table \
        without overwriting: of two entries the first wins on each node, and the other is dead \
        without a message. Objects that say the same, name and targets too, are one entry to them, and share it. With \
        the same targets and another name the second name is dead too: no vrouter answers for it.",
    hint: "choose another port or address in 169.254.0.0/16, or give the same name and targets; what is taken is \
        listed by: kubectl get uniqueclaims",
};

const NAME_TAKEN: Message = Message {
    code: "OSDN3011",
    severity: Severity::Warn,
    title: "another link-local service has the name",
    explanation: "Vrouters answer DNS queries for the name, without regard to case, with the addresses of all services \
        that have it, and a workload takes one of them. That works where all of them serve the same. The first 32 that \
        have the name, by namespace and name, are compared. kube-manager and \
        provision_linklocal.py find a row by its name alone: kube-manager deletes all rows that have the name of one \
        of its own, so a name such as its own is refused.",
    hint: "choose another name, unless all of them serve the same; they are listed by: kubectl get linklocalservices -A",
};

const METADATA: Message = Message {
    code: "OSDN3012",
    severity: Severity::Deny,
    title: "the name makes the vrouters take the service for Nova's metadata service",
    explanation: "Whatever has `metadata` in its name is treated by every vrouter agent as Nova's \
        metadata proxy: the fabric address and port are overridden, and the service is not \
        reached. Only the entry of Config, with the name metadata, is meant so.",
    hint: "choose a name without metadata in it",
};

const LOOPBACK: Message = Message {
    code: "OSDN3008",
    severity: Severity::Warn,
    title: "the link-local service leads to the compute node of each workload",
    explanation: "Every vrouter takes 127.0.0.1 as target for its own node. That is meant for what runs on \
        every compute node, such as the vrouter's own port 9091; what runs on the control nodes is not there.",
    hint: "use the addresses of the nodes that have the service; the vrouter takes the short way itself where \
        that is its own node",
};

const ADDRESS: Message = Message {
    code: "OSDN1604",
    severity: Severity::Deny,
    title: "the address of the link-local service belongs to something else",
    explanation: "Every vrouter takes all traffic to the address, from every network of the \
        cloud and on all ports: what has the address otherwise is not reached any more.",
    hint: "choose an address in 169.254.0.0/16; 169.254.169.254 is that of the service metadata alone",
};

const NO_EFFECT: Message = Message {
    code: "OSDN1620",
    severity: Severity::Warn,
    title: "a link-local service has no effect",
    explanation: "Of a block of Config the provisioner makes a service only where it is given a host in the fabric to \
        which the vrouters lead it. Without one it leaves the service out and says nothing. And port 179, that of \
        BGP, vrouters except: what workloads send there is never led to the fabric.",
    hint: "give ipFabricServiceHost, the address or name of the service in the fabric, and a port other than 179; or \
        remove it",
};

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "LinkLocalService")]
struct LinkLocalService {
    #[read("/spec/name")]
    name: Option<String>,
    #[read("/spec/ip")]
    ip: Option<String>,
    #[read("/spec/port")]
    port: Option<i64>,
    #[read("/spec/fabric/addresses")]
    targets: Option<Vec<String>>,
    #[read("/spec/fabric/dnsName")]
    target_name: Option<String>,
    #[read("/spec/fabric/port")]
    target_port: Option<i64>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Config")]
struct Config {
    #[read("/spec/serviceConfiguration/linklocalServiceConfig")]
    first: Option<Entry>,
    #[read("/spec/serviceConfiguration/linklocalServices")]
    more: Option<Vec<Entry>>,
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/services/config")]
    config: Option<Item<Spec>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    service_configuration: Option<Services>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Services {
    linklocal_service_config: Option<Entry>,
    linklocal_services: Option<Vec<Entry>>,
}

const MANAGERS: Index = Index {
    name: "managers",
    group: "tf.tungsten.io",
    kind: "Manager",
    key: "",
    reads: &["/spec/services/config"],
};

fn link_local_service(
    request: &Request<LinkLocalService>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(service) = &request.object else { return Ok(()) };
    let LinkLocalService { name, ip, port, .. } = service;
    judge_target(service, verdict);
    let named = name.as_ref().is_some_and(|name| !name.is_empty());
    let name = if named { name.clone() } else { Some(request.name.clone()) };
    let entry = Entry {
        name,
        ip: ip.clone(),
        port: *port,
        fabric_host: service.target_name.clone(),
        fabric_hosts: service.targets.clone().unwrap_or_default(),
        fabric_port: service.target_port,
    };
    let name_at = if named { "/spec/name" } else { "/metadata/name" };
    let source = Source::Object { name_at: name_at.into() };
    let mut table = Table::new(&request.namespace, &request.name);
    table.add(&entry, &"/spec".into(), &source);
    names::judge(&table, (&request.namespace, &request.name), verdict);
    judge(&table, settings, None, verdict)
}

/// What control nodes have and compute nodes have not: Config API, collector and its API, databases, message
/// bus, ZooKeeper, Keystone.
const CONTROL_PORTS: &[i64] =
    &[2181, 5000, 5672, 5673, 8081, 8082, 8086, 9041, 9042, 9160, 9161, 35357];

fn judge_target(service: &LinkLocalService, verdict: &mut Verdict) {
    let targets = service.targets.iter().flatten().enumerate();
    let port = service.target_port.filter(|port| CONTROL_PORTS.contains(port));
    let Some(port) = port else { return };
    for (number, target) in targets {
        if target.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback()) {
            let text =
                format!("{target}:{port} is the compute node of the workload, not a control node");
            let at = Pointer::from("/spec/fabric/addresses").index(number);
            verdict.add(LOOPBACK.at(at).says(text));
        }
    }
}

fn config(request: &Request<Config>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(config) = &request.object else { return Ok(()) };
    let at = Pointer::from("/spec/serviceConfiguration");
    let mut table = Table::new(&request.namespace, &request.name);
    table.add_config(config.first.as_ref(), config.more.as_deref(), &at);
    if table.is_empty() {
        return Ok(());
    }
    let owner = config.owners.as_ref().and_then(Owners::manager);
    let owned = owner.map(|owner| entries_of(owner, request)).transpose()?;
    // What its Manager has is said there.
    if owned.is_none() {
        names::judge(&table, ("", ""), verdict);
    }
    judge(&table, settings, owned.as_ref(), verdict)
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let mut table = Table::new(&request.namespace, &request.name);
    if let Some(item) = request.object.as_ref().and_then(|manager| manager.config.as_ref()) {
        add_item(&mut table, item);
    }
    names::judge(&table, ("", ""), verdict);
    judge(&table, settings, None, verdict)
}

/// Adds the entries of a Manager's Config.
fn add_item(table: &mut Table, item: &Item<Spec>) {
    let component = item.component("Config", &"/spec/services/config".into());
    let Some(component) = component else { return };
    let Some(services) = &component.spec.service_configuration else { return };
    table.add_config(
        services.linklocal_service_config.as_ref(),
        services.linklocal_services.as_deref(),
        &component.setting(""),
    );
}

/// What the Manager has of which the operator makes this Config: none, where there is no such
/// Manager or it makes another Config.
fn entries_of(owner: &Owner, request: &Request<Config>) -> Result<Table, Failure> {
    let mut table = Table::new(&request.namespace, &owner.name);
    if let Some(manager) = owner.stored(&MANAGERS, &request.namespace)?
        && let Some(item) = manager.part::<Item<Spec>>(0)?
        && (item.name().is_empty() || item.name() == request.name)
    {
        add_item(&mut table, &item);
    }
    Ok(table)
}

/// Judges the services and claims them, except those that the `owner` has and claims.
fn judge(
    table: &Table,
    settings: &Settings,
    owner: Option<&Table>,
    verdict: &mut Verdict,
) -> Outcome {
    table.judge_those_without_host(verdict);
    let networks = Networks::new(settings, table.namespace())?;
    for service in table.services() {
        service.judge_name(verdict);
        service.judge_address(&networks, verdict)?;
        service.judge_port(verdict);
    }
    table.find_duplicates(verdict);
    let is_owned = |service: &&Service| owner.is_some_and(|owner| owner.has(service));
    for service in table.services().filter(|service| !is_owned(service)) {
        if let Some(key) = service.key() {
            let claimed = (key, service.row());
            verdict.claim_shared(
                &ADDRESS_TAKEN,
                "link-local-address",
                claimed,
                &service.address_at,
            );
        }
    }
    Ok(())
}

policy! {
    name: "duplicate-link-local",
    summary: "what a link-local service takes is free, and nothing else has it",
    settings: Settings,
    messages: [ADDRESS_TAKEN, NAME_TAKEN, METADATA, ADDRESS, LOOPBACK, NO_EFFECT],
    // One object with an entry twice is as wrong as two objects that claim it. And an entry that takes the
    // address of something else does more harm with another port or another target than it did.
    never_ratchets: [ADDRESS_TAKEN, ADDRESS],
    indexes: [
        names::BY_NAME,
        names::BY_OBJECT,
        KUBEMANAGERS,
        MANAGERS,
        NODES,
        NODES_BY_ADDRESS,
        SERVICE_CIDRS,
    ],
    claims: true,
    validate: [link_local_service, config, manager],
}
