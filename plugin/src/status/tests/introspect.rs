//! What is said of daemons that the operator has asked.

use super::*;

/// A cluster whose service of that kind the operator has asked.
fn heard(services: Vec<Service>, kind: &str, introspect: Value) -> World {
    let mut world = world(services);
    let Read::Known(managers) = &mut world.managers else { panic!("they are known") };
    let rows = managers[0]["status"]["services"].as_array_mut().unwrap();
    let row = rows.iter_mut().find(|row| row["kind"] == kind).unwrap();
    row["introspect"] = introspect;
    world
}

fn main_of(pod: &str, state: &str, message: &str) -> Value {
    json!({"pod": pod, "node": "m2", "container": "main", "state": state, "message": message})
}

#[test]
fn sessions_stand_in_the_first_line_and_a_good_daemon_changes_nothing() {
    let mut world = heard(
        vec![up("Control"), up("Vrouter")],
        "Control",
        json!({"functional": 6, "daemons": 6, "bgp": {"up": 4, "all": 4}}),
    );
    let Read::Known(managers) = &mut world.managers else { panic!("they are known") };
    managers[0]["status"]["services"][1]["introspect"] =
        json!({"functional": 3, "daemons": 3, "xmpp": {"up": 3, "all": 3}});
    let report = said(&world);
    assert_eq!(report.state, State::Active);
    let text = text(&report, 1, false);
    assert!(text.lines().next().unwrap().ends_with("  xmpp 3/3  bgp 4/4"), "{text}");
    let control = report.components.iter().find(|one| one.kind == "Control").unwrap();
    assert_eq!(control.daemons, Some(Counts::new(6, 6)));
}

#[test]
fn a_ready_pod_whose_daemon_does_not_work_is_the_cause_and_its_log_is_what_to_look_at() {
    let why = "XMPP:control-node:10.0.0.1 connection down";
    let introspect = json!({"functional": 2, "daemons": 3, "xmpp": {"up": 2, "all": 3},
        "notActive": [main_of("vrouter1-1", "initializing", why)]});
    let report = said(&heard(vec![up("Vrouter")], "Vrouter", introspect));
    assert_eq!((report.state, word(&report, "Vrouter")), (State::Degraded, Word::Initializing));
    assert_eq!(report.components[0].pods_ready, Counts::new(3, 3), "Kubernetes has them ready");
    assert_eq!(causes(&report), ["Vrouter vrouter1"]);
    let cause = &report.causes[0];
    assert!(cause.message.contains("m2: main: XMPP:control-node"), "{}", cause.message);
    assert_eq!(cause.look, "kubectl logs -n tf vrouter1-1 -c main --tail=100");
    assert_eq!(cause.since, None, "since when is not known: the pod is ready since long ago");
    let text = text(&report, 3, false);
    assert!(text.contains("xmpp 2/3"), "{text}");
}

#[test]
fn what_waits_for_a_service_whose_daemon_does_not_work_is_blocked_by_it() {
    let down = json!({"functional": 0, "daemons": 3, "notActive": [
        main_of("config1-0", "initializing", "Database:Cassandra[] connection down")]});
    let mut services = vec![up("Config")];
    services.push(bad(
        "Cassandra",
        "PodsNotReady",
        "1 of 3 pods ready",
        pods("Cassandra", &NODES, &waits("CrashLoopBackOff", "")),
    ));
    let report = said(&heard(services, "Config", down));
    assert_eq!(causes(&report), ["Cassandra cassandra1"]);
    let config = report.components.iter().find(|one| one.kind == "Config").unwrap();
    assert_eq!(config.blocked_by, ["Cassandra cassandra1"]);
}

#[test]
fn of_daemons_that_cannot_be_asked_it_is_said_and_they_are_no_cause() {
    let listed: Vec<Value> = (0..10)
        .map(|_| main_of("config1-0", "unknown", "its certificate is of another CA"))
        .collect();
    let introspect = json!({"functional": 0, "daemons": 12, "unknown": 12, "notActive": listed});
    let report = said(&heard(vec![up("Config")], "Config", introspect));
    assert_eq!((report.state, word(&report, "Config")), (State::Active, Word::Active));
    let message = "12 of 12 daemons cannot be asked: its certificate is of another CA";
    assert_eq!(report.components[0].not_asked.as_deref(), Some(message));
    assert!(text(&report, 1, false).contains(message));
}

#[test]
fn a_backup_is_as_it_should_be_and_what_cannot_be_told_is_no_trouble() {
    let introspect = json!({"functional": 3, "daemons": 3, "notActive": [
        main_of("config1-1", "backup", ""), main_of("config1-2", "unknown", "answered 404 Not Found")]});
    let report = said(&heard(vec![up("Config")], "Config", introspect));
    assert_eq!((report.state, word(&report, "Config")), (State::Active, Word::Active));
    let mut out = Vec::new();
    report.write_legacy(&mut out).unwrap();
    let legacy = String::from_utf8(out).unwrap();
    assert!(legacy.contains("m2 main: backup\n"), "{legacy}");
    assert!(legacy.contains("m3 main: ? (answered 404 Not Found)"), "{legacy}");
}

#[test]
fn of_a_daemon_of_which_one_works_it_is_said_how_many_wait() {
    let introspect = json!({"functional": 3, "daemons": 3, "notActive": [
        main_of("config1-1", "backup", ""), main_of("config1-2", "backup", "")]});
    let report = said(&heard(vec![up("Config")], "Config", introspect));
    assert_eq!((report.state, word(&report, "Config")), (State::Active, Word::Active));
    let roles: Vec<(&str, usize, usize)> = report.components[0]
        .roles
        .iter()
        .map(|one| (&*one.daemon, one.active, one.backup))
        .collect();
    assert_eq!(roles, [("main", 1, 2)]);
    let shown = text(&report, 1, false);
    assert!(shown.contains("\n  main     1+2    active+backup"), "{shown}");
    // Two that seem to work: not all that wait are listed.
    let introspect =
        json!({"functional": 3, "daemons": 3, "notActive": [main_of("config1-1", "backup", "")]});
    let report = said(&heard(vec![up("Config")], "Config", introspect));
    assert!(report.components[0].roles.is_empty(), "{:?}", report.components[0].roles);
}

#[test]
fn what_no_pod_shows_is_counted_and_what_cannot_be_is_not_shown() {
    let of = |introspect: Value| said(&heard(vec![up("Config")], "Config", introspect));
    let report = of(json!({"functional": 1, "daemons": 3}));
    assert_eq!(word(&report, "Config"), Word::Initializing);
    assert_eq!(report.causes[0].message, "1 of 3 daemons work");
    let gone = of(
        json!({"functional": 2, "daemons": 3, "notActive": [main_of("config1-9", "timeout", "")]}),
    );
    assert_eq!(gone.causes[0].message, "2 of 3 daemons work");
    for absurd in [
        json!({"functional": -5, "daemons": -3, "xmpp": {"up": -1, "all": -9}}),
        json!({"functional": 9, "daemons": 3, "xmpp": {"up": 5, "all": 1}}),
    ] {
        let report = of(absurd);
        assert_eq!((report.state, report.xmpp), (State::Active, None));
        assert_eq!(report.components[0].daemons, None);
    }
    let lines = of(json!({"notActive": [main_of("config1-0", "timeout", "a\nb\u{1b}[2J")]}));
    let cause = &lines.causes[0].message;
    assert!(cause.contains("main: a b") && !cause.contains('\u{1b}'), "{cause:?}");
}

#[test]
fn of_a_pod_that_is_gone_or_not_ready_kubernetes_says_more() {
    let introspect = json!({"notActive": [
        main_of("config1-9", "timeout", "does not answer"), main_of("config1-0", "timeout", "does not answer")]});
    let waiting = pods("Config", &["m1"], &waits("ImagePullBackOff", "no such image"));
    let world = heard(vec![bad("Config", "PodsNotReady", "", waiting)], "Config", introspect);
    let report = said(&world);
    assert_eq!(word(&report, "Config"), Word::Inactive);
    assert!(report.causes[0].message.contains("no such image"), "{}", report.causes[0].message);
    // An earlier operator, and one that writes what is not known here.
    for other in [json!("x"), json!({"notActive": [{"state": "dancing"}]}), json!({})] {
        let report = said(&heard(vec![up("Config")], "Config", other));
        assert_eq!((report.state, report.xmpp), (State::Active, None));
    }
}
