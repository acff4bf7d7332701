//! The process around the reviews: log, signals, ports, certificate, and the order in which all
//! that starts and stops. What reviews are made by is given from outside ([`run`]'s `reviewer`).

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kube::Client;
use opensdn_pki::Published;
use opensdn_runtime::leader::{Election, Leadership};
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{self, Drain, Signals};
use opensdn_runtime::{admin, open_files};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::args::Args;
use crate::certificates::{Bundle, CertificateController, ca_secret};
use crate::metrics::Metrics;
use crate::server::{self, Reviewer};
use crate::tls::{self, Tls, files};

/// How often the content of certificate files is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The Lease by which replicas agree on the one that acts for all.
const LEASE: &str = "opensdn-webhook-leader";

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("listen on {address}; another process may have the port")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("catch signals")]
    Signals(#[source] io::Error),
    #[error("find out how to reach the API server; outside a cluster set KUBECONFIG")]
    Kubeconfig(#[source] Box<kube::Error>),
    #[error("load the serving certificate")]
    Certificate(#[source] tls::Error),
}

/// What the makers of reviews are given.
pub struct Parts {
    /// The command line.
    pub args: Args,
    /// The API server.
    pub client: Client,
    /// Where to count.
    pub metrics: Metrics,
    /// Where to say what is not ready yet.
    pub readiness: Readiness,
    /// Whether this replica acts for all.
    pub leadership: Leadership,
    /// When to stop.
    pub drain: Drain,
    /// What to write into webhook configurations as `caBundle`; none if the certificate is not
    /// ours, and they are to be left as they are.
    pub bundle: Bundle,
    /// Where to say which bundle all webhook configurations carry, and since when: without it a
    /// rotation of the CA waits.
    pub published: watch::Sender<Option<Published>>,
}

/// A client of the API server, from `KUBECONFIG` or from inside the cluster.
pub async fn client() -> Result<Client, Error> {
    opensdn_runtime::client::client().await.map_err(|source| Error::Kubeconfig(Box::new(source)))
}

/// Serves the reviews of what `reviewer` makes, until a signal says to stop; returns when
/// everything in flight is answered.
pub async fn run<R, F>(
    args: Args,
    client: Client,
    reviewer: impl FnOnce(Parts) -> F,
) -> Result<(), Error>
where
    R: Reviewer,
    F: Future<Output = R>,
{
    let signals = Signals::install().map_err(Error::Signals)?;
    let (metrics, readiness) = (Metrics::new(), Readiness::default());
    let (stop, drain) = shutdown::channel();
    tokio::spawn(signals.drive(stop, args.limits.drain_seconds));

    open_files::raise_limit();
    // Both ports are taken first: a conflict ends the process at once instead of much later.
    let listener = listen(args.listen).await?;
    let admin = listen(args.admin.admin_listen).await?;
    tokio::spawn(admin::serve(admin, metrics.registry(), readiness.clone(), drain.clone()));

    let starting = readiness.add_check("start", "the parts are being started");
    let election = Election::new(&args.namespace, LEASE, &args.replica);
    let leadership = Leadership::start(client.clone(), election, drain.clone());
    let (published, seen) = watch::channel(None);
    let outfit = Outfit { args: &args, client: &client, metrics: &metrics, readiness: &readiness };
    let mut stopping = drain.clone();
    let (tls, bundle) = tokio::select! {
        made = outfit.certificate(leadership.clone(), seen) => made?,
        // Nothing is in flight yet.
        () = stopping.reached(shutdown::Phase::Closing) => return Ok(()),
    };
    tokio::spawn(tls.clone().watch_expiry());
    let limits = args.limits.limits();
    let counts = metrics.server();
    let parts = Parts {
        args,
        client,
        metrics,
        readiness,
        leadership,
        drain: drain.clone(),
        bundle,
        published,
    };
    let reviewer = reviewer(parts).await;
    starting.pass();
    server::serve(listener, tls, reviewer, limits, counts, drain).await;
    tracing::info!("stopped");
    Ok(())
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// What the certificate is set up from.
struct Outfit<'a> {
    args: &'a Args,
    client: &'a Client,
    metrics: &'a Metrics,
    readiness: &'a Readiness,
}

impl Outfit<'_> {
    /// The certificate to begin with, and the tasks that renew it.
    async fn certificate(
        &self,
        leadership: Leadership,
        published: watch::Receiver<Option<Published>>,
    ) -> Result<(Tls, Bundle), Error> {
        let args = &self.args.certificate;
        let ready = self.readiness.add_check("certificate", "none yet");
        let client_ca = match &args.client_ca {
            Some(path) => Some(files::read(path).await.map_err(Error::Certificate)?),
            None => None,
        };
        let trusted = client_ca.as_deref();
        let (settings, counts) = (args.settings(), self.metrics.certificate());
        let (tls, bundle) = if let Some(files) = args.files() {
            let content = files.read().await.map_err(Error::Certificate)?;
            let identity = content.identity().map_err(Error::Certificate)?;
            let tls = Tls::new(settings, identity, trusted, counts, ready);
            let tls = tls.map_err(Error::Certificate)?;
            tokio::spawn(files.watch(tls.clone(), content.digest(), LOOK));
            (tls, watch::channel(None).1)
        } else {
            let (namespace, name) = (&self.args.namespace, &args.ca_secret);
            let secret = ca_secret(self.client.clone(), namespace, name);
            let profile = args.leaf_profile(namespace);
            let controller = CertificateController::start(secret, profile, &ready).await;
            let tls = Tls::new(settings, controller.identity(), trusted, counts, ready);
            let (tls, bundle) = (tls.map_err(Error::Certificate)?, controller.bundle());
            tokio::spawn(controller.run(tls.clone(), leadership, published));
            (tls, bundle)
        };
        if let Some((path, seen)) = args.client_ca.clone().zip(client_ca) {
            tokio::spawn(files::watch_client_ca(path, tls.clone(), seen, LOOK));
        }
        Ok((tls, bundle))
    }
}
