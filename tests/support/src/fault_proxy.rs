//! A proxy between a controller and the API server that counts what is asked and breaks some of it. Where in its work a
//! controller is then is decided by the number of the request, or by what a test has it wait for, and by no clock. For any
//! controller: it gets a kubeconfig with the proxy's address, of plain HTTP/1.1 on loopback; what it asks the proxy asks as
//! the user of its client.
//!
//! | what a controller may meet | how |
//! | --- | --- |
//! | it is killed at its n-th write, before it is stored or after | [`FaultProxy::start`] with [`Fault::LoseRequest`] or [`Fault::LoseAnswer`]; [`FaultProxy::broken`] says when to kill it |
//! | an answer of 409, 410, 429, 500, 503, with `Retry-After` or without | [`Fault::Answer`], [`Fault::RetryAfter`] |
//! | a connection that is reset, or ends in the middle of an answer | [`Fault::Reset`], [`Fault::Cut`] |
//! | a request that hangs, a list or watch that is silent | [`Fault::LoseRequest`], [`Fault::Silent`] |
//! | it is held just before a write, and the cluster changes meanwhile | [`Fault::Hold`], until [`Disturbance::end`] |
//! | a watch from a position that is not kept any more | [`Fault::Expire`] in the stream, [`Fault::Answer`] with 410 instead of it |
//! | a view that is stale, for one that runs, or that starts | [`FaultProxy::freeze`] and [`FaultProxy::freeze_at`] with a [`Moment`], until [`FaultProxy::thaw`] |
//! | changes that it does not see | [`FaultProxy::withhold`], until [`FaultProxy::deliver`] or [`FaultProxy::forget`] |
//! | a loop of requests | [`FaultProxy::requests`] between two moments of a test |
//!
//! ```no_run
//! # use opensdn_testing::fault_proxy::{Fault, FaultProxy, Reach, Thaw, Which};
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let proxy = FaultProxy::start(client, []).await?;
//! let kubeconfig = proxy.kubeconfig(std::env::temp_dir().as_path())?; // for the controller
//! let busy = proxy.disturb(Which::writes().of("configmaps"), Fault::RetryAfter(429, 1));
//! busy.happened(1).await;
//! proxy.freeze(&["pods"], Reach::Watches).await?;
//! // Now pods change, and the controller does not know it.
//! proxy.thaw(Thaw::Expire);
//! # Ok(()) }
//! ```
//!
//! The requests of the rules ([`Which`]) are counted from when a rule is made. A fault that is given by the number of a write counts
//! before them. All that a client's Lease needs passes, uncounted and never disturbed. Lists of a frozen moment are those that the API
//! server itself has of it (`resourceVersionMatch=Exact`), so it must be one that etcd still keeps: of the last five minutes. Watches
//! that ask for all there is at first (`sendInitialEvents`) are not frozen.
//!
//! Deliberately not here: what a controller has to do then, and TLS: a controller that insists on it cannot be tested by this.

mod answer;
mod journal;
mod pump;
mod request;
mod rule;
mod view;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use answer::{Answer, Broken, cut, expired_watch, forward, refusal, refusal_until, silence};
use journal::Journal;
use view::{AllLost, Frozen, View};

pub use journal::Write;
pub use request::Asked;
pub use rule::{Disturbance, Fault, Which};
pub use view::{Moment, Reach, Thaw};

use crate::Failed;
use crate::eventually::eventually;

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    state: Arc<State>,
    task: AbortHandle,
}

struct State {
    client: Client,
    journal: Mutex<Journal>,
    disturbances: Mutex<Vec<Disturbance>>,
    view: watch::Sender<View>,
    lost: Mutex<AllLost>,
    /// How many faults have taken place.
    broken: watch::Sender<usize>,
    counted: Counted,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("view", &*self.view.borrow()).finish_non_exhaustive()
    }
}

/// Which requests are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    /// Also those that store nothing in the end.
    DryRunsToo,
    /// Those that store something.
    WhatIsStored,
}

/// Events that do not come, by the number of the wish.
#[derive(Debug)]
#[must_use = "by it they come again"]
pub struct Withheld(u64);

impl State {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> MutexGuard<'_, AllLost> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disturbances(&self) -> MutexGuard<'_, Vec<Disturbance>> {
        self.disturbances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_write(&self, asked: &Asked) -> bool {
        !asked.is_read()
            && !asked.is_of_lease()
            && (self.counted == Counted::DryRunsToo || !asked.stores_nothing())
    }

    /// Counts a request. The number of the write, if it is one, and what becomes of it.
    fn note(
        &self,
        asked: &Asked,
        body: &Bytes,
    ) -> (Option<usize>, Option<(Fault, Option<Disturbance>)>) {
        let mut journal = self.journal();
        if !asked.is_of_lease() {
            journal.requests.push(asked.clone());
        }
        let number = self.is_write(asked).then(|| {
            journal.writes.push(Write::new(asked, body));
            journal.last = Instant::now();
            journal.writes.len() - 1
        });
        let by_number = number.and_then(|number| journal.faults.get(&number).copied());
        // Each counts it, whichever takes place.
        let all: Vec<_> = self
            .disturbances()
            .iter()
            .filter_map(|one| Some((one.fault_of(asked)?, Some(one.clone()))))
            .collect();
        let by_rule = all.into_iter().next();
        (number, by_number.map(|fault| (fault, None)).or(by_rule))
    }
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1; what it is asked it asks with this client. The faults are by the numbers of writes.
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
        let state = Arc::new(State {
            client,
            journal: Mutex::new(Journal::new(faults)),
            disturbances: Mutex::default(),
            view: watch::Sender::default(),
            lost: Mutex::default(),
            broken: watch::Sender::new(0),
            counted,
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
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

    /// All requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Asked> {
        self.state.journal().requests.clone()
    }

    /// Has that become of those requests that come from now on.
    pub fn disturb(&self, which: Which, fault: Fault) -> Disturbance {
        let disturbance = Disturbance::new(which, fault);
        self.state.disturbances().push(disturbance.clone());
        disturbance
    }

    /// Where the history of the cluster is now.
    ///
    /// # Errors
    /// The API server does not say it.
    pub async fn moment(&self) -> Result<Moment, Failed> {
        // Any list is of a moment of the whole.
        let request = Request::get("/api/v1/namespaces?limit=1").body(Vec::new())?;
        let list: Value = self.state.client.request(request).await?;
        Ok(Moment(view::text(&list, "/metadata/resourceVersion").parse()?))
    }

    /// Freezes what is seen of these resources, of all where none is named, as it is now.
    ///
    /// # Errors
    /// As of [`Self::moment`].
    pub async fn freeze(&self, resources: &[&str], reach: Reach) -> Result<Moment, Failed> {
        // Nothing comes from now on; what has happened until that moment comes when it is known.
        self.freeze_at(Moment(0), resources, reach);
        let at = self.moment().await?;
        self.freeze_at(at, resources, reach);
        Ok(at)
    }

    /// Freezes it as it was then: for a controller that starts. One that runs already may have seen what came later, and sees no
    /// more of it. Another frozen view thaws by it.
    pub fn freeze_at(&self, at: Moment, resources: &[&str], reach: Reach) {
        let resources = resources.iter().map(|&one| one.to_owned()).collect();
        self.state.view.send_modify(|view| view.frozen = Some(Frozen { at, resources, reach }));
    }

    /// Shows all as it is.
    pub fn thaw(&self, how: Thaw) {
        self.state.view.send_modify(|view| {
            view.frozen = None;
            view.expired += u64::from(how == Thaw::Expire);
        });
    }

    /// Lets no event of these objects come from now on: the predicate gets the object. Who lists sees them.
    pub fn withhold(&self, is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Withheld {
        let mut number = 0;
        self.state.view.send_modify(|view| {
            let last = view.withheld.keys().chain(&view.delivered).max();
            number = last.map_or(1, |last| last + 1);
            view.withheld.insert(number, Arc::new(is_meant));
        });
        Withheld(number)
    }

    /// Lets them come again. Those that did not come are lost.
    pub fn forget(&self, withheld: Withheld) {
        self.state.view.send_modify(|view| drop(view.withheld.remove(&withheld.0)));
    }

    /// Lets them come again, and first of each object those that did not come, as one: as after a gap.
    pub fn deliver(&self, withheld: Withheld) {
        self.state.view.send_modify(|view| {
            view.withheld.remove(&withheld.0);
            view.delivered.insert(withheld.0);
        });
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

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Dropped with the proxy, and so are the connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let Ok(socket) = rustix::io::dup(&stream).map(Arc::new) else { continue };
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let serve = service_fn(move |request| answer(state.clone(), socket.clone(), request));
            // A client that goes away is no matter of ours.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), serve)
                .await;
        });
    }
}

/// Answers a request, if it is answered.
async fn answer(
    state: Arc<State>,
    socket: Arc<OwnedFd>,
    request: Request<Incoming>,
) -> Result<Answer, Broken> {
    let (parts, body) = request.into_parts();
    let asked = Asked::new(&parts.method, &parts.uri);
    let Ok(body) = body.collect().await else { return Ok(refusal(400)) };
    let body = body.to_bytes();
    let (number, fault) = state.note(&asked, &body);
    let request = Request::from_parts(parts, body);
    let answer = match fault {
        Some((fault, by)) => with_fault(&state, &asked, request, fault, by, &socket).await?,
        None => forward(&state, &asked, request).await,
    };
    let mut journal = state.journal();
    if let Some(number) = number {
        journal.last = Instant::now();
        if let Some(write) = journal.writes.get_mut(number) {
            write.status = Some(answer.status());
        }
    }
    Ok(answer)
}

async fn with_fault(
    state: &Arc<State>,
    asked: &Asked,
    request: Request<Bytes>,
    fault: Fault,
    by: Option<Disturbance>,
    socket: &OwnedFd,
) -> Result<Answer, Broken> {
    let takes_place = || {
        state.broken.send_modify(|broken| *broken += 1);
        by.iter().for_each(Disturbance::takes_place);
    };
    if fault == Fault::LoseAnswer {
        let answer = forward(state, asked, request).await;
        // It has been stored when the answer is whole.
        drop(answer.into_body().collect().await);
        takes_place();
        return std::future::pending().await;
    }
    takes_place();
    match fault {
        Fault::LoseRequest | Fault::LoseAnswer => std::future::pending().await,
        Fault::Answer(code) => Ok(refusal(code)),
        Fault::RetryAfter(code, seconds) => Ok(refusal_until(code, seconds)),
        Fault::Reset => {
            // What is closed without waiting is reset.
            let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
            Err(Broken)
        }
        Fault::Hold => {
            if let Some(by) = &by {
                by.released().await;
            }
            Ok(forward(state, asked, request).await)
        }
        Fault::Silent => Ok(silence()),
        Fault::Cut => Ok(cut(forward(state, asked, request).await)),
        Fault::Expire => Ok(expired_watch()),
    }
}
