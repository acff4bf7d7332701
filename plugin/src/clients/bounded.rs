//! Every call of the API server ends: with its answer, or in a time after which the error says what was asked and how
//! long was waited. A server that is busy (429, 503, 504, 500 of an etcd without a leader) is asked again within that time. One place for all calls: the
//! client itself. Deliberately not here: how long a command waits for something to happen (`install/waiting.rs`).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::call::described;

/// A read takes no longer, unless `--request-timeout` says otherwise.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Nor does a write: the API server itself ends one after so long, and webhooks take part in it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long until a busy server is asked again that does not say when; doubled each time.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// It is doubled up to this.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// Without a time limit a busy server is asked so often.
const TRIES: u32 = 10;
/// So often the same is asked again whose connection was lost: a load balancer takes a server out, or it restarts.
const LOST: u32 = 3;
/// So much of the answer of a busy server is read, for the error.
const SAID: usize = 1000;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoundedBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;

/// How long calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Nothing was said.
    Default,
    /// `--request-timeout`: zero is without limit, as kubectl has it.
    Stated(Duration),
}

/// A call that was given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum GivenUp {
    /// It was not answered, or not to the end.
    #[error("{call}: the API server did not answer within {}", seconds(.waited))]
    Silent { call: String, waited: Duration },
    /// It was answered, and each time that the server is busy.
    #[error(
        "{call}: the API server is busy: it answered {status} for {}, and wants to be asked again in {}{}",
        seconds(.waited), seconds(.again), after_colon(.said)
    )]
    Busy { call: String, status: StatusCode, waited: Duration, again: Duration, said: String },
}

fn seconds(time: &Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

fn after_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// The client, with all its calls bounded. It must not try again by itself.
pub(super) fn bounded(client: Client, limit: Limit) -> Client {
    let namespace = client.default_namespace().to_owned();
    let expiry = *client.valid_until();
    let calls = Calls { client, limit };
    Client::new(calls, namespace).with_valid_until(expiry)
}

struct Calls {
    client: Client,
    limit: Limit,
}

impl tower::Service<Request<Body>> for Calls {
    type Response = Response<BoundedBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(
        &mut self,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, limit) = (self.client.clone(), self.limit);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            Call::begin(&head, limit).answer(&client, head, body).await
        })
    }
}

/// What is the same however often it is done: a read, and a server-side apply.
fn is_repeatable(head: &Parts) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_apply = kind.is_some_and(|kind| kind.starts_with("application/apply-patch"));
    head.method == Method::GET || (head.method == Method::PATCH && is_apply)
}

/// Whether there was a connection, and it ended without an answer.
fn is_lost(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = |error: &io::Error| {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
    };
    let mut next = Some(error);
    while let Some(error) = next {
        let hyper = error.downcast_ref::<hyper::Error>();
        if hyper.is_some_and(|error| error.is_incomplete_message() || error.is_closed())
            || error.downcast_ref::<io::Error>().is_some_and(io)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// How the time of an answer is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All of it has to come in time.
    Whole,
    /// A log, which its reader may read slowly: each part of it.
    Log,
    /// It has no end of its own.
    Endless,
}

/// A call that has begun.
#[derive(Clone)]
struct Call {
    what: String,
    method: Method,
    kind: Kind,
    begun: Instant,
    limit: Option<Duration>,
}

impl Call {
    fn begin(head: &Parts, limit: Limit) -> Self {
        let path = head.uri.path();
        let query = head.uri.query().unwrap_or_default();
        let has = |words: [&str; 2]| query.split('&').any(|part| words.contains(&part));
        let kind = if has(["watch=true", "watch=1"]) || has(["follow=true", "follow=1"]) {
            Kind::Endless
        } else if path.ends_with("/log") {
            Kind::Log
        } else {
            Kind::Whole
        };
        let limit = match (limit, kind) {
            (Limit::Stated(limit), _) => Some(limit).filter(|limit| !limit.is_zero()),
            // Who follows it says how long.
            (Limit::Default, Kind::Endless) => None,
            (Limit::Default, _) if head.method == Method::GET => Some(READ_TIMEOUT),
            (Limit::Default, _) => Some(WRITE_TIMEOUT),
        };
        let (what, method) = (described(&head.method, path), head.method.clone());
        Self { what, method, kind, begun: Instant::now(), limit }
    }

    async fn answer(
        self,
        client: &Client,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<BoundedBody>, BoxError> {
        let (mut tries, mut busy) = (0, None);
        let mut lost = 0;
        loop {
            let request = Request::from_parts(head.clone(), Body::from(body.to_vec()));
            let answer = match self.in_time(client.send(request)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) if lost < LOST && is_repeatable(&head) && is_lost(&error) => {
                    lost += 1;
                    sleep(FIRST_DELAY * lost).await;
                    continue;
                }
                Ok(Err(error)) => return Err(error.into()),
                // That it was busy until now says more.
                Err(silent) => return Err(busy.unwrap_or(silent).into()),
            };
            let status = answer.status();
            let may_pass = status == StatusCode::INTERNAL_SERVER_ERROR && is_repeatable(&head);
            if !may_pass && !self.is_busy(status) {
                return Ok(answer.map(|body| self.bounded(body)));
            }
            let delay = delay(&answer, tries);
            let (parts, body) = answer.into_parts();
            // Where it cannot be read the code alone says what there is to say.
            let body = self.in_time(body.collect_bytes()).await.ok().and_then(Result::ok);
            let body = body.unwrap_or_default();
            let words = said(&body);
            if is_of_another(&words) || (may_pass && !is_of_etcd(&words)) {
                return Ok(Response::from_parts(parts, self.bounded(Body::from(body.to_vec()))));
            }
            let said = self.busy(parts.status, delay, words);
            let is_over = match self.end() {
                Some(end) => end.saturating_duration_since(Instant::now()) <= delay,
                None => tries + 1 >= TRIES,
            };
            if is_over {
                return Err(said.into());
            }
            busy = Some(said);
            tries += 1;
            sleep(delay).await;
        }
    }

    /// Whether the same may be asked again. What creates an object may have done so when a gateway gave up.
    fn is_busy(&self, status: StatusCode) -> bool {
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
            StatusCode::GATEWAY_TIMEOUT => self.method != Method::POST,
            _ => false,
        }
    }

    fn end(&self) -> Option<Instant> {
        // What is beyond all clocks is without limit.
        self.begun.checked_add(self.limit?)
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, GivenUp> {
        match self.end() {
            Some(end) => timeout_at(end, work).await.map_err(|_| self.silent()),
            None => Ok(work.await),
        }
    }

    fn silent(&self) -> GivenUp {
        GivenUp::Silent { call: self.what.clone(), waited: self.limit.unwrap_or_default() }
    }

    fn busy(&self, status: StatusCode, again: Duration, said: String) -> GivenUp {
        let (call, waited) = (self.what.clone(), self.begun.elapsed());
        GivenUp::Busy { call, status, waited, again, said }
    }

    /// The body, each part of it in time.
    fn bounded(&self, body: Body) -> BoundedBody {
        let parts = stream::try_unfold((body, self.clone()), |(mut body, call)| async move {
            let part = match (call.kind, call.limit) {
                (Kind::Log, Some(limit)) => timeout(limit, body.frame()).await.ok(),
                _ => call.in_time(body.frame()).await.ok(),
            };
            match part {
                None => Err(BoxError::from(call.silent())),
                Some(None) => Ok(None),
                Some(Some(Ok(frame))) => Ok(Some((frame, (body, call)))),
                Some(Some(Err(error))) => Err(error.into()),
            }
        });
        StreamBody::new(Box::pin(parts))
    }
}

/// When to ask again: as the server says, else later each time.
fn delay(answer: &Response<Body>, tries: u32) -> Duration {
    let stated = answer.headers().get(header::RETRY_AFTER);
    let stated = stated.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let own: Duration = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(tries)).min(LONGEST_DELAY);
    stated.map_or(own, |seconds| Duration::from_secs(seconds).max(own))
}

/// Whether it is the API server that answers, but a pod, service or node that it did not reach: that is the answer, and the
/// same in a second (apimachinery, `pkg/util/proxy/transport.go`).
fn is_of_another(said: &str) -> bool {
    said.to_ascii_lowercase().starts_with("error trying to reach service")
}

/// Whether it is etcd that could not for a moment: it has a new leader, or is slow (`api/v3rpc/rpctypes/error.go` of etcd). The
/// API server passes that on as a fault of its own. Other errors of etcd last: an object that is too large, a full database.
fn is_of_etcd(said: &str) -> bool {
    const PASSING: [&str; 4] =
        ["leader changed", "no leader", "request timed out", "too many requests"];
    let said = said.strip_prefix("etcdserver: ");
    said.is_some_and(|said| PASSING.iter().any(|passing| said.starts_with(passing)))
}

/// What a Status says to people, else the beginning of the text.
fn said(body: &[u8]) -> String {
    let message = serde_json::from_slice::<Value>(body).ok();
    let message = message.and_then(|status| Some(status.get("message")?.as_str()?.to_owned()));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    message.trim().chars().take(SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(path: &str, limit: Limit) -> (Kind, Option<Duration>) {
        let (head, _) = Request::get(path).body(()).unwrap().into_parts();
        let call = Call::begin(&head, limit);
        (call.kind, call.limit)
    }

    #[test]
    fn what_has_no_end_has_a_limit_only_where_one_was_stated() {
        let follow = "/api/v1/namespaces/tf/pods/p/log?container=c&follow=true";
        let stated = Duration::from_secs(5);
        assert_eq!(limit(follow, Limit::Default), (Kind::Endless, None));
        assert_eq!(limit(follow, Limit::Stated(stated)), (Kind::Endless, Some(stated)));
        assert_eq!(limit("/api/v1/pods?watch=1", Limit::Default), (Kind::Endless, None));
        let log = limit("/api/v1/namespaces/tf/pods/p/log", Limit::Default);
        assert_eq!(log, (Kind::Log, Some(READ_TIMEOUT)));
        assert_eq!(limit("/api/v1/pods", Limit::Default), (Kind::Whole, Some(READ_TIMEOUT)));
        assert_eq!(limit("/api/v1/pods", Limit::Stated(Duration::ZERO)), (Kind::Whole, None));
    }

    #[tokio::test]
    async fn a_pod_that_is_not_reached_is_the_answer_and_a_busy_server_is_asked_again() {
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counted = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let message = if request.uri().path().contains("/proxy/") {
                "error trying to reach service: dial tcp 10.90.0.12:8080: connect: connection refused"
            } else {
                "etcd has no leader"
            };
            let status = serde_json::json!({"kind": "Status", "code": 503, "message": message});
            let answer = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
            let answer = answer.body(Body::from(status.to_string().into_bytes()));
            std::future::ready(answer)
        });
        let client = bounded(Client::new(service.clone(), "default"), Limit::Default);
        let page = |path: &str| Request::get(path).body(Vec::new()).unwrap();
        let path = "/api/v1/namespaces/tf/pods/p:8080/proxy/metrics";
        let failed = client.request_text(page(path)).await.unwrap_err();
        assert!(
            matches!(&failed, kube::Error::Api(status) if status.message.ends_with("refused")),
            "{failed:?}"
        );
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);

        // No time is left to ask it again: that it is busy is the error.
        let client = bounded(Client::new(service, "default"), Limit::Stated(FIRST_DELAY));
        let failed = client.request_text(page("/api/v1/pods")).await.unwrap_err();
        assert!(!matches!(failed, kube::Error::Api(_)), "{failed:?}");
    }

    #[tokio::test]
    async fn an_etcd_that_elects_a_leader_ends_no_read_and_no_apply_and_other_faults_do() {
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counted = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let before = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (code, message) = match request.uri().path() {
                "/api/v1/fault" => (500, "Internal error occurred: no"),
                "/api/v1/full" => (500, "etcdserver: mvcc: database space exceeded"),
                _ if before == 0 => (500, "etcdserver: leader changed"),
                _ => (200, ""),
            };
            let status = serde_json::json!({"kind": "Status", "code": code, "message": message});
            let answer = Response::builder().status(code);
            std::future::ready(answer.body(Body::from(status.to_string().into_bytes())))
        });
        let client = bounded(Client::new(service, "default"), Limit::Default);
        let tries = |request: Request<Vec<u8>>| {
            asked.store(0, std::sync::atomic::Ordering::Relaxed);
            let (client, asked) = (client.clone(), asked.clone());
            async move {
                let done = client.request_text(request).await.is_ok();
                (done, asked.load(std::sync::atomic::Ordering::Relaxed))
            }
        };
        let apply = Request::patch("/api/v1/namespaces/a")
            .header(header::CONTENT_TYPE, "application/apply-patch+yaml");
        assert_eq!(tries(apply.body(Vec::new()).unwrap()).await, (true, 2));
        let get = |path: &str| Request::get(path).body(Vec::new()).unwrap();
        assert_eq!(tries(get("/api/v1/pods")).await, (true, 2));
        assert_eq!(tries(get("/api/v1/fault")).await, (false, 1));
        assert_eq!(tries(get("/api/v1/full")).await, (false, 1));
        // A creation may have been done.
        let create = Request::post("/api/v1/pods").body(Vec::new()).unwrap();
        assert_eq!(tries(create).await, (false, 1));
    }

    #[test]
    fn what_creates_an_object_is_not_done_again_after_a_gateway_gave_up() {
        let call = |method: Method| {
            let (head, _) = Request::builder()
                .method(method)
                .uri("/api/v1/pods")
                .body(())
                .unwrap()
                .into_parts();
            Call::begin(&head, Limit::Default)
        };
        let gone = StatusCode::GATEWAY_TIMEOUT;
        assert_eq!(
            (call(Method::POST).is_busy(gone), call(Method::GET).is_busy(gone)),
            (false, true)
        );
        assert!(call(Method::POST).is_busy(StatusCode::TOO_MANY_REQUESTS));
        assert!(!call(Method::GET).is_busy(StatusCode::INTERNAL_SERVER_ERROR));
    }
}
