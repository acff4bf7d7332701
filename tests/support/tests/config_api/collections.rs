//! Lists and maps: `prop-collection-update`, and their `PUT`.

use serde_json::{Value, json};

use crate::asker::Asker;

const TEXT_OF_400: &str = "linklocal_services neither \"ListProperty\" nor \"MapProperty\"";

fn pair(key: &str, value: &str) -> Value {
    json!({"key": key, "value": value})
}

fn pool(protocol: &str, start: u32) -> Value {
    json!({"protocol": protocol, "port_count": null,
        "port_range": {"start_port": start, "end_port": start + 1023}})
}

#[tokio::test]
async fn entries_cannot_be_added_one_by_one() {
    let asker = Asker::new();
    let update = json!({"field": "linklocal_services", "operation": "add", "value": {}});
    let said = asker.update_collection(update).await;
    assert_eq!((said.status, said.text().as_str()), (400, TEXT_OF_400));
}

#[tokio::test]
async fn an_annotation_is_set_and_deleted_and_moves_the_etag() {
    let asker = Asker::new();
    let first = asker.etag().await;
    let set = |key: &str, value: &str| json!({"field": "annotations", "operation": "set", "value": pair(key, value), "position": key});
    for (key, value) in [("b", "1"), ("a", "2"), ("b", "3")] {
        let said = asker.update_collection(set(key, value)).await;
        assert_eq!((said.status, said.text().as_str()), (200, ""));
    }
    let second = asker.etag().await;
    assert_ne!(first, second);
    let annotations = asker.object().await["annotations"].clone();
    assert_eq!(annotations, json!({"key_value_pair": [pair("a", "2"), pair("b", "3")]}));
    for key in ["a", "b", "unknown"] {
        let delete = json!({"field": "annotations", "operation": "delete", "position": key});
        assert_eq!(asker.update_collection(delete).await.status, 200);
    }
    assert_ne!(asker.etag().await, second);
    assert_eq!(asker.object().await.get("annotations"), None);
}

#[tokio::test]
async fn a_pool_is_added_and_moves_the_etag() {
    let asker = Asker::new();
    let first = asker.etag().await;
    let pool = pool("tcp", 56000);
    let update = json!({"field": "port_translation_pools", "operation": "add", "value": pool});
    let said = asker.update_collection(update).await;
    assert_eq!((said.status, said.text().as_str()), (200, ""));
    assert_ne!(asker.etag().await, first);
    let pools = asker.object().await["port_translation_pools"].clone();
    assert_eq!(pools, json!({"port_translation_pool": [pool]}));
}

#[tokio::test]
async fn a_put_of_a_list_and_of_a_map_replaces_them() {
    let asker = Asker::new();
    for start in [50000, 56000] {
        let pools =
            json!({"port_translation_pool": [pool("tcp", start), pool("udp", start + 1024)]});
        let pairs = json!({"key_value_pair": [pair(&start.to_string(), "x")]});
        let said = asker
            .put_properties(json!({"port_translation_pools": pools, "annotations": pairs}))
            .await;
        assert_eq!(said.status, 200);
        let object = asker.object().await;
        assert_eq!((&object["port_translation_pools"], &object["annotations"]), (&pools, &pairs));
    }
    asker.put_properties(json!({"port_translation_pools": {}, "annotations": []})).await;
    let object = asker.object().await;
    assert_eq!((object.get("port_translation_pools"), object.get("annotations")), (None, None));
}

/// Python has no length of `None`.
#[tokio::test]
async fn a_null_for_a_list_is_an_internal_error_and_changes_nothing() {
    let asker = Asker::new();
    let pools = json!({"port_translation_pool": [pool("tcp", 56000)]});
    asker.put_properties(json!({ "port_translation_pools": pools })).await;
    let said = asker.put_properties(json!({"port_translation_pools": null})).await;
    assert_eq!(said.status, 500);
    assert_eq!(asker.object().await["port_translation_pools"], pools);
}

#[tokio::test]
async fn a_pool_is_checked_against_its_type() {
    let asker = Asker::new();
    let mut wrong = pool("tcp", 56000);
    wrong["port_range"]["end_port"] = json!(70000);
    let update = json!({"field": "port_translation_pools", "operation": "add", "value": wrong});
    let said = asker.update_collection(update).await;
    let text = "end_port: value must be between -1 and 65535";
    assert_eq!((said.status, said.text().as_str()), (400, text));
}

#[tokio::test]
async fn another_operation_and_another_object_are_refused() {
    let asker = Asker::new();
    let update = json!({"field": "annotations", "operation": "add", "value": pair("a", "b")});
    let said = asker.update_collection(update.clone()).await;
    assert_eq!(said.status, 400);
    assert!(said.text().starts_with("Unsupported operation add in request "), "{}", said.text());
    let body = json!({"uuid": "nowhere", "updates": [update]});
    let said = asker.post("/prop-collection-update", &body).await;
    assert_eq!((said.status, said.text().as_str()), (404, "Object Not Found: nowhere"));
}

/// Here a body that is not JSON is no silent success.
#[tokio::test]
async fn plain_text_is_an_internal_error() {
    let asker = Asker::new();
    let text = [("content-type", "text/plain")];
    let said = asker.ask(http::Method::POST, "/prop-collection-update", &text, "{}").await;
    assert_eq!(said.status, 500);
}
