//! The folders in which components store data: what is there, and what room there is.

use std::path::Path;

use opensdn_node_probe::{Directory, DirectoryState, MOST_ENTRIES, Seen, Space};

use super::host::Host;

/// Folders of the node that the pod is given with all that is in them.
const GIVEN: [&str; 2] = ["/etc", "/var/lib"];

pub(super) fn look(host: &Host, paths: &[String]) -> Vec<Directory> {
    let of = |path: &String| Directory { path: path.clone(), state: state(host, path).into() };
    paths.iter().map(of).collect()
}

fn state(host: &Host, path: &str) -> Result<DirectoryState, String> {
    let real = host.followed(path);
    if real != Path::new(path) && !is_given(&real) {
        let real = real.display();
        return Err(format!("{path} leads to {real}, which this pod is not given"));
    }
    match host.metadata(path)? {
        Some(one) if !one.is_dir() => Ok(DirectoryState::NoFolder),
        Some(_) => {
            let mut entries = host.names(path)?.unwrap_or_default();
            // Each file system of ext4 has it.
            entries.retain(|name| name != "lost+found");
            entries.truncate(MOST_ENTRIES);
            Ok(DirectoryState::Present { space: space(host, path)?, entries })
        }
        None => {
            let mut above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
            // What is above these is of the pod, and another file system.
            let above = above.find(|above| {
                is_given(Path::new(above)) && host.metadata(above).is_ok_and(|one| one.is_some())
            });
            match above {
                Some(above) => Ok(DirectoryState::Absent(space(host, above)?)),
                None => Err(format!("no folder above {path} is among what this pod is given")),
            }
        }
    }
}

fn is_given(path: &Path) -> bool {
    GIVEN.iter().any(|root| path.starts_with(root))
}

fn space(host: &Host, path: &str) -> Result<Space, String> {
    let found = rustix::fs::statvfs(host.path(path));
    let found = found.map_err(|error| format!("failed to read the space of {path}: {error}"))?;
    let mounts = host.needed("/proc/1/mountinfo");
    let read_only = mounts.and_then(|mounts| {
        is_read_only(&mounts, path).ok_or_else(|| format!("no mount has {path}"))
    });
    Ok(Space {
        free: found.f_bavail.saturating_mul(found.f_frsize),
        read_only: Seen::from(read_only),
    })
}

/// Of the node's own mounts, as that of this pod is for reading anyway: the last with the longest path holds.
fn is_read_only(mounts: &str, path: &str) -> Option<bool> {
    let mut found: Option<(usize, bool)> = None;
    for line in mounts.lines() {
        // `36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda rw,errors=continue`
        let Some((mount, system)) = line.split_once(" - ") else { continue };
        let mut fields = mount.split(' ').skip(4);
        let (Some(point), Some(options)) = (fields.next(), fields.next()) else { continue };
        let of_system = system.split(' ').nth(2).unwrap_or_default();
        if Path::new(path).starts_with(point) && found.is_none_or(|(long, _)| point.len() >= long) {
            let is = |options: &str| options.split(',').any(|option| option == "ro");
            found = Some((point.len(), is(options) || is(of_system)));
        }
    }
    found.map(|(_, read_only)| read_only)
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    const MOUNTS: &str = "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
        2 1 8:2 / /var/lib/contrail ro,relatime - ext4 /dev/sdb ro\n\
        3 1 8:3 / /var/lib/contrail/config-database rw - xfs /dev/sdc rw\n";

    #[test]
    fn a_folder_is_there_with_data_or_can_be_made_or_is_something_else() {
        let (_folder, host) = node(&[
            ("proc/1/mountinfo", MOUNTS),
            ("var/lib/contrail/zookeeper/version-2/log", ""),
            ("var/lib/contrail/redis", "file"),
        ]);
        let paths =
            ["zookeeper", "redis", "rabbitmq"].map(|name| format!("/var/lib/contrail/{name}"));
        let seen = look(&host, &[&paths[..], &["/data/x".to_owned()]].concat());
        let [zookeeper, redis, rabbitmq, data] = &*seen else { panic!("{seen:#?}") };
        let Some(DirectoryState::Present { entries, space }) = zookeeper.state.known() else {
            panic!("{zookeeper:#?}")
        };
        assert_eq!(
            (entries.as_slice(), &space.read_only),
            (&["version-2".to_owned()][..], &Seen::Is(true))
        );
        assert!(space.free > 0);
        assert_eq!(redis.state, Seen::Is(DirectoryState::NoFolder));
        assert!(matches!(rabbitmq.state.known(), Some(DirectoryState::Absent(_))), "{rabbitmq:#?}");
        assert!(data.state.known().is_none(), "{data:#?}");
    }

    #[test]
    fn a_folder_that_is_elsewhere_by_a_link_is_not_said_to_be_absent() {
        let (folder, host) = node(&[("proc/1/mountinfo", MOUNTS), ("etc/hosts", "")]);
        std::os::unix::fs::symlink("/data/contrail", folder.path().join("etc/contrail")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("etc/own")).unwrap();
        let of = |path: &str| look(&host, &[path.to_owned()]).remove(0).state;
        let Seen::Unknown(why) = of("/etc/contrail/ssl/certs") else { panic!("it is known") };
        assert!(
            why.contains("leads to /data/contrail/ssl/certs, which this pod is not given"),
            "{why}"
        );
        assert!(matches!(of("/etc/own/absent"), Seen::Is(DirectoryState::Absent(_))));
    }

    #[test]
    fn the_mount_of_a_folder_is_the_nearest_above() {
        assert_eq!(is_read_only(MOUNTS, "/var/lib/contrail/zookeeper"), Some(true));
        assert_eq!(is_read_only(MOUNTS, "/var/lib/contrail/config-database"), Some(false));
        assert_eq!(is_read_only(MOUNTS, "/var/lib/contrailx"), Some(false));
        assert_eq!(is_read_only("", "/var"), None);
    }
}
