//! The ports that a component opens, and what a peer gets there.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time;
use tokio_rustls::TlsAcceptor;

use crate::component::{Component, Transport};
use crate::introspect::{Process, page};
use crate::plan::{Listener, Reply};
use crate::say;
use crate::state::State;

/// For TLS, and for a request's head.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a port is not open.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address} for {name}")]
pub(crate) struct Error {
    name: &'static str,
    address: SocketAddr,
    source: io::Error,
}

/// What is the same on all ports.
pub(crate) struct Served {
    pub(crate) component: &'static Component,
    pub(crate) worker: u16,
    pub(crate) state: Arc<State>,
}

/// Opens all ports, and only then starts to answer.
pub(crate) async fn open(listeners: Vec<Listener>, served: Arc<Served>) -> Result<(), Error> {
    let mut opened = Vec::new();
    for listener in listeners {
        let error = |source| Error { name: listener.name, address: listener.address, source };
        let tcp = TcpListener::bind(listener.address).await.map_err(error)?;
        let udp = match listener.transport {
            Transport::Tcp => None,
            Transport::TcpAndUdp => Some(UdpSocket::bind(listener.address).await.map_err(error)?),
        };
        let with = if listener.tls.is_some() { " with TLS" } else { "" };
        say(&format!("listens on {} for {}{with}", listener.address, listener.name));
        opened.push((listener, tcp, udp));
    }
    for (listener, tcp, udp) in opened {
        if let Some(socket) = udp {
            tokio::spawn(async move { swallow(&socket).await });
        }
        let (listener, served) = (Arc::new(listener), Arc::clone(&served));
        tokio::spawn(async move { accept(&tcp, &listener, &served).await });
    }
    Ok(())
}

/// Datagrams are taken and forgotten.
async fn swallow(socket: &UdpSocket) -> Infallible {
    let mut datagram = [0; 2048];
    loop {
        // A failure of one of them does not concern the next.
        if socket.recv(&mut datagram).await.is_err() {
            time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn accept(tcp: &TcpListener, listener: &Arc<Listener>, served: &Arc<Served>) -> Infallible {
    loop {
        let Ok((stream, _)) = tcp.accept().await else {
            // Out of file descriptors, say: a peer that ends gives one back.
            time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (listener, served) = (Arc::clone(listener), Arc::clone(served));
        tokio::spawn(async move {
            // A peer that goes away, or is none of ours, does not affect other connections.
            let _ = serve(stream, &listener, &served).await;
        });
    }
}

async fn serve(stream: TcpStream, listener: &Listener, served: &Served) -> io::Result<()> {
    match &listener.tls {
        None => answer(stream, listener, served).await,
        Some(tls) => {
            let accepting = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
            answer(time::timeout(CONNECTION_TIMEOUT, accepting).await??, listener, served).await
        }
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    listener: &Listener,
    served: &Served,
) -> io::Result<()> {
    match &listener.reply {
        Reply::Nothing => {
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
        }
        Reply::From(server) => {
            let mut other = TcpStream::connect((server.host.as_str(), server.port)).await?;
            copy_bidirectional(&mut stream, &mut other).await?;
        }
        Reply::Introspect | Reply::Page => {
            let reply = service_fn(async |request: Request<Incoming>| {
                Ok::<_, Infallible>(respond(&request, listener, served))
            });
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(CONNECTION_TIMEOUT);
            let served = connection.serve_connection(TokioIo::new(stream), reply).await;
            served.map_err(io::Error::other)?;
        }
    }
    Ok(())
}

fn respond(
    request: &Request<Incoming>,
    listener: &Listener,
    served: &Served,
) -> Response<Full<Bytes>> {
    let uri = request.uri();
    let found = if listener.reply == Reply::Introspect {
        let process = Process {
            module: served.component.module,
            worker: served.worker,
            introspect: listener.address,
            connections: &served.state.connections(),
        };
        page(uri.path(), uri.query().unwrap_or_default(), &process)
    } else {
        Some(format!("stand-in for {}\n", served.component.module))
    };
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let mut response = Response::new(Full::from(found.unwrap_or_default()));
    *response.status_mut() = status;
    if listener.reply == Reply::Introspect {
        let kind = hyper::header::HeaderValue::from_static("text/xml");
        response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    }
    response
}
