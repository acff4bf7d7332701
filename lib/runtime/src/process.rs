//! The order in which a server process starts and stops: signals, admin port, then the parts, which
//! are the program's own; then ready; a signal drains; the end. Deliberately not here: what is
//! served or reconciled.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::admin::{self, AdminArgs};
use crate::leader::Leadership;
use crate::open_files;
use crate::readiness::{Readiness, ReadinessCheck};
use crate::shutdown::{self, Drain, Signals};

/// How long the release of the Lease may keep a process from ending.
const RELEASE: Duration = Duration::from_secs(5);

/// Why a process could not start, or had to end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("catch signals")]
    Signals(#[source] io::Error),
    #[error("lost the Lease")]
    LeaseLost,
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen { .. } => Some("another process may have the port"),
            Self::LeaseLost => {
                Some("it is started again and competes for the Lease like any other")
            }
            Self::Signals(_) => None,
        }
    }
}

/// A process whose parts are being started. It is not ready before [`Process::run`].
#[derive(Debug)]
pub struct Process {
    /// Where each part adds its checks.
    pub readiness: Readiness,
    /// When each part has to stop.
    pub drain: Drain,
    starting: ReadinessCheck,
}

impl Process {
    /// Catches signals and serves the admin port. After SIGTERM or SIGINT the process drains for
    /// `drain_time`, or until the next signal.
    ///
    /// # Errors
    /// The port is taken, or the system refuses.
    pub async fn start(
        args: &AdminArgs,
        registry: Arc<Registry>,
        drain_time: Duration,
    ) -> Result<Self, Error> {
        let signals = Signals::install().map_err(Error::Signals)?;
        let (shutdown, drain) = shutdown::channel();
        tokio::spawn(signals.drive(shutdown, drain_time));
        open_files::raise_limit();
        let listener = listen(args.admin_listen).await?;
        let readiness = Readiness::default();
        let starting = readiness.add_check("start", "the parts are being started");
        tokio::spawn(admin::serve(listener, registry, readiness.clone(), drain.clone()));
        Ok(Self { readiness, drain, starting })
    }

    /// Every part has been started: the process is ready as soon as their checks pass. `work` is
    /// what lasts until the process has drained, and ends by itself then.
    ///
    /// # Errors
    /// The Lease was lost and that ends the process ([`crate::leader::OnLoss::End`]); `work` is
    /// dropped at once.
    pub async fn run(
        self,
        leadership: &Leadership,
        work: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        self.starting.pass();
        tokio::select! {
            () = work => {}
            () = leadership.ended() => return Err(Error::LeaseLost),
        }
        leadership.finish();
        // Work may end before that, and then the others would wait until the Lease expires.
        if timeout(RELEASE, leadership.finished()).await.is_err() {
            tracing::warn!("failed to release the Lease in time; it expires by itself");
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Takes a port. A process takes all of its ports first, so that a conflict ends it at once. `[::]` is both
/// protocols' unspecified address; where the kernel has no IPv6 it is 0.0.0.0.
///
/// # Errors
/// The port is taken.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let failed = |source| Error::Listen { address, source };
    match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && lacks_ipv6(&error) => {
            let address = (Ipv4Addr::UNSPECIFIED, address.port());
            TcpListener::bind(address).await.map_err(failed)
        }
        bound => bound.map_err(failed),
    }
}

fn lacks_ipv6(error: &io::Error) -> bool {
    // EAFNOSUPPORT: the kernel was built or started without it; EADDRNOTAVAIL: a sysctl disables it.
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn the_unspecified_address_is_that_of_both_protocols() {
        let listener = listen((Ipv6Addr::UNSPECIFIED, 0).into()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
        }
        let taken = listen((Ipv4Addr::UNSPECIFIED, port).into()).await;
        assert!(matches!(taken, Err(Error::Listen { .. })), "{taken:?}");
    }
}
