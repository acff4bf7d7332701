//! The process that only writes the webhook configurations: admin port, Lease, and what is to be written
//! besides the rules. It reads what the replicas have made, and makes none of it.

use kube::Client;
use opensdn_deploy::names::configuration::LEADER_LEASE;
use opensdn_runtime::leader::{Election, Leadership};
use opensdn_runtime::process::Process;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::Phase;
use tokio::sync::watch;

use super::Error;
use crate::args::Args;
use crate::certificates::{self, Bundle};
use crate::configuration::bundle;
use crate::metrics::Metrics;
use crate::path_tokens::{PathToken, file, follow_secret};
use crate::wiring::ConfigurationContext;

/// Writes, by what `start` starts, until a signal says to stop.
///
/// # Errors
/// The admin port is taken, or the path tokens of a file cannot be read.
pub async fn run(
    args: Args,
    client: Client,
    start: impl FnOnce(ConfigurationContext),
) -> Result<(), Error> {
    let metrics = Metrics::new();
    let process =
        Process::start(&args.admin, metrics.registry(), args.limits.drain_seconds).await?;
    let (readiness, mut drain) = (process.readiness.clone(), process.drain.clone());
    let election = Election::new(&args.namespace, LEADER_LEASE, &args.replica);
    let leadership =
        Leadership::start_when_ready(client.clone(), election, readiness.clone(), drain.clone());
    let bundle = ca_bundle(&args, &client, &readiness);
    let path_token = tokio::select! {
        found = path_token(&args, &client, &readiness) => found?,
        () = drain.reached(Phase::Closing) => return Ok(()),
    };
    start(ConfigurationContext {
        args,
        client,
        metrics,
        readiness,
        leadership: leadership.clone(),
        drain: drain.clone(),
        bundle,
        path_token,
    });
    Ok(process.run(&leadership, drain.reached(Phase::Closing)).await?)
}

fn ca_bundle(args: &Args, client: &Client, readiness: &Readiness) -> Bundle {
    if let Some(path) = &args.configuration.ca_bundle {
        return bundle::follow_file(path.clone());
    }
    let waiting = readiness.add_check("certificate", "no replica has made a CA yet");
    let (namespace, name) = (&args.namespace, &args.certificate.ca_secret);
    certificates::follow_secret(client.clone(), namespace, name, waiting)
}

async fn path_token(
    args: &Args,
    client: &Client,
    readiness: &Readiness,
) -> Result<watch::Receiver<PathToken>, Error> {
    if let Some(path) = &args.callers.path_tokens {
        let tokens = file::follow(path.clone()).await.map_err(Error::PathTokens)?;
        return Ok(tokens.current());
    }
    let waiting = readiness.add_check("path-tokens", "no replica has made one yet");
    let (namespace, name) = (&args.namespace, &args.callers.path_secret);
    Ok(follow_secret(client.clone(), namespace, name, &waiting).await)
}
