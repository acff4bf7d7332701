//! MTUs: that of pods, as the Vrouters have it, what an encapsulation puts around it, those of the fabric's interfaces on
//! nodes that were looked at, and what passes between these.

use opensdn_config_api::encapsulation::Encapsulation;
use opensdn_node_probe::{NodeFindings, Seen};
use serde_json::{Value, json};

use super::fabric::{VHOST, legs};
use super::patch::set_field;
use super::paths::{self, Paths};
use super::planned::is_planned;
use super::probed::{Said, each, worst};
use super::probed_data_path::is_without_vrouter;
use super::report::{Outcome, Verdict};
use super::vrouter_settings::{Group, groups, no_vrouter, priorities};
use super::world::{Service, World};
use super::{few, roles};
use crate::shell::quoted;
use crate::snapshot::{name, namespace, number};

/// The smallest in which IPv4 has room (RFC 791), and the largest of which interfaces of Ethernet are known.
const MTUS: std::ops::RangeInclusive<i64> = 576..=9978;
/// What the CNI takes where nothing is said.
const DEFAULT_MTU: i64 = 1500;
const ENCAPSULATIONS: [Encapsulation; 3] =
    [Encapsulation::Vxlan, Encapsulation::MplsOverUdp, Encapsulation::MplsOverGre];

/// What is around a packet between two nodes of one network: the frame of Ethernet (14 bytes) that it is in, with what the
/// vrouter calls `overhead_len` (IPv4 20, UDP 8 or GRE 4, VXLAN 8 or one label of MPLS 4).
fn around(encapsulation: Encapsulation) -> i64 {
    match encapsulation {
        Encapsulation::Vxlan => 50,
        Encapsulation::MplsOverUdp => 46,
        Encapsulation::MplsOverGre => 42,
    }
}

/// The most that may be around a packet; all are possible where their order is not known.
fn most_around(order: Option<&[Encapsulation]>) -> i64 {
    let all = order.unwrap_or(&ENCAPSULATIONS).iter().copied();
    all.map(around).max().unwrap_or_default()
}

pub(super) fn mtu(world: &World) -> Verdict {
    if let Some(verdict) = no_vrouter(world) {
        // Before an installation the interfaces can be compared all the same.
        let is_probed = world.probed.is_some() && world.managers.why_unknown().is_none();
        return if is_probed { on_nodes(world, None) } else { verdict };
    }
    let groups = groups(world);
    let stated: Vec<(&str, Option<i64>)> =
        groups.iter().map(|one| (one.service.name, stated(&one.service))).collect();
    if let Some(verdict) = conflict(&stated) {
        return verdict;
    }
    let mtu = stated.first().and_then(|(_, mtu)| *mtu);
    if world.probed.is_some() {
        return on_nodes(world, mtu);
    }
    let needed = groups.iter().map(|one| priorities(&groups, one.service.manager));
    let needed: Vec<Option<Vec<Encapsulation>>> = needed.collect();
    Verdict::uncertain(match mtu {
        Some(mtu) => format!(
            "pods have {mtu}, as the Vrouter says; the interfaces of nodes need at least {} (needs --probe)",
            enough(mtu, &needed)
        ),
        None => "pods have the default; what the interfaces of nodes have needs --probe".to_owned(),
    })
    .fix("ip link show")
}

/// The MTU that it names: 0 is none.
fn stated(vrouter: &Service<'_>) -> Option<i64> {
    number(vrouter.spec, "/serviceConfiguration/cniMTU").filter(|mtu| *mtu != 0)
}

/// What is wrong with the MTUs of pods by themselves.
fn conflict(stated: &[(&str, Option<i64>)]) -> Option<Verdict> {
    let wrong = stated.iter().filter(|(_, mtu)| mtu.is_some_and(|mtu| !MTUS.contains(&mtu)));
    let wrong: Vec<String> = wrong
        .map(|(name, mtu)| format!("Vrouter {name} has {}", mtu.unwrap_or_default()))
        .collect();
    if !wrong.is_empty() {
        return Some(Verdict::fail(format!("no interface has such an MTU: {}", few(&wrong))));
    }
    let mut different: Vec<i64> =
        stated.iter().map(|(_, mtu)| mtu.unwrap_or(DEFAULT_MTU)).collect();
    different.sort_unstable();
    different.dedup();
    let shown = |mtu: Option<i64>| mtu.map_or("the default".to_owned(), |mtu| mtu.to_string());
    let all: Vec<String> =
        stated.iter().map(|(name, mtu)| format!("{name} {}", shown(*mtu))).collect();
    (different.len() > 1)
        .then(|| Verdict::warn(format!("pods of one network have different MTUs: {}", few(&all))))
}

/// How much interfaces need, by what is known of encapsulations.
fn enough(mtu: i64, orders: &[Option<Vec<Encapsulation>>]) -> String {
    let most = orders.iter().map(|order| most_around(order.as_deref())).max().unwrap_or_default();
    match orders.iter().all(Option::is_some) {
        true => (mtu + most).to_string(),
        false => format!(
            "{} with {}, {} with {}",
            mtu + around(Encapsulation::MplsOverGre),
            Encapsulation::MplsOverGre.name(),
            mtu + most,
            Encapsulation::Vxlan.name()
        ),
    }
}

/// The order of encapsulations on the node, where it is known.
fn order_on(groups: &[Group<'_>], node: &Value) -> Option<Vec<Encapsulation>> {
    let mut own = groups.iter().filter(|one| roles::is_selected(&one.service, node));
    priorities(groups, own.next()?.service.manager)
}

/// The interfaces of the fabric of a node and their MTUs.
type Mtus = Vec<(String, i64)>;

fn of_node(world: &World, node: &Value, findings: &NodeFindings) -> Result<Mtus, Said> {
    let legs = legs(world, node, findings)?;
    // Tunnels leave by the interfaces below vhost0, where these are seen.
    let is_alone = legs.len() == 1;
    let carrying = legs.into_iter().filter(|one| is_alone || one.name != VHOST);
    let of = carrying.map(|one| match &one.mtu {
        Seen::Is(mtu) => Ok((one.name.clone(), i64::from(*mtu))),
        Seen::Unknown(why) => {
            Err((Outcome::Uncertain, format!("the MTU of {} is not known: {why}", one.name)))
        }
    });
    of.collect()
}

fn smallest(mtus: &[(String, i64)]) -> i64 {
    mtus.iter().map(|(_, mtu)| *mtu).min().unwrap_or_default()
}

/// How large packets are that have to pass from the node to others: what is around one of a pod with it, where pods have a
/// stated MTU that the interface carries, else all that the interface carries. Nothing where that is not known.
pub(crate) fn packet(world: &World, node: &Value, findings: &NodeFindings) -> Option<u16> {
    let carried = smallest(&of_node(world, node, findings).ok()?);
    let groups = groups(world);
    let of_pods = groups.iter().find(|one| roles::is_selected(&one.service, node));
    let of_pods = of_pods.and_then(|one| stated(&one.service)).filter(|mtu| MTUS.contains(mtu));
    let around = most_around(order_on(&groups, node).as_deref());
    let needed = of_pods.map_or(carried, |mtu| mtu + around).min(carried);
    u16::try_from(needed).ok().filter(|_| paths::are_of_tunnels(world, node, findings))
}

/// What was found of a node that vrouters run on.
struct Found {
    mtus: Mtus,
    order: Option<Vec<Encapsulation>>,
    /// The least that passes to another node, where that is less than has to.
    narrowest: Option<i64>,
}

impl Found {
    /// What its interfaces and the paths to others carry.
    fn carried(&self) -> i64 {
        let mtu = smallest(&self.mtus);
        self.narrowest.map_or(mtu, |passes| passes.min(mtu))
    }

    /// The most that pods may have.
    fn room(&self) -> i64 {
        self.carried() - most_around(self.order.as_deref())
    }
}

fn found(world: &World, groups: &[Group<'_>]) -> Vec<Found> {
    let found = world.probed.iter().flatten().filter_map(|(node, answer)| {
        let object = world.nodes.items().iter().find(|one| name(one) == node)?;
        if is_without_vrouter(world, object).is_some() {
            return None;
        }
        let mtus = of_node(world, object, &answer.as_ref().ok()?.findings).ok()?;
        let narrowest = paths::of_node(world, object).and_then(|paths| paths.least());
        let order = order_on(groups, object);
        Some(Found { mtus, order, narrowest: narrowest.map(i64::from) })
    });
    found.collect()
}

/// What the fabric has on each node, against what pods have, and against that of most nodes; and what passes between them.
fn on_nodes(world: &World, of_pods: Option<i64>) -> Verdict {
    let groups = groups(world);
    let found = found(world, &groups);
    let mut all: Vec<i64> = found.iter().map(|one| smallest(&one.mtus)).collect();
    all.sort_unstable();
    let most = all.get(all.len() / 2).copied().unwrap_or_default();
    let room = found.iter().map(Found::room).min().unwrap_or_default();
    let good = match of_pods {
        Some(mtu) => format!("the interface of the fabric carries {mtu} of pods"),
        None if all.is_empty() => "interfaces of the fabric have one MTU".to_owned(),
        None => format!("interfaces of the fabric have {most}: cniMTU {room} fits"),
    };
    let verdict = each(world, &good, |node, findings| {
        if let Some(said) = is_without_vrouter(world, node) {
            return said;
        }
        let order = order_on(&groups, node);
        let own = match of_node(world, node, findings) {
            Ok(mtus) => on_node(&mtus, (of_pods, order.as_deref()), most),
            Err(said) => return said,
        };
        let shown = own.1.clone();
        let mut all = vec![own];
        all.extend(to_others(paths::of_node(world, node), (of_pods, order.as_deref())));
        worst(all, shown)
    });
    let is_too_large = |one: &Found| match of_pods {
        Some(mtu) => mtu > one.room(),
        None => one.narrowest.is_some(),
    };
    if found.iter().any(is_too_large) && !groups.is_empty() {
        return verdict.fix(set(&groups, room));
    }
    let mut interfaces = found.iter().flat_map(|one| &one.mtus);
    match interfaces.find(|(_, mtu)| *mtu != most) {
        Some((name, _)) => verdict.fix(format!("ip link set dev {} mtu {most}", quoted(name))),
        None => verdict,
    }
}

/// What is to be said of the paths to others.
fn to_others(
    paths: Option<Paths>,
    (of_pods, order): (Option<i64>, Option<&[Encapsulation]>),
) -> Vec<Said> {
    let Some(Paths { narrow, mut unknown }) = paths else { return Vec::new() };
    for ((passes, wanted), peers) in narrow {
        let to = few(&peers);
        let shown = format!("to {to} packets of at most {passes} bytes pass, of {wanted}");
        let said = match of_pods {
            Some(of_pods) => too_large(&shown, passes.into(), of_pods, order),
            None => {
                let text = format!(
                    "{shown} that the interfaces have: cniMTU has to leave room for that, and is {DEFAULT_MTU} where it is not set"
                );
                Some((Outcome::Warn, text))
            }
        };
        unknown.extend(said);
    }
    unknown
}

fn on_node(
    mtus: &[(String, i64)],
    (of_pods, order): (Option<i64>, Option<&[Encapsulation]>),
    most: i64,
) -> Said {
    let texts: Vec<String> = mtus.iter().map(|(name, mtu)| format!("{name} has {mtu}")).collect();
    let shown = texts.join(", ");
    let own = smallest(mtus);
    let mut said: Vec<Said> = Vec::new();
    if mtus.iter().any(|(_, mtu)| *mtu != own) {
        let text = format!("{shown}: the agent does not start where interfaces of L3MH differ");
        said.push((Outcome::Fail, text));
    }
    said.extend(of_pods.and_then(|of_pods| too_large(&shown, own, of_pods, order)));
    if said.is_empty() && own != most {
        said.push((Outcome::Warn, format!("{shown}, others have {most}")));
    }
    worst(said, shown)
}

/// Whether it is too much for what may be around a packet, and for which.
fn too_large(shown: &str, mtu: i64, of_pods: i64, order: Option<&[Encapsulation]>) -> Option<Said> {
    let all = order.unwrap_or(&ENCAPSULATIONS);
    let is_too_large = |one: Encapsulation| of_pods + around(one) > mtu;
    let with: Vec<String> = all
        .iter()
        .filter(|one| is_too_large(**one))
        .map(|one| format!("{} ({} around it)", one.name(), around(*one)))
        .collect();
    let text =
        format!("{shown}, and pods have {of_pods}: with {} it does not fit", with.join(", "));
    match order {
        _ if with.is_empty() => None,
        _ if with.len() == all.len() => Some((Outcome::Fail, text)),
        // Vrouters of one network take the first of them for each other.
        Some(order) if order.first().copied().is_some_and(is_too_large) => {
            Some((Outcome::Fail, text))
        }
        Some(_) => Some((
            Outcome::Uncertain,
            format!("{text}; that is only for peers that know none of those before it"),
        )),
        None => Some((
            Outcome::Uncertain,
            format!(
                "{text}; which one the network uses is not known without encapsulationPriorities"
            ),
        )),
    }
}

/// The command that gives the MTU to all groups of vrouters.
fn set(groups: &[Group<'_>], mtu: i64) -> String {
    let mut managers: Vec<(&Value, Vec<Value>)> = Vec::new();
    for Group { service, .. } in groups {
        let at = service.at.as_deref().unwrap_or(service.facts.key);
        if is_planned(service.manager) {
            return set_field(service, &["spec", "serviceConfiguration", "cniMTU"], json!(mtu));
        }
        let spec = format!("/spec/services/{at}/spec");
        let settings = service.spec.pointer("/serviceConfiguration");
        let (path, value) = match (service.spec, settings.filter(|one| !one.is_null())) {
            (_, Some(_)) => (format!("{spec}/serviceConfiguration/cniMTU"), json!(mtu)),
            (Value::Null, None) => (spec, json!({"serviceConfiguration": {"cniMTU": mtu}})),
            (_, None) => (format!("{spec}/serviceConfiguration"), json!({"cniMTU": mtu})),
        };
        let change = json!({"op": "add", "path": path, "value": value});
        match managers.iter_mut().find(|(one, _)| std::ptr::eq(*one, service.manager)) {
            Some((_, changes)) => changes.push(change),
            None => managers.push((service.manager, vec![change])),
        }
    }
    let commands = managers.into_iter().map(|(manager, changes)| {
        let (place, manager) = (namespace(manager), name(manager));
        let changes = Value::from(changes);
        format!(
            "kubectl patch managers.tf.tungsten.io {manager} -n {place} --type=json -p '{changes}'"
        )
    });
    commands.collect::<Vec<_>>().join("; ")
}
