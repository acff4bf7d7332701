//! What becomes of a member that is to start again.

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use opensdn_pki::CaProfile;

use super::*;
use crate::ensemble::{Answers, ChangeError, Member};
use crate::exec::Nowhere;

/// A service that says that of each of its members; `!` of it is what it failed with.
#[derive(Debug)]
struct Says(Option<&'static str>);

impl Ensemble for Says {
    fn may_spare<'a>(
        &'a self,
        _: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChangeError>> {
        let said = match self.0 {
            Some("!") => Err(ChangeError("no answer".to_owned())),
            said => Ok(said.map(|said| format!("{address} {said}"))),
        };
        ready(said).boxed()
    }

    fn look<'a>(&'a self, _: &'a Access, _: &'a [String]) -> BoxFuture<'a, Answers> {
        ready(Answers::new()).boxed()
    }

    fn make<'a>(
        &'a self,
        _: &'a Access,
        _: &'a View,
        _: &'a Change,
    ) -> BoxFuture<'a, Result<(), ChangeError>> {
        ready(Ok(())).boxed()
    }
}

/// What becomes of a restart of the pod on `a`, which is a member, or of that on `z`, which is none.
async fn after(says: Option<&'static str>, pod: &str) -> Step {
    let now = OffsetDateTime::now_utc();
    let authorities = Authorities::first(&CaProfile::new("test CA"), now).unwrap();
    let access = Access::new(&authorities, &authorities.bundle(), now, Arc::new(Nowhere)).unwrap();
    let members = vec![Member { id: 1, host: "a".to_owned() }];
    let serving = ["a".to_owned()].into();
    let view = View { members, serving, ..View::default() };
    let seats = ["a", "z"].map(|address| Seat {
        pod: format!("on-{address}"),
        address: address.to_owned(),
        is_outdated: true,
        has_lost_data: false,
        is_going: false,
        is_stuck: false,
    });
    let step = Step::Restart { pod: pod.to_owned(), why: "it is not of the last template" };
    if_spared(&Says(says), &access, &view, &seats, step).await
}

#[tokio::test]
async fn a_member_that_the_service_cannot_spare_is_not_started_again() {
    let Step::Wait(why) = after(Some("has what no other has"), "on-a").await else {
        panic!("it is started again")
    };
    assert!(why.contains("pod on-a") && why.contains("a has what no other has"), "{why}");
    assert!(matches!(after(None, "on-a").await, Step::Restart { .. }));
    let Step::Wait(why) = after(Some("!"), "on-a").await else {
        panic!("it is started again though nobody knows")
    };
    assert!(why.contains("no answer"), "{why}");
}

#[tokio::test]
async fn who_is_no_member_is_not_asked_about() {
    assert!(matches!(after(Some("is needed"), "on-z").await, Step::Restart { .. }));
}

#[test]
fn a_pod_is_old_by_any_clock_before_it_starts_again() {
    let since = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
    let minutes = time::Duration::minutes;
    let is_old = |before: time::Duration, after: time::Duration| {
        let created = Some(since - before);
        is_older(created, since, since + after)
    };
    assert!(is_old(minutes(11), minutes(0)), "no clock is so wrong");
    assert!(!is_old(minutes(9), minutes(9)), "that of the API server may be behind");
    assert!(is_old(minutes(9), minutes(11)), "and the pod that comes is newer all the same");
    assert!(!is_old(minutes(0), minutes(99)) && !is_old(minutes(-1), minutes(99)));
    assert!(!is_older(None, since, since + minutes(99)));
}

#[test]
fn a_pod_that_is_ready_is_not_started_again_before_all_others_are() {
    let waits = |pods: &[(&str, bool)], is_outdated: bool| {
        let pod = |(name, is_ready): &(&str, bool)| {
            let status = if *is_ready { "True" } else { "False" };
            let object = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "status": {"conditions": [{"type": "Ready", "status": status}]}});
            Pod::of(&serde_json::from_value(object).unwrap())
        };
        let seat = Seat {
            pod: "a".to_owned(),
            address: String::new(),
            is_outdated,
            has_lost_data: false,
            is_going: false,
            is_stuck: false,
        };
        let step = Step::Restart { pod: "a".to_owned(), why: "w" };
        let pods: Vec<Pod> = pods.iter().map(pod).collect();
        matches!(when_others_are_ready(step, &[seat], &pods), Step::Wait(_))
    };
    assert!(waits(&[("a", true), ("b", false)], true));
    assert!(!waits(&[("a", true), ("b", true)], true));
    assert!(!waits(&[("a", false), ("b", false)], true), "nothing is lost by it");
    assert!(!waits(&[("a", true), ("b", false)], false), "its member leaves");
}

#[test]
fn while_an_upgrade_looks_at_one_pod_the_others_wait_but_for_one_that_cannot_start() {
    let seat = |pod: &str, is_outdated: bool, is_stuck: bool| Seat {
        pod: pod.to_owned(),
        address: String::new(),
        is_outdated,
        has_lost_data: false,
        is_going: false,
        is_stuck,
    };
    let step = Step::Restart { pod: "a".to_owned(), why: "it is not of the last template" };
    let waits = |seats: &[Seat], canary: bool| {
        let pace = Pace { canary, ..Pace::default() };
        matches!(held(step.clone(), seats, &pace), Step::Wait(_))
    };
    let stopped = Pace { on_hold: true, ..Pace::default() };
    let of_stopped = |seats: &[Seat]| matches!(held(step.clone(), seats, &stopped), Step::Wait(_));
    assert!(of_stopped(&[seat("a", true, false), seat("b", true, false)]));
    assert!(!of_stopped(&[seat("a", true, true), seat("b", true, false)]), "it serves nothing");
    let one_is_new = [seat("a", true, false), seat("b", false, false)];
    assert!(waits(&one_is_new, true));
    assert!(!waits(&one_is_new, false));
    assert!(!waits(&[seat("a", true, false), seat("b", true, false)], true), "the first");
    assert!(!waits(&[seat("a", true, true), seat("b", false, false)], true), "it serves nothing");
}

#[test]
fn while_one_hands_over_what_it_has_none_may_be_away_besides() {
    let member = |host: &str| Member { id: 1, host: host.to_owned() };
    let view = View { serving: ["a".to_owned()].into(), ..View::default() };
    let spare = |step: Step, spare: Option<i32>| {
        spare_during(&step, &view, &Record { spare, ..Record::default() })
    };
    let leaves = |host: &str| Step::Change(Change::Remove(member(host)));
    assert_eq!(spare(leaves("a"), Some(2)), Some(0));
    assert_eq!(spare(leaves("a"), None), None, "it does not depend on copies");
    assert_eq!(spare(leaves("b"), Some(1)), None, "what it has is lost already");
    assert_eq!(spare(Step::Change(Change::Add(member("a"))), Some(1)), None);
    assert_eq!(spare(Step::Settled, Some(1)), None);
}
