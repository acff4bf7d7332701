//! How much memory this process may take, as its cgroup says: in a pod, the limit of the container.

use std::fs;
use std::path::Path;

/// The memory limit in bytes, the least of the process's cgroup and all above it; none where there is no
/// limit, or no cgroup that can be read.
#[must_use]
pub fn limit() -> Option<u64> {
    let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_in(Path::new("/sys/fs/cgroup"), &memberships)
}

/// `memberships` is the text of `/proc/self/cgroup`: `0::/PATH` of version 2, `N:memory:/PATH` of 1.
fn limit_in(root: &Path, memberships: &str) -> Option<u64> {
    let limits = memberships.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        let path = path.unwrap_or_default().trim_start_matches('/');
        match controllers.unwrap_or_default() {
            "" => least(root, path, "memory.max"),
            some if some.split(',').any(|one| one == "memory") => {
                least(&root.join("memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// A path of the host that the container does not see has no files; its root, which is the container's
/// own cgroup there, has.
fn least(root: &Path, path: &str, file: &str) -> Option<u64> {
    /// Version 1 writes "none" as the largest number of pages.
    const UNLIMITED: u64 = 1 << 60;
    let folder = root.join(path);
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let limits = folders.filter_map(|folder| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        text.trim().parse().ok().filter(|limit| *limit < UNLIMITED)
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_cgroup_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |memberships| limit_in(root.path(), memberships);
        assert_eq!(limit("0::/pod/container\n"), None, "there are no such files");
        write("pod/container/memory.max", "max\n");
        assert_eq!(limit("0::/pod/container\n"), None);
        write("pod/memory.max", "536870912\n");
        assert_eq!(limit("0::/pod/container\n"), Some(512 << 20));
        write("pod/container/memory.max", "268435456\n");
        assert_eq!(limit("0::/pod/container\n"), Some(256 << 20));
        write("memory.max", "1048576\n");
        assert_eq!(limit("0::/not/seen/from/here\n"), Some(1 << 20));
    }

    #[test]
    fn version_1_is_read_by_its_controller() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("memory/pod");
        fs::create_dir_all(&folder).unwrap();
        let memberships = "4:cpu,cpuacct:/pod\n3:memory:/pod\n";
        fs::write(folder.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert_eq!(limit_in(root.path(), memberships), None);
        fs::write(folder.join("memory.limit_in_bytes"), "536870912\n").unwrap();
        assert_eq!(limit_in(root.path(), memberships), Some(512 << 20));
    }
}
