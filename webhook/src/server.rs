//! The HTTPS port and its limits; answers to a request are in `server/routes.rs`. Deliberately not here:
//! connections (`opensdn_runtime::serve`), what a review answers ([`Reviewer`]), certificates (`tls`).

mod body;
mod class;
mod deadline;
mod routes;

pub(crate) use class::Class;
pub(crate) use routes::UNKNOWN_PATH;
#[cfg(test)]
pub(crate) use routes::unknown_path_message;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use opensdn_policy_host::Step;
use opensdn_runtime::serve::{self, ConnectionLimits, Transport};
use opensdn_runtime::shutdown::Drain;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::metrics::ServerMetrics;
use crate::path_tokens::PathTokens;
use crate::tls::Tls;

/// One review to be made.
#[derive(Debug)]
pub struct Call {
    /// The endpoint: only the answer of `/mutate` may carry a patch.
    pub step: Step,
    /// The request body, whole and unparsed.
    pub body: Bytes,
    /// When the answer has to be ready; the caller's own timeout ends a little later.
    pub deadline: Instant,
}

/// Makes reviews. Every answer is an AdmissionReview in JSON, sent with status 200.
pub trait Reviewer: Send + Sync + 'static {
    /// Answers one call. It never fails: a fault is a denial or an allowance in the answer. The
    /// future is dropped at its next await when the caller goes away.
    fn review(&self, call: Call) -> impl Future<Output = Bytes> + Send;

    /// Answers a body over [`Limits::body`]; `prefix` is its beginning, in which the uid is.
    fn too_large(&self, prefix: &[u8]) -> Bytes;
}

/// How much, how many and how long.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of the connections.
    pub connection: ConnectionLimits,
    /// Reviews under way at once; beyond that a call is answered 429.
    pub reviews: usize,
    /// Bytes of one request body.
    pub body: usize,
    /// Bytes of all request bodies held at once; beyond that a call is answered 429.
    pub buffered: usize,
    /// For a request's body (or the call's deadline, if that is earlier).
    pub receive: Duration,
    /// For reading off a body that will not be used, so that the connection stays usable.
    pub discard: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connection: ConnectionLimits {
                connections: 10_000,
                // The API server's heads have less than 1 KiB.
                head_bytes: 16 << 10,
                handshake: Duration::from_secs(10),
                head: Duration::from_secs(10),
                // Longer than the 90 s after which the API server closes by itself: a server that closes
                // first can meet a request on its way, which is then lost.
                idle: Duration::from_secs(180),
                grace: Duration::from_secs(20),
            },
            reviews: 1_000,
            body: 8 << 20,
            buffered: 256 << 20,
            receive: Duration::from_secs(10),
            discard: Duration::from_secs(2),
        }
    }
}

/// Serves reviews on `listener` until [`Phase::Closing`], then finishes what is in flight.
///
/// [`Phase::Closing`]: opensdn_runtime::shutdown::Phase::Closing
pub async fn serve<R: Reviewer>(
    listener: TcpListener,
    tls: Tls,
    path_tokens: PathTokens,
    reviewer: R,
    limits: Limits,
    metrics: ServerMetrics,
    drain: Drain,
) {
    let (connection, open) = (limits.connection.clone(), metrics.connections.clone());
    let router = routes::router(reviewer, path_tokens, Arc::new(limits), metrics);
    let transport = Transport::Tls(Arc::new(move || tls.config()));
    serve::serve(listener, transport, router, connection, open, drain).await;
}
