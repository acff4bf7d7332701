//! `up`, and the supervisor that it leaves behind: a second process of this program that owns
//! the sandbox until it is asked to end. When it is killed, the kernel ends its programs.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{ExitCode, Stdio};

use opensdn_error_chain::error_chain;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::place::{Place, PlaceError};
use super::report::Started;
use super::{CommandError, Ending, Shape, say, start};
use crate::sandbox::lab::LabError;
use crate::sandbox::{Binaries, SandboxError};

/// Starts the supervisor and returns when the sandbox is ready.
pub(super) async fn up(place: &Place, shape: &Shape) -> Result<ExitCode, CommandError> {
    place.prepare()?;
    // Here and not in the background, so that the user sees what takes minutes.
    let binaries = Binaries::find(shape.kubernetes.as_deref()).await?;
    if shape.simulated_nodes > 0 {
        binaries.kwok().await?;
    }
    if shape.nodes > 0 {
        crate::sandbox::lab::available().map_err(LabError::from).map_err(SandboxError::from)?;
        Binaries::of_nodes().await?;
    }
    match launch(place, shape).await? {
        Started::Ready(report) => {
            say(&format!(
                "{report}\nend it with: opensdn-sandbox down --dir {}\n",
                place.path().display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Started::Failed(reason) => Err(CommandError::Background { reason }),
    }
}

async fn launch(place: &Place, shape: &Shape) -> Result<Started, CommandError> {
    let path = place.supervisor_log();
    let log = File::create(&path).map_err(|source| PlaceError::Folder { path, source })?;
    let program = std::env::current_exe().map_err(CommandError::Supervisor)?;
    let mut command = std::process::Command::new(program);
    command.args(["supervise".as_ref(), "--dir".as_ref(), place.path().as_os_str()]);
    if shape.nodes > 0 {
        command.arg(format!("--nodes={}", shape.nodes));
    } else {
        command.arg(format!("--simulated-nodes={}", shape.simulated_nodes));
    }
    command.args(shape.kubernetes.iter().map(|version| format!("--kubernetes={version}")));
    command.args(shape.product.then_some("--product"));
    command.args(shape.operator.then_some("--operator"));
    command.args(shape.config_api.then_some("--config-api"));
    command.args(shape.crds.then_some("--crds"));
    // Its own group: Ctrl-C in the terminal of `up` is not for it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).process_group(0);
    let mut supervisor = Command::from(command).spawn().map_err(CommandError::Supervisor)?;
    let Some(stdout) = supervisor.stdout.take() else {
        return Err(CommandError::Supervisor(io::ErrorKind::BrokenPipe.into()));
    };
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(started) = serde_json::from_str(&line) {
            return Ok(started);
        }
    }
    let log = place.supervisor_log();
    Ok(Started::Failed(format!("the supervisor ended; its log is {}", log.display())))
}

/// Owns a sandbox until SIGTERM. Reports to `up` on standard output how the start went.
pub(super) async fn supervise(place: &Place, shape: &Shape) -> Result<ExitCode, CommandError> {
    // The terminal of `up` may be closed while the sandbox is wanted.
    let _hangup = signal(SignalKind::hangup()).map_err(CommandError::Signals)?;
    let mut ending = Ending::listen()?;
    let started = tokio::select! {
        started = start(Some(place), shape) => started,
        // `down` while it starts: dropping the start ends what it has started.
        () = ending.asked_for() => return Ok(ExitCode::SUCCESS),
    };
    match started {
        Ok((running, report)) => {
            // When it cannot be written, `up` was killed, and no user knows of this sandbox.
            answer(&Started::Ready(Box::new(report)))?;
            running.keep(&mut ending).await?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            answer(&Started::Failed(error_chain(&error)))?;
            Err(error)
        }
    }
}

fn answer(started: &Started) -> Result<(), CommandError> {
    let line = serde_json::to_string(started)
        .map_err(|error| CommandError::Output(io::Error::other(error)))?;
    say(&format!("{line}\n"))
}
