//! One watch: each of its events comes now, later, or not at all.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::State;
use super::answer::{Broken, status};
use super::request::Asked;
use super::view::{Moment, View, text};

pub(super) type Frames = mpsc::Sender<Result<Frame<Bytes>, Broken>>;

/// Passes the events of a watch on until one of both ends is gone.
/// `expired` is how often watches had expired when it was asked for.
pub(super) async fn pump(state: Arc<State>, asked: Asked, expired: u64, events: Body, to: Frames) {
    let views = state.view.subscribe();
    let follows = asked.follows();
    let pump = Pump { state, asked, follows, to, views, expired, held: VecDeque::new() };
    // It ends with the connection.
    let _ = pump.run(events).await;
}

struct Pump {
    state: Arc<State>,
    asked: Asked,
    follows: String,
    to: Frames,
    views: watch::Receiver<View>,
    /// How often watches had expired when this one began.
    expired: u64,
    /// What comes when the view thaws.
    held: VecDeque<Vec<u8>>,
}

/// The client is gone.
struct Gone;

impl Pump {
    async fn run(mut self, events: Body) -> Result<(), Gone> {
        let frames = events.into_data_stream().map_err(io::Error::other);
        let mut lines = std::pin::pin!(frames.into_async_read().split_lines());
        self.follow_view().await?;
        loop {
            let listener = self.to.clone();
            tokio::select! {
                line = lines.next() => match line {
                    Some(Ok(line)) => self.event(line).await?,
                    // The position of who watches is that of what has come: the rest comes with the next watch.
                    Some(Err(_)) | None => return Ok(()),
                },
                changed = self.views.changed() => {
                    changed.map_err(|_| Gone)?;
                    self.follow_view().await?;
                },
                () = listener.closed() => return Err(Gone),
            }
        }
    }

    /// Sends what had been held back, if it is to come by now.
    async fn follow_view(&mut self) -> Result<View, Gone> {
        let view = self.views.borrow_and_update().clone();
        if view.expired > self.expired {
            let mut line = expired().to_string().into_bytes();
            line.push(b'\n');
            self.send(line).await?;
            return Err(Gone);
        }
        let frozen = view.frozen_for(&self.asked);
        if frozen.is_none() {
            let lost = self.state.lost().take(&self.follows, &view);
            for event in lost {
                let mut line = event.to_string().into_bytes();
                line.push(b'\n');
                self.send(line).await?;
            }
        }
        while let Some(line) = self.held.pop_front() {
            if frozen.is_some_and(|at| is_later(&line, at)) {
                self.held.push_front(line);
                break;
            }
            self.unless_withheld(line, &view).await?;
        }
        Ok(view)
    }

    async fn event(&mut self, line: Vec<u8>) -> Result<(), Gone> {
        // What was held back comes first.
        let view = self.follow_view().await?;
        match view.frozen_for(&self.asked) {
            Some(at) if is_later(&line, at) => {
                self.held.push_back(line);
                Ok(())
            }
            // While nothing is frozen or withheld it is not even read.
            _ => self.unless_withheld(line, &view).await,
        }
    }

    async fn unless_withheld(&mut self, line: Vec<u8>, view: &View) -> Result<(), Gone> {
        if view.withheld.is_empty() && !self.state.lost().has(&self.follows) {
            return self.send(line).await;
        }
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        // Who knew how far it is would not ask for what is lost.
        if text(&event, "/type") == "BOOKMARK" && self.state.lost().has(&self.follows) {
            return Ok(());
        }
        if let Some(by) = event.get("object").and_then(|object| view.withholds(object)) {
            self.state.lost().add(&self.follows, by, event);
            return Ok(());
        }
        self.send(line).await
    }

    async fn send(&self, line: Vec<u8>) -> Result<(), Gone> {
        self.to.send(Ok(Frame::data(line.into()))).await.map_err(|_| Gone)
    }
}

/// Whether an event is of a later time.
fn is_later(line: &[u8], than: Moment) -> bool {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    let version = text(&event, "/object/metadata/resourceVersion").parse::<u64>();
    version.is_ok_and(|version| version > than.0)
}

/// As the API server says in a watch that its position is one of which nothing is kept any more.
pub(super) fn expired() -> Value {
    json!({"type": "ERROR", "object": status(410)})
}

/// Lines with their ends.
trait SplitLines: futures::AsyncRead + Sized {
    fn split_lines(self) -> impl futures::Stream<Item = io::Result<Vec<u8>>> {
        let reader = Box::pin(futures::io::BufReader::new(self));
        futures::stream::unfold(reader, async |mut reader| {
            let mut line = Vec::new();
            match reader.read_until(b'\n', &mut line).await {
                Ok(0) => None,
                Ok(_) => Some((Ok(line), reader)),
                Err(error) => Some((Err(error), reader)),
            }
        })
    }
}

impl<R: futures::AsyncRead> SplitLines for R {}
