//! What a request is answered: which method, path and media type, the body limit, the deadline,
//! shedding. Deliberately not here: AdmissionReview, which only the [`Reviewer`] knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use opensdn_policy_host::Step;
use tokio::time::{Instant, timeout_at};

use super::body::{self, BodyBudget, BodyError, Rest};
use super::class::Class;
use super::{Call, Limits, Reviewer, deadline};
use crate::metrics::ServerMetrics;
use crate::path_tokens::PathTokens;

/// How the answer to a path that is not served begins, by which we know ourselves.
pub(crate) const UNKNOWN_PATH: &str = "this path is not served";

/// What all requests share.
pub(super) struct ReviewEndpoint<R> {
    reviewer: R,
    path_tokens: PathTokens,
    limits: Arc<Limits>,
    metrics: ServerMetrics,
    reviewing: AtomicUsize,
    reviewing_others: AtomicUsize,
    body_budget: BodyBudget,
}

/// The routes of the HTTPS port.
pub(super) fn router<R: Reviewer>(
    reviewer: R,
    path_tokens: PathTokens,
    limits: Arc<Limits>,
    metrics: ServerMetrics,
) -> Router {
    let body_budget = BodyBudget::new(limits.buffered);
    let [reviewing, reviewing_others] = Default::default();
    let endpoint = ReviewEndpoint {
        reviewer,
        path_tokens,
        limits,
        metrics,
        reviewing,
        reviewing_others,
        body_budget,
    };
    Router::new().fallback(serve::<R>).with_state(Arc::new(endpoint))
}

async fn serve<R: Reviewer>(
    State(endpoint): State<Arc<ReviewEndpoint<R>>>,
    request: Request,
) -> Response {
    let Some((step, class)) = endpoint.asked_for(request.uri().path()) else {
        endpoint.metrics.unknown_paths.inc();
        // Nothing of its body is read.
        return reply(&Rejection::PATH, Rest::Unread);
    };
    if request.method() != Method::POST {
        return endpoint.reject(Rejection::METHOD, request.into_body()).await;
    }
    endpoint.review(step, class, request).await
}

impl<R: Reviewer> ReviewEndpoint<R> {
    /// What is asked for, if the path has a token that is accepted.
    fn asked_for(&self, path: &str) -> Option<(Step, Class)> {
        let (step, token) = path.strip_prefix('/')?.split_once('/')?;
        let (step, class) = match step.strip_suffix(Class::Others.suffix()) {
            Some(step) => (step, Class::Others),
            None => (step, Class::Ours),
        };
        let step = match step {
            "validate" => Step::Validate,
            "mutate" => Step::Mutate,
            _ => return None,
        };
        self.path_tokens.accepts(token).then_some((step, class))
    }

    async fn review(&self, step: Step, class: Class, request: Request) -> Response {
        let arrived = Instant::now();
        let (head, mut body) = request.into_parts();
        if !is_json(&head.headers) {
            return self.reject(Rejection::MEDIA_TYPE, body).await;
        }
        let deadline = arrived + deadline::budget(head.uri.query());
        let mut reservation = self.body_budget.reserve(class);
        let body = match self.read(&mut body, &mut reservation, arrived, deadline).await {
            Ok(bytes) => bytes,
            Err(Stopped::Late) => return self.reject(Rejection::SLOW, body).await,
            Err(Stopped::Body(BodyError::Broken)) => {
                return self.reject(Rejection::BROKEN, body).await;
            }
            Err(Stopped::Body(BodyError::OverBudget)) => return self.shed(body).await,
            Err(Stopped::Body(BodyError::TooLarge(prefix))) => {
                let rest = self.discard(&mut body).await;
                return answer(StatusCode::OK, self.reviewer.too_large(&prefix), rest);
            }
        };
        let Some(_permit) = self.permit(class) else {
            return self.shed(Body::empty()).await;
        };
        let answered = self.reviewer.review(Call { step, body, deadline }).await;
        self.metrics.review_took(step, arrived.elapsed());
        answer(StatusCode::OK, answered, Rest::Read)
    }

    async fn read(
        &self,
        body: &mut Body,
        reservation: &mut body::Reservation<'_>,
        arrived: Instant,
        deadline: Instant,
    ) -> Result<Bytes, Stopped> {
        let mut reading = std::pin::pin!(body::read(body, self.limits.body, reservation));
        // Nearly every body is here already: only one that is not costs a timer.
        if let std::task::Poll::Ready(done) = futures::poll!(reading.as_mut()) {
            return done.map_err(Stopped::Body);
        }
        let until = deadline.min(arrived + self.limits.receive);
        match timeout_at(until, reading).await {
            Ok(done) => done.map_err(Stopped::Body),
            Err(_) => Err(Stopped::Late),
        }
    }

    /// A permit for one review; released when dropped, also when the caller goes away in the
    /// middle.
    fn permit(&self, class: Class) -> Option<[Option<ReviewPermit<'_>>; 2]> {
        let all = ReviewPermit::of(&self.reviewing, self.limits.reviews)?;
        let others = match class {
            Class::Ours => None,
            Class::Others => {
                let most = class.share(self.limits.reviews);
                Some(ReviewPermit::of(&self.reviewing_others, most)?)
            }
        };
        Some([Some(all), others])
    }

    async fn shed(&self, body: Body) -> Response {
        self.metrics.shed.inc();
        self.reject(Rejection::OVERLOAD, body).await
    }

    async fn reject(&self, rejection: Rejection, mut body: Body) -> Response {
        reply(&rejection, self.discard(&mut body).await)
    }

    async fn discard(&self, body: &mut Body) -> Rest {
        body::discard(body, self.limits.body, Instant::now() + self.limits.discard).await
    }
}

enum Stopped {
    Body(BodyError),
    Late,
}

struct ReviewPermit<'a> {
    reviewing: &'a AtomicUsize,
}

impl<'a> ReviewPermit<'a> {
    fn of(reviewing: &'a AtomicUsize, most: usize) -> Option<Self> {
        let before = reviewing.fetch_add(1, Ordering::Relaxed);
        let permit = Self { reviewing };
        (before < most).then_some(permit)
    }
}

impl Drop for ReviewPermit<'_> {
    fn drop(&mut self) {
        self.reviewing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer that is no review, as a `Status`, which the API server shows to its user.
struct Rejection {
    code: StatusCode,
    status: &'static [u8],
}

macro_rules! rejections {
    ($($name:ident = $code:ident $number:literal $reason:literal $message:literal;)*) => {
        impl Rejection {
            $(const $name: Self = Self {
                code: StatusCode::$code,
                status: concat!(
                    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":""#,
                    $message, r#"","reason":""#, $reason, r#"","code":"#, $number, "}"
                ).as_bytes(),
            };)*
        }
    };
}

rejections! {
    PATH = NOT_FOUND 404 "NotFound"
        "this path is not served: reviews go to the paths in the webhook configurations opensdn-webhook, which its leader writes";
    METHOD = METHOD_NOT_ALLOWED 405 "MethodNotAllowed"
        "opensdn-webhook takes reviews by POST only";
    MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE 415 "UnsupportedMediaType"
        "opensdn-webhook takes reviews as uncompressed application/json only";
    SLOW = REQUEST_TIMEOUT 408 "Timeout"
        "the review did not arrive at opensdn-webhook in time: look at the network between the API server and the webhook";
    BROKEN = BAD_REQUEST 400 "BadRequest"
        "the review broke off before its end";
    OVERLOAD = TOO_MANY_REQUESTS 429 "TooManyRequests"
        "opensdn-webhook has too many reviews waiting: try again, and add replicas if this persists";
}

/// The whole of that answer.
#[cfg(test)]
pub(crate) fn unknown_path_message() -> &'static str {
    std::str::from_utf8(Rejection::PATH.status).unwrap()
}

fn reply(rejection: &Rejection, rest: Rest) -> Response {
    let mut response = answer(rejection.code, Bytes::from_static(rejection.status), rest);
    let headers = response.headers_mut();
    if rejection.code == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if rejection.code == StatusCode::TOO_MANY_REQUESTS {
        // Whole seconds, never a date: the API server retries on nothing else.
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn answer(code: StatusCode, body: Bytes, rest: Rest) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if rest == Rest::Unread {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a request says it is plain JSON. No `Content-Type` counts as JSON, as it does for the
/// API server itself.
fn is_json(headers: &HeaderMap) -> bool {
    let is = |name, expected: &str, default| match headers.get(name) {
        None => default,
        Some(value) => value.to_str().is_ok_and(|text| {
            let essence = text.split(';').next().unwrap_or(text);
            essence.trim().eq_ignore_ascii_case(expected)
        }),
    };
    is(CONTENT_TYPE, "application/json", true) && is(CONTENT_ENCODING, "identity", true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_json_however_it_is_spelt_and_nothing_else() {
        let headers = |name, value: &str| {
            HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
        };
        assert!(is_json(&HeaderMap::new()));
        for good in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert!(is_json(&headers(CONTENT_TYPE, good)), "{good}");
        }
        for bad in ["text/plain", "application/yaml", "application/json-patch+json", "", "json"] {
            assert!(!is_json(&headers(CONTENT_TYPE, bad)), "{bad}");
        }
        assert!(!is_json(&headers(CONTENT_ENCODING, "gzip")));
    }
}
