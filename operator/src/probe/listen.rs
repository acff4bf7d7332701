//! A port on which peers find this probe: it writes a line to each that connects, and reads nothing.

use std::net::Ipv4Addr;
use std::time::Duration;

use opensdn_node_probe::Listen;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// So long one peer may take its line, and so long nothing is accepted after an error such as too many open files.
const LIMIT: Duration = Duration::from_secs(5);

/// Listens until the program ends; the port.
pub(super) async fn start(wanted: &Listen) -> Result<u16, String> {
    let at = (Ipv4Addr::UNSPECIFIED, wanted.port);
    let failed = |error: std::io::Error| format!("failed to listen on {}: {error}", wanted.port);
    let listener = TcpListener::bind(at).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let line = format!("{}\n", wanted.line);
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(greet(stream, line.clone()))),
                Err(_) => sleep(LIMIT).await,
            }
        }
    });
    Ok(port)
}

async fn greet(mut stream: TcpStream, line: String) {
    // A peer that went away has nothing to learn.
    let written = async {
        stream.write_all(line.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(LIMIT, written).await;
}
