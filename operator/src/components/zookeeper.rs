//! ZooKeeper: coordinates the config services. Its members are reported to itself, over its TLS port, by a
//! certificate of the operator's own.

use std::sync::Arc;

use opensdn_crds::component::{self, Component};
use opensdn_crds::zookeeper::ZookeeperConfiguration;
use serde_json::json;

use super::shared::{fields, port};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Mount, SettingsError, Template,
    Volume,
};
use crate::ensemble::SUPER;
use crate::ensembles::zookeeper::Servers;

/// The kind Zookeeper.
pub(super) struct Zookeeper;

const ROW: &Component = component::row("Zookeeper");
const CLIENT: u16 = ROW.port_of_field("clientPort");
const ADMIN: u16 = ROW.port_of_field("adminPort");
/// Where the operator asks. tf-operator has none with TLS.
const SECURE: u16 = 2281;
const QUORUM: u16 = ROW.port_of_field("electionPort");
const ELECTION: u16 = ROW.port_of_field("serverPort");

impl ComponentKind for Zookeeper {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn asked_before_a_restart(&self) -> Option<&'static str> {
        Some("Whether each member serves, and who leads: the leader comes last.")
    }

    /// 3.7.1 reads those of its port for clients at no other time.
    fn reads_certificates_once(&self) -> bool {
        true
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("zookeeper/run-zookeeper.sh"),
            template!("zookeeper/check-zookeeper.sh"),
            template!("zookeeper/ensemble.sh"),
            template!("zookeeper/zoo.ini"),
            template!("zookeeper/log4j.ini"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: ZookeeperConfiguration = given.settings()?;
        // The names of the two fields are swapped.
        let quorum = port(settings.election_port, QUORUM);
        let election = port(settings.server_port, ELECTION);
        let client = port(settings.client_port, CLIENT);
        let check = |what| format!("bash /etc/contrailconfigmaps/check-zookeeper.sh {what}");
        Ok(Description {
            containers: vec![Container {
                name: "zookeeper",
                mounts: vec![
                    Mount::at("zookeeper-data", "/var/lib/zookeeper"),
                    Mount::at("zookeeper-logs", "/var/log/zookeeper"),
                ],
                check: Check::Command(check("alive")),
                readiness: Some(Check::Command(check("serves"))),
                requests: ("100m", "512Mi"),
                ..Container::default()
            }],
            files: vec![
                File::shared("run-zookeeper.sh", "zookeeper/run-zookeeper.sh"),
                File::shared("check-zookeeper.sh", "zookeeper/check-zookeeper.sh"),
                File::shared("zoo.cfg", "zookeeper/zoo.ini"),
                File::shared("log4j.properties", "zookeeper/log4j.ini"),
                File::of_pod("ensemble", "zookeeper/ensemble.sh"),
            ],
            status: fields(&json!({"ports": {"clientPort": client.to_string()}})),
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
            volumes: vec![
                Volume::data("zookeeper-data", "/var/lib/contrail/zookeeper"),
                Volume::folder("zookeeper-logs", "/var/log/contrail/zookeeper"),
            ],
            storage: settings.storage,
            ensemble: Some(Arc::new(Servers { client, secure: SECURE, quorum, election })),
            ..Description::default()
        })
    }
}
