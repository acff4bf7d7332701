//! The parts that keep in step with the cluster, and how they start together: policies, look-up
//! caches, webhook configurations, the list of living replicas. Which of them a review asks is in
//! `reviewing`; what each of them does is in its own module.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opensdn_policy_host::lookup::Lookup;
use opensdn_policy_host::{Cache, CacheError, Engine, EngineError, Finding, Limits};
use opensdn_runtime::discovery::Discovery;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::certificates::Bundle;
use crate::configuration::{self, Address};
use crate::policies::{self, check::Checker, compiler::Compiler};
use crate::process::Parts;
use crate::related::Related;
use crate::replicas::Replicas;
use crate::serving::Serving;

/// Policies, look-ups and webhook configurations.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Policies")]
pub struct ClusterArgs {
    /// Folder below which AdmissionPolicies may name modules (`module.folder.path`). Without it
    /// they cannot.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_FOLDER", value_name = "FOLDER")]
    pub policy_folder: Option<PathBuf>,

    /// Folder for compiled policies, which nobody else may write to; makes a restart fast.
    #[arg(long, env = "OPENSDN_WEBHOOK_CACHE_FOLDER", value_name = "FOLDER")]
    pub cache_folder: Option<PathBuf>,

    /// Milliseconds that one evaluation of a policy may take, unless its AdmissionPolicy says
    /// otherwise.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_MILLISECONDS", default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub policy_milliseconds: u64,

    /// Mebibytes of memory that one evaluation may take, unless its AdmissionPolicy says
    /// otherwise.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_MEBIBYTES", default_value_t = 16,
        value_parser = clap::value_parser!(u64).range(1..=256))]
    pub policy_mebibytes: u64,

    /// Evaluations at once; others wait for one to end.
    #[arg(long, env = "OPENSDN_WEBHOOK_EVALUATIONS", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub evaluations: u32,

    /// Seconds after which a look-up cache that has not heard of the API server is not used any
    /// more.
    #[arg(long, env = "OPENSDN_WEBHOOK_LOOKUP_STALENESS_SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(3..=3600))]
    pub lookup_staleness_seconds: u64,

    /// URL, without path, by which the API server reaches the webhook, for one that runs beside
    /// it. Default: through the Service.
    #[arg(long, env = "OPENSDN_WEBHOOK_URL", value_name = "URL")]
    pub webhook_url: Option<String>,

    /// PEM file with the CAs by which the API server knows the webhook's certificate, to be
    /// written into the webhook configurations. Needed only with --tls-cert; without it the
    /// configurations are then left alone. Read again whenever its content changes.
    #[arg(long, env = "OPENSDN_WEBHOOK_CA_BUNDLE", value_name = "FILE", requires = "tls_cert")]
    pub ca_bundle: Option<PathBuf>,

    /// The webhook's ServiceAccount; what it does itself to kinds that are not OpenSDN's is not
    /// sent to it.
    #[arg(long, env = "OPENSDN_WEBHOOK_SERVICE_ACCOUNT", default_value = "opensdn-webhook")]
    pub service_account: String,
}

/// Why these parts could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("start the engine of the policies")]
    Engine(#[source] EngineError),
    #[error("open the folder of compiled policies")]
    Cache(#[source] CacheError),
}

/// What policies run on.
pub struct Engines {
    engine: Engine,
    cache: Option<Cache>,
    compiler: Option<Compiler>,
}

impl Engines {
    /// Starts the engine and opens the cache: what can fail, before anything runs.
    ///
    /// # Errors
    /// The machine does not give the engine what it needs, or the cache folder is open to others.
    pub fn start(args: &ClusterArgs) -> Result<Self, Error> {
        let cache = args.cache_folder.as_ref().map(Cache::open).transpose();
        let cache = cache.map_err(Error::Cache)?;
        let engine = Engine::start(args.evaluations).map_err(Error::Engine)?;
        Ok(Self { engine, cache, compiler: None })
    }

    /// Modules are compiled by this program in a process of its own, which is
    /// `policies/compiler.rs`. Without a cache folder, where the code would go, nothing changes.
    #[must_use]
    pub fn compiled_by(mut self, program: PathBuf) -> Self {
        self.compiler = self.cache.as_ref().map(|cache| Compiler::new(program, cache));
        self
    }
}

/// The running parts that a review asks; cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    serving: Arc<Serving>,
    related: Related,
    lookup: Arc<dyn Lookup>,
    checker: Checker,
}

impl Cluster {
    /// Starts them. Readiness says when they can be relied on.
    #[must_use]
    pub fn start(parts: &Parts, engines: Engines) -> Self {
        let Parts { args, client, metrics, readiness, leadership, drain, .. } = parts;
        let staleness = Duration::from_secs(args.cluster.lookup_staleness_seconds);
        let kinds = Discovery::start(client.clone(), staleness / 3);
        let related = Related::start(
            client.clone(),
            kinds.clone(),
            staleness,
            metrics.clone(),
            readiness.clone(),
        );
        let replicas = Replicas::start(
            client.clone(),
            &args.namespace,
            &args.replica,
            leadership.clone(),
            drain.clone(),
        );
        let serving = Arc::new(Serving::new(metrics.clone()));
        let policies = policies::start(policies::Needs {
            client: client.clone(),
            replica: args.replica.clone(),
            engine: engines.engine,
            cache: engines.cache,
            compiler: engines.compiler,
            folder: args.cluster.policy_folder.clone(),
            limits: args.cluster.limits(),
            serving: Arc::clone(&serving),
            related: related.clone(),
            kinds: kinds.clone(),
            leadership: leadership.clone(),
            replicas,
            metrics: metrics.clone(),
            readiness: readiness.clone(),
        });
        configuration::start(configuration::Needs {
            client: client.clone(),
            replica: args.replica.clone(),
            address: args.cluster.address(&args.namespace, &args.certificate.service),
            namespace: args.namespace.clone(),
            user: args.cluster.user(&args.namespace),
            kinds,
            demand: policies.demand,
            bundle: args.cluster.bundle(&parts.bundle),
            published: parts.published.clone(),
            leadership: leadership.clone(),
            drain: drain.clone(),
            readiness: readiness.clone(),
            metrics: metrics.configuration(),
        });
        let lookup = Arc::new(related.clone());
        Self { serving, related, lookup, checker: policies.checker }
    }

    /// The policies in force.
    #[must_use]
    pub fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.serving)
    }

    /// Answers the look-ups of policies.
    #[must_use]
    pub fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::clone(&self.lookup)
    }

    /// Labels of a namespace, if they are watched and known.
    #[must_use]
    pub fn namespace_labels(&self, namespace: &str) -> Option<Arc<BTreeMap<String, String>>> {
        self.related.namespace_labels(namespace)
    }

    /// Everything that is wrong with an AdmissionPolicy, given as JSON text. The codes are listed
    /// in `sdk/admission-policy`.
    pub async fn check_admission_policy(&self, object: &[u8]) -> Vec<Finding> {
        self.checker.check(object).await
    }
}

impl ClusterArgs {
    fn limits(&self) -> Limits {
        let memory = usize::try_from(self.policy_mebibytes << 20);
        let default = Limits::default();
        Limits {
            time: Duration::from_millis(self.policy_milliseconds),
            memory: memory.unwrap_or(default.memory),
            ..default
        }
    }

    fn address(&self, namespace: &str, service: &str) -> Address {
        match &self.webhook_url {
            Some(url) => Address::Url(url.clone()),
            None => Address::Service { namespace: namespace.to_owned(), name: service.to_owned() },
        }
    }

    fn user(&self, namespace: &str) -> Option<String> {
        let account = &self.service_account;
        (!account.is_empty()).then(|| format!("system:serviceaccount:{namespace}:{account}"))
    }

    fn bundle(&self, own: &Bundle) -> Bundle {
        match &self.ca_bundle {
            Some(path) => follow_file(path.clone()),
            None => own.clone(),
        }
    }
}

/// The content of a bundle file, as it changes. One that is no bundle is not taken: the API
/// server would refuse the whole configuration.
fn follow_file(path: PathBuf) -> Bundle {
    const LOOK: Duration = Duration::from_secs(1);
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let mut timer = interval(LOOK);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut complained = false;
        while !sender.is_closed() {
            timer.tick().await;
            let content = tokio::fs::read_to_string(&path).await;
            match content.ok().filter(|text| text.contains("BEGIN CERTIFICATE")) {
                Some(text) => {
                    complained = false;
                    sender.send_if_modified(|before: &mut Option<Arc<str>>| {
                        let changed = before.as_deref() != Some(text.as_str());
                        if changed {
                            *before = Some(text.into());
                        }
                        changed
                    });
                }
                None if !complained => {
                    complained = true;
                    let path = path.display();
                    tracing::error!(%path, "no certificate in the CA bundle; the one before stays");
                }
                None => {}
            }
        }
    });
    receiver
}
