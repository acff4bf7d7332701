//! A cgroup with a memory limit, as a kubelet makes for a container: for tests whose subject is what a
//! program may take. It needs root and a hierarchy that can be written to; elsewhere there is none.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::id;
use std::thread;
use std::time::{Duration, Instant};

const PREFIX: &str = "opensdn-memory-";
/// How long the kernel may take to empty a group whose processes have been killed.
const EMPTY: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Which version the kernel gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The group. It is removed when this is dropped, by which time its processes must have ended.
#[derive(Debug)]
pub struct MemoryCgroup {
    path: PathBuf,
    version: Version,
}

/// Why there is no group: this machine, or this user, can have none.
#[derive(Debug, thiserror::Error)]
#[error("write {}", path.display())]
pub struct NoCgroup {
    path: PathBuf,
    source: io::Error,
}

impl MemoryCgroup {
    /// A new one with a limit in bytes.
    ///
    /// # Errors
    /// It cannot be made here.
    pub fn new(limit: u64) -> Result<Self, NoCgroup> {
        let one = Path::new("/sys/fs/cgroup/memory");
        let (root, version) = if one.join("memory.limit_in_bytes").exists() {
            (one, Version::One)
        } else {
            (Path::new("/sys/fs/cgroup"), Version::Two)
        };
        sweep(root);
        if version == Version::Two {
            // Whether it was handed down shows when the limit is written.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        }
        let path = root.join(format!("{PREFIX}{}", id()));
        fs::create_dir(&path).map_err(|source| NoCgroup { path: path.clone(), source })?;
        let group = Self { path, version };
        let file = group.file("memory.limit_in_bytes", "memory.max");
        let written = fs::write(&file, limit.to_string());
        written.map_err(|source| NoCgroup { path: file, source })?;
        if version == Version::Two {
            // As kubelets do it: who is killed for memory takes the whole container along.
            let _ = fs::write(group.path.join("memory.oom.group"), "1");
        }
        Ok(group)
    }

    fn file(&self, one: &str, two: &str) -> PathBuf {
        self.path.join(if self.version == Version::One { one } else { two })
    }

    /// A script in the folder that runs a program in the group, with all that it starts.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn starter(&self, program: &Path, folder: &Path) -> io::Result<PathBuf> {
        let script = folder.join("in-cgroup");
        let procs = self.path.join("cgroup.procs");
        let text = format!(
            "#!/bin/sh\necho $$ >{} || exit 1\nexec {} \"$@\"\n",
            procs.display(),
            program.display()
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }

    /// Whether this process is in it.
    #[must_use]
    pub fn has(&self, process: u32) -> bool {
        let processes = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        processes.lines().any(|line| line == process.to_string())
    }

    /// How many of its processes the kernel has killed for memory.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn kills(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.file("memory.oom_control", "memory.events"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|number| number.trim().parse().ok()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("no count of kills in: {text}"))
        })
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + EMPTY;
        while fs::remove_dir(&self.path).is_err() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
    }
}

/// Removes what tests that were killed have left.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX);
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            // One that has processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
