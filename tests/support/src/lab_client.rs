//! A client of a service in the lab that writes the whole time and notes what was acknowledged, and reads it again. It
//! runs beside the control plane, from which every node is reached. Deliberately not here: what it says to the service
//! (`tests/clients`, with the libraries of Python that OpenSDN's own daemons use).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::Failed;
use crate::sandbox::lab::Lab;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients");
/// Debian's, for which Debian packs the libraries.
const PYTHON: &str = "/usr/bin/python3";
/// So long one reading may take.
const LIMIT: Duration = Duration::from_secs(120);
/// So much of its complaints is shown.
const SHOWN: usize = 15;

/// The client of one service.
pub struct LabClient {
    script: &'static str,
    hosts: Vec<String>,
    folder: TempDir,
    writer: Option<Child>,
}

impl Drop for LabClient {
    fn drop(&mut self) {
        self.end();
    }
}

impl LabClient {
    /// With a script of `tests/clients`, for a service on these addresses.
    ///
    /// # Errors
    /// No folder can be made for it.
    pub fn new(script: &'static str, hosts: Vec<String>) -> Result<Self, Failed> {
        Ok(Self { script, hosts, folder: TempDir::new()?, writer: None })
    }

    /// A file in its working folder, such as a certificate.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn give(&self, name: &str, content: &[u8]) -> Result<(), Failed> {
        Ok(fs::write(self.folder.path().join(name), content)?)
    }

    /// Starts writing.
    ///
    /// # Errors
    /// Python is missing.
    pub fn start(&mut self, lab: &Lab) -> Result<(), Failed> {
        let file = |name: &str| File::create(self.folder.path().join(name));
        let (acknowledged, complaints) = (file("acknowledged")?, file("complaints")?);
        let mut command = self.command(lab, "write", &self.hosts);
        command.stdin(Stdio::null()).stdout(acknowledged).stderr(complaints);
        self.writer = Some(command.spawn()?);
        Ok(())
    }

    fn command(&self, lab: &Lab, what: &str, hosts: &[String]) -> Command {
        let mut command = lab.beside_control_plane(Path::new(PYTHON));
        command.arg(format!("{FOLDER}/{}", self.script)).arg(what).args(hosts);
        command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(self.folder.path());
        command
    }

    /// What was acknowledged until now.
    #[must_use]
    pub fn acknowledged(&self) -> BTreeSet<u64> {
        let text = fs::read_to_string(self.folder.path().join("acknowledged")).unwrap_or_default();
        // The last line may not be whole.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// The last of what it complained about.
    #[must_use]
    pub fn complaints(&self) -> String {
        let text = fs::read_to_string(self.folder.path().join("complaints")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join("\n")
    }

    /// Ends writing. What was acknowledged last may not be noted.
    pub fn end(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.kill();
            let _ = writer.wait();
        }
    }

    /// What the service on these addresses has, as the script prints it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn read(&self, lab: &Lab, hosts: &[String]) -> Result<Value, Failed> {
        let reader = self.command(lab, "read", hosts);
        let mut command = Command::new("timeout");
        command.arg(LIMIT.as_secs().to_string()).arg(reader.get_program()).args(reader.get_args());
        let said = command.current_dir(self.folder.path()).stdin(Stdio::null()).output()?;
        if !said.status.success() {
            return Err(String::from_utf8_lossy(&said.stderr).into_owned().into());
        }
        Ok(serde_json::from_slice(&said.stdout)?)
    }
}
