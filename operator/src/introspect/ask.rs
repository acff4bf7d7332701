//! What a daemon answers over the network. Deliberately not here: which daemons there are, and how often they are asked.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::CONNECTION;
use http::{Request, StatusCode};
use opensdn_http_client::{Error as HttpError, HttpClient, no_body, read_whole};

use super::page::{self, PageError, Process, Sessions};

/// Until a daemon has begun to answer, and between two pieces of its answer: what contrail-status waits.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Until the whole answer is there: whoever drips holds no place longer than that.
const LIMIT_OF_ALL: Duration = Duration::from_secs(10);
/// A page of an agent with many connections is some 10 KiB long.
const MOST: u64 = 256 << 10;

const NODE_STATUS: &str = "Snh_SandeshUVECacheReq?x=NodeStatus";
/// By the name of the structure, which is the key of the cache (tf-common, `sandesh/library/cpp/sandesh_uve.h:349`); of an
/// unknown one the answer is an empty list.
const BGP_ROUTER: &str = "Snh_SandeshUVECacheReq?x=BgpRouterState";

/// Where a daemon listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) is_plain: bool,
}

impl Endpoint {
    fn url(&self, page: &str) -> String {
        let scheme = if self.is_plain { "http" } else { "https" };
        format!("{scheme}://{}/{page}", self.address)
    }
}

/// Why a daemon is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the answer did not end within {} s", LIMIT_OF_ALL.as_secs())]
    Drips,
    #[error("answered {0}")]
    Status(StatusCode),
    #[error(transparent)]
    Page(#[from] PageError),
}

impl AskError {
    /// Whether no answer came in time.
    pub(super) fn is_timeout(&self) -> bool {
        match self {
            Self::Drips | Self::Http(HttpError::TimedOut { .. }) => true,
            Self::Http(HttpError::BrokeOff(error)) => error.kind() == std::io::ErrorKind::TimedOut,
            Self::Http(error @ HttpError::Connect { .. }) => {
                has(error, std::io::ErrorKind::TimedOut)
            }
            _ => false,
        }
    }

    /// Whether nothing listens there.
    pub(super) fn is_refused(&self) -> bool {
        match self {
            Self::Http(error) => has(error, std::io::ErrorKind::ConnectionRefused),
            _ => false,
        }
    }
}

/// Of what the library of TLS says that which an administrator can do something about.
pub(super) fn in_words(said: &str) -> String {
    let known = [
        (
            "UnknownIssuer",
            "its certificate is of a CA that the ConfigMap csr-signer-ca does not have",
        ),
        ("InvalidContentType", "it speaks HTTP without TLS (INTROSPECT_SSL_ENABLE)"),
        ("close_notify", "it closed the connection in the middle of its answer"),
    ];
    let found = known.iter().find(|(mark, _)| said.contains(mark));
    found.map_or_else(|| said.to_owned(), |(_, words)| (*words).to_owned())
}

/// Whether an error of the network is among the causes.
fn has(error: &(dyn std::error::Error + 'static), kind: std::io::ErrorKind) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == kind) {
            return true;
        }
        next = error.source();
    }
    false
}

/// How the daemon is.
pub(super) async fn process(client: &HttpClient, endpoint: &Endpoint) -> Result<Process, AskError> {
    Ok(page::process(&read(client, endpoint, NODE_STATUS).await?)?)
}

/// The BGP sessions of a control node.
pub(super) async fn bgp(
    client: &HttpClient,
    endpoint: &Endpoint,
) -> Result<Option<Sessions>, AskError> {
    Ok(page::bgp(&read(client, endpoint, BGP_ROUTER).await?)?)
}

async fn read(client: &HttpClient, endpoint: &Endpoint, page: &str) -> Result<String, AskError> {
    let read = tokio::time::timeout(LIMIT_OF_ALL, read_all(client, endpoint, page));
    read.await.unwrap_or(Err(AskError::Drips))
}

async fn read_all(
    client: &HttpClient,
    endpoint: &Endpoint,
    page: &str,
) -> Result<String, AskError> {
    // Every daemon of every node has one connection less to keep until the next time.
    let request = Request::get(endpoint.url(page)).header(CONNECTION, "close");
    let request = request
        .body(no_body())
        .map_err(|error| HttpError::BrokeOff(std::io::Error::other(error)))?;
    let response = client.send(request, LIMIT).await?;
    if response.status() != StatusCode::OK {
        return Err(AskError::Status(response.status()));
    }
    let bytes = read_whole(response.into_body(), MOST, LIMIT).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
