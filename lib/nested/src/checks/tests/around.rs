//! OSDN3024 and what follows: services, nodes, the cluster, its subnets, and who reaches what.

use std::collections::BTreeSet;

use super::{fires, found, option_1, option_2};
use crate::catalogue::Code;
use crate::fixture::{empty_cloud, input, ip, of};
use crate::input::{Driver, Permission};
use crate::live::{AaaMode, Fact, Interface, Live, Trace, TraceOwner, UsedSubnet};
use crate::plan;
use crate::roles::{Profile, Role};

fn cql() -> (crate::Input, Live) {
    (input(Profile::Cql), empty_cloud())
}

#[test]
fn several_databases_behind_service_addresses_lose_their_redundancy() {
    let (mut input, live) = cql();
    assert_eq!(found(&input, &live, Code::FabricPeers).len(), 1);
    for node in ["192.168.1.100", "192.168.1.101", "192.168.1.102"] {
        input.choices.node_addresses.insert(ip(node), ip(node));
    }
    assert_eq!(
        found(&input, &live, Code::FabricPeers).len(),
        0,
        "they are reached by own addresses"
    );
}

#[test]
fn an_even_number_of_members_is_found() {
    fires(Code::EvenMembers, cql(), |input, _| {
        input.services.get_mut(&Role::Zookeeper).unwrap().nodes.remove(&ip("192.168.1.102"));
    });
}

#[test]
fn ports_have_to_fit_the_images() {
    let said = fires(Code::PortsOfRelease, option_2(), |input, _| {
        input.choices.driver = Some(Fact::Known(Driver::Cql));
    });
    assert!(said.contains("9161") && said.contains("ZooKeeper is missing"), "{said}");
    fires(Code::PortsOfRelease, cql(), |input, _| {
        input.choices.driver = Some(Fact::Known(Driver::Thrift));
    });
    let (mut input, live) = cql();
    input.services.get_mut(&Role::Zookeeper).unwrap().port = 2182;
    assert_eq!(found(&input, &live, Code::PortsOfRelease).len(), 0, "ZOOKEEPER_PORT says it");
    input.choices.driver = Some(Fact::Unknown("no image".to_owned()));
    let plan = plan(&input, &live);
    assert!(plan.unknown.iter().any(|one| one.code == Code::PortsOfRelease));
}

#[test]
fn a_certificate_without_the_service_addresses_is_found() {
    let names = |all: &[&str]| Fact::Known(all.iter().map(|name| (*name).to_owned()).collect());
    let said = fires(Code::CertificateNames, option_2(), |input, _| {
        let of_fabric: Fact<BTreeSet<String>> = names(&["192.168.1.200"]);
        input.choices.certificates.insert(Role::Keystone, of_fabric);
        input.choices.certificates.insert(Role::ConfigDatabase, names(&[]));
    });
    assert!(said.contains("10.10.10.4") && !said.contains("database"), "{said}");
    let (mut input, live) = option_2();
    input.choices.certificates.insert(Role::Keystone, names(&["10.10.10.4"]));
    assert_eq!(found(&input, &live, Code::CertificateNames).len(), 0);
}

fn interface(live: &mut Live, node: &str, change: impl FnOnce(&mut Interface)) {
    let Fact::Known(interfaces) = &mut live.interfaces else { panic!() };
    change(&mut interfaces.get_mut(&ip(node)).unwrap()[0]);
}

#[test]
fn a_node_outside_of_the_network_is_refused() {
    let said = fires(Code::NodeOutside, option_1(), |_, live| {
        let Fact::Known(interfaces) = &mut live.interfaces else { panic!() };
        interfaces.remove(&ip("10.0.0.11"));
    });
    assert!(said.contains("minion1") && !said.contains("master1"), "{said}");
    let said = fires(Code::NodeOutside, option_1(), |_, live| {
        interface(live, "10.0.0.10", |interface| interface.host_id = Some(String::new()));
    });
    assert!(said.contains("host_id"), "{said}");
}

#[test]
fn nodes_in_several_networks_are_refused_with_the_reason() {
    let said = fires(Code::SeveralNetworks, option_1(), |_, live| {
        interface(live, "10.0.0.11", |interface| {
            interface.network = "default-domain:b:c".to_owned()
        });
    });
    assert!(said.contains("default-domain:b:c: minion1"), "{said}");
}

#[test]
fn a_virtual_router_is_found_by_the_names_that_kube_manager_tries() {
    let said = fires(Code::VirtualRouterMissing, option_1(), |_, live| {
        live.virtual_routers = Fact::Known(BTreeSet::from(["compute2".to_owned()]));
    });
    assert!(said.contains("compute1"), "{said}");
    for (host, router, is_found) in [
        ("compute1.a.example", "compute1", true),
        ("compute1", "compute1.b.example", true),
        ("compute1.a.example", "compute1.b.example", false),
    ] {
        let (input, mut live) = option_1();
        for node in ["10.0.0.10", "10.0.0.11"] {
            interface(&mut live, node, |interface| interface.host_id = Some(host.to_owned()));
        }
        live.virtual_routers = Fact::Known(BTreeSet::from([router.to_owned()]));
        let missing = found(&input, &live, Code::VirtualRouterMissing);
        assert_eq!(missing.is_empty(), is_found, "{host} {router}");
    }
}

#[test]
fn a_network_that_is_not_in_the_cloud_is_refused() {
    let said = fires(Code::NetworkMissing, option_1(), |_, live| live.network = Fact::Known(None));
    assert!(said.contains("default-domain:admin:vms"), "{said}");
}

fn trace(owner: TraceOwner) -> Fact<Vec<Trace>> {
    let object = "virtual-network default-domain:b:a-default-pod-network".to_owned();
    Fact::Known(vec![Trace { object, owner }])
}

#[test]
fn a_name_that_another_cluster_has_is_refused_whatever_is_allowed() {
    let said = fires(Code::ClusterNameTaken, option_1(), |input, live| {
        input.choices.permissions.adopt_name = Permission::Granted;
        live.traces = trace(TraceOwner::Other("a cluster of project b".to_owned()));
    });
    assert!(said.contains("project b"), "{said}");
    let (input, mut live) = option_1();
    live.traces = trace(TraceOwner::Ours);
    assert_eq!(found(&input, &live, Code::ClusterNameTaken).len(), 0);
}

#[test]
fn whose_name_it_is_can_be_unknown_and_is_then_not_passed() {
    let (mut input, mut live) = option_1();
    live.traces = trace(TraceOwner::Undecided);
    let is_unknown = |input: &crate::Input, live: &Live| {
        plan(input, live).unknown.iter().any(|one| one.code == Code::ClusterNameTaken)
    };
    assert!(is_unknown(&input, &live));
    let mut ours = crate::fixture::applied(&live, &plan(&input, &live));
    let Fact::Known(records) = &mut ours.records else { panic!() };
    records.ours.cluster = Some(input.cluster.clone());
    assert!(!is_unknown(&input, &ours), "our record says whose it is");
    let Fact::Known(records) = &mut ours.records else { panic!() };
    records.ours.cluster = Some("another".to_owned());
    assert!(is_unknown(&input, &ours), "it is of another name");
    assert_eq!(found(&input, &ours, Code::ClusterNameTaken).len(), 1);
    input.choices.permissions.adopt_name = Permission::Granted;
    assert!(!is_unknown(&input, &live));
}

#[test]
fn the_default_name_is_a_warning() {
    fires(Code::DefaultClusterName, option_1(), |input, _| input.cluster = "k8s".to_owned());
}

#[test]
fn service_subnets_have_to_have_the_address_of_the_api() {
    fires(Code::ApiServiceOutside, option_1(), |input, _| {
        input.choices.kubernetes.api_service = Fact::Known(ip("10.43.0.1"));
    });
    // What is not given is what the image takes.
    let (mut input, live) = option_1();
    input.choices.kubernetes.service_subnets.clear();
    assert_eq!(found(&input, &live, Code::ApiServiceOutside).len(), 0);
    input.choices.kubernetes.api_service = Fact::Known(ip("10.43.0.1"));
    assert_eq!(found(&input, &live, Code::ApiServiceOutside).len(), 1);
}

#[test]
fn subnets_that_are_not_given_are_a_warning() {
    let said = fires(Code::SubnetsEmpty, option_1(), |input, _| {
        input.choices.kubernetes.fabric_subnets.clear();
    });
    assert!(said.contains("10.64.0.0/12"), "{said}");
}

#[test]
fn subnets_of_the_cluster_may_not_have_its_nodes() {
    fires(Code::SubnetOfNodes, option_1(), |input, _| {
        input.choices.kubernetes.pod_subnets = vec!["10.0.0.0/16".parse().unwrap()];
    });
}

#[test]
fn subnets_with_addresses_of_the_control_plane_are_found() {
    let said = fires(Code::SubnetOfFabric, option_1(), |input, _| {
        input.choices.kubernetes.pod_subnets = vec!["192.168.0.0/16".parse().unwrap()];
    });
    assert!(said.contains("192.168.1.200"), "{said}");
}

#[test]
fn subnets_of_another_cluster_are_found_and_our_own_are_not() {
    let used = |owner: &str| {
        let subnet = "10.32.0.0/12".parse().unwrap();
        Fact::Known(vec![UsedSubnet { subnet, owner: owner.to_owned() }])
    };
    fires(Code::SubnetOfOtherCluster, option_1(), |_, live| {
        live.subnets = used("default-domain:b:other-pod-ipam");
    });
    let (input, mut live) = option_1();
    live.subnets = used("default-domain:admin:a-pod-ipam");
    assert_eq!(found(&input, &live, Code::SubnetOfOtherCluster).len(), 0);
}

#[test]
fn exposure_is_said_in_the_strongest_words_and_with_what_limits_it() {
    let (input, live) = option_2();
    let plan = plan(&input, &live);
    let [finding] = of(&plan, Code::CloudWideExposure)[..] else { panic!() };
    assert!(finding.message.starts_with("DANGER: every virtual machine of every tenant"));
    for part in ["config-database (9161)", "keystone (35357)", "guest/guest", "security group"] {
        assert!(finding.message.contains(part), "{}", finding.message);
    }
    assert!(finding.hint.contains("FabricSNAT") && finding.hint.contains("aaa_mode"));
    assert_eq!(of(&plan, Code::FabricOpened).len(), 0);

    let (input, live) = option_1();
    let plan = crate::plan(&input, &live);
    assert_eq!(of(&plan, Code::CloudWideExposure).len(), 0);
    assert_eq!(of(&plan, Code::FabricOpened).len(), 1);
    assert_eq!(of(&plan, Code::AgentExposed).len(), 1);
}

#[test]
fn without_an_address_for_the_vrouters_their_agents_are_not_exposed() {
    let (mut input, live) = option_1();
    input.pool = crate::Pool::default();
    assert_eq!(found(&input, &live, Code::AgentExposed).len(), 0);
}

#[test]
fn a_percent_in_a_password_is_found_by_the_name_of_its_variable() {
    let said = fires(Code::PercentInPassword, option_1(), |input, _| {
        input.choices.percent_passwords = Some(Fact::Known(vec!["RABBITMQ_PASSWORD".to_owned()]));
    });
    assert!(said.contains("RABBITMQ_PASSWORD"), "{said}");
}

#[test]
fn a_config_api_without_tokens_is_found() {
    fires(Code::NoAuthentication, option_1(), |_, live| {
        live.aaa_mode = Fact::Known(AaaMode::NoAuth);
    });
}

#[test]
fn what_the_login_may_not_write_is_said_before_anything_is_written() {
    let (input, mut live) = option_1();
    let Fact::Known(Some(network)) = &mut live.network else { panic!() };
    network.fabric_snat = Some(false);
    assert_eq!(found(&input, &live, Code::MayNotWrite).len(), 0);
    live.may_write.vrouter_config = Fact::Known(false);
    live.may_write.network = Fact::Known(false);
    let both = found(&input, &live, Code::MayNotWrite);
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(!plan(&input, &live).is_applicable());
    // Where SNAT is on already, the network is not written.
    let Fact::Known(Some(network)) = &mut live.network else { panic!() };
    network.fabric_snat = Some(true);
    assert_eq!(found(&input, &live, Code::MayNotWrite).len(), 1);
    let (input, _) = option_2();
    assert_eq!(found(&input, &live, Code::MayNotWrite).len(), 1);
    // An API that does not say it forbids nothing.
    live.may_write.vrouter_config = Fact::Unknown("404".to_owned());
    let unknown = plan(&input, &live);
    assert!(unknown.is_applicable());
    assert!(unknown.unknown.iter().any(|one| one.code == Code::MayNotWrite));
}
