//! The watch.

use std::time::Duration;

use http::Request;
use http::StatusCode;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use opensdn_testing::config_api::{Settings, Times, WatchApi, WatchEnd, WatchFault};
use opensdn_testing::eventually::eventually;
use serde_json::{Value, json};

use crate::asker::{Asker, entry, send};

const PATH: &str = "/watch?resource_type=global_vrouter_config";

/// A watch as a client has it.
struct Watch {
    body: Incoming,
    text: String,
}

/// What comes of it.
#[derive(Debug, PartialEq)]
enum Next {
    Event(String, Value),
    KeepAlive,
    End,
    Cut,
}

impl Watch {
    async fn open(asker: &Asker, path: &str) -> Self {
        let request = Request::get(path).body(Full::default()).unwrap();
        let answer = send(asker.fake.url(), request).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self { body: answer.into_body(), text: String::new() }
    }

    async fn next(&mut self) -> Next {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if event == ":" {
                    return Next::KeepAlive;
                }
                let (name, data) = event.split_once('\n').unwrap();
                let name = name.strip_prefix("event: ").unwrap().to_owned();
                let data = data.strip_prefix("data: ").unwrap();
                return Next::Event(name, serde_json::from_str(data).unwrap());
            }
            match self.body.frame().await {
                None => return Next::End,
                Some(Err(_)) => return Next::Cut,
                Some(Ok(frame)) => {
                    self.text += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
                }
            }
        }
    }

    /// The name of the next event, and its data.
    async fn event(&mut self) -> (String, Value) {
        match self.next().await {
            Next::Event(name, data) => (name, data),
            other => panic!("no event: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_list_comes_first_and_then_each_change() {
    let asker = Asker::new();
    let mut watch = Watch::open(&asker, PATH).await;
    let (name, data) = watch.event().await;
    assert_eq!(name, "init");
    let object = &data["global-vrouter-configs"][0]["global-vrouter-config"];
    assert_eq!(object["uuid"], asker.fake.global_vrouter_config());
    assert!(object["id_perms"]["last_modified"].is_string());

    asker.put_entries(json!([entry()])).await;
    let (name, data) = watch.event().await;
    assert_eq!(name, "update");
    let list = &data["global-vrouter-config"]["linklocal_services"];
    assert_eq!(list["linklocal_service_entry"], json!([entry()]));

    let fq_name = ["default-global-system-config", "second"];
    let object = json!({"fq_name": fq_name, "parent_type": "global-system-config"});
    let uuid = asker.fake.create("global-vrouter-config", object).unwrap();
    let (name, data) = watch.event().await;
    assert_eq!((name.as_str(), &data["global-vrouter-config"]["uuid"]), ("create", &json!(uuid)));

    let path = format!("/global-vrouter-config/{uuid}");
    asker.ask(http::Method::DELETE, &path, &[], "").await;
    let deleted = json!({"global-vrouter-config": {"uuid": uuid}});
    assert_eq!(watch.event().await, ("delete".to_owned(), deleted));
}

#[tokio::test]
async fn changes_of_other_types_and_reads_are_no_events() {
    let asker = Asker::new();
    let mut watch = Watch::open(&asker, PATH).await;
    watch.event().await;
    asker.fake.create("virtual-machine", json!({"fq_name": ["vm"]})).unwrap();
    asker.object().await;
    asker.put_properties(json!({"flow_export_rate": 3})).await;
    let (_, data) = watch.event().await;
    assert_eq!(data["global-vrouter-config"]["flow_export_rate"], 3);
}

#[tokio::test]
async fn a_watch_has_the_fields_that_it_asks_for() {
    let asker = Asker::new();
    let path = format!("{PATH}&global_vrouter_config_fields=flow_export_rate");
    let mut watch = Watch::open(&asker, &path).await;
    watch.event().await;
    asker.put_properties(json!({"flow_export_rate": 3})).await;
    let (_, data) = watch.event().await;
    let object = data["global-vrouter-config"].as_object().unwrap();
    let keys: Vec<&String> = object.keys().collect();
    assert_eq!(keys, ["flow_export_rate", "fq_name", "parent_type", "parent_uuid", "uuid"]);
}

/// The list is kept under the name with underscores.
#[tokio::test]
async fn the_name_with_hyphens_brings_an_empty_list() {
    let asker = Asker::new();
    let mut watch = Watch::open(&asker, "/watch?resource_type=global-vrouter-config").await;
    let (name, data) = watch.event().await;
    assert_eq!((name.as_str(), data), ("init", json!({"global-vrouter-configs": []})));
}

#[tokio::test]
async fn a_quiet_watch_says_that_it_is_there() {
    let keep_alive = Duration::from_millis(20);
    let asker = Asker::with(Settings { keep_alive, ..Settings::default() });
    let mut watch = Watch::open(&asker, PATH).await;
    watch.event().await;
    assert_eq!(watch.next().await, Next::KeepAlive);
}

#[tokio::test]
async fn a_watch_ends_with_stop_or_is_cut() {
    let asker = Asker::new();
    let mut watch = Watch::open(&asker, PATH).await;
    watch.event().await;
    asker.fake.end_watches(WatchEnd::Stop);
    assert_eq!(watch.event().await.0, "stop");
    assert_eq!(watch.next().await, Next::End);

    for end in [WatchEnd::Cut, WatchEnd::CutInEvent] {
        let mut watch = Watch::open(&asker, PATH).await;
        watch.event().await;
        asker.fake.end_watches(end);
        assert_eq!(watch.next().await, Next::Cut);
        assert_eq!(watch.text.is_empty(), end == WatchEnd::Cut, "{:?}", watch.text);
    }
}

#[tokio::test]
async fn a_watch_is_refused_as_often_as_it_was_asked_for() {
    let asker = Asker::new();
    for status in [401, 404, 503] {
        let refused = WatchFault::Refused(StatusCode::from_u16(status).unwrap());
        asker.fake.disturb_watch(refused, Times::Next(1));
        assert_eq!(asker.get(PATH).await.status, status);
        let mut watch = Watch::open(&asker, PATH).await;
        assert_eq!(watch.event().await.0, "init");
    }
}

#[tokio::test]
async fn a_silent_watch_is_open_and_has_neither_events_nor_keep_alives() {
    for fault in [WatchFault::Silent, WatchFault::Mute] {
        let keep_alive = Duration::from_millis(10);
        let asker = Asker::with(Settings { keep_alive, ..Settings::default() });
        asker.fake.disturb_watch(fault, Times::Next(1));
        let mut silent = Watch::open(&asker, PATH).await;
        let mut other = Watch::open(&asker, PATH).await;
        if fault == WatchFault::Silent {
            assert_eq!(silent.event().await.0, "init");
        }
        asker.put_properties(json!({"flow_export_rate": 3})).await;
        // What the other has got, the silent one would have got before.
        while other.next().await != Next::KeepAlive || asker.fake.keep_alives() < 3 {}
        asker.fake.end_watches(WatchEnd::Stop);
        assert_eq!(silent.event().await.0, "stop");
    }
}

#[tokio::test]
async fn a_server_is_replaced_by_one_that_has_a_watch_or_none() {
    let asker = Asker::new();
    let links = async || {
        let homepage = asker.get("/").await.json();
        homepage["links"].to_string().contains("\"watch\"")
    };
    for (watch, is_offered) in [(WatchApi::Absent, false), (WatchApi::Offered, true)] {
        asker.fake.set_watch(watch);
        assert_eq!(links().await, is_offered);
        let status = if is_offered { 400 } else { 404 };
        assert_eq!(asker.get("/watch").await.status, status);
    }
}

/// With the version a client knows whether it has seen a change, without the rest of the object.
#[tokio::test]
async fn a_watch_of_id_perms_has_the_version_in_the_list_and_in_each_event() {
    let asker = Asker::new();
    let path = format!("{PATH}&global_vrouter_config_fields=id_perms");
    let mut watch = Watch::open(&asker, &path).await;
    let (_, data) = watch.event().await;
    let version = |object: &Value| format!("{}", object["id_perms"]["last_modified"]);
    let first = &data["global-vrouter-configs"][0]["global-vrouter-config"];
    assert_eq!(version(first), asker.etag().await);
    assert!(first.get("linklocal_services").is_none());
    asker.put_entries(json!([entry()])).await;
    let (_, data) = watch.event().await;
    assert_eq!(version(&data["global-vrouter-config"]), asker.etag().await);
}

#[tokio::test]
async fn open_watches_are_counted() {
    let asker = Asker::new();
    assert_eq!(asker.fake.watches(), 0);
    let watch = Watch::open(&asker, PATH).await;
    assert_eq!(asker.fake.watches(), 1);
    drop(watch);
    eventually("the watch is closed", async || asker.fake.watches() == 0).await;
}

#[tokio::test]
async fn a_cloud_without_a_watch_has_no_link_and_no_path() {
    let asker = Asker::with(Settings { watch: WatchApi::Absent, ..Settings::default() });
    let homepage = asker.get("/").await.json();
    let mut links = homepage["links"].as_array().unwrap().iter();
    assert!(!links.any(|link| link["link"]["name"] == "watch"));
    assert_eq!(asker.get(PATH).await.status, 404);
}

#[tokio::test]
async fn a_watch_of_nothing_and_of_an_unknown_type_is_refused() {
    let asker = Asker::new();
    assert_eq!(asker.get("/watch").await.status, 400);
    assert_eq!(asker.get("/watch?resource_type=thing").await.status, 404);
}
