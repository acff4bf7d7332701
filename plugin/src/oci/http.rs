//! Requests to registries: plain HTTP for named registries only, time limits by what is sent, and errors that name the
//! registry. The connection is of opensdn-http-client; what is asked is not known here.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use hyper::body::Incoming;
use opensdn_http_client as client;
use opensdn_http_client::{HttpClient, Trust};

use super::error::Error;

pub(super) use opensdn_http_client::{Body, no_body as nothing, whole_body as whole};

const CONNECT: Duration = Duration::from_secs(10);
/// Until an answer begins; a registry looks at all of a blob before it takes it.
const ANSWER: u64 = 300;
/// So many bytes a second are sent at least: 128 KiB.
const SLOWEST: u32 = 17;
/// Between two pieces of an answer.
const PIECE: Duration = Duration::from_secs(60);

/// The way to registries.
pub(crate) struct Http {
    client: HttpClient,
    /// Registries that are asked without TLS.
    plain: Vec<String>,
}

impl Http {
    /// Trusts the machine's CAs, those of the file as well, and asks `plain` without TLS.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate.
    pub(crate) fn new(ca: Option<&Path>, plain: &[String]) -> Result<Self, Error> {
        let mut trust = Trust::of_machine();
        if let Some(path) = ca {
            trust = trust.with_file(path).map_err(of_certificates)?;
        }
        let client = HttpClient::new(trust, CONNECT).map_err(of_certificates)?;
        Ok(Self { client, plain: plain.to_vec() })
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
        let limit = Duration::from_secs(ANSWER + (bytes >> SLOWEST));
        self.client.send(request, limit).await.map_err(|error| of_answer(error, what))
    }
}

/// What is wrong with the CAs that were given.
fn of_certificates(error: client::Error) -> Error {
    let why = match error {
        client::Error::Certificates { from, why } => format!("{from}: {why}"),
        client::Error::Tls(error) => error.to_string(),
        other => other.to_string(),
    };
    Error::Certificates { why }
}

/// Why there is no answer to what was asked.
fn of_answer(error: client::Error, what: &str) -> Error {
    let what = what.to_owned();
    match error {
        client::Error::Connect { host, source } => Error::Connect { host, source },
        client::Error::TimedOut { host, limit } => {
            Error::TimedOut { host, what, seconds: limit.as_secs() }
        }
        client::Error::BrokeOff(source) => Error::BrokeOff { what, source },
        other => Error::BrokeOff { what, source: std::io::Error::other(other) },
    }
}

/// The next piece of an answer; none at its end.
pub(super) async fn piece(body: &mut Incoming, what: &str) -> Result<Option<Bytes>, Error> {
    client::next_piece(body, PIECE).await.map_err(|error| of_answer(error, what))
}

/// A whole answer that is not longer than `most`; else nothing.
pub(super) async fn small(body: Incoming, most: u64, what: &str) -> Result<Option<Vec<u8>>, Error> {
    match client::read_whole(body, most, PIECE).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(client::Error::TooLong { .. }) => Ok(None),
        Err(error) => Err(of_answer(error, what)),
    }
}

/// Where an answer sends who asked.
pub(super) fn location(response: &Response<Incoming>, asked: &Uri) -> Option<Uri> {
    let location: Uri = response.headers().get(header::LOCATION)?.to_str().ok()?.parse().ok()?;
    let mut parts = location.into_parts();
    parts.scheme = parts.scheme.or_else(|| asked.scheme().cloned());
    parts.authority = parts.authority.or_else(|| asked.authority().cloned());
    Uri::from_parts(parts).ok()
}
