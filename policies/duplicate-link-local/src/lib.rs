//! A link-local service whose address or name is taken, or cannot work.
//!
//! Every vrouter has one table of link-local services, by address and port. Of two entries with
//! one key the first wins and the other is dead, without a word; of two with one name DNS knows
//! one.
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
//! Uniqueness is claimed, not looked up, so it holds for creates at the same moment. What the
//! operator makes of a Manager's Config claims nothing: the Manager does. That it is the
//! Manager's is looked up, since any user can write an ownerReference.
//!
//! A service's address is taken from every network of the cloud, on all ports. So it must be of
//! no use to anything else: not in a network of pods, services, nodes or the fabric, as far as the
//! cluster and the settings say.

mod entries;
mod networks;

use opensdn_policy_components::{Item, Owners};
use opensdn_policy_sdk::{
    Failure, Index, Message, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use schemars::JsonSchema;
use serde::Deserialize;

use entries::{Entry, Source, Table};
use networks::{KUBEMANAGERS, NODES, NODES_BY_ADDRESS, Networks, SERVICE_CIDRS};

/// Settings of the policy `duplicate-link-local`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// IPv4 networks of pods that the Node objects do not tell.
    pub pod_subnets: Vec<String>,
    /// IPv4 networks of Services that the ServiceCIDR objects do not tell.
    pub service_subnets: Vec<String>,
    /// IPv4 networks of nodes, gateways and other machines of the fabric.
    pub fabric_subnets: Vec<String>,
}

const ADDRESS_TAKEN: Message = Message {
    code: "OSDN3009",
    severity: Severity::Deny,
    title: "the address and port of the link-local service are taken",
    explanation: "Vrouters keep link-local services by address and port and fill the table \
        without overwriting: of two entries the first wins on each node, and the other is dead \
        without a message.",
    hint: "choose another port or address in 169.254.0.0/16; what is taken is listed by: kubectl \
        get uniqueclaims",
};

const NAME_TAKEN: Message = Message {
    code: "OSDN3011",
    severity: Severity::Deny,
    title: "the name of the link-local service is taken",
    explanation: "Vrouters answer DNS queries for the name, without regard to case: two services \
        with one name make it lead to one of them by chance.",
    hint: "choose another name; what is taken is listed by: kubectl get uniqueclaims",
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

const ADDRESS: Message = Message {
    code: "OSDN1604",
    severity: Severity::Deny,
    title: "the address of the link-local service belongs to something else",
    explanation: "Every vrouter takes all traffic to the address, from every network of the \
        cloud and on all ports: what has the address otherwise is not reached any more.",
    hint: "choose an address in 169.254.0.0/16, other than 169.254.169.254",
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
    reads: &["/metadata/name"],
};

fn link_local_service(
    request: &Request<LinkLocalService>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(LinkLocalService { name, ip, port }) = &request.object else { return Ok(()) };
    let named = name.as_ref().is_some_and(|name| !name.is_empty());
    let name = if named { name.clone() } else { Some(request.name.clone()) };
    let entry = Entry { name, ip: ip.clone(), port: *port };
    let name_at = if named { "/spec/name" } else { "/metadata/name" };
    let source = Source::Object { name_at: name_at.into() };
    let mut table = Table::new(&request.namespace, &request.name);
    table.add(&entry, &"/spec".into(), &source);
    judge(&table, settings, true, verdict)
}

fn config(request: &Request<Config>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(config) = &request.object else { return Ok(()) };
    let at = Pointer::from("/spec/serviceConfiguration");
    let mut table = Table::new(&request.namespace, &request.name);
    table.add_config(config.first.as_ref(), config.more.as_deref(), &at);
    if table.is_empty() {
        return Ok(());
    }
    let owners = config.owners.as_ref();
    let claims = !belongs_to_a_manager(owners, &request.namespace)?;
    judge(&table, settings, claims, verdict)
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let config = request.object.as_ref().and_then(|manager| manager.config.as_ref());
    let component =
        config.and_then(|item| item.component("Config", &"/spec/services/config".into()));
    let Some(component) = component else { return Ok(()) };
    let Some(services) = &component.spec.service_configuration else { return Ok(()) };
    let mut table = Table::new(&request.namespace, &request.name);
    table.add_config(
        services.linklocal_service_config.as_ref(),
        services.linklocal_services.as_deref(),
        &component.setting(""),
    );
    judge(&table, settings, true, verdict)
}

fn belongs_to_a_manager(owners: Option<&Owners>, namespace: &str) -> Result<bool, Failure> {
    let Some(owner) = owners.and_then(Owners::manager) else { return Ok(false) };
    let manager = MANAGERS.get(namespace, &owner.name)?;
    Ok(manager.is_some_and(|manager| manager.uid() == owner.uid))
}

fn judge(table: &Table, settings: &Settings, claims: bool, verdict: &mut Verdict) -> Outcome {
    let networks = Networks::of_settings(settings)?;
    for service in table.services() {
        service.judge_name(verdict);
        service.judge_address(&networks, verdict)?;
    }
    table.find_duplicates(verdict);
    if claims {
        for service in table.services() {
            if let Some(key) = service.key() {
                verdict.claim(&ADDRESS_TAKEN, "link-local-address", key, &service.address_at);
            }
            if !service.name.is_empty() {
                verdict.claim(&NAME_TAKEN, "link-local-name", &service.name, &service.name_at);
            }
        }
    }
    Ok(())
}

policy! {
    name: "duplicate-link-local",
    summary: "address and name of a link-local service are unique in the cluster and free",
    settings: Settings,
    messages: [ADDRESS_TAKEN, NAME_TAKEN, METADATA, ADDRESS],
    indexes: [KUBEMANAGERS, MANAGERS, NODES, NODES_BY_ADDRESS, SERVICE_CIDRS],
    claims: true,
    validate: [link_local_service, config, manager],
}
