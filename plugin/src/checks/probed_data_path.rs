//! The data path of nodes that were looked at: the kernel's module, the interface of the fabric, and who else has it.

use opensdn_node_probe::{Interface, Interfaces, Kernel, ModuleFile, NodeFindings, Seen};
use serde_json::Value;

use super::cni;
use super::fabric::{VHOST, fabric, legs};
use super::node_software::KERNELS;
use super::probed::{Said, each, unseen, worst};
use super::probed_dpdk::undriven;
use super::report::{Outcome, Verdict};
use super::roles;
use super::upgrade::Upgrade;
use super::vrouter_settings::{Group, groups};
use super::world::{World, runs_on};
use crate::snapshot::name;

const VROUTER: &str = "Vrouter";
/// Modes of bonds that vrouters are run with.
const BONDS: [&str; 3] = ["802.3ad", "active-backup", "balance-xor"];
/// Interfaces of other data paths, by how they begin.
const OTHERS: [(&str, &str); 5] = [
    ("cilium_", "Cilium"),
    ("flannel", "flannel"),
    ("vxlan.calico", "Calico"),
    ("ovs-system", "Open vSwitch"),
    ("antrea-gw", "Antrea"),
];

pub(super) fn is_without_vrouter(world: &World, node: &Value) -> Option<Said> {
    (!runs_on(world, VROUTER, node)).then(|| (Outcome::Ok, "no vrouter is to run here".to_owned()))
}

/// There the kernel has no module of the vrouter, and sends nothing by the interface.
pub(super) fn is_on_dpdk(groups: &[Group<'_>], node: &Value) -> Option<Said> {
    let of_node = groups.iter().find(|one| roles::is_selected(&one.service, node))?;
    let driver = of_node.settings.as_ref().ok()?.dpdk_driver();
    driver.map(|_| (Outcome::Ok, "the vrouter runs on DPDK here".to_owned()))
}

pub(super) fn module(world: &World) -> Verdict {
    let is_exchanged = world.upgrade.as_ref().is_some_and(Upgrade::exchanges_vrouters);
    let judged = if is_exchanged { new_module_on } else { module_on };
    let groups = groups(world);
    each(world, "the module is loaded, or can be", |node, findings| {
        is_without_vrouter(world, node)
            .or_else(|| is_on_dpdk(&groups, node))
            .unwrap_or_else(|| judged(&findings.kernel))
    })
}

/// Before an upgrade: what is loaded is the earlier image's. It goes with that one's pod, and so does its file, which the new
/// image replaces by one that it brings or builds.
fn new_module_on(kernel: &Kernel) -> Said {
    let release = match &kernel.release {
        Seen::Is(release) => release,
        Seen::Unknown(why) => {
            return (Outcome::Uncertain, format!("the kernel is not known: {why}"));
        }
    };
    let none =
        format!("the new image needs a module for {release}, what is loaded is the earlier one's");
    match without_file(kernel, release, &none) {
        (Outcome::Warn, said) => (Outcome::Ok, said),
        said => said,
    }
}

fn module_on(kernel: &Kernel) -> Said {
    if kernel.loaded == Seen::Is(true) {
        return (Outcome::Ok, "loaded".to_owned());
    }
    let (release, files) = match (&kernel.release, &kernel.files) {
        (Seen::Unknown(why), _) | (_, Seen::Unknown(why)) => {
            return (Outcome::Uncertain, format!("the module is not known: {why}"));
        }
        (Seen::Is(release), Seen::Is(files)) => (release, files),
    };
    let is_for = |file: &&ModuleFile| {
        let vermagic = file.vermagic.known();
        vermagic.is_some_and(|magic| magic.split(' ').next() == Some(release.as_str()))
    };
    if let Some(file) = files.iter().find(is_for) {
        return loadable(kernel, file, release);
    }
    if let Some(file) = files.iter().find(|file| file.vermagic.known().is_none()) {
        let path = &file.path;
        return (Outcome::Uncertain, format!("whether {path} is for {release} is not known"));
    }
    let wrong = files.first().and_then(|file| Some((&file.path, file.vermagic.known()?)));
    let wrong = wrong.map(|(path, magic)| format!("; {path} is for {}", magic.trim()));
    without_file(kernel, release, &format!("no module for {release}{}", wrong.unwrap_or_default()))
}

/// By what a module can be built for the kernel, and whether one that is built loads.
fn without_file(kernel: &Kernel, release: &str, none: &str) -> Said {
    match (&kernel.headers, only_signed(kernel)) {
        (Seen::Is(true), Ok(None)) => {
            (Outcome::Warn, format!("{none}; headers are there, it will be built"))
        }
        (Seen::Is(true), Ok(Some(why))) => (
            Outcome::Fail,
            format!("{none}; one that is built has no signature, and {why} loads only signed ones"),
        ),
        (Seen::Is(true), Err(why)) => {
            (Outcome::Uncertain, format!("{none}; whether one that is built loads: {why}"))
        }
        (Seen::Is(false), _) if KERNELS.iter().any(|known| release.starts_with(known)) => (
            Outcome::Uncertain,
            format!(
                "{none}, and no headers; images from before February 2026 may have one of this family of kernels, later ones \
                 build it on the node: install kernel-devel"
            ),
        ),
        (Seen::Is(false), _) => {
            (Outcome::Fail, format!("{none}, and no headers to build it with: install them"))
        }
        (Seen::Unknown(why), _) => {
            (Outcome::Uncertain, format!("{none}; headers are not known: {why}"))
        }
    }
}

fn loadable(kernel: &Kernel, file: &ModuleFile, release: &str) -> Said {
    let path = &file.path;
    match (only_signed(kernel), &file.signed) {
        (Ok(None), _) => (Outcome::Ok, format!("{path} is for {release}")),
        (Ok(Some(why)), Seen::Is(false)) => {
            (Outcome::Fail, format!("{path} has no signature, and {why} loads only signed ones"))
        }
        (Ok(Some(why)), _) => (
            Outcome::Uncertain,
            format!("{path}: whether its signature is one that {why} takes is not known"),
        ),
        (Err(why), _) => (Outcome::Uncertain, format!("{path}: whether it loads: {why}")),
    }
}

/// What keeps modules without a signature out; nothing where nothing does.
fn only_signed(kernel: &Kernel) -> Result<Option<&'static str>, String> {
    if kernel.only_signed == Seen::Is(true) {
        return Ok(Some("sig_enforce"));
    }
    match &kernel.lockdown {
        Seen::Is(mode) if mode == "none" => {}
        Seen::Is(_) => return Ok(Some("lockdown")),
        // Distributions lock down what Secure Boot has started, and nothing else.
        Seen::Unknown(_) if kernel.secure_boot == Seen::Is(true) => return Ok(Some("Secure Boot")),
        Seen::Unknown(_) if kernel.secure_boot == Seen::Is(false) => {}
        Seen::Unknown(why) => return Err(why.clone()),
    }
    match &kernel.only_signed {
        Seen::Is(_) => Ok(None),
        Seen::Unknown(why) => Err(why.clone()),
    }
}

pub(super) fn others(world: &World) -> Verdict {
    each(world, "no other data path", |node, findings| {
        let interfaces = match &findings.interfaces {
            Seen::Is(interfaces) => interfaces,
            Seen::Unknown(why) => {
                return (Outcome::Uncertain, format!("interfaces are not known: {why}"));
            }
        };
        is_without_vrouter(world, node)
            .unwrap_or_else(|| others_on(world, node, findings, interfaces))
    })
}

fn others_on(
    world: &World,
    node: &Value,
    findings: &NodeFindings,
    interfaces: &Interfaces,
) -> Said {
    let mut bad = Vec::new();
    let fabric = fabric(world, node, findings).ok();
    if let Some((fabric, master)) = fabric.and_then(|one| Some((&one.name, one.master.as_ref()?)))
        && master.starts_with("ovs")
    {
        bad.push((Outcome::Fail, format!("{fabric} is a port of Open vSwitch")));
    }
    if !cni::is_intended(world) {
        for (start, what) in OTHERS {
            if let Some(one) = interfaces.shown.iter().find(|one| one.name.starts_with(start)) {
                bad.push((Outcome::Warn, format!("{} of {what}", one.name)));
            }
        }
        if interfaces.first_of_pods.as_ref().is_some_and(|name| name.starts_with("cali")) {
            bad.push((
                Outcome::Warn,
                format!("{} interfaces of Calico's pods", interfaces.of_pods),
            ));
        }
    }
    if interfaces.shown.iter().any(|one| one.name == VHOST) {
        match world.ours_on(name(node)) {
            Some(pods) if pods.is_empty() => {
                bad.push((
                    Outcome::Warn,
                    format!("{VHOST} is there, and no vrouter of this cluster runs"),
                ));
            }
            Some(_) => {}
            None => bad.push((
                Outcome::Uncertain,
                format!("whether {VHOST} is ours: pods may not be read"),
            )),
        }
    }
    worst(bad, "none")
}

pub(super) fn interface(world: &World) -> Verdict {
    let groups = groups(world);
    each(world, "the interface of the fabric is up and has an address", |node, findings| {
        is_without_vrouter(world, node)
            .unwrap_or_else(|| interface_on((world, &groups), node, findings))
    })
}

fn interface_on(of_cluster: (&World, &[Group<'_>]), node: &Value, findings: &NodeFindings) -> Said {
    let legs = match legs(of_cluster.0, node, findings) {
        Ok(legs) => legs,
        Err(said) => return said,
    };
    // It has taken over what the others had.
    let has_vhost = legs.iter().any(|one| one.name == VHOST);
    let bad = legs.iter().flat_map(|one| {
        let mut said = state_of(one);
        if !has_vhost {
            said.extend(without_address(one, findings));
        }
        said
    });
    let bad = bad.chain(undriven(of_cluster, node, findings));
    let names: Vec<&str> = legs.iter().map(|one| one.name.as_str()).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    worst(bad.collect(), format!("{} {are} up", names.join(", ")))
}

fn state_of(one: &Interface) -> Vec<Said> {
    let Interface { name, state, master, bond, .. } = one;
    let mut bad: Vec<Said> = unseen(&format!("the state of {name}"), state).into_iter().collect();
    if state
        .known()
        .is_some_and(|state| ["down", "lowerlayerdown", "notpresent"].contains(&state.as_str()))
    {
        bad.push((Outcome::Fail, format!("{name} is down")));
    }
    if let Some(master) = master {
        bad.push((Outcome::Fail, format!("{name} is a part of {master}: name that one")));
    }
    if let Some(mode) = bond.as_ref().filter(|mode| !BONDS.contains(&mode.as_str())) {
        bad.push((Outcome::Warn, format!("{name} is a bond of mode {mode}")));
    }
    bad
}

/// Of other addresses than the node's own, routes show nothing.
fn without_address(one: &Interface, findings: &NodeFindings) -> Option<Said> {
    let name = &one.name;
    let routes = match &findings.routes {
        Seen::Is(routes) => routes,
        Seen::Unknown(why) => {
            return Some((Outcome::Uncertain, format!("whether {name} has an address: {why}")));
        }
    };
    if routes.iter().any(|route| route.interface == *name && route.gateway.is_none()) {
        return None;
    }
    match &one.networks {
        Some(networks) if !networks.is_empty() => None,
        Some(_) => Some((Outcome::Fail, format!("{name} has no address of IPv4"))),
        None => Some((
            Outcome::Uncertain,
            format!(
                "{name} is not the interface of the node's address, and whether it has another is not shown by the image \
                that looked, which is older: take that of this release with --probe-image"
            ),
        )),
    }
}
