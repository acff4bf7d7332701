//! The client of the API server. kube's own leaves Nagle's algorithm on: on a new connection the
//! first request then waits behind the end of the TLS handshake for a delayed acknowledgement,
//! 40 ms on Linux, which a start or a claim would wait too. So this is kube's stack on a connector
//! that sends at once. Deliberately not here: which requests are sent.

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _, retry::RetryPolicy},
};
use tower::{BoxError, ServiceBuilder, retry::RetryLayer};

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
    infer().await.map_err(|error| ClientError(Box::new(error)))
}

async fn infer() -> Result<Client, kube::Error> {
    let mut config = Config::infer().await.map_err(kube::Error::InferConfig)?;
    config.proxy_url = opensdn_proxy::for_server(&config.cluster_url, config.proxy_url);
    // A proxy is rare and kube knows its protocols.
    if config.proxy_url.is_some() { Client::try_from(config) } else { direct(config) }
}

fn direct(config: Config) -> Result<Client, kube::Error> {
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
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
