//! Whether this machine can have a lab, and in one sentence why not. Deliberately not here:
//! installing anything, which `gate/setup.sh` does.

use std::path::Path;

/// What a lab runs, where Debian has it, and the package that it is in.
const NEEDED: [(&str, &str); 9] = [
    ("/usr/bin/containerd", "containerd"),
    ("/usr/sbin/runc", "runc"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("/usr/sbin/iptables", "iptables"),
    ("/usr/sbin/conntrack", "conntrack"),
    ("/usr/sbin/ipset", "ipset"),
    ("/usr/sbin/ip", "iproute2"),
    ("/usr/bin/busybox", "busybox-static"),
    ("/usr/sbin/mkfs.ext4", "e2fsprogs"),
];

/// Why there cannot be a lab.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Network namespaces and cgroups are Linux'.
    #[error("start real nodes: that needs Linux, and this is {0}")]
    Linux(&'static str),
    /// Namespaces, mounts and cgroups are root's.
    #[error("start real nodes: that needs root, so run it with sudo")]
    Root,
    /// Programs are not installed.
    #[error(
        "start real nodes: some programs are missing, so run \
         apt-get install --no-install-recommends {}",
        .0.join(" ")
    )]
    Packages(Vec<&'static str>),
}

/// Whether a lab can be started here.
///
/// # Errors
/// Names what is missing and what to do.
pub fn available() -> Result<(), Missing> {
    if std::env::consts::OS != "linux" {
        return Err(Missing::Linux(std::env::consts::OS));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Missing::Root);
    }
    let packages = missing_packages(|path| Path::new(path).exists());
    if packages.is_empty() { Ok(()) } else { Err(Missing::Packages(packages)) }
}

fn missing_packages(exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    NEEDED.iter().filter(|(path, _)| !exists(path)).map(|(_, package)| *package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_told_by_the_packages_that_have_them() {
        let packages = missing_packages(|path| !path.contains("runc") && !path.contains("cni"));
        assert_eq!(packages, ["runc", "containernetworking-plugins"]);
        let said = Missing::Packages(packages).to_string();
        assert!(
            said.ends_with("--no-install-recommends runc containernetworking-plugins"),
            "{said}"
        );
    }

    #[test]
    fn gate_installs_what_is_asked_for() {
        let setup = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../gate/setup.sh"));
        for (path, package) in NEEDED {
            let line = format!("\n{path} {package}\n");
            assert!(setup.contains(&line), "{path} {package}");
        }
    }
}
