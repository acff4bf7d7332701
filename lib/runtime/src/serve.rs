//! A port on which HTTP/1.1 is served, plain or by TLS: the accept loop, what strangers may hold of it, and
//! how it ends without losing a call. Stages of one connection are in `serve/connection.rs`, which
//! connections there may be in `serve/registry.rs`. Deliberately not here: what requests are answered.

mod connection;
mod registry;
mod stream;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use prometheus_client::metrics::gauge::Gauge;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use crate::shutdown::{Drain, Phase};
use registry::Registry;

/// How many connections, how large a head, and how long each stage may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections; beyond that the longest idle one is closed.
    pub connections: usize,
    /// Bytes of a request's head, and of the largest piece in which a body arrives: at least 8 KiB.
    pub head_bytes: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For a request's head, from its first byte.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// From the beginning of [`Phase::Closing`] to giving up on what is in flight.
    pub grace: Duration,
}

/// What a connection speaks below HTTP.
#[derive(Clone)]
pub enum Transport {
    /// Nothing.
    Plain,
    /// TLS, by the configuration that is current when the connection is made.
    Tls(Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>),
}

/// Serves on `listener` until [`Phase::Closing`], then finishes what is in flight. `open` counts
/// connections.
pub async fn serve(
    listener: TcpListener,
    transport: Transport,
    router: Router,
    limits: ConnectionLimits,
    open: Gauge,
    drain: Drain,
) {
    let limits = Arc::new(limits);
    let registry = Registry::new(limits.connections, open);
    let connections = TaskTracker::new();
    let open = |stream| {
        let Some(slot) = registry.admit() else {
            return tracing::warn!(
                "failed to admit a connection: all others have a request in flight"
            );
        };
        let (transport, router) = (transport.clone(), router.clone());
        let (drain, limits) = (drain.clone(), limits.clone());
        connections.spawn(connection::serve(stream, transport, router, slot, drain, limits));
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
