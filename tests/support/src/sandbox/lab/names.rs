//! The id of a lab, which every thing that it makes carries, and the register of labs: one file
//! for each in `/run/opensdn/labs`, locked while its owner lives. The next start sweeps what
//! belongs to no living owner. Processes, mounts, networks and firewall rules need no sweeping:
//! they end with their machine, and that with its owner, whatever happens to it.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::cgroups;
use crate::sandbox::data_folder::{Owner, owner};

const REGISTER: &str = "/run/opensdn/labs";
/// Held while labs are entered and swept.
const GUARD: &str = "sweep.lock";

/// Why a lab has no name.
#[derive(Debug, thiserror::Error)]
#[error("enter the lab into {}", path.display())]
pub struct RegisterError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A lab's id, as long as its owner keeps it.
pub(super) struct Name {
    id: String,
    entry: PathBuf,
    _lock: File,
}

impl Name {
    /// Sweeps what dead labs left, and takes a new id for the lab whose data is in `folder`.
    pub(super) fn take(folder: &Path) -> Result<Self, RegisterError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| RegisterError { path, source }
        };
        let register = Path::new(REGISTER);
        fs::create_dir_all(register).map_err(at(register))?;
        let guard_path = register.join(GUARD);
        let guard = File::create(&guard_path).map_err(at(&guard_path))?;
        guard.lock().map_err(at(&guard_path))?;
        sweep(register);
        let id = format!("{:06x}", RandomState::new().hash_one(folder) & 0x00ff_ffff);
        let entry = register.join(&id);
        let mut file = File::create_new(&entry).map_err(at(&entry))?;
        file.lock().and_then(|()| write!(file, "{}", folder.display())).map_err(at(&entry))?;
        Ok(Self { id, entry, _lock: file })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        cgroups::remove(&super::group_prefix(&self.id));
        // What is left the next start sweeps, which then finds an entry without an owner.
        let _ = fs::remove_file(&self.entry);
    }
}

/// Removes the groups and the data of labs whose owners are gone.
fn sweep(register: &Path) {
    for entry in fs::read_dir(register).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != GUARD && !is_owned(&path) {
            sweep_lab(&name, &path);
        }
    }
}

fn sweep_lab(id: &str, entry: &Path) {
    // Nothing else can be left: the kernel has ended what ran on its machines.
    let left = cgroups::remove(&super::group_prefix(id));
    let folder = PathBuf::from(fs::read_to_string(entry).unwrap_or_default());
    if folder.is_absolute() && owner(&folder) == Owner::Dead {
        // What cannot be removed now is tried again at the next start in that folder.
        let _ = fs::remove_dir_all(&folder);
    }
    if left.is_empty() {
        let _ = fs::remove_file(entry);
    }
}

/// Whether the lock is held, or may be.
fn is_owned(entry: &Path) -> bool {
    let Ok(file) = File::open(entry) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock | TryLockError::Error(_)))
}
