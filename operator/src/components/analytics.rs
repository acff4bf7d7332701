//! Analytics: the collector of what happens in the network, and the API to ask for it. What it keeps is in Redis on
//! its node and, where there is a QueryEngine to ask for it, in the database of analytics.

use opensdn_crds::analytics::AnalyticsConfiguration;
use opensdn_crds::component::{self, Component};
use opensdn_crds::pod::{AaaMode, AuthMode};
use serde_json::{Value, json};

use super::shared::around::{analytics_database, around, credentials, passwords};
use super::shared::{logs, node_manager, port, provisioner};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Introspect, ServicePort,
    SettingsError, Template,
};

/// The kind Analytics.
pub(super) struct Analytics;

const ROW: &Component = component::row("Analytics");
const NODE_TYPE: &str = "analytics";
// Where the daemons listen. There are fields, which say where others look for them: tf-operator,
// `pkg/apis/tf/v1alpha1/templates/analytics_config.go:10`, `:81`.
const API: u16 = ROW.port_of_field("analyticsPort");
const COLLECTOR: u16 = ROW.port_of_field("collectorPort");
const API_INTROSPECT: u16 = ROW.port_of_field("analyticsIntrospectPort");
const COLLECTOR_INTROSPECT: u16 = ROW.port_of_field("collectorIntrospectPort");
const NODE_MANAGER: u16 = ROW.fixed_port("nodemanager");

impl ComponentKind for Analytics {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("analytics/run-analyticsapi.sh"),
            template!("analytics/run-collector.sh"),
            template!("analytics/analyticsapi.ini"),
            template!("analytics/collector.ini"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: AnalyticsConfiguration = given.settings()?;
        Ok(Description {
            containers: containers(given, &settings),
            files: vec![
                File::shared("run-analyticsapi.sh", "analytics/run-analyticsapi.sh"),
                File::shared("run-collector.sh", "analytics/run-collector.sh"),
                node_manager::SCRIPT,
                provisioner::SCRIPT,
                File::of_pod("analyticsapi", "analytics/analyticsapi.ini"),
                File::of_pod("collector", "analytics/collector.ini"),
                File::of_pod("contrail-keystone-auth.conf", "common/keystone.ini"),
                File::of_pod("analytics-nodemgr.conf", node_manager::CONFIGURATION),
                File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
                provisioner::environment("analytics-provisioner.env"),
            ],
            values: values(given, &settings),
            volumes: [&node_manager::VOLUMES[..], &[logs("/var/log/contrail/analytics")]].concat(),
            passwords: passwords(given),
            credentials: credentials(given),
            service: Some(ServicePort { number: API, name: Some("analytics") }),
            depends_on_release: true,
            ..Description::default()
        })
    }
}

fn containers(given: &Given<'_>, settings: &AnalyticsConfiguration) -> Vec<Container> {
    let has = |kind: &str| given.peers.first(kind).is_some().to_string();
    let api_introspect = port(settings.analytics_introspect_port, API_INTROSPECT);
    let collector_introspect = port(settings.collector_introspect_port, COLLECTOR_INTROSPECT);
    vec![
        Container {
            name: "analyticsapi",
            // What it offers.
            env: vec![
                ("ANALYTICSDB_ENABLE", has("QueryEngine")),
                ("ANALYTICS_ALARM_ENABLE", has("AnalyticsAlarm")),
            ],
            check: Check::Port(api_introspect),
            introspect: Introspect::at(api_introspect),
            readiness: Some(Check::Port(API)),
            requests: ("50m", "128Mi"),
            ..Container::default()
        },
        Container {
            name: "collector",
            check: Check::Port(collector_introspect),
            introspect: Introspect::at(collector_introspect),
            // It makes its tables first, one collector after the other.
            starts_within: Some(900),
            readiness: Some(Check::Port(COLLECTOR)),
            requests: ("100m", "256Mi"),
            // For dumps of its own memory.
            capabilities: &["SYS_PTRACE"],
            ..Container::default()
        },
        node_manager::container(NODE_TYPE, NODE_MANAGER),
        provisioner::container(NODE_TYPE),
    ]
}

fn values(given: &Given<'_>, settings: &AnalyticsConfiguration) -> Value {
    let around = around(given);
    let database = analytics_database(given.peers);
    json!({
        "api_introspect_port": port(settings.analytics_introspect_port, API_INTROSPECT),
        "collector_introspect_port": port(settings.collector_introspect_port, COLLECTOR_INTROSPECT),
        "api_port": API,
        "collector_port": COLLECTOR,
        "aaa_mode": aaa_mode(given, settings.aaa_mode),
        "data_ttl": settings.analytics_data_ttl.unwrap_or(48),
        "config_audit_ttl": settings.analytics_config_audit_ttl.unwrap_or(2160),
        "statistics_ttl": settings.analytics_statistics_ttl.unwrap_or(4),
        "flow_ttl": settings.analytics_flow_ttl.unwrap_or(2),
        "cassandra": database.map(|one| one.endpoints("cqlPort").join(" ")).unwrap_or_default(),
        // As the images of R25.1 have it.
        "copies": database.map_or(1, |one| one.addresses.len().clamp(1, 2)),
        "provisioner": {"ANALYTICS_NODES": around.get("analytics_nodes")},
        "around": around,
    })
}

/// What the API checks about a request, as the daemons spell it.
fn aaa_mode(given: &Given<'_>, mode: Option<AaaMode>) -> &'static str {
    let auth = given.common.auth_parameters.as_ref().and_then(|auth| auth.auth_mode);
    match mode {
        Some(AaaMode::NoauthMisspelt) => AaaMode::NoAuth.as_str(),
        Some(mode) => mode.as_str(),
        None if auth == Some(AuthMode::Keystone) => AaaMode::Rbac.as_str(),
        None => AaaMode::NoAuth.as_str(),
    }
}
