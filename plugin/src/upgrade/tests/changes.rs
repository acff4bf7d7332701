//! What a user wants of an Upgrade, and what becomes of it.

use opensdn_crds::upgrade::{Goal, Phase, UpgradeSpec, UpgradeStatus};
use serde_json::{Value, json};

use super::{status, upgrade};
use crate::exit::{Exit, Failure};
use crate::upgrade::attach::{Way, comes_first, free_name, way};
use crate::upgrade::edit::{Edit, pause, resume, retry, skip};
use crate::upgrade::follow::Silence;
use crate::upgrade::next_command::NextCommand;
use crate::upgrade::stage::{self, Want, chosen};
use crate::upgrade::way_back::{UpgradeRollBack, refuse_behind, roll_back};
use std::time::Duration;

#[track_caller]
fn written(edit: Result<Edit, Failure>) -> Value {
    match edit.unwrap() {
        Edit::Write(spec, _) => spec,
        Edit::Already(why) => panic!("nothing is written: {why}"),
    }
}

#[track_caller]
fn already(edit: Result<Edit, Failure>) -> String {
    match edit.unwrap() {
        Edit::Already(why) => why,
        Edit::Write(spec, _) => panic!("{spec} is written"),
    }
}

#[track_caller]
fn refused(edit: Result<Edit, Failure>) -> &'static str {
    let failure = edit.unwrap_err();
    assert!(matches!(failure.exit, Exit::Refused | Exit::Usage), "{failure:?}");
    failure.code
}

#[test]
fn an_upgrade_pauses_where_something_is_to_come() {
    let running = status("Running", &["config Running"], &[]);
    assert_eq!(written(pause(&upgrade(json!({}), running.clone()))), json!({"paused": true}));
    assert!(already(pause(&upgrade(json!({"paused": true}), running))).contains("paused"));
    assert_eq!(written(pause(&upgrade(json!({}), json!(null)))), json!({"paused": true}));
    for (phase, code) in [("Succeeded", "over"), ("RolledBack", "over"), ("Refused", "not-started")]
    {
        assert_eq!(refused(pause(&upgrade(json!({}), status(phase, &[], &[])))), code, "{phase}");
    }
    for phase in ["RollingBack", "Stopped"] {
        let found = refused(pause(&upgrade(json!({}), status(phase, &[], &[]))));
        assert_eq!(found, "not-pausable", "{phase}");
    }
}

#[test]
fn an_upgrade_continues_with_the_wave_before_which_it_waits_and_waits_before_the_next() {
    let waits =
        || status("Paused", &["config Succeeded", "control Pending", "vrouters Pending"], &[]);
    let before = |waves: &[&str]| upgrade(json!({"pauseBefore": waves}), waits());
    assert_eq!(
        written(resume(&before(&["control", "vrouters"]))),
        json!({"paused": false, "pauseBefore": ["vrouters"]})
    );
    assert_eq!(
        written(resume(&before(&["control"]))),
        json!({"paused": false, "pauseBefore": null})
    );
    // It waits for another reason, and is asked to wait before the wave that is ahead.
    let both = upgrade(json!({"paused": true, "pauseBefore": ["vrouters"]}), waits());
    assert_eq!(written(resume(&both)), json!({"paused": false}));
    let running = status("Running", &["config Running", "control Pending"], &[]);
    let ahead = upgrade(json!({"pauseBefore": ["control"]}), running);
    assert_eq!(already(resume(&ahead)), "it is not paused");
    let mut by_manager = waits();
    by_manager["message"] = json!("the Manager is paused: the annotation");
    let why = already(resume(&upgrade(json!({}), by_manager)));
    assert_eq!(why, "the Manager is paused: the annotation");
    assert_eq!(refused(resume(&upgrade(json!({}), status("Stopped", &[], &[])))), "stopped");
}

#[test]
fn only_what_has_stopped_is_tried_again_and_each_time_by_a_greater_number() {
    let stopped = |done: i64| {
        let mut status = status("Stopped", &["config Failed"], &["Config/a config Failed"]);
        status["retries"] = json!(done);
        status
    };
    assert_eq!(written(retry(&upgrade(json!({}), stopped(0)))), json!({"retries": 1}));
    assert_eq!(written(retry(&upgrade(json!({"retries": 2}), stopped(4)))), json!({"retries": 5}));
    assert!(already(retry(&upgrade(json!({"retries": 5}), stopped(4)))).contains("not started"));
    let stuck = upgrade(json!({"goal": "RollBack", "retries": 1}), stopped(0));
    assert_eq!(written(retry(&stuck)), json!({"retries": 2, "goal": "Upgrade"}), "no way back");
    let back = status("Stopped", &["config RollingBack"], &["Config/a config RollingBack"]);
    assert_eq!(written(retry(&upgrade(json!({"goal": "RollBack"}), back))), json!({"retries": 1}));
    let running = upgrade(json!({}), status("Running", &[], &[]));
    assert_eq!(refused(retry(&running)), "not-stopped");
    assert!(retry(&running).unwrap_err().message.contains("it is Running"));
}

#[test]
fn a_step_is_left_out_with_the_reason_and_who_wants_it() {
    let steps =
        ["Webui/a web-ui Failed", "Config/a config Succeeded", "Redis/a data-stores Failed"];
    let stopped = upgrade(
        json!({"skip": [{"step": "Redis/a", "reason": "later"}]}),
        status("Stopped", &["web-ui Failed"], &steps),
    );
    let edit = skip(&stopped, "webui/A", "broken node", Some("alice"));
    let expected = json!({"skip": [
        {"step": "Redis/a", "reason": "later"},
        {"step": "Webui/a", "reason": "broken node", "requestedBy": "alice"}]});
    let Ok(Edit::Write(patch, said)) = edit else { panic!("{edit:?}") };
    assert_eq!(patch, expected);
    assert!(
        said.contains("Webui/a gets its earlier images again") && said.contains("Redis/a"),
        "{said}"
    );
    assert!(already(skip(&stopped, "Redis/a", "x", None)).contains("later"));
    assert_eq!(refused(skip(&stopped, "Config/a", "x", None)), "step-is-over");
    assert_eq!(refused(skip(&stopped, "Config/b", "x", None)), "no-step");
    let hint = skip(&stopped, "Config/b", "x", None).unwrap_err().hint;
    assert!(hint.contains("Webui/a, Config/a"), "{hint}");
}

#[test]
fn the_way_back_is_what_would_be_decided_and_says_what_stays() {
    let waves =
        ["data-stores Succeeded back", "config Succeeded", "control Running", "vrouters Pending"];
    let steps = [
        "Cassandra/c data-stores Succeeded",
        "Config/a config Succeeded",
        "Control/a control Running",
    ];
    let running = upgrade(json!({}), status("Running", &waves, &steps));
    let way = json!(UpgradeRollBack::of(&running));
    let back: Vec<_> =
        way["services"].as_array().unwrap().iter().map(|one| &one["service"]).collect();
    assert_eq!(back, ["Control/a", "Config/a"]);
    let image = json!({"container": "api", "from": "x/api:R25.1", "to": "x/api:R24.1"});
    assert_eq!(way["services"][0]["images"][0], image);
    assert_eq!(
        way["stays"],
        json!([{"wave": "data-stores", "why": "Cassandra/c: earlier ones do not read it"}])
    );
    assert_eq!(written(roll_back(&running)), json!({"goal": "RollBack"}));
    let lines = UpgradeRollBack::of(&running).lines().join("\n");
    assert!(lines.contains("back Control/a (wave control): api x/api:R24.1"), "{lines}");
    assert!(lines.contains("stays the wave data-stores: Cassandra/c"), "{lines}");

    let no_way =
        status("Running", &["data-stores Running back"], &["Cassandra/c data-stores Running"]);
    let no_way = upgrade(json!({}), no_way);
    assert_eq!(refused(roll_back(&no_way)), "no-way-back");
    assert_eq!(json!(UpgradeRollBack::of(&no_way))["stays"][0]["wave"], "data-stores");
}

#[test]
fn a_way_back_says_again_what_a_config_of_another_release_has_rewritten() {
    let done = status("Succeeded", &["config Succeeded"], &["Config/a config Succeeded"]);
    let way = UpgradeRollBack::of(&upgrade(json!({}), done.clone()));
    let lines = way.lines().join("\n");
    assert!(
        lines.contains("warning Config/a: the first API of another version (x/api:R25.1)"),
        "{lines}"
    );
    assert!(lines.contains("x/api:R24.1 gets the database as it is then"), "{lines}");
    let mut not_started = done;
    not_started["steps"][0]["ran"] = json!(false);
    assert!(UpgradeRollBack::of(&upgrade(json!({}), not_started)).warnings.is_empty());
    let other = status("Succeeded", &["control Succeeded"], &["Control/a control Succeeded"]);
    assert!(UpgradeRollBack::of(&upgrade(json!({}), other)).warnings.is_empty());
}

#[test]
fn one_goes_back_also_from_the_end_and_only_once() {
    let done = status("Succeeded", &["config Succeeded"], &["Config/a config Succeeded"]);
    assert_eq!(written(roll_back(&upgrade(json!({}), done.clone()))), json!({"goal": "RollBack"}));
    let mut unseen = done;
    unseen["observedGeneration"] = json!(1);
    assert!(
        already(roll_back(&upgrade(json!({"goal": "RollBack"}), unseen))).contains("not started")
    );
    let back = status("RollingBack", &["config RollingBack"], &["Config/a config RollingBack"]);
    assert!(already(roll_back(&upgrade(json!({}), back))).contains("going back"));
    let stopped = status("Stopped", &["config RollingBack"], &["Config/a config RollingBack"]);
    assert_eq!(refused(roll_back(&upgrade(json!({}), stopped))), "stopped");
    assert_eq!(
        already(roll_back(&upgrade(json!({}), status("Succeeded", &[], &[])))),
        "it has changed nothing"
    );
    for nothing in [json!(null), status("Refused", &[], &[]), status("Pending", &[], &[])] {
        assert_eq!(refused(roll_back(&upgrade(json!({}), nothing))), "nothing-changed");
    }
}

#[test]
fn it_is_over_when_the_operator_has_seen_the_last_wish() {
    let mut stopped = status("Stopped", &[], &[]);
    let is_over = |status: &Value| stage::is_over(&upgrade(json!({}), status.clone()));
    assert!(is_over(&stopped));
    assert_eq!(stage::exit(&upgrade(json!({}), stopped.clone())), Exit::Findings);
    stopped["observedGeneration"] = json!(1);
    assert!(!is_over(&stopped), "another try may be asked for");
    assert_eq!(stage::exit(&upgrade(json!({}), stopped)), Exit::Done);
    let done = status("Succeeded", &["config Succeeded"], &["Config/a config Succeeded"]);
    assert!(is_over(&done));
    assert!(!stage::is_over(&upgrade(json!({"goal": "RollBack"}), done)));
    assert!(!is_over(&status("Paused", &[], &[])) && !is_over(&json!(null)));
}

#[test]
fn every_phase_has_its_exit_code() {
    for phase in Phase::ALL {
        let status = UpgradeStatus { phase: Some(*phase), ..UpgradeStatus::default() };
        let code = stage::exit(&upgrade(json!({}), json!(status)));
        let is_bad = matches!(phase, Phase::Stopped | Phase::RolledBack | Phase::Refused);
        assert_eq!(code, if is_bad { Exit::Findings } else { Exit::Done }, "{phase}");
    }
}

#[test]
fn one_that_asks_for_the_same_is_attached_to_and_another_one_is_named() {
    let next = NextCommand::default();
    let running = upgrade(json!({"soak": "2m", "plan": "a1"}), status("Running", &[], &[]));
    let wanted = |more: Value| -> UpgradeSpec {
        let mut spec = json!({"manager": "cluster1", "version": "R25.1"});
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(spec).unwrap()
    };
    let go = |name: Option<&str>, more: Value| {
        way(std::slice::from_ref(&running), name, &wanted(more), &next)
            .map_err(|failure| failure.message)
    };
    let attached = Ok(Way::Attach(Box::new(running.clone())));
    assert_eq!(go(None, json!({})), attached);
    assert_eq!(go(Some("to-r25-1"), json!({"soak": "120s", "plan": "a1"})), attached);
    assert_eq!(go(None, json!({"pauseBefore": ["config"]})), attached, "it may be behind them");
    assert!(go(None, json!({"soak": "3m"})).unwrap_err().contains("another --soak"));
    let more = json!({"vroutersAtOnce": 2});
    assert!(go(None, more).unwrap_err().contains("another --vrouters-at-once"));
    assert!(go(None, json!({"prePull": false})).unwrap_err().contains("another --no-pre-pull"));
    let more = json!({"waitForDrain": true});
    assert!(go(None, more).unwrap_err().contains("another --wait-for-drain"));
    assert!(go(None, json!({"plan": "b2"})).unwrap_err().contains("another plan"));
    assert!(
        go(Some("to-r25-1"), json!({"version": "R26.1"})).unwrap_err().contains("other images")
    );
    assert!(go(None, json!({"registry": "r"})).unwrap_err().contains("other images"));
    assert_eq!(go(None, json!({"version": "R26.1"})), Ok(Way::Make(None)));
    assert_eq!(go(None, json!({"manager": "another"})), Ok(Way::Make(None)));
    assert_eq!(go(Some("mine"), json!({})), Ok(Way::Make(None)));
    let first = comes_first(std::slice::from_ref(&running), "cluster1");
    assert_eq!(first, Some(&running));
    let back = upgrade(json!({"goal": Goal::RollBack}), status("RollingBack", &[], &[]));
    assert!(
        way(&[back], None, &wanted(json!({})), &next).unwrap_err().message.contains("the way back")
    );
    let refused = upgrade(json!({}), status("Refused", &[], &[]));
    let made = Way::Make(Some(Box::new(refused.clone())));
    assert_eq!(way(&[refused], None, &wanted(json!({})), &next).unwrap(), made, "nothing was done");
}

#[test]
fn a_new_one_is_named_after_the_version_and_has_a_name_of_its_own() {
    let done = upgrade(json!({}), status("Succeeded", &[], &[]));
    let all = std::slice::from_ref(&done);
    assert_eq!(free_name(&[], None, Some("R25.1_b"), "a1").as_deref(), Ok("to-r25-1-b"));
    assert_eq!(free_name(all, None, Some("R25.1"), "a1").as_deref(), Ok("to-r25-1-2"));
    assert_eq!(free_name(all, None, None, "a1").as_deref(), Ok("upgrade-a1"));
    assert_eq!(free_name(all, Some("mine"), Some("R25.1"), "a1").as_deref(), Ok("mine"));
    assert_eq!(free_name(all, Some("to-r25-1"), None, "a1").unwrap_err().code, "name-taken");
}

#[test]
fn without_a_name_the_newest_is_shown_and_the_one_at_work_is_changed() {
    let named = |name: &str, minute: u8, phase: &str| {
        let mut one = json!(upgrade(json!({}), status(phase, &[], &[])));
        one["metadata"]["name"] = json!(name);
        one["metadata"]["creationTimestamp"] = json!(format!("2026-11-25T08:{minute:02}:00Z"));
        serde_json::from_value(one).unwrap()
    };
    let all = || {
        vec![named("old", 1, "Succeeded"), named("work", 2, "Running"), named("new", 3, "Pending")]
    };
    let name = |wanted: Option<&str>, want: Want| {
        chosen(all(), wanted, want, "tf").map(|one| one.metadata.name.unwrap())
    };
    assert_eq!(name(None, Want::Shown).as_deref(), Ok("new"));
    assert_eq!(name(None, Want::Changed).as_deref(), Ok("work"));
    assert_eq!(name(Some("old"), Want::Changed).as_deref(), Ok("old"));
    assert!(name(Some("no"), Want::Shown).unwrap_err().hint.contains("new, work, old"));
    assert_eq!(chosen(Vec::new(), None, Want::Changed, "tf").unwrap_err().code, "no-upgrade");
}

#[test]
fn a_silent_operator_is_named_once_after_half_a_minute() {
    let (unseen, seen) =
        (upgrade(json!({}), json!(null)), upgrade(json!({}), status("Running", &[], &[])));
    let seconds = Duration::from_secs;
    let mut silence = Silence::default();
    let mut due = |upgrade: &_, now: u64| silence.is_due(upgrade, seconds(now));
    assert_eq!([due(&unseen, 29), due(&unseen, 30), due(&unseen, 31)], [false, true, false]);
    assert!(!due(&seen, 40));
    let mut wish = status("Stopped", &[], &[]);
    wish["observedGeneration"] = json!(1);
    let wish = upgrade(json!({}), wish);
    assert_eq!([due(&wish, 60), due(&wish, 70)], [false, true]);
}

#[test]
fn an_operator_that_ends_in_the_middle_is_named_and_one_that_looks_is_not() {
    let looked = |phase: &str, at: &str| {
        let mut one = status(phase, &[], &[]);
        one["lookedAt"] = json!(at);
        upgrade(json!({}), one)
    };
    let at_work = |at: &str| looked("Running", at);
    let seconds = Duration::from_secs;
    let mut silence = Silence::default();
    let mut due = |upgrade: &_, now: u64| silence.is_due(upgrade, seconds(now));
    let first = at_work("2026-11-25T08:00:00Z");
    assert_eq!([0, 29, 30, 31].map(|now| due(&first, now)), [false, false, true, false]);
    // It comes back, and ends again.
    let second = at_work("2026-11-25T08:00:40Z");
    assert_eq!([40, 69, 70].map(|now| due(&second, now)), [false, false, true]);
    // What waits for a person changes nothing for days.
    let paused = looked("Paused", "2026-11-25T08:00:40Z");
    assert_eq!([80, 5000].map(|now| due(&paused, now)), [false, false]);

    let by_clock = |upgrade: &_, now: &str| Silence::by_clock(upgrade, now.parse().unwrap());
    assert_eq!(by_clock(&second, "2026-11-25T08:01:39Z"), None);
    assert_eq!(by_clock(&second, "2026-11-25T08:01:40Z"), Some(seconds(60)));
    assert_eq!(by_clock(&second, "2026-11-25T07:00:00Z"), None, "its clock is ahead");
    assert_eq!(by_clock(&paused, "2026-11-25T09:00:00Z"), None);
    // Another try was asked for, and none has seen it, whatever its phase is.
    let mut asked = looked("Stopped", "2026-11-25T08:00:40Z");
    asked.metadata.generation = Some(3);
    asked.metadata.managed_fields = serde_json::from_value(json!([
        {"manager": "kubectl-opensdn", "operation": "Update", "time": "2026-11-25T08:30:00Z"},
        {"manager": "opensdn-operator", "operation": "Apply", "subresource": "status", "time": "2026-11-25T08:59:00Z"}]))
    .unwrap();
    assert_eq!(by_clock(&asked, "2026-11-25T08:30:59Z"), None);
    assert_eq!(by_clock(&asked, "2026-11-25T08:31:00Z"), Some(seconds(60)));
}

#[test]
fn what_the_operator_has_not_seen_yet_is_not_taken_back_without_a_word() {
    let unseen = |spec: Value, phase: &str| {
        let mut upgrade =
            upgrade(spec, status(phase, &["config Failed"], &["Config/a config Failed"]));
        upgrade.metadata.generation = Some(3);
        upgrade
    };
    // A way back that another has just asked for.
    assert_eq!(refused(retry(&unseen(json!({"goal": "RollBack"}), "Stopped"))), "goes-back");
    // Another try that its user thinks better of.
    let retried = unseen(json!({"retries": 1}), "Stopped");
    assert_eq!(written(pause(&retried)), json!({"paused": true}));
}

#[test]
fn an_old_upgrade_goes_back_after_the_newer_ones_of_its_services() {
    let next = NextCommand::new(Some("tf".to_owned()));
    let one = |name: &str, hour: u32, tag: &str, mut status: Value| {
        for step in status["steps"].as_array_mut().into_iter().flatten() {
            step["images"][0]["to"] = json!(format!("x/api:{tag}"));
        }
        let mut upgrade = upgrade(json!({}), status);
        upgrade.metadata.name = Some(name.to_owned());
        let created = format!("\"2026-11-25T{hour:02}:00:00Z\"");
        upgrade.metadata.creation_timestamp = Some(serde_json::from_str(&created).unwrap());
        upgrade
    };
    let steps = &["Config/a config Succeeded"];
    let done = |steps: &[&str]| status("Succeeded", &["config Succeeded"], steps);
    let old = one("old", 8, "R25.1", done(steps));
    let refusal = |other: &_| refuse_behind(&old, &[old.clone(), Clone::clone(other)], &next);

    for phase in ["Running", "Paused", "Stopped", "RollingBack"] {
        let failure = refusal(&one("new", 9, "R26.1", status(phase, &[], &[]))).unwrap_err();
        assert_eq!((failure.exit, failure.code), (Exit::Refused, "another-upgrade"));
        assert!(
            failure.message.contains(&format!(
                "the Upgrade new of the same Manager is not over (it is {phase})"
            ))
        );
        assert!(failure.hint.contains("upgrade rollback new -n tf"), "{}", failure.hint);
    }
    let failure = refusal(&one("new", 9, "R26.1", done(steps))).unwrap_err();
    assert!(failure.message.contains("Config/a has its images since"), "{}", failure.message);
    assert!(failure.hint.contains("upgrade rollback new -n tf"), "{}", failure.hint);

    assert!(refusal(&one("new", 9, "R26.1", done(&["Redis/a data-stores Succeeded"]))).is_ok());
    assert!(refusal(&one("new", 9, "R25.1", done(steps))).is_ok(), "the same images");
    assert!(refusal(&one("older", 7, "R24.1", done(steps))).is_ok());
    let gone_back = status("RolledBack", &[], &["Config/a config RolledBack"]);
    assert!(refusal(&one("new", 9, "R26.1", gone_back)).is_ok());
    let mut of_another = one("new", 9, "R26.1", status("Running", &[], &[]));
    of_another.spec.manager = "cluster2".to_owned();
    assert!(refusal(&of_another).is_ok());
    let running = one("old", 8, "R25.1", status("Running", &[], steps));
    let waits = one("new", 9, "R26.1", json!(null));
    assert!(refuse_behind(&running, &[running.clone(), waits], &next).is_ok(), "it is at work");
}
