//! Addresses: precedence, adoption, and that none ever changes.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_config_api::link_local::Row;
use opensdn_config_api::ownership::Records;
use serde_json::json;

use super::{Allocation, Source, allocate};
use crate::Subnet;
use crate::catalogue::Code;
use crate::fixture::{
    applied, choices, cloud_with, empty_cloud, input, ip, lines, listed, of, row, seen_by_another,
    service, spec,
};
use crate::input::{Input, Permission};
use crate::list::List;
use crate::live::{Fact, Live, UsedSubnet};
use crate::pool::Pool;
use crate::roles::{Profile, Role};
use crate::rows::{Change, Origin};
use opensdn_crds::nested_cluster::Connectivity;

fn allocated(input: &Input, live: &Live) -> Allocation {
    allocate(input, live, &List::new(listed(live)))
}

fn address(allocation: &Allocation, target: &str) -> (String, Source) {
    let assigned = allocation.addresses[&ip(target)];
    (assigned.address.to_string(), assigned.from)
}

/// Numbers that only look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

#[test]
fn each_node_gets_one_address_and_the_vrouters_the_last() {
    let allocation = allocated(&input(Profile::Doc), &empty_cloud());
    let all: Vec<String> =
        allocation.addresses.iter().map(|(to, one)| format!("{to} {}", one.address)).collect();
    assert_eq!(
        all,
        [
            "127.0.0.1 10.10.10.5",
            "192.168.1.100 10.10.10.1",
            "192.168.1.101 10.10.10.2",
            "192.168.1.102 10.10.10.3",
            "192.168.1.200 10.10.10.4",
        ]
    );
}

#[test]
fn what_is_given_is_before_what_is_recorded_and_that_before_what_is_adopted() {
    let mut input = input(Profile::Doc);
    input.choices.node_addresses = BTreeMap::from([(ip("192.168.1.100"), ip("10.10.10.50"))]);
    input.choices.vrouter_address = Some(ip("10.10.10.60"));
    let ours = crate::plan(&input, &empty_cloud());
    let live = applied(&empty_cloud(), &ours);
    let mut rows = listed(&live).to_vec();
    rows.insert(0, row("theirs", "10.9.9.1", 8086, "192.168.1.101", 8086));
    let live = Live { rows: Fact::Known(rows), ..live };
    let again = allocated(&input, &live);
    assert_eq!(address(&again, "192.168.1.100"), ("10.10.10.50".to_owned(), Source::Given));
    assert_eq!(address(&again, "127.0.0.1"), ("10.10.10.60".to_owned(), Source::Given));
    assert_eq!(address(&again, "192.168.1.101"), ("10.10.10.1".to_owned(), Source::Recorded));

    input.choices.node_addresses.clear();
    let kept = allocated(&input, &live);
    assert_eq!(address(&kept, "192.168.1.100"), ("10.10.10.50".to_owned(), Source::Recorded));

    let live = Live { records: Fact::Known(Records::default()), ..live };
    let adopted = allocated(&input, &live);
    assert_eq!(address(&adopted, "192.168.1.101"), ("10.9.9.1".to_owned(), Source::Adopted));
}

#[test]
fn of_several_rows_the_first_is_adopted() {
    let rows = vec![
        row("b", "10.9.9.2", 8086, "192.168.1.101", 8086),
        row("a", "10.9.9.1", 8086, "192.168.1.101", 8086),
    ];
    let allocation = allocated(&input(Profile::Doc), &cloud_with(rows));
    assert_eq!(address(&allocation, "192.168.1.101"), ("10.9.9.2".to_owned(), Source::Adopted));
}

#[test]
fn an_address_is_not_adopted_where_another_port_of_the_node_is_taken_on_it() {
    let rows = vec![
        row("a", "10.9.9.1", 8086, "192.168.1.101", 8086),
        row("x", "10.9.9.1", 9161, "192.168.7.7", 9161),
    ];
    let live = cloud_with(rows);
    let plan = crate::plan(&input(Profile::Doc), &live);
    let allocation = allocated(&input(Profile::Doc), &live);
    assert_eq!(address(&allocation, "192.168.1.101"), ("10.10.10.2".to_owned(), Source::Pool));
    assert_eq!(of(&plan, Code::ServedElsewhere).len(), 1);
}

#[test]
fn two_nodes_share_an_adopted_address_only_on_different_ports() {
    // Both have a database: one address cannot serve both on one port.
    let rows = vec![
        row("a", "10.9.9.1", 8082, "192.168.1.100", 8082),
        row("b", "10.9.9.1", 8086, "192.168.1.101", 8086),
    ];
    let plan = crate::plan(&input(Profile::Doc), &cloud_with(rows));
    assert_eq!(of(&plan, Code::DuplicateKey), Vec::<&crate::Finding>::new());

    // Keystone is alone on its port, so it shares the address.
    let rows = vec![
        row("a", "10.9.9.1", 9161, "192.168.1.102", 9161),
        row("k", "10.9.9.1", 35357, "192.168.1.200", 35357),
    ];
    let allocation = allocated(&input(Profile::Doc), &cloud_with(rows));
    assert_eq!(address(&allocation, "192.168.1.102").0, "10.9.9.1");
    assert_eq!(address(&allocation, "192.168.1.200").0, "10.9.9.1");
}

#[test]
fn neither_dead_rows_nor_the_metadata_service_nor_lists_of_addresses_are_adopted() {
    let both: Row = json!({
        "linklocal_service_name": "both",
        "linklocal_service_ip": "10.9.9.3",
        "linklocal_service_port": 8086,
        "ip_fabric_service_ip": ["192.168.1.101", "192.168.1.102"],
        "ip_fabric_service_port": 8086,
    })
    .into();
    let rows = vec![
        row("first", "10.9.9.1", 8086, "192.168.7.7", 8086),
        row("dead", "10.9.9.1", 8086, "192.168.1.101", 8086),
        row("My-Metadata", "10.9.9.2", 8086, "192.168.1.101", 8086),
        both,
    ];
    let allocation = allocated(&input(Profile::Doc), &cloud_with(rows));
    assert_eq!(address(&allocation, "192.168.1.101"), ("10.10.10.2".to_owned(), Source::Pool));
}

#[test]
fn what_anything_has_is_not_taken() {
    let mut live = cloud_with(vec![row("x", "10.10.10.1", 80, "192.168.7.7", 80)]);
    live.addresses = Fact::Known(BTreeMap::from([(ip("10.10.10.2"), "vm".to_owned())]));
    live.underlay = Fact::Known(BTreeMap::from([(ip("10.10.10.3"), "bgp".to_owned())]));
    live.subnets = Fact::Known(vec![UsedSubnet {
        subnet: "10.10.10.4/30".parse::<Subnet>().unwrap(),
        owner: "default-domain:t:n".to_owned(),
    }]);
    let mut input = crate::fixture::snat_input();
    assert_eq!(address(&allocated(&input, &live), "127.0.0.1").0, "10.10.10.8");
    input.choices.permissions.subnet_overlap = Permission::Granted;
    assert_eq!(address(&allocated(&input, &live), "127.0.0.1").0, "10.10.10.4");
}

#[test]
fn a_pool_of_one_address_serves_option_1() {
    let mut input = crate::fixture::snat_input();
    input.pool = Pool::read(&["10.10.10.5/32"]).0;
    let plan = crate::plan(&input, &empty_cloud());
    assert_eq!(lines(&plan), ["K8s-cni-to-agent 10.10.10.5 9091 127.0.0.1 9091"]);
    assert_eq!(of(&plan, Code::AddressUnusable), Vec::<&crate::Finding>::new());
}

#[test]
fn a_pool_that_is_too_small_says_how_much_is_needed_and_who_lacks() {
    let mut input = input(Profile::Doc);
    input.pool = Pool::read(&["10.10.10.1-10.10.10.4"]).0;
    let plan = crate::plan(&input, &empty_cloud());
    let [finding] = of(&plan, Code::PoolTooSmall)[..] else { panic!("{:?}", plan.findings) };
    assert_eq!(finding.message, "need 5 service addresses and have 4; without one: the vrouters");
    assert!(!plan.is_applicable());
}

#[test]
fn a_pool_within_a_subnet_is_refused_by_the_name_of_the_network() {
    let mut live = empty_cloud();
    live.subnets = Fact::Known(vec![UsedSubnet {
        subnet: "10.10.0.0/16".parse::<Subnet>().unwrap(),
        owner: "default-domain:tenant:private".to_owned(),
    }]);
    let plan = crate::plan(&input(Profile::Doc), &live);
    let found = of(&plan, Code::AddressInSubnet);
    assert_eq!(found.len(), 5);
    assert!(found[0].message.contains("default-domain:tenant:private (10.10.0.0/16)"));
    assert_eq!(of(&plan, Code::PoolTooSmall).len(), 0);
}

#[test]
fn the_order_of_what_is_given_changes_nothing() {
    let mut numbers = Numbers(16);
    let expected = crate::plan(&input(Profile::Cql), &empty_cloud());
    for _ in 0..200 {
        let mut spec = spec(Connectivity::LinkLocal, Profile::Cql);
        for service in [
            &mut spec.services.config,
            spec.services.analytics.as_mut().unwrap(),
            spec.services.config_database.as_mut().unwrap(),
            spec.services.zookeeper.as_mut().unwrap(),
        ] {
            numbers.shuffle(&mut service.addresses);
        }
        let input = Input::new(&spec, choices("id-a", Profile::Cql));
        assert_eq!(crate::plan(&input, &empty_cloud()), expected);
    }
}

#[test]
fn the_order_of_foreign_rows_with_different_keys_changes_nothing() {
    let mut numbers = Numbers(7);
    let mut rows: Vec<Row> =
        (1..40).map(|at| row("x", &format!("10.10.10.{at}"), 80, "192.168.9.9", 80)).collect();
    let expected = crate::plan(&input(Profile::Doc), &cloud_with(rows.clone()));
    for _ in 0..50 {
        numbers.shuffle(&mut rows);
        let plan = crate::plan(&input(Profile::Doc), &cloud_with(rows.clone()));
        assert_eq!((&plan.rows, &plan.fingerprint), (&expected.rows, &expected.fingerprint));
    }
}

#[test]
fn adding_nodes_never_renumbers() {
    let mut numbers = Numbers(3);
    for round in 0..60 {
        let mut live = empty_cloud();
        let mut nodes: BTreeSet<usize> = BTreeSet::new();
        let mut before: BTreeMap<(Role, std::net::Ipv4Addr), (std::net::Ipv4Addr, String)> =
            BTreeMap::new();
        for _ in 0..6 {
            nodes.insert(1 + numbers.below(250));
            let mut spec = spec(Connectivity::LinkLocal, Profile::Cql);
            let texts: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            spec.services.config = service(&texts, 8082);
            spec.services.config_database = Some(service(&texts, 9041));
            let input = Input::new(&spec, choices("id-a", Profile::Cql));
            let plan = crate::plan(&input, &live);
            for row in &plan.rows {
                let now = (row.service.address, row.name.clone());
                if let Some(known) = before.insert((row.role, row.target.address), now.clone()) {
                    assert_eq!(known, now, "round {round}");
                }
            }
            let names: BTreeSet<&str> = plan.rows.iter().map(|row| row.name.as_str()).collect();
            assert_eq!(names.len(), plan.rows.len(), "names are one each: {names:?}");
            live = applied(&live, &plan);
        }
    }
}

#[test]
fn a_hundred_clusters_share_the_vrouters_row_and_do_not_collide() {
    let mut live = empty_cloud();
    for number in 0..100 {
        let mut spec = spec(Connectivity::LinkLocal, Profile::Cql);
        spec.cluster_name = format!("cluster-{number}");
        spec.service_addresses = vec!["10.10.0.0/16".to_owned()];
        // Each has a Keystone of its own.
        spec.services.keystone.as_mut().unwrap().addresses = vec![format!("192.168.2.{number}")];
        let input = Input::new(&spec, choices(&format!("id-{number}"), Profile::Cql));
        let seen = seen_by_another(&live);
        let plan = crate::plan(&input, &seen);
        assert!(plan.is_applicable(), "{number}: {:?}", plan.findings);
        let new = plan.rows.iter().filter(|row| row.change == Change::Add).count();
        assert_eq!(new, if number == 0 { 12 } else { 1 }, "{number}");
        let vrouters = plan.rows.last().unwrap();
        let is_shared = number > 0;
        assert_eq!(vrouters.origin == Origin::Adopted, is_shared);
        assert_eq!(vrouters.sharing == crate::Sharing::Shared, is_shared);
        live = applied(&seen, &plan);
    }
    let keys: BTreeSet<_> = listed(&live).iter().map(Row::key).collect();
    assert_eq!(keys.len(), listed(&live).len());
    assert_eq!(keys.len(), 12 + 99);
}

#[test]
fn the_whole_of_ipv4_as_a_pool_and_ten_thousand_rows_are_planned() {
    let rows: Vec<Row> = (0..10_000_u32)
        .map(|at| {
            let address = std::net::Ipv4Addr::from(0x0a0a_0000 + at).to_string();
            row(&format!("x{at}"), &address, 80, "192.168.9.9", 80)
        })
        .collect();
    let mut input = input(Profile::Cql);
    input.pool = Pool::read(&["10.10.0.0/16", "10.0.0.0/8", "0.0.0.0/0"]).0;
    let plan = crate::plan(&input, &cloud_with(rows));
    assert_eq!(plan.rows[0].service.address, ip("10.10.39.16"));
    assert_eq!(plan.rows.len(), 12);
}
