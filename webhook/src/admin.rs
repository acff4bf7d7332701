//! The second port, plain HTTP, for the kubelet and Prometheus: `/live`, `/ready`, `/metrics`.
//! And [`Readiness`], through which each part says whether the process may be sent reviews.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::shutdown::{Drain, Phase};

/// The conditions that must all hold before the process is ready; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    missing: Arc<Mutex<BTreeMap<String, String>>>,
    changes: Arc<watch::Sender<()>>,
    told: Arc<AtomicBool>,
}

/// One condition, in the hands of the part that knows whether it holds.
#[derive(Debug)]
pub struct Condition {
    name: String,
    readiness: Readiness,
}

impl Readiness {
    /// Adds a condition that does not hold yet, and why. It does not begin to hold when its
    /// handle is dropped: a part that died must not look like one that is ready.
    pub fn condition(&self, name: impl Into<String>, why: impl Into<String>) -> Condition {
        let condition = Condition { name: name.into(), readiness: self.clone() };
        condition.unset(why);
        condition
    }

    /// Adds a condition that holds until it is unset.
    pub fn standing(&self, name: impl Into<String>) -> Condition {
        Condition { name: name.into(), readiness: self.clone() }
    }

    /// The conditions that do not hold: name and reason.
    pub fn missing(&self) -> Vec<(String, String)> {
        self.lock().iter().map(|(name, why)| (name.clone(), why.clone())).collect()
    }

    /// Wakes whoever waits for a condition to hold, or not to hold any more.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether somebody has been told that everything is ready: reviews may be on their way here
    /// since. A part that begins only then must not make the process unready by beginning.
    pub fn was_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A map of texts cannot be left half changed.
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condition {
    /// It holds.
    pub fn set(&self) {
        if self.readiness.lock().remove(&self.name).is_some() {
            self.readiness.changes.send_replace(());
        }
    }

    /// It does not hold, and why.
    pub fn unset(&self, why: impl Into<String>) {
        if self.readiness.lock().insert(self.name.clone(), why.into()).is_none() {
            self.readiness.changes.send_replace(());
        }
    }

    /// The condition is no longer asked for (a look-up cache that no policy needs any more).
    pub fn withdraw(self) {
        self.set();
    }
}

#[derive(Clone)]
struct Admin {
    metrics: Metrics,
    readiness: Readiness,
    drain: Drain,
}

/// Serves the admin port until the process ends: also while it drains, so that its last metrics
/// can be read.
pub async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    readiness: Readiness,
    drain: Drain,
) -> io::Result<()> {
    let router = Router::new()
        .route("/live", get(async || "alive\n"))
        .route("/ready", get(ready))
        .route("/metrics", get(scrape))
        .with_state(Admin { metrics, readiness, drain });
    axum::serve(listener, router).await
}

async fn ready(State(admin): State<Admin>) -> Response {
    let mut missing = admin.readiness.missing();
    if admin.drain.phase() != Phase::Serving {
        missing.push(("shutdown".into(), "the process is stopping".into()));
    }
    if missing.is_empty() {
        admin.readiness.told.store(true, Ordering::Release);
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
    match admin.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
