//! The way from this machine's loopback interface to the lab's API server, and the only one.
//! Deliberately not here: TLS, which client and server speak through it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::JoinHandle;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener as Listener, TcpStream};
use tokio::sync::oneshot;

use super::netns;

/// Why there is no forwarder.
#[derive(Debug, thiserror::Error)]
pub enum ForwarderError {
    /// No port could be listened on.
    #[error("listen on 127.0.0.1")]
    Listen(#[source] io::Error),
    /// It did not start, or could not enter the lab's network.
    #[error("enter the network of the lab's control plane")]
    Enter(#[source] io::Error),
}

/// Carries bytes until it is dropped.
pub(super) struct Forwarder {
    port: u16,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    /// Listens on a port of 127.0.0.1 and connects to `target` from within the network of
    /// that process.
    pub(super) fn start(process: u32, target: SocketAddr) -> Result<Self, ForwarderError> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(ForwarderError::Listen)?;
        let port = listener.local_addr().map_err(ForwarderError::Listen)?.port();
        listener.set_nonblocking(true).map_err(ForwarderError::Listen)?;
        let (end, ended) = oneshot::channel();
        let thread = netns::spawn("lab-forwarder", process, runtime, move |runtime| {
            runtime.block_on(forward(listener, target, ended));
        })
        .map_err(ForwarderError::Enter)?;
        Ok(Self { port, end: Some(end), thread: Some(thread) })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // Either makes it end; then only its last step is left to wait for.
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    // One thread: sockets belong to the network of the thread that makes them.
    tokio::runtime::Builder::new_current_thread().enable_io().build()
}

async fn forward(listener: TcpListener, target: SocketAddr, ended: oneshot::Receiver<()>) {
    let accepting = async {
        let Ok(listener) = Listener::from_std(listener) else { return };
        // What cannot be accepted was closed by its client.
        loop {
            if let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target));
            }
        }
    };
    tokio::select! {
        () = accepting => (),
        _ = ended => (),
    }
}

async fn carry(mut client: TcpStream, target: SocketAddr) {
    // A server that is down is a closed connection to the client, as it would be without us.
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
