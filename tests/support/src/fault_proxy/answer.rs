//! Answers: those of the API server, of its past, and of the proxy itself.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::State;
use super::pump::{expired, pump};
use super::request::Asked;
use super::view::Frozen;

/// What the controller gets.
pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;
/// Lines of a watch that wait for the controller.
const WAITING: usize = 64;

/// An answer that does not come to its end.
#[derive(Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fault of the test")
    }
}

impl std::error::Error for Broken {}

/// What the API server answers, as far as it is shown.
pub(super) async fn forward(state: &Arc<State>, asked: &Asked, request: Request<Bytes>) -> Answer {
    let (frozen, expired) = {
        let view = state.view.borrow();
        (view.frozen.clone(), view.expired)
    };
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::AUTHORIZATION, header::CONNECTION, header::CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    let past = frozen.filter(|frozen| frozen.answers(asked) && !asked.is_watch());
    if let Some(frozen) = &past {
        // Of a single object it is the list with that one.
        if asked.name.is_empty() {
            parts.uri = of_the_past(asked, &asked.path, frozen, None).parse().unwrap_or(parts.uri);
        } else {
            return one_of_the_past(state, asked, frozen, parts).await;
        }
    }
    if asked.is_list() && past.is_none() {
        state.lost().listed(&asked.follows());
    }
    let request = Request::from_parts(parts, Body::from(body.to_vec()));
    let Ok(mut answer) = state.client.send(request).await else { return refusal(502) };
    for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
        answer.headers_mut().remove(name);
    }
    let (parts, body) = answer.into_parts();
    if !asked.is_watch() || !parts.status.is_success() {
        return Response::from_parts(parts, body.map_err(|_| Broken).boxed_unsync());
    }
    let (to, lines) = mpsc::channel(WAITING);
    tokio::spawn(pump(Arc::clone(state), asked.clone(), expired, body, to));
    let lines = futures::stream::unfold(lines, async |mut lines| {
        let line = lines.recv().await?;
        Some((line, lines))
    });
    Response::from_parts(parts, StreamBody::new(lines).boxed_unsync())
}

/// The list of that moment, exactly.
fn of_the_past(asked: &Asked, path: &str, frozen: &Frozen, name: Option<&str>) -> String {
    let version = frozen.at.0.to_string();
    let name = name.map(|name| format!("metadata.name%3D{name}"));
    let mut parameters = vec![
        ("resourceVersion", Some(version.as_str())),
        ("resourceVersionMatch", Some("Exact")),
        ("continue", None),
    ];
    if name.is_some() {
        parameters.push(("fieldSelector", name.as_deref()));
    }
    asked.with(path, &parameters)
}

async fn one_of_the_past(
    state: &State,
    asked: &Asked,
    frozen: &Frozen,
    mut parts: http::request::Parts,
) -> Answer {
    let collection = asked.path.rsplit_once('/').map_or("", |(collection, _)| collection);
    let uri = of_the_past(asked, collection, frozen, Some(&asked.name));
    parts.uri = uri.parse().unwrap_or(parts.uri);
    // Of objects of which only the metadata is read it is a list of such.
    if let Some(accept) = parts.headers.get_mut(header::ACCEPT)
        && let Ok(text) = accept.to_str()
    {
        let text = text.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;");
        *accept = HeaderValue::try_from(text).unwrap_or_else(|_| accept.clone());
    }
    let request = Request::from_parts(parts, Body::empty());
    let list: Value = match state.client.send(request).await {
        Ok(answer) if answer.status().is_success() => match answer.into_body().collect().await {
            Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
            Err(_) => return refusal(502),
        },
        Ok(answer) => return refusal(answer.status().as_u16()),
        Err(_) => return refusal(502),
    };
    let text = |name: &str| list.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(mut object) = list.pointer("/items/0").cloned() else { return refusal(404) };
    if let Some(object) = object.as_object_mut() {
        let kind = text("kind").trim_end_matches("List");
        object.entry("apiVersion").or_insert_with(|| text("apiVersion").into());
        object.entry("kind").or_insert_with(|| kind.into());
    }
    json_of(StatusCode::OK, &object)
}

/// As the API server says it.
pub(super) fn refusal(code: u16) -> Answer {
    let is_known = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    json_of(is_known, &status(code))
}

/// The same, and when it may be tried again.
pub(super) fn refusal_until(code: u16, seconds: u32) -> Answer {
    let mut answer = refusal(code);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// An answer that begins.
pub(super) fn silence() -> Answer {
    let mut answer = json_of(StatusCode::OK, &Value::Null);
    let nothing = futures::stream::pending::<Result<Frame<Bytes>, Broken>>();
    *answer.body_mut() = StreamBody::new(nothing).boxed_unsync();
    answer
}

/// A watch that has nothing but the error 410.
pub(super) fn expired_watch() -> Answer {
    json_of(StatusCode::OK, &expired())
}

/// An answer of which the first half of the first part comes, and then nothing.
pub(super) fn cut(answer: Answer) -> Answer {
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let frames = body.into_data_stream().take(1).flat_map(|frame| {
        let half = frame.map(|bytes| Frame::data(bytes.slice(..bytes.len() / 2)));
        futures::stream::iter([half, Err(Broken)])
    });
    Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
}

pub(super) fn status(code: u16) -> Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Unknown",
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "a fault of the test", "reason": reason, "code": code})
}

fn json_of(code: StatusCode, value: &Value) -> Answer {
    let body = http_body_util::Full::new(Bytes::from(format!("{value}\n")));
    let never = |never: Infallible| match never {};
    let mut answer = Response::new(body.map_err(never).boxed_unsync());
    *answer.status_mut() = code;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}
