//! The way to servers: connections that are used again, by the environment's proxy where there is one for them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// Ways that are kept: to daemons of nodes that come and go there would be ever more.
const MOST_WAYS: usize = 2048;

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
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let answer = async {
            match self.way(&uri) {
                Way::Direct(client) => client.request(request).await,
                Way::Proxied(client) => client.request(request).await,
            }
        };
        let begin = Instant::now();
        let answered = tokio::time::timeout(limit, answer).await;
        let outcome = match &answered {
            Ok(Ok(response)) => response.status().as_u16().to_string(),
            Ok(Err(_)) => "no answer".to_owned(),
            Err(_) => "no answer in time".to_owned(),
        };
        let milliseconds = begin.elapsed().as_millis();
        tracing::debug!(%method, url = %shown(&uri), %outcome, milliseconds, "sent a request");
        match answered {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) => Err(Error::Connect { host, source }),
            Err(_) => Err(Error::TimedOut { host, limit }),
        }
    }

    fn way(&self, uri: &Uri) -> Way {
        let key = format!("{:?}://{:?}", uri.scheme(), uri.authority());
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if ways.len() >= MOST_WAYS {
            // Requests that are under way have theirs.
            ways.clear();
        }
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

/// An address for logs: of a query only the names, since values may be signatures or tokens; a login in it is left out.
fn shown(uri: &Uri) -> String {
    let host = uri.authority().map(|one| one.as_str()).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let scheme = uri.scheme_str().unwrap_or_default();
    let names = uri.query().into_iter().flat_map(|query| query.split('&'));
    let names: Vec<String> = names
        .map(|pair| {
            pair.split_once('=').map_or_else(|| "...".to_owned(), |(name, _)| format!("{name}=..."))
        })
        .collect();
    let query = if names.is_empty() { String::new() } else { format!("?{}", names.join("&")) };
    format!("{scheme}://{host}{}{query}", uri.path())
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

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn an_address_is_logged_without_what_may_be_secret() {
        for (uri, expected) in [
            ("http://a:8082/x", "http://a:8082/x"),
            ("https://u:hunter2@a/x?detail=true&sig=hunter2", "https://a/x?detail=...&sig=..."),
            ("https://a/x?hunter2", "https://a/x?..."),
        ] {
            assert_eq!(shown(&uri.parse().unwrap()), expected);
        }
    }
}
