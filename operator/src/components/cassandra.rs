//! Cassandra: the database of config, and that of analytics where there is one of its own. Its members find each
//! other; when one leaves, or is lost, Cassandra is notified, and how often it keeps a row goes with their number.

mod settings;

use std::sync::Arc;

use opensdn_crds::cassandra::CassandraConfiguration;
use opensdn_crds::component::{self, Component};

use self::settings::{CQL, Place, environment, place, ports, values};
use super::shared::around::{credentials, passwords};
use super::shared::{fields, node_manager, port, provisioner};
use crate::component::{
    Check, ComponentKind, Container, Credentials, Description, File, Given, Mount, Password,
    Quorum, SettingsError, Template,
};
use crate::ensembles::cassandra::{MOST_COPIES, Nodes};
use crate::release::Release;

/// The kind Cassandra.
pub(super) struct Cassandra;

const KIND: &str = "Cassandra";
const ROW: &Component = component::row(KIND);

impl ComponentKind for Cassandra {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn asked_before_a_restart(&self) -> Option<&'static str> {
        Some("Whether each node is up and normal (UN), as the one that is started again sees them.")
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("cassandra/run-cassandra.sh"),
            template!("cassandra/manage-cassandra.sh"),
            template!("cassandra/members.sh"),
            template!("cassandra/cassandra.yaml"),
            template!("cassandra/cqlshrc.ini"),
            template!("cassandra/nodemgr.ini"),
            template!("cassandra/jmxremote-password.ini"),
            template!("cassandra/jmxremote-access.ini"),
            template!("cassandra/reaper.sh"),
        ]
    }

    fn reads_certificates_once(&self) -> bool {
        true
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: CassandraConfiguration = given.settings()?;
        let place = place(given);
        let cql = port(settings.cql_port, CQL);
        // Images from R25.1 on have none: there JMX stays closed.
        let reaper =
            settings.reaper_enabled.unwrap_or_default() && given.release == Release::UpToR24;
        let manage = |what| format!("bash /etc/contrailconfigmaps/manage-cassandra.sh {what}");
        let main = Container {
            name: "cassandra",
            env: environment(place, cql, &settings)?,
            mounts: vec![
                Mount::at(place.data.name, "/var/lib/cassandra"),
                Mount::at("contrail-logs", "/var/log/cassandra"),
            ],
            check: Check::Command(manage("alive")),
            readiness: Some(Check::Command(manage("serves"))),
            requests: ("200m", "1Gi"),
            capabilities: &["IPC_LOCK", "SYS_NICE"],
            pre_stop: Some(manage("drain")),
            ..Container::default()
        };
        Ok(Description {
            containers: vec![
                main,
                node_manager::container(place.node_type, place.node_manager),
                provisioner::container(place.node_type),
            ],
            files: files(place, reaper),
            status: fields(&ports(&settings)),
            values: values(given, &settings, place, reaper),
            volumes: [&node_manager::VOLUMES[..], &[place.logs, place.data]].concat(),
            passwords: own_passwords(given, reaper),
            credentials: credentials(given).into_iter().filter(is_of_keystone).collect(),
            storage: settings.storage.clone(),
            ensemble: Some(Arc::new(Nodes { cql })),
            quorum: Quorum::MostCopies(MOST_COPIES),
            depends_on_release: settings.reaper_enabled.unwrap_or_default(),
            ..Description::default()
        })
    }
}

fn is_of_keystone(credentials: &Credentials) -> bool {
    credentials.folder == "keystone"
}

/// tf-operator's keystores have these two; its passwords of JMX are in its source.
fn own_passwords(given: &Given<'_>, reaper: bool) -> Vec<Password> {
    let random = |key, letters| Password { key, given: None, letters };
    let mut all = passwords(given);
    all.extend([random("keystorePassword", 10), random("truststorePassword", 10)]);
    if reaper {
        all.extend(["jmxPassword", "reaperPassword", "reaperKey"].map(|key| random(key, 32)));
    }
    all
}

fn files(place: Place, reaper: bool) -> Vec<File> {
    let mut files = vec![
        File::shared("run-cassandra.sh", "cassandra/run-cassandra.sh"),
        File::shared("manage-cassandra.sh", "cassandra/manage-cassandra.sh"),
        node_manager::SCRIPT,
        provisioner::SCRIPT,
        File::of_pod("members", "cassandra/members.sh"),
        File::shared("cassandra.yaml", "cassandra/cassandra.yaml"),
        File::of_pod("cqlshrc", "cassandra/cqlshrc.ini"),
        File::of_pod(place.configuration, "cassandra/nodemgr.ini"),
        File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
        provisioner::environment("cassandra-provisioner.env"),
    ];
    if reaper {
        files.extend([
            File::shared("jmxremote.password", "cassandra/jmxremote-password.ini"),
            File::shared("jmxremote.access", "cassandra/jmxremote-access.ini"),
            File::of_pod("reaper.env", "cassandra/reaper.sh"),
        ]);
    }
    files
}
