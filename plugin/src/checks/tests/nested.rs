//! Worlds of the checks of nested clusters, and which checks are about these.

use opensdn_node_probe::{
    CniFile, ModuleFinding, ModuleState, NameFinding, Names, NodeFindings, Seen,
};
use serde_json::{Value, json};

use super::super::catalogue::{CHECKS, Category};
use super::super::nested::Nested;
use super::super::report::Outcome;
use super::super::world::World;
use super::super::{Chosen, Purpose, judge};
use super::probed::probed;
use super::{forbidden, good, is_bad, known, says};
use crate::snapshot::Read;

fn name(name: &str, addresses: Seen<Vec<std::net::IpAddr>>) -> NameFinding {
    NameFinding { name: name.to_owned(), addresses }
}

fn found() -> Seen<Vec<std::net::IpAddr>> {
    Seen::Is(vec!["192.168.0.2".parse().unwrap()])
}

/// Three nodes on which a nested cluster would work, the second with something changed.
fn nested(change: impl FnOnce(&mut NodeFindings)) -> World {
    let mut world = probed(|_| {});
    world.managers = Read::Known(vec![]);
    world.nested = Some(Nested {
        definitions: Read::Known(vec![]),
        environment: Read::Known(json!({"data": {"VROUTER_MTU": "1450"}})),
        kube_proxy: Read::Known(json!({"clusterCIDR": "10.32.0.0/12"})),
    });
    for answer in world.probed.as_mut().unwrap().values_mut().flatten() {
        let state = Seen::Is(ModuleState::Loadable);
        answer.findings.modules = ["macvlan", "8021q"]
            .map(|name| ModuleFinding { name: name.to_owned(), state: state.clone() })
            .into();
        answer.findings.names =
            Names { own: Some(name("m2", found())), wanted: vec![name("m1", found())] };
    }
    let answer = world.probed.as_mut().unwrap().get_mut("m2").unwrap();
    change(&mut answer.as_mut().unwrap().findings);
    world
}

fn with(change: impl FnOnce(&mut Nested)) -> World {
    let mut world = nested(|_| {});
    change(world.nested.as_mut().unwrap());
    world
}

#[test]
fn of_a_good_nested_cluster_nothing_bad_is_said_and_what_is_not_about_it_is_left_out() {
    let chosen = Chosen { purpose: Purpose::Nested, ..Chosen::default() };
    let report = judge(&nested(|_| {}), &chosen);
    for check in &report.checks {
        assert!(!is_bad(check.result), "{} {:?}: {}", check.id, check.result, check.message);
    }
    let uncertain: Vec<&str> = report
        .checks
        .iter()
        .filter(|check| check.result == Outcome::Uncertain)
        .map(|check| check.id)
        .collect();
    assert_eq!(uncertain, ["Q106"], "security groups are in the cloud");
    let skipped = |id: &str| report.checks.iter().find(|one| one.id == id).unwrap().result;
    for id in ["K003", "N101", "P201", "D301", "V702", "I801"] {
        assert_eq!(skipped(id), Outcome::Skipped, "{id}");
    }
    assert_eq!((skipped("S501"), skipped("Q103")), (Outcome::Ok, Outcome::Ok));
}

#[test]
fn checks_of_nested_clusters_say_nothing_of_others() {
    let report = judge(&good(), &Chosen::default());
    let of_nested = CHECKS.iter().filter(|one| one.category == Category::Nested);
    for check in of_nested {
        let found = report.checks.iter().find(|one| one.id == check.id).unwrap();
        assert_eq!(found.result, Outcome::Skipped, "{}", check.id);
    }
}

#[test]
fn the_name_of_the_node_itself_has_to_resolve_and_others_should() {
    says(&nested(|_| {}), "Q101", Outcome::Ok, "nodes: ");
    let own = nested(|node| node.names.own = Some(name("vm-2", Seen::Is(vec![]))));
    says(&own, "Q101", Outcome::Fail, "m2: the name vm-2 leads nowhere");
    let other = nested(|node| node.names.wanted = vec![name("m1", Seen::Is(vec![]))]);
    says(&other, "Q101", Outcome::Warn, "the name m1 leads nowhere");
    let late = nested(|node| node.names.own = Some(name("m2", Seen::Unknown("no answer".into()))));
    says(&late, "Q101", Outcome::Uncertain, "no answer");
    let older = nested(|node| node.names = Names::default());
    says(&older, "Q101", Outcome::Uncertain, "release");
}

#[test]
fn a_module_may_be_loaded_later_and_must_not_be_missing() {
    let with = |state: Seen<ModuleState>| nested(|node| node.modules[1].state = state);
    says(&with(Seen::Is(ModuleState::BuiltIn)), "Q102", Outcome::Ok, "3/3 nodes");
    says(&with(Seen::Is(ModuleState::Missing)), "Q102", Outcome::Fail, "m2: 8021q is neither");
    says(&with(Seen::Unknown("hidden".into())), "Q102", Outcome::Uncertain, "hidden");
}

#[test]
fn another_cni_before_ours_is_an_error_before_ours_is_there_too() {
    let file = |name: &str| CniFile {
        file: name.to_owned(),
        plugins: vec!["calico".to_owned()],
        ..CniFile::default()
    };
    let with = |name: &str| {
        nested(|node| {
            let Seen::Is(cni) = &mut node.cni else { panic!("it is seen") };
            cni.files = vec![file(name)];
        })
    };
    says(&with("10-calico.conflist"), "Q103", Outcome::Fail, "m2: 10-calico.conflist (calico)");
    says(&with("10-flannel.conflist"), "Q103", Outcome::Ok, "3/3 nodes");
    let hidden = nested(|node| node.cni = Seen::Unknown("hidden".into()));
    says(&hidden, "Q103", Outcome::Uncertain, "hidden");
}

#[test]
fn an_mtu_of_pods_above_that_of_the_interface_is_an_error_and_one_below_fits() {
    let mtu = |text: &str| {
        with(|world| {
            world.environment = Read::Known(json!({"data": {"VROUTER_MTU": text}}));
        })
    };
    says(&mtu("1500"), "Q104", Outcome::Ok, "3/3 nodes");
    says(&mtu("9000"), "Q104", Outcome::Fail, "none gets a network");
    says(&mtu("many"), "Q104", Outcome::Fail, "no number");
    says(&with(|world| world.environment = Read::Absent), "Q104", Outcome::Ok, "the default 1500");
    says(&with(|world| world.environment = forbidden()), "Q104", Outcome::Uncertain, "forbidden");
}

#[test]
fn a_crd_whose_kind_comes_after_kubernetes_own_is_found() {
    let crd = |kind: &str, group: &str| -> Value {
        json!({"metadata": {"name": format!("x.{group}")},
            "spec": {"group": group, "names": {"kind": kind}}})
    };
    let found = |kind: &str, group: &str| {
        with(|world| world.definitions = Read::Known(vec![crd(kind, group)]))
    };
    let calico = found("NetworkPolicy", "crd.projectcalico.org");
    says(&calico, "Q105", Outcome::Warn, "x.crd.projectcalico.org");
    says(&found("Ingress", "config.openshift.io"), "Q105", Outcome::Warn, "openshift");
    says(&found("INGRESS", "config.openshift.io"), "Q105", Outcome::Warn, "openshift");
    // Its definition is com.example..., which is before io.k8s...
    says(&found("Service", "example.com"), "Q105", Outcome::Ok, "no CRD");
    says(&found("IPPool", "crd.projectcalico.org"), "Q105", Outcome::Ok, "no CRD");
    says(&with(|world| world.definitions = forbidden()), "Q105", Outcome::Uncertain, "forbidden");
}

#[test]
fn kube_proxy_has_to_know_the_network_of_pods() {
    says(&nested(|_| {}), "Q107", Outcome::Ok, "10.32.0.0/12");
    let other = with(|world| known(&mut world.kube_proxy)["clusterCIDR"] = json!("10.244.0.0/16"));
    says(&other, "Q107", Outcome::Warn, "10.244.0.0/16");
    says(&with(|world| world.kube_proxy = Read::Absent), "Q107", Outcome::Uncertain, "otherwise");
}
