//! Nodes with a PCI card and its virtual functions, with virtio, with a bond below a VLAN, and with nothing to be seen.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::super::tests::node;
use super::*;

const CARD: &str = "sys/devices/pci0000:00/0000:3b:00.0";

/// A link below the folder, whose target is given from there too.
fn link(root: &Path, from: &str, to: &str) {
    let from_path = root.join(from);
    fs::create_dir_all(from_path.parent().unwrap()).unwrap();
    let up = "../".repeat(from.matches('/').count());
    symlink(format!("{up}{to}"), from_path).unwrap();
}

/// An interface of a device: `/sys/class/net/NAME` is a link, as the kernel has it.
fn interface(root: &Path, name: &str, device: &str, driver: &str, bus: &str) {
    fs::create_dir_all(root.join(format!("{device}/net/{name}"))).unwrap();
    link(root, &format!("{device}/net/{name}/device"), device);
    link(root, &format!("{device}/driver"), &format!("sys/bus/{bus}/drivers/{driver}"));
    link(root, &format!("{device}/subsystem"), &format!("sys/bus/{bus}"));
    link(root, &format!("sys/class/net/{name}"), &format!("{device}/net/{name}"));
}

fn one<'a>(devices: &'a Devices, name: &str) -> &'a Device {
    devices.shown.iter().find(|one| one.interface == name).unwrap()
}

#[test]
fn a_card_is_seen_with_its_group_and_its_virtual_functions() {
    let group = "sys/kernel/iommu_groups/12";
    let (folder, host) = node(&[
        (&format!("{CARD}/vendor"), "0x8086\n"),
        (&format!("{CARD}/device"), "0x1572\n"),
        (&format!("{CARD}/sriov_totalvfs"), "64\n"),
        (&format!("{CARD}/sriov_numvfs"), "4\n"),
        (&format!("{CARD}/net/eth0/address"), "52:54:00:12:34:56\n"),
        (&format!("{group}/type"), "DMA-FQ\n"),
    ]);
    let root = folder.path();
    interface(root, "eth0", CARD, "i40e", "pci");
    let other = "sys/devices/pci0000:00/0000:3b:00.1";
    link(root, &format!("{other}/driver"), "sys/bus/pci/drivers/i40e");
    link(root, &format!("{CARD}/iommu_group"), group);
    link(root, &format!("{group}/devices/0000:3b:00.0"), CARD);
    link(root, &format!("{group}/devices/0000:3b:00.1"), other);
    let devices = look(&host).unwrap();
    let eth = one(&devices, "eth0");
    assert_eq!(eth.mac.as_deref(), Some("52:54:00:12:34:56"));
    let hardware = eth.hardware.as_ref().unwrap();
    assert_eq!(hardware.driver, Seen::Is("i40e".to_owned()));
    let function = hardware.function.known().unwrap().as_ref().unwrap();
    assert_eq!(function.address, "0000:3b:00.0");
    assert_eq!(
        (&function.is_virtual, &function.vendor),
        (&Seen::Is(false), &Seen::Is("0x8086".to_owned()))
    );
    assert_eq!(function.virtual_functions, Seen::Is(Some(VirtualFunctions { most: 64, now: 4 })));
    let group = function.group.known().unwrap().as_ref().unwrap();
    assert_eq!(
        (group.number.as_str(), group.translation.known().unwrap().as_str()),
        ("12", "DMA-FQ")
    );
    let expected = Given { address: "0000:3b:00.1".to_owned(), driver: "i40e".to_owned() };
    assert_eq!(group.others, Seen::Is(vec![expected]));
}

#[test]
fn virtio_is_a_function_of_pci_without_a_group_and_another_bus_is_none() {
    let (folder, host) = node(&[("sys/devices/pci0000:00/0000:00:03.0/vendor", "0x1af4\n")]);
    let root = folder.path();
    let pci = "sys/devices/pci0000:00/0000:00:03.0";
    interface(root, "ens3", &format!("{pci}/virtio0"), "virtio_net", "virtio");
    link(root, &format!("{pci}/subsystem"), "sys/bus/pci");
    interface(root, "eth1", "sys/devices/vmbus/1-2-3", "hv_netvsc", "vmbus");
    let devices = look(&host).unwrap();
    let function = |name| one(&devices, name).hardware.as_ref().unwrap().function.known().unwrap();
    let virtio = function("ens3").as_ref().unwrap();
    assert_eq!((virtio.address.as_str(), &virtio.group), ("0000:00:03.0", &Seen::Is(None)));
    assert_eq!(virtio.virtual_functions, Seen::Is(None));
    assert_eq!(function("eth1"), &None);
    assert_eq!(devices.without_iommu, Seen::Is(WithoutIommu::NotLoaded));
}

#[test]
fn what_an_interface_is_made_of_is_shown_and_those_of_pods_are_not() {
    let (_folder, host) = node(&[
        ("sys/class/net/bond0/lower_eth0/x", ""),
        ("sys/class/net/bond0/lower_eth1/x", ""),
        ("sys/class/net/bond0.7/lower_bond0/x", ""),
        ("sys/class/net/docker0/lower_veth1234/x", ""),
        ("sys/class/net/lo/address", "00:00:00:00:00:00\n"),
        ("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n"),
    ]);
    let devices = look(&host).unwrap();
    let names: Vec<(&str, &[String])> =
        devices.shown.iter().map(|one| (one.interface.as_str(), one.lower.as_slice())).collect();
    let expected: [(&str, &[String]); 2] =
        [("bond0", &["eth0".to_owned(), "eth1".to_owned()]), ("bond0.7", &["bond0".to_owned()])];
    assert_eq!(names, expected);
    assert_eq!(
        (devices.given, devices.without_iommu),
        (Seen::Is(vec![]), Seen::Is(WithoutIommu::Refused))
    );
}

#[test]
fn what_a_driver_for_programs_has_is_shown_where_it_is_of_the_network() {
    let drivers = "sys/bus/pci/drivers/vfio-pci";
    let (_folder, host) = node(&[
        ("sys/class/net/lo/address", ""),
        (&format!("{drivers}/0000:3b:00.0/class"), "0x020000\n"),
        (&format!("{drivers}/0000:81:00.0/class"), "0x030200\n"),
        (&format!("{drivers}/bind"), ""),
    ]);
    let expected = Given { address: "0000:3b:00.0".to_owned(), driver: "vfio-pci".to_owned() };
    assert_eq!(look(&host).unwrap().given, Seen::Is(vec![expected]));
}

#[test]
fn of_hundreds_of_virtual_functions_their_card_is_not_lost() {
    let (folder, host) = node(&[]);
    let root = folder.path();
    for number in 0..SHOWN {
        let at = format!("sys/devices/pci0000:00/0000:3b:02.{number}");
        interface(root, &format!("a{number}"), &at, "iavf", "pci");
        link(root, &format!("{at}/physfn"), CARD);
    }
    interface(root, "eth0", CARD, "i40e", "pci");
    let devices = look(&host).unwrap();
    assert_eq!((devices.shown.len(), devices.left_out), (SHOWN, 1));
    assert_eq!(devices.shown.first().unwrap().interface, "eth0");
}
