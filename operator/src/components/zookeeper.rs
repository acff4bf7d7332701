//! ZooKeeper: coordinates the config services. Its members are told to itself, over its TLS port, by a
//! certificate of the operator's own.

use std::sync::Arc;

use opensdn_crds::component::{self, Component as Facts};
use opensdn_crds::zookeeper::ZookeeperConfiguration;
use serde_json::{Value, json};

use crate::component::{
    Check, Component, Container, Description, File, HostPath, Quorum, Scope, SettingsError,
    Template,
};
use crate::ensemble::SUPER;
use crate::ensembles::zookeeper::Servers;
use crate::peers::Peers;

/// The kind Zookeeper.
pub(super) struct Zookeeper;

const CLIENT: u16 = 2181;
const ADMIN: u16 = 2182;
/// Where the operator asks. tf-operator has none with TLS.
const SECURE: u16 = 2281;
const QUORUM: u16 = 2888;
const ELECTION: u16 = 3888;

impl Component for Zookeeper {
    fn facts(&self) -> &'static Facts {
        const { component::row("Zookeeper") }
    }

    fn templates(&self) -> &'static [Template] {
        &[
            (
                "zookeeper/run-zookeeper.sh",
                include_str!("../../templates/zookeeper/run-zookeeper.sh.j2"),
            ),
            (
                "zookeeper/check-zookeeper.sh",
                include_str!("../../templates/zookeeper/check-zookeeper.sh.j2"),
            ),
            ("zookeeper/ensemble.sh", include_str!("../../templates/zookeeper/ensemble.sh.j2")),
            ("zookeeper/zoo.ini", include_str!("../../templates/zookeeper/zoo.ini.j2")),
            ("zookeeper/log4j.ini", include_str!("../../templates/zookeeper/log4j.ini.j2")),
        ]
    }

    fn describe(&self, settings: &Value, _: &Peers) -> Result<Description, SettingsError> {
        let settings: ZookeeperConfiguration = serde_json::from_value(settings.clone())?;
        let port = |given: Option<i64>, default| {
            given.and_then(|port| u16::try_from(port).ok()).unwrap_or(default)
        };
        // The names of the two fields are swapped.
        let quorum = port(settings.election_port, QUORUM);
        let election = port(settings.server_port, ELECTION);
        let client = port(settings.client_port, CLIENT);
        let check = |what| format!("bash /etc/contrailconfigmaps/check-zookeeper.sh {what}");
        let shared = |name, template| File { name, template, scope: Scope::Shared };
        Ok(Description {
            containers: vec![Container {
                name: "zookeeper",
                mounts: vec![
                    ("zookeeper-data", "/var/lib/zookeeper"),
                    ("zookeeper-logs", "/var/log/zookeeper"),
                ],
                check: Check::Command(check("alive")),
                readiness: Some(Check::Command(check("serves"))),
                requests: ("100m", "512Mi"),
                capabilities: &[],
            }],
            files: vec![
                shared("run-zookeeper.sh", "zookeeper/run-zookeeper.sh"),
                shared("check-zookeeper.sh", "zookeeper/check-zookeeper.sh"),
                shared("zoo.cfg", "zookeeper/zoo.ini"),
                shared("log4j.properties", "zookeeper/log4j.ini"),
                File { name: "ensemble", template: "zookeeper/ensemble.sh", scope: Scope::Pod },
            ],
            values: json!({
                "client_port": client,
                "secure_port": SECURE,
                "quorum_port": quorum,
                "election_port": election,
                // Only the word false in small letters counts.
                "admin_enabled": settings.admin_enabled.unwrap_or(true).to_string(),
                "admin_port": port(settings.admin_port, ADMIN),
                "superuser": SUPER,
            }),
            host_paths: vec![
                HostPath { volume: "zookeeper-data", path: "/var/lib/contrail/zookeeper" },
                HostPath { volume: "zookeeper-logs", path: "/var/log/contrail/zookeeper" },
            ],
            quorum: Quorum::Majority,
            ensemble: Some(Arc::new(Servers { client, secure: SECURE, quorum, election })),
        })
    }
}
