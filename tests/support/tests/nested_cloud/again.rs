//! The same again writes nothing, and what is written leaves what others have as it is.

use http::Method;
use opensdn_config_api::link_local::Row;
use serde_json::{Value, json};

use crate::cloud::{Cloud, cluster, row, set_up, timing};
use crate::example::{Example, OPTIONS, worked_example};
use opensdn_testing::config_api::Settings;

/// How many writes of any kind there were.
fn writes(cloud: &Cloud) -> usize {
    let to = ["/prop-collection-update", "/namespaces", "/namespace"];
    let puts = ["/global-vrouter-config", "/virtual-network"];
    puts.map(|path| cloud.count(&Method::PUT, path)).iter().sum::<usize>()
        + to.map(|path| cloud.count(&Method::POST, path)).iter().sum::<usize>()
        + cloud.count(&Method::DELETE, "/namespace")
}

#[tokio::test]
async fn rows_that_are_there_are_not_written_again() {
    Cloud::any(async |cloud| {
        let rows = [row("a", [0, 1], 8082, 100), row("b", [0, 1], 8086, 101)];
        let (api, id) = (cloud.api(), cluster("again"));
        let first = set_up(&api, &id, &rows, &timing()).await.unwrap();
        assert_eq!((first.changes.len(), first.attempts), (2, 1));
        let before = (cloud.object().await, writes(cloud));
        let second = set_up(&api, &id, &rows, &timing()).await.unwrap();
        assert_eq!((second.changes.len(), second.attempts, second.backup), (0, 0, None));
        assert_eq!((cloud.object().await, writes(cloud)), before);
        // Nor by a program that was started since.
        set_up(&cloud.api(), &id, &rows, &timing()).await.unwrap();
        assert_eq!((cloud.object().await, writes(cloud)), before);
    })
    .await;
}

#[tokio::test]
async fn a_plan_that_is_carried_out_writes_nothing_the_second_time() {
    for option in OPTIONS {
        let cloud = worked_example(Settings::default());
        let (api, example) = (cloud.api(), Example::new("again", option));
        example.set_up(&api).await;
        let (etag, writes_before) = (cloud.etag().await, writes(&cloud));
        assert!(writes_before > 0);
        let again = example.set_up(&api).await;
        assert!(again.rows.changes.is_empty(), "{:?}", again.rows.changes);
        assert_eq!((cloud.etag().await, writes(&cloud)), (etag, writes_before), "{option:?}");
    }
}

#[tokio::test]
async fn rows_of_others_stay_byte_for_byte_and_in_their_order() {
    Cloud::any(async |cloud| {
        let odd = [
            json!({"linklocal_service_name": "nested-cloud-test-Metadata",
                "linklocal_service_ip": "198.18.9.1", "linklocal_service_port": 80,
                "ip_fabric_service_ip": [], "ip_fabric_DNS_service_name": "nova.example",
                "ip_fabric_service_port": 8775}),
            json!({"linklocal_service_name": "nested-cloud-test-twice",
                "linklocal_service_ip": "198.18.9.2", "linklocal_service_port": 1}),
            json!({"linklocal_service_name": "nested-cloud-test-twice",
                "linklocal_service_ip": "198.18.9.2", "linklocal_service_port": 1,
                "ip_fabric_DNS_service_name": null, "ip_fabric_service_ip": ["192.168.1.9", ""]}),
            json!({"linklocal_service_name": "nested-cloud-test-\u{e4}\"\\",
                "linklocal_service_ip": "", "linklocal_service_port": 0}),
            json!({"linklocal_service_name": "nested-cloud-test-port",
                "linklocal_service_ip": "not an address", "linklocal_service_port": 70000}),
        ];
        cloud.add(&odd).await;
        let before = cloud.rows().await;
        let (api, id) = (cloud.api(), cluster("odd"));
        let ours = [row("x", [1, 1], 8082, 100), row("y", [1, 2], 9161, 101)];
        set_up(&api, &id, &ours, &timing()).await.unwrap();
        let after = cloud.rows().await;
        let text = |rows: &[Value]| rows.iter().map(Value::to_string).collect::<Vec<_>>();
        assert_eq!(text(&after[..before.len()]), text(&before));
        let added: Vec<Row> = after[before.len()..].iter().cloned().map(Row::from).collect();
        assert_eq!(added, ours);
        set_up(&api, &id, &[], &timing()).await.unwrap();
        assert_eq!(text(&cloud.rows().await), text(&before));
        assert!(cloud.records().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn rows_that_are_nothing_stay() {
    let cloud = Cloud::fake(Settings::default());
    let odd = [
        json!(null),
        json!({}),
        json!({"linklocal_service_port": 0, "ip_fabric_service_ip": null}),
    ];
    cloud.write(&odd).await;
    let before = cloud.rows().await;
    set_up(&cloud.api(), &cluster("null"), &[row("a", [1, 1], 1, 1)], &timing()).await.unwrap();
    let after = cloud.rows().await;
    assert_eq!((&after[..before.len()], after.len()), (&before[..], before.len() + 1));
}

#[tokio::test]
async fn each_kind_of_nothing_is_a_list_without_rows() {
    for nothing in [Some(json!(null)), Some(json!({})), Some(json!([])), None] {
        let cloud = Cloud::fake(Settings::default());
        if let Some(nothing) = nothing.clone() {
            cloud.write_property("linklocal_services", nothing).await;
        }
        let (api, id, ours) = (cloud.api(), cluster("empty"), [row("a", [1, 1], 8082, 100)]);
        set_up(&api, &id, &ours, &timing()).await.unwrap();
        assert!(cloud.has(&ours).await, "{nothing:?}");
        set_up(&api, &id, &[], &timing()).await.unwrap();
        assert!(cloud.rows().await.is_empty(), "{nothing:?}");
    }
}
