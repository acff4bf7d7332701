//! The way to servers: connections that are used again, by the environment's proxy where there is one for them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;

use crate::{Body, Error, Trust};

/// The way to servers.
pub struct HttpClient {
    tls: ClientConfig,
    connect: Duration,
    /// By scheme and server.
    ways: Mutex<HashMap<String, Way>>,
}

/// The way to one of them.
#[derive(Clone)]
enum Way {
    Direct(Client<HttpsConnector<HttpConnector>, Body>),
    Proxied(Client<HttpsConnector<Tunnel<HttpConnector>>, Body>),
}

impl HttpClient {
    /// With a limit until there is a connection.
    ///
    /// # Errors
    /// The library of TLS refuses its settings.
    pub fn new(trust: Trust, connect: Duration) -> Result<Self, Error> {
        Ok(Self { tls: trust.tls()?, connect, ways: Mutex::default() })
    }

    /// Sends a request, with a limit until its answer begins. Any answer is one, whatever its status.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn send(
        &self,
        request: Request<Body>,
        limit: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let uri = request.uri().clone();
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let answer = async {
            match self.way(&uri) {
                Way::Direct(client) => client.request(request).await,
                Way::Proxied(client) => client.request(request).await,
            }
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) => Err(Error::Connect { host, source }),
            Err(_) => Err(Error::TimedOut { host, limit }),
        }
    }

    fn way(&self, uri: &Uri) -> Way {
        let key = format!("{:?}://{:?}", uri.scheme(), uri.authority());
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.entry(key).or_insert_with(|| self.new_way(uri)).clone()
    }

    fn new_way(&self, uri: &Uri) -> Way {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(self.connect));
        let tls = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone()).https_or_http();
        let builder = Client::builder(TokioExecutor::new());
        match proxy(uri) {
            Some((proxy, login)) => {
                let mut tunnel = Tunnel::new(proxy, tcp);
                if let Some(login) = login {
                    tunnel = tunnel.with_auth(login);
                }
                Way::Proxied(builder.build(tls.enable_http1().wrap_connector(tunnel)))
            }
            None => Way::Direct(builder.build(tls.enable_http1().wrap_connector(tcp))),
        }
    }
}

/// The environment's proxy for the address, with its login. Servers without TLS are asked directly.
fn proxy(uri: &Uri) -> Option<(Uri, Option<HeaderValue>)> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let configured = set("HTTPS_PROXY").or_else(|| set("https_proxy"))?.parse().ok();
    let proxy =
        opensdn_proxy::for_server(uri, configured.filter(|_| uri.scheme_str() == Some("https")))?;
    let found = Matcher::builder().all(proxy.to_string()).build().intercept(uri)?;
    Some((found.uri().clone(), found.basic_auth().cloned()))
}
