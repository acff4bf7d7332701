//! Before an upgrade: each remark of a plan is a check, and what plans do not look at is looked at.

use opensdn_crds::upgrade::{Upgrade as Object, UpgradeRemark};
use opensdn_upgrade::plan::Plan;
use serde_json::{Value, json};

use super::super::Purpose;
use super::super::catalogue::{CHECKS, Category};
use super::super::upgrade::{Planned, Upgrade};
use super::*;
use crate::certificates::{CertificateStatus, CertificatesReport, NotRead, State};
use crate::install::inventory::VERSION;

fn remark(code: &str, severity: &str) -> UpgradeRemark {
    let [code, severity] = [code, severity].map(str::to_owned);
    UpgradeRemark { code, severity, message: "it is so".to_owned() }
}

fn pod(name: &str, kind: &str, node: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "tf", "labels": {"tf_manager": kind}},
        "spec": {"nodeName": node}})
}

/// As the controller of DaemonSets makes it.
fn of_daemon_set(mut pod: Value) -> Value {
    pod["spec"]["tolerations"] = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]);
    pod
}

fn planned(remarks: &[UpgradeRemark]) -> Planned {
    let step = json!({"id": "Config/config1", "wave": "config", "state": "Pending", "images": [],
        "pods": ["config1-0", "config1-1"]});
    let plan = Plan {
        from: "R24.1".to_owned(),
        to: "R25.1".to_owned(),
        steps: vec![serde_json::from_value(step).unwrap()],
        remarks: remarks.to_vec(),
        ..Plan::default()
    };
    Planned {
        namespace: "tf".to_owned(),
        name: "cluster1".to_owned(),
        plan: Read::Known(plan),
        pods: vec![
            pod("config1-0", "config", "m1"),
            of_daemon_set(pod("vrouter1-a", "vrouter", "m2")),
        ],
    }
}

fn operator(image: &str, ready: u32) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        "status": {"readyReplicas": ready}})
}

fn at_work(manager: &str, phase: Option<&str>) -> Object {
    serde_json::from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "to-r24-1", "namespace": "tf"}, "spec": {"manager": manager},
        "status": {"phase": phase}}))
    .unwrap()
}

/// A cluster in which an upgrade can begin, with something changed.
fn before(change: impl FnOnce(&mut Upgrade)) -> World {
    let mut upgrade = Upgrade {
        version: "R25.1".to_owned(),
        managers: Read::Known(vec![planned(&[])]),
        upgrades: Read::Known(vec![]),
        ..Upgrade::default()
    };
    change(&mut upgrade);
    but(|world| {
        let image = format!("registry.local:5000/opensdn-operator:{VERSION}");
        let read = Read::Known(operator(&image, 2));
        world.deployments.insert("opensdn-operator".to_owned(), read);
        world.upgrade = Some(upgrade);
    })
}

fn with_remarks(remarks: &[UpgradeRemark]) -> World {
    before(|upgrade| upgrade.managers = Read::Known(vec![planned(remarks)]))
}

fn with_upgrade(object: Object) -> World {
    before(|upgrade| upgrade.upgrades = Read::Known(vec![object]))
}

fn for_upgrade() -> Chosen {
    Chosen { purpose: Purpose::Upgrade, ..Chosen::default() }
}

#[test]
fn where_an_upgrade_can_begin_all_that_is_about_it_passes() {
    let report = judge(&before(|_| {}), &for_upgrade());
    for check in &report.checks {
        let is_about_it = check.category == Category::Upgrade;
        let expected = if is_about_it { "Ok" } else { "" };
        let found = format!("{:?}", check.result);
        assert!(!is_bad(check.result) && (expected.is_empty() || found == expected), "{check:?}");
    }
    let id = |id: &str| report.checks.iter().find(|check| check.id == id).unwrap();
    let first = &id("B001").message;
    assert!(
        first.contains("tf/cluster1: R24.1 -> R25.1") && first.contains("replaced: 2"),
        "{first}"
    );
    assert!(id("K003").message.contains("not about an upgrade"), "rights of an installation");
    let other = judge(&before(|_| {}), &Chosen::default());
    let skipped = other.checks.iter().find(|check| check.id == "B106").unwrap();
    assert!(skipped.message.contains("check --upgrade VERSION"), "{}", skipped.message);
}

/// Codes that no plan of a version alone has: values that are none, another plan, what the operator alone may ask the API
/// server, and a wave that failed.
const NOT_OF_A_VERSION: [&str; 4] = ["OSDN5002", "OSDN5010", "OSDN5017", "OSDN5020"];

#[test]
fn every_remark_of_a_plan_is_a_check_with_what_passes_over_it() {
    let coded = |code: &str| {
        let of_code = CHECKS.iter().filter(|check| check.category == Category::Upgrade);
        of_code.filter(|check| check.title.ends_with(&format!("[{code}]"))).count()
    };
    let codes = crate::catalogue::all().into_iter().map(|one| one.code);
    for code in codes.filter(|code| code.starts_with("OSDN50")) {
        let expected = usize::from(!NOT_OF_A_VERSION.contains(&code.as_str()));
        assert_eq!(coded(&code), expected, "{code}");
        let check = CHECKS.iter().find(|check| check.title.ends_with(&format!("[{code}]")));
        let Some(check) = check else { continue };
        let of = |severity: &str| verdict(&with_remarks(&[remark(&code, severity)]), check.id);
        assert_eq!(of("Warning").outcome, Outcome::Warn, "{code}");
        assert!(of("Warning").message.starts_with("tf/cluster1: it is so"), "{code}");
        assert_eq!(verdict(&with_remarks(&[]), check.id).outcome, Outcome::Ok, "{code}");
        if check.severity == super::super::catalogue::Severity::Fatal {
            assert_eq!(of("Refused").outcome, Outcome::Fail, "{code}");
            let skippable = of("Skippable");
            assert_eq!(skippable.outcome, Outcome::Fail, "{code}");
            let over = format!("(--force {code} passes over it)");
            assert!(skippable.message.contains(&over), "{}", skippable.message);
        }
    }
}

#[test]
fn whether_an_upgrade_can_begin_is_said_of_each_manager_with_why_not() {
    let refused = with_remarks(&[remark("OSDN5008", "Skippable"), remark("OSDN5013", "Warning")]);
    says(&refused, "B001", Outcome::Fail, "tf/cluster1: R24.1 -> R25.1 cannot begin: OSDN5008");
    let fix = verdict(&refused, "B001").fix.unwrap();
    assert_eq!(fix, "kubectl opensdn upgrade plan R25.1 -n tf");
    let none = before(|upgrade| {
        (upgrade.managers, upgrade.namespace) = (Read::Known(vec![]), Some("tf".to_owned()));
    });
    says(&none, "B001", Outcome::Fail, "no Manager in the namespace tf");
    let hidden = before(|upgrade| upgrade.managers = forbidden());
    says(&hidden, "B001", Outcome::Uncertain, "may not be read");
    says(&hidden, "B106", Outcome::Uncertain, "may not be read");
    let part = before(|upgrade| known(&mut upgrade.managers)[0].plan = forbidden());
    says(&part, "B001", Outcome::Uncertain, "tf/cluster1: is forbidden");
    says(&part, "B104", Outcome::Uncertain, "is forbidden");
    let done = before(|upgrade| {
        known(&mut upgrade.managers)[0].plan =
            Read::Known(Plan { from: "R25.1".to_owned(), ..Plan::default() });
    });
    says(&done, "B001", Outcome::Ok, "tf/cluster1 is up to date: R25.1");
}

#[test]
fn an_upgrade_that_is_unfinished_comes_first() {
    let running = with_upgrade(at_work("cluster1", Some("Running")));
    says(&running, "B002", Outcome::Fail, "the Upgrade to-r24-1 is Running");
    says(&running, "B001", Outcome::Fail, "cannot begin: the Upgrade to-r24-1");
    let fix = verdict(&running, "B002").fix.unwrap();
    assert_eq!(fix, "kubectl opensdn upgrade status to-r24-1 -n tf");
    let stopped = with_upgrade(at_work("cluster1", Some("Stopped")));
    says(&stopped, "B002", Outcome::Fail, "upgrade retry");
    says(&with_upgrade(at_work("cluster1", None)), "B002", Outcome::Fail, "not seen");
    for (manager, phase) in
        [("cluster1", "Succeeded"), ("cluster1", "Refused"), ("cluster2", "Running")]
    {
        says(&with_upgrade(at_work(manager, Some(phase))), "B002", Outcome::Ok, "none");
    }
    let hidden = before(|upgrade| upgrade.upgrades = forbidden());
    says(&hidden, "B002", Outcome::Uncertain, "may not be read");
}

#[test]
fn without_an_operator_that_is_ready_and_not_older_nothing_would_begin() {
    let unknown_kind = before(|upgrade| upgrade.upgrades = Read::Absent);
    says(&unknown_kind, "B003", Outcome::Fail, "does not serve the kind Upgrade");
    let with = |read: Read<Value>| {
        let mut world = before(|_| {});
        world.deployments.insert("opensdn-operator".to_owned(), read);
        world
    };
    says(&with(Read::Absent), "B003", Outcome::Fail, "no Deployment opensdn-operator");
    says(&with(forbidden()), "B003", Outcome::Uncertain, "may not be read");
    let image = |tag: &str, ready| with(Read::Known(operator(&format!("r:5000/o{tag}"), ready)));
    let own = concat!(":", env!("CARGO_PKG_VERSION"));
    says(&image(own, 2), "B003", Outcome::Ok, env!("CARGO_PKG_VERSION"));
    says(&image(":0.0.1", 0), "B003", Outcome::Fail, "no pod of the operator is ready");
    says(&image(":0.0.1", 2), "B003", Outcome::Fail, "older than this plugin");
    says(&image(":v99.0.0", 2), "B003", Outcome::Warn, "newer than this plugin");
    for tag in ["", ":latest", "@sha256:1", ":99.0.0@sha256:1"] {
        says(&image(tag, 2), "B003", Outcome::Uncertain, "does not say");
    }
}

#[test]
fn a_node_on_which_pods_do_not_come_back_is_named() {
    let with = |index: usize, change: &dyn Fn(&mut Value)| {
        let mut world = before(|_| {});
        change(&mut known(&mut world.nodes)[index]);
        world
    };
    let state = |type_: &str, status: &str| json!([{"type": "Ready", "status": "True"}, {"type": type_, "status": status}]);
    let not_ready = json!([{"type": "Ready", "status": "False"}]);
    let lost = |node: &mut Value| node["status"]["conditions"] = not_ready.clone();
    says(&with(0, &lost), "B004", Outcome::Fail, "m1: not ready");
    says(&with(2, &lost), "B004", Outcome::Ok, "2 nodes");
    let full = |node: &mut Value| node["status"]["conditions"] = state("DiskPressure", "True");
    says(&with(1, &full), "B004", Outcome::Fail, "m2: DiskPressure");
    let little = |node: &mut Value| node["status"]["conditions"] = state("MemoryPressure", "True");
    says(&with(1, &little), "B004", Outcome::Warn, "m2: MemoryPressure");
    let cordoned = |node: &mut Value| node["spec"]["unschedulable"] = json!(true);
    says(&with(0, &cordoned), "B004", Outcome::Warn, "config1-0 may not come back");
    says(&with(1, &cordoned), "B004", Outcome::Ok, "2 nodes");
    for (tolerations, comes_back) in [
        (json!([{"operator": "Exists"}]), true),
        (json!([{"key": "node.kubernetes.io/unschedulable"}]), true),
        (json!([{"operator": "Exists", "effect": "NoExecute"}]), false),
        (json!([{"key": "node-role.kubernetes.io/master", "operator": "Exists"}]), false),
    ] {
        let mut world = before(|upgrade| {
            let mut planned = planned(&[]);
            planned.pods[0]["spec"]["tolerations"] = tolerations;
            upgrade.managers = Read::Known(vec![planned]);
        });
        cordoned(&mut known(&mut world.nodes)[0]);
        let (outcome, says_so) = match comes_back {
            true => (Outcome::Ok, "2 nodes"),
            false => (Outcome::Warn, "config1-0 may not come back"),
        };
        says(&world, "B004", outcome, says_so);
    }
    let mut hidden = before(|_| {});
    hidden.nodes = forbidden();
    says(&hidden, "B004", Outcome::Uncertain, "may not be read");
}

#[test]
fn a_certificate_that_has_ended_or_ends_soon_is_named() {
    let with = |state: State, days: i64| {
        before(|upgrade| {
            let one = CertificateStatus {
                state,
                namespace: "tf".to_owned(),
                secret: "redis1-secret".to_owned(),
                key: "server-10.0.0.1.crt".to_owned(),
                used_by: "Redis redis1".to_owned(),
                subject: String::new(),
                issuer: String::new(),
                not_after: None,
                days: Some(days),
            };
            upgrade.certificates.certificates = vec![one];
        })
    };
    says(
        &with(State::Expired, -1),
        "B005",
        Outcome::Fail,
        "tf/redis1-secret server-10.0.0.1.crt: it has ended",
    );
    says(&with(State::Untrusted, 99), "B005", Outcome::Fail, "do not trust");
    says(&with(State::Unreadable, 0), "B005", Outcome::Fail, "cannot be read");
    says(&with(State::Urgent, 3), "B005", Outcome::Warn, "it ends in 3 days");
    says(&with(State::Late, 40), "B005", Outcome::Ok, "1 certificate");
    let hidden = before(|upgrade| {
        let not_read = NotRead { what: "Secrets".to_owned(), why: "is forbidden".to_owned() };
        upgrade.certificates =
            CertificatesReport { not_read: vec![not_read], ..CertificatesReport::default() };
    });
    says(&hidden, "B005", Outcome::Uncertain, "Secrets may not be read: is forbidden");
}

#[test]
fn the_module_that_is_loaded_is_not_that_of_the_new_image() {
    let with = |step: &str, change: &dyn Fn(&mut opensdn_node_probe::Kernel)| {
        let mut world = probed::probed(|findings| {
            findings.kernel.loaded = opensdn_node_probe::Seen::Is(true);
            change(&mut findings.kernel);
        });
        let mut planned = planned(&[]);
        let Read::Known(plan) = &mut planned.plan else { panic!() };
        plan.steps[0].id = step.to_owned();
        let managers = Read::Known(vec![planned]);
        world.upgrade = Some(Upgrade { managers, ..Upgrade::default() });
        verdict(&world, "D301").outcome
    };
    let headers = |are_there: bool| {
        move |kernel: &mut opensdn_node_probe::Kernel| {
            kernel.headers = opensdn_node_probe::Seen::Is(are_there);
            kernel.release = opensdn_node_probe::Seen::Is("6.8.0-31-generic".to_owned());
        }
    };
    let (without, there) = (headers(false), headers(true));
    assert_eq!(with("Vrouter/vrouter1", &without), Outcome::Fail);
    let unsigned = |kernel: &mut opensdn_node_probe::Kernel| {
        there(kernel);
        kernel.only_signed = opensdn_node_probe::Seen::Is(true);
    };
    assert_eq!(with("Vrouter/vrouter1", &unsigned), Outcome::Fail);
    // What keeps its image keeps its module.
    assert_eq!(with("Config/config1", &without), Outcome::Ok);
}
