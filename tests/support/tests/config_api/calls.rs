//! What was called is known.

use http::Method;
use opensdn_testing::config_api::{Disturbance, Service, Times};
use serde_json::json;

use crate::asker::Asker;

#[tokio::test]
async fn calls_are_counted_by_method_and_path() {
    let asker = Asker::new();
    asker.object().await;
    asker.get("/global-vrouter-configs").await;
    assert_eq!(asker.fake.count(&Method::PUT, "/global-vrouter-config"), 0);
    assert_eq!(asker.fake.count(&Method::GET, "/global-vrouter-config"), 1);
    asker.put_properties(json!({"flow_export_rate": 1})).await;
    assert_eq!(asker.fake.count(&Method::PUT, "/global-vrouter-config"), 1);
    assert_eq!(asker.fake.count(&Method::PUT, &asker.path()), 1);
    asker.fake.forget_calls();
    assert!(asker.fake.calls().is_empty());
}

#[tokio::test]
async fn a_call_that_is_cut_is_counted_without_a_status() {
    let asker = Asker::new();
    asker.fake.disturb(Service::ConfigApi, Disturbance::Cut, Times::Next(1));
    let _ = asker.try_get("/").await;
    asker.get("/").await;
    let statuses: Vec<Option<u16>> =
        asker.fake.calls().iter().map(|call| call.status.map(|status| status.as_u16())).collect();
    assert_eq!(statuses, [None, Some(200)]);
}

#[tokio::test]
async fn what_a_test_does_itself_is_no_call() {
    let asker = Asker::new();
    asker.fake.write_entries(json!([])).unwrap();
    let _ = asker.fake.entries();
    assert!(asker.fake.calls().is_empty());
}
