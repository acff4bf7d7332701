//! AnalyticsAlarm: raises alarms on what analytics gets, and Kafka beside it, by which the collectors send it. Kafka
//! keeps nothing that outlives its container.

use opensdn_crds::component::{self, Component};
use serde_json::json;

use super::shared::around::{KAFKA, around, credentials, passwords};
use super::shared::{logs, node_manager, provisioner};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Introspect, Password, SettingsError,
    Template,
};

/// The kind AnalyticsAlarm.
pub(super) struct AnalyticsAlarm;

const ROW: &Component = component::row("AnalyticsAlarm");
const NODE_TYPE: &str = "analytics-alarm";
/// Of introspect; there is a field in tf-operator's API that looks as if it changed it.
const ALARM: u16 = ROW.fixed_port("analytics-alarm-gen");
const NODE_MANAGER: u16 = ROW.fixed_port("nodemanager");

impl ComponentKind for AnalyticsAlarm {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("analyticsalarm/run-analytics-alarm-gen.sh"),
            template!("analyticsalarm/run-kafka.sh"),
            template!("analyticsalarm/tf-alarm-gen.ini"),
            template!("analyticsalarm/kafka.properties"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let around = around(given);
        let brokers = given.peers.first("AnalyticsAlarm").map_or(1, |one| one.addresses.len());
        let own = |key| Password { key, given: None, letters: 10 };
        let own = [own("keystorePassword"), own("truststorePassword")];
        Ok(Description {
            containers: vec![
                Container {
                    introspect: Introspect::at(ALARM),
                    ..daemon("analytics-alarm-gen", ALARM, ("50m", "128Mi"))
                },
                daemon("kafka", KAFKA, ("100m", "512Mi")),
                node_manager::container(NODE_TYPE, NODE_MANAGER),
                provisioner::container(NODE_TYPE),
            ],
            files: vec![
                File::shared(
                    "run-analytics-alarm-gen.sh",
                    "analyticsalarm/run-analytics-alarm-gen.sh",
                ),
                File::shared("run-kafka.sh", "analyticsalarm/run-kafka.sh"),
                node_manager::SCRIPT,
                provisioner::SCRIPT,
                File::of_pod("tf-alarm-gen", "analyticsalarm/tf-alarm-gen.ini"),
                File::of_pod("kafka.config", "analyticsalarm/kafka.properties"),
                File::of_pod("analytics-alarm-nodemgr.conf", node_manager::CONFIGURATION),
                File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
                provisioner::environment("analyticsalarm-provisioner.env"),
            ],
            values: json!({
                "kafka_port": KAFKA,
                // tf-operator takes the number of ZooKeeper's members for that of the brokers
                // (`pkg/apis/tf/v1alpha1/analyticsalarm_types.go:228`): a topic cannot have more copies than those.
                "copies": brokers.clamp(1, 3),
                "provisioner": {"ANALYTICS_ALARM_NODES": around.get("alarm_nodes")},
                "around": around,
            }),
            volumes: [&node_manager::VOLUMES[..], &[logs("/var/log/contrail/analytics-alarm")]]
                .concat(),
            passwords: passwords(given).into_iter().chain(own).collect(),
            credentials: credentials(given),
            depends_on_release: true,
            ..Description::default()
        })
    }
}

/// Each has something of its own among all members: a database in Redis, or the number of a broker.
fn daemon(name: &'static str, port: u16, requests: (&'static str, &'static str)) -> Container {
    Container {
        name,
        env: vec![("NODE_TYPE", NODE_TYPE.to_owned())],
        needs_pod_name: true,
        check: Check::Port(port),
        requests,
        ..Container::default()
    }
}
