//! OSDN3006 to OSDN3029: rows of the plan, of tables made by hand, and of the cloud.

use opensdn_config_api::link_local::Row;
use serde_json::{Value, json};

use super::{fires, option_1, option_2};
use crate::catalogue::Code;
use crate::fixture::{cloud_with, empty_cloud, ip, of, row};
use crate::input::{Input, Permission};
use crate::live::{Fact, Live, NodeNetwork};
use crate::roles::{Naming, Role};
use crate::{Severity, check_table, plan};

fn set(live: &mut Live, rows: Vec<Row>) {
    live.rows = Fact::Known(rows);
}

fn odd(fields: Value) -> Row {
    let mut row = json!({
        "linklocal_service_name": "odd",
        "linklocal_service_ip": "10.9.9.9",
        "linklocal_service_port": 80,
        "ip_fabric_service_ip": ["192.168.7.7"],
        "ip_fabric_service_port": 80,
    });
    let Value::Object(fields) = fields else { panic!() };
    row.as_object_mut().unwrap().extend(fields);
    row.into()
}

fn of_table(rows: &[Row]) -> Vec<&'static str> {
    check_table(rows).iter().map(|finding| finding.code.as_str()).collect()
}

/// The table of install-nested-openshift-311-using-anible.md.
#[test]
fn the_wrong_table_of_the_documentation_has_two_duplicate_keys() {
    let rows = [
        row("Contrail Config", "10.10.10.1", 8082, "192.168.1.100", 8082),
        row("Contrail Analytics 1", "10.10.10.1", 8086, "192.168.1.100", 8086),
        row("Contrail Analytics 2", "10.10.10.1", 8086, "192.168.1.101", 8086),
        row("Contrail Msg Queue", "10.10.10.2", 5673, "192.168.1.100", 5673),
        row("Contrail VNC DB 1", "10.10.10.1", 9161, "192.168.1.100", 9161),
        row("Contrail VNC DB 2", "10.10.10.2", 9161, "192.168.1.101", 9161),
        row("Contrail VNC DB 3", "10.10.10.2", 9161, "192.168.1.102", 9161),
        row("Keystone", "10.10.10.4", 35357, "192.168.1.200", 35357),
        row("K8s-cni-to-agent", "10.10.10.5", 9091, "127.0.0.1", 9091),
    ];
    assert_eq!(of_table(&rows), ["OSDN3009", "OSDN3009"]);
}

#[test]
fn a_table_made_by_hand_is_checked_row_by_row() {
    let right = row("x", "10.9.9.1", 80, "192.168.7.7", 80);
    assert_eq!(of_table(&[right]), [""; 0]);
    let wrong: [(Value, &[&str]); 12] = [
        (json!({"linklocal_service_ip": "fd00::1"}), &["OSDN3001"]),
        (json!({"linklocal_service_ip": "127.0.0.1"}), &["OSDN3001"]),
        (json!({"linklocal_service_port": 0}), &["OSDN3006"]),
        (json!({"ip_fabric_service_port": 70000}), &["OSDN3006"]),
        (json!({"ip_fabric_service_port": null}), &["OSDN3006"]),
        (json!({"linklocal_service_port": 179}), &["OSDN3077"]),
        (json!({"ip_fabric_service_ip": ["host"]}), &["OSDN3007"]),
        (json!({"ip_fabric_service_ip": ["127.0.0.1"]}), &["OSDN3008"]),
        (json!({"linklocal_service_name": ""}), &["OSDN3012"]),
        (json!({"linklocal_service_name": "x-MetaData-y"}), &["OSDN3012"]),
        (json!({"ip_fabric_DNS_service_name": "host.example"}), &["OSDN3015"]),
        (json!({"ip_fabric_service_ip": [""]}), &["OSDN3015"]),
    ];
    for (fields, expected) in wrong {
        assert_eq!(of_table(&[odd(fields.clone())]), expected, "{fields}");
    }
    let by_name =
        json!({"ip_fabric_service_ip": [""], "ip_fabric_DNS_service_name": "host.example"});
    assert_eq!(of_table(&[odd(by_name)]), [""; 0], "as kube-manager writes it");
    let null: Row = Value::Null.into();
    assert!(of_table(&[null]).contains(&"OSDN3006"));
}

#[test]
fn two_nodes_with_one_address_have_a_duplicate_key() {
    let said = fires(Code::DuplicateKey, option_2(), |input, _| {
        input.choices.node_addresses.insert(ip("192.168.1.101"), ip("10.10.10.77"));
        input.choices.node_addresses.insert(ip("192.168.1.102"), ip("10.10.10.77"));
    });
    assert!(said.contains("10.10.10.77:9161"), "{said}");
}

#[test]
fn a_loopback_target_of_the_control_plane_is_refused_and_the_vrouters_is_not() {
    fires(Code::LoopbackTarget, option_2(), |input, _| {
        let mut spec = crate::fixture::spec(input.connectivity, input.choices.profile);
        spec.services.keystone.as_mut().unwrap().addresses = vec!["127.0.0.1".to_owned()];
        *input = Input::new(&spec, input.choices.clone());
    });
}

#[test]
fn a_key_that_leads_elsewhere_is_refused() {
    let said = fires(Code::KeyTaken, option_1(), |input, live| {
        input.choices.vrouter_address = Some(ip("10.9.9.9"));
        set(live, vec![row("x", "10.9.9.9", 9091, "192.168.7.7", 9091)]);
    });
    assert!(said.contains("192.168.7.7:9091") && said.contains("another owner"), "{said}");
}

#[test]
fn a_foreign_row_before_ours_is_refused() {
    let said = fires(Code::Shadowed, option_1(), |input, live| {
        input.choices.vrouter_address = Some(ip("10.9.9.9"));
        set(
            live,
            vec![
                row("x", "10.9.9.9", 9091, "192.168.7.7", 9091),
                row("ours", "10.9.9.9", 9091, "127.0.0.1", 9091),
            ],
        );
    });
    assert!(said.contains("before ours"), "{said}");
}

#[test]
fn a_key_of_the_metadata_service_is_not_even_taken_over() {
    let (mut input, mut live) = option_1();
    input.choices.vrouter_address = Some(ip("10.9.9.9"));
    input.choices.permissions.take_over = Permission::Granted;
    set(&mut live, vec![row("metadata", "10.9.9.9", 9091, "127.0.0.1", 9091)]);
    let plan = plan(&input, &live);
    assert_eq!(of(&plan, Code::KeyTaken)[0].severity, Severity::Error);
}

#[test]
fn a_name_under_another_key_is_a_warning_without_regard_to_case() {
    let said = fires(Code::NameTaken, option_1(), |_, live| {
        set(live, vec![row("k8s-CNI-to-agent", "10.9.9.9", 9091, "192.168.7.7", 9091)]);
    });
    assert!(said.contains("k8s-CNI-to-agent"), "{said}");
}

#[test]
fn a_name_by_which_kube_manager_finds_its_rows_is_an_error() {
    let (mut input, live) = option_1();
    input.choices.naming = Naming::Scoped;
    input.cluster = "default-domain-admin-kubernetes-1".to_owned();
    let plan = plan(&input, &live);
    assert_eq!(of(&plan, Code::NameTaken)[0].severity, Severity::Error);
}

#[test]
fn a_name_with_metadata_is_refused() {
    let said = fires(Code::NameUnusable, option_1(), |input, _| {
        input.choices.naming = Naming::Scoped;
        input.cluster = "metadata-x".to_owned();
    });
    assert!(said.contains("metadata-x-vrouter"), "{said}");
    fires(Code::NameUnusable, option_1(), |input, _| {
        input.choices.naming = Naming::Scoped;
        input.cluster = "x".repeat(253);
    });
}

#[test]
fn what_only_costs_dns_is_a_warning_of_adopted_rows() {
    let (input, mut live) = option_1();
    let adopted = json!({
        "linklocal_service_name": "",
        "linklocal_service_port": 9091,
        "ip_fabric_service_ip": ["127.0.0.1"],
        "ip_fabric_DNS_service_name": "host.example",
        "ip_fabric_service_port": 9091,
    });
    set(&mut live, vec![odd(adopted)]);
    let plan = plan(&input, &live);
    assert!(plan.is_applicable(), "{:?}", plan.findings);
    assert_eq!(of(&plan, Code::NameUnusable)[0].severity, Severity::Warning);
    assert_eq!(of(&plan, Code::TargetUnclear)[0].severity, Severity::Warning);
}

#[test]
fn port_179_is_refused() {
    fires(Code::BgpPort, option_2(), |input, _| {
        input.services.get_mut(&Role::Keystone).unwrap().port = 179;
    });
}

#[test]
fn of_duplicates_in_the_cloud_the_later_ones_are_named() {
    let said = fires(Code::DuplicateInList, option_1(), |_, live| {
        let same = row("x", "10.9.9.9", 80, "192.168.7.7", 80);
        set(live, vec![same.clone(), row("y", "10.9.9.8", 80, "192.168.7.7", 80), same]);
    });
    assert!(said.contains("row 3"), "{said}");
}

#[test]
fn addresses_that_are_none_are_found_but_not_those_that_others_write_so() {
    for field in [
        json!({"linklocal_service_ip": "not-an-ip"}),
        json!({"linklocal_service_ip": ""}),
        json!({"ip_fabric_service_ip": ["host"]}),
    ] {
        fires(Code::AddressUnparsable, option_1(), |_, live| set(live, vec![odd(field)]));
    }
    let (input, _) = option_1();
    let fine = vec![
        odd(json!({"linklocal_service_ip": "fd00::1"})),
        odd(json!({"ip_fabric_service_ip": [""], "ip_fabric_DNS_service_name": "host.example"})),
        odd(json!({"ip_fabric_service_ip": null, "linklocal_service_port": 81})),
    ];
    assert_eq!(of(&plan(&input, &cloud_with(fine)), Code::AddressUnparsable).len(), 0);
}

#[test]
fn ports_in_the_cloud_that_are_none_are_found_with_what_agents_make_of_them() {
    for (port, seen) in
        [(json!(70000), "4464"), (json!(0), "0"), (json!(-5), "65531"), (json!(true), "0")]
    {
        let said = fires(Code::PortInListOutOfRange, option_1(), |_, live| {
            set(live, vec![odd(json!({"linklocal_service_port": port}))]);
        });
        assert!(said.ends_with(seen), "{said}");
    }
}

#[test]
fn a_target_that_is_served_elsewhere_is_suggested() {
    let said = fires(Code::ServedElsewhere, option_1(), |input, live| {
        input.choices.vrouter_address = Some(ip("10.10.10.7"));
        set(live, vec![row("theirs", "10.9.9.9", 9091, "127.0.0.1", 9091)]);
    });
    assert!(said.contains("theirs"), "{said}");
}

#[test]
fn several_rows_of_metadata_are_found() {
    let said = fires(Code::SeveralMetadata, option_1(), |_, live| {
        let nova = row("metadata", "169.254.169.254", 80, "192.168.7.7", 8775);
        set(live, vec![nova, row("My-Metadata", "10.9.9.9", 80, "192.168.7.7", 80)]);
    });
    assert!(said.contains("2 rows"), "{said}");
}

/// A list that hostile or careless writers left, of every kind that the server stores.
#[test]
fn ten_thousand_odd_rows_are_planned_around() {
    let kinds = [
        Value::Null,
        json!({}),
        json!([]),
        json!(7),
        json!({"linklocal_service_ip": false, "linklocal_service_port": 1e300}),
        json!({"linklocal_service_ip": "10.10.10.1", "linklocal_service_port": "8082"}),
        json!({"linklocal_service_name": "é".repeat(1000)}),
        json!({"ip_fabric_service_ip": [null, 7, "fd00::1", "127.0.0.1"], "ip_fabric_service_port": 9091}),
    ];
    let rows = (0..10_000).map(|at| Row::from(kinds[at % kinds.len()].clone())).collect();
    let (input, _) = option_2();
    let plan = plan(&input, &cloud_with(rows));
    assert_eq!(plan.rows.len(), 9);
    assert_eq!(plan.rows[0].service.address, ip("10.10.10.2"), "10.10.10.1 is a service address");
    assert!(of(&plan, Code::DuplicateInList).len() > 9_000);
}

#[test]
fn snat_is_said_before_it_is_turned_on_and_where_it_was_not_asked_for() {
    fires(Code::SnatWillBeOn, option_1(), |_, live| live.network = empty_cloud().network);
    fires(Code::SnatUnasked, option_2(), |_, live| {
        let network = NodeNetwork { fabric_snat: Some(true), ..NodeNetwork::default() };
        live.network = Fact::Known(Some(network));
    });
}

#[test]
fn what_snat_cuts_off_is_named_and_policies_are_the_cure() {
    let said = fires(Code::SnatIsolates, option_1(), |_, live| {
        live.network = Fact::Known(Some(NodeNetwork {
            logical_routers: vec!["router1".to_owned()],
            route_targets: vec!["target:64512:7".to_owned()],
            policies: vec!["allow-web".to_owned()],
            other_interfaces: Some(3),
            ..NodeNetwork::default()
        }));
    });
    for part in ["router1", "target:64512:7", "3 other interfaces", "stays: allow-web"] {
        assert!(said.contains(part), "{said}");
    }
    let (input, mut live) = option_1();
    let network = NodeNetwork { policies: vec!["allow-web".to_owned()], ..NodeNetwork::default() };
    live.network = Fact::Known(Some(network));
    assert_eq!(of(&plan(&input, &live), Code::SnatIsolates).len(), 0, "policies alone are no risk");
}

#[test]
fn missing_pools_are_found_and_what_is_there_stays() {
    let said = fires(Code::PoolsWillBeMade, option_1(), |_, live| {
        live.pools = Fact::Known([].into());
    });
    assert!(said.contains("TCP 56000-57023") && said.contains("UDP 57024-58047"), "{said}");
    let said = fires(Code::PoolsWillBeMade, option_1(), |_, live| {
        live.pools = Fact::Known([crate::live::Protocol::Udp].into());
    });
    assert!(said.contains("TCP 56000-57023") && !said.contains("UDP"), "{said}");
}
