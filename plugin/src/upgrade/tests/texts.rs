//! What is written of plans, of upgrades and of their progress.

use k8s_openapi::jiff::Timestamp;
use opensdn_crds::upgrade::UpgradeSpec;
use opensdn_upgrade::health::{Pod, Service};
use serde_json::{Value, json};

use super::{status, upgrade};
use crate::ui::Layout;
use crate::upgrade::history::UpgradeHistory;
use crate::upgrade::plan::UpgradePlan;
use crate::upgrade::progress::{Progress, short};
use crate::upgrade::report::UpgradeReport;
use crate::upgrade::world::{World, kinds, pick};
use std::time::Duration;

const LAYOUT: Layout = Layout { width: 100, unicode: false };

fn now() -> Timestamp {
    "2026-11-25T09:00:00Z".parse().unwrap()
}

/// Written text without colours.
fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
}

const SERVICES: [(&str, &str, &str, &str); 4] = [
    ("Cassandra", "cassandras", "cassandra", "cassandra:3.11.3"),
    ("Config", "config", "api", "x/contrail-controller-config-api:R24.1"),
    ("Kubemanager", "kubemanager", "kubemanager", "x/contrail-kubernetes-kube-manager:R24.1"),
    ("Vrouter", "vrouters", "vrouteragent", "x/contrail-vrouter-agent:R24.1"),
];

fn containers(container: &str, image: &str) -> Value {
    json!([{"name": container, "image": image}])
}

fn manager() -> Value {
    let mut services = serde_json::Map::new();
    for (_, key, container, image) in SERVICES {
        let item = json!({"metadata": {"name": "a"}, "spec": {"serviceConfiguration": {"containers": containers(container, image)}}});
        let is_list = key.ends_with('s');
        services.insert(key.to_owned(), if is_list { json!([item]) } else { item });
    }
    json!({"metadata": {"name": "cluster1", "namespace": "tf", "uid": "m"}, "spec": {"services": services}})
}

/// All services as the operator has them when all is well; of each there are three pods, one that was evicted, and one that a
/// user has made with the same labels.
fn world(manager: Value) -> World {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let owner = json!([{"uid": "m", "controller": true}]);
    let object = |container: &str, image: &str| {
        json!({"metadata": {"name": "a", "generation": 1, "ownerReferences": owner},
            "spec": {"serviceConfiguration": {"containers": containers(container, image)}},
            "status": {"observedGeneration": 1, "conditions": ready}})
    };
    let pod = |kind: &str, number: usize| {
        let (word, phase) = (kind.to_lowercase(), if number == 3 { "Failed" } else { "Running" });
        let keeper = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "uid": "s", "controller": true}]);
        let keeper = if number == 4 { json!([]) } else { keeper };
        json!({"metadata": {"name": format!("{word}-{number}"), "ownerReferences": keeper,
                "labels": {"tf_manager": word, (word.clone()): "a"}},
            "status": {"phase": phase, "conditions": ready}})
    };
    let find = |kind: &str| SERVICES.iter().find(|one| one.0 == kind).unwrap();
    let objects: Vec<_> = kinds(&manager)
        .into_iter()
        .map(|facts| {
            let (_, _, container, image) = find(facts.kind);
            let mut of_another = object(container, image);
            of_another["metadata"]["ownerReferences"] = json!([]);
            (facts, vec![object(container, image), of_another])
        })
        .collect();
    let pods: Vec<Value> =
        SERVICES.iter().flat_map(|one| (0..5).map(|number| pod(one.0, number))).collect();
    World::of(manager, &objects, &pods)
}

fn planned(spec: Value, world: &World) -> UpgradePlan {
    let mut whole = json!({"manager": "cluster1", "version": "R25.1"});
    whole.as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
    let spec: UpgradeSpec = serde_json::from_value(whole).unwrap();
    UpgradePlan::of(world.plan(&spec), &spec, &world.services, "tf", |hash| format!("apply {hash}"))
}

#[test]
fn a_plan_says_for_each_service_which_images_it_gets_and_how() {
    let world = world(manager());
    assert_eq!(world.services.len(), 4, "those of the Manager alone");
    let images = json!([{"container": "cassandra", "image": "cassandra:4.1.5"}]);
    let plan = planned(json!({ "images": images, "force": ["OSDN5019"] }), &world);
    let text = text(|out| plan.write(false, LAYOUT, out));
    let head: Vec<&str> = text.lines().take(17).map(str::trim_end).collect();
    let expected = [
        format!("Manager tf/cluster1: R24.1 -> R25.1, plan {}", plan.hash),
        String::new(),
        "WAVE         SERVICE        PODS  FROM    TO     METHOD".to_owned(),
        "images       -              -     -       -      nodes pull 4 new images in advance"
            .to_owned(),
        "data-stores  Cassandra/a    3     3.11.3  4.1.5  first pod looked at, then one at a time"
            .to_owned(),
        "config       Config/a       3     R24.1   R25.1  first pod looked at, then one at a time"
            .to_owned(),
        "control      Kubemanager/a  3     R24.1   R25.1  one at a time".to_owned(),
        "vrouters     Vrouter/a      3     R24.1   R25.1  node by node".to_owned(),
        String::new(),
        "services that get other images: 4; pods that are replaced: 12".to_owned(),
        "it takes about 19m, gates included, if pods start as quickly as those that there are; pulling images"
            .to_owned(),
        "comes to it".to_owned(),
        String::new(),
        "SERVICE        ABOUT  MEANWHILE".to_owned(),
        "Cassandra/a    4m15s  2 of 3 members serve on".to_owned(),
        "Config/a       4m15s  clients of the API connect to another pod".to_owned(),
        "Kubemanager/a  3m45s  a standby takes over; new pods wait until it works".to_owned(),
    ];
    assert_eq!(head, expected);
    for part in [
        "\n\nBY HAND, BEFORE\nback up Cassandra and ZooKeeper together",
        "\nmove what must not be interrupted away from the nodes",
        "\nVrouter/a      4m45s\n      workloads of a node are cut off for some minutes while its pod is replaced\n",
        "point of no return: the wave data-stores: Cassandra/a: cassandra:4.1.5 may write tables",
        "warning  [OSDN5011]",
        "warning  [OSDN5013]",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    let document = json!(plan);
    assert_eq!(document["services"][1]["images"][0]["to"], "x/opensdn-controller-config-api:R25.1");
    assert_eq!((&document["mayBegin"], &document["upToDate"]), (&json!(true), &json!(false)));
    assert_eq!(document["estimatedSeconds"], 4 * 30 + 255 + 255 + 225 + 285);
    assert_eq!(document["services"][0]["restarts"].as_array().map(Vec::len), Some(3));
    let reach = document["services"].as_array().into_iter().flatten();
    let reach: Vec<&Value> = reach.map(|one| &one["disruption"]["reach"]).collect();
    assert_eq!(reach, ["reconnect", "reconnect", "reconnect", "workloads"]);
}

#[test]
fn a_wide_plan_has_each_pod_that_is_replaced_with_its_reason() {
    let plan = planned(json!({}), &world(manager()));
    let text = text(|out| plan.write(true, LAYOUT, out));
    let part = "\n\nPOD            NODE  REPLACED FOR\nconfig-0       -     image of api: R24.1 -> R25.1\n";
    assert!(text.contains(part), "{text}");
    assert!(!text.contains("cassandra-0"), "its images stay:\n{text}");
}

#[test]
fn of_the_data_stores_zookeeper_alone_has_a_leader_that_comes_last() {
    let image = |name: &str| json!({"containers": containers(name, &format!("contrail-external-{name}:R24.1"))});
    let item = |name: &str| json!({"metadata": {"name": "a"}, "spec": {"serviceConfiguration": image(name)}});
    let manager = json!({"spec": {"services": {"zookeeper": item("zookeeper"),
        "rabbitmq": item("rabbitmq"), "cassandras": [item("cassandra")]}}});
    let services = ["Zookeeper/a", "Rabbitmq/a", "Cassandra/a"].map(|id| Service {
        id: id.to_owned(),
        pods: vec![Pod::default(); 3],
        ..Service::default()
    });
    let world = World { manager, services: services.into() };
    let plan = json!(planned(json!({}), &world));
    let methods = plan["services"].as_array().unwrap().iter();
    let leads = methods.filter(|one| one["method"].as_str().unwrap().ends_with("leader last"));
    let leads: Vec<_> = leads.map(|one| &one["service"]).collect();
    assert_eq!(leads, ["Zookeeper/a"]);
}

#[test]
fn a_plan_says_how_many_vrouters_are_replaced_at_a_time_and_whether_images_come_first() {
    let world = world(manager());
    let drained =
        text(|out| planned(json!({"waitForDrain": true}), &world).write(false, LAYOUT, out));
    assert!(drained.contains("node by node, each when it is drained\n"), "{drained}");
    let spec = json!({"vroutersAtOnce": 5, "prePull": false});
    let text = text(|out| planned(spec, &world).write(false, LAYOUT, out));
    assert!(text.contains("R25.1  first node looked at, then 5 at a time\n"), "{text}");
    assert!(!text.contains("pull the new images"), "{text}");
}

#[test]
fn of_each_refusal_it_is_said_whether_something_passes_over_it() {
    let mut paused = manager();
    paused["metadata"]["annotations"] = json!({"opensdn.io/paused": ""});
    let mut world = world(paused);
    world.services.iter_mut().for_each(|one| one.is_ready = one.id != "Config/a");
    let text = |spec: Value| {
        text(|out| planned(spec, &world).write(false, LAYOUT, out)).replace("\n    ", " ")
    };
    let refused = text(json!({}));
    for part in [
        "refused  [OSDN5007]",
        "until it is removed): end that first, nothing would change (nothing passes over it)",
        "refused  [OSDN5008] Config/a is not ready",
        "(--force OSDN5008 passes over it)",
    ] {
        assert!(refused.contains(part), "{part:?} is missing in:\n{refused}");
    }
    let forced = text(json!({"force": ["OSDN5008"]}));
    assert!(
        forced.contains("forced   [OSDN5008]")
            && forced.contains("(passed over by --force OSDN5008)"),
        "{forced}"
    );
    assert!(!planned(json!({"force": ["OSDN5008"]}), &world).may_begin, "the other one stays");
}

#[test]
fn where_there_is_nothing_to_do_the_plan_says_so() {
    let plan = planned(json!({"version": "R24.1"}), &world(manager()));
    assert_eq!(
        text(|out| plan.write(false, LAYOUT, out)),
        "Manager tf/cluster1 is up to date: R24.1\n"
    );
}

#[test]
fn a_manager_is_named_where_there_are_several() {
    let named = |name: &str| json!({"metadata": {"name": name}});
    assert!(pick(vec![named("a")], None, "tf").is_ok());
    assert_eq!(pick(vec![named("a"), named("b")], Some("b"), "tf").unwrap(), named("b"));
    let several = pick(vec![named("a"), named("b")], None, "tf").unwrap_err();
    assert!(several.message.contains("a, b") && several.hint.contains("--manager"), "{several:?}");
    assert!(pick(vec![named("a")], Some("c"), "tf").unwrap_err().hint.contains("there are: a"));
    assert!(pick(Vec::new(), None, "tf").unwrap_err().hint.contains("-n"));
}

fn at_work() -> Value {
    let mut status = status(
        "Running",
        &["data-stores Succeeded back", "config Running"],
        &["Cassandra/c data-stores Succeeded", "Config/a config Canary"],
    );
    let more = json!({"from": "R24.1", "to": "R25.1", "plan": "7f3c9a1b2d", "wave": "2/2 config",
        "message": "Config/a: pod config-1: ImagePullBackOff", "startedAt": "2026-11-25T08:50:00Z",
        "remarks": [{"code": "OSDN5013", "severity": "Warning", "message": "vrouters"}]});
    status.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    status["waves"][0]["startedAt"] = json!("2026-11-25T08:50:00Z");
    status["waves"][0]["finishedAt"] = json!("2026-11-25T08:53:00Z");
    status["waves"][1]["startedAt"] = json!("2026-11-25T08:53:00Z");
    status["waves"][1]["gate"] =
        json!([{"name": "services-ready", "passed": false, "message": "Webui/a: 1 of 3"}]);
    status["steps"][1]["attempts"] = json!(2);
    status["steps"][1]["message"] = json!("pod config-1: ImagePullBackOff");
    status["steps"][1]["restarts"] = json!(3);
    status["steps"][1]["pods"] = json!(["config-0", "config-1"]);
    status
}

#[test]
fn a_status_has_each_wave_and_step_with_its_time_and_what_it_waits_for() {
    let report = UpgradeReport::of(&upgrade(json!({"requestedBy": "alice"}), at_work()));
    let text = text(|out| report.write(now(), LAYOUT, out));
    for part in [
        "Upgrade tf/to-r25-1 R24.1 -> R25.1 Running wave 2/2 config 10m\n",
        "\nConfig/a: pod config-1: ImagePullBackOff\n",
        "\nWAVE         SERVICE      STATE      TIME  RESTARTS\n",
        "\ndata-stores               Succeeded  3m",
        "no way back: Cassandra/c: earlier ones do not read it\n",
        "\nconfig                    Running    7m              gate: Webui/a: 1 of 3 (services-ready)\n",
        "\n             Config/a     Canary           3         try 2: pod config-1: ImagePullBackOff\n",
        "\nwarning  [OSDN5013] vrouters\n",
        "\nManager cluster1, plan 7f3c9a1b2d, requested by alice; pods to be replaced: 2; containers restarted besides: 3\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    let document = json!(report);
    assert_eq!((&document["phase"], &document["verdict"]), (&json!("Running"), &json!("running")));
    assert_eq!(document["waves"][1]["services"][0]["attempts"], 2);
}

#[test]
fn a_report_says_for_how_long_nodes_were_without_their_vrouter() {
    let mut status = at_work();
    let since = "2026-11-25T08:54:00Z";
    status["steps"][1]["interruptions"] = json!([{"node": "w1", "since": since, "seconds": 40},
        {"node": "w2", "since": since, "seconds": 93}, {"node": "w3", "since": since}]);
    let report = UpgradeReport::of(&upgrade(json!({}), status));
    let said = "\n\nConfig/a was away on 2 nodes: 66s each, 93s at most, on w2; of 1 it is not known when it was back\n";
    let text = text(|out| report.write(now(), LAYOUT, out));
    assert!(text.contains(said), "{text}");
    let document = json!(report);
    let listed = &document["waves"][1]["services"][0]["interruptions"];
    assert_eq!((&listed[1]["node"], &listed[1]["seconds"]), (&json!("w2"), &json!(93)));
}

#[test]
fn before_the_operator_has_seen_it_a_status_says_so() {
    let report = UpgradeReport::of(&upgrade(json!({}), json!(null)));
    let text = text(|out| report.write(now(), LAYOUT, out));
    assert!(text.starts_with("Upgrade tf/to-r25-1 not seen by the operator\n"), "{text}");
}

#[test]
fn what_a_cluster_says_moves_no_cursor_and_makes_no_line() {
    let mut hostile = at_work();
    let said = "\u{1b}[2J\u{9b}1m gone\nok  all is well\u{202e}";
    for at in [
        "/message",
        "/steps/1/message",
        "/waves/1/gate/0/message",
        "/remarks/0/message",
        "/from",
        "/wave",
    ] {
        *hostile.pointer_mut(at).unwrap() = json!(said);
    }
    let upgrade = upgrade(json!({"requestedBy": said, "manager": said}), hostile);
    let report = UpgradeReport::of(&upgrade);
    let mut out = Vec::new();
    report.write(now(), LAYOUT, &mut out).unwrap();
    let history = UpgradeHistory::of("tf", vec![upgrade.clone()]);
    history.write(now(), LAYOUT, &mut out).unwrap();
    let changes = Progress::default().look(&upgrade);
    let lines: Vec<String> = changes.iter().map(|change| change.text()).collect();
    let text = String::from_utf8(out).unwrap() + &lines.join("\n");
    let text = anstream::adapter::strip_str(&text).to_string();
    let is_bad = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
    assert!(!text.contains(is_bad), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("ok ")), "{text}");
}

#[test]
fn each_change_of_a_state_is_a_line_and_what_stays_is_none() {
    let mut progress = Progress::default();
    let mut look = |status: &Value| -> Vec<String> {
        let upgrade = upgrade(json!({}), status.clone());
        progress.look(&upgrade).iter().map(|change| change.text()).collect()
    };
    assert_eq!(look(&json!(null)), [""; 0]);
    let first = at_work();
    let seen = look(&first);
    let expected = [
        "wave data-stores Succeeded",
        "step Cassandra/c Succeeded",
        "wave config Running",
        "step Config/a Canary",
        "upgrade Running: Config/a: pod config-1: ImagePullBackOff",
    ];
    assert_eq!(seen, expected);
    assert_eq!(look(&first), [""; 0]);
    let mut failed = first;
    failed["steps"][1]["state"] = json!("Failed");
    failed["phase"] = json!("Stopped");
    failed["message"] = json!("the wave config was not well in time");
    let expected = [
        "step Config/a Failed: pod config-1: ImagePullBackOff",
        "upgrade Stopped: the wave config was not well in time",
    ];
    assert_eq!(look(&failed), expected);
    let fresh = status("Running", &["config Pending"], &["Config/a config Pending"]);
    let lines: Vec<String> =
        Progress::default().look(&upgrade(json!({}), fresh)).iter().map(|one| one.text()).collect();
    assert_eq!(lines, ["upgrade Running"], "what has not started is no news");
}

#[test]
fn on_a_terminal_one_line_says_where_it_is() {
    let line = short(&upgrade(json!({}), at_work()), Duration::from_secs(65));
    assert_eq!(line, "Running  wave 2/2 config  65s  Config/a: pod config-1: ImagePullBackOff");
    let line = short(&upgrade(json!({}), json!(null)), Duration::from_secs(1));
    assert_eq!(line, "waiting for the operator  1s");
}

#[test]
fn the_history_is_a_line_for_each_upgrade() {
    let mut done = at_work();
    (done["phase"], done["finishedAt"]) = (json!("Succeeded"), json!("2026-11-25T08:58:00Z"));
    let history = UpgradeHistory::of(
        "tf",
        vec![upgrade(json!({"requestedBy": "alice"}), done), upgrade(json!({}), json!(null))],
    );
    let text = text(|out| history.write(now(), LAYOUT, out));
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "NAME      FROM   TO     PHASE      STARTED               DURATION  REQUESTED BY",
            "to-r25-1  -      -      -          -",
            "to-r25-1  R24.1  R25.1  Succeeded  2026-11-25T08:50:00Z  8m        alice",
        ]
    );
    assert_eq!(
        json!(history)["upgrades"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["seconds"] == 480)
            .count(),
        1
    );
    let empty = UpgradeHistory::of("tf", Vec::new());
    assert_eq!(
        self::text(|out| empty.write(now(), LAYOUT, out)),
        "there is no Upgrade in the namespace tf\n"
    );
}
