//! OSDN3001 to OSDN3005, and of an address that is allowed.

use std::collections::BTreeMap;

use super::{fires, option_1, option_2};
use crate::catalogue::Code;
use crate::fixture::{ip, of};
use crate::input::Permission;
use crate::live::{Fact, UsedSubnet};
use crate::{Severity, plan};

#[test]
fn a_given_address_that_no_host_can_have_is_refused() {
    for text in
        ["0.1.2.3", "127.0.0.9", "224.0.0.1", "255.255.255.255", "10.10.10.0", "10.10.10.255"]
    {
        let said = fires(Code::AddressUnusable, option_1(), |input, _| {
            input.choices.vrouter_address = Some(ip(text));
        });
        assert!(said.contains(text), "{said}");
    }
}

#[test]
fn an_address_of_the_underlay_is_refused_also_if_only_the_input_names_it() {
    let said = fires(Code::AddressOfUnderlay, option_1(), |input, live| {
        input.choices.vrouter_address = Some(ip("10.7.7.7"));
        live.underlay =
            Fact::Known(BTreeMap::from([(ip("10.7.7.7"), "virtual-router compute1".to_owned())]));
    });
    assert!(said.contains("virtual-router compute1"), "{said}");
    fires(Code::AddressOfUnderlay, option_1(), |input, _| {
        input.choices.vrouter_address = Some(ip("192.168.1.101"));
    });
}

#[test]
fn a_nodes_own_address_is_a_warning_where_it_is_allowed() {
    let (mut input, live) = option_2();
    for node in ["192.168.1.100", "192.168.1.101", "192.168.1.102", "192.168.1.200"] {
        input.choices.node_addresses.insert(ip(node), ip(node));
    }
    let refused = plan(&input, &live);
    assert_eq!(of(&refused, Code::AddressOfUnderlay)[0].severity, Severity::Error);
    input.choices.permissions.own_fabric_address = Permission::Granted;
    let granted = plan(&input, &live);
    assert_eq!(of(&granted, Code::AddressOfUnderlay).len(), 4);
    assert!(granted.is_applicable(), "{:?}", granted.findings);

    input.choices.node_addresses.insert(ip("192.168.1.101"), ip("192.168.1.102"));
    input.choices.node_addresses.insert(ip("192.168.1.102"), ip("192.168.1.101"));
    let swapped = plan(&input, &live);
    assert!(!swapped.is_applicable(), "another node's address is not its own");
}

fn used(subnet: &str, owner: &str) -> Fact<Vec<UsedSubnet>> {
    Fact::Known(vec![UsedSubnet { subnet: subnet.parse().unwrap(), owner: owner.to_owned() }])
}

#[test]
fn an_address_in_a_subnet_names_the_network() {
    let said = fires(Code::AddressInSubnet, option_1(), |_, live| {
        live.subnets = used("10.10.0.0/16", "default-domain:t:private");
    });
    assert!(said.contains("default-domain:t:private"), "{said}");
}

#[test]
fn the_subnet_of_service_chains_is_no_obstacle() {
    let (input, mut live) = option_1();
    live.subnets = used("0.0.0.0/0", "default-domain:default-project:service-chain-flat-ipam");
    assert_eq!(of(&plan(&input, &live), Code::AddressInSubnet).len(), 0);
}

#[test]
fn an_overlap_that_is_allowed_is_a_warning() {
    let (mut input, mut live) = option_1();
    live.subnets = used("10.10.0.0/16", "default-domain:t:private");
    input.choices.permissions.subnet_overlap = Permission::Granted;
    let plan = plan(&input, &live);
    assert_eq!(of(&plan, Code::AddressInSubnet)[0].severity, Severity::Warning);
    assert!(plan.is_applicable());
}

#[test]
fn an_address_of_this_cluster_is_refused() {
    for (text, what) in [
        ("10.32.0.7", "pods"),
        ("10.96.0.7", "Services"),
        ("10.64.0.7", "pods in the fabric"),
        ("10.0.0.11", "node minion1"),
    ] {
        let said = fires(Code::AddressOfCluster, option_1(), |input, _| {
            input.choices.vrouter_address = Some(ip(text));
        });
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn an_address_that_an_interface_has_is_refused() {
    let said = fires(Code::AddressInUse, option_1(), |input, live| {
        input.choices.vrouter_address = Some(ip("10.7.7.7"));
        live.addresses =
            Fact::Known(BTreeMap::from([(ip("10.7.7.7"), "floating-ip f".to_owned())]));
    });
    assert!(said.contains("floating-ip f"), "{said}");
}
