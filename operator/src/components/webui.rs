//! Webui: the web interface, and beside it what asks the other services for it.

use opensdn_crds::component::{self, Component};
use opensdn_crds::pod::LogLevel;
use opensdn_crds::webui::WebuiConfiguration;
use serde_json::{Value, json};

use super::shared::around::{around, config_database, passwords};
use super::shared::control::control;
use super::shared::{fields, keystone, logs};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Password, ServicePort,
    SettingsError, Template,
};
use crate::peers::Peer;
use crate::release::Release;

/// The kind Webui.
pub(super) struct Webui;

// No field changes these.
const HTTP: u16 = 8180;
const HTTPS: u16 = 8143;
/// Only on 127.0.0.1.
const JOBS: u16 = 3002;
/// Of a password that no user has chosen.
const LETTERS: usize = 20;

impl ComponentKind for Webui {
    fn facts(&self) -> &'static Component {
        const { component::row("Webui") }
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("webui/configure.sh"),
            template!("webui/run-webuiweb.sh"),
            template!("webui/run-webuijob.sh"),
            template!("webui/config.global.js"),
            template!("webui/contrail-webui-userauth.js"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: WebuiConfiguration = given.settings()?;
        let control = control(given, settings.control_instance.as_deref())?;
        let (login, passwords) = login(given);
        let secret = keystone::secret(given.common);
        let secret = secret.map(keystone::credentials);
        Ok(Description {
            containers: containers(given),
            files: vec![
                File::shared("run-webuiweb.sh", "webui/run-webuiweb.sh"),
                File::shared("run-webuijob.sh", "webui/run-webuijob.sh"),
                File::of_pod("config.global.js", "webui/config.global.js"),
                File::of_pod("contrail-webui-userauth.js", "webui/contrail-webui-userauth.js"),
            ],
            values: json!({
                "config": server(given.peers.first("Config"), "apiPort", const { component::row("Config").port_of_field("apiPort") }),
                "analytics": server(given.peers.first("Analytics"), "analyticsPort", const { component::row("Analytics").port_of_field("analyticsPort") }),
                "control": server(control, "dnsIntrospectPort", const { component::row("Control").port_of_field("dnsIntrospectPort") }),
                "database": server(config_database(given.peers), "cqlPort", const { component::row("Cassandra").port_of_field("cqlPort") }),
                "redis": server(given.peers.first("Redis"), "redisPort", const { component::row("Redis").port_of_field("redisPort") }),
                "level": level(given.common.log_level),
                "login": login,
                "around": around(given),
            }),
            volumes: vec![logs("/var/log/contrail/webui")],
            passwords,
            credentials: secret.into_iter().collect(),
            service: Some(ServicePort { number: HTTPS, name: None }),
            status: fields(&json!({"ports": {"webUIHttpPort": HTTP, "webUIHttpsPort": HTTPS}})),
            depends_on_release: true,
            ..Description::default()
        })
    }
}

fn containers(given: &Given<'_>) -> Vec<Container> {
    let is_there = |kind| given.peers.first(kind).is_some().to_string();
    let env = vec![
        ("ANALYTICS_ALARM_ENABLE", is_there("AnalyticsAlarm")),
        ("ANALYTICS_SNMP_ENABLE", is_there("AnalyticsSnmp")),
        ("ANALYTICSDB_ENABLE", is_there("QueryEngine")),
    ];
    let check = match given.release {
        // A kubelet has no cipher any more that the Node.js of that time knows.
        Release::UpToR21 | Release::UpToR24 => Check::Port(HTTPS),
        Release::FromR25 => Check::Https(HTTPS),
    };
    vec![
        Container {
            name: "webuiweb",
            env: env.clone(),
            check,
            requests: ("50m", "256Mi"),
            ..Container::default()
        },
        Container {
            name: "webuijob",
            env,
            check: Check::Command(format!("bash -c '</dev/tcp/127.0.0.1/{JOBS}'")),
            requests: ("20m", "128Mi"),
            ..Container::default()
        },
    ]
}

/// Who may log in: whom Keystone knows, else the administrator alone. tf-operator's password of his is public.
fn login(given: &Given<'_>) -> (Value, Vec<Password>) {
    let around = around(given);
    let auth = |key: &str| around.pointer(&format!("/auth/{key}")).cloned().unwrap_or_default();
    if auth("mode") == "keystone" || keystone::secret(given.common).is_some() {
        return (json!({"user": auth("user"), "password": auth("password")}), passwords(given));
    }
    let given = keystone::parameters(given.common).admin_password;
    let password = Password { key: "webui-password", given, letters: LETTERS };
    let login = json!({"user": auth("user"), "password": "@credentials/own/webui-password@"});
    (login, vec![password])
}

/// Its members, and their port as the web UI has it.
fn server(peer: Option<&Peer>, field: &str, default: u16) -> Value {
    let addresses = peer.map(|peer| peer.addresses.clone()).unwrap_or_default();
    let port = peer.map_or(default, |peer| peer.port(field));
    json!({"addresses": addresses, "port": port.to_string()})
}

/// As its log knows levels; one that it does not know is none at all.
fn level(level: Option<LogLevel>) -> &'static str {
    match level {
        Some(LogLevel::Debug) => "debug",
        Some(LogLevel::Warning) => "warn",
        Some(LogLevel::Error | LogLevel::Critical) => "error",
        Some(LogLevel::None) => "none",
        Some(LogLevel::Info) | None => "info",
    }
}
