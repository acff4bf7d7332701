//! Worlds of the checks of what nodes have for Control, and for a cluster of tf-operator.

use std::net::Ipv4Addr;

use opensdn_node_probe::{Directory, DirectoryState, NameFinding, NodeFindings, Seen, Space};
use serde_json::json;

use super::super::report::Outcome;
use super::super::world::World;
use super::probed::{probed, unknown};
use super::{forbidden, known, says};
use crate::probe::wanted::wanted;
use crate::snapshot::Read;
use crate::snapshot::tf_operator::TfOperator;

fn manager(world: &mut World) -> &mut serde_json::Value {
    &mut known(&mut world.managers)[0]
}

fn with_subnet(subnet: &str, change: impl FnOnce(&mut NodeFindings)) -> World {
    let mut world = probed(change);
    manager(&mut world)["spec"]["services"]["controls"] = json!([{"metadata": {"name": "control1"},
        "spec": {"serviceConfiguration": {"dataSubnet": subnet}}}]);
    world
}

#[test]
fn nodes_of_control_have_an_address_in_its_network_of_data() {
    says(&probed(|_| {}), "D309", Outcome::Skipped, "no Control names a dataSubnet");
    says(&with_subnet("192.168.0.0/24", |_| {}), "D309", Outcome::Ok, "3/3 nodes");
    let with = |local: Option<Seen<Vec<Ipv4Addr>>>| {
        let mut world = with_subnet("10.1.0.0/16", |_| {});
        for answer in world.probed.iter_mut().flat_map(|all| all.values_mut()) {
            answer.as_mut().unwrap().findings.local = Some(Seen::Is(vec![[10, 1, 5, 9].into()]));
        }
        let second = world.probed.as_mut().unwrap().get_mut("m2").unwrap().as_mut().unwrap();
        second.findings.local = local;
        world
    };
    let one = with(Some(Seen::Is(vec![[192, 168, 0, 2].into(), [10, 1, 7, 7].into()])));
    says(&one, "D309", Outcome::Ok, "3/3 nodes");
    assert!(wanted(&one).networks.contains(&"10.1.0.0/16".to_owned()));
    let none = with(Some(Seen::Is(vec![])));
    says(
        &none,
        "D309",
        Outcome::Fail,
        "m2: no address in 10.1.0.0/16, which Control control1 names",
    );
    says(
        &with(Some(unknown())),
        "D309",
        Outcome::Uncertain,
        "m2: the addresses of the node are not known",
    );
    says(
        &with(None),
        "D309",
        Outcome::Uncertain,
        "m2: whether it has an address in 10.1.0.0/16: the image that looked is older",
    );
    let mut unread = one;
    unread.managers = forbidden();
    says(&unread, "D309", Outcome::Uncertain, "Managers may not be read");
}

fn tf_operator() -> Read<Vec<TfOperator>> {
    let deployment = json!({"metadata": {"name": "tf-operator", "namespace": "tf"}});
    Read::Known(vec![TfOperator::of(&deployment)])
}

fn with_names(addresses: Seen<Vec<std::net::IpAddr>>) -> World {
    let mut world = probed(|_| {});
    for answer in world.probed.iter_mut().flat_map(|all| all.values_mut()) {
        let one = NameFinding {
            name: "m1.cluster.local".to_owned(),
            addresses: Seen::Is(vec!["192.168.0.1".parse().unwrap()]),
        };
        answer.as_mut().unwrap().findings.names.wanted = vec![one];
    }
    let second = world.probed.as_mut().unwrap().get_mut("m2").unwrap().as_mut().unwrap();
    second.findings.names.wanted[0].addresses = addresses;
    world.tf_operators = tf_operator();
    known(&mut world.kubeadm)["networking"]["dnsDomain"] = json!("cluster.local");
    world
}

#[test]
fn names_of_databases_matter_where_tf_operator_runs() {
    says(&probed(|_| {}), "N106", Outcome::Skipped, "ours knows members by addresses");
    let good = with_names(Seen::Is(vec!["192.168.0.1".parse().unwrap()]));
    says(&good, "N106", Outcome::Ok, "3/3 nodes");
    assert_eq!(wanted(&good).names, ["m1.cluster.local", "m2.cluster.local", "m3.cluster.local"]);
    let nowhere = with_names(Seen::Is(vec![]));
    says(&nowhere, "N106", Outcome::Warn, "m2: the name m1.cluster.local leads nowhere");
    let own = with_names(Seen::Is(vec!["127.0.1.1".parse().unwrap()]));
    says(
        &own,
        "N106",
        Outcome::Warn,
        "m2: the name m1.cluster.local leads to 127.0.1.1, and not to its node",
    );
    says(&with_names(unknown()), "N106", Outcome::Uncertain, "it is hidden");
    let mut defaults = with_names(unknown());
    defaults.kubeadm = Read::Absent;
    assert_eq!(wanted(&defaults).names[0], "m1.k8s");
    defaults.openshift = Read::Known(json!({"baseDomain": "example.org"}));
    assert_eq!(
        wanted(&defaults).names,
        Vec::<String>::new(),
        "of the others it takes addresses there"
    );
    manager(&mut defaults)["spec"]["services"]["cassandras"] =
        json!([{"metadata": {"name": "configdb1"}, "spec": {}}]);
    assert_eq!(wanted(&defaults).names[0], "m1.example.org");
    let mut unread = with_names(unknown());
    unread.kubeadm = forbidden();
    says(&unread, "N106", Outcome::Uncertain, "the domain of the names is not known: is forbidden");
    let mut old = good;
    old.probed
        .as_mut()
        .unwrap()
        .get_mut("m3")
        .unwrap()
        .as_mut()
        .unwrap()
        .findings
        .names
        .wanted
        .clear();
    says(&old, "N106", Outcome::Uncertain, "m3: its pod looked for no names");
    old.tf_operators = forbidden();
    says(&old, "N106", Outcome::Uncertain, "whether tf-operator runs is not known");
}

fn folder(path: &str, entries: &[&str]) -> Directory {
    let entries = entries.iter().map(|one| (*one).to_owned()).collect();
    let space = Space { free: 1 << 30, read_only: Seen::Is(false) };
    Directory { path: path.to_owned(), state: Seen::Is(DirectoryState::Present { space, entries }) }
}

const CERTIFICATES: &str = "/etc/contrail/ssl/certs";
const AUTHORITIES: &str = "/etc/contrail/ssl/ca-certs";

/// The second node has these.
fn with_external(folders: Vec<Directory>) -> World {
    let mut world = probed(|_| {});
    for (name, answer) in world.probed.iter_mut().flatten() {
        let findings = &mut answer.as_mut().unwrap().findings;
        let address = findings.addresses[0];
        let files: Vec<String> =
            [("server", "crt"), ("client", "crt"), ("server-key", "pem"), ("client-key", "pem")]
                .iter()
                .map(|(start, end)| format!("{start}-{address}.{end}"))
                .collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let good = vec![folder(CERTIFICATES, &files), folder(AUTHORITIES, &["ca-bundle.crt"])];
        findings.directories.extend(if name == "m2" { folders.clone() } else { good });
    }
    manager(&mut world)["spec"]["commonConfiguration"]["certSigner"] = json!("External");
    world.tf_operators = tf_operator();
    world
}

#[test]
fn files_of_the_signer_external_are_on_the_nodes() {
    says(&probed(|_| {}), "X903", Outcome::Skipped, "no Manager has certSigner External");
    let bundle = || folder(AUTHORITIES, &["ca-bundle.crt"]);
    let own = [
        "server-192.168.0.2.crt",
        "client-192.168.0.2.crt",
        "server-key-192.168.0.2.pem",
        "client-key-192.168.0.2.pem",
    ];
    let good = with_external(vec![folder(CERTIFICATES, &own), bundle()]);
    says(&good, "X903", Outcome::Ok, "3/3 nodes");
    assert!(wanted(&good).directories.contains(&AUTHORITIES.to_owned()));
    let absent = |path: &str, state| Directory { path: path.to_owned(), state };
    let space = Space { free: 1, read_only: Seen::Is(false) };
    let missing = absent(CERTIFICATES, Seen::Is(DirectoryState::Absent(space)));
    says(
        &with_external(vec![missing, bundle()]),
        "X903",
        Outcome::Fail,
        "m2: /etc/contrail/ssl/certs is missing",
    );
    let of_another = vec![folder(CERTIFICATES, &["server-192.168.0.9.crt"]), bundle()];
    says(
        &with_external(of_another),
        "X903",
        Outcome::Fail,
        "has no server-192.168.0.2.crt, no client-192.168.0.2.crt",
    );
    let many = vec![folder(CERTIFICATES, &["a", "b", "c", "d", "e"]), bundle()];
    says(&with_external(many), "X903", Outcome::Uncertain, "it has more than is shown");
    let empty = vec![folder(CERTIFICATES, &own), folder(AUTHORITIES, &[])];
    says(&with_external(empty), "X903", Outcome::Fail, "has no ca-bundle.crt");
    says(&with_external(vec![]), "X903", Outcome::Uncertain, "its pod did not look at");
    let hidden = vec![absent(CERTIFICATES, unknown()), bundle()];
    let mut hidden = with_external(hidden);
    says(&hidden, "X903", Outcome::Uncertain, "it is hidden");
    // Our operator does not look there.
    hidden.tf_operators = forbidden();
    says(&hidden, "X903", Outcome::Uncertain, "whether tf-operator runs is not known");
    hidden.tf_operators = Read::Known(vec![]);
    says(&hidden, "X903", Outcome::Skipped, "ours takes no files of nodes");
    assert!(!wanted(&hidden).directories.contains(&AUTHORITIES.to_owned()));
}
