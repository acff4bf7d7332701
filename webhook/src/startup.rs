//! The process around the reviews: log, ports, certificate, and what makes the reviews, which is
//! given from outside ([`run`]'s `reviewer`). Signals, the admin port and the order of the end are
//! the runtime's. The process that answers no reviews is in `startup/configuration_only.rs`.

pub mod configuration_only;

use std::future::Future;
use std::time::Duration;

use kube::Client;
use opensdn_deploy::names::webhook::LEADER_LEASE;
use opensdn_pki::Published;
use opensdn_runtime::client::ClientError;
use opensdn_runtime::leader::{Election, Leadership};
use opensdn_runtime::process::{self, Process};
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown;
use tokio::sync::watch;

use crate::args::Args;
use crate::certificates::{Bundle, CertificateController, ca_secret};
use crate::metrics::Metrics;
use crate::path_tokens::{PathToken, PathTokenController, PathTokens, file};
use crate::server::{self, Reviewer};
use crate::tls::{self, Tls, files};
use crate::wiring::Context;

/// How often certificate files are read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Process(#[from] process::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("load the serving certificate")]
    Certificate(#[source] tls::Error),
    #[error("load the path tokens")]
    PathTokens(#[source] file::FileError),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(error) => error.hint(),
            Self::Client(error) => Some(error.hint()),
            Self::PathTokens(_) => {
                Some("write one a line, for example from `openssl rand -hex 32`")
            }
            Self::Certificate(_) => None,
        }
    }
}

/// Serves the reviews of what `reviewer` makes, until a signal says to stop; returns when
/// everything in flight is answered.
///
/// # Errors
/// A port is taken, or the certificate cannot be loaded.
pub async fn run<R, F>(
    args: Args,
    client: Client,
    reviewer: impl FnOnce(Context) -> F,
) -> Result<(), Error>
where
    R: Reviewer,
    F: Future<Output = R>,
{
    let metrics = Metrics::new();
    let listener = process::listen(args.listen).await?;
    let drain_time = args.limits.drain_seconds;
    let process = Process::start(&args.admin, metrics.registry(), drain_time).await?;
    let (readiness, drain) = (process.readiness.clone(), process.drain.clone());

    let election = Election::new(&args.namespace, LEADER_LEASE, &args.replica);
    let leadership =
        Leadership::start_when_ready(client.clone(), election, readiness.clone(), drain.clone());
    let (published, seen) = watch::channel(None);
    let (published_path, seen_path) = watch::channel(None);
    let setup = Setup { args: &args, client: &client, metrics: &metrics, readiness: &readiness };
    let mut stopping = drain.clone();
    let (tls, bundle, path_tokens) = tokio::select! {
        made = setup.all(leadership.clone(), seen, seen_path) => made?,
        // Nothing is in flight yet.
        () = stopping.reached(shutdown::Phase::Closing) => return Ok(()),
    };
    tokio::spawn(tls.clone().watch_expiry());
    let (limits, counts) = (args.limits.limits(), metrics.server());
    let context = Context {
        args,
        client,
        metrics,
        readiness,
        leadership: leadership.clone(),
        drain: drain.clone(),
        bundle,
        published,
        path_tokens: path_tokens.clone(),
        published_path,
    };
    let reviewer = reviewer(context).await;
    let serving = server::serve(listener, tls, path_tokens, reviewer, limits, counts, drain);
    Ok(process.run(&leadership, serving).await?)
}

/// What certificate and path tokens are set up from.
struct Setup<'a> {
    args: &'a Args,
    client: &'a Client,
    metrics: &'a Metrics,
    readiness: &'a Readiness,
}

impl Setup<'_> {
    async fn all(
        &self,
        leadership: Leadership,
        published: watch::Receiver<Option<Published>>,
        published_path: watch::Receiver<Option<PathToken>>,
    ) -> Result<(Tls, Bundle, PathTokens), Error> {
        let path_tokens = self.path_tokens(leadership.clone(), published_path).await?;
        let (tls, bundle) = self.certificate(leadership, published).await?;
        Ok((tls, bundle, path_tokens))
    }

    /// The first path tokens, and the task that replaces them.
    async fn path_tokens(
        &self,
        leadership: Leadership,
        published: watch::Receiver<Option<PathToken>>,
    ) -> Result<PathTokens, Error> {
        let args = &self.args.callers;
        if let Some(path) = &args.path_tokens {
            return file::follow(path.clone()).await.map_err(Error::PathTokens);
        }
        let ready = self.readiness.add_check("path-tokens", "none yet");
        let (namespace, name, period) = (&self.args.namespace, &args.path_secret, args.rotation());
        let client = self.client.clone();
        let controller = PathTokenController::start(client, namespace, name, period, &ready).await;
        let tokens = controller.tokens();
        tokio::spawn(controller.run(leadership, published));
        Ok(tokens)
    }

    /// The first certificate, and the tasks that renew it.
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
            tokio::spawn(files.watch(tls.clone(), content.digest(), POLL_INTERVAL));
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
            tokio::spawn(files::watch_client_ca(path, tls.clone(), seen, POLL_INTERVAL));
        }
        Ok((tls, bundle))
    }
}
