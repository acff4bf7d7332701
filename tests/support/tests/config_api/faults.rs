//! Faults happen as often as they were asked for.

use std::time::{Duration, Instant};

use http::Method;
use opensdn_testing::config_api::{Disturbance, Service, Times};
use serde_json::{Value, json};

use crate::asker::{Asker, call, entry};

#[tokio::test]
async fn a_stale_writer_puts_the_old_list_back_once() {
    let asker = Asker::new();
    let old = json!([{"linklocal_service_name": "metadata"}]);
    asker.fake.write_entries(old.clone()).unwrap();
    asker.fake.stale_writer(Times::Next(1));
    let before = asker.etag().await;
    assert_eq!(asker.put_entries(json!([entry()])).await.status, 200);
    assert_eq!(asker.entries().await, old);
    assert_ne!(asker.etag().await, before);
    assert_eq!(asker.put_entries(json!([entry()])).await.status, 200);
    assert_eq!(asker.entries().await, json!([entry()]));
}

#[tokio::test]
async fn a_fighter_puts_the_old_list_back_until_it_is_switched_off() {
    let asker = Asker::new();
    asker.fake.stale_writer(Times::Always);
    for _ in 0..3 {
        asker.put_entries(json!([entry()])).await;
        assert_eq!(asker.entries().await, Value::Null);
    }
    asker.fake.stale_writer(Times::Never);
    asker.put_entries(json!([entry()])).await;
    assert_eq!(asker.entries().await, json!([entry()]));
}

#[tokio::test]
async fn a_put_is_answered_and_lost() {
    let asker = Asker::new();
    let etag = asker.etag().await;
    asker.fake.lose_puts(Times::Next(1));
    let said = asker.put_entries(json!([entry()])).await;
    assert_eq!(said.status, 200);
    assert_eq!(said.json()["global-vrouter-config"]["uuid"], asker.fake.global_vrouter_config());
    assert_eq!((asker.etag().await, asker.fake.entries()), (etag, Value::Null));
    asker.put_entries(json!([entry()])).await;
    assert_eq!(asker.fake.entries(), json!([entry()]));
}

#[tokio::test]
async fn pools_and_annotations_are_missing_in_the_middle_of_a_write() {
    let asker = Asker::new();
    let pools = json!({"port_translation_pool": [{"protocol": "tcp", "port_count": "9"}]});
    let pairs = json!({"key_value_pair": [{"key": "a", "value": "b"}]});
    let all = json!({"port_translation_pools": pools, "annotations": pairs, "flow_export_rate": 1});
    asker.put_properties(all).await;
    asker.fake.tear_reads(Times::Next(1));
    let said = asker.get(&asker.path()).await;
    let torn = &said.json()["global-vrouter-config"];
    assert_eq!((torn.get("port_translation_pools"), torn.get("annotations")), (None, None));
    assert_eq!(torn["flow_export_rate"], 1);
    let whole = asker.object().await;
    assert_eq!((&whole["port_translation_pools"], &whole["annotations"]), (&pools, &pairs));
    assert_ne!(said.header("etag"), asker.etag().await, "the write is over");
}

#[tokio::test]
async fn the_next_calls_are_503_and_are_not_done() {
    let asker = Asker::new();
    asker.fake.disturb(Service::ConfigApi, Disturbance::Unavailable, Times::Next(2));
    let said = asker.put_entries(json!([entry()])).await;
    assert_eq!((said.status, said.text().as_str()), (503, "No connection to zookeeper."));
    assert_eq!(asker.get("/").await.status, 503);
    assert_eq!(asker.entries().await, Value::Null);
}

#[tokio::test]
async fn the_next_connections_are_cut_and_nothing_is_done() {
    let asker = Asker::new();
    asker.fake.disturb(Service::ConfigApi, Disturbance::Cut, Times::Next(1));
    assert!(asker.try_get("/").await.is_err());
    assert!(asker.try_get("/").await.is_ok());
}

#[tokio::test]
async fn keystone_is_disturbed_by_itself() {
    let asker = Asker::new();
    for (disturbance, expected) in [(Disturbance::Cut, None), (Disturbance::Unavailable, Some(503))]
    {
        asker.fake.disturb(Service::Keystone, disturbance, Times::Next(1));
        assert_eq!(asker.get("/").await.status, 200);
        let said = call(asker.fake.keystone_url(), Method::GET, "/v3", &[], "").await;
        assert_eq!(said.ok().map(|said| said.status), expected);
    }
}

#[tokio::test]
async fn an_answer_is_slow() {
    let asker = Asker::new();
    let time = Duration::from_millis(50);
    asker.fake.disturb(Service::ConfigApi, Disturbance::Slow(time), Times::Always);
    let start = Instant::now();
    assert_eq!(asker.get("/").await.status, 200);
    assert!(start.elapsed() >= time);
}

#[tokio::test]
async fn a_fault_happens_once_at_a_certain_call_or_from_it_on() {
    let asker = Asker::new();
    let failures = async |times| {
        asker.fake.disturb(Service::ConfigApi, Disturbance::Unavailable, times);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(asker.get("/").await.status);
        }
        statuses
    };
    assert_eq!(failures(Times::Once { after: 2 }).await, [200, 200, 503, 200]);
    assert_eq!(failures(Times::Once { after: 0 }).await, [503, 200, 200, 200]);
    assert_eq!(failures(Times::From(2)).await, [200, 200, 503, 503]);
    assert_eq!(failures(Times::From(0)).await, [503; 4]);
}

#[tokio::test]
async fn a_call_is_done_and_not_answered() {
    let asker = Asker::new();
    asker.fake.disturb(Service::ConfigApi, Disturbance::Unanswered, Times::Next(1));
    let body = json!({"namespace": {"fq_name": ["default-domain", "n"], "parent_type": "domain"}});
    let headers = [("content-type", "application/json")];
    let said =
        call(asker.fake.url(), Method::POST, "/namespaces", &headers, body.to_string()).await;
    assert!(said.is_err());
    assert!(asker.fake.read("namespace", &["default-domain", "n"]).is_some());
}

#[tokio::test]
async fn a_stale_writer_writes_a_list_of_another_time() {
    let asker = Asker::new();
    asker.fake.stale_writer_of(json!([{"linklocal_service_name": "old"}]), Times::Next(1));
    asker.put_entries(json!([entry()])).await;
    assert_eq!(asker.entries().await, json!([{"linklocal_service_name": "old"}]));
    asker.put_entries(json!([entry()])).await;
    assert_eq!(asker.entries().await, json!([entry()]));
}

#[tokio::test]
async fn a_delete_is_answered_and_lost() {
    let asker = Asker::new();
    let uuid = asker.fake.create("virtual-machine", json!({"fq_name": ["vm"]})).unwrap();
    let path = format!("/virtual-machine/{uuid}");
    asker.fake.lose_deletes(Times::Next(1));
    for status in [200, 404] {
        assert_eq!(asker.ask(Method::DELETE, &path, &[], "").await.status, 200);
        assert_eq!(asker.get(&path).await.status, status);
    }
}

#[tokio::test]
async fn an_overwriter_replaces_its_property_after_each_that_replaces_it() {
    let asker = Asker::new();
    asker.fake.overwriter_of("flow_export_rate", json!(7), Times::Next(1));
    let rate = async || asker.object().await["flow_export_rate"].clone();
    asker.put_properties(json!({"forwarding_mode": "l2"})).await;
    assert_eq!(rate().await, Value::Null);
    for expected in [7, 3] {
        assert_eq!(asker.put_properties(json!({"flow_export_rate": 3})).await.status, 200);
        assert_eq!(rate().await, expected);
    }
}
