//! The folder a sandbox keeps its data in, whose it is, and the sweeping of folders whose
//! owner was killed. Deliberately not here: processes, which the kernel ends with the owner
//! (see `program`).

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The file whose lock a living owner holds. The kernel releases it with the process.
const OWNER: &str = "owner.lock";
/// Held while folders are made and swept, so that no folder is swept half made.
const GUARD: &str = "sweep.lock";

/// What can go wrong with the folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It could not be made or locked.
    #[error("prepare the data folder {}", path.display())]
    Prepare {
        /// The folder or the file in it.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
    /// Another sandbox lives in it.
    #[error("use {}: a running sandbox owns it", path.display())]
    Owned {
        /// The folder.
        path: PathBuf,
    },
    /// It holds something else.
    #[error("use {}: it exists and is not the data folder of a sandbox", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
}

/// A folder that is ours until it is dropped; then it is removed.
pub(super) struct DataFolder {
    path: PathBuf,
    remove: bool,
    _owner: File,
}

impl DataFolder {
    /// A new folder below the user's cache. Sweeps what killed sandboxes left there.
    pub(super) fn new() -> Result<Self, FolderError> {
        let base = base();
        make(&base)?;
        let guard_file = base.join(GUARD);
        let guard = File::create(&guard_file).map_err(at(&guard_file))?;
        guard.lock().map_err(at(&guard_file))?;
        sweep(&base);
        let path = tempfile::Builder::new()
            .prefix("sandbox-")
            .tempdir_in(&base)
            .map_err(at(&base))?
            .keep();
        Self::occupy(path)
    }

    /// The given folder, which must not exist or must have been left by a dead sandbox.
    pub(super) fn at(path: &Path) -> Result<Self, FolderError> {
        // Absolute, for the programs run in it and get paths below it as arguments.
        let path = &std::path::absolute(path).map_err(at(path))?;
        if path.exists() {
            match owner(path) {
                Owner::Living { .. } => return Err(FolderError::Owned { path: path.to_owned() }),
                Owner::None => return Err(FolderError::Foreign { path: path.to_owned() }),
                Owner::Dead => fs::remove_dir_all(path).map_err(at(path))?,
            }
        }
        make(path)?;
        Self::occupy(path.to_owned())
    }

    fn occupy(path: PathBuf) -> Result<Self, FolderError> {
        let file = path.join(OWNER);
        // Not truncated before it is locked: it may be another owner's.
        let mut owner = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&file)
            .map_err(at(&file))?;
        owner.try_lock().map_err(|_| FolderError::Owned { path: path.clone() })?;
        owner
            .set_len(0)
            .and_then(|()| write!(owner, "{}", std::process::id()))
            .map_err(at(&file))?;
        for part in ["logs", "keys", "etcd", "kubeconfigs"] {
            make(&path.join(part))?;
        }
        Ok(Self { path, remove: true, _owner: owner })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder for reading when it is dropped. The next start sweeps it.
    pub(super) fn leave(&mut self) {
        self.remove = false;
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.remove {
            // The mark that the folder is a sandbox's goes last: one that is half removed
            // when we are killed can still be swept. So can what cannot be removed now.
            for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
                let path = entry.path();
                let _ = match path.is_dir() {
                    true => fs::remove_dir_all(&path),
                    false if entry.file_name() == OWNER => Ok(()),
                    false => fs::remove_file(&path),
                };
            }
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Who owns a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No sandbox ever did.
    None,
    /// A process that lives; its id is 0 while it has not written it yet.
    Living {
        /// Its id.
        process: i32,
    },
    /// A process that is gone.
    Dead,
}

/// Finds out who owns the folder.
pub(crate) fn owner(folder: &Path) -> Owner {
    let path = folder.join(OWNER);
    let Ok(file) = File::open(&path) else { return Owner::None };
    match file.try_lock_shared() {
        Ok(()) => Owner::Dead,
        // Also when the lock cannot be asked for: better a folder too many than one removed
        // under its owner.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {
            let written = fs::read_to_string(&path).unwrap_or_default();
            Owner::Living { process: written.trim().parse().unwrap_or_default() }
        }
    }
}

/// Where folders without a given path are made.
fn base() -> PathBuf {
    cache().join("sandboxes")
}

/// What sandboxes may start with, for all clones.
pub(crate) fn prepared() -> PathBuf {
    cache().join("prepared")
}

fn cache() -> PathBuf {
    opensdn_user_folders::cache().unwrap_or_else(|| std::env::temp_dir().join("opensdn"))
}

fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with("sandbox-");
        if is_ours && path.is_dir() && !matches!(owner(&path), Owner::Living { .. }) {
            // What cannot be removed now is tried again at the next start.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn make(path: &Path) -> Result<(), FolderError> {
    // Private: it holds the keys of the cluster's administrator.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Prepare { path, source }
}
