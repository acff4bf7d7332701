//! A lock that another run has, is waited for, and one that a killed run has left is broken.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Method;
use opensdn_config_api::apply::{Error, Timing};
use opensdn_config_api::link_local::Row;
use opensdn_config_api::lock;
use opensdn_testing::config_api::Settings;
use serde_json::{Value, json};

use crate::cloud::{Cloud, LIMIT, LOCK, cluster, row, set_up, timing};

fn ours() -> [Row; 1] {
    [row("a", [0, 1], 8082, 100)]
}

/// As a killed run leaves it.
fn leave(cloud: &Cloud, deadline: Option<SystemTime>) {
    let owner = json!({"key": "owner", "value": "cluster-of-others (1234)"});
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
    let deadline = deadline.map(|time| json!({"key": "deadline", "value": seconds(time)}));
    let pairs: Vec<Value> = [owner].into_iter().chain(deadline).collect();
    let lock = json!({"fq_name": LOCK, "parent_type": "domain",
        "annotations": {"key_value_pair": pairs}});
    cloud.faults().create("namespace", lock).unwrap();
}

fn short_wait() -> Timing {
    let wait = Duration::from_millis(20);
    Timing { lock: lock::Timing { wait, ..timing().lock }, ..timing() }
}

#[tokio::test]
async fn the_lock_of_a_killed_run_is_waited_for_until_its_deadline_and_broken() {
    let cloud = Cloud::fake(Settings::default());
    let deadline = SystemTime::now() + Duration::from_secs(2);
    leave(&cloud, Some(deadline));
    set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    // It is stored in whole seconds.
    assert!(SystemTime::now() + Duration::from_secs(1) >= deadline);
    assert!(cloud.has(&ours()).await);
    assert_eq!(cloud.faults().read("namespace", &LOCK), None);
}

#[tokio::test]
async fn a_lock_whose_deadline_is_over_is_broken_at_once() {
    let cloud = Cloud::fake(Settings::default());
    leave(&cloud, Some(SystemTime::now() - LIMIT));
    set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap();
    assert_eq!(cloud.faults().count(&Method::POST, "/namespaces"), 2);
}

#[tokio::test]
async fn a_lock_that_another_run_holds_is_an_error_that_names_it_and_nothing_is_written() {
    for (deadline, remedy) in [
        (Some(SystemTime::now() + Duration::from_secs(60)), "it ends by itself"),
        // Further away than any run sets: by a clock that is wrong.
        (Some(SystemTime::now() + LIMIT), "which none of ours takes; if no run is at work: delete"),
        (None, "delete the namespace default-domain:kubectl-opensdn-link-local-services"),
    ] {
        let cloud = Cloud::fake(Settings::default());
        leave(&cloud, deadline);
        let before = cloud.object().await;
        let ended = set_up(&cloud.api(), &cluster("a"), &ours(), &short_wait()).await;
        let error = ended.unwrap_err();
        assert!(matches!(error, Error::Lock(lock::Error::Held { .. })), "{error}");
        for expected in ["cluster-of-others (1234)", remedy] {
            assert!(error.to_string().contains(expected), "{expected} is not in: {error}");
        }
        assert_eq!(cloud.object().await, before);
        assert!(cloud.faults().read("namespace", &LOCK).is_some());
    }
}

#[tokio::test]
async fn the_lock_is_given_back_when_it_is_done_and_when_it_fails() {
    let cloud = Cloud::fake(Settings::default());
    let (api, id) = (cloud.api(), cluster("a"));
    set_up(&api, &id, &ours(), &timing()).await.unwrap();
    assert_eq!(cloud.faults().read("namespace", &LOCK), None);
    let refused = async |_: Value| Err::<String, _>(std::io::Error::other("no room"));
    let request = opensdn_config_api::apply::Request {
        cluster: &id,
        rows: &[],
        foreign: opensdn_config_api::edit::Foreign::Respect,
        unwanted: opensdn_config_api::edit::Unwanted::Remove,
    };
    let ended = opensdn_config_api::apply::apply(&api, &request, &timing(), refused).await;
    assert!(matches!(ended, Err(Error::Backup(_))), "{ended:?}");
    assert_eq!(cloud.faults().read("namespace", &LOCK), None);
    assert!(cloud.has(&ours()).await, "rows were removed without a backup");
}
