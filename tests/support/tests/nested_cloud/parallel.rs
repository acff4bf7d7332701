//! Several clusters are set up at a time, on a cloud that works and on one that does not.

use std::time::Duration;

use futures::future::try_join_all;
use opensdn_config_api::link_local::Row;
use opensdn_testing::config_api::{Disturbance, Service, Settings, Times};
use serde_json::{Value, json};

use crate::cloud::{Cloud, cluster, row, set_up, timing};

const CLUSTERS: u8 = 8;

/// Two rows of its own, and one that all of them have.
fn rows_of(number: u8) -> Vec<Row> {
    let own = |port| row(&format!("{number}-{port}"), [number, 1], port, 100);
    vec![own(8082), own(9161), row("of-all", [100, 1], 9091, 9)]
}

/// A row of others, after which all rows are given.
async fn with_others(cloud: &Cloud) -> Vec<Value> {
    let other = json!({"linklocal_service_name": "nested-cloud-test-other",
        "linklocal_service_ip": "198.18.99.1", "linklocal_service_port": 7});
    cloud.add(&[other]).await;
    cloud.rows().await
}

/// Sets all up, or removes them.
async fn all_at_once(cloud: &Cloud, rows: impl Fn(u8) -> Vec<Row>) {
    let all = (0..CLUSTERS).map(async |number| {
        let (api, id) = (cloud.api(), cluster(&number.to_string()));
        set_up(&api, &id, &rows(number), &timing()).await
    });
    try_join_all(all).await.unwrap();
}

async fn assert_all_are_there(cloud: &Cloud, before: &[Value]) {
    for number in 0..CLUSTERS {
        assert!(cloud.has(&rows_of(number)).await, "rows of {number} are missing");
    }
    let after = cloud.rows().await;
    assert_eq!(&after[..before.len()], before);
    assert_eq!(after.len(), before.len() + usize::from(CLUSTERS) * 2 + 1);
    assert_eq!(cloud.records().await.len(), usize::from(CLUSTERS));
}

/// Disturbs three calls in twenty, until it is dropped.
async fn disturb(cloud: &Cloud, disturbance: Disturbance) {
    for next in (1..).map(|round| round * 20) {
        while cloud.faults().calls().len() < next {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cloud.faults().disturb(Service::ConfigApi, disturbance, Times::Next(3));
    }
}

#[tokio::test]
async fn eight_clusters_are_set_up_and_removed_at_a_time_and_no_row_is_lost() {
    Cloud::any(async |cloud| {
        let before = with_others(cloud).await;
        all_at_once(cloud, rows_of).await;
        assert_all_are_there(cloud, &before).await;
        all_at_once(cloud, |_| Vec::new()).await;
        assert_eq!(cloud.rows().await, before);
        assert!(cloud.records().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_stale_writer_among_eight_set_ups_costs_no_row() {
    for after in 0..3 {
        let cloud = Cloud::fake(Settings::default());
        let before = with_others(&cloud).await;
        cloud.faults().stale_writer_of(json!(before), Times::Once { after });
        all_at_once(&cloud, rows_of).await;
        assert_all_are_there(&cloud, &before).await;
    }
}

#[tokio::test]
async fn eight_set_ups_survive_a_config_api_that_fails_now_and_then() {
    for disturbance in [Disturbance::Unavailable, Disturbance::Cut, Disturbance::Unanswered] {
        let cloud = Cloud::fake(Settings::default());
        let before = with_others(&cloud).await;
        tokio::select! {
            () = all_at_once(&cloud, rows_of) => {}
            () = disturb(&cloud, disturbance) => {}
        }
        let calls = cloud.faults().calls();
        let failed = calls.iter().filter(|call| call.status.is_none_or(|status| status == 503));
        assert!(failed.count() >= 3, "nothing was disturbed");
        cloud.faults().disturb(Service::ConfigApi, disturbance, Times::Never);
        assert_all_are_there(&cloud, &before).await;
    }
}
