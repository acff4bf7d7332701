//! Replaces a component of OpenSDN in the lab, where its own image cannot be had: reads the
//! configuration that was rendered for it, refuses what the component could not live with, opens
//! its ports, connects to what it needs, and says in introspect how it is. It does nothing of what
//! the component is for; only link-local services, which pods are to reach, are led to the fabric (`link_local`).

mod certificates;
mod component;
mod components;
mod configuration;
mod connections;
mod greetings;
mod introspect;
pub mod link_local;
mod plan;
mod ports;
mod state;

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::component::Endpoint;
use crate::components::COMPONENTS;
use crate::configuration::Configuration;
use crate::plan::Plan;
use crate::ports::Served;
use crate::state::State;

/// The components with the ports that they open unless their configuration says others.
pub fn usual_ports() -> impl Iterator<Item = (&'static str, Vec<u16>)> {
    COMPONENTS.iter().map(|component| {
        let ports = component.ports.iter().filter_map(|port| match port.endpoint {
            Endpoint::Fixed(number) => Some(number),
            Endpoint::Keys { otherwise, .. } => otherwise,
            Endpoint::Joined(_) | Endpoint::Worded(_) => None,
        });
        (component.name, ports.collect())
    })
}

/// A configuration that is refused, as is a wrong command line.
const REFUSED: u8 = 2;
/// What may still be under way at the end: a name that is being resolved, say.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// Stands in for a component of OpenSDN.
#[derive(Debug, Parser)]
#[command(name = "opensdn-stand-in", version)]
pub struct Arguments {
    /// Which, by the name of its container
    #[arg(value_parser = PossibleValuesParser::new(COMPONENTS.iter().map(|it| it.name)))]
    component: String,
    /// A file of its configuration; the later goes over the earlier
    #[arg(long = "config", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Seconds between two questions to one server
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    ask_every: u64,
}

/// Why there is no stand-in.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Configuration(#[from] configuration::Error),
    #[error(transparent)]
    Ports(#[from] ports::Error),
    #[error("start")]
    Start(#[source] io::Error),
}

/// Runs until a signal ends it: exit code 0; 2 for a configuration that is refused, 1 for what the
/// host did not give.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    match stand_in(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If it is closed, the exit code still says it.
            let _ = writeln!(io::stderr(), "{}: {}", arguments.component, chain(&error));
            match error {
                Error::Configuration(_) => ExitCode::from(REFUSED),
                Error::Ports(_) | Error::Start(_) => ExitCode::FAILURE,
            }
        }
    }
}

/// Reads a configuration, and opens nothing: whether the component could live with it.
///
/// # Errors
/// What is wrong with it, or there is no such component.
pub fn read(component: &str, file: &std::path::Path) -> Result<(), String> {
    let component = components::named(component).ok_or("there is no stand-in of that name")?;
    let configuration = Configuration::read(component.format, &[file.to_owned()]);
    let configuration = configuration.map_err(|error| chain(&error))?;
    Plan::of(component, &configuration).map(drop).map_err(|error| chain(&error))
}

fn stand_in(arguments: &Arguments) -> Result<(), Error> {
    // The command line takes no other name.
    let Some(component) = components::named(&arguments.component) else { return Ok(()) };
    let configuration = Configuration::read(component.format, &arguments.files)?;
    let plan = Plan::of(component, &configuration).map_err(configuration::Error::from)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Start)?;
    let served = runtime.block_on(serve(plan, Duration::from_secs(arguments.ask_every)));
    runtime.shutdown_timeout(LAST_MOMENT);
    served
}

async fn serve(plan: Plan, pause: Duration) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Start)?;
    let state = Arc::new(State::of(&plan));
    let served =
        Served { component: plan.component, worker: plan.worker, state: Arc::clone(&state) };
    ports::open(plan.listeners, Arc::new(served)).await?;
    connections::announce(&state::down(&state.connections()));
    connections::keep_asking(plan.connections, pause, &state);
    tokio::select! {
        _ = terminate.recv() => say("ends on SIGTERM"),
        _ = interrupt.recv() => say("ends on SIGINT"),
    }
    Ok(())
}

/// One line to standard output.
fn say(line: &str) {
    // A closed one is not an error.
    let _ = writeln!(io::stdout(), "{line}");
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
