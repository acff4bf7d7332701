//! A list and watch of one resource that reports when the API server answered last. What is done
//! with the objects is the receiver's business; they come as JSON, so that one object that cannot
//! be read does not end the watch of all others.
//!
//! kube's own watcher is silent while nothing changes, and a connection that was cut without a
//! word looks the same for minutes. Here the API server is asked to end each watch after a few
//! seconds; that end, like bookmarks and events, is a heartbeat ([`Event::Heartbeat`]).
//!
//! An outage is logged here, once, as is its end; each failure in between is a debug line.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures::AsyncBufRead;
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::call::CallFailure;
use crate::counts::{self, DisconnectedWatch};
use crate::error_chain;
use crate::list::PageError;
use crate::path::segment;

mod event;
mod parts;

use event::{WatchEvent, next_line};
use parts::Page;

pub use parts::Parts;

/// What is watched.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Path of the collection: `/apis/opensdn.io/v1alpha1/admissionpolicies`.
    pub path: String,
    /// Only the object of that name.
    pub name: Option<String>,
    /// Only objects with these labels, as `kubectl --selector` has it; all, if it is empty.
    pub label_selector: String,
    /// Metadata only, where the rest is large and not needed.
    pub metadata_only: bool,
    /// How often at least there has to be a heartbeat.
    pub heartbeat: Duration,
}

/// What became of the watched objects.
#[derive(Clone, Debug)]
pub enum Event {
    /// All objects follow; what was known before is void once they are [`Event::InitDone`].
    Init,
    /// One of all objects.
    InitApply(Value),
    /// That were all.
    InitDone(Listed),
    /// An object is new or different.
    Apply(Value),
    /// An object is gone; this was its last state.
    Delete(Value),
    /// Nothing changed, but the API server answered.
    Heartbeat,
    /// It did not. The watch keeps trying.
    Disconnected {
        /// The API server says that it does not serve this resource.
        absent: bool,
        /// What went wrong.
        why: String,
    },
}

/// What a list that is complete is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The resourceVersion of the whole; none where it is no number. Of what is known of an object that is not newer than that the
    /// list has the last word.
    pub version: Option<u64>,
    /// Whether the API server has come back at an earlier position: all that is newer than the list is void.
    pub is_restored: bool,
}

/// Reads the events of a watch on one object by name: it is there, or it is not, also where it went
/// while the watch was lost.
#[derive(Debug, Default)]
pub struct SingleObject {
    is_listed: bool,
}

impl SingleObject {
    /// The object, `None` in it where there is none; nothing where the event says neither.
    pub fn read(&mut self, event: Event) -> Option<Option<Value>> {
        match event {
            Event::Init => {
                self.is_listed = false;
                None
            }
            Event::InitApply(object) => {
                self.is_listed = true;
                Some(Some(object))
            }
            Event::Apply(object) => Some(Some(object)),
            Event::InitDone(_) => (!self.is_listed).then_some(None),
            Event::Delete(_) => Some(None),
            Event::Heartbeat | Event::Disconnected { .. } => None,
        }
    }
}

const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Events that were read and not received yet. Each may hold a megabyte and more, of whoever may write one.
const MOST_WAITING: usize = 8;
/// An event that is larger as text is read only when none waits: as a whole it may be fifty times as much in memory.
const LARGE: usize = 64 << 10;
/// A watch without an event that ends so early was not ended by its own time limit.
const AT_ONCE: Duration = Duration::from_millis(500);
/// With jitter, which at most doubles each: all replicas lose their watches in the same moment.
const RETRY: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(Duration::from_secs(2))
    .without_max_times()
    .with_jitter();
/// Used only if the back-off above ended, which it does not.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// After so many failures in a row the position in the history is given up. An API server that is away may come back with an
/// etcd of before, which soon is past that position, with a history that has other events there.
const FAILURES_BEFORE_LIST: u32 = 2;
/// So often it is asked whether the position is still one of the API server's history, but not more often than once in so
/// many heartbeats. An etcd that was restored from a backup is at an older one, and a watch from a position of the future is
/// silent, without an error.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
const CHECK_HEARTBEATS: u32 = 60;

/// Watches until the receiver is dropped.
pub fn watch(client: Client, spec: WatchSpec) -> mpsc::Receiver<Event> {
    let parts = if spec.metadata_only { Parts::Metadata } else { Parts::All };
    watch_parts(client, spec, parts)
}

/// Watches these parts of the objects until the receiver is dropped, whatever the `spec` says of
/// metadata.
pub fn watch_parts(client: Client, spec: WatchSpec, parts: Parts) -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    tokio::spawn(async move {
        let closed = sender.clone();
        let mut watch =
            Watch { client, spec, parts, sender, outage: None, retry: None, is_restored: false };
        tokio::select! {
            () = closed.closed() => {}
            () = watch.run() => {}
        }
    });
    receiver
}

struct Watch {
    client: Client,
    spec: WatchSpec,
    parts: Parts,
    sender: mpsc::Sender<Event>,
    /// None while the API server answers.
    outage: Option<Outage>,
    /// The pauses between tries. They begin with the shortest when a watch has lasted, and not with a list: where that alone
    /// succeeds it would be asked for without a pause.
    retry: Option<ExponentialBackoff>,
    /// Whether the next list is of an etcd that was put back.
    is_restored: bool,
}

/// Failures in a row.
struct Outage {
    failures: u32,
    /// None where the API server answers that it does not serve the resource.
    counted: Option<DisconnectedWatch>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("ask the API server")]
    Call(#[source] CallFailure),
    #[error("ask the API server for a list")]
    Page(#[source] PageError),
    #[error("build a request")]
    Request(#[source] http::Error),
    #[error("read an event")]
    Read(#[source] std::io::Error),
    /// Without its text, which may be a Secret's.
    #[error("an event cannot be read")]
    NoEvent(#[source] serde_json::Error),
    #[error("the API server does not answer")]
    Silent,
    #[error("the watch ended at once")]
    EndedAtOnce,
    #[error("the position in the history is lost: {0}")]
    Expired(String),
    #[error(
        "the API server is at resourceVersion {current}, after it was at {known}: its etcd was restored from a backup"
    )]
    Future { current: u64, known: u64 },
}

impl Failure {
    /// In metrics.
    fn reason(&self) -> &'static str {
        match self {
            Self::Call(failure) => failure.category(),
            Self::Page(_) => "list",
            Self::Request(_) => "request",
            Self::Read(_) => "connection",
            Self::NoEvent(_) => "unreadable",
            Self::Silent => "silent",
            Self::EndedAtOnce => "ended_at_once",
            Self::Expired(_) => "expired",
            Self::Future { .. } => "restored",
        }
    }
}

impl Watch {
    async fn run(&mut self) {
        loop {
            match self.list().await {
                Ok(version) => {
                    self.recovered();
                    self.follow(version).await;
                }
                Err(failure) => {
                    self.lost(failure).await;
                }
            }
        }
    }

    async fn list(&mut self) -> Result<String, Failure> {
        self.send(Event::Init).await;
        let (mut next, mut limit) = (String::new(), self.parts.page());
        loop {
            let page = self.page(&format!("limit={limit}&continue={next}"), limit).await;
            if let Err(Failure::Page(error)) = &page
                && error.asks_for_fewer()
                && limit > 1
            {
                limit /= 2;
                continue;
            }
            let Page { next: continue_at, version, objects } = page?;
            next = continue_at;
            for object in objects {
                self.send(Event::InitApply(object)).await;
            }
            if next.is_empty() {
                let is_restored = std::mem::take(&mut self.is_restored);
                let listed = Listed { version: version.parse().ok(), is_restored };
                self.send(Event::InitDone(listed)).await;
                return Ok(version);
            }
        }
    }

    async fn page(&self, query: &str, limit: u32) -> Result<Page, Failure> {
        let call = self.parts.read_page(&self.client, self.request(query)?, limit);
        let answer = timeout(LIST_TIMEOUT, call).await.map_err(|_| Failure::Silent)?;
        answer.map_err(page_or_call)
    }

    /// Returns when everything has to be listed again.
    async fn follow(&mut self, mut version: String) {
        let listed = version.clone();
        let mut checked = Instant::now();
        loop {
            match self.watch_from(&mut version, &mut checked).await {
                Ok(()) => {
                    self.retry = None;
                    self.recovered();
                }
                // Who keeps no history says so at once, again and again.
                Err(failure @ Failure::Expired(_)) if version == listed => {
                    self.lost(failure).await;
                    return;
                }
                Err(failure @ Failure::Future { .. }) => {
                    let (path, error) = (&self.spec.path, error_chain(&failure));
                    counts::watch_restarted(path, failure.reason());
                    tracing::warn!(path, error, "restarted a watch from a new list");
                    self.is_restored = true;
                    self.recovered();
                    return;
                }
                Err(failure @ Failure::Expired(_)) => {
                    let (path, error) = (&self.spec.path, error_chain(&failure));
                    counts::watch_restarted(path, failure.reason());
                    tracing::debug!(path, error, "restarted a watch from a new list");
                    return;
                }
                Err(failure) => {
                    if self.lost(failure).await >= FAILURES_BEFORE_LIST {
                        return;
                    }
                }
            }
        }
    }

    /// Watches once from a position that is not of the future.
    async fn watch_from(
        &mut self,
        version: &mut String,
        checked: &mut Instant,
    ) -> Result<(), Failure> {
        let interval = CHECK_INTERVAL.min(self.spec.heartbeat * CHECK_HEARTBEATS);
        if self.outage.is_some() || checked.elapsed() >= interval {
            self.check_position(version).await?;
            *checked = Instant::now();
        }
        self.watch_once(version).await
    }

    /// Whether the API server has come as far as what was read of it. One that was not restarted after its etcd was put
    /// back may answer of what it holds itself, and then nothing is noticed.
    async fn check_position(&self, known: &str) -> Result<(), Failure> {
        let Page { version, .. } = self.page("limit=1", 1).await?;
        // API servers promise numbers; where one is none, nothing can be said.
        match (version.parse(), known.parse()) {
            (Ok(current), Ok(known)) if current < known => Err(Failure::Future { current, known }),
            _ => Ok(()),
        }
    }

    async fn watch_once(&mut self, version: &mut String) -> Result<(), Failure> {
        let length = self.spec.heartbeat.max(Duration::from_secs(1));
        let limit = length + length / 2;
        let started = Instant::now();
        let query = format!(
            "watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={version}",
            length.as_secs()
        );
        let call = self.client.request_stream(self.request(&query)?);
        let answer = timeout(limit, call).await.map_err(|_| Failure::Silent)?;
        let lines = std::pin::pin!(answer.map_err(expired_or_call)?);
        self.send(Event::Heartbeat).await;
        let seen = self.read_events(lines, limit, version).await?;
        if !seen && started.elapsed() < AT_ONCE {
            return Err(Failure::EndedAtOnce);
        }
        self.send(Event::Heartbeat).await;
        Ok(())
    }

    /// Returns at the end of the watch whether there was an event.
    async fn read_events(
        &mut self,
        mut lines: impl AsyncBufRead + Unpin,
        limit: Duration,
        version: &mut String,
    ) -> Result<bool, Failure> {
        let mut seen = false;
        loop {
            let line = timeout(limit, next_line(&mut lines)).await.map_err(|_| Failure::Silent)?;
            let Some(line) = line.map_err(Failure::Read)? else { return Ok(seen) };
            seen = true;
            if line.len() > LARGE {
                // A receiver that is gone ends the whole task.
                drop(self.sender.reserve_many(MOST_WAITING).await);
            }
            let event = self.parts.read_event(&line).map_err(Failure::NoEvent)?;
            drop(line);
            self.event(event, version).await?;
        }
    }

    async fn event(&mut self, event: WatchEvent, version: &mut String) -> Result<(), Failure> {
        let change = match event {
            WatchEvent::Applied(object) => Event::Apply(object),
            WatchEvent::Deleted(object) => Event::Delete(object),
            WatchEvent::Bookmark(newer) => {
                *version = newer;
                self.send(Event::Heartbeat).await;
                return Ok(());
            }
            WatchEvent::Error(status) => return Err(expired_or_call(kube::Error::Api(status))),
        };
        if let Event::Apply(object) | Event::Delete(object) = &change
            && let Some(newer) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str)
        {
            newer.clone_into(version);
        }
        self.send(change).await;
        Ok(())
    }

    /// Returns how many failures there were in a row.
    async fn lost(&mut self, failure: Failure) -> u32 {
        let absent = matches!(
            &failure,
            Failure::Call(CallFailure::Refused(status)) if status.code == 404
        );
        let (path, error) = (self.spec.path.clone(), error_chain(&failure));
        let outage = self.outage.get_or_insert_with(|| Outage { failures: 0, counted: None });
        outage.failures += 1;
        if absent {
            outage.counted = None;
        } else {
            outage.counted.get_or_insert_with(DisconnectedWatch::new);
        }
        let failures = outage.failures;
        let pause = self.retry.get_or_insert_with(|| RETRY.build()).next().unwrap_or(RETRY_DELAY);
        // That a kind is not served is an ordinary answer.
        if failures == 1 && !absent {
            counts::watch_restarted(&path, failure.reason());
            tracing::warn!(path, error, "lost a watch; will retry");
        } else {
            tracing::debug!(path, error, failures, "failed to restart a watch; will retry");
        }
        self.send(Event::Disconnected { absent, why: error }).await;
        sleep(pause).await;
        failures
    }

    fn recovered(&mut self) {
        if let Some(Outage { failures, .. }) = self.outage.take() {
            tracing::info!(path = self.spec.path, failures, "restarted a watch");
        }
    }

    fn request(&self, query: &str) -> Result<http::Request<Vec<u8>>, Failure> {
        use std::fmt::Write as _;
        let mut uri = format!("{}?{query}{}", self.spec.path, self.parts.query());
        if let Some(name) = &self.spec.name {
            // Names of objects need no escape. Writing to a String cannot fail.
            let _ = write!(uri, "&fieldSelector=metadata.name%3D{name}");
        }
        if !self.spec.label_selector.is_empty() {
            // What a selector may have besides letters: = ! , ( ) and blanks.
            let selector = segment(&self.spec.label_selector);
            let _ = write!(uri, "&labelSelector={selector}");
        }
        let is_list = !query.starts_with("watch");
        let mut request =
            http::Request::get(uri).header(http::header::ACCEPT, self.parts.accept(is_list));
        if !is_list {
            // An API server of 1.37 packs each event by itself, and only the first is unpacked (kube 5's own watch).
            request = request.header(http::header::ACCEPT_ENCODING, "identity");
        }
        request.body(Vec::new()).map_err(Failure::Request)
    }

    async fn send(&self, event: Event) {
        // A receiver that is gone ends the whole task.
        let _ = self.sender.send(event).await;
    }
}

fn page_or_call(error: PageError) -> Failure {
    match error {
        PageError::Call(error) => Failure::Call(error.into()),
        other => Failure::Page(other),
    }
}

fn expired_or_call(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 410 => Failure::Expired(status.message.clone()),
        other => Failure::Call(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_went_while_the_watch_was_lost_is_seen_to_be_gone() {
        let mut watched = SingleObject::default();
        let mut read = |event| watched.read(event);
        assert_eq!(read(Event::Init), None);
        assert_eq!(read(Event::InitDone(Listed::default())), Some(None), "there is none at first");
        assert_eq!(read(Event::Apply(Value::from(1))), Some(Some(Value::from(1))));
        assert_eq!(read(Event::Init), None);
        assert_eq!(read(Event::InitApply(Value::from(2))), Some(Some(Value::from(2))));
        assert_eq!(read(Event::InitDone(Listed::default())), None, "it was in the list");
        assert_eq!(read(Event::Heartbeat), None);
        assert_eq!(read(Event::Init), None);
        assert_eq!(
            read(Event::InitDone(Listed::default())),
            Some(None),
            "it is not in the next list"
        );
        assert_eq!(read(Event::Delete(Value::Null)), Some(None));
    }

    #[test]
    fn retries_back_off_to_a_few_seconds_and_differ_between_replicas() {
        let delays = |count| RETRY.build().take(count).collect::<Vec<_>>();
        let some = delays(50);
        assert_eq!(some.len(), 50, "it never gives up");
        let bounds = Duration::from_millis(100)..=Duration::from_secs(4);
        assert!(some.iter().all(|delay| bounds.contains(delay)), "{some:?}");
        assert!(some.iter().skip(10).all(|delay| *delay >= Duration::from_secs(2)), "{some:?}");
        assert_ne!(some, delays(50));
    }
}
