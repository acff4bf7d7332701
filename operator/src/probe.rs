//! `probe`: looks at the node that it runs on and says in one JSON document what it sees, for `kubectl opensdn check
//! --probe` and `nested verify`. The node's files are below a folder, so that tests give it another node. Nothing is
//! written on the node: a port is bound for a moment, everything else is read. What is asked of others, and by peers, is
//! in `services`, `targets`, `names`, `listen`, `matrix` and `speed`. It knows no Kubernetes and needs no rights there. Deliberately
//! not here: whether what is seen is good (the plugin judges).

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use opensdn_node_probe::{FORMAT, KIND, Names, NodeFindings, Seen, Tick, Wanted};
use opensdn_runtime::shutdown::Signals;
use tokio::time::sleep;

mod checksums;
mod clock;
mod cni;
mod devices;
mod firewall;
mod host;
mod huge_pages;
mod interfaces;
mod kernel;
mod listen;
mod matrix;
mod modules;
mod names;
mod ports;
mod routes;
mod services;
mod settings;
mod sockets;
mod speed;
mod storage;
mod targets;
#[cfg(test)]
mod tests;

pub use host::Host;

/// The clock is written so often after the answer: who reads it compares nodes by that.
const TICKS: u32 = 60;
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// Arguments of `probe`.
#[derive(Clone, Debug, Args)]
pub struct ProbeArgs {
    /// What to look for: the JSON document that the plugin writes.
    #[arg(long, env = "OPENSDN_PROBE_WANTED", hide_env_values = true, value_name = "JSON", value_parser = wanted)]
    wanted: Wanted,

    /// The folder below which the files of the node are: /proc, /sys, /etc, /usr, /var/lib.
    #[arg(long, default_value = "/", value_name = "FOLDER")]
    root: PathBuf,

    /// The addresses of the node, on which ports are tried.
    #[arg(long, env = "OPENSDN_PROBE_ADDRESSES", value_name = "ADDRESSES", value_delimiter = ',')]
    addresses: Vec<IpAddr>,

    /// After the answer stay until a signal, as a pod that ends would be started again. The clock is written for half a
    /// minute; then nothing is done any more.
    #[arg(long)]
    stay: bool,
}

fn wanted(text: &str) -> Result<Wanted, String> {
    let wanted: Wanted = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if wanted.format != FORMAT {
        let format = wanted.format;
        return Err(format!("has format {format}, and this release knows format {FORMAT}"));
    }
    Ok(wanted)
}

/// Answers, and stays if that is wanted.
pub(crate) async fn run(args: &ProbeArgs) -> ExitCode {
    match answer_and_stay(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = "the answer goes to standard output: is it still there?";
            tracing::error!(error = %error, hint, "failed to answer");
            ExitCode::FAILURE
        }
    }
}

async fn answer_and_stay(args: &ProbeArgs) -> io::Result<()> {
    // As PID 1 of a container it would otherwise not end by a signal.
    let mut signals = Signals::install()?;
    let host = Host::below(&args.root);
    let mut findings = look(&host, &args.wanted, &args.addresses);
    ask(&host, &args.wanted, &mut findings).await;
    line(&serde_json::to_string(&findings)?)?;
    if !args.stay {
        return Ok(());
    }
    tokio::select! {
        () = signals.next() => Ok(()),
        written = write_the_clock() => {
            written?;
            signals.next().await;
            Ok(())
        }
    }
}

async fn write_the_clock() -> io::Result<()> {
    for _ in 0..TICKS {
        line(&serde_json::to_string(&Tick { clock: clock::now() })?)?;
        sleep(TICK_INTERVAL).await;
    }
    Ok(())
}

fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// What is seen of the node.
#[must_use]
pub fn look(host: &Host, wanted: &Wanted, addresses: &[IpAddr]) -> NodeFindings {
    NodeFindings {
        kind: KIND.to_owned(),
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        addresses: addresses.to_vec(),
        ports: ports::look(host, &wanted.ports, addresses),
        kernel: kernel::look(host, &wanted.module),
        interfaces: interfaces::look(host).into(),
        routes: routes::look(host, &wanted.networks, addresses).into(),
        cni: cni::look(host).into(),
        directories: storage::look(host, &wanted.directories),
        huge_pages: huge_pages::look(host).into(),
        sysctls: settings::sysctls(host, &wanted.sysctls),
        swaps: settings::swaps(host).into(),
        synchronised: clock::is_synchronised().into(),
        firewall: firewall::look(host).into(),
        modules: modules::look(host, &wanted.modules),
        names: Names::default(),
        services: Vec::new(),
        listens: None,
        local: Some(routes::local(host, &wanted.networks).into()),
        devices: Some(devices::look(host).into()),
        targets: Vec::new(),
        matrix: None,
        sink: None,
        speed: None,
    }
}

/// What others answer, and what peers are to reach: it listens before it answers, so that they find it.
async fn ask(host: &Host, wanted: &Wanted, findings: &mut NodeFindings) {
    if let Some(wanted) = &wanted.listen {
        findings.listens = Some(Seen::from(listen::start(wanted).await));
    }
    if let Some(wanted) = &wanted.sink {
        findings.sink = Some(Seen::from(speed::take(wanted).await));
    }
    findings.names = names::look(host, &wanted.names).await;
    findings.services = services::ask(&wanted.services).await;
    findings.targets = targets::look(&wanted.targets).await;
    if let Some(wanted) = &wanted.matrix {
        findings.matrix = Some(Seen::from(matrix::look(wanted, &findings.addresses).await));
    }
    if let Some(wanted) = &wanted.speed {
        findings.speed = Some(Seen::from(speed::measure(wanted).await));
    }
}
