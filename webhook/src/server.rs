//! The HTTPS port: the accept loop, its limits, and how it ends without losing a call. Stages of one
//! connection are in `server/connection.rs`, answers to a request in `server/routes.rs`.
//! Deliberately not here: what a review answers ([`Reviewer`]), and certificates (`tls`).

mod body;
mod connection;
mod deadline;
mod registry;
mod routes;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use opensdn_policy_host::Step;
use opensdn_runtime::shutdown::{Drain, Phase};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::metrics::ServerMetrics;
use crate::tls::Tls;
use registry::Registry;

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
    /// Open connections; beyond that the longest idle one is closed.
    pub connections: usize,
    /// Reviews under way at once; beyond that a call is answered 429.
    pub reviews: usize,
    /// Bytes of one request body.
    pub body: usize,
    /// Bytes of all request bodies held at once; beyond that a call is answered 429.
    pub buffered: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For a request's head, from its first byte.
    pub head: Duration,
    /// For a request's body (or the call's deadline, if that is earlier).
    pub receive: Duration,
    /// For reading off a body that will not be used, so that the connection stays usable.
    pub discard: Duration,
    /// Between two requests. Longer than the 90 s after which the API server closes by itself:
    /// a server that closes first can meet a request on its way, which is then lost.
    pub idle: Duration,
    /// From the beginning of [`Phase::Closing`] to giving up on what is in flight.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            reviews: 1_000,
            body: 8 << 20,
            buffered: 256 << 20,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            receive: Duration::from_secs(10),
            discard: Duration::from_secs(2),
            idle: Duration::from_secs(180),
            grace: Duration::from_secs(20),
        }
    }
}

/// Serves reviews on `listener` until [`Phase::Closing`], then finishes what is in flight.
pub async fn serve<R: Reviewer>(
    listener: TcpListener,
    tls: Tls,
    reviewer: R,
    limits: Limits,
    metrics: ServerMetrics,
    drain: Drain,
) {
    let limits = Arc::new(limits);
    let registry = Registry::new(limits.connections, metrics.clone());
    let router = routes::router(reviewer, limits.clone(), metrics);
    let connections = TaskTracker::new();
    let open = |stream| {
        let Some(slot) = registry.admit() else {
            return tracing::warn!(
                "failed to admit a connection: all others have a request in flight"
            );
        };
        let acceptor = TlsAcceptor::from(tls.config());
        let (router, drain, limits) = (router.clone(), drain.clone(), limits.clone());
        connections.spawn(connection::serve(stream, acceptor, router, slot, drain, limits));
    };
    let mut ends = drain.clone();
    let mut closing = std::pin::pin!(ends.reached(Phase::Closing));
    loop {
        tokio::select! {
            biased;
            () = &mut closing => break,
            stream = accept(&listener, &registry) => open(stream),
        }
    }
    // The kernel has made these connections already; dropping the listener would reset them.
    while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
        open(stream);
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(limits.grace, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "failed to finish all connections in time");
    }
}

/// The next connection. Errors of accept(2) are about one connection or about a lack of file
/// descriptors that passes; neither is a reason to stop serving.
async fn accept(listener: &TcpListener, registry: &Registry) -> TcpStream {
    let mut pause = Duration::from_millis(5);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it an answer may wait for the acknowledgement of the one before.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "failed to set TCP_NODELAY");
                }
                return stream;
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(
                    %error,
                    "failed to accept a connection; closing an idle one; raise the limit of open \
                     files if that is the cause"
                );
                registry.evict();
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
