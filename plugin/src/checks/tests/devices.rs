//! Worlds of devices: offloads, DPDK and virtual functions, each as it has to be, as it must not be, and not to be known.

use opensdn_node_probe::{
    Device, Devices, Function, Given, Group, Hardware, Interface, Interfaces, ModuleFinding,
    ModuleState, NodeFindings, Seen, VirtualFunctions, WithoutIommu,
};
use serde_json::{Value, json};

use super::super::report::Outcome;
use super::super::world::World;
use super::probed::{interface, is, probed, unknown};
use super::{forbidden, known, says};
use crate::snapshot::Read;

const D303: &str = "D303";
const D305: &str = "D305";
const D307: &str = "D307";
const D308: &str = "D308";

/// A card of Intel without an IOMMU, with 8 virtual functions of which none is made.
pub(super) fn card(interface: &str, driver: &'static str) -> Device {
    let function = Function {
        address: "0000:3b:00.0".to_owned(),
        vendor: is("0x8086"),
        device: is("0x1572"),
        is_virtual: Seen::Is(false),
        group: Seen::Is(None),
        virtual_functions: Seen::Is(Some(VirtualFunctions { most: 8, now: 0 })),
    };
    Device {
        interface: interface.to_owned(),
        mac: Some("52:54:00:12:34:56".to_owned()),
        lower: vec![],
        hardware: Some(Hardware {
            driver: is(driver),
            checksums: Seen::Is(true),
            function: Seen::Is(Some(function)),
        }),
    }
}

/// A node with this card, whose kernel has not loaded vfio.
pub(super) fn with_card(interface: &str) -> Devices {
    Devices {
        shown: vec![card(interface, "i40e")],
        left_out: 0,
        given: Seen::Is(vec![]),
        without_iommu: Seen::Is(WithoutIommu::NotLoaded),
    }
}

fn made_of(interface: &str, lower: &[&str]) -> Device {
    let lower = lower.iter().map(|name| (*name).to_owned()).collect();
    Device { interface: interface.to_owned(), mac: None, lower, hardware: None }
}

fn devices(findings: &mut NodeFindings) -> &mut Devices {
    match findings.devices.as_mut() {
        Some(Seen::Is(devices)) => devices,
        other => panic!("they are known: {other:?}"),
    }
}

fn hardware(findings: &mut NodeFindings) -> &mut Hardware {
    devices(findings).shown[0].hardware.as_mut().unwrap()
}

fn function(findings: &mut NodeFindings) -> &mut Function {
    match &mut hardware(findings).function {
        Seen::Is(Some(function)) => function,
        other => panic!("it is known: {other:?}"),
    }
}

fn vrouter(world: &mut World) -> &mut Value {
    &mut known(&mut world.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]
}

fn vhost(findings: &mut NodeFindings) {
    let shown = vec![interface("eth0", 1500), interface("vhost0", 1500)];
    findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
    let Seen::Is(routes) = &mut findings.routes else { panic!("they are known") };
    routes.iter_mut().for_each(|route| route.interface = "vhost0".to_owned());
}

#[test]
fn an_offload_that_loses_packets_is_found() {
    let vmxnet = |checksums: Seen<bool>| {
        probed(|findings| {
            let hardware = hardware(findings);
            (hardware.driver, hardware.checksums) = (is("vmxnet3"), checksums);
        })
    };
    says(&probed(|_| {}), D305, Outcome::Ok, "3/3 nodes");
    says(&vmxnet(Seen::Is(true)), D305, Outcome::Warn, "m2: eth0 is of vmxnet3");
    says(&vmxnet(Seen::Is(false)), D305, Outcome::Ok, "3/3 nodes");
    says(&vmxnet(unknown()), D305, Outcome::Uncertain, "it is hidden");
    says(
        &probed(|findings| hardware(findings).driver = unknown()),
        D305,
        Outcome::Uncertain,
        "hidden",
    );
    says(
        &probed(|findings| findings.devices = Some(unknown())),
        D305,
        Outcome::Uncertain,
        "hidden",
    );
    says(&probed(|findings| findings.devices = None), D305, Outcome::Uncertain, "--probe-image");
    says(&probed(|findings| findings.routes = unknown()), D305, Outcome::Uncertain, "hidden");
    let virtual_one = |findings: &mut NodeFindings| devices(findings).shown[0].hardware = None;
    says(&probed(virtual_one), D305, Outcome::Uncertain, "which device is below eth0");
    let many = |findings: &mut NodeFindings| {
        (devices(findings).shown, devices(findings).left_out) = (vec![], 70);
    };
    says(&probed(many), D305, Outcome::Uncertain, "70 more are not");
}

#[test]
fn devices_are_those_below_a_vlan_a_bond_and_vhost0() {
    let below = |findings: &mut NodeFindings, lower: &[&str]| {
        let (one, other) = (card("eth1", "vmxnet3"), card("eth2", "i40e"));
        devices(findings).shown =
            vec![made_of("eth0", lower), made_of("bond0", &["eth1", "eth2"]), one, other];
    };
    says(
        &probed(|findings| below(findings, &["bond0"])),
        D305,
        Outcome::Warn,
        "eth1 is of vmxnet3",
    );
    says(&probed(|findings| below(findings, &["eth2"])), D305, Outcome::Ok, "");
    says(&probed(|findings| below(findings, &["gone"])), D305, Outcome::Uncertain, "below gone");
    says(&probed(|findings| below(findings, &["eth0"])), D305, Outcome::Uncertain, "below eth0");

    let own = || Device { mac: card("x", "x").mac, ..made_of("vhost0", &[]) };
    let installed = |findings: &mut NodeFindings| {
        vhost(findings);
        devices(findings).shown.push(own());
        hardware(findings).driver = is("vmxnet3");
    };
    says(&probed(installed), D305, Outcome::Warn, "eth0 is of vmxnet3");
    let twice = |findings: &mut NodeFindings| {
        installed(findings);
        devices(findings).shown.push(card("eth1", "i40e"));
    };
    says(&probed(twice), D305, Outcome::Uncertain, "which interface vhost0 is on");
    says(&probed(vhost), D305, Outcome::Uncertain, "which interface vhost0 is on");

    let mut several = probed(|findings| {
        let shown = vec![interface("eth0", 1500), interface("eth1", 1500)];
        findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
        devices(findings).shown.push(card("eth1", "vmxnet3"));
    });
    vrouter(&mut several)["physicalInterface"] = json!("eth0, eth1");
    let of_m2 = super::verdict(&several, D305);
    assert_eq!(of_m2.nodes[1].result, Outcome::Warn, "{}", of_m2.message);
    vrouter(&mut several)["dpdk"] = json!({});
    says(&several, D305, Outcome::Ok, "3/3 nodes");
}

/// All nodes as a change has them, with what the Vrouter is to be.
fn dpdk(driver: &str, change: impl FnOnce(&mut NodeFindings)) -> World {
    let modules = || {
        ["vfio-pci", "uio_pci_generic", "ib_uverbs", "mlx5_ib"].map(|name| ModuleFinding {
            name: name.to_owned(),
            state: Seen::Is(ModuleState::Loadable),
        })
    };
    let mut world = probed(|_| {});
    for answer in world.probed.as_mut().unwrap().values_mut() {
        let findings = &mut answer.as_mut().unwrap().findings;
        findings.modules = modules().into();
        let group =
            Group { number: "7".to_owned(), translation: is("identity"), others: Seen::Is(vec![]) };
        function(findings).group = Seen::Is(Some(group));
        if driver == "mlnx" {
            hardware(findings).driver = is("mlx5_core");
        }
    }
    change(&mut world.probed.as_mut().unwrap().get_mut("m2").unwrap().as_mut().unwrap().findings);
    vrouter(&mut world)["dpdk"] = json!({"uioDriver": driver});
    world
}

fn group(findings: &mut NodeFindings) -> &mut Group {
    match &mut function(findings).group {
        Seen::Is(Some(group)) => group,
        other => panic!("it is known: {other:?}"),
    }
}

#[test]
fn devices_for_dpdk_by_any_driver() {
    for driver in ["vfio-pci", "uio_pci_generic", "mlnx"] {
        says(&dpdk(driver, |_| {}), D307, Outcome::Ok, "3/3 nodes");
        let missing = |findings: &mut NodeFindings| {
            findings.modules.iter_mut().for_each(|one| one.state = Seen::Is(ModuleState::Missing));
        };
        says(&dpdk(driver, missing), D307, Outcome::Fail, "x86_64 has no module");
        let hidden = |findings: &mut NodeFindings| {
            findings.modules.iter_mut().for_each(|one| one.state = unknown());
        };
        says(&dpdk(driver, hidden), D307, Outcome::Uncertain, "it is hidden");
        says(
            &dpdk(driver, |findings| findings.modules.clear()),
            D307,
            Outcome::Uncertain,
            "not looked for",
        );
        let other_bus = |findings: &mut NodeFindings| hardware(findings).function = Seen::Is(None);
        says(&dpdk(driver, other_bus), D307, Outcome::Fail, "eth0 is no device of PCI");
        let hidden = |findings: &mut NodeFindings| hardware(findings).function = unknown();
        says(&dpdk(driver, hidden), D307, Outcome::Uncertain, "it is hidden");
        says(
            &dpdk(driver, |findings| findings.devices = None),
            D307,
            Outcome::Uncertain,
            "--probe-image",
        );
        says(
            &dpdk(driver, |findings| hardware(findings).driver = unknown()),
            D307,
            Outcome::Uncertain,
            "hidden",
        );
    }
    for driver in ["vfio-pci", "uio_pci_generic"] {
        let mellanox = |findings: &mut NodeFindings| hardware(findings).driver = is("mlx5_core");
        says(&dpdk(driver, mellanox), D307, Outcome::Fail, "its driver is mlnx");
    }
    let intel = |findings: &mut NodeFindings| hardware(findings).driver = is("i40e");
    says(&dpdk("mlnx", intel), D307, Outcome::Uncertain, "eth0 is of i40e");
    says(&dpdk("igb_uio", |_| {}), D307, Outcome::Uncertain, "know nothing of a driver igb_uio");
}

#[test]
fn vfio_takes_a_whole_group_or_does_without_if_it_may() {
    let with = |without: Seen<WithoutIommu>| {
        dpdk("vfio-pci", |findings| {
            function(findings).group = Seen::Is(None);
            devices(findings).without_iommu = without;
        })
    };
    says(&with(Seen::Is(WithoutIommu::Allowed)), D307, Outcome::Ok, "");
    says(&with(Seen::Is(WithoutIommu::Refused)), D307, Outcome::Fail, "no IOMMU has eth0");
    says(
        &with(Seen::Is(WithoutIommu::NotLoaded)),
        D307,
        Outcome::Uncertain,
        "shows when it is loaded",
    );
    says(&with(unknown()), D307, Outcome::Uncertain, "it is hidden");
    says(
        &dpdk("vfio-pci", |findings| function(findings).group = unknown()),
        D307,
        Outcome::Uncertain,
        "hidden",
    );
    let others = |of: Seen<Vec<Given>>| dpdk("vfio-pci", |findings| group(findings).others = of);
    let given = |address: &str, driver: &str| {
        Seen::Is(vec![Given { address: address.to_owned(), driver: driver.to_owned() }])
    };
    says(&others(given("0000:3b:00.1", "i40e")), D307, Outcome::Fail, "0000:3b:00.1 of i40e");
    says(&others(given("0000:3a:00.0", "pcieport")), D307, Outcome::Ok, "");
    says(&others(given("0000:3b:00.0", "i40e")), D307, Outcome::Ok, "");
    says(&others(unknown()), D307, Outcome::Uncertain, "it is hidden");
}

#[test]
fn uio_needs_addresses_as_they_are_and_a_kernel_that_is_open() {
    let with =
        |change: &dyn Fn(&mut NodeFindings)| dpdk("uio_pci_generic", |findings| change(findings));
    says(&with(&|one| function(one).group = Seen::Is(None)), D307, Outcome::Ok, "");
    says(
        &with(&|one| group(one).translation = is("DMA-FQ")),
        D307,
        Outcome::Fail,
        "translates addresses",
    );
    says(&with(&|one| group(one).translation = is("blocked")), D307, Outcome::Uncertain, "blocked");
    says(&with(&|one| group(one).translation = unknown()), D307, Outcome::Uncertain, "hidden");
    says(&with(&|one| function(one).group = unknown()), D307, Outcome::Uncertain, "hidden");
    says(
        &with(&|one| function(one).is_virtual = Seen::Is(true)),
        D307,
        Outcome::Uncertain,
        "virtual function",
    );
    says(&with(&|one| function(one).is_virtual = unknown()), D307, Outcome::Uncertain, "hidden");
    says(
        &with(&|one| one.kernel.lockdown = is("integrity")),
        D307,
        Outcome::Fail,
        "lockdown (integrity)",
    );
    says(&with(&|one| one.kernel.lockdown = unknown()), D307, Outcome::Ok, "");
    let secure = |one: &mut NodeFindings| {
        (one.kernel.lockdown, one.kernel.secure_boot) = (unknown(), Seen::Is(true));
    };
    says(&with(&secure), D307, Outcome::Uncertain, "in lockdown is not known");
}

#[test]
fn what_a_running_vrouter_has_was_given_to_it() {
    let running = |findings: &mut NodeFindings| {
        vhost(findings);
        devices(findings).shown.clear();
        let address = "0000:3b:00.0".to_owned();
        devices(findings).given = Seen::Is(vec![Given { address, driver: "vfio-pci".to_owned() }]);
    };
    says(&dpdk("vfio-pci", running), D307, Outcome::Ok, "3/3 nodes");
    // Another program may have it as well.
    let in_kernel = |findings: &mut NodeFindings| {
        running(findings);
        findings.kernel.loaded = Seen::Is(true);
    };
    says(&dpdk("vfio-pci", in_kernel), D307, Outcome::Uncertain, "which interface vhost0 is on");
    says(
        &dpdk("uio_pci_generic", running),
        D307,
        Outcome::Uncertain,
        "which interface vhost0 is on",
    );
}

#[test]
fn on_dpdk_no_module_of_the_vrouter_is_looked_for() {
    let none = |findings: &mut NodeFindings| {
        findings.kernel.release = is("6.8.0-31-generic");
        findings.kernel.files = Seen::Is(vec![]);
    };
    says(&probed(none), "D301", Outcome::Fail, "no module for 6.8.0");
    says(&dpdk("vfio-pci", none), "D301", Outcome::Ok, "3/3 nodes");
}

#[test]
fn where_dpdk_is_not_asked_for_or_that_is_not_known_nothing_is_claimed() {
    says(&probed(|_| {}), D307, Outcome::Skipped, "no Vrouter asks for DPDK");
    let mut world = probed(|_| {});
    vrouter(&mut world)["profiles"] = json!(["fast"]);
    says(&world, D307, Outcome::Uncertain, "there is no VrouterProfile tf/fast");
    world.profiles = forbidden();
    says(&world, D307, Outcome::Uncertain, "VrouterProfiles may not be read: is forbidden");
    says(&world, D308, Outcome::Uncertain, "VrouterProfiles may not be read: is forbidden");
    world.managers = forbidden();
    says(&world, D307, Outcome::Uncertain, "Managers may not be read");
    says(&world, D308, Outcome::Uncertain, "Managers may not be read");
    world.managers = Read::Absent;
    says(&world, D307, Outcome::Skipped, "no Manager here has vrouters");
    // A group elsewhere asks for nothing here.
    let mut elsewhere = dpdk("vfio-pci", |findings| findings.devices = None);
    known(&mut elsewhere.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["commonConfiguration"] =
        json!({"nodeSelector": {"kubernetes.io/hostname": "m1"}});
    says(&elsewhere, D307, Outcome::Ok, "3/3 nodes");
}

fn sriov(count: i64, change: impl FnOnce(&mut NodeFindings)) -> World {
    let mut world = probed(change);
    vrouter(&mut world)["sriov"] = json!({"physicalInterface": "eth0", "numberOfVfs": count});
    for node in known(&mut world.nodes) {
        node["status"]["allocatable"]["intel.com/intel_sriov_netdevice"] = json!("4");
    }
    world
}

fn of_card(most: u32, now: u32) -> impl FnOnce(&mut NodeFindings) {
    move |findings| {
        function(findings).virtual_functions = Seen::Is(Some(VirtualFunctions { most, now }));
    }
}

#[test]
fn virtual_functions_are_there_or_can_be_made() {
    says(&sriov(4, |_| {}), D308, Outcome::Ok, "3/3 nodes");
    says(&sriov(4, of_card(8, 4)), D308, Outcome::Ok, "");
    says(&sriov(4, of_card(8, 6)), D308, Outcome::Ok, "");
    says(
        &sriov(4, of_card(2, 0)),
        D308,
        Outcome::Fail,
        "m2: eth0 can have 2 virtual functions, and 4",
    );
    says(&sriov(4, of_card(8, 2)), D308, Outcome::Fail, "eth0 has 2 virtual functions, and 4");
    let none = |findings: &mut NodeFindings| function(findings).virtual_functions = Seen::Is(None);
    says(&sriov(4, none), D308, Outcome::Fail, "can have no virtual functions");
    let hidden = |findings: &mut NodeFindings| function(findings).virtual_functions = unknown();
    says(&sriov(4, hidden), D308, Outcome::Uncertain, "it is hidden");
    says(
        &sriov(4, |findings| hardware(findings).function = unknown()),
        D308,
        Outcome::Uncertain,
        "hidden",
    );
    says(
        &sriov(4, |findings| hardware(findings).function = Seen::Is(None)),
        D308,
        Outcome::Fail,
        "no virtual",
    );
    says(&sriov(4, |findings| findings.devices = None), D308, Outcome::Uncertain, "--probe-image");
    says(&sriov(4, |findings| findings.interfaces = unknown()), D308, Outcome::Uncertain, "hidden");
    says(&probed(|_| {}), D308, Outcome::Skipped, "no Vrouter asks for virtual functions");
    let none = |findings: &mut NodeFindings| devices(findings).shown.clear();
    says(&sriov(4, none), D308, Outcome::Fail, "can have no virtual functions");
    let cut = |findings: &mut NodeFindings| {
        devices(findings).shown.clear();
        devices(findings).left_out = 1;
    };
    says(&sriov(4, cut), D308, Outcome::Uncertain, "1 more are not");
    let gone = |findings: &mut NodeFindings| {
        let shown: Vec<Interface> = vec![interface("lo", 65_536)];
        findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
    };
    says(&sriov(4, gone), D308, Outcome::Fail, "m2: the node has no interface eth0");
    let mut differ = sriov(4, |_| {});
    vrouter(&mut differ)["sriovPhysicalInterface"] = json!("eth0,eth1");
    says(&differ, D308, Outcome::Fail, "2 interfaces are named, and 1 number of virtual functions");
}

#[test]
fn an_agent_that_runs_would_have_made_virtual_functions() {
    let mut running = sriov(4, |_| {});
    known(&mut running.pods).push(
        json!({"metadata": {"namespace": "tf", "labels": {"tf_manager": "vrouter"}}, "spec": {"nodeName": "m2"}}),
    );
    says(&running, D308, Outcome::Warn, "m2: eth0 has none of the 4 virtual functions");
    running.pods = forbidden();
    says(&running, D308, Outcome::Uncertain, "pods may not be read");
}

#[test]
fn a_device_plugin_offers_virtual_functions_that_are_there() {
    let with = |made: u32, resources: Value| {
        let mut world = sriov(4, of_card(8, made));
        for node in known(&mut world.nodes) {
            let all = node["status"]["allocatable"].as_object_mut().unwrap();
            all.remove("intel.com/intel_sriov_netdevice");
            all.extend(resources.as_object().unwrap().clone());
        }
        world
    };
    says(&with(4, json!({"openshift.io/mySriov": "2"})), D308, Outcome::Ok, "3/3 nodes");
    says(
        &with(4, json!({"intel.com/sriov_a": "0"})),
        D308,
        Outcome::Warn,
        "m2: the node can give 0 of intel.com/sriov_a",
    );
    says(
        &with(4, json!({})),
        D308,
        Outcome::Uncertain,
        "m2: no device plugin offers functions here",
    );
    says(&with(4, json!({"nvidia.com/gpu": "2"})), D308, Outcome::Uncertain, "(nvidia.com/gpu)");
    says(&with(0, json!({})), D308, Outcome::Ok, "3/3 nodes");
}

#[test]
fn dpdk_has_a_driver_for_the_device_of_the_fabric() {
    let of = |driver: &'static str| {
        dpdk("vfio-pci", move |findings| hardware(findings).driver = is(driver))
    };
    says(&of("ixgbe"), D303, Outcome::Ok, "3/3 nodes");
    says(&of("vmxnet3"), D303, Outcome::Warn, "m2: eth0 is of vmxnet3, and upstream's DPDK");
    says(&of("iavf"), D303, Outcome::Uncertain, "none for those of ice");
    let hidden = dpdk("vfio-pci", |findings| hardware(findings).driver = unknown());
    says(&hidden, D303, Outcome::Uncertain, "the driver of eth0 is not known");
    let older = dpdk("vfio-pci", |findings| findings.devices = None);
    says(&older, D303, Outcome::Uncertain, "--probe-image");
    let kernel = probed(|findings| hardware(findings).driver = is("vmxnet3"));
    says(&kernel, D303, Outcome::Ok, "3/3 nodes");
}
