//! The devices below the interface of the fabric on nodes that were looked at, and whether their offloads are known to lose
//! packets.

use opensdn_node_probe::{Device, Devices, Hardware, NodeFindings, Seen};
use serde_json::Value;

use super::fabric::{VHOST, fabric};
use super::probed::{Said, each, worst};
use super::probed_data_path::{is_on_dpdk, is_without_vrouter};
use super::report::{Outcome, Verdict};
use super::vrouter_settings::{Group, groups};
use super::world::World;
use super::{few, roles};

/// So often an interface is made of others: a VLAN on a bond of devices.
const DEPTH: usize = 4;
/// Its offload of VXLAN drops what it does not know (Calico's issue 4727).
const LOSING: &str = "vmxnet3";

pub(super) fn uncertain(text: impl Into<String>) -> Said {
    (Outcome::Uncertain, text.into())
}

/// What the node says of its devices.
pub(super) fn devices(findings: &NodeFindings) -> Result<&Devices, Said> {
    match &findings.devices {
        Some(Seen::Is(devices)) => Ok(devices),
        Some(Seen::Unknown(why)) => Err(uncertain(format!("devices are not known: {why}"))),
        None => Err(uncertain(
            "the image that looked is older and shows no devices: take that of this release with --probe-image",
        )),
    }
}

pub(super) fn find<'a>(devices: &'a Devices, name: &str) -> Result<&'a Device, Said> {
    let found = devices.shown.iter().find(|one| one.interface == name);
    found.ok_or_else(|| match devices.left_out {
        0 => uncertain(format!("which device is below {name} is not known")),
        more => uncertain(format!("{name} is not among what is shown: {more} more are not")),
    })
}

/// The devices of the fabric: those of a bond, the one of a VLAN, and on a node with a vrouter those below vhost0.
pub(super) fn below_fabric<'a>(
    (world, groups): (&World, &[Group<'_>]),
    node: &Value,
    findings: &'a NodeFindings,
) -> Result<Vec<(&'a Device, &'a Hardware)>, Said> {
    let devices = devices(findings)?;
    // What is wrong with it is said by its own check.
    let fabric = fabric(world, node, findings)
        .map_err(|(_, why)| uncertain(format!("which interface is the fabric's: {why}")))?;
    let of_node = groups.iter().find(|one| roles::is_selected(&one.service, node));
    let named = of_node.and_then(|one| one.settings.as_ref().ok());
    let mut first: Vec<&Device> = Vec::new();
    if fabric.name == VHOST {
        first.push(below_vhost(devices, findings)?);
    } else {
        for name in named.into_iter().flat_map(|settings| settings.interfaces()) {
            first.push(find(devices, name)?);
        }
        if first.is_empty() {
            first.push(find(devices, &fabric.name)?);
        }
    }
    let mut found = Vec::new();
    for one in first {
        below(devices, one, DEPTH, &mut found)?;
    }
    Ok(found)
}

fn below<'a>(
    devices: &'a Devices,
    one: &'a Device,
    depth: usize,
    found: &mut Vec<(&'a Device, &'a Hardware)>,
) -> Result<(), Said> {
    if let Some(hardware) = &one.hardware {
        found.push((one, hardware));
        return Ok(());
    }
    if one.lower.is_empty() || depth == 0 {
        let name = &one.interface;
        return Err(uncertain(format!("which device is below {name} is not known")));
    }
    one.lower.iter().try_for_each(|name| below(devices, find(devices, name)?, depth - 1, found))
}

/// The interface with the same MAC address, as upstream's scripts look for it: a VLAN before a bond before a device.
fn below_vhost<'a>(devices: &'a Devices, findings: &NodeFindings) -> Result<&'a Device, Said> {
    let unknown = || uncertain(format!("which interface {VHOST} is on is not known"));
    let own = devices.shown.iter().find(|one| one.interface == VHOST);
    let mac = own.and_then(|one| one.mac.as_ref()).ok_or_else(unknown)?;
    let same = |one: &&Device| one.interface != VHOST && one.mac.as_ref() == Some(mac);
    let same: Vec<&Device> = devices.shown.iter().filter(same).collect();
    let interfaces = findings.interfaces.known().map_or(&[][..], |all| &all.shown);
    let is_bond = |one: &&&Device| {
        interfaces.iter().any(|other| other.name == one.interface && other.bond.is_some())
    };
    let is_vlan = |one: &&&Device| one.lower.len() == 1 && !is_bond(one);
    let found = same.iter().find(is_vlan).or_else(|| same.iter().find(is_bond));
    match (found, &*same) {
        (Some(one), _) => Ok(one),
        (None, [one]) => Ok(one),
        (None, _) => Err(unknown()),
    }
}

pub(super) fn offloads(world: &World) -> Verdict {
    let groups = groups(world);
    each(world, "no offload of the fabric's devices is known to lose packets", |node, findings| {
        is_without_vrouter(world, node)
            .or_else(|| is_on_dpdk(&groups, node))
            .unwrap_or_else(|| offloads_on((world, &groups), node, findings))
    })
}

fn offloads_on(of_cluster: (&World, &[Group<'_>]), node: &Value, findings: &NodeFindings) -> Said {
    let all = match below_fabric(of_cluster, node, findings) {
        Ok(all) => all,
        Err(said) => return said,
    };
    let mut drivers = Vec::new();
    let mut said = Vec::new();
    for (device, hardware) in all {
        let name = &device.interface;
        match (&hardware.driver, &hardware.checksums) {
            (Seen::Unknown(why), _) => {
                said.push(uncertain(format!("the driver of {name} is not known: {why}")));
            }
            (Seen::Is(driver), Seen::Is(true)) if driver == LOSING => said.push((
                Outcome::Warn,
                format!("{name} is of {LOSING} and computes checksums itself, which loses packets in packets on \
                    some hosts: ethtool -K {name} tx off"),
            )),
            (Seen::Is(driver), Seen::Unknown(why)) if driver == LOSING => said.push(uncertain(
                format!("whether {name} of {LOSING} computes checksums itself is not known: {why}"),
            )),
            (Seen::Is(driver), _) => drivers.push(format!("{name} is of {driver}")),
        }
    }
    worst(said, few(&drivers))
}
