//! Virtual functions of interfaces on nodes that were looked at. The agent makes them when it starts, by a write that the
//! kernel takes or refuses; the agent says nothing of that.

use opensdn_node_probe::{NodeFindings, Seen, VirtualFunctions};
use serde_json::Value;

use super::cluster_api::allocatable;
use super::probed::{Said, each, worst};
use super::probed_devices::{devices, find, uncertain};
use super::report::{Outcome, Verdict};
use super::vrouter_settings::{Group, Settings, WantedFunctions, groups, no_vrouter};
use super::world::World;
use super::{few, roles};
use crate::snapshot::name;

pub(super) fn are_there(world: &World) -> Verdict {
    if let Some(verdict) = no_vrouter(world) {
        return verdict;
    }
    let groups = groups(world);
    let is_nothing =
        |settings: &Settings| settings.functions().is_ok_and(|wanted| wanted.is_empty());
    if groups.iter().all(|one| one.settings.as_ref().is_ok_and(is_nothing)) {
        return Verdict::skipped("no Vrouter asks for virtual functions");
    }
    each(
        world,
        "interfaces have, or can have, the virtual functions that are asked for",
        |node, findings| {
            let of_node = groups.iter().filter(|one| roles::is_selected(&one.service, node));
            let said = of_node.flat_map(|one| on_node(world, node, findings, one));
            worst(said.collect(), "as they are asked for")
        },
    )
}

fn on_node(world: &World, node: &Value, findings: &NodeFindings, group: &Group<'_>) -> Vec<Said> {
    let of = &group.service.name;
    let settings = match &group.settings {
        Ok(settings) => settings,
        Err(why) => return vec![uncertain(format!("what Vrouter {of} asks for: {why}"))],
    };
    match settings.functions() {
        Ok(wanted) => {
            let mut said: Vec<Said> =
                wanted.iter().filter_map(|one| of_interface(world, node, findings, one)).collect();
            let is_there = |one: &WantedFunctions| is_made(findings, &one.interface);
            if said.is_empty() && wanted.iter().any(is_there) {
                said.extend(not_offered(node));
            }
            said
        }
        Err(why) => vec![(Outcome::Fail, format!("Vrouter {of}: {why}"))],
    }
}

fn of_interface(
    world: &World,
    node: &Value,
    findings: &NodeFindings,
    wanted: &WantedFunctions,
) -> Option<Said> {
    let WantedFunctions { interface, count } = wanted;
    if *count == 0 {
        return None;
    }
    match &findings.interfaces {
        Seen::Unknown(why) => return Some(uncertain(format!("interfaces are not known: {why}"))),
        Seen::Is(all) if !all.shown.iter().any(|one| one.name == *interface) => {
            return Some((Outcome::Fail, format!("the node has no interface {interface}")));
        }
        Seen::Is(_) => {}
    }
    let functions = match functions(findings, interface) {
        Ok(functions) => functions,
        Err(said) => return Some(said),
    };
    let fail = |text: String| Some((Outcome::Fail, text));
    match functions {
        None => fail(format!(
            "{interface} can have no virtual functions: its device has none, or its firmware has them off"
        )),
        Some(VirtualFunctions { now, .. }) if now >= *count => None,
        Some(VirtualFunctions { most, .. }) if most < *count => fail(format!(
            "{interface} can have {most} virtual functions, and {count} are asked for"
        )),
        Some(VirtualFunctions { now: 0, .. }) => not_made_yet(world, node, wanted),
        Some(VirtualFunctions { now, .. }) => fail(format!(
            "{interface} has {now} virtual functions, and {count} are asked for: the kernel makes more only where there \
             are none (write 0 first)"
        )),
    }
}

fn functions(findings: &NodeFindings, interface: &str) -> Result<Option<VirtualFunctions>, Said> {
    let devices = devices(findings)?;
    let device = match find(devices, interface) {
        Ok(device) => device,
        // All that are devices are shown, and this is none.
        Err(_) if devices.left_out == 0 => return Ok(None),
        Err(said) => return Err(said),
    };
    let unknown =
        |why: &str| uncertain(format!("the virtual functions of {interface} are not known: {why}"));
    // Of a bond the agent's script makes none: it has no device.
    let Some(hardware) = &device.hardware else { return Ok(None) };
    match &hardware.function {
        Seen::Is(None) => Ok(None),
        Seen::Is(Some(function)) => match &function.virtual_functions {
            Seen::Is(functions) => Ok(*functions),
            Seen::Unknown(why) => Err(unknown(why)),
        },
        Seen::Unknown(why) => Err(unknown(why)),
    }
}

fn is_made(findings: &NodeFindings, interface: &str) -> bool {
    functions(findings, interface).is_ok_and(|found| found.is_some_and(|found| found.now > 0))
}

/// Pods are given functions as a resource of a device plugin, under a name that its configuration chooses.
fn not_offered(node: &Value) -> Option<Said> {
    let Some(all) = node.pointer("/status/allocatable").and_then(Value::as_object) else {
        return Some(uncertain("what the node can give to pods is not known"));
    };
    let offered: Vec<String> = all.keys().filter(|name| name.contains('/')).cloned().collect();
    let named: Vec<String> = offered.iter().filter(|name| is_of_functions(name)).cloned().collect();
    let has_any = |name: &String| allocatable(node, name).is_some_and(|count| count > 0.0);
    if named.iter().any(has_any) {
        return None;
    }
    if !named.is_empty() {
        return Some((
            Outcome::Warn,
            format!(
                "the node can give 0 of {}: its device plugin has none of the functions",
                few(&named)
            ),
        ));
    }
    Some(uncertain(match offered.is_empty() {
        true => {
            "no device plugin offers functions here, so that pods cannot ask for one as a resource"
                .to_owned()
        }
        false => format!(
            "whether a device plugin offers functions here: none of its resources says so ({})",
            few(&offered)
        ),
    }))
}

/// By its name, as the plugin's own examples have it: `intel.com/intel_sriov_netdevice`.
fn is_of_functions(resource: &str) -> bool {
    let name = resource.to_ascii_lowercase();
    ["sriov", "sr-iov", "sr_iov"].iter().any(|word| name.contains(word))
}

/// An agent that runs would have made them.
fn not_made_yet(world: &World, node: &Value, wanted: &WantedFunctions) -> Option<Said> {
    let WantedFunctions { interface, count } = wanted;
    let Some(runs) = world.has_vrouter(name(node)) else {
        let text = format!(
            "{interface} has no virtual functions yet; whether an agent runs: pods may not be read"
        );
        return Some(uncertain(text));
    };
    let text = || {
        format!(
            "{interface} has none of the {count} virtual functions, though an agent is there, which makes them when it \
            starts"
        )
    };
    runs.then(|| (Outcome::Warn, text()))
}
