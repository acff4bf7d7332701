//! What a watch says of an outage, and that it comes back by itself. The server lists one object, ends
//! no watch, and is down on demand.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use opensdn_runtime::declared::Declared;
use opensdn_runtime::levels::{TooDeep, check};
use opensdn_runtime::watch::{Event, Parts, WatchSpec, watch, watch_parts};
use opensdn_runtime::{counts, metrics};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tracing::subscriber::DefaultGuard;

use crate::api_server::{ApiServer, refusal};

/// Generous on a slow machine.
const LONG: Duration = Duration::from_secs(60);

/// What was logged, line by line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// What this thread logs, until the guard is dropped.
    fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn lines_with(&self, text: &str) -> usize {
        let log = self.0.lock().unwrap();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).count()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn spec() -> WatchSpec {
    WatchSpec {
        path: "/api/v1/things".to_owned(),
        name: None,
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: Duration::from_secs(1),
    }
}

async fn until(events: &mut Receiver<Event>, is_it: impl Fn(&Event) -> bool) {
    let wait = async { while !is_it(&events.recv().await.unwrap()) {} };
    timeout(LONG, wait).await.unwrap();
}

/// The objects of a list, to its end.
async fn listed(events: &mut Receiver<Event>) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    let read = async {
        loop {
            match events.recv().await.unwrap() {
                Event::InitApply(object) => objects.push(object),
                Event::InitDone(_) => return Ok(objects),
                Event::Disconnected { why, .. } => return Err(why),
                _ => {}
            }
        }
    };
    timeout(LONG, read).await.unwrap()
}

// On one thread, so that the subscriber of this thread sees what the watch's task logs.
#[tokio::test]
async fn an_outage_is_logged_once_and_so_is_its_end() {
    let (log, _guard) = Log::start();
    let is_away = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_away);
    let (_, client) = ApiServer::start(move |seen| {
        if down.load(Ordering::Acquire) {
            return Some(refusal(503, "ServiceUnavailable", "away"));
        }
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {}}]});
        (!seen.uri.contains("watch=true")).then_some((200, list))
    })
    .await;
    let mut events = watch(client, spec());
    for _ in 0..3 {
        until(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    }
    assert_eq!(log.lines_with("lost a watch"), 1);
    is_away.store(false, Ordering::Release);
    until(&mut events, |event| matches!(event, Event::InitDone(_))).await;
    // The watch that follows is never answered: another outage.
    until(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    assert_eq!(log.lines_with("restarted a watch"), 1);
    assert_eq!(log.lines_with("lost a watch"), 2);
}

/// What a series of this process says; 0, where there is none.
fn counted(series: &str) -> i64 {
    let mut registry = metrics::registry("test");
    counts::register_all(&mut registry);
    let text = metrics::encode(&registry).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(series));
    found.map_or(0, |value| value.trim().parse().unwrap())
}

/// How many are counted.
fn disconnected() -> i64 {
    counted("test_watches_disconnected ")
}

#[tokio::test]
async fn a_watch_that_is_started_again_is_counted_once_for_each_outage_by_its_reason() {
    let is_away = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_away);
    let (_, client) = ApiServer::start(move |seen| {
        if down.load(Ordering::Acquire) {
            return Some(refusal(503, "ServiceUnavailable", "away"));
        }
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": []});
        let gone = refusal(410, "Expired", "too old resource version");
        Some(if seen.uri.contains("watch=true") { gone } else { (200, list) })
    })
    .await;
    let restarts = |reason: &str| {
        counted(&format!("test_watch_restarts_total{{resource=\"things\",reason=\"{reason}\"}}"))
    };
    let mut events = watch(client, spec());
    for _ in 0..3 {
        until(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    }
    assert_eq!((restarts("refused"), restarts("expired")), (1, 0));
    is_away.store(false, Ordering::Release);
    until(&mut events, |event| matches!(event, Event::InitDone(_))).await;
    // What is listed is not watched from there: this server has no history.
    until(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    assert_eq!((restarts("refused"), restarts("expired")), (1, 1));
}

/// In a process of its own, as every test.
#[tokio::test]
async fn a_watch_is_counted_as_disconnected_until_it_ends() {
    let before = disconnected();
    let (_, client) = ApiServer::start(|_| Some(refusal(503, "ServiceUnavailable", "away"))).await;
    let mut events = watch(client, spec());
    until(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    assert_eq!(disconnected(), before + 1);
    drop(events);
    while disconnected() > before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_said_to_be_absent_and_not_logged() {
    let (log, _guard) = Log::start();
    let (_, client) = ApiServer::start(|_| Some(refusal(404, "NotFound", "no such kind"))).await;
    let mut events = watch(client, spec());
    until(&mut events, |event| matches!(event, Event::Disconnected { absent: true, .. })).await;
    assert_eq!(log.lines_with("lost a watch"), 0);
}

/// A list in pages as an API server gives them: so many objects of so many bytes.
fn page(uri: &str, count: usize, bytes: usize) -> (u16, Value) {
    page_with(uri, count, &"x".repeat(bytes).into())
}

fn page_with(uri: &str, count: usize, data: &Value) -> (u16, Value) {
    let parameter = |name: &str| {
        let found = uri.split(['?', '&']).find_map(|one| one.strip_prefix(name));
        found.and_then(|text| text.parse::<usize>().ok())
    };
    let (from, limit) = (parameter("continue=").unwrap_or(0), parameter("limit=").unwrap());
    let object = |number: usize| {
        json!({"metadata": {"name": number.to_string(), "managedFields": [{"manager": "m"}]},
            "data": data})
    };
    let until = count.min(from + limit);
    let next = if until < count { until.to_string() } else { String::new() };
    let items: Vec<Value> = (from..until).map(object).collect();
    (200, json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": items}))
}

#[tokio::test]
async fn a_list_of_large_objects_comes_in_small_pages_and_without_managed_fields() {
    let (server, client) = ApiServer::start(|seen| {
        let is_watch = seen.uri.contains("watch=true");
        (!is_watch).then(|| page(&seen.uri, 60, 1 << 20))
    })
    .await;
    let mut events = watch(client, spec());
    let objects = listed(&mut events).await.unwrap();
    assert!(objects.iter().all(|object| object["metadata"].get("managedFields").is_none()));
    let names: Vec<&str> =
        objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
    let all: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    assert_eq!(names, all, "each object once");
    let lists = server.seen().iter().filter(|seen| !seen.uri.contains("watch=true")).count();
    // 100, 50, 25 and 12 are more than 8 MiB; ten pages of 6 are not.
    assert_eq!(lists, 4 + 10);
}

#[tokio::test]
async fn small_objects_come_a_hundred_at_a_time() {
    let (server, client) = ApiServer::start(|seen| {
        let is_watch = seen.uri.contains("watch=true");
        (!is_watch).then(|| page(&seen.uri, 1_000, 10))
    })
    .await;
    let mut events = watch(client, spec());
    until(&mut events, |event| matches!(event, Event::InitDone(_))).await;
    let lists = server.seen().iter().filter(|seen| !seen.uri.contains("watch=true")).count();
    assert_eq!(lists, 10);
}

/// So many levels in one of two objects.
fn with_a_deep_one(levels: usize) -> String {
    let (open, close) = (r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let list = json!({"metadata": {"resourceVersion": "1"}, "items": [
        {"metadata": {"name": "deep"}, "spec": "DEEP"}, {"metadata": {"name": "flat"}, "spec": 7}]});
    list.to_string().replace(r#""DEEP""#, &format!("{open}1{close}"))
}

#[tokio::test]
async fn an_object_that_is_nested_too_deep_ends_neither_a_list_nor_a_watch() {
    // As deep as an API server takes them.
    let (_, client) = ApiServer::start_text(|seen| {
        let is_watch = seen.uri.contains("watch=true");
        (!is_watch).then(|| (200, with_a_deep_one(9_000)))
    })
    .await;
    let mut events = watch(client, spec());
    let objects = listed(&mut events).await.unwrap();
    let found: Vec<_> =
        objects.iter().map(|object| (&object["metadata"]["name"], check(object))).collect();
    assert_eq!(found, [(&json!("deep"), Err(TooDeep)), (&json!("flat"), Ok(()))]);
}

#[tokio::test]
async fn who_does_not_receive_has_one_page_fetched() {
    let (server, client) = ApiServer::start(|seen| {
        let is_watch = seen.uri.contains("watch=true");
        (!is_watch).then(|| page(&seen.uri, 1_000, 10))
    })
    .await;
    let mut events = watch(client, spec());
    until(&mut events, |event| matches!(event, Event::InitApply(_))).await;
    // Longer than another page takes, many times over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn one_object_may_be_larger_than_a_page_of_several() {
    let (_, client) = ApiServer::start(|seen| {
        let is_watch = seen.uri.contains("watch=true");
        (!is_watch).then(|| page(&seen.uri, 2, 9 << 20))
    })
    .await;
    let mut events = watch(client, spec());
    assert_eq!(listed(&mut events).await.unwrap().len(), 2);
}

/// A megabyte of short values is fifty in memory: of several such objects one is read at a time.
#[tokio::test]
async fn objects_of_very_many_values_are_read_one_by_one() {
    let values: Value = vec![0; 60_000].into();
    let (server, client) = ApiServer::start(move |seen| {
        let is_watch = seen.uri.contains("watch=true");
        (!is_watch).then(|| page_with(&seen.uri, 4, &values))
    })
    .await;
    let mut events = watch(client, spec());
    assert_eq!(listed(&mut events).await.unwrap().len(), 4);
    let lists = server.seen().iter().filter(|seen| !seen.uri.contains("watch=true")).count();
    // 100, 50, 25, 12, 6 and 3 are more than 100,000 values.
    assert_eq!(lists, 6 + 4);
}

fn declared() -> Parts {
    Parts::Declared(Arc::new(Declared::new(["/spec/ip"], [])))
}

fn many_values(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version, "labels": {}}, "spec": {"ip": name},
        "data": vec![0; 60_000]})
}

/// What an API server answers whose etcd was at 100 and is put back as soon as it is asked for a watch; then it is at `version`.
/// `watch` is what it answers to these.
async fn put_back(
    version: &'static str,
    watch: impl Fn() -> (u16, String) + Send + Sync + 'static,
) -> (ApiServer, Client) {
    let is_restored = AtomicBool::new(false);
    ApiServer::start_text(move |seen| {
        if seen.uri.contains("watch=true") {
            is_restored.store(true, Ordering::Release);
            return Some(watch());
        }
        let (at, name) = match is_restored.load(Ordering::Acquire) {
            false => ("100", "lost"),
            true => (version, "restored"),
        };
        let object = json!({"metadata": {"name": name, "resourceVersion": "50"}});
        let list = json!({"metadata": {"resourceVersion": at}, "items": [object]});
        Some((200, list.to_string()))
    })
    .await
}

/// Waits until what came back has taken the place of what was lost.
async fn until_restored(events: &mut Receiver<Event>) {
    let mut names = Vec::new();
    for _ in 0..2 {
        until(events, |event| matches!(event, Event::Init)).await;
        if let Event::InitApply(object) = timeout(LONG, events.recv()).await.unwrap().unwrap() {
            names.push(object["metadata"]["name"].clone());
        }
    }
    assert_eq!(names, ["lost", "restored"]);
}

#[tokio::test]
async fn what_an_etcd_that_was_put_back_has_lost_is_forgotten_after_an_outage() {
    let (log, _guard) = Log::start();
    let away = || (503, refusal(503, "ServiceUnavailable", "away").1.to_string());
    let (_, client) = put_back("50", away).await;
    let mut events = watch(client, spec());
    until_restored(&mut events).await;
    assert_eq!(log.lines_with("was restored from a backup"), 1);
}

/// Leases are renewed all the time: after a minute a backup of a minute ago is past what was known.
#[tokio::test]
async fn what_an_etcd_that_was_put_back_has_lost_is_forgotten_also_when_it_is_past_that_by_now() {
    let asked = AtomicUsize::new(0);
    let answer = move || match asked.fetch_add(1, Ordering::AcqRel) {
        0 | 1 => (503, refusal(503, "ServiceUnavailable", "away").1.to_string()),
        _ => {
            let bookmark =
                json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "150"}}});
            (200, format!("{bookmark}\n"))
        }
    };
    let (_, client) = put_back("150", answer).await;
    let spec = WatchSpec { heartbeat: Duration::from_millis(20), ..spec() };
    let mut events = watch(client, spec);
    until_restored(&mut events).await;
}

/// Who asks through a balancer sees no outage.
#[tokio::test]
async fn what_an_etcd_that_was_put_back_has_lost_is_forgotten_without_an_outage() {
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "100"}}});
    let (_, client) = put_back("50", move || (200, format!("{bookmark}\n"))).await;
    let spec = WatchSpec { heartbeat: Duration::from_millis(20), ..spec() };
    let mut events = watch(client, spec);
    until_restored(&mut events).await;
}

/// Of an object costs what is declared and not what it weighs, so a page has as many of these as of others.
#[tokio::test]
async fn of_objects_of_very_many_values_only_what_is_declared_is_read() {
    let (server, client) = ApiServer::start_text(|seen| {
        if seen.uri.contains("watch=true") {
            let event = |of_type: &str, name: &str, version: &str| {
                json!({"type": of_type, "object": many_values(name, version)}).to_string() + "\n"
            };
            let bookmark =
                json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}});
            let is_first = seen.uri.contains("resourceVersion=1");
            let events = event("MODIFIED", "a", "6")
                + &event("DELETED", "b", "7")
                + &bookmark.to_string()
                + "\n";
            return is_first.then_some((200, events));
        }
        let items = ["a", "b"].map(|name| many_values(name, "1"));
        Some((200, json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string()))
    })
    .await;
    let mut events = watch_parts(client, spec(), declared());
    let read = |name: &str, version: &str| json!({"metadata": {"name": name, "resourceVersion": version}, "spec": {"ip": name}});
    let mut listed = listed(&mut events).await.unwrap();
    for object in &mut listed {
        let object = object.as_object_mut().unwrap();
        assert!(object.remove("kind").is_some() && object.remove("apiVersion").is_some());
    }
    assert_eq!(listed, [read("a", "1"), read("b", "1")]);
    let mut changes = Vec::new();
    while changes.len() < 2 {
        match timeout(LONG, events.recv()).await.unwrap().unwrap() {
            Event::Apply(object) | Event::Delete(object) => changes.push(object),
            _ => {}
        }
    }
    assert_eq!(changes, [read("a", "6"), read("b", "7")]);
    let asked_again = |uri: &str| uri.contains("watch=true") && uri.contains("resourceVersion=8");
    while !server.seen().iter().any(|seen| asked_again(&seen.uri)) {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.seen().iter().filter(|seen| !seen.uri.contains("watch=true")).count(), 1);
}

/// A receiver that takes its time holds one large event, not as many as may wait.
#[tokio::test]
async fn of_large_events_one_waits() {
    let (server, client) = ApiServer::start_text(|seen| {
        if seen.uri.contains("watch=true") {
            let event = |number: usize| {
                json!({"type": "MODIFIED", "object": many_values(&number.to_string(), "2")})
                    .to_string()
                    + "\n"
            };
            let is_first = seen.uri.contains("resourceVersion=1");
            return is_first.then(|| (200, (0..6).map(event).collect()));
        }
        Some((200, json!({"metadata": {"resourceVersion": "1"}, "items": []}).to_string()))
    })
    .await;
    let mut events = watch(client, spec());
    listed(&mut events).await.unwrap();
    while server.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    let mut names = Vec::new();
    while names.len() < 6 {
        // So that all comes that can come without being received.
        tokio::time::sleep(Duration::from_millis(100)).await;
        // And after the last one the end of the watch.
        assert!(events.len() <= 2, "{} wait", events.len());
        if let Event::Apply(object) = timeout(LONG, events.recv()).await.unwrap().unwrap() {
            names.push(object["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(names, ["0", "1", "2", "3", "4", "5"]);
}

/// How a watch ends after its list: `None` where it does so without a word.
async fn ended(events: &'static str) -> Option<String> {
    let (_, client) = ApiServer::start_text(move |seen| {
        let lists = json!({"metadata": {"resourceVersion": "1"}, "items": []}).to_string();
        let is_watch = seen.uri.contains("watch=true");
        Some((200, if is_watch { events.to_owned() } else { lists }))
    })
    .await;
    let mut received = watch_parts(client, spec(), declared());
    listed(&mut received).await.unwrap();
    loop {
        match timeout(LONG, received.recv()).await.unwrap().unwrap() {
            Event::Disconnected { why, .. } => break Some(why),
            Event::Init => break None,
            _ => {}
        }
    }
}

#[tokio::test]
async fn an_end_an_error_and_what_is_no_event_are_told_apart() {
    let event = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"2\"}}}\n";
    let expired = "{\"type\":\"ERROR\",\"object\":{\"status\":\"Failure\",\"code\":410,\"message\":\"too old\"}}\n";
    let later: &'static str = Box::leak(format!("{event}{expired}").into_boxed_str());
    assert_eq!(ended(later).await, None, "listed once more");
    for (line, expected) in [
        ("", "ended at once"),
        (expired, "the position in the history is lost: too old"),
        ("{\"status\":\"Failure\",\"code\":403,\"message\":\"not you\"}\n", "not you"),
        (r#"{"type":"MODIFIED","object":{"metadata":{"na"#, "ended at once"),
        ("{\"type\":\"MODIFIED\",\"object\":7}\n", "an event cannot be read"),
        ("{\"type\":\"NEWS\",\"object\":{}}\n", "no events of type"),
        (
            "{\"type\":\"ERROR\",\"object\":{\"status\":\"Failure\",\"code\":500,\"message\":\"oh\"}}\n",
            "oh",
        ),
    ] {
        let why = ended(line).await;
        assert!(why.as_ref().is_some_and(|why| why.contains(expected)), "{line}: {why:?}");
    }
}

#[tokio::test]
async fn an_event_that_is_larger_than_any_object_is_not_held() {
    let line: &'static str = Box::leak("x".repeat(20 << 20).into_boxed_str());
    let why = ended(line).await;
    assert!(why.as_ref().is_some_and(|why| why.contains("larger than 16 MiB")), "{why:?}");
}
