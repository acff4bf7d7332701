//! One replica of the webhook in a runtime of its own, so that it can be stopped as by SIGTERM or
//! as by SIGKILL while the test continues.

use opensdn_testing::Failed;
use std::sync::Arc;

use clap::Parser;
use kube::Client;
use opensdn_deploy::names::webhook::NAME;
use opensdn_pki::Authority;
use opensdn_runtime::leader::{Election, Leadership};
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{self, Phase, Shutdown};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_webhook::args::Args;
use opensdn_webhook::certificates::leaf_profile;
use opensdn_webhook::metrics::Metrics;
use opensdn_webhook::path_tokens::{PathToken, PathTokens};
use opensdn_webhook::policies::engines::Engines;
use opensdn_webhook::server;
use opensdn_webhook::tls::Tls;
use opensdn_webhook::wiring::{self, Context};
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub(crate) const NAMESPACE: &str = "opensdn";
/// The same in all replicas, as if from one Secret.
const PATH_TOKEN: &str = "a-token-for-tests-only";
const CACHE_FOLDER: &str = "--cache-folder";

/// A running replica.
pub(crate) struct Replica {
    runtime: Option<Runtime>,
    shutdown: Shutdown,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    _cache: TempDir,
}

impl Replica {
    /// Starts one that acts as `user`; `further` are flags, and it is ready when all of `readiness` is.
    pub(crate) async fn start(
        sandbox: &Sandbox,
        user: &User,
        authority: &Authority,
        name: &str,
        further: &[&str],
        readiness: Readiness,
    ) -> Result<Self, Failed> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let client = {
            let _inside = runtime.enter();
            sandbox.client_for(user)?
        };
        let metrics = Metrics::new();
        let (shutdown, drain) = shutdown::channel();
        let mut further: Vec<String> = further.iter().map(ToString::to_string).collect();
        // Of its own, unless the test names another: in it is nothing that another replica has compiled.
        let cache = tempfile::tempdir()?;
        if !further.iter().any(|flag| flag == CACHE_FOLDER) {
            let folder = cache.path().join("compiled").display().to_string();
            further.extend([CACHE_FOLDER.to_owned(), folder]);
        }
        let job = Job {
            authority: authority.clone(),
            name: name.to_owned(),
            further,
            client,
            metrics: metrics.clone(),
            readiness: readiness.clone(),
            drain,
        };
        // Errors of the start come back; the server then runs on.
        let started = runtime.spawn(job.start());
        started.await?.map_err(|error| -> Failed { error.into() })?;
        Ok(Self { runtime: Some(runtime), shutdown, metrics, readiness, _cache: cache })
    }

    /// As by SIGTERM.
    pub(crate) fn stop(&self) {
        self.shutdown.announce(Phase::Draining);
    }

    /// As by SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// The value of a metric, by the beginning of its line.
    pub(crate) fn metric(&self, beginning: &str) -> Option<f64> {
        let text = opensdn_runtime::metrics::encode(&self.metrics.registry()).ok()?;
        let line = text.lines().find(|line| line.starts_with(beginning))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Job {
    authority: Authority,
    name: String,
    further: Vec<String>,
    client: Client,
    metrics: Metrics,
    readiness: Readiness,
    drain: shutdown::Drain,
}

impl Job {
    async fn start(self) -> Result<(), String> {
        let text = |error: &dyn std::error::Error| opensdn_runtime::error_chain(error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| text(&error))?;
        let address = listener.local_addr().map_err(|error| text(&error))?;
        let url = format!("https://{address}");
        let flags = ["opensdn-webhook", "--namespace", NAMESPACE, "--replica", &self.name];
        let flags = flags.into_iter().map(str::to_owned);
        let flags = flags.chain(["--webhook-url".to_owned(), url]).chain(self.further);
        let args = Args::try_parse_from(flags).map_err(|error| text(&error))?;
        let profile = leaf_profile("opensdn-webhook", NAMESPACE, &[]);
        let leaf = self.authority.issue(&profile, OffsetDateTime::now_utc());
        let leaf = leaf.map_err(|error| text(&error))?;
        let condition = self.readiness.add_check("certificate", "none yet");
        let counts = self.metrics.certificate();
        let tls = Tls::new(args.certificate.settings(), leaf.identity, None, counts, condition)
            .map_err(|error| text(&error))?;
        let leadership = Leadership::start(
            self.client.clone(),
            Election::new(NAMESPACE, "opensdn-webhook-leader", &self.name),
            self.drain.clone(),
        );
        let bundle: Arc<str> = self.authority.certificate().into();
        let (_, bundle) = watch::channel(Some(bundle));
        let engines =
            Engines::start(&args.policies, args.evaluations()).map_err(|error| text(&error))?;
        let engines = engines.compiled_by(program(NAME).map_err(|error| text(&error))?);
        let limits = args.limits.limits();
        let token = PathToken::parse(PATH_TOKEN).map_err(|error| text(&error))?;
        let path_tokens = PathTokens::new(token, []);
        let context = Context {
            args,
            client: self.client,
            metrics: self.metrics.clone(),
            readiness: self.readiness,
            leadership,
            drain: self.drain.clone(),
            bundle,
            published: watch::channel(None).0,
            path_tokens: path_tokens.clone(),
            published_path: watch::channel(None).0,
        };
        let reviewer = wiring::start(context, engines);
        let counts = self.metrics.server();
        tokio::spawn(server::serve(
            listener,
            tls,
            path_tokens,
            reviewer,
            limits,
            counts,
            self.drain,
        ));
        Ok(())
    }
}
