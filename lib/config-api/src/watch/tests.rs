//! What is made of events, and how often is asked where there are none. Streams are tested over the wire, with the fake.

use opensdn_http_client::{HttpClient, Trust};
use serde_json::json;

use super::events::{Data, Event};
use super::run::{Meaning, Run};
use super::*;
use crate::client::tests::api;

fn run() -> (Run, Noted) {
    let noted = Noted::default();
    let api = Arc::new(api(&["http://127.0.0.1:1"], None));
    (Run::new(api, Timing::default(), noted.clone()), noted)
}

fn object(name: &str, uuid: &str, version: &str) -> serde_json::Value {
    let fq_name = ["default-global-system-config", name];
    json!({"global-vrouter-config": {"uuid": uuid, "fq_name": fq_name,
        "id_perms": {"last_modified": version}}})
}

fn ours(version: &str) -> serde_json::Value {
    object("default-global-vrouter-config", "u", version)
}

fn event(name: &str, data: &serde_json::Value) -> Event {
    Event { name: name.to_owned(), data: Data::Text(data.to_string()) }
}

/// What is noted of one event, after the list with version 1.
fn noted_of(one: &Event) -> (Meaning, Option<Change>) {
    let (mut run, noted) = run();
    run.take(&event("init", &json!({"global-vrouter-configs": [ours("1")]})));
    assert!(matches!(take(&noted), Some(Change::Changed)));
    (run.take(one), take(&noted))
}

#[test]
fn an_event_is_a_change_where_the_version_of_the_object_is_another() {
    let second = object("second", "v", "2");
    let deleted = |uuid: &str| json!({"global-vrouter-config": {"uuid": uuid}});
    let cases = [
        (event("update", &ours("1")), false),
        (event("update", &ours("2")), true),
        (event("create", &second), false),
        (event("update", &second), false),
        (event("delete", &deleted("v")), false),
        (event("delete", &deleted("u")), true),
        (event("create", &object("default-global-vrouter-config", "new", "1")), true),
        (event("init", &json!({"global-vrouter-configs": [second, ours("1")]})), false),
        (event("init", &json!({"global-vrouter-configs": [ours("0")]})), true),
        // What cannot be read may be one.
        (event("update", &ours("")), true),
        (event("update", &json!([])), true),
        (Event { name: String::new(), data: Data::Text("{".to_owned()) }, true),
        (Event { name: "update".to_owned(), data: Data::TooLong }, true),
    ];
    for (one, is_change) in cases {
        let (meaning, change) = noted_of(&one);
        assert_eq!(change.is_some(), is_change, "{one:?}");
        assert_eq!(meaning, Meaning::Continues, "{one:?}");
    }
}

#[test]
fn a_stream_ends_by_its_own_word_or_where_it_does_not_have_the_object() {
    let stops = [Data::Text("{".to_owned()), Data::TooLong];
    let stops = stops.map(|data| Event { name: "stop".to_owned(), data });
    let empty = event("init", &json!({"global-vrouter-configs": []}));
    for one in stops.iter().chain([&empty]) {
        let (meaning, change) = noted_of(one);
        assert!(change.is_none(), "{one:?}");
        assert_eq!(meaning, Meaning::Ends, "{one:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_after_each_attempt_and_not_asked_without_a_pause() {
    let (limit, poll) = (Duration::from_millis(1), Duration::from_millis(40));
    let http = HttpClient::new(Trust::unverified(), limit).unwrap();
    let address = "http://127.0.0.1:1".to_owned();
    let api = Arc::new(ConfigApi::new(http, &[address], None, limit).unwrap());
    // The stream is tried again before each poll.
    let gather = Duration::ZERO;
    let timing = Timing { poll, retry: Duration::ZERO, gather, ..Timing::default() };
    let mut watch = Watch::new(api.clone(), timing);
    let start = Instant::now();
    for _ in 0..10 {
        assert!(matches!(watch.changed().await, Change::Unreachable(_)));
    }
    // A pause is half of the interval at least, and there are nine between ten reports.
    assert!(start.elapsed() >= poll / 2 * 9, "{:?}", start.elapsed());
    assert!(api.calls() <= 2 * 10, "{} calls", api.calls());
}
