//! What an entry makes of a module that cannot be loaded.

use opensdn_policy_host::{Cache, Engine, FailureMode, Operation, Policy, Step};
use serde_json::{Value, json};

use super::*;

fn object(spec: Value, status: Value) -> AdmissionPolicy {
    let mut object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {"module": {"builtIn": "unversioned-image"}},
        "status": status});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn problem() -> Problem {
    Problem::new(Fault::ModuleUnusable, "/spec/module", "the compiler was killed", "wait")
}

/// An attempt that ended so.
fn end(entry: &mut Entry, result: Result<Loaded, Failed>) {
    entry.is_loading = true;
    let (name, attempt) = ("p".to_owned(), entry.attempt);
    entry.finish(Loading { name, attempt, result });
}

fn failed(retry: Retry) -> Failed {
    Failed { problems: vec![problem()], interests: None, retry }
}

async fn binding() -> Binding {
    let built_in = opensdn_policies::find("unversioned-image").unwrap();
    let (engine, cache) = (Engine::start(1).unwrap(), Cache::of_user().unwrap());
    let policy = Policy::load(&engine, built_in.bytes, None, cache.as_ref()).await;
    let (source, _) =
        opensdn_admission_policy::parse(&object(json!({}), json!({})).spec.module).unwrap();
    let spec = object(json!({}), json!({})).spec;
    opensdn_admission_policy::bind("p", &spec, &source, policy.unwrap(), Limits::default()).unwrap()
}

#[tokio::test]
async fn it_is_said_that_a_module_waits_for_the_compilation_of_another() {
    let mut entry = Entry::new(object(json!({}), json!({})), None);
    entry.state = State::Loading;
    let waiting = Arc::clone(&entry.waiting);
    let message = |entry: &Entry| entry.report("").replica.message.unwrap();
    assert_eq!(message(&entry), "the module is read and compiled");
    let mut wait = Box::pin(waiting.during(std::future::pending::<()>()));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut wait).await.is_err());
    assert!(message(&entry).contains("waits until another one is compiled"));
}

#[test]
fn a_failure_that_is_not_the_modules_is_tried_again_and_ever_later() {
    let mut entry = Entry::new(object(json!({}), json!({})), None);
    end(&mut entry, Err(failed(Retry::Useless)));
    assert!(entry.retry_at.is_none(), "the same content would fail again");
    assert!(!entry.is_worth_waiting_for());
    let mut delays = Vec::new();
    for _ in 0..8 {
        delays.push(entry.retry_delay.as_secs());
        end(&mut entry, Err(failed(Retry::Later)));
        assert!(entry.retry_at.is_some());
        assert!(entry.is_settled(), "the others do not wait for it");
        assert!(entry.is_worth_waiting_for(), "a replica that starts does, for a while");
        assert!(entry.inactive("p", false).is_some(), "it is missed all the time");
    }
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 300, 300]);
    entry.retry_at = Some(Instant::now());
    assert!(entry.is_due());
}

#[test]
fn where_there_was_no_room_it_is_tried_again_soon() {
    let mut entry = Entry::new(object(json!({}), json!({})), None);
    let full = || Problem { fault: Fault::CacheFull, ..problem() };
    for _ in 0..8 {
        end(&mut entry, Err(Failed { problems: vec![full()], ..failed(Retry::Later) }));
        let due = entry.retry_at.unwrap().saturating_duration_since(Instant::now());
        assert!(due <= LONGEST_WAIT_FOR_ROOM, "{due:?}");
    }
    assert_eq!(entry.retry_delay, LONGEST_WAIT_FOR_ROOM);
    assert!(entry.inactive("p", false).unwrap().why.starts_with("OSDN4018"));
}

#[tokio::test]
async fn what_enforces_is_missed_from_its_first_failure_until_it_is_in_force() {
    let mut entry = Entry::new(object(json!({}), json!({})), None);
    assert!(entry.inactive("p", false).is_none(), "it is new, and being loaded");
    assert!(entry.inactive("p", true).is_some(), "it was there before this process");
    end(&mut entry, Err(failed(Retry::Later)));
    let why = entry.inactive("p", false).unwrap().why;
    assert!(why.contains("the compiler was killed"), "{why}");
    // Another content, or another specification: until one is in force nothing judges.
    entry.state = State::Loading;
    assert!(entry.inactive("p", false).is_some());
    let binding = binding().await;
    end(&mut entry, Ok(Loaded { binding, despite: None }));
    assert!(entry.inactive("p", false).is_some(), "its lookups are not answered yet");
    entry.promote(|_| Ok(()));
    assert!(entry.inactive("p", false).is_none());
}

#[tokio::test]
async fn what_only_audited_before_is_missed_when_it_is_to_enforce() {
    let audits = || object(json!({"mode": "audit"}), json!({}));
    let mut former = binding().await;
    former.mode = opensdn_policy_host::Mode::Audit;
    let mut entry = Entry::new(audits(), None);
    end(&mut entry, Err(failed(Retry::Later)));
    end(&mut entry, Ok(Loaded { binding: former, despite: None }));
    entry.promote(|_| Ok(()));
    entry.update(object(json!({}), json!({})), None);
    assert!(entry.inactive("p", false).is_none(), "it is being loaded, and failed long ago only");
    end(&mut entry, Err(failed(Retry::Later)));
    assert!(entry.inactive("p", false).is_some(), "what runs refuses nothing");
    assert!(entry.lost().is_some() && entry.serving().is_some());
    let message = entry.report("a").replica.message.unwrap();
    assert!(message.contains("refuses nothing, stays in force"), "{message}");

    // It refuses as soon as it is loaded, lookups or not, if these do not come.
    end(&mut entry, Ok(Loaded { binding: binding().await, despite: None }));
    let State::Waiting { since, .. } = &mut entry.state else { panic!("it waits") };
    *since = Instant::now().checked_sub(WAIT).unwrap();
    entry.promote(|_| Err("they are not answered".to_owned()));
    assert!(entry.serving().is_some_and(enforces));
    assert!(entry.inactive("p", false).is_none());
    // What enforces stays until the next one can do it as well.
    end(&mut entry, Ok(Loaded { binding: binding().await, despite: None }));
    let State::Waiting { since, .. } = &mut entry.state else { panic!("it waits") };
    *since = Instant::now().checked_sub(WAIT).unwrap();
    entry.promote(|_| Err("they are not answered".to_owned()));
    assert!(matches!(entry.state, State::Waiting { .. }));
}

#[tokio::test]
async fn what_is_switched_off_refuses_nothing_whether_it_can_be_loaded_again_or_not() {
    for is_loaded in [true, false] {
        let mut entry = Entry::new(object(json!({}), json!({})), None);
        end(&mut entry, Ok(Loaded { binding: binding().await, despite: None }));
        entry.promote(|_| Ok(()));
        assert!(entry.serving().is_some_and(enforces));
        entry.update(object(json!({"mode": "audit"}), json!({})), None);
        assert!(!entry.serving().is_some_and(enforces), "at once");
        if is_loaded {
            end(&mut entry, Ok(Loaded { binding: binding().await, despite: None }));
            entry.promote(|_| Err("lookups are not answered".to_owned()));
        } else {
            end(&mut entry, Err(failed(Retry::Later)));
        }
        assert!(!entry.serving().is_some_and(enforces));
        assert!(entry.inactive("p", false).is_none() && entry.serving().is_some());
    }
}

#[tokio::test]
async fn what_is_loaded_although_its_source_is_gone_is_in_force_and_not_ready() {
    let mut entry = Entry::new(object(json!({}), json!({})), None);
    let despite = Some(failed(Retry::Useless));
    end(&mut entry, Ok(Loaded { binding: binding().await, despite }));
    entry.promote(|_| Ok(()));
    assert!(entry.serving().is_some() && entry.inactive("p", false).is_none());
    let reported = entry.report("a");
    assert!(!reported.replica.ready);
    let message = reported.replica.message.unwrap();
    assert!(message.contains("the compiler was killed"), "{message}");
    assert!(message.contains("the previous version stays in force"), "{message}");
}

#[test]
fn of_a_lost_policy_is_asked_what_its_administrator_or_its_module_says_and_never_its_status() {
    let status = json!({"judges": [{"group": "g", "kind": "Thing", "operations": ["DELETE"]}]});
    let spec = json!({"kinds": [{"group": "g", "kind": "Named"}], "failureMode": "fail"});
    let mut entry = Entry::new(object(spec, status), None);
    assert_eq!(entry.lost(), None, "it may still be loaded");
    end(&mut entry, Err(failed(Retry::Later)));
    let lost = entry.lost().unwrap();
    assert_eq!(lost.interests, None);
    assert_eq!(lost.failure_mode, Some(FailureMode::Fail));
    assert_eq!(lost.kinds.iter().map(|rule| &*rule.kind).collect::<Vec<_>>(), ["Named"]);

    let interest = Interest {
        step: Step::Validate,
        group: "g".to_owned(),
        kind: "Named".to_owned(),
        operations: vec![Operation::Create],
        reads: Vec::new(),
    };
    let interests = Some(vec![interest]);
    end(&mut entry, Err(Failed { interests: interests.clone(), ..failed(Retry::Useless) }));
    assert_eq!(entry.lost().unwrap().interests, interests);
}

#[test]
fn what_a_module_was_about_is_known_from_the_status() {
    let status = json!({"judges": [{"group": "g", "kind": "Thing", "operations": ["DELETE"]}]});
    let mut entry = Entry::new(object(json!({}), status.clone()), None);
    end(&mut entry, Err(failed(Retry::Useless)));
    let interests = entry.inactive("p", false).unwrap().interests.unwrap();
    assert_eq!((interests.len(), interests[0].kind.as_str()), (1, "Thing"));
    let of_another = json!({
        "digest": "sha256:b", "observedGeneration": 1, "judges": status["judges"],
    });
    let pinned = |digest: &str| {
        let mut object = object(json!({}), of_another.clone());
        object.spec.module.digest = Some(digest.to_owned());
        object.metadata.generation = Some(2);
        object
    };
    for (digest, is_known) in [("sha256:b", true), ("sha256:a", false)] {
        let mut entry = Entry::new(pinned(digest), None);
        end(&mut entry, Err(failed(Retry::Useless)));
        assert_eq!(entry.inactive("p", false).unwrap().interests.is_some(), is_known, "{digest}");
    }
    // What the administrator has named is not narrowed by it.
    let named = json!({"kinds": [{"group": "g", "kind": "Named"}]});
    let mut named = Entry::new(object(named, status.clone()), None);
    end(&mut named, Err(failed(Retry::Useless)));
    assert_eq!(named.inactive("p", false).unwrap().interests, None);
    let audits = object(json!({"mode": "audit"}), status);
    entry.update(audits, None);
    assert!(entry.inactive("p", false).is_none(), "nobody depends on it");
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_missed_and_what_ran_before_stays() {
    let wrong = || Some(Problem::new(Fault::Unreadable, "/spec", "it cannot be read", "apply it"));
    let mut entry = Entry::new(object(json!({}), json!({})), wrong());
    assert_eq!(entry.usable_source(), None, "nothing of it is loaded");
    assert!(entry.is_settled() && !entry.is_worth_waiting_for(), "it will not be read by waiting");
    let why = entry.inactive("p", false).unwrap().why;
    assert!(why.contains("it cannot be read"), "{why}");
    assert!(entry.lost().is_some(), "what it names is asked for");
    assert_eq!(entry.metric(), LoadedMetric::Broken);
    let report = entry.report("a").replica;
    assert_eq!((report.ready, report.reason.as_deref()), (false, Some("Unreadable")));

    // It is put right, and broken again with the same to be read of it.
    entry.update(object(json!({}), json!({})), None);
    assert!(entry.usable_source().is_some());
    end(&mut entry, Ok(Loaded { binding: binding().await, despite: None }));
    entry.promote(|_| Ok(()));
    entry.update(object(json!({}), json!({})), wrong());
    assert_eq!(entry.usable_source(), None);
    assert!(entry.serving().is_some() && entry.inactive("p", false).is_none());
    assert_eq!(entry.metric(), LoadedMetric::Broken);
}
