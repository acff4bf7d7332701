//! Odd input in `linklocal_services`.

use http::Method;
use serde_json::{Value, json};

use crate::asker::{Asker, entry};

async fn accepted(field: &str, value: Value, stored: Value) {
    let asker = Asker::new();
    let said = asker.put_with(field, value.clone()).await;
    assert_eq!(said.status, 200, "{value}");
    assert_eq!(asker.entries().await[0][field], stored, "{value}");
}

async fn refused(field: &str, value: Value, text: &str) {
    let asker = Asker::new();
    asker.put_entries(json!([entry()])).await;
    let said = asker.put_with(field, value).await;
    assert_eq!(said.status, 400);
    assert!(said.header("content-type").starts_with("text/html"));
    let start = "Bad property in http_put: Error validating property linklocal_services value \
                 {'linklocal_service_entry': [{";
    assert!(said.text().starts_with(start), "{}", said.text());
    assert!(said.text().ends_with(text), "{}", said.text());
    assert_eq!(asker.entries().await, json!([entry()]));
}

#[tokio::test]
async fn duplicates_are_stored_in_order() {
    let asker = Asker::new();
    let mut other = entry();
    other["linklocal_service_name"] = json!("other");
    let mut same_name = entry();
    same_name["linklocal_service_port"] = json!(1);
    let all = json!([entry(), other, entry(), same_name]);
    assert_eq!(asker.put_entries(all.clone()).await.status, 200);
    assert_eq!(asker.entries().await, all);
}

#[tokio::test]
async fn a_port_out_of_range_is_stored() {
    for port in [0, 70000, -5] {
        accepted("linklocal_service_port", json!(port), json!(port)).await;
    }
}

#[tokio::test]
async fn a_port_as_text_becomes_a_number() {
    accepted("linklocal_service_port", json!("8082"), json!(8082)).await;
}

#[tokio::test]
async fn a_port_with_a_fraction_is_cut() {
    accepted("ip_fabric_service_port", json!(80.7), json!(80)).await;
}

#[tokio::test]
async fn a_port_of_true_stays_true() {
    accepted("linklocal_service_port", json!(true), json!(true)).await;
}

#[tokio::test]
async fn a_port_of_letters_is_refused() {
    let text = " linklocal_service_port: integer value expected instead of abc";
    refused("linklocal_service_port", json!("abc"), text).await;
}

#[tokio::test]
async fn any_text_is_an_address() {
    for address in ["not-an-ip", "fd00::1", ""] {
        accepted("linklocal_service_ip", json!(address), json!(address)).await;
    }
    accepted("ip_fabric_service_ip", json!([""]), json!([""])).await;
}

#[tokio::test]
async fn a_number_is_no_address() {
    let text = " linklocal_service_ip: string value expected instead of 10";
    refused("linklocal_service_ip", json!(10), text).await;
    let text = " ip_fabric_service_ip: string value expected instead of 0";
    refused("ip_fabric_service_ip", json!([0]), text).await;
}

#[tokio::test]
async fn fabric_addresses_must_be_a_list() {
    let text = " Field ip_fabric_service_ip must be a list. Received value: 192.168.1.100";
    refused("ip_fabric_service_ip", json!("192.168.1.100"), text).await;
}

#[tokio::test]
async fn nothing_is_required_in_an_entry() {
    let asker = Asker::new();
    let all = json!([{}, {"linklocal_service_name": "only"}]);
    assert_eq!(asker.put_entries(all.clone()).await.status, 200);
    assert_eq!(asker.entries().await, all);
}

#[tokio::test]
async fn an_unknown_field_of_an_entry_is_refused() {
    let text = " class <class 'vnc_api.gen.resource_xsd.LinklocalServiceEntryType'> does not have \
                field ip_fabric_dns_service_name";
    refused("ip_fabric_dns_service_name", json!("x"), text).await;
}

#[tokio::test]
async fn what_is_false_to_python_is_not_looked_at() {
    for value in [json!(0), json!(""), json!(false), json!([]), json!({}), Value::Null] {
        accepted("linklocal_service_port", value.clone(), value.clone()).await;
        accepted("ip_fabric_service_ip", value.clone(), value.clone()).await;
        accepted("linklocal_service_ip", value.clone(), value.clone()).await;
    }
}

#[tokio::test]
async fn a_null_is_an_entry_and_a_number_is_none() {
    let asker = Asker::new();
    let all = json!([null, entry()]);
    assert_eq!(asker.put_entries(all.clone()).await.status, 200);
    assert_eq!(asker.entries().await, all);
    let said = asker.put_entries(json!([5])).await;
    assert_eq!(said.status, 400);
    assert!(said.text().ends_with(" 'int' object has no attribute 'items'"), "{}", said.text());
}

#[tokio::test]
async fn an_unknown_property_is_ignored() {
    let asker = Asker::new();
    assert_eq!(asker.put_properties(json!({"link_local": {"a": 1}})).await.status, 200);
    assert_eq!(asker.object().await.get("link_local"), None);
}

#[tokio::test]
async fn the_property_as_a_list_is_refused_unless_it_is_empty() {
    let asker = Asker::new();
    let said = asker.put_properties(json!({"linklocal_services": [entry()]})).await;
    assert_eq!(said.status, 400);
    let start = "Bad property in http_put: Error in property linklocal_services type <class \
                 'vnc_api.gen.resource_xsd.LinklocalServicesTypes'> value of [{";
    assert!(said.text().starts_with(start), "{}", said.text());
    assert_eq!(asker.put_properties(json!({"linklocal_services": []})).await.status, 200);
    assert_eq!(asker.object().await["linklocal_services"], json!([]));
}

#[tokio::test]
async fn each_kind_of_empty_reads_back_as_it_is_known() {
    let asker = Asker::new();
    let put = async |value: Value| {
        asker.put_entries(json!([entry()])).await;
        let said = asker.put_properties(json!({ "linklocal_services": value })).await;
        assert_eq!(said.status, 200);
        asker.object().await.get("linklocal_services").cloned()
    };
    let (null, empty) =
        (json!({"linklocal_service_entry": null}), json!({"linklocal_service_entry": []}));
    assert_eq!(put(null.clone()).await, Some(null));
    assert_eq!(put(json!({})).await, Some(json!({})));
    assert_eq!(put(Value::Null).await, None);
    assert_eq!(put(empty.clone()).await, Some(empty));
}

/// Upstream removes a column that is there, and writes a new one otherwise.
#[tokio::test]
async fn a_null_where_nothing_was_reads_back_as_null() {
    let asker = Asker::new();
    assert_eq!(asker.object().await.get("linklocal_services"), None);
    let null = json!({"linklocal_services": null});
    asker.put_properties(null.clone()).await;
    assert_eq!(asker.object().await.get("linklocal_services"), Some(&Value::Null));
    asker.put_properties(null).await;
    assert_eq!(asker.object().await.get("linklocal_services"), None);
}

#[tokio::test]
async fn without_a_body_of_json_nothing_happens_and_all_is_well() {
    let asker = Asker::new();
    asker.put_entries(json!([entry()])).await;
    let (etag, path) = (asker.etag().await, asker.path());
    let body = json!({"global-vrouter-config": {"linklocal_services": {}}}).to_string();
    let json = ("content-type", "application/json");
    for (headers, body) in [
        (vec![("content-type", "text/plain")], body.as_str()),
        (vec![], body.as_str()),
        (vec![json], ""),
        (vec![json], "{}"),
        (vec![json], r#"{"global-vrouter-config": {}}"#),
    ] {
        let said = asker.ask(Method::PUT, &path, &headers, body.to_owned()).await;
        assert_eq!((said.status, said.text().as_str()), (200, ""), "{headers:?} {body}");
    }
    assert_eq!(asker.etag().await, etag);
    assert_eq!(asker.entries().await, json!([entry()]));
}

#[tokio::test]
async fn broken_json_and_another_wrapper_are_an_internal_error() {
    let asker = Asker::new();
    let path = asker.path();
    for body in ["{", r#"{"virtual-network": {"a": 1}}"#, r#"{"global-vrouter-config": 5}"#] {
        let said =
            asker.ask(Method::PUT, &path, &[("content-type", "application/json")], body).await;
        assert_eq!((said.status, said.text().as_str()), (500, "Internal Server Error"), "{body}");
    }
}

#[tokio::test]
async fn no_write_is_conditional() {
    let asker = Asker::new();
    let path = asker.path();
    let body = json!({"global-vrouter-config": {
        "id_perms": {"last_modified": "2001-01-01T00:00:00.000001"},
        "linklocal_services": {"linklocal_service_entry": [entry()]}}});
    let headers = [("content-type", "application/json"), ("if-match", "\"2001-01-01\"")];
    let said = asker.ask(Method::PUT, &path, &headers, body.to_string()).await;
    assert_eq!(said.status, 200);
    assert_eq!(asker.entries().await, json!([entry()]));
    let stamp = asker.object().await["id_perms"]["last_modified"].clone();
    assert!(!stamp.as_str().unwrap().starts_with("2001"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let asker = Asker::new();
    let said = asker.put_with("linklocal_service_name", json!("x".repeat(1_024_000))).await;
    assert_eq!(said.status, 413);
}

#[tokio::test]
async fn of_two_writers_who_read_the_same_one_loses() {
    let asker = Asker::new();
    let seen = [asker.entries().await, asker.entries().await];
    for (number, seen) in seen.into_iter().enumerate() {
        let mut all = seen.as_array().cloned().unwrap_or_default();
        let mut mine = entry();
        mine["linklocal_service_port"] = json!(number);
        all.push(mine);
        assert_eq!(asker.put_entries(json!(all)).await.status, 200);
    }
    assert_eq!(asker.entries().await.as_array().unwrap().len(), 1);
}
