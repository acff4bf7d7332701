//! AnalyticsSnmp: asks the devices of the underlay by SNMP, and draws their topology of what they say.

use opensdn_crds::component::{self, Component};
use serde_json::json;

use super::shared::around::{around, credentials, passwords};
use super::shared::{logs, node_manager, provisioner};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Introspect, SettingsError, Template,
};

/// The kind AnalyticsSnmp.
pub(super) struct AnalyticsSnmp;

const ROW: &Component = component::row("AnalyticsSnmp");
const NODE_TYPE: &str = "analytics-snmp";
// No field changes these, though there are some in tf-operator's API that look so.
const COLLECTOR: u16 = ROW.fixed_port("analytics-snmp-collector");
const TOPOLOGY: u16 = ROW.fixed_port("analytics-snmp-topology");
const NODE_MANAGER: u16 = ROW.fixed_port("nodemanager");

impl ComponentKind for AnalyticsSnmp {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("analyticssnmp/run-analytics-snmp-collector.sh"),
            template!("analyticssnmp/run-analytics-snmp-topology.sh"),
            template!("analyticssnmp/tf-snmp-collector.ini"),
            template!("analyticssnmp/tf-topology.ini"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let around = around(given);
        let daemon = |name, port| Container {
            name,
            env: vec![("NODE_TYPE", NODE_TYPE.to_owned())],
            check: Check::Port(port),
            introspect: Introspect::at(port),
            requests: ("50m", "128Mi"),
            ..Container::default()
        };
        Ok(Description {
            containers: vec![
                daemon("analytics-snmp-collector", COLLECTOR),
                daemon("analytics-snmp-topology", TOPOLOGY),
                node_manager::container(NODE_TYPE, NODE_MANAGER),
                provisioner::container(NODE_TYPE),
            ],
            files: vec![
                File::shared(
                    "run-analytics-snmp-collector.sh",
                    "analyticssnmp/run-analytics-snmp-collector.sh",
                ),
                File::shared(
                    "run-analytics-snmp-topology.sh",
                    "analyticssnmp/run-analytics-snmp-topology.sh",
                ),
                node_manager::SCRIPT,
                provisioner::SCRIPT,
                File::of_pod("tf-snmp-collector", "analyticssnmp/tf-snmp-collector.ini"),
                File::of_pod("tf-topology", "analyticssnmp/tf-topology.ini"),
                File::of_pod("analytics-snmp-nodemgr.conf", node_manager::CONFIGURATION),
                File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
                provisioner::environment("analyticssnmp-provisioner.env"),
            ],
            values: json!({
                "provisioner": {"ANALYTICS_SNMP_NODES": around.get("snmp_nodes")},
                "around": around,
            }),
            volumes: [&node_manager::VOLUMES[..], &[logs("/var/log/contrail/analytics-snmp")]]
                .concat(),
            passwords: passwords(given),
            credentials: credentials(given),
            depends_on_release: true,
            ..Description::default()
        })
    }
}
