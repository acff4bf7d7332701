//! The provisioner beside the daemons of a component: it makes the Config API know the node.

use crate::component::{Container, File};

/// The container. Once it has done its work it does nothing, so there is nothing to look at; before, it tries again and
/// again, since the Config API comes later.
pub(in crate::components) fn container(node_type: &str) -> Container {
    Container {
        name: "provisioner",
        env: vec![("NODE_TYPE", node_type.to_owned())],
        requests: ("10m", "32Mi"),
        ..Container::default()
    }
}

/// What it runs.
pub(in crate::components) const SCRIPT: File =
    File::shared("run-provisioner.sh", "common/run-provisioner.sh");
/// `WORD-provisioner.env`, its variables. The value `provisioner` has those that only this one has. It names the members
/// of Config: one that comes or goes restarts no pod of another component, for the script looks at the file again.
pub(in crate::components) const fn environment(name: &'static str) -> File {
    File::watched(name, "common/provisioner.sh")
}
