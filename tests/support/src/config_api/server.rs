//! The two listeners, on a thread of their own, so that a test that blocks does not block them.

use std::io;
use std::net::{SocketAddr, TcpListener as Listener};
use std::sync::Arc;
use std::thread::JoinHandle;

use http::{Request, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::answer::{self, Answer};
use super::faults::{Disturbance, Service};
use super::request::{Asked, query};
use super::state::{Call, Shared};
use super::store::Refusal;
use super::{keystone, routes};

/// One service on its port.
pub(super) struct Port {
    pub(super) service: Service,
    pub(super) listener: Listener,
}

impl Port {
    pub(super) fn open(service: Service, address: SocketAddr) -> io::Result<Self> {
        let listener = Listener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { service, listener })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The thread; dropping it ends both services and all their connections.
#[derive(Debug)]
pub(super) struct Server {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    services: Vec<(Service, AbortHandle)>,
}

impl Server {
    pub(super) fn start(
        shared: Arc<Shared>,
        ports: [Port; 2],
        tls: Option<TlsAcceptor>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let mut tasks = JoinSet::new();
        let services = ports.map(|Port { service, listener }| {
            let accepting = accept(listener, service, shared.clone(), tls.clone());
            (service, tasks.spawn_on(accepting, runtime.handle()))
        });
        let services = services.into();
        let thread = std::thread::Builder::new().name("config-api".to_owned());
        let thread = thread.spawn(move || serve(&runtime, tasks, shared, ended))?;
        Ok(Self { end: Some(end), thread: Some(thread), services })
    }

    /// Closes the port of a service, and its connections.
    pub(super) fn stop(&self, service: Service) {
        let those = self.services.iter().filter(|(one, _)| *one == service);
        those.for_each(|(_, task)| task.abort());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Dropping the sender is the sign.
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It has nothing to return, and a panic of it is on standard error already.
            let _ = thread.join();
        }
    }
}

fn serve(
    runtime: &Runtime,
    mut tasks: JoinSet<()>,
    shared: Arc<Shared>,
    ended: oneshot::Receiver<()>,
) {
    runtime.block_on(async move {
        tasks.spawn(keep_alive(shared));
        // It ends with its sender, and with it the tasks and their connections.
        let _ = ended.await;
    });
}

async fn keep_alive(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(shared.settings.keep_alive);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        shared.state().watchers.keep_alive();
    }
}

async fn accept(
    listener: Listener,
    service: Service,
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Answers are small, and tests wait for them.
        let _ = stream.set_nodelay(true);
        let (shared, tls) = (shared.clone(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => connection(stream, service, shared).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(stream, service, shared).await;
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: Service,
    shared: Arc<Shared>,
) {
    let serve = service_fn(move |request| call(shared.clone(), service, request));
    // A client that goes away is no matter of ours, and neither is one that was cut off.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await;
}

/// Notes the call and does it, or what was to become of it.
async fn call(
    shared: Arc<Shared>,
    service: Service,
    request: Request<Incoming>,
) -> Result<Answer, io::Error> {
    let (number, disturbance) = {
        let mut state = shared.state();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        state.calls.push(Call { service, method, path, status: None });
        (state.calls.len() - 1, state.faults.of_call(service))
    };
    let asked = read(request, &shared).await?;
    match disturbance {
        Some(Disturbance::Cut) => return Err(io::ErrorKind::ConnectionAborted.into()),
        // To be slow is what it is asked for.
        Some(Disturbance::Slow(time)) => tokio::time::sleep(time).await,
        Some(Disturbance::Unavailable | Disturbance::Unanswered) | None => {}
    }
    let answer = match (service, disturbance) {
        (Service::ConfigApi, Some(Disturbance::Unavailable)) => {
            let text = "No connection to zookeeper.";
            answer::refusal(&Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text))
        }
        (Service::Keystone, Some(Disturbance::Unavailable)) => {
            keystone::failure(StatusCode::SERVICE_UNAVAILABLE, "Unavailable")
        }
        (Service::ConfigApi, _) => routes::respond(&shared, &asked),
        (Service::Keystone, _) => shared.keystone(&asked),
    };
    if disturbance == Some(Disturbance::Unanswered) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    if let Some(call) = shared.state().calls.get_mut(number) {
        call.status = Some(answer.status());
    }
    Ok(answer)
}

async fn read(request: Request<Incoming>, shared: &Shared) -> Result<Asked, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let scheme = if shared.settings.tls.is_some() { "https" } else { "http" };
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or(parts.uri.authority().map(|authority| authority.as_str()));
    let base = format!("{scheme}://{}", host.unwrap_or_default());
    Ok(Asked {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: Uri::query(&parts.uri).map(query).unwrap_or_default(),
        headers: parts.headers,
        body,
        base,
    })
}
