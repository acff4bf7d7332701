//! Writers that do not know of each other: what they drop is written again, for a bounded number of attempts.

use opensdn_config_api::apply::Error;
use opensdn_config_api::link_local::Row;
use opensdn_error_chain::error_chain;
use opensdn_testing::config_api::{Settings, Times};
use serde_json::{Value, json};

use crate::cloud::{Cloud, ONCE, cluster, row, set_up, timing};

fn ours() -> [Row; 2] {
    [row("a", [0, 1], 8082, 100), row("b", [0, 2], 9161, 101)]
}

fn of_others(name: &str, port: u16) -> Value {
    json!({"linklocal_service_name": name, "linklocal_service_ip": "198.18.9.1",
        "linklocal_service_port": port, "ip_fabric_DNS_service_name": null})
}

#[tokio::test]
async fn rows_that_a_stale_writer_drops_are_written_again() {
    let cloud = Cloud::fake(Settings::default());
    cloud.write(&[of_others("metadata", 80)]).await;
    cloud.faults().stale_writer(ONCE);
    let done = set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    assert_eq!((done.attempts, done.put_back.len()), (2, 0));
    assert!(cloud.has(&ours()).await);
    assert_eq!(cloud.rows().await[0], of_others("metadata", 80));
}

#[tokio::test]
async fn rows_of_others_that_a_stale_writer_drops_are_put_back_in_their_places() {
    let cloud = Cloud::fake(Settings::default());
    let old = [of_others("metadata", 80), of_others("old", 2)];
    let new = [&old[..1], &[of_others("new", 1)], &old[1..]].concat();
    cloud.write(&new).await;
    cloud.faults().stale_writer_of(json!(old), ONCE);
    let done = set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    assert_eq!(done.put_back, [Row::from(of_others("new", 1))]);
    let after = cloud.rows().await;
    assert_eq!((&after[..3], after.len()), (&new[..], 5));
    assert!(cloud.has(&ours()).await);
}

#[tokio::test]
async fn a_row_that_others_remove_while_ours_stay_is_not_put_back() {
    let cloud = Cloud::fake(Settings::default());
    cloud.write(&[of_others("metadata", 80), of_others("removed", 1)]).await;
    let kept = json!([of_others("metadata", 80), ours()[0].json(), ours()[1].json()]);
    cloud.faults().stale_writer_of(kept, ONCE);
    let done = set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    assert_eq!((done.attempts, cloud.rows().await.len()), (1, 3));
}

#[tokio::test]
async fn a_fight_ends_and_says_which_rows_are_missing_and_where_the_backup_is() {
    let cloud = Cloud::fake(Settings::default());
    cloud.write(&[of_others("metadata", 80), of_others("lost", 1)]).await;
    cloud.faults().stale_writer_of(json!([of_others("metadata", 80)]), Times::Always);
    let few = opensdn_config_api::apply::Timing { attempts: 4, ..timing() };
    let error = set_up(&cloud.api(), &cluster("a"), &ours(), &few).await.unwrap_err();
    let Error::Fought(fought) = &error else { panic!("{error}") };
    assert_eq!((fought.attempts, fought.changes.len()), (4, 2));
    assert_eq!(fought.vanished, [Row::from(of_others("lost", 1))]);
    let text = error_chain(&error);
    for expected in
        ["198.18.0.1:8082", "198.18.0.2:9161", "\"lost\"", "backup-1.json", "4 attempts"]
    {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
    // The lock is given back, and the next run is not in the way of this one.
    assert_eq!(cloud.faults().read("namespace", &crate::cloud::LOCK), None);
    cloud.faults().stale_writer(Times::Never);
    set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    assert!(cloud.has(&ours()).await);
}

#[tokio::test]
async fn a_write_that_is_answered_and_not_done_is_done_again() {
    let cloud = Cloud::fake(Settings::default());
    cloud.faults().lose_puts(Times::Next(2));
    let done = set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    assert_eq!(done.attempts, 3);
    assert!(cloud.has(&ours()).await);
}

#[tokio::test]
async fn writes_that_are_answered_and_never_done_end_in_an_error() {
    let cloud = Cloud::fake(Settings::default());
    cloud.faults().lose_puts(Times::Always);
    let error = set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap_err();
    assert!(matches!(&error, Error::Fought(fought) if fought.attempts == 10), "{error}");
}

#[tokio::test]
async fn annotations_that_are_missing_in_the_middle_of_a_write_are_not_taken_for_none() {
    let cloud = Cloud::fake(Settings::default());
    let (api, id) = (cloud.api(), cluster("a"));
    set_up(&api, &id, &ours(), &timing()).await.unwrap();
    let before = cloud.records().await;
    cloud.faults().tear_reads(ONCE);
    set_up(&api, &id, &ours(), &timing()).await.unwrap();
    assert_eq!(cloud.records().await, before);
    cloud.faults().tear_reads(ONCE);
    set_up(&api, &id, &[], &timing()).await.unwrap();
    assert!(cloud.rows().await.is_empty(), "rows of ours were taken for those of others");
}
