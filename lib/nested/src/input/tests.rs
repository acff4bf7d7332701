//! What a spec is read as, and that each mistake in it is found.

use opensdn_crds::nested_cluster::Connectivity;

use super::Input;
use crate::catalogue::Code;
use crate::fixture::{choices, ip, spec};
use crate::roles::{Profile, Role};

#[test]
fn services_that_are_not_given_have_the_addresses_of_config_and_their_own_ports() {
    let mut spec = spec(Connectivity::LinkLocal, Profile::Cql);
    spec.services.analytics = None;
    spec.services.config_database = None;
    spec.services.rabbitmq = None;
    spec.services.zookeeper = None;
    spec.services.keystone = None;
    let input = Input::new(&spec, choices("id", Profile::Cql));
    let ports: Vec<(Role, u16)> =
        input.services.iter().map(|(role, one)| (*role, one.fabric_port)).collect();
    assert_eq!(
        ports,
        [
            (Role::Config, 8082),
            (Role::Analytics, 8086),
            (Role::Rabbitmq, 5673),
            (Role::ConfigDatabase, 9041),
            (Role::Zookeeper, 2181)
        ]
    );
    assert!(input.services.values().all(|one| one.nodes == [ip("192.168.1.100")].into()));
    assert_eq!((input.problems, input.vrouter_port), (vec![], 9091));
}

// containers/base/common.sh of tf-container-builder: RABBITMQ_NODES and ZOOKEEPER_NODES default to CONFIGDB_NODES.
#[test]
fn the_message_bus_and_zookeeper_are_by_default_on_the_nodes_of_the_config_database() {
    let mut spec = spec(Connectivity::LinkLocal, Profile::Cql);
    spec.services.rabbitmq = None;
    spec.services.zookeeper.as_mut().unwrap().addresses.clear();
    spec.services.analytics = None;
    let input = Input::new(&spec, choices("id", Profile::Cql));
    let database = ["100", "101", "102"].map(|node| ip(&format!("192.168.1.{node}"))).into();
    assert_eq!(input.services[&Role::Rabbitmq].nodes, database);
    assert_eq!(input.services[&Role::Zookeeper].nodes, database);
    assert_eq!(input.services[&Role::Analytics].nodes, [ip("192.168.1.100")].into());
    assert_eq!(input.services[&Role::Rabbitmq].port, 5673);
    assert_eq!(input.problems, []);

    // And what is wrong with these is said once.
    spec.services.config_database.as_mut().unwrap().addresses = vec!["fd00::1".to_owned()];
    let input = Input::new(&spec, choices("id", Profile::Cql));
    assert_eq!(input.problems.len(), 1, "{:?}", input.problems);
}

#[test]
fn only_profile_cql_has_zookeeper() {
    let spec = spec(Connectivity::LinkLocal, Profile::Doc);
    let input = Input::new(&spec, choices("id", Profile::Doc));
    assert!(!input.services.contains_key(&Role::Zookeeper));
}

#[test]
fn every_mistake_is_found_and_the_rest_is_read() {
    let mut spec = spec(Connectivity::LinkLocal, Profile::Cql);
    let wrong = ["127.0.0.1", "fd00::1", "host.example", "224.0.0.1", "0.0.0.0", "192.168.1.100"];
    spec.services.config.addresses = wrong.map(str::to_owned).to_vec();
    spec.services.config.port = Some(0);
    spec.services.rabbitmq.as_mut().unwrap().port = Some(70_000);
    spec.services.vrouter_port = Some(-5);
    spec.service_addresses.push("10.0.0.9-10.0.0.1".to_owned());
    spec.cluster_network.name = " ".to_owned();
    let input = Input::new(&spec, choices("id", Profile::Cql));
    let count = |code| input.problems.iter().filter(|one| one.code == code).count();
    assert_eq!(count(Code::LoopbackTarget), 1);
    assert_eq!(count(Code::TargetNotIpv4), 4);
    assert_eq!(count(Code::PortOutOfRange), 3);
    assert_eq!(count(Code::AddressUnusable), 1);
    assert_eq!(count(Code::NetworkMissing), 1);
    assert_eq!(input.problems.len(), 10);
    assert_eq!(input.services[&Role::Config].nodes, [ip("192.168.1.100")].into());
    assert_eq!(input.services[&Role::Config].port, 8082);
    let plan = crate::plan(&input, &crate::fixture::empty_cloud());
    assert!(!plan.is_applicable());
    assert_eq!(plan.rows.len(), 12);
}

#[test]
fn the_domain_has_a_default() {
    let input =
        Input::new(&spec(Connectivity::FabricSnat, Profile::Doc), choices("id", Profile::Doc));
    assert_eq!(input.network.joined(), "default-domain:admin:vms");
}
