//! The folder that a user names with `--dir`: which files in it are ours, and whether a
//! sandbox runs there. Files of the user in the same folder are never touched.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::report::Report;
use crate::sandbox::{Owner, owner, write_private};

const KUBECONFIG: &str = "kubeconfig";
const REPORT: &str = "sandbox.json";
const SUPERVISOR_LOG: &str = "supervisor.log";
const DATA: &str = "data";

/// How long a sandbox may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// What can go wrong with the folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    #[error("use the folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("write {}: {reason}", path.display())]
    Write { path: PathBuf, reason: String },
    #[error("read {}: end the sandbox with `opensdn-sandbox down --dir {}`", path.display(), folder.display())]
    Report {
        path: PathBuf,
        folder: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("start a sandbox in {}: one runs there; end it with `opensdn-sandbox down --dir {}`", path.display(), path.display())]
    Running { path: PathBuf },
    #[error("end the sandbox of {} (process {process})", path.display())]
    End {
        path: PathBuf,
        process: i32,
        #[source]
        source: io::Error,
    },
}

/// How `down` found things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// It ran and has ended.
    Now(PathBuf),
    /// None ran; leftovers are removed.
    Before(PathBuf),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(path) => write!(f, "ended the sandbox of {}", path.display()),
            Self::Before(path) => write!(f, "no sandbox runs in {}", path.display()),
        }
    }
}

/// A folder that the user named.
pub(super) struct Place {
    path: PathBuf,
}

impl Place {
    pub(super) fn new(path: &Path) -> Result<Self, PlaceError> {
        let path = std::path::absolute(path)
            .map_err(|source| PlaceError::Folder { path: path.to_owned(), source })?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(super) fn supervisor_log(&self) -> PathBuf {
        self.path.join(SUPERVISOR_LOG)
    }

    /// Makes the folder, unless a sandbox runs there.
    pub(super) fn prepare(&self) -> Result<(), PlaceError> {
        if matches!(owner(&self.data()), Owner::Living { .. }) {
            return Err(PlaceError::Running { path: self.path.clone() });
        }
        self.make()
    }

    fn make(&self) -> Result<(), PlaceError> {
        fs::create_dir_all(&self.path)
            .map_err(|source| PlaceError::Folder { path: self.path.clone(), source })
    }

    /// Copies the kubeconfig to where the user expects it.
    pub(super) fn save_kubeconfig(&self, from: &Path) -> Result<PathBuf, PlaceError> {
        let to = self.path.join(KUBECONFIG);
        let text = fs::read_to_string(from)
            .map_err(|source| PlaceError::Folder { path: from.to_owned(), source })?;
        self.write(&to, &text)?;
        Ok(to)
    }

    pub(super) fn save_report(&self, report: &Report) -> Result<(), PlaceError> {
        let path = self.path.join(REPORT);
        let text = serde_json::to_string_pretty(report)
            .map_err(|error| PlaceError::Write { path: path.clone(), reason: error.to_string() })?;
        self.write(&path, &text)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), PlaceError> {
        write_private(path, text).map_err(|error| PlaceError::Write {
            path: path.into(),
            reason: opensdn_error_chain::error_chain(&error),
        })
    }

    /// What the sandbox that runs here has reported; none when none runs.
    pub(super) fn report(&self) -> Result<Option<Report>, PlaceError> {
        let path = self.path.join(REPORT);
        if !matches!(owner(&self.data()), Owner::Living { .. }) || !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path)
            .map_err(|source| PlaceError::Folder { path: path.clone(), source })?;
        let folder = self.path.clone();
        serde_json::from_str(&text).map(Some).map_err(|source| PlaceError::Report {
            path,
            folder,
            source,
        })
    }

    /// Ends the sandbox that runs here, if one does, and removes its files.
    pub(super) async fn end(&self) -> Result<Ended, PlaceError> {
        let Owner::Living { process } = owner(&self.data()) else {
            self.remove();
            return Ok(Ended::Before(self.path.clone()));
        };
        self.signal(process, Signal::TERM)?;
        let deadline = Instant::now() + GRACE;
        while self.is_in_use() && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
        if self.is_in_use() {
            // The kernel ends its programs with it.
            self.signal(process, Signal::KILL)?;
        }
        self.remove();
        Ok(Ended::Now(self.path.clone()))
    }

    /// Whether an owner lives, or is about to remove its data: the lock file goes before the
    /// folder that it is in.
    fn is_in_use(&self) -> bool {
        self.data().exists() && owner(&self.data()) != Owner::Dead
    }

    fn signal(&self, process: i32, signal: Signal) -> Result<(), PlaceError> {
        let sent = match Pid::from_raw(process) {
            Some(pid) => kill_process(pid, signal).map_err(io::Error::from),
            None => Err(io::Error::other("its lock file names no process")),
        };
        sent.map_err(|source| PlaceError::End { path: self.path.clone(), process, source })
    }

    /// Removes what is ours, and the folder when nothing else is in it.
    pub(super) fn remove(&self) {
        for name in [KUBECONFIG, REPORT, SUPERVISOR_LOG] {
            // It may never have been written.
            let _ = fs::remove_file(self.path.join(name));
        }
        if owner(&self.data()) == Owner::Dead {
            // What cannot be removed now, the next `up` removes.
            let _ = fs::remove_dir_all(self.data());
        }
        // Fails when files of the user are in it, as it should.
        let _ = fs::remove_dir(&self.path);
    }
}
