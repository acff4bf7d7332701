//! One stream after the other, and what is done while there is none.

use std::convert::Infallible;
use std::sync::Arc;

use opensdn_http_client::{Incoming, next_piece};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::events::{Data, Event, Parser};
use super::{Change, Noted, Timing, locked};
use crate::client::{ConfigApi, Error};
use crate::fields::{Fields, items, text};
use crate::jitter::jittered;
use crate::operations::{Since, last_modified};
use crate::vrouter_config::{KIND, NAME};

/// The events have nothing but the version in them. The type is named with underscores, as changes are reported.
const PATH: &str =
    "/watch?resource_type=global_vrouter_config&global_vrouter_config_fields=id_perms";
/// By the name of the link on the first page.
const FEATURE: &str = "watch";

pub(super) struct Run {
    api: Arc<ConfigApi>,
    timing: Timing,
    noted: Noted,
    /// As it was seen last; nothing where that was not possible.
    seen: Option<Seen>,
    offer: Offer,
}

/// The object at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    uuid: String,
    /// Of no meaning but whether it is the same: it is by the clock of the server that took the write.
    version: String,
}

/// Whether there are streams.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    Unknown,
    Known,
}

/// How a stream ended.
enum End {
    /// It was one until then.
    Lost,
    /// There is none, or nothing can be learned of it.
    Unavailable,
}

/// What an event means to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Continues,
    Ends,
}

/// Whether the version was given.
#[derive(PartialEq, Eq)]
enum Checked {
    Answered,
    Failed,
}

impl Run {
    pub(super) fn new(api: Arc<ConfigApi>, timing: Timing, noted: Noted) -> Self {
        Self { api, timing, noted, seen: None, offer: Offer::Unknown }
    }

    pub(super) async fn run(mut self) -> Infallible {
        let mut pause = self.timing.pause;
        loop {
            let start = Instant::now();
            match self.stream().await {
                End::Lost => {
                    self.api.prefer_another();
                    // A proxy may end each stream after the same time: then opening them is a way to poll.
                    let is_short = start.elapsed() < self.timing.poll;
                    pause = if is_short { pause.min(self.timing.poll) } else { self.timing.pause };
                    sleep(jittered(pause)).await;
                    pause *= 2;
                }
                End::Unavailable => {
                    self.offer = Offer::Unknown;
                    self.poll().await;
                    pause = self.timing.pause;
                }
            }
        }
    }

    /// Reads a stream to its end. That there is none is no failure that is worth a report: the polls that follow say
    /// whether the server can be reached.
    async fn stream(&mut self) -> End {
        let Some(mut body) = self.open().await else { return End::Unavailable };
        let mut parser = Parser::default();
        let mut end = End::Unavailable;
        let mut silent = Instant::now() + self.api.limit().min(self.timing.silence);
        let mut resync = Instant::now() + self.timing.resync;
        loop {
            let piece = next_piece(&mut body, self.timing.silence);
            match timeout_at(silent.min(resync), piece).await {
                Ok(Ok(Some(piece))) => {
                    for event in parser.feed(&piece) {
                        match self.take(&event) {
                            Meaning::Continues => end = End::Lost,
                            Meaning::Ends => return end,
                        }
                    }
                    // Until the first event only that is waited for.
                    if matches!(end, End::Lost) {
                        silent = Instant::now() + self.timing.silence;
                    }
                }
                Err(_) if Instant::now() < silent => {
                    if self.check().await == Checked::Failed {
                        return End::Unavailable;
                    }
                    resync = Instant::now() + self.timing.resync;
                }
                Ok(Ok(None) | Err(_)) | Err(_) => return end,
            }
        }
    }

    async fn open(&mut self) -> Option<Incoming> {
        if self.offer == Offer::Unknown {
            let features = self.api.features().await.ok()?;
            features.contains(FEATURE).then_some(())?;
            self.offer = Offer::Known;
        }
        self.api.events(PATH).await.ok()
    }

    /// Asks for the version until it is time to try a stream again.
    async fn poll(&mut self) {
        let end = Instant::now() + self.timing.retry;
        loop {
            self.check().await;
            sleep(jittered(self.timing.poll)).await;
            if Instant::now() >= end {
                return;
            }
        }
    }

    async fn check(&mut self) -> Checked {
        match self.current().await {
            Ok(current) => {
                if let Some(current) = current {
                    self.see(current);
                }
                Checked::Answered
            }
            Err(error) => {
                self.seen = None;
                self.note(Change::Unreachable(error));
                Checked::Failed
            }
        }
    }

    /// The object as it is now; nothing where it is as it was seen.
    async fn current(&self) -> Result<Option<Seen>, Error> {
        let (uuid, etag) = match &self.seen {
            Some(seen) => (seen.uuid.clone(), Some(format!("\"{}\"", seen.version))),
            None => (self.api.id_of(KIND, &NAME).await?.ok_or(Error::NoVrouterConfig)?, None),
        };
        match self.api.since(KIND, &uuid, etag.as_deref()).await? {
            Since::Same => Ok(None),
            Since::Changed { last_modified } => Ok(Some(Seen { uuid, version: last_modified })),
            Since::Gone => Err(Error::NoVrouterConfig),
        }
    }

    pub(super) fn take(&mut self, event: &Event) -> Meaning {
        let Data::Text(data) = &event.data else { return self.take_unread(&event.name) };
        let data: Option<Value> = serde_json::from_str(data).ok();
        match (event.name.as_str(), data) {
            ("stop", _) => Meaning::Ends,
            ("init", data) => match data.as_ref().and_then(ours_of) {
                Some(seen) => {
                    self.see(seen);
                    Meaning::Continues
                }
                // One without the object says nothing of its changes, either.
                None => Meaning::Ends,
            },
            (name, Some(data)) if data.get(KIND).is_some_and(Value::is_object) => {
                self.take_object(name, &data);
                Meaning::Continues
            }
            (name, _) => self.take_unread(name),
        }
    }

    fn take_object(&mut self, name: &str, data: &Value) {
        let Some(object) = data.get(KIND).and_then(Value::as_object) else { return };
        let is_ours = |seen: &Seen| seen.uuid == text(object, "uuid");
        match name {
            "delete" if self.seen.as_ref().is_some_and(is_ours) => {
                self.seen = None;
                self.note(Change::Changed);
            }
            "delete" => {}
            _ => {
                if let Some(seen) = seen_of(object) {
                    self.see(seen);
                }
            }
        }
    }

    /// An event that cannot be read may be a change.
    fn take_unread(&mut self, name: &str) -> Meaning {
        if name == "stop" {
            return Meaning::Ends;
        }
        self.note(Change::Changed);
        Meaning::Continues
    }

    fn see(&mut self, seen: Seen) {
        if seen.version.is_empty() || self.seen.as_ref() != Some(&seen) {
            self.note(Change::Changed);
        }
        self.seen = Some(seen);
    }

    /// What has not been reported yet is replaced: a change that is replaced by a failure is reported after it.
    fn note(&self, change: Change) {
        *locked(&self.noted) = Some(change);
    }
}

/// The object in the list that comes first.
fn ours_of(data: &Value) -> Option<Seen> {
    let all = data.get(format!("{KIND}s"))?.as_array()?.iter();
    all.filter_map(|one| one.get(KIND)?.as_object()).find_map(seen_of)
}

/// Nothing where it is another object: one may be made, and no agent reads it.
fn seen_of(object: &Fields) -> Option<Seen> {
    let name: Vec<&str> = items(object, "fq_name").filter_map(Value::as_str).collect();
    let seen = Seen { uuid: text(object, "uuid").to_owned(), version: last_modified(object) };
    (name == NAME).then_some(seen)
}
