//! Scripts of `tests/clients` that answer once, beside the control plane of a lab, from which every node is reached.
//! Deliberately not here: clients that write the whole time (`lab_client`).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failed;
use crate::sandbox::Sandbox;
use crate::sandbox::lab::Lab;

pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients");
/// Debian's, for which Debian packs the libraries.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Runs a script in that folder, which reads the input and prints its answer.
///
/// # Errors
/// It fails, or prints no JSON.
pub fn answer(lab: &Lab, script: &str, folder: &Path, input: &Value) -> Result<Value, Failed> {
    let mut command: Command = lab.beside_control_plane(Path::new(PYTHON));
    command.arg(format!("{FOLDER}/{script}")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    if let Some(mut to) = child.stdin.take() {
        to.write_all(input.to_string().as_bytes())?;
    }
    let said = child.wait_with_output()?;
    if !said.status.success() {
        return Err(format!("{script}: {}", String::from_utf8_lossy(&said.stderr)).into());
    }
    Ok(serde_json::from_slice(&said.stdout)?)
}

/// Has pods (`namespace/name`) have been made that much earlier. They are told by nothing else: it is as if that time had
/// passed since. Its times that are somewhere else stay as they are.
///
/// # Errors
/// The sandbox has no real nodes, or etcd has not all of them.
pub fn make_older(sandbox: &Sandbox, pods: &[String], by: Duration) -> Result<(), Failed> {
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    let input = json!({"seconds": by.as_secs(), "pods": pods});
    let found = answer(lab, "make_older.py", sandbox.data_folder(), &input)?;
    if found != pods.len() {
        return Err(format!("etcd has {found} of {pods:?}").into());
    }
    Ok(())
}
