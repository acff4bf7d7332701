//! Counts each request that is sent, by what it asks and how it was answered.

use std::task;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use tower::Service;

use crate::counts;
use crate::path::Target;

/// What no resource is asked for: discovery, the version.
const NO_RESOURCE: &str = "none";

/// Sends everything on.
#[derive(Clone)]
pub(super) struct Counted<S>(pub(super) S);

impl<S, Sent, Answer> Service<Request<Sent>> for Counted<S>
where
    S: Service<Request<Sent>, Response = Response<Answer>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let target = Target::of(request.uri().path());
        let verb = verb(&request, &target);
        let resource = match target.resource {
            resource if resource.is_empty() => NO_RESOURCE.to_owned(),
            resource => resource,
        };
        let answer = self.0.call(request);
        async move {
            let answer = answer.await;
            counts::requested(verb, resource, answer.as_ref().ok().map(Response::status));
            answer
        }
        .boxed()
    }
}

/// As RBAC and the audit log have it.
fn verb<Sent>(request: &Request<Sent>, target: &Target) -> &'static str {
    let query = request.uri().query().unwrap_or_default();
    let watches = query.split('&').any(|one| ["watch=true", "watch=1"].contains(&one));
    match (request.method(), target.is_one) {
        (&Method::GET | &Method::HEAD, _) if watches => "watch",
        (&Method::GET | &Method::HEAD, false) if !target.resource.is_empty() => "list",
        (&Method::GET | &Method::HEAD, _) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use tower::service_fn;

    use super::*;
    use crate::metrics;

    async fn count(method: Method, uri: &str, status: Option<u16>) -> String {
        let inner = service_fn(move |_: Request<()>| async move {
            let status = status.ok_or("connection refused")?;
            Ok::<_, &str>(Response::builder().status(status).body(()).unwrap())
        });
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let _ = Counted(inner).call(request).await;
        let mut registry = metrics::registry("test");
        counts::register_all(&mut registry);
        metrics::encode(&registry).unwrap()
    }

    #[tokio::test]
    async fn a_request_is_counted_by_verb_resource_and_answer() {
        let object = "/apis/apps/v1/namespaces/tf/statefulsets/a";
        let collection = "/apis/apps/v1/namespaces/tf/statefulsets";
        let watch = format!("{collection}?limit=1&watch=true");
        for (method, uri, status, labels) in [
            (Method::GET, object, Some(200), ["get", "statefulsets", "200"]),
            (Method::GET, collection, Some(200), ["list", "statefulsets", "200"]),
            (Method::GET, &*watch, Some(410), ["watch", "statefulsets", "410"]),
            (
                Method::PATCH,
                &*format!("{object}/status"),
                Some(409),
                ["patch", "statefulsets/status", "409"],
            ),
            (Method::POST, collection, Some(429), ["create", "statefulsets", "429"]),
            (Method::DELETE, object, None, ["delete", "statefulsets", "none"]),
            (Method::GET, "/version", Some(200), ["get", "none", "200"]),
        ] {
            let text = count(method, uri, status).await;
            let [verb, resource, code] = labels;
            let labels = format!(r#"verb="{verb}",resource="{resource}",code="{code}""#);
            let series = format!("test_api_requests_total{{{labels}}} 1\n");
            assert!(text.contains(&series), "{series} is not in {text}");
        }
    }
}
