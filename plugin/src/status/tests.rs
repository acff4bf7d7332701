//! What is said of small worlds.

use serde_json::{Value, json};

use super::report::{Counts, State, StatusReport, Word};
use super::world::World;
use super::{Detail, assess};
use crate::exit::Exit;
use crate::snapshot::Read;
use crate::ui::Layout;

mod introspect;
mod tf_operator;

const NOW: &str = "2026-11-24T12:00:00Z";
const EARLIER: &str = "2026-11-24T11:56:00Z";

fn node(name: &str, ready: &str) -> Value {
    json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready,
        "message": "Kubelet stopped posting node status.", "lastTransitionTime": EARLIER}]}})
}

/// A service as the operator reports it, with its StatefulSet.
struct Service {
    kind: &'static str,
    ready: bool,
    reason: &'static str,
    message: &'static str,
    pods: Vec<Value>,
}

fn service(kind: &'static str, pods: Vec<Value>) -> Service {
    Service { kind, ready: true, reason: "PodsReady", message: "3 of 3 pods ready", pods }
}

fn bad(
    kind: &'static str,
    reason: &'static str,
    message: &'static str,
    pods: Vec<Value>,
) -> Service {
    Service { kind, ready: false, reason, message, pods }
}

/// Of each kind one pod on each of the nodes; `status` is that of the pods.
fn pods(kind: &str, nodes: &[&str], status: &Value) -> Vec<Value> {
    let word = kind.to_lowercase();
    let pod = |(number, node): (usize, &&str)| {
        json!({"metadata": {"name": format!("{word}1-{number}"), "namespace": "tf",
                "labels": {"tf_manager": word, word.as_str(): format!("{word}1")}},
            "spec": {"nodeName": node}, "status": status})
    };
    nodes.iter().enumerate().map(pod).collect()
}

fn runs() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "ready": true, "state": {"running": {}}}]})
}

fn waits(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": EARLIER}],
        "containerStatuses": [{"name": "main", "ready": false, "restartCount": 4,
            "state": {"waiting": {"reason": reason, "message": message}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]})
}

const NODES: [&str; 3] = ["m1", "m2", "m3"];

fn up(kind: &'static str) -> Service {
    service(kind, pods(kind, &NODES, &runs()))
}

fn world(services: Vec<Service>) -> World {
    let name = |kind: &str| format!("{}1", kind.to_lowercase());
    let all_ready = services.iter().all(|one| one.ready);
    let rows: Vec<Value> = services
        .iter()
        .map(|one| json!({"kind": one.kind, "name": name(one.kind), "ready": one.ready, "reason": one.reason,
            "message": one.message, "versions": ["R24.1"]}))
        .collect();
    let sets = services.iter().map(|one| {
        let word = one.kind.to_lowercase();
        json!({"metadata": {"name": format!("{word}1-{word}-statefulset"), "namespace": "tf",
                "creationTimestamp": "2026-10-14T12:00:00Z",
                "labels": {"tf_manager": word, word.as_str(): format!("{word}1")}},
            "spec": {"replicas": 3}, "status": {"readyReplicas": 1}})
    });
    let sets = sets.collect();
    let ready = if all_ready { "True" } else { "False" };
    let condition =
        json!({"type": "Ready", "status": ready, "message": "m", "lastTransitionTime": EARLIER});
    let manager = json!({"metadata": {"name": "cluster1", "namespace": "tf", "generation": 2},
        "spec": {"services": {}},
        "status": {"observedGeneration": 2, "services": rows, "conditions": [condition]}});
    World {
        managers: Read::Known(vec![manager]),
        pods: Read::Known(services.into_iter().flat_map(|one| one.pods).collect()),
        stateful_sets: Read::Known(sets),
        daemon_sets: Read::Known(Vec::new()),
        nodes: Read::Known(NODES.iter().map(|name| node(name, "True")).collect()),
        ..World::default()
    }
}

fn said(world: &World) -> StatusReport {
    assess(world, NOW.parse().unwrap())
}

fn word(report: &StatusReport, kind: &str) -> Word {
    report.components.iter().find(|one| one.kind == kind).unwrap().state
}

fn causes(report: &StatusReport) -> Vec<String> {
    report.causes.iter().map(|one| format!("{} {}", one.kind, one.name).trim().to_owned()).collect()
}

fn text(report: &StatusReport, depth: u8, wide: bool) -> String {
    let mut out = Vec::new();
    let (detail, layout) = (Detail { depth, wide }, Layout { width: 80, unicode: false });
    report.write(NOW.parse().unwrap(), detail, layout, &mut out).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
}

#[test]
fn of_a_good_cluster_everything_is_active_and_nothing_is_a_cause() {
    let report = said(&world(vec![up("Config"), up("Cassandra"), up("Zookeeper"), up("Rabbitmq")]));
    assert_eq!((report.state, report.exit()), (State::Active, Exit::Done));
    assert!(report.causes.is_empty(), "{:?}", report.causes);
    let kinds: Vec<&str> = report.components.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["Cassandra", "Rabbitmq", "Zookeeper", "Config"],
        "what needs none comes first"
    );
    assert_eq!(report.components[0].pods_ready, Counts::new(3, 3));
    let text = text(&report, 1, false);
    assert!(
        text.starts_with("cluster  OpenSDN R24.1  active  nodes 3/3  vrouters 0/0\n"),
        "{text}"
    );
    assert!(text.contains("cassandra  3/3    active  R24.1    41d\n"), "{text}");
}

#[test]
fn what_needs_a_component_that_is_down_is_blocked_by_it_and_that_is_the_cause() {
    let starts = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "cassandra", "ready": false, "state": {"running": {}}}]});
    let report = said(&world(vec![
        bad("Control", "NeedsNotReady", "waits for Config config1", vec![]),
        bad("Config", "NeedsNotReady", "waits for Cassandra cassandra1", vec![]),
        bad("Cassandra", "PodsNotReady", "0 of 3 pods ready", pods("Cassandra", &NODES, &starts)),
        up("Zookeeper"),
        up("Rabbitmq"),
    ]));
    assert_eq!((report.state, report.exit()), (State::Degraded, Exit::Findings));
    assert_eq!(report.since.as_deref(), Some(EARLIER));
    assert_eq!(causes(&report), ["Cassandra cassandra1"]);
    assert_eq!(report.causes[0].affects, ["Config config1", "Control control1"]);
    assert_eq!(word(&report, "Cassandra"), Word::Initializing);
    assert_eq!(word(&report, "Config"), Word::Initializing);
    let blocked = report.components.iter().filter(|one| !one.blocked_by.is_empty());
    assert!(blocked.clone().all(|one| one.is_block_certain && !one.is_cause), "{report:?}");
    assert_eq!(blocked.count(), 2);
    let text = text(&report, 1, false);
    assert!(text.contains("degraded since 4m"), "{text}");
    assert!(
        text.contains("cause  Cassandra cassandra1: cassandra1-0 on m1: container cassandra"),
        "{text}"
    );
    assert!(text.contains("blocked by Cassandra cassandra1"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn of_one_that_still_does_its_work_it_is_not_claimed_that_it_is_why() {
    let mut some = pods("Cassandra", &NODES[..2], &runs());
    some.extend(pods("Cassandra", &NODES[2..], &waits("CrashLoopBackOff", "")).into_iter().map(
        |mut pod| {
            pod["metadata"]["name"] = json!("cassandra1-2");
            pod
        },
    ));
    let mut world = world(vec![
        bad("Cassandra", "PodsNotReady", "2 of 3 pods ready", some),
        bad(
            "Config",
            "PodsNotReady",
            "0 of 3",
            pods("Config", &NODES, &waits("CrashLoopBackOff", "")),
        ),
    ]);
    let Read::Known(managers) = &mut world.managers else { panic!() };
    managers[0]["status"]["cassandras"] = json!([{"name": "cassandra1", "active": true}]);
    let report = said(&world);
    let config = report.components.iter().find(|one| one.kind == "Config").unwrap();
    assert_eq!((config.state, config.is_block_certain), (Word::Inactive, false));
    let note = super::text::note(config);
    assert!(note.starts_with("perhaps because of Cassandra cassandra1; config1-0 on m1"), "{note}");
    assert!(note.contains("CrashLoopBackOff ended with 137 OOMKilled"), "{note}");
}

#[test]
fn an_image_that_is_missing_is_a_cause_of_its_own_whatever_else_is_down() {
    let no_image = waits("ImagePullBackOff", "Back-off pulling image \"r/api:1\"");
    let report = said(&world(vec![
        bad("Cassandra", "NoNodes", "no node has the labels x=y: label nodes", vec![]),
        bad("Config", "PodsNotReady", "0 of 3 pods ready", pods("Config", &NODES, &no_image)),
    ]));
    assert_eq!(causes(&report), ["Cassandra cassandra1", "Config config1"]);
    assert!(report.causes[1].message.contains("ImagePullBackOff Back-off pulling"), "{report:?}");
    assert!(report.causes[0].look.contains("cassandras.tf.tungsten.io cassandra1"), "{report:?}");
    assert!(report.causes[1].look.starts_with("kubectl describe pod -n tf config1-"), "{report:?}");
}

#[test]
fn a_lost_node_is_the_cause_of_all_that_is_missing_on_it() {
    let mut world = world(vec![
        bad("Zookeeper", "PodsNotReady", "2 of 3 pods ready", pods("Zookeeper", &NODES, &runs())),
        bad("Redis", "PodsNotReady", "2 of 3 pods ready", pods("Redis", &NODES, &runs())),
    ]);
    world.nodes = Read::Known(vec![node("m1", "True"), node("m2", "True"), node("m3", "Unknown")]);
    let report = said(&world);
    assert_eq!(causes(&report), ["Node m3"]);
    assert_eq!(report.causes[0].affects.len(), 2);
    assert_eq!((word(&report, "Redis"), report.nodes), (Word::Timeout, Counts::new(2, 3)));
    let redis = report.components.iter().find(|one| one.kind == "Redis").unwrap();
    assert_eq!(
        (&redis.blocked_by, redis.pods_ready),
        (&vec!["Node m3".to_owned()], Counts::new(2, 3))
    );
}

#[test]
fn what_may_not_be_read_is_unknown_and_the_rest_is_said() {
    let mut some = world(vec![up("Redis")]);
    some.nodes = Read::Unknown("nodes is forbidden".into());
    some.secrets = Read::Unknown("secrets is forbidden".into());
    let report = said(&some);
    assert_eq!((report.state, report.exit()), (State::Active, Exit::Done));
    assert_eq!(report.not_read.len(), 2);
    let text = text(&report, 1, false);
    assert!(text.contains("nodes ?") && text.contains("certificates         ?  "), "{text}");

    some.pods = Read::Unknown("pods is forbidden".into());
    assert_eq!(said(&some).components[0].pods_ready, Counts::new(1, 3), "by the StatefulSet");
    some.stateful_sets = Read::Unknown("statefulsets is forbidden".into());
    assert_eq!(said(&some).components[0].pods_ready.text(), "?");

    let why = || Read::Unknown("forbidden".to_owned());
    let nothing = World { managers: why(), pods: why(), stateful_sets: why(), ..World::default() };
    assert_eq!(said(&nothing).exit(), Exit::Unreachable);
    // Of the workloads alone it can be said that something is wrong, and not that nothing is.
    let mut workloads = world(vec![up("Redis")]);
    workloads.managers = why();
    assert_eq!(said(&workloads).state, State::Unknown);
    workloads.pods = Read::Known(pods("Redis", &NODES, &waits("ImagePullBackOff", "")));
    assert_eq!(said(&workloads).state, State::Degraded);
}

#[test]
fn a_stateful_set_for_each_node_is_one_service() {
    let mut apart = world(vec![up("Zookeeper")]);
    let Read::Known(sets) = &mut apart.stateful_sets else { panic!("they are known") };
    let set = sets.pop().unwrap();
    sets.extend(NODES.iter().map(|node| {
        let mut of_node = set.clone();
        of_node["metadata"]["name"] = format!("zookeeper1-zookeeper-{node}").into();
        of_node["spec"]["replicas"] = 1.into();
        of_node["status"]["readyReplicas"] = 1.into();
        of_node
    }));
    let whole = |world: &World| {
        let report = said(world);
        (report.components.len(), report.components[0].pods_ready)
    };
    assert_eq!(whole(&apart), (1, Counts::new(3, 3)));
    apart.pods = Read::Unknown("pods is forbidden".into());
    assert_eq!(whole(&apart), (1, Counts::new(3, 3)), "by the StatefulSets");
}

#[test]
fn without_anything_of_opensdn_that_is_said() {
    let report = said(&World::default());
    assert_eq!((report.state, report.exit()), (State::Absent, Exit::Findings));
    assert!(text(&report, 1, false).contains("no Manager and no component"));
}

#[test]
fn a_failed_pod_that_was_replaced_is_no_error() {
    let mut all = pods("Redis", &NODES, &runs());
    all.extend(pods("Redis", &["m1"], &json!({"phase": "Failed", "reason": "Evicted"})));
    let report = said(&world(vec![service("Redis", all)]));
    assert_eq!((report.state, report.components[0].pods.len()), (State::Active, 3));
}

#[test]
fn a_status_of_an_earlier_spec_counts_for_nothing() {
    let mut world = world(vec![up("Redis")]);
    let Read::Known(managers) = &mut world.managers else { panic!() };
    managers[0]["metadata"]["generation"] = json!(3);
    managers[0]["spec"]["services"]["webui"] = json!({"metadata": {"name": "webui1"}});
    let report = said(&world);
    assert_eq!(
        (word(&report, "Redis"), word(&report, "Webui")),
        (Word::Initializing, Word::Initializing)
    );
    assert_eq!(report.components[0].reason, "NotReported");
    assert_eq!(report.state, State::Degraded);
}

#[test]
fn of_a_manager_of_tf_operator_its_own_fields_are_read() {
    let mut world = world(vec![up("Zookeeper")]);
    let Read::Known(managers) = &mut world.managers else { panic!() };
    managers[0]["spec"]["services"] = json!({"zookeeper": {"metadata": {"name": "zookeeper1"}},
        "cassandras": [{"metadata": {"name": "configdb1"}}]});
    managers[0]["status"] = json!({"zookeeper": {"name": "zookeeper1", "active": true},
        "cassandras": [{"name": "configdb1", "active": false}]});
    let report = said(&world);
    assert_eq!(
        (word(&report, "Zookeeper"), word(&report, "Cassandra")),
        (Word::Active, Word::Initializing)
    );
    assert_eq!(causes(&report), ["Cassandra configdb1"]);
}

#[test]
fn what_is_stopped_by_an_annotation_is_inactive_and_the_cause() {
    let why = "the annotation opensdn.io/stopped is set: no pod runs until it is removed";
    let stopped = Service { ready: true, ..bad("Redis", "Stopped", why, vec![]) };
    let report = said(&world(vec![stopped]));
    assert_eq!((word(&report, "Redis"), report.state), (Word::Inactive, State::Degraded));
    assert_eq!(report.causes[0].message, why);
}

#[test]
fn an_operator_that_is_silent_is_a_cause_and_one_that_is_not_there_is_said() {
    let lease = |renewed: &str| Read::Known(json!({"spec": {"renewTime": renewed}}));
    let mut world = world(vec![up("Redis")]);
    assert_eq!(said(&world).around[0].message, "not installed");
    assert_eq!(said(&world).state, State::Active, "who looks after it is another matter");
    world.lease = lease("2026-11-24T11:59:50.123456Z");
    assert_eq!(said(&world).around[0].state, Some(Word::Active), "it runs elsewhere");
    world.lease = lease("2026-11-24T11:50:00.000000Z");
    let report = said(&world);
    assert_eq!((report.state, causes(&report)), (State::Degraded, vec!["operator".to_owned()]));
    assert!(report.causes[0].message.contains("no operator has acted for 10m"), "{report:?}");
}

#[test]
fn a_cluster_in_which_all_is_active_and_pods_reach_nothing_is_degraded() {
    let [good, bad] = crate::connectivity::tests::reports();
    let mut report = said(&world(vec![up("Redis")]));
    report.add(good.clone());
    assert_eq!((report.state, causes(&report)), (State::Active, vec![]));
    assert!(text(&report, 1, false).contains("connectivity  8 passed"));
    report.add(bad);
    let cause = "Connectivity pod-to-service".to_owned();
    assert_eq!((report.state, causes(&report)), (State::Degraded, vec![cause]));
    let shown = text(&report, 1, false);
    assert!(
        shown.contains("cause  Connectivity pod-to-service: ")
            && shown.contains("Connection refused"),
        "{shown}"
    );
    let mut unknown = said(&world(vec![up("Redis")]));
    unknown.lacks_connectivity("pods may not be made".to_owned());
    assert_eq!((unknown.state, unknown.exit()), (State::Unknown, Exit::Unreachable));
    let mut hidden = said(&world(vec![up("Redis")]));
    let mut silent = good.clone();
    silent.tests[0].result = crate::checks::report::Outcome::Uncertain;
    hidden.add(silent);
    assert_eq!(hidden.state, State::Unknown, "one test does not say");
    // Where nothing of OpenSDN is there to be degraded, it is said all the same.
    let mut absent = said(&World::default());
    absent.add(good);
    assert_eq!(absent.state, State::Absent);
    assert!(text(&absent, 1, false).contains("connectivity  8 passed"));
}

#[test]
fn a_manager_in_a_namespace_that_the_operator_does_not_watch_is_a_cause() {
    let mut world = world(vec![up("Redis")]);
    let watches = |namespaces: &str| {
        let variables = json!([{"name": "OPENSDN_OPERATOR_NAMESPACES", "value": namespaces}]);
        Read::Known(
            json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [{"env": variables}]}}},
            "status": {"readyReplicas": 1}}),
        )
    };
    for seen in ["", "tf", "other,tf"] {
        world.operator = watches(seen);
        assert_eq!(said(&world).state, State::Active, "{seen}");
    }
    world.operator = watches("other, more");
    let report = said(&world);
    assert_eq!(
        (report.state, causes(&report)),
        (State::Degraded, vec!["Manager cluster1".to_owned()])
    );
    let message = &report.managers[0].message;
    assert!(
        message.contains("no operator watches the namespace tf: it watches other, more;"),
        "{message}"
    );
    assert!(message.contains("operator.watchedNamespaces=other,more,tf"), "{message}");
}

#[test]
fn a_webhook_of_which_no_replica_lives_is_a_cause_also_where_there_is_no_manager() {
    let lease = |renewed: &str| {
        Read::Known(json!({"spec": {"renewTime": renewed, "holderIdentity": "replica-1"}}))
    };
    let policy = json!({"metadata": {"name": "a", "generation": 1}, "status": {"observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "message": "it runs"}]}});
    let mut world = World { policies: Read::Known(vec![policy]), ..World::default() };
    let part = |world: &World, name: &str| {
        let found = said(world).around.into_iter().find(|part| part.name == name);
        found.map(|part| (part.state, part.message)).unwrap()
    };
    world.webhook_lease = lease("2026-11-24T11:59:50.123456Z");
    assert_eq!(part(&world, "webhook"), (Some(Word::Active), String::new()));
    assert_eq!(said(&world).state, State::Absent);
    let alive = text(&said(&world), 1, false);
    assert!(alive.contains("no Manager and no component") && alive.contains("webhook"), "{alive}");

    world.webhook_lease = lease("2026-11-24T11:50:00.000000Z");
    world.reviews = Read::Known(json!({}));
    let (state, message) = part(&world, "webhook");
    assert_eq!(state, Some(Word::Timeout));
    assert!(message.starts_with("no replica has acted for 10m: "), "{message}");
    assert_eq!(part(&world, "policies").0, Some(Word::Inactive), "they say that they run");
    let report = said(&world);
    assert_eq!((report.state, causes(&report)), (State::Degraded, vec!["webhook".to_owned()]));

    world.webhook = Read::Known(json!({"spec": {"replicas": 2}, "status": {}}));
    let (state, message) = part(&world, "webhook");
    assert_eq!((state, &*message), (Some(Word::Inactive), "none of 2 replicas is ready"));

    // They judge, and none can lead.
    world.webhook = Read::Known(json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}));
    let (state, message) = part(&world, "webhook");
    assert!(
        state == Some(Word::Active) && message.starts_with("no replica leads for 10m"),
        "{message}"
    );
    assert_eq!(part(&world, "policies").0, Some(Word::Active));
    assert_eq!(said(&world).state, State::Absent);

    // All of them went with their CRD.
    let kept = std::mem::replace(&mut world.policies, Read::Absent);
    let (state, message) = part(&world, "policies");
    assert!(state == Some(Word::Inactive) && message.contains("nothing is judged"), "{message}");
    assert_eq!(causes(&said(&world)), ["policies"]);
    world.policies = kept;

    // It was removed by hand, or ended in order.
    world.webhook = Read::Absent;
    world.reviews = Read::Absent;
    assert_eq!(part(&world, "webhook"), (None, "not installed".to_owned()));
    world.reviews = Read::Known(json!({}));
    world.webhook_lease =
        Read::Known(json!({"spec": {"renewTime": "2026-11-24T11:50:00Z", "holderIdentity": ""}}));
    assert_eq!(part(&world, "webhook"), (None, "not installed".to_owned()));
}

#[test]
fn where_only_the_webhook_configurations_are_left_that_is_said_with_the_command_that_removes_them()
{
    let policy =
        json!({"metadata": {"name": "a", "generation": 2}, "status": {"observedGeneration": 1}});
    let called = |namespace: &str, policy: &str| {
        Read::Known(json!({"webhooks": [{"failurePolicy": policy,
            "clientConfig": {"service": {"namespace": namespace, "name": "opensdn-webhook"}}}]}))
    };
    let mut world = World { policies: Read::Known(vec![policy]), ..World::default() };
    world.reviews = called("opensdn-system", "Fail");
    let report = said(&world);
    assert_eq!((report.state, causes(&report)), (State::Degraded, vec!["webhook".to_owned()]));
    for part in [
        "not installed, but its webhook configurations are, so that what it judges is refused",
        "kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration opensdn-webhook",
    ] {
        assert!(report.causes[0].message.contains(part), "{report:?}");
    }
    let policies = report.around.iter().find(|part| part.name == "policies").unwrap();
    assert!(policies.message.starts_with("no replica of the webhook runs them"), "{policies:?}");
    world.reviews = called("opensdn-system", "Ignore");
    assert!(said(&world).causes[0].message.contains("passes unjudged"));
    world.reviews = called("elsewhere", "Fail");
    let webhook = said(&world).around.into_iter().find(|part| part.name == "webhook").unwrap();
    assert_eq!((webhook.degrades, webhook.message.as_str()), (false, "not installed"));
}

#[test]
fn of_several_policies_the_worst_is_named_and_claims_that_cannot_be_written_are_among_it() {
    let policy = |name: &str, generation: i64, conditions: Value| {
        json!({"metadata": {"name": name, "generation": generation},
            "status": {"observedGeneration": 1, "conditions": conditions}})
    };
    let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": format!("why {reason}")});
    let ready = || condition("Ready", "True", "Serving");
    let unique = |reason: &str| json!([ready(), condition("UniquenessHolds", "False", reason)]);
    let mut all = vec![
        policy("a-not-observed", 2, json!([ready()])),
        policy("b-loading", 1, json!([condition("Ready", "False", "Loading")])),
        policy("c-not-claimed", 1, unique("ClaimsNotWritten")),
        policy(
            "d-lost",
            1,
            json!([
                condition("Ready", "False", "CacheFull"),
                condition("Stalled", "True", "CacheFull")
            ]),
        ),
        policy("e-claims", 1, unique("ClaimingStoredObjects")),
    ];
    let mut world = world(vec![up("Redis")]);
    for (ready, message) in [
        ((2, 5), "d-lost: why CacheFull"),
        ((2, 4), "c-not-claimed: why ClaimsNotWritten"),
        ((1, 3), "b-loading: why Loading"),
        ((1, 2), "a-not-observed: the webhook has not reported of its present specification"),
    ] {
        world.policies = Read::Known(all.clone());
        let report = said(&world);
        let part = report.around.into_iter().find(|part| part.name == "policies").unwrap();
        assert_eq!((part.ready, part.message.as_str()), (Counts::new(ready.0, ready.1), message));
        assert!(part.degrades);
        let worst = message.split(':').next();
        all.retain(|one| one["metadata"]["name"].as_str() != worst);
    }
    world.policies = Read::Known(all);
    assert_eq!(said(&world).state, State::Active, "it is under way");
}

#[test]
fn a_policy_that_is_not_in_force_degrades_the_cluster() {
    let policy = |name: &str, status: &str, generation: i64| {
        json!({
        "metadata": {"name": name, "generation": generation},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": status, "message": "digest"}]}})
    };
    let mut world = world(vec![up("Redis")]);
    world.policies = Read::Known(vec![policy("a", "True", 1), policy("b", "False", 1)]);
    let report = said(&world);
    let part = report.around.iter().find(|part| part.name == "policies").unwrap();
    assert_eq!((part.ready, part.message.as_str()), (Counts::new(1, 2), "b: digest"));
    assert_eq!(report.state, State::Degraded);
    world.policies = Read::Known(vec![policy("a", "True", 1)]);
    assert_eq!(said(&world).state, State::Active);
    world.policies = Read::Known(vec![policy("a", "True", 2)]);
    assert_eq!(said(&world).state, State::Degraded, "it is not about the present spec");
}

#[test]
fn what_policies_denied_is_said_of_them_and_a_question_mark_where_it_is_not_known() {
    use super::denied::Denied;

    let policy = json!({"metadata": {"name": "a", "generation": 1},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}});
    let mut world = world(vec![up("Redis")]);
    world.policies = Read::Known(vec![policy]);
    let since = "2026-11-12T12:00:00Z".to_owned();
    for (denied, message) in [
        (Denied::Nothing, ""),
        (Denied::Known { reviews: 3, since }, "denied 3 in 12d"),
        (Denied::Unknown("pods is forbidden".to_owned()), "denied ?"),
    ] {
        world.denied = denied.clone();
        let report = said(&world);
        let part = report.around.iter().find(|part| part.name == "policies").unwrap();
        assert_eq!((report.state, part.message.as_str()), (State::Active, message));
        let why = report.not_read.iter().find(|one| one.what.contains("denied"));
        assert_eq!(why.map(|one| one.why.as_str()), denied.why_unknown());
    }
}

#[test]
fn depth_shows_pods_and_their_containers() {
    let crash = waits("CrashLoopBackOff", "back-off");
    let report =
        said(&world(vec![bad("Redis", "PodsNotReady", "", pods("Redis", &["m1"], &crash))]));
    assert!(!text(&report, 1, false).contains("  redis1-0  "));
    let pods = text(&report, 2, false);
    assert!(pods.contains("  redis1-0") && pods.contains("on m1: container main"), "{pods}");
    assert!(text(&report, 3, false).contains("4 restarts CrashLoopBackOff"), "{pods}");
    let wide = text(&report, 1, true);
    assert!(wide.contains("REASON") && wide.contains("PodsNotReady  m1"), "{wide}");
}

#[test]
fn a_long_name_of_a_pod_does_not_widen_the_table() {
    let mut report = said(&world(vec![up("Redis")]));
    let name = "redis1-redis-statefulset-of-a-manager-with-a-long-name-0";
    report.components[0].pods[0].name = name.to_owned();
    let text = text(&report, 3, false);
    assert!(text.contains(&format!("  {name}\n")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn of_one_kind_or_one_node_only_that_is_judged() {
    let all = vec![up("Redis"), bad("Cassandra", "NoNodes", "no node", vec![])];
    let mut report = said(&world(all));
    report.narrow(Some("Redis"), None);
    assert_eq!((report.state, report.causes.len(), report.components.len()), (State::Active, 0, 1));
    report.narrow(None, Some("m2"));
    assert_eq!(report.components[0].pods.len(), 1);
    let mut out = Vec::new();
    report.write_legacy(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "== Contrail redis ==\nmain: active\n");
    report.narrow(None, Some("no-such-node"));
    assert_eq!(report.state, State::Absent);
}

#[test]
fn a_node_is_missing_where_neither_it_nor_a_pod_of_it_is_there_and_nodes_are_known() {
    let mut world = world(vec![up("Redis")]);
    world.nodes = Read::Known(vec![json!({"metadata": {"name": "w1"}})]);
    assert_eq!(["w1", "m2", "w9"].map(|node| world.lacks_node(node)), [false, false, true]);
    world.nodes = Read::Unknown("nodes is forbidden".into());
    assert!(!world.lacks_node("w9"));
}

#[test]
fn what_looks_like_contrail_status_has_its_words() {
    let with = |kind: &'static str, containers: &[&str]| {
        let running = |name: &&str| json!({"name": name, "ready": true, "state": {"running": {}}});
        let running: Vec<Value> = containers.iter().map(running).collect();
        let status = json!({"phase": "Running", "containerStatuses": running,
            "conditions": [{"type": "Ready", "status": "True"}]});
        service(kind, pods(kind, &["m1"], &status))
    };
    let all = vec![
        with("Cassandra", &["cassandra", "nodemanager", "provisioner"]),
        with("Config", &["servicemonitor", "schematransformer"]),
        with("Vrouter", &["vrouteragent", "nodemanager"]),
        with("Zookeeper", &["zookeeper"]),
    ];
    let mut out = Vec::new();
    said(&world(all)).write_legacy(&mut out).unwrap();
    let expected = "== Contrail config ==\nsvc-monitor: active\nschema: active\n\n\
        == Contrail database ==\ncassandra: active\nnodemgr: active\nzookeeper: active\n\n\
        == Contrail vrouter ==\nagent: active\nnodemgr: active\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn what_is_wrong_with_the_manager_itself_is_said() {
    let mut world = world(vec![up("Redis")]);
    let Read::Known(managers) = &mut world.managers else { panic!() };
    managers[0]["status"]["conditions"][0]["status"] = json!("False");
    managers[0]["status"]["conditions"][0]["message"] = json!("spec.services.webui has no name");
    let report = said(&world);
    assert_eq!(
        (report.state, causes(&report)),
        (State::Degraded, vec!["Manager cluster1".to_owned()])
    );
    assert_eq!(report.causes[0].message, "spec.services.webui has no name");
}

#[test]
fn nothing_of_a_cluster_is_obeyed_by_a_terminal() {
    let evil = waits("ImagePullBackOff", "\u{1b}[2J\u{9b}31m\n x");
    let report =
        said(&world(vec![bad("Redis", "PodsNotReady", "", pods("Redis", &["m1"], &evil))]));
    let mut out = Vec::new();
    report
        .write(
            NOW.parse().unwrap(),
            Detail { depth: 3, wide: false },
            Layout { width: 80, unicode: false },
            &mut out,
        )
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains("\u{1b}[2J") && !text.contains('\u{9b}'), "{text:?}");
}

#[test]
fn what_a_watch_compares_has_a_line_for_each_part() {
    let lines = said(&world(vec![up("Redis")])).lines();
    let lines: Vec<String> = lines.iter().map(|(key, line)| format!("{key}: {line}")).collect();
    assert_eq!(
        lines,
        [
            "OpenSDN: active",
            "Redis tf/redis1: 3/3 active",
            "operator: - not installed",
            "webhook: - not installed"
        ]
    );
}

/// The commonest failure of all: no module for the kernel, so no vrouter, so no network, so no ready node.
#[test]
fn nodes_that_wait_for_the_network_are_not_why_their_vrouter_ends() {
    let crashing = json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}],
        "initContainerStatuses": [{"name": "kernel-init", "ready": false, "restartCount": 7,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]});
    let vrouters =
        bad("Vrouter", "PodsNotReady", "0 of 3 pods ready", pods("Vrouter", &NODES, &crashing));
    let control = up("Control");
    let mut world = world(vec![vrouters, control]);
    let waiting = |name: &str| {
        let mut node = node(name, "False");
        node["status"]["conditions"][0]["message"] = json!(
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
        );
        node
    };
    world.nodes = Read::Known(NODES.iter().map(|name| waiting(name)).collect());
    let report = said(&world);
    assert_eq!(causes(&report), ["Vrouter vrouter1"], "{:#?}", report.causes);
    assert!(report.causes[0].message.contains("kernel-init"), "{}", report.causes[0].message);
    assert!(
        report.causes[0].affects.contains(&"Node m1".to_owned()),
        "{:?}",
        report.causes[0].affects
    );
    assert_eq!(word(&report, "Control"), Word::Active, "its pods run");
    // A node of which nobody has heard is.
    world.nodes = Read::Known(NODES.iter().map(|name| node(name, "Unknown")).collect());
    let report = said(&world);
    assert_eq!(causes(&report), ["Node m1", "Node m2", "Node m3"]);
    assert_eq!(word(&report, "Control"), Word::Timeout);
}
