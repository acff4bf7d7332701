//! The parts of the process that only writes the webhook configurations: policies as far as they say what
//! is to be reviewed, discovery, and the configurations. It has no review port, no claims, no lookups, and
//! is no replica of those that have.

use kube::Client;
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::Drain;
use tokio::sync::watch;

use crate::args::Args;
use crate::certificates::Bundle;
use crate::configuration::{self, Serving, WriterDeps};
use crate::metrics::Metrics;
use crate::path_tokens::PathToken;
use crate::policies::{self, engines::Engines};
use crate::replicas::ReadyReplicas;

/// What the parts are started from.
pub struct ConfigurationContext {
    /// The command line.
    pub args: Args,
    /// The API server.
    pub client: Client,
    /// Where to count.
    pub metrics: Metrics,
    /// Where each part adds its checks.
    pub readiness: Readiness,
    /// Whether this process is the one that writes.
    pub leadership: Leadership,
    /// When to stop.
    pub drain: Drain,
    /// What to write as `caBundle`.
    pub bundle: Bundle,
    /// What to write into the paths.
    pub path_token: watch::Receiver<PathToken>,
}

/// Starts them.
pub fn start(context: ConfigurationContext, engines: Engines) {
    let ConfigurationContext { args, client, metrics, readiness, leadership, drain, .. } = context;
    tokio::spawn(metrics.background().follow(leadership.clone()));
    let discovery = Discovery::start(client.clone(), args.lookup.staleness() / 3);
    let demand = policies::start_demand(policies::LoaderDeps {
        client: client.clone(),
        engines,
        folder: args.policies.policy_folder.clone(),
        limits: args.policies.limits(),
        metrics: metrics.clone(),
        readiness: readiness.clone(),
    });
    let deps = configuration::Deps {
        client: client.clone(),
        // Nothing here rotates anything.
        published: watch::channel(None).0,
        published_path: watch::channel(None).0,
        drain: drain.clone(),
        metrics: metrics.configuration(),
    };
    let replicas = ReadyReplicas::new(client.clone(), &args.namespace);
    let writer = WriterDeps {
        serving: Serving::Elsewhere(Box::new(replicas)),
        client,
        replica: args.replica.clone(),
        address: args.configuration.address(&args.namespace, &args.certificate.service),
        has_client_auth: args.certificate.client_ca.is_some(),
        namespace: args.namespace.clone(),
        user: args.configuration.user(&args.namespace),
        discovery,
        demand,
        bundle: context.bundle,
        path_token: context.path_token,
        leadership,
        drain,
        readiness,
        metrics: metrics.configuration(),
    };
    configuration::start(deps, Some(writer));
}
