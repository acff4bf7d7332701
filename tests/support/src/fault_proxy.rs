//! A proxy between a controller and the API server that counts its writes and breaks one of them: the request is
//! lost, or the answer, or another is given. Where in its work a controller is then is decided by the number of the
//! write and by no clock. For any controller: it gets a kubeconfig with the proxy's address.
//!
//! All that a client's Lease needs passes, uncounted.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::eventually::eventually;

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not reach the API server, and no answer comes.
    LoseRequest,
    /// It is made, and no answer says so.
    LoseAnswer,
    /// It does not reach the API server, and this is the answer.
    Answer(u16),
}

/// A write that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// `PATCH`.
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// The answer; none, if there was none.
    pub status: Option<StatusCode>,
}

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    state: Arc<State>,
    task: AbortHandle,
}

#[derive(Debug)]
struct State {
    journal: Mutex<Journal>,
    /// How many faults have taken place.
    broken: watch::Sender<usize>,
    counted: Counted,
}

/// Which requests are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    /// Also those that store nothing in the end.
    DryRunsToo,
    /// Those that store something.
    WhatIsStored,
}

#[derive(Debug)]
struct Journal {
    writes: Vec<Write>,
    last: Instant,
    /// By the number of the write, from 0.
    faults: BTreeMap<usize, Fault>,
}

impl State {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1; what it is asked it asks with this client.
    ///
    /// # Errors
    /// There is no port.
    pub async fn start(
        client: Client,
        faults: impl IntoIterator<Item = (usize, Fault)>,
    ) -> io::Result<Self> {
        Self::counting(client, faults, Counted::DryRunsToo).await
    }

    /// The same for a client that first tries what it writes then: dry runs and reviews of access are no writes.
    ///
    /// # Errors
    /// There is no port.
    pub async fn of_what_is_stored(
        client: Client,
        faults: impl IntoIterator<Item = (usize, Fault)>,
    ) -> io::Result<Self> {
        Self::counting(client, faults, Counted::WhatIsStored).await
    }

    async fn counting(
        client: Client,
        faults: impl IntoIterator<Item = (usize, Fault)>,
        counted: Counted,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let faults = faults.into_iter().collect();
        let journal = Mutex::new(Journal { writes: Vec::new(), last: Instant::now(), faults });
        let state = Arc::new(State { journal, broken: watch::Sender::new(0), counted });
        let task = tokio::spawn(accept(listener, client, Arc::clone(&state))).abort_handle();
        Ok(Self { address, state, task })
    }

    /// Writes a kubeconfig for a client that is to be disturbed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn kubeconfig(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = folder.join(format!("fault-proxy-{}.kubeconfig", self.address.port()));
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": format!("http://{}", self.address)}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {}}],
        });
        std::fs::write(&path, text.to_string())?;
        Ok(path)
    }

    /// All writes so far, in order.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        self.state.journal().writes.clone()
    }

    /// Waits until a fault has taken place.
    pub async fn broken(&self) {
        let mut broken = self.state.broken.subscribe();
        // The sender lives as long as this.
        let _ = broken.wait_for(|number| *number > 0).await;
    }

    /// Whether a fault has taken place.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        *self.state.broken.borrow() > 0
    }

    /// Waits until nothing has been written for so long.
    pub async fn quiet_for(&self, time: Duration) {
        let is_quiet = async || self.state.journal().last.elapsed() > time;
        eventually("nothing is written any more", is_quiet).await;
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, client: Client, state: Arc<State>) {
    // Dropped with the proxy, and so are the connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (client, state) = (client.clone(), Arc::clone(&state));
        connections.spawn(async move {
            let serve = service_fn(move |request| answer(client.clone(), state.clone(), request));
            // A client that goes away is no matter of ours.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), serve)
                .await;
        });
    }
}

fn is_write(request: &Request<Incoming>, counted: Counted) -> bool {
    let is_read = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    let path = request.uri().path();
    let reviews = ["/authorization.k8s.io/", "/authentication.k8s.io/"];
    let stores_nothing = reviews.iter().any(|group| path.contains(group))
        || request.uri().query().is_some_and(|query| query.contains("dryRun="));
    !is_read && !path.contains("/leases") && (counted == Counted::DryRunsToo || !stores_nothing)
}

async fn answer(
    client: Client,
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if !is_write(&request, state.counted) {
        return Ok(forward(&client, request).await);
    }
    let (number, fault) = {
        let mut journal = state.journal();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        journal.writes.push(Write { method, path, status: None });
        journal.last = Instant::now();
        let number = journal.writes.len() - 1;
        (number, journal.faults.get(&number).copied())
    };
    let broken = || state.broken.send_modify(|broken| *broken += 1);
    let answer = match fault {
        Some(Fault::LoseRequest) => {
            broken();
            std::future::pending().await
        }
        Some(Fault::LoseAnswer) => {
            let answer = forward(&client, request).await;
            // It has been stored when the answer is whole.
            drop(answer.into_body().collect().await);
            broken();
            std::future::pending().await
        }
        Some(Fault::Answer(code)) => {
            broken();
            refusal(code)
        }
        None => forward(&client, request).await,
    };
    let mut journal = state.journal();
    journal.last = Instant::now();
    if let Some(write) = journal.writes.get_mut(number) {
        write.status = Some(answer.status());
    }
    Ok(answer)
}

async fn forward(client: &Client, request: Request<Incoming>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::AUTHORIZATION, header::CONNECTION, header::CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    let Ok(body) = body.collect().await else { return refusal(400) };
    let request = Request::from_parts(parts, Body::from(body.to_bytes().to_vec()));
    match client.send(request).await {
        Ok(mut answer) => {
            for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
                answer.headers_mut().remove(name);
            }
            answer
        }
        Err(_) => refusal(502),
    }
}

/// As the API server says it.
fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Unknown",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "a fault of the test", "reason": reason, "code": code});
    let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    let json = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}
