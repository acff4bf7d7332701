//! A session of CQL with one node, over TLS. Deliberately not a general client: statements without values, one at a
//! time, and answers that fit into one frame.

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

/// Of the protocol, version 4, which Cassandra has spoken from 2.2 to 5.0.
const VERSION: u8 = 4;
const ANSWER: u8 = 0x80 | VERSION;
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const ROWS: i32 = 2;
const QUORUM: [u8; 2] = [0, 4];
const LARGEST_ANSWER: u32 = 1 << 20;
/// A change of the schema is answered when all nodes that are up have it.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Why a node did not answer as it should.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub(super) enum CqlError {
    #[error("{0} is no address")]
    Address(String),
    #[error("ask by CQL")]
    Connection(#[from] io::Error),
    #[error("no answer by CQL within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("Cassandra refused it: {0}")]
    Refused(String),
    #[error("what Cassandra answers is no CQL")]
    Malformed,
}

/// A session; dropping it ends it.
pub(super) struct Session {
    stream: TlsStream<TcpStream>,
}

impl Session {
    /// Opens one with the node there.
    ///
    /// # Errors
    /// It cannot be reached, or is not whom its certificate should name.
    pub(super) async fn open(
        address: &str,
        port: u16,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, CqlError> {
        let host: IpAddr = address.parse().map_err(|_| CqlError::Address(address.to_owned()))?;
        in_time(async {
            let stream = TcpStream::connect(SocketAddr::new(host, port)).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::IpAddress(host.into());
            let stream = TlsConnector::from(tls.clone()).connect(name, stream).await?;
            let mut session = Self { stream };
            let options = [&[0, 1, 0, 11], &b"CQL_VERSION"[..], &[0, 5], b"3.0.0"].concat();
            match session.ask(STARTUP, &options).await? {
                (READY, _) => Ok(session),
                _ => Err(CqlError::Malformed),
            }
        })
        .await
    }

    /// Runs a statement, and answers its rows: the bytes of each of its values.
    ///
    /// # Errors
    /// It is refused; or the answer is lost, and it may have been done.
    pub(super) async fn run(&mut self, statement: &str) -> Result<Vec<Vec<Vec<u8>>>, CqlError> {
        let length = u32::try_from(statement.len()).unwrap_or(u32::MAX).to_be_bytes();
        let query = [&length, statement.as_bytes(), &QUORUM, &[0]].concat();
        match in_time(self.ask(QUERY, &query)).await? {
            (RESULT, body) => Reader(&body).rows().ok_or(CqlError::Malformed),
            _ => Err(CqlError::Malformed),
        }
    }

    async fn ask(&mut self, operation: u8, body: &[u8]) -> Result<(u8, Vec<u8>), CqlError> {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
        let frame = [&[VERSION, 0, 0, 0, operation], &length[..], body].concat();
        self.stream.write_all(&frame).await?;
        self.stream.flush().await?;
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).await?;
        let [version, flags, _, _, operation] = head;
        let length = self.stream.read_u32().await?;
        // Neither compressed, nor with what was not asked for.
        if version != ANSWER || flags & !WARNING != 0 || length > LARGEST_ANSWER {
            return Err(CqlError::Malformed);
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or_default()];
        self.stream.read_exact(&mut body).await?;
        let mut rest = Reader(&body);
        if flags & WARNING != 0 {
            rest.warnings().ok_or(CqlError::Malformed)?;
        }
        if operation == ERROR {
            return Err(CqlError::Refused(rest.error().ok_or(CqlError::Malformed)?));
        }
        Ok((operation, rest.0.to_vec()))
    }
}

/// Before the body come texts of what is better done in another way.
const WARNING: u8 = 0x08;

async fn in_time<T>(work: impl Future<Output = Result<T, CqlError>>) -> Result<T, CqlError> {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or(Err(CqlError::Timeout))
}

/// What is left of an answer to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.short()?;
        self.take(length.into())
    }

    fn warnings(&mut self) -> Option<()> {
        for _ in 0..self.short()? {
            self.string()?;
        }
        Some(())
    }

    fn error(&mut self) -> Option<String> {
        self.int()?;
        Some(String::from_utf8_lossy(self.string()?).into_owned())
    }

    /// None of it where the statement has no rows.
    fn rows(&mut self) -> Option<Vec<Vec<Vec<u8>>>> {
        if self.int()? != ROWS {
            return Some(Vec::new());
        }
        let columns = self.columns()?;
        let count = self.int()?;
        let mut rows = Vec::new();
        for _ in 0..count {
            let row: Option<Vec<_>> = (0..columns).map(|_| self.value()).collect();
            rows.push(row?);
        }
        Some(rows)
    }

    /// How many columns there are; their names and types are as they were asked for.
    fn columns(&mut self) -> Option<usize> {
        const GLOBAL_TABLE: i32 = 1;
        let flags = self.int()?;
        // Rows of nothing would have no end.
        let columns = usize::try_from(self.int()?).ok().filter(|columns| *columns > 0)?;
        // Further pages would be left out.
        if flags & !GLOBAL_TABLE != 0 {
            return None;
        }
        if flags & GLOBAL_TABLE != 0 {
            self.string()?;
            self.string()?;
        }
        for _ in 0..columns {
            if flags & GLOBAL_TABLE == 0 {
                self.string()?;
                self.string()?;
            }
            self.string()?;
            // None but those that have no types of their own in them.
            (self.short()? < 0x20).then_some(())?;
        }
        Some(columns)
    }

    /// Of one that is not there, nothing.
    fn value(&mut self) -> Option<Vec<u8>> {
        match usize::try_from(self.int()?) {
            Ok(length) => Some(self.take(length)?.to_vec()),
            Err(_) => Some(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Cassandra 3.11 answers `SELECT keyspace_name, durable_writes`.
    fn answer() -> Vec<u8> {
        let mut body = vec![0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
        for text in ["system_schema", "keyspaces"] {
            body.extend([0, u8::try_from(text.len()).unwrap()]);
            body.extend(text.as_bytes());
        }
        body.extend(b"\x00\x01a\x00\x0d\x00\x01b\x00\x04");
        body.extend(b"\x00\x00\x00\x02\x00\x00\x00\x02ab\x00\x00\x00\x01\x01");
        body.extend(b"\x00\x00\x00\x02cd\xff\xff\xff\xff");
        body
    }

    #[test]
    fn rows_are_read_with_values_that_are_not_there() {
        let rows = Reader(&answer()).rows().unwrap();
        let expected = [[&b"ab"[..], &[1]], [b"cd", b""]];
        assert_eq!(rows, expected);
        assert_eq!(Reader(&[0, 0, 0, 1]).rows(), Some(Vec::new()), "a statement without rows");
    }

    #[test]
    fn what_ends_too_early_or_has_more_pages_is_no_answer() {
        let whole = answer();
        for end in 0..whole.len() {
            assert_eq!(Reader(&whole[..end]).rows(), None, "{end} bytes");
        }
        let mut paged = whole;
        paged[7] = 3;
        assert_eq!(Reader(&paged).rows(), None);
    }
}
