//! The cgroups of a lab's nodes: one directory per node and controller, below which its kubelet
//! keeps its pods. Deliberately not here: what a kubelet makes of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long the kernel may take to empty a group whose processes have been killed.
const EMPTY: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Why there is no group.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A directory or a setting could not be written.
    #[error("make the control group {}", path.display())]
    Make {
        /// The directory or file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The kernel has none, or they are not mounted.
    #[error("find control groups: none are mounted below /sys/fs/cgroup")]
    None,
}

/// Makes the group in every hierarchy.
pub(super) fn make(name: &str) -> Result<(), CgroupError> {
    let roots = hierarchies();
    if roots.is_empty() {
        return Err(CgroupError::None);
    }
    for root in roots {
        let group = root.join(name);
        if root.join("cgroup.subtree_control").exists() {
            // Version 2. A controller that the kernel lacks is not handed down.
            for controller in ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"] {
                let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        create(&group)?;
        // A group of version 1 takes no process before these are set.
        for setting in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(value) = fs::read_to_string(root.join(setting)) {
                let path = group.join(setting);
                let written = fs::write(&path, value);
                written.map_err(|source| CgroupError::Make { path, source })?;
            }
        }
    }
    Ok(())
}

fn create(group: &Path) -> Result<(), CgroupError> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(CgroupError::Make { path: group.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Removes every group whose name begins so, with what is below. Their processes must have
/// been killed. Returns what could not be removed.
pub(super) fn remove(prefix: &str) -> Vec<PathBuf> {
    remove_all(|| groups(prefix))
}

/// The same of the group with that name.
pub(super) fn remove_one(name: &str) -> Vec<PathBuf> {
    remove_all(|| {
        let groups = hierarchies().into_iter().map(|root| root.join(name));
        groups.filter(|group| group.is_dir()).collect()
    })
}

fn remove_all(groups: impl Fn() -> Vec<PathBuf>) -> Vec<PathBuf> {
    let deadline = Instant::now() + EMPTY;
    loop {
        let left: Vec<PathBuf> =
            groups().into_iter().filter(|group| remove_tree(group).is_err()).collect();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        thread::sleep(POLL);
    }
}

/// The groups whose names begin so.
pub(super) fn groups(prefix: &str) -> Vec<PathBuf> {
    let entries = hierarchies().into_iter().filter_map(|root| fs::read_dir(root).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    paths
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        })
        .collect()
}

fn remove_tree(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    // Its files go with it.
    fs::remove_dir(group)
}

/// The processes in every group of that name somewhere below.
pub(super) fn processes_below(group: &Path, name: &str) -> Vec<u32> {
    let mut all = Vec::new();
    if group.file_name().is_some_and(|own| own == name) {
        let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        all.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
    }
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(processes_below(&entry.path(), name));
        }
    }
    all
}

fn hierarchies() -> Vec<PathBuf> {
    mounted(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// Where the kernel's hierarchies are mounted: one for each controller of version 1, and that
/// of version 2. Others may be mounted elsewhere as well.
fn mounted(mounts: &str) -> Vec<PathBuf> {
    let is_cgroup = |kind: &str| kind == "cgroup" || kind == "cgroup2";
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut roots: Vec<PathBuf> = fields
        .filter_map(|fields| match fields.as_slice() {
            [_, root, kind, ..] if is_cgroup(kind) && root.starts_with("/sys/fs/cgroup") => {
                Some(PathBuf::from(root))
            }
            _ => None,
        })
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hierarchies_of_both_versions_once() {
        let mounts = "\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /elsewhere/memory cgroup rw,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
";
        let expected =
            ["cpuset", "memory", "unified"].map(|c| PathBuf::from("/sys/fs/cgroup").join(c));
        assert_eq!(mounted(mounts), expected);
    }
}
