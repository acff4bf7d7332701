//! From the worked example of upstream's document to inputs, and from refused values to flags.

use std::collections::BTreeMap;

use clap::{CommandFactory as _, Parser};
use opensdn_crds::nested::Endpoint;
use opensdn_nested::{Fact, Live, Plan, plan};
use opensdn_nested_workloads::{Inputs, InvalidValue, Keystone, Protocol, SecretKey};

use super::{FLAGS, flag, inputs, workloads};
use crate::nested::cluster::NestedFacts;
use crate::nested::flags::SpecFlags;
use crate::nested::workload_flags::WorkloadFlags;
use crate::nested::world;

const EXAMPLE: &str = "--cluster-name k8s-a --cluster-network admin:vms --config-nodes 192.168.1.100 \
    --analytics-nodes 192.168.1.100,192.168.1.101 --keystone-nodes 192.168.1.200 \
    --config-database-nodes 192.168.1.100,192.168.1.101,192.168.1.102 \
    --rabbitmq-nodes 192.168.1.100 --service-addresses 10.10.10.0/24";
const WORKLOADS: &str = "--api-server 10.0.0.10 --registry registry.example/opensdn --tag R25.1 --keystone-secret keystone";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    spec: SpecFlags,
    #[command(flatten)]
    workloads: WorkloadFlags,
}

impl Line {
    fn read(lines: &[&str]) -> Self {
        let words = lines.iter().flat_map(|line| line.split_whitespace());
        Self::try_parse_from(["it"].into_iter().chain(words)).unwrap()
    }

    /// As of a cloud that has no link-local service yet.
    fn plan(&self) -> Plan {
        let unknown = || "not asked".to_owned();
        let facts = NestedFacts {
            id: "1-2-3".to_owned(),
            nodes: Fact::Unknown(unknown()),
            api_service: Fact::Unknown(unknown()),
        };
        let input = world::input(&self.spec.spec().unwrap(), self.spec.choices(), facts);
        plan(&input, &Live { rows: Fact::Known(Vec::new()), ..Live::unknown("not asked") })
    }

    fn inputs(&self) -> (Inputs, Vec<InvalidValue>) {
        inputs(&self.plan(), self.spec.choices().subnets(), &self.workloads)
    }
}

#[track_caller]
fn made_of(more: &str) -> Inputs {
    let (inputs, wrong) = Line::read(&[EXAMPLE, WORKLOADS, more]).inputs();
    assert_eq!(wrong, []);
    inputs
}

#[track_caller]
fn reaches(endpoint: Option<&Endpoint>, addresses: &[&str], port: i64) {
    let endpoint = endpoint.unwrap();
    assert_eq!(
        (endpoint.addresses.as_slice(), endpoint.port),
        (&to_texts(addresses)[..], Some(port))
    );
}

fn to_texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&one| one.to_owned()).collect()
}

fn keystone(inputs: &Inputs) -> &Keystone {
    inputs.keystone.as_ref().unwrap()
}

#[test]
fn by_fabric_snat_the_services_are_at_their_own_addresses() {
    let inputs = made_of("");
    let underlay = &inputs.nested.underlay;
    let database = ["192.168.1.100", "192.168.1.101", "192.168.1.102"];
    reaches(Some(&underlay.config), &["192.168.1.100"], 8082);
    reaches(underlay.analytics.as_ref(), &["192.168.1.100", "192.168.1.101"], 8086);
    reaches(underlay.rabbitmq.as_ref(), &["192.168.1.100"], 5673);
    reaches(underlay.config_database.as_ref(), &database, 9041);
    assert_eq!(underlay.zookeeper.as_ref().unwrap().addresses, database);
    reaches(Some(&underlay.vrouter), &["10.10.10.1"], 9091);
    assert_eq!((keystone(&inputs).host.as_str(), keystone(&inputs).port), ("192.168.1.200", 5000));
}

#[test]
fn by_link_local_services_they_are_at_the_addresses_of_the_plan() {
    let inputs = made_of("--connectivity link-local");
    let underlay = &inputs.nested.underlay;
    let database = ["10.10.10.1", "10.10.10.2", "10.10.10.3"];
    reaches(Some(&underlay.config), &["10.10.10.1"], 8082);
    reaches(underlay.analytics.as_ref(), &["10.10.10.1", "10.10.10.2"], 8086);
    reaches(underlay.rabbitmq.as_ref(), &["10.10.10.1"], 5673);
    reaches(underlay.config_database.as_ref(), &database, 9041);
    assert_eq!(underlay.zookeeper.as_ref().unwrap().addresses, database);
    reaches(Some(&underlay.vrouter), &["10.10.10.5"], 9091);
    assert_eq!((keystone(&inputs).host.as_str(), keystone(&inputs).port), ("10.10.10.4", 5000));
}

#[test]
fn the_cluster_and_its_networks_are_those_of_the_plan_and_the_flags() {
    let inputs = made_of("--service-subnets 10.200.0.0/16 --target-namespace opensdn --mtu 1450");
    let network = &inputs.nested.cluster_network;
    let name = [network.domain.as_deref().unwrap(), &network.project, &network.name];
    assert_eq!(
        (inputs.nested.cluster_name.as_str(), name),
        ("k8s-a", ["default-domain", "admin", "vms"])
    );
    assert_eq!(inputs.subnets.pod, ["10.32.0.0/12"]);
    assert_eq!(inputs.subnets.service, ["10.200.0.0/16"]);
    assert_eq!(inputs.namespace, "opensdn");
    assert_eq!(inputs.nested.cni.unwrap().mtu, Some(1450));
    assert_eq!(inputs.images.cni, "registry.example/opensdn/opensdn-kubernetes-cni-init:R25.1");
}

#[test]
fn secrets_are_named_by_flags_and_only_named_services_speak_tls() {
    let inputs = made_of(
        "--rabbitmq-secret bus --rabbitmq-escaped-key escaped --tls config,rabbitmq --ca-secret ca \
         --keystone-protocol https --keystone-user kube --keystone-domain cloud --keystone-password-key word",
    );
    let underlay = &inputs.nested.underlay;
    let tls = |endpoint: &Option<Endpoint>| endpoint.as_ref().and_then(|one| one.tls);
    assert_eq!((underlay.config.tls, tls(&underlay.rabbitmq)), (Some(true), Some(true)));
    assert_eq!((tls(&underlay.analytics), tls(&underlay.config_database)), (None, None));
    assert_eq!(underlay.ca_secret_name.as_deref(), Some("ca"));
    let key =
        |secret: &str, key: &str| SecretKey { secret: secret.to_owned(), key: key.to_owned() };
    assert_eq!(inputs.escaped_rabbitmq_password, Some(key("bus", "escaped")));
    let keystone = keystone(&inputs);
    assert_eq!((keystone.protocol, keystone.user.as_str()), (Protocol::Https, "kube"));
    assert_eq!(keystone.domain, "cloud");
    assert_eq!(keystone.password, key("keystone", "word"));
}

#[track_caller]
fn refused(lines: &[&str], edit: impl FnOnce(&mut BTreeMap<String, String>)) -> Vec<String> {
    let line = Line::read(lines);
    let mut plan = line.plan();
    edit(&mut plan.environment);
    let failure = workloads(&plan, line.spec.choices().subnets(), &line.workloads).unwrap_err();
    assert_eq!(failure.code, "invalid-workloads");
    failure.causes
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_by_its_flag() {
    let line = "--api-server localhost:70000 --registry registry.example/opensdn --tag R25.1 --target-namespace A --mtu 9 --log-level none";
    let causes = refused(&[EXAMPLE, line], |environment| {
        environment.insert("COLLECTOR_PORT".to_owned(), "x".to_owned());
    });
    for (beginning, count) in [
        ("plan.environment.COLLECTOR_PORT is \"x\"", 1),
        ("--keystone-secret is \"\"", 1),
        ("--api-server is \"localhost\"", 1),
        ("--api-server is \"70000\"", 1),
        ("--target-namespace is \"A\"", 1),
        ("--mtu is \"9\"", 1),
    ] {
        let found = causes.iter().filter(|cause| cause.starts_with(beginning)).count();
        assert_eq!(found, count, "{beginning}: {causes:#?}");
    }
    assert_eq!(causes.len(), 6, "{causes:#?}");
}

#[test]
fn this_machine_is_no_api_server_for_a_pod_on_another_one() {
    for host in ["127.0.0.1", "localhost", "a.localhost"] {
        let line = format!(
            "--api-server {host} --registry registry.example/opensdn --tag R25.1 --keystone-secret keystone"
        );
        let causes = refused(&[EXAMPLE, &line], |_| ());
        assert!(causes.len() == 1 && causes[0].starts_with("--api-server is"), "{causes:?}");
    }
}

#[test]
fn a_plan_for_thrift_is_refused_by_the_port_of_the_database() {
    let causes = refused(&[EXAMPLE, WORKLOADS, "--profile thrift"], |_| ());
    assert!(
        causes.iter().any(|cause| cause.contains("configDatabase.port") && cause.contains("CQL")),
        "{causes:?}"
    );
}

#[test]
fn a_secret_for_keystone_without_keystone_is_refused() {
    let causes = refused(&[EXAMPLE, WORKLOADS], |environment| {
        environment.retain(|name, _| !name.starts_with("KEYSTONE"));
    });
    assert!(
        causes.len() == 1 && causes[0].starts_with("--keystone-secret is \"keystone\""),
        "{causes:?}"
    );
}

#[test]
fn each_flag_of_a_field_exists_and_is_found_for_what_is_in_the_field() {
    let command = Line::command();
    let known: Vec<&str> = command.get_arguments().filter_map(|one| one.get_long()).collect();
    for (field, flags) in FLAGS {
        let named = flags.split([' ', ',']).filter_map(|word| word.strip_prefix("--"));
        for name in named {
            assert!(known.contains(&name), "--{name} of {field}");
        }
    }
    assert_eq!(flag("nested.clusterNetwork.project"), "--cluster-network");
    assert_eq!(flag("nested.clusterNetworks"), "nested.clusterNetworks");
    assert_eq!(flag("keystone.project"), "--keystone-project");
    assert_eq!(flag("keystone.domain"), "--keystone-domain");
}
