//! The command line of `opensdn-sandbox`: `up`, `down`, `status`, and the foreground.
//! Deliberately not here: what a sandbox is (`sandbox`) and what the product is (`product`).

mod background;
mod place;
mod report;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use opensdn_error_chain::error_chain;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Failed;
use crate::config_api::{FakeConfigApi, Settings, WorkedExample};
use crate::installer::{InstallError, install_crds};
use crate::lab_product::{Build, LabProduct, LabProductError};
use crate::operator::Operator;
use crate::product::{Installation, Product, ProductError};
use crate::sandbox::lab::{self, Lab, LabError};
use crate::sandbox::{
    AccessError, BinariesError, Builder, KUBERNETES_VARIABLE, Sandbox, SandboxError,
};
use place::{Place, PlaceError};
use report::Report;

const EXAMPLES: &str = "\
Examples:
  opensdn-sandbox                                     run until Ctrl-C
  opensdn-sandbox up --dir /tmp/try --simulated-nodes 3
  opensdn-sandbox up --dir /tmp/try --nodes 3         real nodes; Linux, root
  KUBECONFIG=/tmp/try/kubeconfig kubectl get nodes
  opensdn-sandbox down --dir /tmp/try

The programs come from the folder named by KUBEBUILDER_ASSETS when it is set, else from the
cache ($XDG_CACHE_HOME/opensdn/control-plane), else they are built from pinned Go modules,
which takes about five minutes, once. Everything listens on 127.0.0.1 only, and ends with the
sandbox.";

/// A real Kubernetes control plane on this machine: etcd, kube-apiserver,
/// kube-controller-manager, kube-scheduler, and nodes that kwok simulates or that are real.
///
/// Without a command it runs in the foreground until Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "opensdn-sandbox", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Folder for kubeconfig, data and logs [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a sandbox in the background; returns when it is ready
    Up {
        #[command(flatten)]
        place: Dir,
        #[command(flatten)]
        shape: Shape,
    },
    /// End the sandbox of a folder and remove what it left
    Down {
        #[command(flatten)]
        place: Dir,
    },
    /// Report whether the sandbox of a folder runs; exit code 1 when it does not
    Status {
        #[command(flatten)]
        place: Dir,
    },
    /// Report whether this machine can have real nodes; exit code 1 and why when it cannot
    #[command(hide = true)]
    LabCheck,
    /// What `up` leaves in the background
    #[command(hide = true)]
    Supervise {
        #[command(flatten)]
        place: Dir,
        #[command(flatten)]
        shape: Shape,
    },
}

#[derive(Debug, Args)]
struct Dir {
    /// Folder for kubeconfig, data and logs
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// What the sandbox shall be like.
#[derive(Debug, Clone, Args)]
struct Shape {
    /// Install OpenSDN too: CRDs, webhook and built-in policies
    #[arg(long)]
    product: bool,
    /// Install OpenSDN's CRDs only: for tests of schemas
    #[arg(long, hide = true, conflicts_with = "product")]
    crds: bool,
    /// Install the operator too: what is applied becomes pods on the nodes
    #[arg(long, requires = "product")]
    operator: bool,
    /// Have a fake of the underlay's Config API too, for nested mode: simulated nodes are VMs of its cloud
    #[arg(long, conflicts_with = "nodes")]
    config_api: bool,
    /// How many nodes to simulate; pods on them become Running, nothing runs
    #[arg(long, value_name = "N", default_value_t = 0)]
    simulated_nodes: u32,
    /// How many real nodes to have, which run containers; needs Linux and root
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "simulated_nodes")]
    nodes: u8,
    /// Kubernetes version, such as 1.33, 1.35 or 1.36 [default: 1.35]
    #[arg(long, value_name = "VERSION", env = KUBERNETES_VARIABLE)]
    kubernetes: Option<String>,
}

impl Shape {
    fn builder(&self) -> Builder {
        let builder =
            Sandbox::builder().simulated_nodes(self.simulated_nodes).real_nodes(self.nodes);
        match &self.kubernetes {
            Some(version) => builder.kubernetes(version),
            None => builder,
        }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Product(#[from] ProductError),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    LabProduct(#[from] LabProductError),
    #[error("install the operator")]
    Operator(#[source] Failed),
    #[error("start the fake of the Config API")]
    ConfigApi(#[source] Failed),
    #[error("start the supervisor in the background")]
    Supervisor(#[source] io::Error),
    #[error("start the sandbox: {reason}")]
    Background { reason: String },
    #[error("wait for signals")]
    Signals(#[source] io::Error),
    #[error("write to standard output")]
    Output(#[source] io::Error),
}

/// The command line with its help.
#[must_use]
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// Runs the command line of this process. Errors go to standard error, with their causes.
pub async fn main() -> ExitCode {
    match run(CommandLine::parse()).await {
        Ok(code) => code,
        Err(error) => {
            // Standard error may be closed; the exit code is enough then.
            let _ = writeln!(io::stderr(), "opensdn-sandbox: failed to {}", error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(line: CommandLine) -> Result<ExitCode, CommandError> {
    match line.command {
        None => foreground(line.dir, &line.shape).await,
        Some(Command::Up { place, shape }) => {
            background::up(&Place::new(&place.dir)?, &shape).await
        }
        Some(Command::Supervise { place, shape }) => {
            background::supervise(&Place::new(&place.dir)?, &shape).await
        }
        Some(Command::LabCheck) => {
            lab::available().map_err(LabError::from).map_err(SandboxError::from)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Down { place }) => {
            let ended = Place::new(&place.dir)?.end().await?;
            say(&format!("{ended}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Status { place }) => status(&Place::new(&place.dir)?),
    }
}

async fn foreground(dir: Option<PathBuf>, shape: &Shape) -> Result<ExitCode, CommandError> {
    let mut ending = Ending::listen()?;
    let place = dir.as_deref().map(Place::new).transpose()?;
    tokio::select! {
        started = start(place.as_ref(), shape) => {
            let (running, report) = started?;
            say(&format!("{report}\nCtrl-C ends it.\n"))?;
            running.keep(&mut ending).await?;
        }
        // Dropping the start ends what it has started.
        () = ending.asked_for() => {}
    }
    if let Some(place) = place {
        place.remove();
    }
    Ok(ExitCode::SUCCESS)
}

fn status(place: &Place) -> Result<ExitCode, CommandError> {
    match place.report()? {
        Some(report) => {
            say(&format!("{report}"))?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            say(&format!("no sandbox runs in {}\n", place.path().display()))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A sandbox and the product beside it, if that does not run in pods; the product ends first.
struct Running {
    _operator: Option<Operator>,
    _product: Option<Product>,
    _config_api: Option<FakeConfigApi>,
    sandbox: Sandbox,
}

impl Running {
    /// Keeps everything up until a signal comes or a program ends by itself.
    async fn keep(self, ending: &mut Ending) -> Result<(), CommandError> {
        tokio::select! {
            () = ending.asked_for() => Ok(()),
            error = self.sandbox.broken() => Err(error.into()),
        }
    }
}

async fn start(place: Option<&Place>, shape: &Shape) -> Result<(Running, Report), CommandError> {
    let started = std::time::Instant::now();
    let builder = match place {
        Some(place) => shape.builder().data_folder(place.data()),
        None => shape.builder(),
    };
    let sandbox = builder.start().await?;
    let mut product = None;
    if shape.product && shape.nodes > 0 {
        LabProduct::install(&sandbox, Build::Release).await?;
    } else if shape.product {
        product = Some(Installation::beside_this_program()?.install(&sandbox).await?);
    } else if shape.crds {
        install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    }
    let operator = match shape.operator {
        true => Some(Operator::install(&sandbox, 1).await.map_err(CommandError::Operator)?),
        false => None,
    };
    let config_api = shape.config_api.then(config_api).transpose()?;
    let kubeconfig = match place {
        Some(place) => place.save_kubeconfig(&sandbox.kubeconfig())?,
        None => sandbox.kubeconfig(),
    };
    let report = Report {
        versions: sandbox.versions().await,
        api_server: sandbox.api_server_url().to_owned(),
        kubeconfig,
        kubectl: sandbox.kubectl_path().ok(),
        logs: sandbox.data_folder().join("logs"),
        simulated_nodes: shape.simulated_nodes,
        nodes: sandbox.lab().map(Lab::places).unwrap_or_default(),
        product: shape.product,
        operator: shape.operator,
        config_api: config_api.as_ref().map(|fake| fake.url().to_owned()),
        ready_after_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    if let Some(place) = place {
        place.save_report(&report)?;
    }
    let running =
        Running { _operator: operator, _product: product, _config_api: config_api, sandbox };
    Ok((running, report))
}

/// A cloud without logins that has the simulated nodes as VMs.
fn config_api() -> Result<FakeConfigApi, CommandError> {
    let start = || -> Result<FakeConfigApi, Failed> {
        let fake = FakeConfigApi::start(Settings::default())?;
        WorkedExample::fill_for_simulated_nodes(&fake)?;
        Ok(fake)
    };
    start().map_err(CommandError::ConfigApi)
}

/// Ctrl-C or SIGTERM, listened for from the beginning: one that comes before would be
/// lost, or end the program with its data left behind.
struct Ending {
    interrupt: Signal,
    terminate: Signal,
}

impl Ending {
    fn listen() -> Result<Self, CommandError> {
        let listen = |kind| signal(kind).map_err(CommandError::Signals);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn asked_for(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn say(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CommandError::Output)
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_consistent() {
        super::command().debug_assert();
    }
}
