//! A client of a service in the lab that writes the whole time and notes what was acknowledged when, and reads it again.
//! It runs beside the control plane, from which every node is reached. Deliberately not here: what it says to the service
//! (`tests/clients`, with the libraries of Python that OpenSDN's own daemons use).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::Failed;
use crate::lab_script::{FOLDER, PYTHON};
use crate::sandbox::lab::Lab;

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

    /// A file in its working folder, such as a certificate: at once, also where it reads another of that name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn give(&self, name: &str, content: &[u8]) -> Result<(), Failed> {
        let file = |name: &str| self.folder.path().join(name);
        fs::write(file("next"), content)?;
        Ok(fs::rename(file("next"), file(name))?)
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
        acknowledgements(&self.noted()).map(|(number, _)| number).collect()
    }

    /// The longest that it waited for an acknowledgement, without the first so many. Its wait now, if it waits, does not
    /// count.
    #[must_use]
    pub fn longest_wait(&self, without: usize) -> Duration {
        let noted = self.noted();
        let times: Vec<f64> =
            acknowledgements(&noted).skip(without).map(|(_, time)| time).collect();
        let waits = times.windows(2).map(|pair| match pair {
            [one, next] => next - one,
            _ => 0.0,
        });
        Duration::from_secs_f64(waits.fold(0.0, f64::max))
    }

    fn noted(&self) -> String {
        fs::read_to_string(self.folder.path().join("acknowledged")).unwrap_or_default()
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

/// Each number with its time in seconds, in their order.
fn acknowledgements(noted: &str) -> impl Iterator<Item = (u64, f64)> {
    // The last line may not be whole.
    let whole = noted.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| {
        let (number, time) = line.split_once(' ')?;
        Some((number.parse().ok()?, time.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_between_two_acknowledgements() -> Result<(), Failed> {
        let client = LabClient::new("none.py", Vec::new())?;
        client.give("acknowledged", b"0 10.0\n1 19.5\n2 20.0\n3 22.5\n4 23")?;
        assert_eq!(client.acknowledged(), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(client.longest_wait(0), Duration::from_millis(9500));
        assert_eq!(client.longest_wait(1), Duration::from_millis(2500));
        assert_eq!(client.longest_wait(3), Duration::ZERO);
        Ok(())
    }
}
