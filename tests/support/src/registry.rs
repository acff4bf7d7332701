//! A registry of images that is not ours: go-containerregistry's, on this machine, with TLS or without, with a login or
//! without. What it was asked is known.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::Failed;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../registry/build.sh");

/// How it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegistryOptions<'o> {
    /// Files with a certificate and its key: with TLS.
    pub tls: Option<(&'o Path, &'o Path)>,
    /// `NAME:PASSWORD` that is wanted.
    pub login: Option<&'o str>,
    /// Whether the login gets a token, instead of being sent each time.
    pub by_token: bool,
    /// A folder with what is sent instead of blobs, by the digits of their digests.
    pub instead: Option<&'o Path>,
}

/// A registry that runs until it is dropped.
pub struct Registry {
    process: Child,
    address: String,
    /// What it writes before it answers: a file and not a pipe, so that who has an answer finds its request here.
    log: File,
    /// How much of the log was given.
    given: Mutex<u64>,
}

impl Registry {
    /// Starts one; builds it, if that was not done.
    ///
    /// # Errors
    /// It does not build, or does not start.
    pub fn start(options: &RegistryOptions<'_>) -> Result<Self, Failed> {
        let built = Command::new(BUILD).stderr(Stdio::inherit()).output()?;
        let program = String::from_utf8(built.stdout)?;
        let mut command = Command::new(program.trim());
        if let Some((certificate, key)) = options.tls {
            command.arg("-cert").arg(certificate).arg("-key").arg(key);
        }
        if let Some(login) = options.login {
            command.args(["-login", login]).arg(format!("-token={}", options.by_token));
        }
        if let Some(folder) = options.instead {
            command.arg("-instead").arg(folder);
        }
        let log = tempfile::tempfile()?;
        let mut process = command.stdout(Stdio::piped()).stderr(log.try_clone()?).spawn()?;
        let out = process.stdout.take();
        let mut address = String::new();
        BufReader::new(out.ok_or("the registry has no output")?).read_line(&mut address)?;
        let address = address.trim().to_owned();
        if address.is_empty() {
            return Err(format!("the registry did not start: {:?}", process.wait()?).into());
        }
        Ok(Self { process, address, log, given: Mutex::default() })
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What it was asked since the last time, as `METHOD PATH`.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub fn requests(&self) -> Result<Vec<String>, Failed> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let length = self.log.metadata()?.len().saturating_sub(*given);
        let mut written = vec![0; usize::try_from(length)?];
        self.log.read_exact_at(&mut written, *given)?;
        *given += length;
        let lines = String::from_utf8_lossy(&written);
        Ok(lines
            .lines()
            .filter_map(|line| line.strip_prefix("request "))
            .map(str::to_owned)
            .collect())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It is gone already, or goes now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
