//! Worlds of each check: one in which it passes, one in which it does not, one in which it cannot be known; and good
//! clusters of which nothing bad may be said.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::catalogue::{CHECKS, Mode, of_id};
use super::report::{Outcome, Verdict};
use super::world::{Registries, World};
use super::{Chosen, Purpose, judge, text};
use crate::snapshot::Read;

pub(crate) use self::probed::findings;

mod cluster_api;
mod devices;
mod huge_pages;
mod matrix;
mod members;
mod nested;
mod networks;
mod nodes;
mod probed;
mod shared_nodes;
mod surroundings;
mod upgrade;

fn is_bad(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Fail | Outcome::Warn)
}

const DATE: &str = "2026-11-24T12:00:00Z";

pub(crate) fn node(name: &str, address: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": "",
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {"podCIDR": "10.32.1.0/24"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": address}],
            "capacity": {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "300Gi"},
            "allocatable": {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "300Gi", "hugepages-2Mi": "512Mi"},
            "nodeInfo": {"kubeletVersion": "v1.34.1", "architecture": "amd64", "operatingSystem": "linux",
                "osImage": "Rocky Linux 9.5 (Blue Onyx)", "containerRuntimeVersion": "containerd://1.7.27",
                "kernelVersion": "5.14.0-503.14.1.el9_5.x86_64"}}})
}

fn manager() -> Value {
    let image =
        |name: &str| json!([{"name": name, "image": format!("registry.example.com/{name}:R24.1")}]);
    json!({"metadata": {"name": "cluster1", "namespace": "tf"},
        "spec": {"commonConfiguration": {"imagePullSecrets": ["pull"]}, "services": {
            "zookeeper": {"metadata": {"name": "zookeeper1"}, "spec": {"serviceConfiguration": {"containers": image("zookeeper")}}},
            "controls": [{"metadata": {"name": "control1"}, "spec": {"serviceConfiguration": {}}}],
            "kubemanager": {"metadata": {"name": "kubemanager1"}, "spec": {"serviceConfiguration": {}}},
            "vrouters": [{"metadata": {"name": "vrouter1"}, "spec": {"serviceConfiguration": {"hugePages2M": 128}}}]}}})
}

/// An installed, healthy cluster of kubeadm, whose networks are what kubeadm has.
fn good() -> World {
    let nodes = ["m1", "m2", "m3"]
        .iter()
        .zip(1..)
        .map(|(name, number)| node(name, &format!("192.168.0.{number}")));
    let ours = json!({"metadata": {"name": "control1-0", "namespace": "tf", "labels": {"tf_manager": "control"}},
        "spec": {"nodeName": "m1", "hostNetwork": true, "containers": [{"image": "c", "ports": [{"containerPort": 179}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {"renewTime": "2026-11-24T11:59:55.000000Z"}});
    let versions = [
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "coordination.k8s.io/v1",
        "discovery.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
    ];
    let versions: Vec<Value> = versions.iter().map(|one| json!({"groupVersion": one})).collect();
    let labels = json!({"pod-security.kubernetes.io/enforce": "privileged"});
    World {
        version: json!({"gitVersion": "v1.34.1", "minor": "34"}),
        date: DATE.parse().ok(),
        now: "2026-11-24T12:00:01Z".parse().ok(),
        user: Read::Known(json!({"status": {"userInfo": {"username": "admin"}}})),
        groups: Read::Known(json!({"groups": [{"versions": versions}]})),
        nodes: Read::Known(nodes.collect()),
        leases: Read::Known(["m1", "m2", "m3"].iter().map(|name| lease(name)).collect()),
        namespaces: Read::Known(vec![json!({"metadata": {"name": "tf", "labels": labels}})]),
        pods: Read::Known(vec![ours]),
        daemon_sets: Read::Known(vec![]),
        managers: Read::Known(vec![manager()]),
        profiles: Read::Known(vec![]),
        quotas: Read::Known(vec![]),
        limits: Read::Known(vec![]),
        webhooks: Read::Known(vec![]),
        service_networks: Read::Known(vec![
            json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/12"]}}),
        ]),
        kubernetes: Read::Known(json!({"spec": {"clusterIP": "10.96.0.1"}})),
        kubeadm: Read::Known(
            json!({"networking": {"podSubnet": "10.32.0.0/12", "serviceSubnet": "10.96.0.0/12"}}),
        ),
        registries: [(
            ("tf".to_owned(), "pull".to_owned()),
            Read::Known(Registries {
                type_: "kubernetes.io/dockerconfigjson".to_owned(),
                hosts: vec!["https://registry.example.com/v1/".to_owned()],
            }),
        )]
        .into(),
        rights: Read::Known(vec![("create pods".to_owned(), true)]),
        may_grant: Read::Known(true),
        ..World::default()
    }
}

/// What it says of the world as it would be read: of pods less is kept.
fn verdict(world: &World, id: &str) -> Verdict {
    let mut world = world.clone();
    if let Read::Known(pods) = &mut world.pods {
        pods.iter_mut().for_each(|pod| *pod = super::ask::pods::kept(pod));
    }
    let check = of_id(id).unwrap();
    check.judge.unwrap()(&world).within(check.severity)
}

fn outcome(world: &World, id: &str) -> Outcome {
    verdict(world, id).outcome
}

/// The world with something changed.
fn but(change: impl FnOnce(&mut World)) -> World {
    let mut world = good();
    change(&mut world);
    world
}

fn known<T>(read: &mut Read<T>) -> &mut T {
    match read {
        Read::Known(value) => value,
        _ => panic!("it is known"),
    }
}

fn forbidden<T>() -> Read<T> {
    Read::Unknown("is forbidden".to_owned())
}

fn with_node(change: impl FnOnce(&mut Value)) -> World {
    but(|world| change(&mut known(&mut world.nodes)[0]))
}

fn with_manager(change: impl FnOnce(&mut Value)) -> World {
    but(|world| change(&mut known(&mut world.managers)[0]))
}

#[track_caller]
fn says(world: &World, id: &str, expected: Outcome, part: &str) {
    let verdict = verdict(world, id);
    assert_eq!(verdict.outcome, expected, "{id}: {}", verdict.message);
    assert!(verdict.message.contains(part), "{id}: {part:?} is missing in: {}", verdict.message);
}

#[test]
fn a_report_names_version_and_nodes_and_how_long_each_check_took() {
    let mut world = good();
    world.took = std::time::Duration::from_millis(1234);
    let report = judge(&world, &Chosen { only: vec!["K002".to_owned()], ..Chosen::default() });
    let mut out = Vec::new();
    report.write(false, crate::ui::Layout { width: 80, unicode: false }, &mut out).unwrap();
    let said = String::from_utf8(out).unwrap();
    assert_eq!(said.lines().next(), Some("cluster  cluster  v1.34.1  3 nodes"), "{said}");
    let document = serde_json::to_value(&report).unwrap();
    assert_eq!((&document["readMs"], &document["nodes"]), (&json!(1234), &json!(3)));
    assert_eq!(document["kubernetes"], "v1.34.1");
    assert!(document["checks"][0]["durationMs"].is_u64(), "{document}");
    let unread = judge(&but(|world| world.nodes = forbidden()), &Chosen::default());
    assert_eq!(unread.nodes, None);
    let mut out = Vec::new();
    report.write(true, crate::ui::Layout { width: 80, unicode: false }, &mut out).unwrap();
    let wide = String::from_utf8(out).unwrap();
    assert!(wide.contains(" ms)\n") && wide.contains("; read in "), "{wide}");
}

#[test]
fn of_a_good_cluster_no_check_says_anything_bad() {
    let report = judge(&good(), &Chosen::default());
    for check in &report.checks {
        assert!(!is_bad(check.result), "{} {:?}: {}", check.id, check.result, check.message);
    }
    let uncertain = report.checks.iter().filter(|check| check.result == Outcome::Uncertain);
    let uncertain: Vec<&str> = uncertain.map(|check| check.id).collect();
    assert_eq!(uncertain, ["D304", "C401"], "only nodes know their interfaces and files");
}

#[test]
fn of_an_empty_cluster_without_anything_of_opensdn_nothing_fails() {
    let empty = but(|world| {
        world.managers = Read::Absent;
        world.namespaces = Read::Known(vec![]);
        world.pods = Read::Known(vec![]);
        world.registries.clear();
    });
    let report = judge(&empty, &Chosen::default());
    let bad = report.checks.iter().filter(|check| is_bad(check.result));
    assert_eq!(bad.map(|check| check.id).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn where_nothing_may_be_read_no_check_passes_or_fails() {
    let nothing = World {
        version: json!({"gitVersion": "v1.34.1", "minor": "34"}),
        user: forbidden(),
        groups: forbidden(),
        nodes: forbidden(),
        leases: forbidden(),
        namespaces: forbidden(),
        pods: forbidden(),
        daemon_sets: forbidden(),
        managers: forbidden(),
        profiles: forbidden(),
        quotas: forbidden(),
        limits: forbidden(),
        webhooks: forbidden(),
        service_networks: forbidden(),
        kubernetes: forbidden(),
        kubeadm: forbidden(),
        openshift: forbidden(),
        tf_operators: forbidden(),
        rights: forbidden(),
        may_grant: forbidden(),
        deployments: [("opensdn-operator".to_owned(), forbidden())].into(),
        ..World::default()
    };
    for check in judge(&nothing, &Chosen::default()).checks {
        let is_open = matches!(check.result, Outcome::Uncertain | Outcome::Skipped);
        assert!(is_open, "{} {:?}: {}", check.id, check.result, check.message);
    }
}

#[test]
fn only_and_skip_choose_checks_and_what_is_left_out_says_so() {
    let only =
        Chosen { only: vec!["k002".into(), "P201".into()], skip: vec![], ..Chosen::default() };
    let report = judge(&good(), &only);
    let ids: Vec<_> = report.checks.iter().map(|check| (check.id, check.result)).collect();
    assert_eq!(ids, [("K002", Outcome::Ok), ("P201", Outcome::Skipped)]);
    assert!(report.checks[1].message.contains("needs --probe"), "{}", report.checks[1].message);
    let skip = Chosen { only: vec![], skip: vec!["K002".into()], ..Chosen::default() };
    let report = judge(&good(), &skip);
    assert_eq!(report.checks.len(), CHECKS.len());
    assert_eq!(
        report.checks.iter().find(|check| check.id == "K002").unwrap().message,
        "left out by --skip"
    );
    assert_eq!(
        Chosen { only: vec!["K999".into()], skip: vec![], ..Chosen::default() }.unknown(),
        Some("K999")
    );
}

#[test]
fn checks_that_are_named_and_would_look_at_nothing_are_no_pass() {
    let only = |ids: &[&str], purpose| Chosen {
        only: ids.iter().map(|&id| id.to_owned()).collect(),
        purpose,
        ..Chosen::default()
    };
    let of = |ids: &[&str], purpose, with_probe| only(ids, purpose).looks_at_nothing(with_probe);
    use Purpose::{Installation, Nested};
    assert!(of(&["P201"], Installation, false).is_some_and(|hint| hint.contains("--probe")));
    assert_eq!(of(&["P201"], Installation, true), None);
    assert_eq!(of(&["P201", "K001"], Installation, false), None);
    assert!(of(&["Q105"], Installation, false).is_some_and(|hint| hint.contains("--nested")));
    assert_eq!(of(&["Q105"], Nested, false), None);
    assert_eq!(of(&[], Installation, false), None, "what is not named may be skipped");
}

/// The ids that have been given. One that is gone stays in this list, and is never given again.
#[test]
fn no_id_is_given_twice_and_none_changes() {
    const GIVEN: [&str; 62] = [
        "K001", "K002", "K003", "K004", "K005", "K006", "K007", "K008", "N101", "N102", "N103",
        "N104", "N105", "N106", "N107", "P201", "P202", "P203", "P204", "P205", "D301", "D302",
        "D303", "D304", "D305", "D306", "D307", "D308", "D309", "C401", "C402", "S501", "S502",
        "T601", "T602", "V701", "V702", "I801", "I802", "X901", "X902", "X903", "B001", "B002",
        "B003", "B004", "B005", "B101", "B102", "B103", "B104", "B105", "B106", "B107", "B108",
        "B109", "B110", "B111", "B112", "B113", "B114", "B115",
    ];
    let ids: Vec<&str> =
        CHECKS.iter().map(|check| check.id).filter(|id| !id.starts_with('Q')).collect();
    assert_eq!(ids, GIVEN);
    let nested: Vec<&str> =
        CHECKS.iter().filter(|check| check.mode == Mode::Nested).map(|check| check.id).collect();
    assert!(nested.iter().all(|id| id.starts_with('Q')) && !nested.is_empty());
    assert_eq!(CHECKS.iter().map(|check| check.id).collect::<BTreeSet<_>>().len(), CHECKS.len());
    for check in CHECKS.iter() {
        let is_api = matches!(check.mode, Mode::Api | Mode::ApiAndProbe);
        assert!(!is_api || check.judge.is_some(), "{} is judged by the API alone", check.id);
        assert!(
            [check.title, check.why, check.fix].iter().all(|text| !text.is_empty()),
            "{}",
            check.id
        );
    }
}

/// What follows `#` is for who runs it. In capitals is what only they know.
#[test]
fn each_fix_is_a_command() {
    const PROGRAMS: [&str; 23] = [
        "apt-get",
        "cat",
        "chronyc",
        "df",
        "ethtool",
        "getent",
        "ip",
        "kubectl",
        "ls",
        "lspci",
        "mokutil",
        "nc",
        "nft",
        "oc",
        "openstack",
        "skopeo",
        "ss",
        "sysctl",
        "timedatectl",
        "uname",
        "dnf",
        "lsmod",
        "modprobe",
    ];
    for check in CHECKS.iter() {
        let command = check.fix.split('#').next().unwrap_or_default();
        let mut parts = command.split(" || ").flat_map(|one| one.split("; "));
        let is_command =
            |part: &str| PROGRAMS.contains(&part.split(' ').next().unwrap_or_default());
        assert!(parts.all(is_command), "{}: {}", check.id, check.fix);
        assert!(!check.fix.contains(", "), "{} has prose: {}", check.id, check.fix);
    }
}

#[test]
fn the_page_of_checks_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/checks.md");
    let all = crate::catalogue::all();
    let expected = text::page(|id| {
        let known = all.iter().find(|one| one.code == id).unwrap();
        known.meanings.iter().flat_map(|meaning| meaning.sources.iter().copied()).collect()
    });
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        current == expected,
        "UPDATE=1 cargo test -p kubectl-opensdn the_page_of_checks_is_current"
    );
}
