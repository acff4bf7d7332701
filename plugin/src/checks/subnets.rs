//! The plan of networks: for each pair what has to hold between the two, as some are to be the same, some are to be
//! one within the other, and some are to be apart.

use std::net::IpAddr;

use serde_json::Value;

use super::few;
use super::nodes::addresses_of;
use super::patch::in_file;
use super::planned::is_planned;
use super::report::Verdict;
use super::world::{Service, World};
use crate::snapshot::{list, name, namespace, text};

pub(super) mod in_use;

const PODS: &str = "10.32.0.0/12";
const SERVICES: &str = "10.96.0.0/12";
const FABRIC: &str = "10.64.0.0/12";
/// What OpenShift's installer takes where its configuration does not say.
const OPENSHIFT_PODS: &str = "10.128.0.0/14";
const OPENSHIFT_SERVICES: &str = "172.30.0.0/16";
const LINK_LOCAL: &str = "169.254.0.0/16";

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: u128,
    prefix: u32,
    is_v4: bool,
}

impl Network {
    /// Of `10.32.0.0/12`; bits of the host do not count.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (address, prefix) = text.trim().split_once('/')?;
        let (address, prefix): (IpAddr, u32) = (address.parse().ok()?, prefix.parse().ok()?);
        let length = if address.is_ipv4() { 32 } else { 128 };
        if prefix > length {
            return None;
        }
        let network = Self { address: number(address), prefix, is_v4: address.is_ipv4() };
        Some(Self { address: network.address & network.mask(), ..network })
    }

    pub(super) fn prefix(self) -> u32 {
        self.prefix
    }

    fn mask(self) -> u128 {
        let length: u32 = if self.is_v4 { 32 } else { 128 };
        let all = if self.is_v4 { u128::from(u32::MAX) } else { u128::MAX };
        all & all.checked_shl(length - self.prefix).unwrap_or(0)
    }

    pub(super) fn has(self, address: IpAddr) -> bool {
        self.is_v4 == address.is_ipv4() && number(address) & self.mask() == self.address
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        let wider = if self.prefix < other.prefix { self } else { other };
        self.is_v4 == other.is_v4 && (self.address & wider.mask()) == (other.address & wider.mask())
    }

    fn contains(self, other: Self) -> bool {
        self.prefix <= other.prefix && self.overlaps(other)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// A network as it is written, and what it is.
#[derive(Clone, Debug)]
struct Planned {
    what: &'static str,
    text: String,
    network: Network,
    /// Whether a person has chosen it.
    is_chosen: bool,
}

/// What is wrong, and of which network or address.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    what: &'static str,
    text: String,
    /// The command that changes it, where it is not a network of the plan.
    fix: Option<String>,
}

impl Planned {
    fn wrong(&self, text: String) -> Wrong {
        Wrong { what: self.what, text, fix: None }
    }
}

/// The networks that the operator takes.
struct Plan {
    pods: Vec<Planned>,
    services: Vec<Planned>,
    fabric: Vec<Planned>,
    /// Whether the network of the fabric gives addresses to anything: it is there by default.
    is_fabric_used: bool,
}

impl Plan {
    /// Those from which addresses are given.
    fn used(&self) -> impl Iterator<Item = &Planned> {
        let fabric = self.fabric.iter().filter(|_| self.is_fabric_used);
        self.pods.iter().chain(&self.services).chain(fabric)
    }
}

fn planned(what: &'static str, texts: &str, is_chosen: bool) -> Vec<Planned> {
    let is_between = |letter: char| letter == ',' || letter.is_whitespace();
    let each = texts.split(is_between).filter(|text| !text.is_empty());
    each.filter_map(|text| {
        Some(Planned { what, text: text.to_owned(), network: Network::of(text)?, is_chosen })
    })
    .collect()
}

/// The networks that the operator takes: of the Kubemanager, else of OpenShift's installer, else of kubeadm, else the API
/// server's, else defaults (`operator/src/cluster.rs`).
fn plan_of(world: &World) -> Plan {
    let services = world.services();
    let kubemanager = services.iter().find(|service| service.facts.kind == "Kubemanager");
    let stated = |service: Option<&Service<'_>>, field: &str| {
        let at = format!("/serviceConfiguration/{field}");
        service.map(|service| text(service.spec, &at).to_owned()).filter(|text| !text.is_empty())
    };
    let kubeadm = |field: &str| {
        let said = world.kubeadm.known().map(|said| text(said, &format!("/networking/{field}")));
        said.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let installer = |pointer: &str, default: &str| {
        let said = world.openshift.known()?;
        let of = |one: &Value| one.as_str().unwrap_or_else(|| text(one, "/cidr")).to_owned();
        let all: Vec<String> = list(said, pointer).map(of).filter(|one| !one.is_empty()).collect();
        Some(if all.is_empty() { default.to_owned() } else { all.join(",") })
    };
    let openshift_pods = installer("/networking/clusterNetwork", OPENSHIFT_PODS);
    let openshift_services = installer("/networking/serviceNetwork", OPENSHIFT_SERVICES);
    let cidrs = service_cidrs(world);
    let take = |what, field, others: [Option<String>; 3], default: &str| {
        let own = stated(kubemanager, field);
        let is_chosen = own.is_some();
        let others = others.into_iter().flatten().next();
        planned(what, &own.or(others).unwrap_or_else(|| default.to_owned()), is_chosen)
    };
    let pods = [openshift_pods, kubeadm("podSubnet"), None];
    let of_services = [openshift_services, kubeadm("serviceSubnet"), cidrs];
    let fabric = take("the fabric", "ipFabricSubnets", [None, None, None], FABRIC);
    Plan {
        pods: take("pods", "podSubnet", pods, PODS),
        services: take("Services", "serviceSubnet", of_services, SERVICES),
        is_fabric_used: uses_fabric(world) || fabric.iter().any(|one| one.is_chosen),
        fabric,
    }
}

/// The network of Services that the API server itself uses, as it publishes it.
fn service_cidrs(world: &World) -> Option<String> {
    let cidrs = world.service_networks.items().iter().find(|one| name(one) == "kubernetes")?;
    let all: Vec<&str> = list(cidrs, "/spec/cidrs").filter_map(Value::as_str).collect();
    Some(all.join(",")).filter(|all| !all.is_empty())
}

/// The networks of pods and Services, as they are written, with what each is.
pub(crate) fn networks(world: &World) -> Vec<(&'static str, String)> {
    let Plan { pods, services, .. } = plan_of(world);
    pods.into_iter().chain(services).map(|one| (one.what, one.text)).collect()
}

/// Whether addresses of the fabric's network are given to pods.
fn uses_fabric(world: &World) -> bool {
    world.services().iter().any(|service| {
        service.facts.kind == "Kubemanager"
            && service
                .spec
                .pointer("/serviceConfiguration/ipFabricForwarding")
                .and_then(Value::as_bool)
                == Some(true)
    })
}

pub(super) fn plan(world: &World) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!(
            "Managers, which say the networks, may not be read: {why}"
        ));
    }
    if let Some(why) = sources_unread(world) {
        return Verdict::uncertain(format!("the networks of the cluster are not known: {why}"));
    }
    let plan = plan_of(world);
    let (mut wrong, mut doubtful) = compared(world, &plan);
    if plan.is_fabric_used {
        wrong.append(&mut doubtful);
    }
    if let Some(first) = wrong.first() {
        return Verdict::fail(few(&texts(&wrong))).fix(set(world, first));
    }
    let pods = plan.pods.iter().chain(&plan.services);
    let shown: Vec<String> = pods.map(|one| format!("{} {}", one.what, one.text)).collect();
    if let Some(why) = unread(world) {
        return Verdict::uncertain(format!("{}; {why}", shown.join(", ")));
    }
    let elsewhere = in_use::pods_elsewhere(world, &plan);
    let unused = doubtful.first().map(|first| {
        let text = few(&texts(&doubtful));
        Wrong {
            text: format!("{text}; nothing uses the network of the fabric so far"),
            ..first.clone()
        }
    });
    let warned: Vec<Wrong> = elsewhere.into_iter().chain(unused).collect();
    if let Some(first) = warned.first() {
        return Verdict::warn(few(&texts(&warned))).fix(set(world, first));
    }
    Verdict::ok(shown.join(", "))
}

fn texts(all: &[Wrong]) -> Vec<String> {
    all.iter().map(|one| one.text.clone()).collect()
}

/// What is wrong, and what is if the network of the fabric is used.
fn compared(world: &World, plan: &Plan) -> (Vec<Wrong>, Vec<Wrong>) {
    let Plan { pods, services, fabric, .. } = plan;
    let (mut wrong, mut of_fabric) = (Vec::new(), Vec::new());
    apart(pods, services, &mut wrong);
    apart(fabric, pods, &mut of_fabric);
    apart(fabric, services, &mut of_fabric);
    with_nodes(world, fabric, &mut of_fabric);
    with_ranges_of_nodes(world, fabric, &mut of_fabric);
    in_use::of_the_fabric(world, plan, &mut wrong);
    with_nodes(world, pods, &mut wrong);
    with_nodes(world, services, &mut wrong);
    with_ranges_of_nodes(world, services, &mut wrong);
    the_same(world, services, &mut wrong);
    in_use::services_elsewhere(world, plan, &mut wrong);
    in_use::pods_among_services(world, plan, &mut wrong);
    in_use::docker(world, plan, &mut wrong);
    (wrong, of_fabric)
}

/// What may not be read that would have to be within a network, or apart from it.
fn unread(world: &World) -> Option<String> {
    let unread = [
        ("nodes", world.nodes.why_unknown()),
        ("the Service kubernetes", world.kubernetes.why_unknown()),
        ("Services", world.cluster_addresses.why_unknown()),
        ("pods", world.pods.why_unknown()),
        ("LinkLocalServices", world.link_local.why_unknown()),
        ("NestedClusters", world.nested_clusters.why_unknown()),
    ];
    let unread = unread.into_iter().find_map(|(what, why)| Some((what, why?)));
    let unread = unread.map(|(what, why)| format!("{what} may not be read: {why}"));
    unread.or_else(|| in_use::docker_unseen(world))
}

/// Why not all can be read that says the networks, where the Kubemanager does not say them itself.
fn sources_unread(world: &World) -> Option<&str> {
    let is_stated = world.services().iter().any(|service| {
        let has =
            |field: &str| !text(service.spec, &format!("/serviceConfiguration/{field}")).is_empty();
        service.facts.kind == "Kubemanager" && has("podSubnet") && has("serviceSubnet")
    });
    let unread = [
        world.kubeadm.why_unknown(),
        world.openshift.why_unknown(),
        world.service_networks.why_unknown(),
    ];
    unread.into_iter().flatten().next().filter(|_| !is_stated)
}

/// The command that sets another network: in the Manager, where there is one, else what its file is to have.
fn set(world: &World, wrong: &Wrong) -> String {
    if let Some(fix) = &wrong.fix {
        return fix.clone();
    }
    let field = match wrong.what {
        "pods" => "podSubnet",
        "Services" => "serviceSubnet",
        "the fabric" => "ipFabricSubnets",
        _ => return "kubectl opensdn nested plan".to_owned(),
    };
    let services = world.services();
    match services.iter().find(|service| service.facts.kind == "Kubemanager") {
        Some(service) => {
            let (place, manager) = (namespace(service.manager), name(service.manager));
            let stated = text(service.spec, &format!("/serviceConfiguration/{field}"));
            let known =
                service_cidrs(world).filter(|own| field == "serviceSubnet" && own != stated);
            let network = known.unwrap_or_else(|| "NETWORK".to_owned());
            if is_planned(service.manager) {
                let field = format!("spec.services.kubemanager.spec.serviceConfiguration.{field}");
                return in_file(place, manager, &field, &network.into());
            }
            let networks = format!(
                r#"{{"spec":{{"services":{{"kubemanager":{{"spec":{{"serviceConfiguration":{{"{field}":"{network}"}}}}}}}}}}}}"#
            );
            format!(
                "kubectl patch managers.tf.tungsten.io {manager} -n {place} --type=merge -p '{networks}'"
            )
        }
        None => format!(
            "kubectl opensdn check --only S501 -f manager.yaml # with another spec.services.kubemanager.spec.serviceConfiguration.{field}"
        ),
    }
}

fn apart(ones: &[Planned], others: &[Planned], wrong: &mut Vec<Wrong>) {
    for one in ones {
        for other in others.iter().filter(|other| other.network.overlaps(one.network)) {
            let narrow = if one.network.prefix > other.network.prefix { one } else { other };
            wrong.push(one.wrong(format!(
                "the network {} of {} overlaps {} of {}: both have {}",
                one.text, one.what, other.text, other.what, narrow.text
            )));
        }
    }
}

fn with_nodes(world: &World, networks: &[Planned], wrong: &mut Vec<Wrong>) {
    with_first_node(world, networks, wrong, |one, node| {
        let address = addresses_of(node).into_iter().find(|address| one.network.has(*address))?;
        let hit = format!("node {} has {address}", name(node));
        Some(format!("the network {} of {} has a node in it: {hit}", one.text, one.what))
    });
}

/// Ranges that the controller manager has given to nodes for their pods. They may be within the network of pods, where
/// OpenSDN gives the addresses, and may be elsewhere, where another network of pods is below it.
fn with_ranges_of_nodes(world: &World, networks: &[Planned], wrong: &mut Vec<Wrong>) {
    with_first_node(world, networks, wrong, |one, node| {
        let all = list(node, "/spec/podCIDRs").filter_map(Value::as_str);
        let mut all = all.chain([text(node, "/spec/podCIDR")]);
        let range =
            all.find(|range| Network::of(range).is_some_and(|range| range.overlaps(one.network)))?;
        let hit = format!("{range} of node {}", name(node));
        Some(format!("the network {} of {} overlaps the range of pods {hit}", one.text, one.what))
    });
}

/// One node stands for all that a network meets.
fn with_first_node(
    world: &World,
    networks: &[Planned],
    wrong: &mut Vec<Wrong>,
    says: impl Fn(&Planned, &Value) -> Option<String>,
) {
    let nodes = world.nodes.items();
    wrong.extend(networks.iter().filter_map(|one| {
        nodes.iter().find_map(|node| says(one, node)).map(|text| one.wrong(text))
    }));
}

/// The network of Services is the API server's: it gives their addresses.
fn the_same(world: &World, services: &[Planned], wrong: &mut Vec<Wrong>) {
    let own = world.kubernetes.known().map(|service| text(service, "/spec/clusterIP"));
    let own: Option<IpAddr> = own.and_then(|address| address.parse().ok());
    let networks = || services.iter().map(|one| one.network);
    let all: Vec<&str> = services.iter().map(|one| one.text.as_str()).collect();
    let all = all.join(", ");
    let of = |text: String| Wrong { what: "Services", text, fix: None };
    if let Some(address) = own.filter(|address| !networks().any(|network| network.has(*address))) {
        wrong.push(of(format!(
            "the Service kubernetes has {address}, which is not in the network {all} of Services"
        )));
    }
    for cidr in world.service_networks.items() {
        let cidrs = list(cidr, "/spec/cidrs").filter_map(Value::as_str);
        // Of OpenSDN only IPv4 is served.
        let other = cidrs
            .filter_map(|text| Some((text, Network::of(text)?)))
            .find(|(_, cidr)| cidr.is_v4 && !networks().any(|network| network.contains(*cidr)));
        wrong.extend(other.map(|(text, _)| {
            of(format!(
                "ServiceCIDR {} has {text}, which is not in the network {all} of Services",
                name(cidr)
            ))
        }));
    }
}
