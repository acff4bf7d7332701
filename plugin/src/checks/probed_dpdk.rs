//! Whether the devices of the fabric can be given to DPDK on nodes that were looked at: the driver, and what it takes.
//! Deliberately not here: huge pages (`huge_pages`), and which cores are free.

use opensdn_node_probe::{
    Device, Devices, Function, Given, Group, Hardware, Kernel, ModuleState, NodeFindings, Seen,
    WithoutIommu,
};
use serde_json::Value;

use super::fabric::VHOST;
use super::probed::{Said, each, worst};
use super::probed_devices::{below_fabric, devices, uncertain};
use super::report::{Outcome, Verdict};
use super::vrouter_settings::{Group as Vrouters, groups, no_vrouter};
use super::world::World;
use super::{few, roles};

const VFIO: &str = "vfio-pci";
const UIO: &str = "uio_pci_generic";
/// Its devices stay with their driver in the kernel (`containers/vrouter/agent-dpdk/mlnx_defs`).
const MELLANOX: &str = "mlnx";
const OF_MELLANOX: &str = "mlx5_core";
/// Drivers that do not keep a group of an IOMMU from programs: the same one, that of bridges, and one that does nothing.
const HARMLESS: [&str; 3] = [VFIO, "pcieport", "pci-stub"];
/// Groups whose addresses the kernel does not translate.
const PASSED_THROUGH: &str = "identity";

/// Drivers of the kernel for whose devices upstream's DPDK is built with one (`rte_pmd_*` in `SConscript` of tf-vrouter).
const DRIVEN: [&str; 14] = [
    "bnxt_en",
    "e1000",
    "e1000e",
    "enic",
    "i40e",
    "i40evf",
    "ice",
    "igb",
    "igbvf",
    "ixgbe",
    "ixgbevf",
    OF_MELLANOX,
    "nfp",
    "virtio_net",
];
/// Of virtual functions both of i40e and of ice.
const OF_EITHER: &str = "iavf";

/// The modules that the drivers need of which images of upstream know how they are loaded.
fn modules_of(driver: &str) -> &'static [&'static str] {
    match driver {
        VFIO => &[VFIO],
        UIO => &[UIO],
        MELLANOX => &["ib_uverbs", "mlx5_ib"],
        _ => &[],
    }
}

/// The modules that nodes are to be looked at for.
pub(crate) fn modules(world: &World) -> Vec<String> {
    let groups = groups(world);
    let settings = groups.iter().filter_map(|one| one.settings.as_ref().ok());
    let drivers = settings.filter_map(|settings| settings.dpdk_driver());
    let mut all: Vec<String> =
        drivers.flat_map(modules_of).map(|module| (*module).to_owned()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn can_be_given(world: &World) -> Verdict {
    if let Some(verdict) = no_vrouter(world) {
        return verdict;
    }
    let groups = groups(world);
    let is_asked =
        |one: &Vrouters<'_>| one.settings.as_ref().map_or(true, |own| own.dpdk_driver().is_some());
    if !groups.iter().any(is_asked) {
        return Verdict::skipped("no Vrouter asks for DPDK");
    }
    each(world, "devices can be given to DPDK where it is asked for", |node, findings| {
        let of_node = groups.iter().filter(|one| roles::is_selected(&one.service, node));
        let said = of_node.filter_map(|one| match &one.settings {
            Err(why) => {
                Some(uncertain(format!("what Vrouter {} asks for: {why}", one.service.name)))
            }
            Ok(settings) => {
                let driver = settings.dpdk_driver()?;
                Some(on_node((world, &groups), node, findings, driver))
            }
        });
        worst(said.collect(), "as it is asked for")
    })
}

/// What DPDK has no driver for, where the data plane on the node is to be DPDK.
pub(super) fn undriven(
    (world, groups): (&World, &[Vrouters<'_>]),
    node: &Value,
    findings: &NodeFindings,
) -> Vec<Said> {
    let mut of_node = groups.iter().filter(|one| roles::is_selected(&one.service, node));
    let driver = match of_node.next().map(|one| (one, &one.settings)) {
        None => return Vec::new(),
        Some((one, Err(why))) => {
            let of = one.service.name;
            return vec![uncertain(format!("whether Vrouter {of} asks for DPDK: {why}"))];
        }
        Some((_, Ok(settings))) => match settings.dpdk_driver() {
            Some(driver) => driver,
            None => return Vec::new(),
        },
    };
    let shown = match devices(findings) {
        Ok(shown) => shown,
        Err(said) => return vec![said],
    };
    if is_given_already(findings, shown, driver).is_some() {
        return Vec::new();
    }
    let all = match below_fabric((world, groups), node, findings) {
        Ok(all) => all,
        Err(said) => return vec![said],
    };
    let said = all.into_iter().filter_map(|(device, hardware)| {
        let name = &device.interface;
        match &hardware.driver {
            Seen::Is(driver) if DRIVEN.contains(&driver.as_str()) => None,
            Seen::Is(driver) if driver == OF_EITHER => Some(uncertain(format!(
                "{name} is of {OF_EITHER}: upstream's DPDK has a driver for virtual functions of i40e, and none for those of ice"
            ))),
            Seen::Is(driver) => Some((
                Outcome::Warn,
                format!("{name} is of {driver}, and upstream's DPDK is built without a driver for its devices"),
            )),
            Seen::Unknown(why) => {
                Some(uncertain(format!("the driver of {name} is not known: {why}")))
            }
        }
    });
    said.collect()
}

fn on_node(
    of_cluster: (&World, &[Vrouters<'_>]),
    node: &Value,
    findings: &NodeFindings,
    driver: &str,
) -> Said {
    if modules_of(driver).is_empty() {
        return uncertain(match driver {
            "" => "no driver is named: nothing is loaded and no device is given".to_owned(),
            other => format!(
                "the images know nothing of a driver {other}: what takes the device is not known"
            ),
        });
    }
    let shown = match devices(findings) {
        Ok(shown) => shown,
        Err(said) => return said,
    };
    if let Some(said) = is_given_already(findings, shown, driver) {
        return said;
    }
    let mut said: Vec<Said> =
        modules_of(driver).iter().filter_map(|module| missing(findings, module)).collect();
    if driver == UIO {
        said.extend(is_locked(&findings.kernel));
    }
    match below_fabric(of_cluster, node, findings) {
        Ok(all) => {
            let own: Vec<&str> = all.iter().filter_map(|(_, hardware)| address(hardware)).collect();
            said.extend(all.iter().flat_map(|(device, hardware)| {
                is_refused(device, hardware, driver, (shown, &own))
            }));
        }
        Err(one) => said.push(one),
    }
    worst(said, "devices can be given to DPDK")
}

/// A device that a program has is no interface any more.
fn is_given_already(findings: &NodeFindings, shown: &Devices, driver: &str) -> Option<Said> {
    let interfaces = findings.interfaces.known()?;
    let is_vhost = interfaces.shown.iter().any(|one| one.name == VHOST);
    let given = shown.given.known()?.iter().find(|one| one.driver == driver)?;
    let is_of_programs = is_vhost && findings.kernel.loaded == Seen::Is(false);
    is_of_programs.then(|| (Outcome::Ok, format!("{} has {driver}", given.address)))
}

fn address(hardware: &Hardware) -> Option<&str> {
    hardware.function.known()?.as_ref().map(|function| function.address.as_str())
}

fn missing(findings: &NodeFindings, module: &str) -> Option<Said> {
    let Some(found) = findings.modules.iter().find(|one| one.name == module) else {
        return Some(uncertain(format!("module {module} was not looked for")));
    };
    match &found.state {
        Seen::Unknown(why) => Some(uncertain(format!("module {module} is not known: {why}"))),
        Seen::Is(ModuleState::Missing) => {
            let release = findings.kernel.release.known().map_or("the kernel", String::as_str);
            Some((Outcome::Fail, format!("{release} has no module {module}")))
        }
        Seen::Is(ModuleState::BuiltIn | ModuleState::Loaded | ModuleState::Loadable) => None,
    }
}

/// UIO leads to devices by files of sysfs that a kernel in lockdown opens for nothing but itself.
fn is_locked(kernel: &Kernel) -> Option<Said> {
    match (&kernel.lockdown, &kernel.secure_boot) {
        (Seen::Is(mode), _) if mode == "none" => None,
        (Seen::Is(mode), _) => Some((
            Outcome::Fail,
            format!("the kernel is in lockdown ({mode}), where only {VFIO} works"),
        )),
        // Distributions lock down what Secure Boot has started, and nothing else.
        (Seen::Unknown(_), Seen::Is(false)) => None,
        (Seen::Unknown(why), _) => {
            Some(uncertain(format!("whether the kernel is in lockdown is not known: {why}")))
        }
    }
}

/// Why the driver does not take the device.
fn is_refused(
    device: &Device,
    hardware: &Hardware,
    driver: &str,
    (shown, own): (&Devices, &[&str]),
) -> Vec<Said> {
    let name = &device.interface;
    let function = match &hardware.function {
        Seen::Is(Some(function)) => function,
        Seen::Is(None) => {
            return vec![(
                Outcome::Fail,
                format!("{name} is no device of PCI: {driver} takes no other"),
            )];
        }
        Seen::Unknown(why) => {
            return vec![uncertain(format!("what {name} is of PCI is not known: {why}"))];
        }
    };
    match (&hardware.driver, driver) {
        (Seen::Unknown(why), _) => {
            return vec![uncertain(format!("the driver of {name} is not known: {why}"))];
        }
        (Seen::Is(kept), MELLANOX) if kept == OF_MELLANOX => return Vec::new(),
        (Seen::Is(kept), MELLANOX) => {
            return vec![uncertain(format!(
                "{name} is of {kept}: whether DPDK uses it so is not known"
            ))];
        }
        (Seen::Is(kept), _) if kept == OF_MELLANOX => {
            let text = format!(
                "{name} is of {OF_MELLANOX}, which DPDK leaves to the kernel: its driver is {MELLANOX}"
            );
            return vec![(Outcome::Fail, text)];
        }
        (Seen::Is(_), _) => {}
    }
    match driver {
        VFIO => by_vfio(name, function, shown, own).into_iter().collect(),
        _ => by_uio(name, function),
    }
}

fn by_vfio(name: &str, function: &Function, shown: &Devices, own: &[&str]) -> Option<Said> {
    match (&function.group, &shown.without_iommu) {
        (Seen::Unknown(why), _) => {
            Some(uncertain(format!("whether an IOMMU has {name} is not known: {why}")))
        }
        (Seen::Is(Some(group)), _) => shared(name, group, own),
        (Seen::Is(None), Seen::Is(WithoutIommu::Allowed)) => None,
        (Seen::Is(None), Seen::Is(WithoutIommu::Refused)) => {
            let text = format!(
                "no IOMMU has {name}, and vfio was not allowed to do without: switch it on in the firmware \
                and by the kernel's command line (intel_iommu=on), or name {UIO}"
            );
            Some((Outcome::Fail, text))
        }
        (Seen::Is(None), Seen::Is(WithoutIommu::NotLoaded)) => Some(uncertain(format!(
            "no IOMMU has {name}; whether vfio may do without shows when it is loaded (enable_unsafe_noiommu_mode)"
        ))),
        (Seen::Is(None), Seen::Unknown(why)) => Some(uncertain(format!(
            "no IOMMU has {name}; whether vfio may do without is not known: {why}"
        ))),
    }
}

/// What else is in the group of the IOMMU has to be given away as well.
fn shared(name: &str, group: &Group, own: &[&str]) -> Option<Said> {
    let others = match &group.others {
        Seen::Is(others) => others,
        Seen::Unknown(why) => {
            let number = &group.number;
            return Some(uncertain(format!(
                "what is in group {number} of the IOMMU with {name}: {why}"
            )));
        }
    };
    let keeps = |one: &&Given| {
        !own.contains(&one.address.as_str()) && !HARMLESS.contains(&one.driver.as_str())
    };
    let kept: Vec<String> = others
        .iter()
        .filter(keeps)
        .map(|one| format!("{} of {}", one.address, one.driver))
        .collect();
    let text = || {
        format!(
            "the IOMMU has {name} in one group with {}: {VFIO} has to have all of it",
            few(&kept)
        )
    };
    (!kept.is_empty()).then(|| (Outcome::Fail, text()))
}

fn by_uio(name: &str, function: &Function) -> Vec<Said> {
    let mut said = Vec::new();
    match &function.is_virtual {
        Seen::Is(false) => {}
        Seen::Is(true) => said.push(uncertain(format!(
            "{name} is a virtual function, which may have no interrupts for {UIO}: {VFIO} takes it"
        ))),
        Seen::Unknown(why) => {
            said.push(uncertain(format!(
                "whether {name} is a virtual function is not known: {why}"
            )));
        }
    }
    let group = match &function.group {
        Seen::Is(None) => return said,
        Seen::Is(Some(group)) => group,
        Seen::Unknown(why) => {
            said.push(uncertain(format!("whether an IOMMU has {name} is not known: {why}")));
            return said;
        }
    };
    match &group.translation {
        Seen::Is(kind) if kind == PASSED_THROUGH => {}
        Seen::Is(kind) if kind.starts_with("DMA") => said.push((
            Outcome::Fail,
            format!("the IOMMU translates addresses for {name} ({kind}), which {UIO} does not know of: name {VFIO}, or \
                pass it through (iommu=pt)"),
        )),
        Seen::Is(kind) => {
            said.push(uncertain(format!("what the IOMMU does for {name} ({kind}) is not known")));
        }
        Seen::Unknown(why) => {
            said.push(uncertain(format!("what the IOMMU does for {name} is not known: {why}")));
        }
    }
    said
}
