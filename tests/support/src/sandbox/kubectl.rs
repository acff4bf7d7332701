//! The real kubectl, run against the sandbox only. Deliberately not here: reading its output.

use std::io;
use std::path::Path;
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::access::AccessError;
use super::binaries::BinariesError;

/// Why kubectl could not be run.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// It is not among the programs.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// There is no kubeconfig for it.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The operating system did not run it, or did not pass its input or output on.
    #[error("run kubectl {arguments}")]
    Run {
        /// Its arguments.
        arguments: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

/// kubectl without anything of the caller's environment: its proxy, its default cluster, its
/// editor, its plugins.
pub(super) fn command(path: &Path, kubeconfig: &Path, folder: &Path) -> Command {
    let mut command = Command::new(path);
    command
        .env_clear()
        .env("HOME", folder)
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", "/usr/bin:/bin")
        // It ends before collecting garbage pays, which is a third of its time.
        .env("GOGC", "400")
        .kill_on_drop(true);
    command
}

/// Runs it with that input to its end.
pub(super) async fn run(
    mut command: Command,
    arguments: &[&str],
    input: &str,
) -> Result<Output, KubectlError> {
    let failed = |source| KubectlError::Run { arguments: arguments.join(" "), source };
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // A kubectl that does not read its input to the end closes the pipe: not an error.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    // Both at once: kubectl may write before it has read everything.
    let ((), output) = tokio::join!(write, child.wait_with_output());
    output.map_err(failed)
}
