//! Answers: JSON, text, nothing, a stream of events, and the 403 whose body never comes. Deliberately not here: what is
//! answered to what.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::store::Refusal;

/// What upstream's filter means to send with its 403.
const PERMISSION_DENIED: &str = "403 Permission Denied";

/// A body.
#[derive(Debug)]
pub(super) enum Content {
    Whole(Bytes),
    /// Announced; the connection ends in its place.
    Missing(Flushed),
    Events(UnboundedReceiver<Bytes>, End),
}

/// How a stream of events ends.
#[derive(Debug)]
pub(super) enum End {
    WithItsSender,
    /// The connection ends, now that what was sent before has had its turn.
    Cut,
}

/// Whether the headers have had their turn.
#[derive(Debug)]
pub(super) enum Flushed {
    NotYet,
    Done,
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            // hyper writes the headers when there is nothing else to write yet.
            Self::Missing(flushed @ Flushed::NotYet) => {
                *flushed = Flushed::Done;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Missing(Flushed::Done) => {
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
            }
            Self::Events(_, End::Cut) => {
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
            }
            Self::Events(events, end) => match events.poll_recv(context) {
                // An empty one is how a watch is cut.
                Poll::Ready(Some(event)) if event.is_empty() => {
                    *end = End::Cut;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                event => event.map(|event| event.map(Frame::data).map(Ok)),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Missing(_) | Self::Events(..) => SizeHint::default(),
        }
    }
}

pub(super) type Answer = Response<Content>;

/// 200 with JSON.
pub(super) fn json(value: &Value) -> Answer {
    with(StatusCode::OK, "application/json", value.to_string())
}

/// 200 with nothing, as the framework answers where a handler returns nothing.
pub(super) fn nothing() -> Answer {
    with(StatusCode::OK, "text/html; charset=UTF-8", String::new())
}

pub(super) fn not_modified() -> Answer {
    with(StatusCode::NOT_MODIFIED, "text/html; charset=UTF-8", String::new())
}

pub(super) fn refusal(refusal: &Refusal) -> Answer {
    with(refusal.status, "text/html; charset=UTF-8", refusal.text.clone())
}

/// JSON with another status.
pub(super) fn json_with(status: StatusCode, value: &Value) -> Answer {
    with(status, "application/json", value.to_string())
}

/// The filter's 403: a length, and then the end of the connection.
pub(super) fn broken_403() -> Answer {
    let mut answer = with(StatusCode::FORBIDDEN, "text/plain", String::new());
    let length = HeaderValue::from(PERMISSION_DENIED.len());
    answer.headers_mut().insert(header::CONTENT_LENGTH, length);
    *answer.body_mut() = Content::Missing(Flushed::NotYet);
    answer
}

pub(super) fn events(events: UnboundedReceiver<Bytes>) -> Answer {
    let mut answer = with(StatusCode::OK, "text/event-stream", String::new());
    let no_cache = HeaderValue::from_static("no-cache");
    answer.headers_mut().insert(header::CACHE_CONTROL, no_cache);
    *answer.body_mut() = Content::Events(events, End::WithItsSender);
    answer
}

fn with(status: StatusCode, content_type: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Content::Whole(body.into()));
    *answer.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
    answer
}
