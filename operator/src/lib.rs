//! The operator: makes running OpenSDN components of their objects, and keeps them so.
//!
//! ```text
//! controller   which objects are looked at, and when
//! reconcile    one pass over a component in five steps: fetch, validate, build, apply, status
//! manager      one pass over a Manager: an object for each of its services
//! upgrade      one pass over an Upgrade: images are set in its Manager, wave by wave
//! cloud        one pass over what is wanted of a cloud: NestedClusters, LinkLocalServices
//! build        the objects of a component, pure
//! component    what a component is to all this; components/ has one description for each kind
//! exec         runs programs in pods
//! peers        the components around one
//! release      of which releases images are
//! cache        what is known of the cluster, by watches
//! canary       which services an Upgrade holds at one pod
//! cluster      what the cluster says of itself: its API servers, its networks
//! kind         the kinds of objects that are read or made
//! object       what is read alike of objects of every kind; node and pod what is read of those
//! network      which addresses are in which networks
//! introspect   what daemons say of themselves
//! ensemble     a service that counts its members: what is asked of it, which step comes next; ensembles/ has one client each
//! template     files of daemons, rendered
//! names        what objects, labels and annotations are called
//! report       conditions and Events
//! under_way    which passes have not ended
//! metrics      what /metrics shows
//! quantity     amounts of bytes, as Kubernetes writes them
//! probe        looks at the node for `kubectl opensdn check --probe`: other work of the same program
//! args         flags
//! ```

#![warn(missing_docs)]

pub mod args;
pub mod build;
pub mod cache;
mod canary;
pub mod cloud;
pub mod cluster;
pub mod component;
pub mod components;
pub mod controller;
pub mod ensemble;
pub mod ensembles;
pub mod exec;
mod gone;
pub mod introspect;
pub mod kind;
pub mod manager;
pub mod metrics;
pub mod names;
pub mod network;
pub mod node;
pub mod object;
pub mod peers;
pub mod pod;
pub mod probe;
pub mod progress;
pub mod quantity;
pub mod reconcile;
pub mod release;
pub mod report;
pub mod services;
pub mod template;
mod under_way;
pub mod upgrade;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use opensdn_runtime::apply::Context as Writer;
use opensdn_runtime::client::{ClientError, client, client_while};
use opensdn_runtime::events::Events;
use opensdn_runtime::leader::{Election, Leadership, OnLoss, TimingError};
use opensdn_runtime::process::{self, Process};
use opensdn_runtime::{error_chain, log};

pub use args::{Args, Work};
use cache::Cache;
use cloud::Clouds;
use controller::{Controllers, Shared};
use ensembles::simulated::Simulated;
use introspect::Introspect;
use metrics::Metrics;
use reconcile::Context;
use report::Reporter;
use template::{TemplateError, Templates};
use under_way::UnderWay;
use upgrade::Upgrades;

/// The Lease by which one replica acts.
pub const LEASE: &str = opensdn_deploy::names::operator::LEADER_LEASE;
/// Nothing is in flight that others wait for: the Lease is released at once.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Why the operator could not start, or had to end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Process(#[from] process::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Templates(#[from] TemplateError),
    #[error(transparent)]
    Election(#[from] TimingError),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(error) => error.hint(),
            Self::Client(error) => Some(error.hint()),
            Self::Templates(_) | Self::Election(_) => None,
        }
    }
}

/// What the binary does.
#[tokio::main]
pub async fn main() -> ExitCode {
    let args = Args::parse();
    log::start(&args.log);
    if let Some(Work::Probe(args)) = &args.work {
        return probe::run(args).await;
    }
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = error_chain(&error), hint = error.hint(), "stopped");
            ExitCode::FAILURE
        }
    }
}

/// In the place of members that could be asked.
fn simulated(args: &Args) -> Option<Simulated> {
    args.simulated_pods.then(|| {
        tracing::warn!(
            "started for simulated pods: members of services are judged by their pods alone"
        );
        Simulated::default()
    })
}

/// Reconciles until a signal says to stop.
///
/// # Errors
/// Something that is needed from the start is missing, or the Lease was lost.
pub async fn run(args: Args) -> Result<(), Error> {
    let election = Election {
        on_loss: OnLoss::End,
        timing: args.election.timing()?,
        ..Election::new(&args.namespace, LEASE, &args.replica)
    };
    let (metrics, registry) = Metrics::new();
    let process = Process::start(&args.admin, Arc::new(registry), DRAIN_TIME).await?;
    let (readiness, drain) = (process.readiness.clone(), process.drain.clone());
    let client = client().await?;
    let cache = Arc::new(Cache::default());
    let controllers = Controllers::watch(&client, &cache, &args.scopes(), &readiness, &metrics);
    let leadership = Leadership::start_when_ready(client, election, readiness, drain.clone());
    let leads = leadership.clone();
    let client = client_while(move || leads.may_write()).await?;
    let writer = Writer::new(client.clone(), names::OPERATOR);
    let events = Events::new(client.clone(), names::OPERATOR, &args.replica);
    let (interval, forget_after) = (args.cloud_check_interval, args.forget_nodes_after);
    let clouds = Clouds::new(client.clone(), leadership.clone(), interval, forget_after);
    let upgrades = Upgrades::new(client.clone());
    let ctx = Context {
        reporter: Reporter::new(writer.clone(), events),
        writer,
        client,
        cache,
        templates: Templates::new(components::templates())?,
        metrics,
        settled: reconcile::members::Settled::default(),
        introspect: Introspect::new(args.introspect_interval()),
        leadership: leadership.clone(),
        simulated: simulated(&args),
    };
    let under_way = UnderWay::default();
    let shared = Arc::new(Shared { ctx, clouds, upgrades, under_way });
    let work = controllers.run(shared, leadership.clone(), drain, args.concurrency);
    Ok(process.run(&leadership, work).await?)
}
