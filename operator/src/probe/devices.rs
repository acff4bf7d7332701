//! What interfaces of the node are made of, by /sys/class/net, and what of PCI is known of them, by /sys/bus/pci and
//! /sys/kernel/iommu_groups. A file that a device does not have is told from one that cannot be read.

use opensdn_node_probe::{
    Device, Devices, Function, Given, Group, Hardware, Seen, VirtualFunctions, WithoutIommu,
};

use super::host::Host;
use super::{checksums, interfaces};

const FOLDER: &str = "/sys/class/net";
const DRIVERS: &str = "/sys/bus/pci/drivers";
/// So many are shown: a node may have hundreds of virtual functions, which come last.
const SHOWN: usize = 64;
/// An interface is made of no more, and an IOMMU groups no more.
const TOGETHER: usize = 32;
/// Drivers by which programs have functions of PCI.
const FOR_PROGRAMS: [&str; 3] = ["igb_uio", "uio_pci_generic", "vfio-pci"];
/// How the class of network controllers begins.
const NETWORK: &str = "0x02";
const NO_MAC: &str = "00:00:00:00:00:00";

pub(super) fn look(host: &Host) -> Result<Devices, String> {
    let names = host.names(FOLDER)?.ok_or_else(|| format!("the node has no {FOLDER}"))?;
    let all = names.into_iter().map(|name| device(host, name));
    let is_shown = |one: &Device| one.hardware.is_some() || !one.lower.is_empty();
    let mut shown: Vec<Device> = all.filter(is_shown).collect();
    shown.sort_by_key(is_virtual_function);
    let left_out = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    Ok(Devices {
        shown,
        left_out,
        given: given(host).into(),
        without_iommu: without_iommu(host).into(),
    })
}

fn is_virtual_function(one: &Device) -> bool {
    let function = one.hardware.as_ref().and_then(|hardware| hardware.function.known()?.as_ref());
    function.is_some_and(|function| function.is_virtual == Seen::Is(true))
}

fn device(host: &Host, name: String) -> Device {
    let at = |what: &str| format!("{FOLDER}/{name}/{what}");
    let mac = host.text(&at("address")).ok().flatten();
    let mac = mac.map(|mac| mac.trim().to_owned());
    let files = host.names(&format!("{FOLDER}/{name}")).ok().flatten().unwrap_or_default();
    let lower = files.iter().filter_map(|file| file.strip_prefix("lower_"));
    let mut lower: Vec<String> =
        lower.filter(|lower| !interfaces::is_of_pod(lower)).map(str::to_owned).collect();
    if lower.len() > TOGETHER {
        // A part of them would look like all.
        lower.clear();
    }
    let hardware = files.iter().any(|file| file == "device").then(|| hardware(host, &name));
    Device {
        mac: mac.filter(|mac| mac != NO_MAC && !mac.is_empty()),
        lower,
        hardware,
        interface: name,
    }
}

fn hardware(host: &Host, name: &str) -> Hardware {
    let at = format!("{FOLDER}/{name}/device");
    Hardware {
        driver: driver(host, &at).into(),
        checksums: checksums::are_computed(name).into(),
        function: function(host, &at).into(),
    }
}

fn driver(host: &Host, at: &str) -> Result<String, String> {
    let driver = host.link(&format!("{at}/driver"))?;
    driver.ok_or_else(|| "the device has none".to_owned())
}

/// The function of PCI that the device is, or that has it: virtio is a bus of its own on one.
fn function(host: &Host, at: &str) -> Result<Option<Function>, String> {
    let bus = |at: &str| host.link(&format!("{at}/subsystem"));
    let at = match bus(at)?.as_deref() {
        Some("virtio") => format!("{at}/.."),
        _ => at.to_owned(),
    };
    match bus(&at)?.as_deref() {
        Some("pci") => {}
        Some(_) => return Ok(None),
        None => return Err(format!("{at} does not say its bus")),
    }
    let address = host.real_name(&at)?;
    let needed = |what: &str| host.needed(&format!("{at}/{what}"));
    let word = |what: &str| Seen::from(needed(what).map(|text| text.trim().to_owned()));
    let is_virtual = host.link(&format!("{at}/physfn")).map(|link| link.is_some());
    Ok(Some(Function {
        vendor: word("vendor"),
        device: word("device"),
        is_virtual: is_virtual.into(),
        group: group(host, &at, &address).into(),
        virtual_functions: virtual_functions(host, &at).into(),
        address,
    }))
}

fn virtual_functions(host: &Host, at: &str) -> Result<Option<VirtualFunctions>, String> {
    let count = |what: &str| -> Result<Option<u32>, String> {
        let path = format!("{at}/{what}");
        let text = host.text(&path)?;
        let number =
            text.map(|text| text.trim().parse().map_err(|_| format!("{path} is {text:?}")));
        number.transpose()
    };
    match (count("sriov_totalvfs")?, count("sriov_numvfs")?) {
        (Some(most), Some(now)) => Ok(Some(VirtualFunctions { most, now })),
        (None, None) => Ok(None),
        _ => Err("it says only one of how many there are and can be".to_owned()),
    }
}

fn group(host: &Host, at: &str, address: &str) -> Result<Option<Group>, String> {
    let at = format!("{at}/iommu_group");
    let Some(number) = host.link(&at)? else { return Ok(None) };
    let translation = host.needed(&format!("{at}/type")).map(|text| text.trim().to_owned());
    let others = others(host, &format!("{at}/devices"), address);
    Ok(Some(Group { number, translation: translation.into(), others: others.into() }))
}

/// Those that have a driver: one without keeps nothing.
fn others(host: &Host, folder: &str, address: &str) -> Result<Vec<Given>, String> {
    let all = host.names(folder)?.ok_or_else(|| format!("the node has no {folder}"))?;
    if all.len() > TOGETHER {
        return Err(format!("there are {} functions in it", all.len()));
    }
    let mut found = Vec::new();
    for other in all.into_iter().filter(|other| other != address) {
        if let Some(driver) = host.link(&format!("{folder}/{other}/driver"))? {
            found.push(Given { address: other, driver });
        }
    }
    Ok(found)
}

fn given(host: &Host) -> Result<Vec<Given>, String> {
    let mut found = Vec::new();
    for driver in FOR_PROGRAMS {
        // Beside links to functions there are files to bind and unbind by.
        let names = host.names(&format!("{DRIVERS}/{driver}"))?.unwrap_or_default();
        for address in names.into_iter().filter(|name| name.contains(':')) {
            let class = host.text(&format!("{DRIVERS}/{driver}/{address}/class"))?;
            if class.is_some_and(|class| class.starts_with(NETWORK)) && found.len() < SHOWN {
                found.push(Given { address, driver: driver.to_owned() });
            }
        }
    }
    Ok(found)
}

fn without_iommu(host: &Host) -> Result<WithoutIommu, String> {
    const MODULE: &str = "/sys/module/vfio";
    let allowed = host.text(&format!("{MODULE}/parameters/enable_unsafe_noiommu_mode"))?;
    Ok(match allowed {
        Some(text) if text.trim() == "Y" => WithoutIommu::Allowed,
        Some(_) => WithoutIommu::Refused,
        // A kernel that is built without it does not have the parameter.
        None if host.metadata(MODULE)?.is_some() => WithoutIommu::Refused,
        None => WithoutIommu::NotLoaded,
    })
}

#[cfg(test)]
mod tests;
