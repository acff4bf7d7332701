//! The node manager beside the daemons of a component: it reports to analytics how their processes and the node are.

use crate::component::{Access, Check, Container, File, Mount, Source, Volume};

/// The container. Its `node_type` is the word by which analytics knows the node; `port` that of its introspect.
pub(in crate::components) fn container(node_type: &str, port: u16) -> Container {
    Container {
        name: "nodemanager",
        env: vec![("NODE_TYPE", node_type.to_owned())],
        mounts: vec![
            Mount::at("var-run", "/var/run"),
            Mount::at("run-runc", "/run/runc"),
            Mount::at("sys-fs-cgroups", "/sys/fs/cgroup").with(Access::Read),
            Mount::at("var-lib-containers", "/var/lib/containers").with(Access::MountForNode),
        ],
        check: Check::Port(port),
        requests: ("20m", "96Mi"),
        // It looks at the containers of the node.
        is_privileged: true,
        ..Container::default()
    }
}

/// What it runs. It needs `vnc_api_lib.ini` of the pod too.
pub(in crate::components) const SCRIPT: File =
    File::shared("run-nodemanager.sh", "common/run-nodemanager.sh");
/// The template of `NODE-TYPE-nodemgr.conf` of the pod.
pub(in crate::components) const CONFIGURATION: &str = "common/nodemgr.ini";

/// What it looks at.
pub(in crate::components) const VOLUMES: [Volume; 4] = [
    existing("var-run", "/var/run"),
    Volume::folder("run-runc", "/run/runc"),
    existing("sys-fs-cgroups", "/sys/fs/cgroup"),
    Volume::folder("var-lib-containers", "/var/lib/containers"),
];

const fn existing(name: &'static str, path: &'static str) -> Volume {
    Volume { name, source: Source::Existing(path) }
}
