//! The worked example, what is kept, adopted and removed, and the environment.

use std::collections::BTreeMap;

use opensdn_config_api::ownership::How;
use opensdn_crds::nested_cluster::Connectivity;

use crate::catalogue::Code;
use crate::fixture::{
    applied, choices, cloud_with, empty_cloud, input, ip, lines, listed, of, row, seen_by_another,
    service, snat_input, spec,
};
use crate::input::{Input, Permission};
use crate::live::Fact;
use crate::roles::{Naming, Profile};
use crate::rows::{Change, Fate, Origin, Sharing};
use crate::{Severity, plan, table};

const NINE: [&str; 9] = [
    "Contrail Config 10.10.10.1 8082 192.168.1.100 8082",
    "Contrail Analytics 1 10.10.10.1 8086 192.168.1.100 8086",
    "Contrail Analytics 2 10.10.10.2 8086 192.168.1.101 8086",
    "Contrail Msg Queue 10.10.10.1 5673 192.168.1.100 5673",
    "Contrail VNC DB 1 10.10.10.1 9161 192.168.1.100 9161",
    "Contrail VNC DB 2 10.10.10.2 9161 192.168.1.101 9161",
    "Contrail VNC DB 3 10.10.10.3 9161 192.168.1.102 9161",
    "Keystone 10.10.10.4 35357 192.168.1.200 35357",
    "K8s-cni-to-agent 10.10.10.5 9091 127.0.0.1 9091",
];

fn environment(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_worked_example_has_exactly_nine_rows() {
    let plan = plan(&input(Profile::Doc), &empty_cloud());
    assert_eq!(lines(&plan), NINE);
    assert!(plan.is_applicable(), "{:?}", plan.findings);
    assert_eq!(table(&plan.rows).lines().count(), 10);
}

#[test]
fn its_environment_has_the_service_addresses() {
    let plan = plan(&input(Profile::Doc), &empty_cloud());
    let expected = environment(&[
        ("ANALYTICS_NODES", "10.10.10.1,10.10.10.2"),
        ("COLLECTOR_PORT", "8086"),
        ("CONFIGDB_NODES", "10.10.10.1,10.10.10.2,10.10.10.3"),
        ("CONFIGDB_PORT", "9161"),
        ("CONFIG_API_PORT", "8082"),
        ("CONFIG_NODES", "10.10.10.1"),
        ("KEYSTONE_AUTH_ADMIN_PORT", "35357"),
        ("KEYSTONE_AUTH_HOST", "10.10.10.4"),
        ("KUBERNESTES_NESTED_VROUTER_VIP", "10.10.10.5"),
        ("RABBITMQ_NODES", "10.10.10.1"),
        ("RABBITMQ_NODE_PORT", "5673"),
        ("VROUTER_PORT", "9091"),
    ]);
    assert_eq!(plan.environment, expected);
}

#[test]
fn cql_has_twelve_rows_on_the_same_five_addresses() {
    let plan = plan(&input(Profile::Cql), &empty_cloud());
    let mut expected: Vec<String> = NINE.iter().map(|line| line.replace("9161", "9041")).collect();
    let zookeeper = [("1", "1", "100"), ("2", "2", "101"), ("3", "3", "102")];
    let zookeeper = zookeeper.map(|(number, service, node)| {
        format!("ZooKeeper {number} 10.10.10.{service} 2181 192.168.1.{node} 2181")
    });
    expected.splice(7..7, zookeeper);
    assert_eq!(lines(&plan), expected);
    assert_eq!(plan.environment["ZOOKEEPER_NODES"], "10.10.10.1,10.10.10.2,10.10.10.3");
    assert_eq!(plan.environment["CONFIGDB_CQL_PORT"], "9041");
}

#[test]
fn option_1_has_one_row_and_the_real_addresses_in_the_environment() {
    let plan = plan(&snat_input(), &empty_cloud());
    assert_eq!(lines(&plan), ["K8s-cni-to-agent 10.10.10.1 9091 127.0.0.1 9091"]);
    assert_eq!(plan.environment["CONFIGDB_NODES"], "192.168.1.100,192.168.1.101,192.168.1.102");
    assert_eq!(plan.environment["KEYSTONE_AUTH_HOST"], "192.168.1.200");
    assert_eq!(plan.environment["KUBERNESTES_NESTED_VROUTER_VIP"], "10.10.10.1");
}

#[test]
fn names_by_clusters_are_labels() {
    let mut input = input(Profile::Doc);
    input.choices.naming = Naming::Scoped;
    let plan = plan(&input, &empty_cloud());
    let names: Vec<&str> = plan.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "a-config",
            "a-analytics-1",
            "a-analytics-2",
            "a-rabbitmq",
            "a-config-database-1",
            "a-config-database-2",
            "a-config-database-3",
            "a-keystone",
            "a-vrouter"
        ]
    );
}

#[test]
fn a_plan_on_its_own_result_changes_nothing() {
    for input in [input(Profile::Doc), input(Profile::Cql), snat_input()] {
        let first = plan(&input, &empty_cloud());
        let live = applied(&empty_cloud(), &first);
        let second = plan(&input, &live);
        assert_eq!(lines(&second), lines(&first));
        assert!(second.rows.iter().all(|row| row.change == Change::None));
        assert!(
            second.rows.iter().all(|row| row.origin == Origin::Kept && row.how == How::Written)
        );
        assert_eq!(second.removed, []);
    }
}

#[test]
fn a_name_that_alone_changed_is_not_written_again() {
    let first = plan(&input(Profile::Doc), &empty_cloud());
    let live = applied(&empty_cloud(), &first);
    let mut spec = spec(Connectivity::LinkLocal, Profile::Doc);
    spec.services.config = service(&["100", "101"], 8082);
    let plan = plan(&Input::new(&spec, choices("id-a", Profile::Doc)), &live);
    let first = &plan.rows[0];
    assert_eq!((first.name.as_str(), first.change), ("Contrail Config", Change::None));
    assert_eq!(first.usual_name.as_deref(), Some("Contrail Config 1"));
    assert_eq!(plan.rows[1].name, "Contrail Config 2");
    assert_eq!(plan.rows[1].change, Change::Add);
}

#[test]
fn a_key_with_another_target_is_refused_and_with_the_same_is_shared() {
    let mut input = input(Profile::Doc);
    input.choices.node_addresses.insert(ip("192.168.1.200"), ip("10.9.9.9"));
    let other = cloud_with(vec![row("x", "10.9.9.9", 35357, "192.168.7.7", 35357)]);
    let refused = plan(&input, &other);
    assert_eq!(of(&refused, Code::KeyTaken).len(), 1);
    assert!(!refused.is_applicable());

    let same = cloud_with(vec![row("x", "10.9.9.9", 35357, "192.168.1.200", 35357)]);
    let adopted = plan(&input, &same);
    let keystone = &adopted.rows[7];
    assert_eq!((keystone.name.as_str(), keystone.origin), ("x", Origin::Adopted));
    assert_eq!((keystone.change, keystone.how), (Change::None, How::Adopted));
    assert!(adopted.is_applicable(), "{:?}", adopted.findings);
}

#[test]
fn a_row_is_taken_over_only_where_that_is_allowed() {
    let mut input = input(Profile::Doc);
    input.choices.node_addresses.insert(ip("192.168.1.200"), ip("10.9.9.9"));
    input.choices.permissions.take_over = Permission::Granted;
    let mut live = cloud_with(vec![row("x", "10.9.9.9", 35357, "192.168.7.7", 35357)]);
    let plan = plan(&input, &live);
    assert_eq!(of(&plan, Code::KeyTaken)[0].severity, Severity::Warning);
    assert_eq!(plan.rows[7].change, Change::Replace);

    let Fact::Known(records) = &mut live.records else { panic!() };
    records.other_keys.insert(plan.rows[7].key());
    let plan = crate::plan(&input, &live);
    assert_eq!(of(&plan, Code::KeyTaken)[0].severity, Severity::Error, "another cluster uses it");
}

#[test]
fn our_row_whose_target_was_changed_is_replaced_without_a_conflict() {
    let first = plan(&snat_input(), &empty_cloud());
    let mut live = applied(&empty_cloud(), &first);
    live.rows = Fact::Known(vec![row("K8s-cni-to-agent", "10.10.10.1", 9091, "192.168.7.7", 9091)]);
    let second = plan(&snat_input(), &live);
    assert_eq!((second.rows[0].change, second.rows[0].origin), (Change::Replace, Origin::Kept));
    assert!(second.is_applicable(), "{:?}", second.findings);
    assert_eq!(lines(&second), lines(&first));
    assert_eq!(listed(&applied(&live, &second)), [second.rows[0].row()]);
}

#[test]
fn a_node_that_left_keeps_its_rows_until_they_are_pruned_unless_another_cluster_has_them() {
    let first = plan(&input(Profile::Doc), &empty_cloud());
    let mut live = applied(&empty_cloud(), &first);
    let mut spec = spec(Connectivity::LinkLocal, Profile::Doc);
    spec.services.config_database = Some(service(&["100"], 9161));
    let smaller = Input::new(&spec, choices("id-a", Profile::Doc));
    let fates = |live: &crate::Live| {
        let plan = plan(&smaller, live);
        let fate = |row: crate::RemovedRow| (row.service, row.fate);
        plan.removed.into_iter().map(fate).collect::<Vec<_>>()
    };
    let expect =
        |fate| vec![("10.10.10.2:9161".to_owned(), fate), ("10.10.10.3:9161".to_owned(), fate)];
    assert_eq!(fates(&live), expect(Fate::Kept));
    let mut pruned = smaller.clone();
    pruned.choices.permissions.prune = Permission::Granted;
    assert!(plan(&pruned, &live).removed.iter().all(|row| row.fate == Fate::Deleted));

    let mut shared = live.clone();
    let Fact::Known(records) = &mut shared.records else { panic!() };
    records.other_keys.extend(records.ours.rows.keys().copied().collect::<Vec<_>>());
    assert_eq!(fates(&shared), expect(Fate::Shared));

    let mut adopted = live.clone();
    let Fact::Known(records) = &mut adopted.records else { panic!() };
    records.ours.rows.values_mut().for_each(|held| held.how = How::Adopted);
    assert_eq!(fates(&adopted), expect(Fate::Adopted));

    live.rows = Fact::Known(Vec::new());
    assert_eq!(fates(&live), expect(Fate::Gone));
}

#[test]
fn a_second_cluster_adopts_all_rows_of_the_first() {
    let first = plan(&input(Profile::Doc), &empty_cloud());
    let live = seen_by_another(&applied(&empty_cloud(), &first));
    let mut spec = spec(Connectivity::LinkLocal, Profile::Doc);
    spec.cluster_name = "b".to_owned();
    spec.service_addresses = vec!["10.20.0.0/24".to_owned()];
    let second = plan(&Input::new(&spec, choices("id-b", Profile::Doc)), &live);
    assert_eq!(lines(&second), NINE);
    let is_shared = |row: &crate::PlannedRow| {
        row.origin == Origin::Adopted
            && row.sharing == Sharing::Shared
            && row.change == Change::None
    };
    assert!(second.rows.iter().all(is_shared));
}

#[test]
fn a_lost_row_gets_its_own_name_and_address_again() {
    let first = plan(&input(Profile::Doc), &empty_cloud());
    let mut live = applied(&empty_cloud(), &first);
    live.rows = Fact::Known(Vec::new());
    let mut again = input(Profile::Doc);
    again.choices.naming = Naming::Scoped;
    let second = plan(&again, &live);
    assert_eq!(lines(&second), NINE);
    assert!(second.rows.iter().all(|row| row.change == Change::Add && row.origin == Origin::Kept));
}
