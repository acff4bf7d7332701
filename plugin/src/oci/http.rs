//! Requests to registries: TLS with the machine's CAs and those of a file, plain HTTP for named registries only, the
//! environment's proxy, time limits. What is asked is not known here.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::error::Error;

/// A request's body.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

const CONNECT: Duration = Duration::from_secs(10);
/// Until an answer begins; a registry looks at all of a blob before it takes it.
const ANSWER: u64 = 300;
/// So many bytes a second are sent at least: 128 KiB.
const SLOWEST: u32 = 17;
/// Between two pieces of an answer.
pub(super) const PIECE: Duration = Duration::from_secs(60);

/// No body.
pub(super) fn nothing() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// The way to registries.
pub(crate) struct Http {
    tls: ClientConfig,
    /// Registries that are asked without TLS.
    plain: Vec<String>,
    /// By scheme and registry.
    clients: Mutex<HashMap<String, Way>>,
}

/// The way to one of them.
#[derive(Clone)]
enum Way {
    Direct(Client<HttpsConnector<HttpConnector>, Body>),
    Proxied(Client<HttpsConnector<Tunnel<HttpConnector>>, Body>),
}

impl Http {
    /// Trusts the machine's CAs, those of the file as well, and asks `plain` without TLS.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate.
    pub(crate) fn new(ca: Option<&Path>, plain: &[String]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        // One that cannot be read is one that is not trusted; without any the error says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca {
            let wrong =
                |why: String| Error::Certificates { why: format!("{}: {why}", path.display()) };
            let read =
                CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            let read: Result<Vec<_>, _> = read.collect();
            let read = read.map_err(|error| wrong(error.to_string()))?;
            if read.is_empty() {
                return Err(wrong("there is no certificate in it".to_owned()));
            }
            for one in read {
                roots.add(one).map_err(|error| wrong(error.to_string()))?;
            }
        }
        let provider = rustls::crypto::ring::default_provider();
        let tls = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Certificates { why: error.to_string() })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls, plain: plain.to_vec(), clients: Mutex::default() })
    }

    /// The scheme by which a registry is asked.
    pub(super) fn scheme(&self, host: &str) -> &'static str {
        if self.plain.iter().any(|one| one == host) { "http" } else { "https" }
    }

    /// Whether an address may be asked at all: with TLS, or one of the named registries.
    pub(super) fn is_allowed(&self, uri: &Uri) -> bool {
        let host = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let is_tls = uri.scheme_str() == Some("https");
        !host.contains('@') && (is_tls || self.plain.iter().any(|one| one == host))
    }

    /// Asks with so many bytes. Any answer is one.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
        what: &str,
        bytes: u64,
    ) -> Result<Response<Incoming>, Error> {
        let uri = request.uri().clone();
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let answer = async {
            match self.way(&uri) {
                Way::Direct(client) => client.request(request).await,
                Way::Proxied(client) => client.request(request).await,
            }
        };
        let seconds = ANSWER + (bytes >> SLOWEST);
        match tokio::time::timeout(Duration::from_secs(seconds), answer).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) => Err(Error::Connect { host, source }),
            Err(_) => Err(Error::TimedOut { host, what: what.to_owned(), seconds }),
        }
    }

    fn way(&self, uri: &Uri) -> Way {
        let key = format!("{:?}://{:?}", uri.scheme(), uri.authority());
        let mut clients = self.clients.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        clients.entry(key).or_insert_with(|| self.new_way(uri)).clone()
    }

    fn new_way(&self, uri: &Uri) -> Way {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
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

/// The environment's proxy for the address, with its login. Registries without TLS are asked directly.
fn proxy(uri: &Uri) -> Option<(Uri, Option<HeaderValue>)> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let configured = set("HTTPS_PROXY").or_else(|| set("https_proxy"))?.parse().ok();
    let proxy =
        opensdn_proxy::for_server(uri, configured.filter(|_| uri.scheme_str() == Some("https")))?;
    let found = Matcher::builder().all(proxy.to_string()).build().intercept(uri)?;
    Some((found.uri().clone(), found.basic_auth().cloned()))
}

/// The next piece of an answer; none at its end.
pub(super) async fn piece(body: &mut Incoming, what: &str) -> Result<Option<Bytes>, Error> {
    let broke_off = |source: io::Error| Error::BrokeOff { what: what.to_owned(), source };
    loop {
        match tokio::time::timeout(PIECE, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(error))) => return Err(broke_off(io::Error::other(error))),
            Err(_) => return Err(broke_off(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }
}

/// A whole answer that is not longer than `most`; else nothing.
pub(super) async fn small(
    mut body: Incoming,
    most: u64,
    what: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = piece(&mut body, what).await? {
        if (bytes.len() + piece.len()) as u64 > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}

/// Where an answer sends who asked.
pub(super) fn location(response: &Response<Incoming>, asked: &Uri) -> Option<Uri> {
    let location: Uri = response.headers().get(header::LOCATION)?.to_str().ok()?.parse().ok()?;
    let mut parts = location.into_parts();
    parts.scheme = parts.scheme.or_else(|| asked.scheme().cloned());
    parts.authority = parts.authority.or_else(|| asked.authority().cloned());
    Uri::from_parts(parts).ok()
}
