//! The encapsulation priorities of a cloud: one owner, no write without need, and no fight without an end.

use std::time::Duration;

use http::Method;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::encapsulation::{
    self, Conflict, Error, Others, Outcome, Priorities, Request, Stored,
};
use opensdn_config_api::ownership::ClusterId;
use opensdn_testing::config_api::{Disturbance, Service, Settings, Times};
use serde_json::{Value, json};

use crate::cloud::{Cloud, LOCK, cluster, row, set_up, timing};

const FIELD: &str = "encapsulation_priorities";
const ANNOTATION: &str = "opensdn/encapsulation-priorities";
/// What the provisioner writes, and what we want.
const DEFAULT: &str = "MPLSoUDP,MPLSoGRE,VXLAN";
const WANTED: &str = "VXLAN,MPLSoUDP";
/// More than any run has calls.
const MOST: usize = 60;

fn priorities(text: &str) -> Priorities {
    text.parse().unwrap()
}

fn property(text: &str) -> Value {
    json!({"encapsulation": text.split(',').collect::<Vec<&str>>()})
}

fn stored(text: &str) -> Stored {
    Stored::read(Some(&property(text)))
}

/// A cloud as the provisioner leaves it.
fn provisioned() -> Cloud {
    let cloud = Cloud::fake(Settings::default());
    set(&cloud, property(DEFAULT));
    cloud
}

fn set(cloud: &Cloud, value: Value) {
    let fake = cloud.faults();
    fake.update(&fake.global_vrouter_config(), json!({ FIELD: value })).unwrap();
}

async fn value(cloud: &Cloud) -> Stored {
    Stored::read(cloud.object().await.1.get(FIELD))
}

async fn ensure(
    api: &ConfigApi,
    owner: &ClusterId,
    wanted: &str,
    others: Others,
) -> Result<Outcome, Error> {
    let wanted = &priorities(wanted);
    encapsulation::ensure(api, &Request { owner, wanted, others }, &timing()).await
}

/// With respect for others.
async fn set_by(cloud: &Cloud, owner: &str, wanted: &str) -> Outcome {
    ensure(&cloud.api(), &cluster(owner), wanted, Others::Respect).await.unwrap()
}

fn writes(cloud: &Cloud) -> usize {
    cloud.count(&Method::PUT, "/global-vrouter-config")
}

fn written(before: &str) -> Outcome {
    Outcome::Written { before: stored(before) }
}

#[tokio::test]
async fn the_value_is_read_without_a_change_of_the_cloud() {
    Cloud::any(async |cloud| {
        let before = cloud.object().await;
        let current = encapsulation::read(&cloud.api(), &timing()).await.unwrap();
        assert_eq!(current.stored, Stored::read(before.1.get(FIELD)));
        assert_eq!(cloud.object().await, before);
    })
    .await;
}

#[tokio::test]
async fn the_value_is_written_once_and_only_where_it_differs() {
    let cloud = provisioned();
    assert_eq!(set_by(&cloud, "a", WANTED).await, written(DEFAULT));
    assert_eq!((value(&cloud).await, writes(&cloud)), (stored(WANTED), 1));
    let etag = cloud.etag().await;
    assert_eq!(set_by(&cloud, "a", WANTED).await, Outcome::AsWanted);
    assert_eq!((cloud.etag().await, writes(&cloud)), (etag, 1));
    // Another wish of the same owner.
    assert_eq!(set_by(&cloud, "a", DEFAULT).await, written(WANTED));
    assert_eq!(value(&cloud).await, stored(DEFAULT));
}

#[tokio::test]
async fn a_value_that_means_the_same_is_not_written() {
    let same = json!({"encapsulation": ["VXLAN", null, "MPLSoUDP", "VXLAN"]});
    for there in [property(WANTED), same] {
        let cloud = Cloud::fake(Settings::default());
        set(&cloud, there);
        assert_eq!(set_by(&cloud, "a", WANTED).await, Outcome::AsWanted);
        assert_eq!(writes(&cloud), 0);
    }
}

#[tokio::test]
async fn odd_values_are_replaced() {
    let odd = [
        json!(null),
        json!({}),
        json!([]),
        json!(""),
        json!(false),
        json!({"encapsulation": null}),
        json!({"encapsulation": [null]}),
    ];
    for value_there in odd {
        let cloud = Cloud::fake(Settings::default());
        set(&cloud, value_there.clone());
        let outcome = set_by(&cloud, "a", WANTED).await;
        assert!(matches!(outcome, Outcome::Written { .. }), "{value_there}: {outcome:?}");
        assert_eq!(value(&cloud).await, stored(WANTED));
    }
}

#[tokio::test]
async fn what_others_have_in_the_object_stays_and_records_of_rows_are_still_read() {
    let cloud = provisioned();
    let rows = [row("a", [1, 1], 8082, 100)];
    set_up(&cloud.api(), &cluster("rows"), &rows, &timing()).await.unwrap();
    let (_, before) = cloud.object().await;
    set_by(&cloud, "a", WANTED).await;
    let (_, after) = cloud.object().await;
    assert_eq!(after["linklocal_services"], before["linklocal_services"]);
    let kept = before["annotations"]["key_value_pair"].as_array().unwrap();
    let pairs = after["annotations"]["key_value_pair"].as_array().unwrap();
    assert!(kept.iter().all(|pair| pairs.contains(pair)) && pairs.len() == kept.len() + 1);
    let again = set_up(&cloud.api(), &cluster("rows"), &rows, &timing()).await.unwrap();
    assert!(again.changes.is_empty());
}

#[tokio::test]
async fn the_value_of_another_owner_is_a_conflict_and_not_written() {
    let cloud = provisioned();
    set_by(&cloud, "a", WANTED).await;
    let before = cloud.object().await;
    let conflict = Outcome::Conflict(Conflict::OtherOwner {
        owner: cluster("a").to_string(),
        set: priorities(WANTED),
        found: stored(WANTED),
    });
    assert_eq!(set_by(&cloud, "b", DEFAULT).await, conflict);
    let shared = Outcome::Shared { owner: cluster("a").to_string() };
    assert_eq!(set_by(&cloud, "b", WANTED).await, shared);
    assert_eq!(cloud.object().await, before);
    let taken = ensure(&cloud.api(), &cluster("b"), DEFAULT, Others::TakeOver).await.unwrap();
    assert_eq!((taken, value(&cloud).await), (written(WANTED), stored(DEFAULT)));
    // From now on it is the other's conflict.
    assert!(matches!(set_by(&cloud, "a", WANTED).await, Outcome::Conflict(_)));
}

#[tokio::test]
async fn a_value_that_was_changed_since_is_a_conflict_and_not_written() {
    let cloud = provisioned();
    set_by(&cloud, "a", WANTED).await;
    // As the provisioner does whenever it starts.
    set(&cloud, property(DEFAULT));
    let before = cloud.object().await;
    let (set, found) = (priorities(WANTED), stored(DEFAULT));
    let conflict = Outcome::Conflict(Conflict::Changed { set, found });
    for _ in 0..2 {
        assert_eq!(set_by(&cloud, "a", WANTED).await, conflict);
    }
    assert_eq!(set_by(&cloud, "a", "MPLSoGRE").await, conflict);
    assert_eq!(cloud.object().await, before);
    let api = cloud.api();
    let taken = ensure(&api, &cluster("a"), WANTED, Others::TakeOver).await.unwrap();
    assert_eq!((taken, value(&cloud).await), (written(DEFAULT), stored(WANTED)));
}

#[tokio::test]
async fn a_change_to_what_is_wanted_by_now_is_no_conflict() {
    let cloud = provisioned();
    set_by(&cloud, "a", WANTED).await;
    set(&cloud, property(DEFAULT));
    assert_eq!(set_by(&cloud, "a", DEFAULT).await, Outcome::AsWanted);
    set(&cloud, property(WANTED));
    let outcome = set_by(&cloud, "a", DEFAULT).await;
    assert!(matches!(outcome, Outcome::Conflict(Conflict::Changed { .. })), "{outcome:?}");
}

#[tokio::test]
async fn one_overwrite_and_one_lost_write_are_got_over() {
    let cloud = provisioned();
    cloud.faults().overwriter_of(FIELD, property(DEFAULT), Times::Next(1));
    assert_eq!(set_by(&cloud, "a", WANTED).await, written(DEFAULT));
    assert_eq!((value(&cloud).await, writes(&cloud)), (stored(WANTED), 2));
    let cloud = provisioned();
    cloud.faults().lose_puts(Times::Next(1));
    assert_eq!(set_by(&cloud, "a", WANTED).await, written(DEFAULT));
    assert_eq!((value(&cloud).await, writes(&cloud)), (stored(WANTED), 2));
}

#[tokio::test]
async fn a_writer_that_fights_ends_the_attempts_and_is_not_fought_by_the_next_run() {
    let cloud = provisioned();
    cloud.faults().overwriter_of(FIELD, property(DEFAULT), Times::Always);
    let attempts = timing().attempts;
    let overwritten = Conflict::Overwritten { attempts, found: stored(DEFAULT) };
    assert_eq!(set_by(&cloud, "a", WANTED).await, Outcome::Conflict(overwritten));
    assert_eq!(writes(&cloud), attempts as usize);
    let outcome = set_by(&cloud, "a", WANTED).await;
    assert!(matches!(outcome, Outcome::Conflict(Conflict::Changed { .. })), "{outcome:?}");
    assert_eq!(writes(&cloud), attempts as usize);
}

#[tokio::test]
async fn of_owners_that_come_at_once_one_has_its_value_and_the_others_a_conflict() {
    let cloud = provisioned();
    let all = [("a", "VXLAN"), ("b", "MPLSoGRE"), ("c", "MPLSoUDP")];
    let all = all.map(|(owner, wanted)| {
        let cloud = &cloud;
        async move { (wanted, set_by(cloud, owner, wanted).await) }
    });
    let outcomes = futures::future::join_all(all).await;
    let winners: Vec<&str> = outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Written { .. }))
        .map(|(wanted, _)| *wanted)
        .collect();
    let [winner] = winners[..] else { panic!("{outcomes:?}") };
    assert_eq!(value(&cloud).await, stored(winner));
    let is_conflict = |outcome: &Outcome| matches!(outcome, Outcome::Conflict(_));
    assert_eq!(outcomes.iter().filter(|(_, outcome)| is_conflict(outcome)).count(), 2);
}

#[tokio::test]
async fn a_record_that_is_given_up_leaves_the_value_for_the_next_owner() {
    let cloud = provisioned();
    set_by(&cloud, "a", WANTED).await;
    encapsulation::release(&cloud.api(), &cluster("b"), &timing()).await.unwrap();
    assert!(matches!(set_by(&cloud, "b", DEFAULT).await, Outcome::Conflict(_)));
    encapsulation::release(&cloud.api(), &cluster("a"), &timing()).await.unwrap();
    assert_eq!(value(&cloud).await, stored(WANTED));
    assert!(!cloud.object().await.1["annotations"].to_string().contains(ANNOTATION));
    assert_eq!(set_by(&cloud, "b", DEFAULT).await, written(WANTED));
}

#[tokio::test]
async fn it_gets_over_any_call_that_fails_once() {
    for disturbance in [Disturbance::Cut, Disturbance::Unanswered, Disturbance::Unavailable] {
        for after in 0..MOST {
            let cloud = provisioned();
            cloud.faults().disturb(Service::ConfigApi, disturbance, Times::Once { after });
            let outcome = set_by(&cloud, "a", WANTED).await;
            let count = cloud.faults().calls().len();
            cloud.faults().disturb(Service::ConfigApi, disturbance, Times::Never);
            assert_eq!(outcome, written(DEFAULT), "{disturbance:?} at {after}");
            assert_eq!(value(&cloud).await, stored(WANTED), "{disturbance:?} at {after}");
            assert_eq!(cloud.faults().read("namespace", &LOCK), None, "the lock stays at {after}");
            if count <= after {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_is_finished_by_the_next() {
    let mut timing = timing();
    timing.lock.hold = Duration::ZERO;
    let (owner, wanted, others) = (&cluster("a"), &priorities(WANTED), Others::Respect);
    for at in 0..MOST {
        let cloud = provisioned();
        let fake = cloud.faults();
        fake.disturb(Service::ConfigApi, Disturbance::Cut, Times::From(at));
        let api = cloud.api();
        let comes_there = async {
            while fake.calls().len() <= at {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let request = Request { owner, wanted, others };
        let is_killed = tokio::select! {
            ended = encapsulation::ensure(&api, &request, &timing) => ended.is_err(),
            () = comes_there => true,
        };
        fake.disturb(Service::ConfigApi, Disturbance::Cut, Times::Never);
        let next = encapsulation::ensure(&cloud.api(), &request, &timing).await.unwrap();
        assert!(matches!(next, Outcome::AsWanted | Outcome::Written { .. }), "{next:?} at {at}");
        assert_eq!(value(&cloud).await, stored(WANTED), "killed at call {at}");
        if !is_killed {
            assert!(at > 5, "it has {at} calls only");
            return;
        }
    }
    panic!("it has no end");
}

#[tokio::test]
async fn no_read_in_the_middle_of_another_write_is_taken_for_a_record_that_is_gone() {
    for after in 0..MOST {
        let cloud = provisioned();
        set_by(&cloud, "a", WANTED).await;
        cloud.faults().forget_calls();
        cloud.faults().tear_reads(Times::Once { after });
        let outcome = set_by(&cloud, "b", DEFAULT).await;
        assert!(matches!(outcome, Outcome::Conflict(_)), "{outcome:?} at {after}");
        if cloud.count(&Method::GET, "/global-vrouter-config") <= after {
            return;
        }
    }
    panic!("it has no end");
}

#[tokio::test]
async fn a_record_of_another_version_is_an_error_and_nothing_is_written() {
    let cloud = provisioned();
    let pair = json!({"key": ANNOTATION, "value": "{\"version\": 2}"});
    let fake = cloud.faults();
    let annotations = json!({"annotations": {"key_value_pair": [pair]}});
    fake.update(&fake.global_vrouter_config(), annotations).unwrap();
    let before = cloud.object().await;
    let error = ensure(&cloud.api(), &cluster("a"), WANTED, Others::TakeOver).await.unwrap_err();
    assert!(error.to_string().contains("its version is not 1"), "{error}");
    assert_eq!(cloud.object().await, before);
}
