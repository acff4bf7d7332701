//! The command line: every flag can also be given by the environment variable that `--help` names.

use std::time::Duration;

use clap::{Parser, Subcommand};
use opensdn_runtime::admin::AdminArgs;
use opensdn_runtime::leader::ElectionArgs;
use opensdn_runtime::log::LogArgs;

use crate::probe::ProbeArgs;

/// Makes running OpenSDN components of their objects, and keeps them so.
///
/// Of several replicas one acts, by a Lease; the others know the cluster already when they take over. It
/// serves liveness, readiness and metrics by plain HTTP. On SIGTERM it finishes what is under way, for
/// ten seconds at most, releases the Lease and ends with code 0; where it lost the Lease it ends with code 1, to be started again.
#[derive(Clone, Debug, Parser)]
#[command(name = "opensdn-operator", version, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Other work than that of an operator.
    #[command(subcommand)]
    pub work: Option<Work>,

    /// Namespaces whose objects are looked after, separated by commas. Without it all.
    #[arg(
        long,
        env = "OPENSDN_OPERATOR_NAMESPACES",
        value_name = "NAMESPACES",
        value_delimiter = ','
    )]
    pub namespaces: Vec<String>,

    /// How many objects of a kind are worked on at once.
    #[arg(
        long,
        env = "OPENSDN_OPERATOR_CONCURRENCY",
        value_name = "COUNT",
        default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub concurrency: u16,

    /// For tests, and clusters whose nodes are simulated (kwok): what counts its own members is judged by its pods
    /// alone, as no container runs that could be asked. A pod that is ready is a member that serves.
    #[arg(long, env = "OPENSDN_OPERATOR_SIMULATED_PODS")]
    pub simulated_pods: bool,

    /// How often a cloud is compared with what NestedClusters and LinkLocalServices want of it.
    #[arg(
        long,
        env = "OPENSDN_OPERATOR_CLOUD_CHECK_INTERVAL",
        value_name = "TIME",
        default_value = "1m",
        value_parser = opensdn_duration::parse
    )]
    pub cloud_check_interval: Duration,

    /// How long the operator rests between two rounds in which it asks all daemons by introspect whether they work: 30s,
    /// unless pods are simulated. 0s: it does not ask them.
    #[arg(
        long,
        env = "OPENSDN_OPERATOR_INTROSPECT_INTERVAL",
        value_name = "TIME",
        value_parser = opensdn_duration::parse
    )]
    pub introspect_interval: Option<Duration>,

    /// How long a node has to be gone from the cluster, until it is registered no more in the Config API.
    #[arg(
        long,
        env = "OPENSDN_OPERATOR_FORGET_NODES_AFTER",
        value_name = "TIME",
        default_value = "10m",
        value_parser = opensdn_duration::parse
    )]
    pub forget_nodes_after: Duration,

    /// Where the admin port is.
    #[command(flatten)]
    pub admin: AdminArgs,

    /// Namespace of this process and of its Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = opensdn_deploy::names::operator::NAMESPACE)]
    pub namespace: String,

    /// Name of this replica, different from the others'.
    #[arg(long, env = "POD_NAME", default_value_t = default_replica())]
    pub replica: String,

    /// When the Lease is renewed and lost.
    #[command(flatten)]
    pub election: ElectionArgs,

    /// What is logged, and how.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Other work of the same program, so that nodes without internet need no other image.
#[derive(Clone, Debug, Subcommand)]
pub enum Work {
    /// Look at the node, and say in one JSON document what is seen: for `kubectl opensdn check --probe` and `nested verify`.
    Probe(ProbeArgs),
}

/// From the end of a round of introspect to the next.
const INTROSPECT_INTERVAL: Duration = Duration::from_secs(30);

impl Args {
    /// How often daemons are asked; nothing where they are not. Where pods are simulated there are none.
    #[must_use]
    pub fn introspect_interval(&self) -> Option<Duration> {
        let usual = (!self.simulated_pods).then_some(INTROSPECT_INTERVAL);
        self.introspect_interval.or(usual).filter(|interval| !interval.is_zero())
    }

    /// Where objects are watched: each namespace, or all, which is the empty one.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        let mut scopes = self.namespaces.clone();
        scopes.retain(|namespace| !namespace.is_empty());
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() { vec![String::new()] } else { scopes }
    }
}

fn default_replica() -> String {
    format!("opensdn-operator-{}", std::process::id())
}
