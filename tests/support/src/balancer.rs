//! What a Service is to the webhook's replicas, on one machine: new connections go, in turn, to
//! those that say they are ready; connections that exist are left alone.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::{interval, timeout},
};

/// How often a replica is asked whether it is ready.
const PROBE: Duration = Duration::from_millis(100);

/// One replica: where it serves, and where it says whether it is ready.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    /// HTTPS port.
    pub serve: SocketAddr,
    /// Plain HTTP port with `/ready`.
    pub admin: SocketAddr,
}

/// A balancer that runs until it is dropped.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    ready: Ready,
    tasks: Vec<AbortHandle>,
}

impl Balancer {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// There is no port.
    pub async fn start(backends: Vec<Backend>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let ready = Arc::new(RwLock::new(Vec::new()));
        let probe = tokio::spawn(probe(backends, Arc::clone(&ready)));
        let accept = tokio::spawn(accept(listener, Arc::clone(&ready)));
        Ok(Self { address, ready, tasks: vec![probe.abort_handle(), accept.abort_handle()] })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether this replica gets new connections. A little after it says that it is ready.
    #[must_use]
    pub fn sends_to(&self, backend: &Backend) -> bool {
        is_among(&self.ready, backend)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

type Ready = Arc<RwLock<Vec<SocketAddr>>>;

async fn probe(backends: Vec<Backend>, ready: Ready) {
    let mut ticks = interval(PROBE);
    loop {
        ticks.tick().await;
        let mut now = Vec::new();
        for backend in &backends {
            let before = || is_among(&ready, backend);
            if is_ready(backend.admin).await.unwrap_or_else(before) {
                now.push(backend.serve);
            }
        }
        *ready.write().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

fn is_among(ready: &Ready, backend: &Backend) -> bool {
    ready.read().unwrap_or_else(PoisonError::into_inner).contains(&backend.serve)
}

/// Whether `/ready` answers 200. None, if there is no answer in time: on a busy machine that says
/// nothing, and the kubelet, too, would ask several times.
pub(crate) async fn is_ready(admin: SocketAddr) -> Option<bool> {
    let ask = async {
        let mut stream = TcpStream::connect(admin).await?;
        stream.write_all(b"GET /ready HTTP/1.0\r\nHost: replica\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        io::Result::Ok(answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"))
    };
    let answer = timeout(Duration::from_secs(1), ask).await.ok()?;
    Some(answer.is_ok_and(|is_ready| is_ready))
}

async fn accept(listener: TcpListener, ready: Ready) {
    let turn = AtomicUsize::new(0);
    loop {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let next = {
            let ready = ready.read().unwrap_or_else(PoisonError::into_inner);
            let number = turn.fetch_add(1, Ordering::Relaxed) % ready.len().max(1);
            ready.get(number).copied()
        };
        let Some(next) = next else { continue };
        tokio::spawn(async move {
            // A replica that is gone closes the client's connection, as a Service would.
            if let Ok(mut server) = TcpStream::connect(next).await {
                // A review comes in two writes: held back by Nagle's algorithm, the second would
                // wait for the acknowledgement of the first, 40 ms.
                let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
