//! A session with one server of ZooKeeper, over TLS with a certificate. Deliberately not a general client (the
//! crate `zookeeper-client` is one, and brings a second TLS library and a second runtime): one request at a time,
//! none is repeated, and nothing reconnects, as the operator looks again before each step anyway.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::protocol::{Acl, Answer, CONFIG_NODE, Configuration, Malformed, Request, connect};

/// ZooKeeper itself takes no larger node.
const LARGEST_ANSWER: u32 = 1 << 20;
/// Each request, and each connection: a server that hangs is as good as none.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Why a server did not answer as it should.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub(super) enum SessionError {
    #[error("{0} is no address")]
    Address(String),
    #[error(transparent)]
    Connection(#[from] io::Error),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("ZooKeeper refused it: {}", meaning(*.0))]
    Refused(i32),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// The codes of `KeeperException` that the operator's requests can get.
fn meaning(code: i32) -> String {
    let known = match code {
        -4 => "connection lost",
        -8 => "bad arguments",
        -13 => "no quorum of the new configuration is connected and up to date",
        -14 => "another change is being made",
        -101 => "there is no such node",
        -102 => "the operator's certificate has no right to do it",
        -103 => "the configuration has changed since",
        -112 => "the session has expired",
        -123 => "reconfigEnabled is not set",
        code => return format!("error {code}"),
    };
    known.to_owned()
}

/// A session; dropping it has the server end it.
pub(super) struct Session {
    stream: TlsStream<TcpStream>,
    number: i32,
}

impl Session {
    /// Opens one with the server there, which has to be part of a quorum.
    ///
    /// # Errors
    /// It cannot be reached, is not whom its certificate should name, or has no quorum.
    pub(super) async fn open(
        address: &str,
        port: u16,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, SessionError> {
        let opened = async {
            let stream = dial(address, port, tls).await?;
            let mut session = Self { stream, number: 0 };
            session.send(&connect()).await?;
            // Without a quorum the server closes the connection.
            session.receive().await?;
            Ok(session)
        };
        in_time(opened).await
    }

    /// The configuration, after the server has caught up with the leader.
    pub(super) async fn configuration(&mut self) -> Result<Configuration, SessionError> {
        self.call(&Request::Sync(CONFIG_NODE)).await?;
        let answer = self.call(&Request::GetData(CONFIG_NODE)).await?;
        let data = Answer(&answer).data()?;
        Ok(Configuration::parse(std::str::from_utf8(&data).map_err(|_| Malformed)?)?)
    }

    /// Who may change the configuration.
    pub(super) async fn acls(&mut self) -> Result<Vec<Acl>, SessionError> {
        let answer = self.call(&Request::GetAcl(CONFIG_NODE)).await?;
        Ok(Answer(&answer).acls()?)
    }

    /// The same, written.
    pub(super) async fn set_acls(&mut self, acls: &[Acl]) -> Result<(), SessionError> {
        self.call(&Request::SetAcl(CONFIG_NODE, acls)).await.map(drop)
    }

    /// Changes the members, if the configuration still has that version.
    ///
    /// # Errors
    /// It is refused; or the answer is lost, as when the leader itself leaves, and it may have been done.
    pub(super) async fn reconfigure(
        &mut self,
        joining: Option<&str>,
        leaving: Option<&str>,
        version: i64,
    ) -> Result<(), SessionError> {
        self.call(&Request::Reconfigure { joining, leaving, version }).await.map(drop)
    }

    /// Ends the session, so that the server need not wait until it expires.
    pub(super) async fn close(mut self) {
        // It expires by itself.
        let _ = self.call(&Request::Close).await;
    }

    async fn call(&mut self, request: &Request<'_>) -> Result<Vec<u8>, SessionError> {
        self.number += 1;
        let number = self.number;
        in_time(async {
            self.send(&request.encode(number)).await?;
            loop {
                let frame = self.receive().await?;
                let mut answer = Answer(&frame);
                let (of, error) = answer.header()?;
                // What is no answer to a request reports a change.
                if of != number {
                    continue;
                }
                if error != 0 {
                    return Err(SessionError::Refused(error));
                }
                return Ok(answer.0.to_vec());
            }
        })
        .await
    }

    async fn send(&mut self, frame: &[u8]) -> Result<(), SessionError> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.stream.write_all(&[&length.to_be_bytes(), frame].concat()).await?;
        Ok(self.stream.flush().await?)
    }

    async fn receive(&mut self) -> Result<Vec<u8>, SessionError> {
        let length = self.stream.read_u32().await?;
        if length > LARGEST_ANSWER {
            return Err(Malformed.into());
        }
        let mut frame = vec![0; usize::try_from(length).unwrap_or_default()];
        self.stream.read_exact(&mut frame).await?;
        Ok(frame)
    }
}

/// Whether the server there leads, by the command `srvr`.
///
/// # Errors
/// It cannot be reached, or serves no clients.
pub(super) async fn is_leader(
    address: &str,
    port: u16,
    tls: &Arc<ClientConfig>,
) -> Result<bool, SessionError> {
    in_time(async {
        let mut stream = dial(address, port, tls).await?;
        stream.write_all(b"srvr").await?;
        stream.flush().await?;
        let mut said = Vec::new();
        // It closes the connection without saying so in TLS.
        let ended = stream.take(u64::from(LARGEST_ANSWER)).read_to_end(&mut said).await;
        let said = String::from_utf8_lossy(&said);
        match said.lines().find_map(|line| line.strip_prefix("Mode: ")) {
            Some(mode) => Ok(mode.trim() == "leader"),
            None => Err(ended.map_or_else(SessionError::from, |_| Malformed.into())),
        }
    })
    .await
}

async fn dial(
    address: &str,
    port: u16,
    tls: &Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, SessionError> {
    let address: IpAddr = address.parse().map_err(|_| SessionError::Address(address.to_owned()))?;
    let stream = TcpStream::connect(SocketAddr::new(address, port)).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::IpAddress(address.into());
    Ok(TlsConnector::from(tls.clone()).connect(name, stream).await?)
}

async fn in_time<T>(
    work: impl Future<Output = Result<T, SessionError>>,
) -> Result<T, SessionError> {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or(Err(SessionError::Timeout))
}
