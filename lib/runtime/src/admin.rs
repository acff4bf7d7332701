//! The admin port, plain HTTP, for the kubelet and Prometheus: `/live`, `/ready`, `/metrics`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::readiness::Readiness;
use crate::serve::{self, ConnectionLimits, Transport};
use crate::shutdown::{self, Drain, Phase};

mod rendering;

use rendering::Rendering;

/// Where the admin port is.
#[derive(Clone, Debug, clap::Args)]
pub struct AdminArgs {
    /// Address of the plain HTTP port (/live, /ready, /metrics).
    #[arg(long, env = "OPENSDN_ADMIN_LISTEN", default_value = "[::]:8080")]
    pub admin_listen: SocketAddr,
}

#[derive(Clone)]
struct Admin {
    metrics: Rendering,
    readiness: Readiness,
    drain: Drain,
}

/// Anybody who reaches the pod may connect: the kubelet has no credentials. What they can make the
/// process hold is bounded by this, some 2 MiB in all; a newcomer takes the place of who has waited
/// longest, so that strangers do not keep the kubelet out.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 64,
    head_bytes: 8 << 10,
    handshake: Duration::from_secs(5),
    head: Duration::from_secs(5),
    idle: Duration::from_secs(90),
    grace: Duration::ZERO,
};

/// Serves the admin port until the process ends: also while it drains, so that its last metrics
/// can be read.
pub async fn serve(
    listener: TcpListener,
    registry: Arc<Registry>,
    readiness: Readiness,
    drain: Drain,
) {
    let router = Router::new()
        .route("/live", get(async || "alive\n"))
        .route("/ready", get(ready))
        .route("/metrics", get(scrape))
        .with_state(Admin { metrics: Rendering::new(registry), readiness, drain });
    let (_never, not_draining) = shutdown::channel();
    serve::serve(listener, Transport::Plain, router, LIMITS, Gauge::default(), not_draining).await;
}

async fn ready(State(admin): State<Admin>) -> Response {
    let mut missing = admin.readiness.missing();
    if admin.drain.phase() != Phase::Serving {
        missing.push(("shutdown".into(), "the process is stopping".into()));
    }
    if missing.is_empty() {
        admin.readiness.report_ready();
        return "ready\n".into_response();
    }
    let mut text = String::from("not ready\n");
    for (name, why) in missing {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}: {why}");
    }
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn scrape(State(admin): State<Admin>) -> Response {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match admin.metrics.text().await {
        Ok(text) => ([(header::CONTENT_TYPE, TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to encode metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
