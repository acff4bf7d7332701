//! Rows that others have already, and rows that several clusters have.

use opensdn_config_api::apply::Error;
use opensdn_config_api::link_local::Row;

use crate::cloud::{Cloud, cluster, row, set_up, timing};

/// The same service address and port, which leads to this node.
fn to(node: u8) -> Row {
    row("shared", [3, 1], 9091, node)
}

#[tokio::test]
async fn a_key_that_leads_elsewhere_is_refused_and_nothing_is_written() {
    Cloud::any(async |cloud| {
        cloud.add(&[to(1).json().clone()]).await;
        let before = cloud.object().await;
        let rows = [row("a", [3, 2], 8082, 100), to(2)];
        let error = set_up(&cloud.api(), &cluster("a"), &rows, &timing()).await.unwrap_err();
        let Error::Conflicts(conflicts) = &error else { panic!("{error}") };
        assert_eq!(conflicts.0.len(), 1);
        assert!(error.to_string().contains("198.18.3.1:9091"), "{error}");
        assert_eq!(cloud.object().await, before);
    })
    .await;
}

#[tokio::test]
async fn a_row_of_others_with_the_same_target_is_adopted_and_stays_after_the_removal() {
    Cloud::any(async |cloud| {
        cloud.add(&[to(1).json().clone()]).await;
        let before = cloud.rows().await;
        let (api, id) = (cloud.api(), cluster("a"));
        let named_otherwise = row("other-name", [3, 1], 9091, 1);
        let done = set_up(&api, &id, &[named_otherwise], &timing()).await.unwrap();
        assert_eq!((done.changes.len(), &done.adopted[..]), (0, &[to(1).key()][..]));
        assert_eq!((cloud.rows().await, cloud.records().await.len()), (before.clone(), 1));
        set_up(&api, &id, &[], &timing()).await.unwrap();
        assert_eq!((cloud.rows().await, cloud.records().await.len()), (before, 0));
    })
    .await;
}

#[tokio::test]
async fn the_last_of_several_clusters_takes_away_what_the_first_wrote() {
    for order in [["a", "b", "c"], ["b", "c", "a"], ["c", "b", "a"], ["b", "a", "c"]] {
        Cloud::any(async |cloud| {
            let (api, before) = (cloud.api(), cloud.rows().await);
            let own = |name: &str| row(name, [4, name.as_bytes()[0]], 8082, 100);
            for name in ["a", "b", "c"] {
                set_up(&api, &cluster(name), &[to(1), own(name)], &timing()).await.unwrap();
            }
            assert_eq!(cloud.rows().await.len(), before.len() + 4);
            for (gone, name) in order.iter().enumerate() {
                assert!(cloud.has(&[to(1)]).await, "the shared row is gone before {name}");
                set_up(&api, &cluster(name), &[], &timing()).await.unwrap();
                assert!(!cloud.has(&[own(name)]).await);
                assert_eq!(cloud.records().await.len(), 2 - gone);
            }
            assert_eq!(cloud.rows().await, before, "{order:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_shared_row_is_not_led_elsewhere_by_one_of_its_clusters() {
    Cloud::any(async |cloud| {
        let api = cloud.api();
        set_up(&api, &cluster("a"), &[to(1)], &timing()).await.unwrap();
        set_up(&api, &cluster("b"), &[to(1)], &timing()).await.unwrap();
        let before = cloud.object().await;
        for name in ["a", "b"] {
            let error = set_up(&api, &cluster(name), &[to(2)], &timing()).await.unwrap_err();
            assert!(matches!(error, Error::Conflicts(_)), "{error}");
        }
        assert_eq!(cloud.object().await, before);
    })
    .await;
}
