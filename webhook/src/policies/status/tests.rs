//! The status of an AdmissionPolicy, as the leader makes it of what replicas say.

use super::*;

fn replica(name: &str, ready: bool, digest: &str, generation: i64) -> Value {
    json!({"name": name, "ready": ready, "digest": digest, "observedGeneration": generation,
        "reason": if ready { SERVING } else { "SettingsInvalid" }, "message": "why"})
}

fn object(replicas: &[Value]) -> AdmissionPolicy {
    serde_json::from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "p", "generation": 2, "resourceVersion": "9"},
        "spec": {"module": {"builtIn": "p"}}, "status": {"replicas": replicas}}))
    .unwrap()
}

fn view(alive: &BTreeSet<String>) -> LeaderView<'_> {
    LeaderView { alive, uniqueness: &Uniqueness::NotClaimed, outdated: None }
}

fn ready(object: &AdmissionPolicy, alive: &[&str]) -> (String, String) {
    let alive = alive.iter().map(|&name| name.to_owned()).collect();
    let status = aggregate(object, &view(&alive), |_| None, "now").unwrap();
    let text = |key: &str| status["conditions"][0][key].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn is_ready_only_when_every_living_replica_runs_the_same_module() {
    let pair = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    let both = [replica("a", true, "x", 2), replica("b", true, "x", 2)];
    assert_eq!(ready(&object(&both), &["a", "b"]), pair("True", SERVING));
    assert_eq!(ready(&object(&both), &["a", "b", "c"]), pair("False", "WaitingForReplicas"));
    let old = [replica("a", true, "x", 2), replica("b", true, "x", 1)];
    assert_eq!(ready(&object(&old), &["a", "b"]), pair("False", "WaitingForReplicas"));
    assert_eq!(ready(&object(&old), &["a"]), pair("True", SERVING), "the dead do not count");
    let mixed = [replica("a", true, "x", 2), replica("b", true, "y", 2)];
    assert_eq!(ready(&object(&mixed), &["a", "b"]), pair("False", "WaitingForReplicas"));
    let broken = [replica("a", true, "x", 2), replica("b", false, "x", 2)];
    assert_eq!(ready(&object(&broken), &["a", "b"]), pair("False", "SettingsInvalid"));
}

#[test]
fn each_replica_that_failed_is_named_with_what_is_so_in_it_the_worst_first() {
    let failed = |name: &str, digest: Option<&str>, message: &str| {
        let mut entry = replica(name, false, "x", 2);
        entry["digest"] = json!(digest);
        entry["message"] = json!(message);
        entry
    };
    let message = |entries: &[Value]| {
        let alive = ["a", "b", "c"].map(str::to_owned).into();
        let status = aggregate(&object(entries), &view(&alive), |_| None, "now").unwrap();
        status["conditions"][0]["message"].as_str().unwrap().to_owned()
    };
    let alike = failed("b", Some("x"), "gone (the one before runs)");
    let same = [failed("a", Some("x"), "gone (the one before runs)"), alike.clone()];
    assert_eq!(message(&same), "on 2 of 3 replicas: gone (the one before runs)");
    let mixed = [alike, failed("c", None, "gone")];
    let expected =
        "on 1 of 3 replicas (c): gone; on 1 of 3 replicas (b): gone (the one before runs)";
    assert_eq!(message(&mixed), expected);
}

#[test]
fn nothing_is_written_when_nothing_changed_and_times_are_kept() {
    let mut object = object(&[replica("a", true, "x", 2)]);
    let alive = BTreeSet::from(["a".to_owned()]);
    let judges = vec![KindRule { kind: "Thing".to_owned(), ..KindRule::default() }];
    let version = |digest: &str| {
        let version = format!("version of {digest}");
        Some(ModuleFacts { version, judges: judges.clone() })
    };
    let view = view(&alive);
    let first = aggregate(&object, &view, version, "first").unwrap();
    assert_eq!(first["digest"], "x");
    assert_eq!(first["version"], "version of x");
    let replicas = object.status.take().unwrap().replicas;
    let mut status: AdmissionPolicyStatus = serde_json::from_value(first).unwrap();
    status.replicas = replicas;
    object.status = Some(status);
    assert_eq!(aggregate(&object, &view, version, "second"), None);
    object.metadata.generation = Some(3);
    let later = aggregate(&object, &view, version, "third").unwrap();
    assert_eq!(later["conditions"][0]["lastTransitionTime"], "third");
    assert_eq!(later["conditions"][1]["type"], "Reconciling");
    // A replica that cannot load the module reads there what it is about.
    let lost = aggregate(&object, &view, |_| None, "fourth").unwrap();
    assert_eq!(lost["judges"], json!(judges));
    // But not what another one was about.
    object.spec.module.digest = Some("y".to_owned());
    let other = aggregate(&object, &view, |_| None, "fifth").unwrap();
    assert_eq!(other["judges"], Value::Null);
    let former = aggregate(&object, &view, version, "fifth").unwrap();
    assert_eq!(former["judges"], Value::Null, "the one before runs still");
}

#[test]
fn the_status_says_since_when_uniqueness_holds_over_leaders_until_the_policy_changes() {
    let mut object = object(&[replica("a", true, "x", 2)]);
    let alive = BTreeSet::from(["a".to_owned()]);
    let mut next = |generation: i64, uniqueness: Uniqueness, now: &str| {
        object.metadata.generation = Some(generation);
        let view = LeaderView { uniqueness: &uniqueness, ..view(&alive) };
        if let Some(status) = aggregate(&object, &view, |_| None, now) {
            object.status = serde_json::from_value(status).unwrap();
        }
        let conditions = object.status.clone().unwrap().conditions.unwrap_or_default();
        let found = conditions.into_iter().find(|one| one.type_ == UNIQUENESS);
        found.map(|one| (one.status, one.last_transition_time.unwrap()))
    };
    let is = |status: &str, since: &str| Some((status.to_owned(), since.to_owned()));
    let refused = || Uniqueness::Refused("uniqueclaims is forbidden".to_owned());
    assert_eq!(next(2, Uniqueness::Pending, "1"), is("False", "1"));
    assert_eq!(next(2, Uniqueness::Holds(None), "2"), is("True", "2"));
    assert_eq!(next(2, Uniqueness::Pending, "3"), is("True", "2"), "another leads");
    assert_eq!(next(2, refused(), "4"), is("False", "4"), "claims cannot be written");
    assert_eq!(next(2, refused(), "5"), is("False", "4"));
    assert_eq!(next(2, Uniqueness::Pending, "6"), is("False", "4"), "not claimed again yet");
    assert_eq!(next(2, Uniqueness::Holds(None), "7"), is("True", "7"));
    assert_eq!(next(2, Uniqueness::NotKnown, "7"), is("True", "7"), "its module is not loaded yet");
    assert_eq!(next(2, Uniqueness::NotRun, "7.1"), is("False", "7.1"), "its module is gone");
    assert_eq!(next(2, Uniqueness::Pending, "7.2"), is("False", "7.1"), "others may have passed");
    assert_eq!(next(3, Uniqueness::Pending, "8"), is("False", "7.1"), "it is another policy");
    assert_eq!(next(3, Uniqueness::NotKnown, "8"), is("False", "7.1"));
    assert_eq!(next(4, Uniqueness::NotKnown, "8"), None, "of this policy nothing has been found");
    assert_eq!(next(4, Uniqueness::NotRun, "8"), None);
    assert_eq!(next(3, Uniqueness::NotClaimed, "9"), None);
}

#[test]
fn uniqueness_is_said_to_hold_since_after_objects_were_stored_without_their_claims() {
    let mut object = object(&[replica("a", true, "x", 2)]);
    let alive = BTreeSet::from(["a".to_owned()]);
    let replicas = object.status.clone().unwrap().replicas;
    let second = |number: i64| OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(number);
    let mut next = |uniqueness: Uniqueness, now: i64| {
        let view = LeaderView { uniqueness: &uniqueness, ..view(&alive) };
        let now = second(now).format(&Rfc3339).unwrap();
        let written = aggregate(&object, &view, |_| None, &now)?;
        let read: AdmissionPolicyStatus = serde_json::from_value(written).unwrap();
        object.status = Some(AdmissionPolicyStatus { replicas: replicas.clone(), ..read });
        let conditions = object.status.clone().unwrap().conditions.unwrap();
        let found = conditions.into_iter().find(|one| one.type_ == UNIQUENESS).unwrap();
        let since = OffsetDateTime::parse(&found.last_transition_time.unwrap(), &Rfc3339).unwrap();
        Some((found.status, found.reason.unwrap(), since.unix_timestamp()))
    };
    let holds = |since: i64| Some(("True".to_owned(), "StoredObjectsClaimed".to_owned(), since));
    let claims = |since: i64| Some(("False".to_owned(), "ClaimingStoredObjects".to_owned(), since));
    assert_eq!(next(Uniqueness::Holds(None), 1), holds(1));
    assert_eq!(next(Uniqueness::Pending, 2), None, "another leads, and has found none yet");
    assert_eq!(next(Uniqueness::Unclaimed, 3), claims(3));
    assert_eq!(next(Uniqueness::Pending, 4).unwrap().0, "False", "others are not all claimed");
    assert_eq!(next(Uniqueness::Holds(Some(second(3))), 5), holds(5));
    assert_eq!(next(Uniqueness::Holds(Some(second(3))), 6), None);
    // They were claimed before it was written that they are not.
    assert_eq!(next(Uniqueness::Holds(Some(second(7))), 8), holds(8));
    assert_eq!(next(Uniqueness::Holds(Some(second(7))), 9), None);
}

#[test]
fn a_leader_that_cannot_read_policies_does_not_say_that_they_are_ready() {
    let (mut object, alive) =
        (object(&[replica("a", true, "x", 2)]), BTreeSet::from(["a".to_owned()]));
    let replicas = object.status.clone().unwrap().replicas;
    let mut next = |outdated, now: &str| {
        let view = LeaderView { outdated, ..view(&alive) };
        let status = aggregate(&object, &view, |_| None, now)?;
        let read: AdmissionPolicyStatus = serde_json::from_value(status.clone()).unwrap();
        object.status = Some(AdmissionPolicyStatus { replicas: replicas.clone(), ..read });
        Some(status["conditions"].clone())
    };
    assert_eq!(next(None, "1").unwrap()[0]["status"], "True");
    let outdated = next(Some("missing RBAC rule"), "2").unwrap();
    assert_eq!(outdated.as_array().map(Vec::len), Some(1), "{outdated}");
    assert_eq!(outdated[0]["status"], "Unknown");
    assert_eq!(outdated[0]["reason"], "Outdated");
    assert!(outdated[0]["message"].as_str().unwrap().ends_with("missing RBAC rule"));
    assert_eq!(next(Some("missing RBAC rule"), "3"), None, "it is not written again");
    assert_eq!(next(None, "4").unwrap()[0]["status"], "True");
}

#[test]
fn entries_of_dead_replicas_are_removed_from_the_end() {
    let entries = ["a", "b", "c"].map(|name| replica(name, true, "x", 2));
    let alive = BTreeSet::from(["b".to_owned()]);
    let patch = prune(&object(&entries), &alive).unwrap();
    let paths: Vec<&str> =
        patch.as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/metadata/resourceVersion", "/status/replicas/2", "/status/replicas/0"]);
    assert_eq!(prune(&object(&entries[1..2]), &alive), None);
}
