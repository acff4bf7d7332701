//! Calls for objects of any type.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::asker::{Asker, entry};

const SYSTEM: &str = "default-global-system-config";
const CONFIG: &str = "default-global-vrouter-config";

#[tokio::test]
async fn the_homepage_names_what_there_is_by_the_address_it_was_called_by() {
    let asker = Asker::new();
    let homepage = asker.get("/").await.json();
    let base = homepage["href"].as_str().unwrap();
    assert_eq!(base, asker.fake.url());
    let links = homepage["links"].as_array().unwrap();
    let link = |rel: &str, name: &str| {
        let is = |link: &&Value| link["link"]["rel"] == rel && link["link"]["name"] == name;
        links.iter().find(is).map(|link| link["link"]["href"].clone())
    };
    let at = |path: &str| Some(json!(format!("{base}{path}")));
    assert_eq!(link("collection", "virtual-network"), at("/virtual-networks"));
    assert_eq!(link("resource-base", "virtual-network"), at("/virtual-network"));
    assert_eq!(link("action", "name-to-id"), at("/fqname-to-id"));
    assert_eq!(link("action", "prop-collection-update"), at("/prop-collection-update"));
    assert_eq!(link("action", "watch"), at("/watch"));
}

#[tokio::test]
async fn a_name_is_turned_into_a_uuid_and_back() {
    let asker = Asker::new();
    let named = json!({"type": "global-vrouter-config", "fq_name": [SYSTEM, CONFIG]});
    let found = asker.post("/fqname-to-id", &named).await.json();
    assert_eq!(found, json!({"uuid": asker.fake.global_vrouter_config()}));
    let back = asker.post("/id-to-fqname", &found).await.json();
    assert_eq!(back, json!({"type": "global-vrouter-config", "fq_name": [SYSTEM, CONFIG]}));
}

#[tokio::test]
async fn an_unknown_name_and_an_unknown_type_are_404() {
    let asker = Asker::new();
    let named = json!({"type": "virtual-network", "fq_name": ["a", "b"]});
    let said = asker.post("/fqname-to-id", &named).await;
    assert_eq!((said.status, said.text().as_str()), (404, "Name ['a', 'b'] not found"));
    assert!(said.header("content-type").starts_with("text/html"));
    let named = json!({"type": "virtual-net", "fq_name": ["a", "b"]});
    let said = asker.post("/fqname-to-id", &named).await;
    assert_eq!((said.status, said.text().as_str()), (404, "Resource type 'virtual-net' not found"));
}

#[tokio::test]
async fn a_list_is_short_or_with_fields_or_detailed_or_a_number() {
    let asker = Asker::new();
    asker.put_entries(json!([entry()])).await;
    let uuid = asker.fake.global_vrouter_config();
    let href = format!("{}/global-vrouter-config/{uuid}", asker.fake.url());
    let of = async |query: &str| {
        let path = format!("/global-vrouter-configs{query}");
        asker.get(&path).await.json()["global-vrouter-configs"].clone()
    };
    let short = json!([{"uuid": uuid, "fq_name": [SYSTEM, CONFIG], "href": href}]);
    assert_eq!(of("").await, short);
    assert_eq!(of("?count=true").await, json!({"count": 1}));
    let fields = of("?fields=linklocal_services").await;
    assert_eq!(fields[0]["linklocal_services"]["linklocal_service_entry"][0], entry());
    assert_eq!(fields[0].get("id_perms"), None);
    let detail = of("?detail=true&fields=linklocal_services").await;
    let object = &detail[0]["global-vrouter-config"];
    assert_eq!(object["linklocal_services"]["linklocal_service_entry"][0], entry());
    assert_eq!(object["encryption_mode"], "none");
    assert_eq!(object["parent_type"], "global-system-config");
    assert_eq!(object["perms2"]["owner"], "cloud-admin");
}

#[tokio::test]
async fn a_list_can_be_of_one_parent() {
    let asker = Asker::new();
    let network = |project: &str, name: &str| {
        let fq_name = json!(["default-domain", project, name]);
        asker.fake.create("virtual-network", json!({"fq_name": fq_name, "parent_type": "project"}))
    };
    let uuid = network("admin", "mine").unwrap();
    network("default-project", "other").unwrap();
    let project = asker.fake.read("project", &["default-domain", "admin"]).unwrap();
    let path = format!("/virtual-networks?parent_id={}", project["uuid"].as_str().unwrap());
    let found = asker.get(&path).await.json()["virtual-networks"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["uuid"], uuid);
    assert_eq!(project["virtual_networks"][0]["uuid"], uuid);
}

#[tokio::test]
async fn what_a_list_cannot_do_here_is_said() {
    let asker = Asker::new();
    assert_eq!(asker.get("/virtual-networks?filters=a==1").await.status, 501);
}

#[tokio::test]
async fn a_read_has_what_was_asked_for() {
    let asker = Asker::new();
    asker.put_entries(json!([entry()])).await;
    let read = async |query: &str| {
        let path = format!("{}{query}", asker.path());
        asker.get(&path).await.json()["global-vrouter-config"].clone()
    };
    let keys = |object: &Value| -> BTreeSet<String> {
        object.as_object().unwrap().keys().cloned().collect()
    };
    let identity = ["uuid", "name", "fq_name", "href", "parent_type", "parent_uuid", "parent_href"];
    let wanted = ["linklocal_services", "id_perms", "perms2"];
    let expected = identity.into_iter().chain(wanted).map(str::to_owned).collect();
    assert_eq!(keys(&read("?fields=linklocal_services").await), expected);
    let whole = read("").await;
    assert_eq!(whole["application_policy_set_back_refs"].as_array().unwrap().len(), 1);
    let less = read("?exclude_back_refs=1&exclude_children=1&exclude_hrefs=1").await;
    assert_eq!(less.get("application_policy_set_back_refs"), None);
    assert_eq!(less.get("href"), None);
    assert_eq!(less["linklocal_services"], whole["linklocal_services"]);
}

#[tokio::test]
async fn the_etag_is_the_last_change_in_microseconds_and_answers_304() {
    let asker = Asker::new();
    let etag = asker.etag().await;
    let stamp = asker.object().await["id_perms"]["last_modified"].as_str().unwrap().to_owned();
    assert_eq!(etag, format!("\"{stamp}\""));
    // 2026-11-25T13:26:46.123456
    assert_eq!((stamp.len(), &stamp[10..11], &stamp[19..20]), (26, "T", "."));
    let read = async |tag: &str| {
        asker.ask(Method::GET, &asker.path(), &[("if-none-match", tag)], "").await
    };
    let said = read(&etag).await;
    assert_eq!((said.status, said.text().as_str(), said.header("etag")), (304, "", ""));
    assert_eq!(read(&stamp).await.status, 304);
    assert_eq!(read("\"2001-01-01T00:00:00.000001\"").await.status, 200);
}

#[tokio::test]
async fn each_write_moves_the_etag_and_no_read_does() {
    let asker = Asker::new();
    let first = asker.etag().await;
    assert_eq!(asker.etag().await, first);
    asker.put_properties(json!({"flow_export_rate": 5})).await;
    let second = asker.etag().await;
    assert_ne!(second, first);
    asker.put_properties(json!({"flow_export_rate": 5})).await;
    assert_ne!(asker.etag().await, second);
}

#[tokio::test]
async fn a_put_replaces_what_it_names_whole_and_nothing_else() {
    let asker = Asker::new();
    let ageing =
        json!({"flow_aging_timeout": [{"protocol": "tcp", "port": 8082, "timeout_in_seconds": 9}]});
    asker.put_properties(json!({ "flow_aging_timeout_list": ageing })).await;
    asker.put_entries(json!([entry(), entry()])).await;
    let said = asker.put_entries(json!([{}])).await;
    let uuid = asker.fake.global_vrouter_config();
    let href = format!("{}/global-vrouter-config/{uuid}", asker.fake.url());
    assert_eq!(said.json(), json!({"global-vrouter-config": {"uuid": uuid, "href": href}}));
    let object = asker.object().await;
    assert_eq!(object["linklocal_services"], json!({"linklocal_service_entry": [{}]}));
    assert_eq!(object["flow_aging_timeout_list"], ageing);
}

#[tokio::test]
async fn names_in_the_body_of_a_put_mean_nothing() {
    let asker = Asker::new();
    let wrong = json!({"uuid": "wrong", "fq_name": ["wrong"], "flow_export_rate": 7});
    assert_eq!(asker.put_properties(wrong).await.status, 200);
    let object = asker.object().await;
    assert_eq!(object["fq_name"], json!([SYSTEM, CONFIG]));
    assert_eq!(object["flow_export_rate"], 7);
}

#[tokio::test]
async fn a_name_that_is_taken_is_409_and_a_second_object_is_accepted() {
    let asker = Asker::new();
    let create = async |name: &str| {
        let object = json!({"fq_name": [SYSTEM, name], "parent_type": "global-system-config"});
        asker.post("/global-vrouter-configs", &json!({ "global-vrouter-config": object })).await
    };
    let said = create(CONFIG).await;
    let uuid = asker.fake.global_vrouter_config();
    let text = format!("['{SYSTEM}', '{CONFIG}'] already exists with uuid: {uuid}");
    assert_eq!((said.status, said.text()), (409, text));
    assert_eq!(create("second").await.status, 200);
    let count = asker.get("/global-vrouter-configs?count=true").await.json();
    assert_eq!(count["global-vrouter-configs"]["count"], 2);
}

#[tokio::test]
async fn of_eight_who_create_one_name_one_succeeds() {
    let asker = Asker::new();
    let object = json!({"fq_name": ["default-domain", "lock"], "parent_type": "domain",
        "annotations": {"key_value_pair": [{"key": "owner", "value": "me"}]}});
    let body = json!({ "namespace": object });
    let all = (0..8).map(|_| asker.post("/namespaces", &body));
    let mut statuses: Vec<u16> =
        futures::future::join_all(all).await.iter().map(|said| said.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    let stored = asker.fake.read("namespace", &["default-domain", "lock"]).unwrap();
    assert_eq!(stored["annotations"], object["annotations"]);
    let path = format!("/namespace/{}", stored["uuid"].as_str().unwrap());
    assert_eq!(asker.ask(Method::DELETE, &path, &[], "").await.status, 200);
    assert_eq!(asker.post("/namespaces", &body).await.status, 200);
}

#[tokio::test]
async fn the_object_with_the_list_cannot_be_deleted() {
    let asker = Asker::new();
    let said = asker.ask(Method::DELETE, &asker.path(), &[], "").await;
    assert_eq!(said.status, 409);
    let start = format!(
        "Delete when resource still referred: ['{}/application-policy-set/",
        asker.fake.url()
    );
    assert!(said.text().starts_with(&start), "{}", said.text());
}

#[tokio::test]
async fn an_object_with_children_cannot_be_deleted() {
    let asker = Asker::new();
    let domain = asker.fake.read("domain", &["default-domain"]).unwrap();
    let path = format!("/domain/{}", domain["uuid"].as_str().unwrap());
    let said = asker.ask(Method::DELETE, &path, &[], "").await;
    assert_eq!(said.status, 409);
    assert!(said.text().starts_with("Delete when children still present: ["), "{}", said.text());
}

#[tokio::test]
async fn a_uuid_that_is_not_there_or_of_another_type_is_404() {
    let asker = Asker::new();
    for uuid in ["00000000-0000-0000-0000-000000000000", "no-uuid"] {
        let path = format!("/global-vrouter-config/{uuid}");
        let said = asker.get(&path).await;
        assert_eq!((said.status, said.text()), (404, format!("Unknown id: {uuid}")));
        let said =
            asker.put(&path, &json!({"global-vrouter-config": {"flow_export_rate": 1}})).await;
        assert_eq!((said.status, said.text()), (404, format!("Unknown id: {uuid}")));
        let said = asker.ask(Method::DELETE, &path, &[], "").await;
        assert_eq!((said.status, said.text()), (404, format!("ID {uuid} does not exist")));
    }
    let uuid = asker.fake.global_vrouter_config();
    let said = asker.get(&format!("/virtual-network/{uuid}")).await;
    let text = format!("No virtual-network object found for id {uuid}");
    assert_eq!((said.status, said.text()), (404, text));
}

#[tokio::test]
async fn an_unknown_path_is_404_and_another_method_405() {
    let asker = Asker::new();
    assert_eq!(asker.get("/virtual-nets").await.status, 404);
    assert_eq!(asker.ask(Method::DELETE, "/virtual-networks", &[], "").await.status, 405);
}

#[tokio::test]
async fn a_name_or_a_parent_that_is_missing_is_refused() {
    let asker = Asker::new();
    let create = async |object: Value| {
        asker.post("/virtual-networks", &json!({ "virtual-network": object })).await
    };
    let said = create(json!({"display_name": "x"})).await;
    assert_eq!((said.status, said.text().as_str()), (400, "Bad Request, no fq_name in POST body"));
    let fq_name = ["default-domain", "nowhere", "x"];
    let said = create(json!({"fq_name": fq_name, "parent_type": "project"})).await;
    assert_eq!(said.status, 404);
    let said = create(json!({"fq_name": fq_name, "parent_type": "domain"})).await;
    assert_eq!(said.status, 400);
    assert!(said.text().starts_with("Invalid parent type: domain."), "{}", said.text());
}

async fn network(asker: &Asker) -> String {
    let fq_name = ["default-domain", "admin", "vms"];
    let object = json!({"virtual-network": {"fq_name": fq_name, "parent_type": "project"}});
    let said = asker.post("/virtual-networks", &object).await.json();
    format!("/virtual-network/{}", said["virtual-network"]["uuid"].as_str().unwrap())
}

#[tokio::test]
async fn fabric_snat_is_absent_at_first_and_null_clears_it() {
    let asker = Asker::new();
    let path = network(&asker).await;
    let read =
        async || asker.get(&path).await.json()["virtual-network"].get("fabric_snat").cloned();
    assert_eq!(read().await, None);
    for (value, expected) in [(json!(true), Some(json!(true))), (Value::Null, None)] {
        let said = asker.put(&path, &json!({"virtual-network": {"fabric_snat": value}})).await;
        assert_eq!(said.status, 200);
        assert_eq!(read().await, expected);
    }
}

#[tokio::test]
async fn fabric_snat_must_be_a_boolean_or_false_to_python() {
    let asker = Asker::new();
    let path = network(&asker).await;
    let put = async |value: Value| {
        asker.put(&path, &json!({"virtual-network": {"fabric_snat": value}})).await
    };
    for (value, shown) in [(json!("true"), "true"), (json!(1), "1")] {
        let said = put(value).await;
        let text = format!(
            "Bad property in http_put: Error validating property fabric_snat: true/false expected \
             instead of {shown}"
        );
        assert_eq!((said.status, said.text()), (400, text));
    }
    for value in [json!(0), json!("")] {
        assert_eq!(put(value.clone()).await.status, 200);
        let stored = asker.get(&path).await.json()["virtual-network"]["fabric_snat"].clone();
        assert_eq!(stored, value);
    }
}

/// As the provisioner makes the reference from the system to a control node.
#[tokio::test]
async fn a_reference_that_is_relaxed_keeps_nothing_from_being_deleted() {
    let asker = Asker::new();
    let path = network(&asker).await;
    let uuid = path.rsplit('/').next().unwrap();
    let refs = json!([{"uuid": uuid}]);
    let object = json!({"fq_name": ["ip"], "virtual_network_refs": refs});
    let address = asker.fake.create("instance-ip", object).unwrap();
    let said = asker.ask(Method::DELETE, &path, &[], "").await;
    assert_eq!(said.status, 409);
    assert!(said.text().contains(&format!("/instance-ip/{address}")), "{}", said.text());
    let half = json!({"uuid": address});
    assert_eq!(asker.post("/ref-relax-for-delete", &half).await.status, 400);
    let unknown = json!({"uuid": "u", "ref-uuid": uuid});
    assert_eq!(asker.post("/ref-relax-for-delete", &unknown).await.status, 404);
    let relaxed = json!({"uuid": address, "ref-uuid": uuid});
    let said = asker.post("/ref-relax-for-delete", &relaxed).await;
    assert_eq!((said.status, said.json()), (200, half));
    assert_eq!(asker.ask(Method::DELETE, &path, &[], "").await.status, 200);
    let read = asker.get(&format!("/instance-ip/{address}")).await.json();
    assert_eq!(read["instance-ip"]["virtual_network_refs"], json!([]));
}

#[tokio::test]
async fn a_reference_between_two_of_a_type_is_none_back_and_goes_with_either() {
    let asker = Asker::new();
    let path = network(&asker).await;
    let uuid = path.rsplit('/').next().unwrap();
    let fq_name = ["default-domain", "default-project", "other"];
    let other = json!({"fq_name": fq_name, "parent_type": "project",
        "virtual_network_refs": [{"uuid": uuid}]});
    let other = asker.fake.create("virtual-network", other).unwrap();
    let read = asker.get(&path).await.json();
    assert!(read["virtual-network"].get("virtual_network_back_refs").is_none());
    assert_eq!(asker.ask(Method::DELETE, &path, &[], "").await.status, 200);
    let read = asker.get(&format!("/virtual-network/{other}")).await.json();
    assert_eq!(read["virtual-network"]["virtual_network_refs"], json!([]));
}
