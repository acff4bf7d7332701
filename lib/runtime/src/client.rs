//! The client of the API server. kube's own leaves Nagle's algorithm on: on a new connection the
//! first request then waits behind the end of the TLS handshake for a delayed acknowledgement,
//! 40 ms on Linux, which a start or a claim would wait too. So this is kube's stack on a connector
//! that sends at once, and each request is counted. Deliberately not here: which requests are sent.

mod counted;

use std::sync::Arc;
use std::task;

use futures::future::{Either, Ready, ready};
use http::{Method, Request};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _, retry::RetryPolicy},
};
use tower::layer::layer_fn;
use tower::{BoxError, Service, ServiceBuilder, retry::RetryLayer};

use counted::Counted;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("find out how to reach the API server")]
pub struct ClientError(#[source] Box<kube::Error>);

impl ClientError {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        "outside a cluster set KUBECONFIG"
    }
}

/// A client from `KUBECONFIG` or from inside the cluster.
///
/// # Errors
/// Neither says where the API server is, or what it says cannot be used.
pub async fn client() -> Result<Client, ClientError> {
    infer(None).await.map_err(|error| ClientError(Box::new(error)))
}

/// The same, for what only one replica may do: `may_write` is asked right before each write is sent, also one that is tried again,
/// and where it says no the call fails with [`NotSent`]. Reads pass; a program in a pod is a write.
///
/// # Errors
/// As of [`client`].
pub async fn client_while(
    may_write: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<Client, ClientError> {
    infer(Some(Arc::new(may_write))).await.map_err(|error| ClientError(Box::new(error)))
}

type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

/// A write that would have been sent by who may not do it any more.
#[derive(Debug, thiserror::Error)]
#[error("not sent: the Lease was not renewed in time, and another replica may lead")]
pub struct NotSent;

/// Sends no write that may not be sent.
#[derive(Clone)]
struct Guarded<S> {
    inner: S,
    may_write: MayWrite,
}

impl<S: Service<Request<Body>, Error = BoxError>> Service<Request<Body>> for Guarded<S> {
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<Ready<Result<S::Response, BoxError>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> task::Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // A program in a pod is started by a GET.
        let is_read = [Method::GET, Method::HEAD].contains(request.method())
            && !request.uri().path().ends_with("/exec");
        if is_read || (self.may_write)() {
            Either::Right(self.inner.call(request))
        } else {
            Either::Left(ready(Err(NotSent.into())))
        }
    }
}

async fn infer(may_write: Option<MayWrite>) -> Result<Client, kube::Error> {
    let mut config = Config::infer().await.map_err(kube::Error::InferConfig)?;
    config.proxy_url = opensdn_proxy::for_server(&config.cluster_url, config.proxy_url);
    // A proxy is rare and kube knows its protocols.
    if config.proxy_url.is_none() {
        return direct(config, may_write);
    }
    let through_proxy = ClientBuilder::try_from(config)?.with_layer(&layer_fn(Counted));
    Ok(match may_write {
        Some(may_write) => {
            let guard = layer_fn(|inner| Guarded { inner, may_write: may_write.clone() });
            through_proxy.with_layer(&guard).build()
        }
        None => through_proxy.build(),
    })
}

fn direct(config: Config, may_write: Option<MayWrite>) -> Result<Client, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http = HttpClient::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let retry = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let guard = may_write
        .map(|may_write| layer_fn(move |inner| Guarded { inner, may_write: may_write.clone() }));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .option_layer(guard)
        .layer_fn(Counted)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

#[cfg(test)]
mod tests {
    use http::Response;
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn a_write_that_may_not_be_made_is_not_sent_and_a_read_is() {
        let inner = service_fn(async |_: Request<Body>| Ok::<_, BoxError>(Response::new(())));
        let mut guarded = Guarded { inner, may_write: Arc::new(|| false) };
        let request = |method| Request::builder().method(method).body(Body::empty()).unwrap();
        assert!(guarded.call(request(Method::GET)).await.is_ok());
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let error = guarded.call(request(method)).await.unwrap_err();
            assert!(error.is::<NotSent>(), "{error}");
        }
        let exec = "/api/v1/namespaces/tf/pods/a-0/exec?command=nodetool";
        let exec = Request::get(exec).body(Body::empty()).unwrap();
        assert!(guarded.call(exec).await.unwrap_err().is::<NotSent>());
        guarded.may_write = Arc::new(|| true);
        assert!(guarded.call(request(Method::PATCH)).await.is_ok());
    }
}
