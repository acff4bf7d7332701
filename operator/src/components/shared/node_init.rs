//! What prepares a node before daemons are started on it: kernel settings, and the tools by which people look at
//! them. Without an image for it the node stays as it is.

use opensdn_crds::pod::Container as Given;

use crate::component::{Command, Container, Mount, Source, Volume};

const INIT: &str = "nodeinit";
const STATUS: &str = "nodeinit-status-prefetch";
const TOOLS: &str = "nodeinit-tools-prefetch";

/// The init containers, by the containers that are given.
pub(in crate::components) fn containers(
    node_type: &'static str,
    given: Option<&Vec<Given>>,
) -> Vec<Container> {
    let prefetch = |name| Container {
        name,
        is_optional: true,
        command: Command::Shell("exit 0"),
        requests: ("10m", "16Mi"),
        ..Container::default()
    };
    let init = Container {
        name: INIT,
        is_optional: true,
        command: Command::OfImage,
        env: vec![
            ("NODE_TYPE", node_type.to_owned()),
            ("INTROSPECT_SSL_ENABLE", "true".to_owned()),
            ("CONTRAIL_STATUS_IMAGE", status_image(given)),
            // Without them the image would issue certificates itself.
            ("SERVER_CA_CERTFILE", "/etc/ssl/certs/kubernetes/ca-bundle.crt".to_owned()),
            ("SERVER_CERTFILE", "/etc/certificates/server-$(POD_IP).crt".to_owned()),
            ("SERVER_KEYFILE", "/etc/certificates/server-key-$(POD_IP).pem".to_owned()),
        ],
        mounts: vec![
            Mount::at("host-usr-bin", "/host/usr/bin"),
            Mount::at("var-run", "/var/run"),
            Mount::at("dev", "/dev"),
            Mount::at("host-sysctl", "/etc/sysctl.d"),
        ],
        requests: ("10m", "32Mi"),
        // It changes settings of the kernel.
        is_privileged: true,
        ..Container::default()
    };
    vec![init, prefetch(STATUS), prefetch(TOOLS)]
}

/// What it mounts, besides what the node manager does.
pub(in crate::components) const VOLUMES: [Volume; 3] = [
    existing("host-usr-bin", "/usr/bin"),
    existing("dev", "/dev"),
    existing("host-sysctl", "/etc/sysctl.d"),
];

/// What the tool that it makes runs: the image that is given, else the one beside its own.
fn status_image(given: Option<&Vec<Given>>) -> String {
    let image = |name: &str| {
        let found = given.into_iter().flatten().find(|one| one.name.as_deref() == Some(name));
        found.and_then(|one| one.image.clone()).filter(|image| !image.is_empty())
    };
    image(STATUS).unwrap_or_else(|| {
        let beside = image(INIT).unwrap_or_default();
        beside.replacen("contrail-node-init", "contrail-status", 1).replacen(
            "opensdn-node-init",
            "opensdn-status",
            1,
        )
    })
}

const fn existing(name: &'static str, path: &'static str) -> Volume {
    Volume { name, source: Source::Existing(path) }
}
