//! RabbitMQ: the message bus of the config services. Its members join by themselves when they start, and are taken out
//! by the command line when their pods are gone.

use std::sync::Arc;

use opensdn_crds::component::{self, Component};
use opensdn_crds::pod::LogLevel;
use opensdn_crds::rabbitmq::{RabbitmqConfiguration, TcpListenOptions};
use serde_json::{Value, json};

use super::shared::around::of_bus;
use super::shared::{fields, port};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Mount, Password, SettingsError,
    Template, Volume,
};
use crate::ensembles::rabbitmq::Nodes;
use crate::names::own_secret;

/// The kind Rabbitmq.
pub(super) struct Rabbitmq;

const ROW: &Component = component::row("Rabbitmq");
const CLIENT: u16 = ROW.port_of_field("port");
const EPMD: u16 = ROW.port_of_field("erlEpmdPort");
/// Above the port of clients, as in tf-operator (`pkg/apis/tf/v1alpha1/templates/rabbitmq_config.go:142`).
const MANAGEMENT: u32 = 10_000;
const DISTRIBUTION: u32 = 20_000;
/// Within the time that a pod has to end. Who else is to be synchronised may not be there any more.
const BEFORE_ITS_END: &str = "cd /etc/contrailconfigmaps
timeout 10 bash as-rabbitmq.sh rabbitmq-upgrade await_online_synchronized_mirror --timeout 8
timeout 6 bash as-rabbitmq.sh rabbitmq-upgrade drain || true";

impl ComponentKind for Rabbitmq {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn asked_before_a_restart(&self) -> Option<&'static str> {
        Some(
            "Whether each node runs, and by `rabbitmq-diagnostics` whether a queue would lose its last synchronized mirror or \
         its majority; one of before 3.8 can say neither, so that only whether each runs is waited for: what is queued where mirrors are not in sync yet may be lost.",
        )
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("rabbitmq/run-rabbitmq.sh"),
            template!("rabbitmq/as-rabbitmq.sh"),
            template!("rabbitmq/check-rabbitmq.sh"),
            template!("rabbitmq/ensemble.sh"),
            template!("rabbitmq/rabbitmq.ini"),
            template!("rabbitmq/rabbitmq-env.ini"),
            template!("rabbitmq/enabled_plugins.ini"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: RabbitmqConfiguration = given.settings()?;
        let client = port(settings.port, CLIENT);
        let keeps_cookie = settings.erlang_cookie.as_deref().unwrap_or_default().is_empty();
        let partition_handling = text(settings.cluster_partition_handling.as_deref(), "autoheal");
        // Who names one has made it, whatever it is called.
        let other = settings.secret.clone().filter(|name| !name.is_empty());
        let login = if other.is_some() { "rabbitmq" } else { "own" };
        Ok(Description {
            containers: vec![Container {
                name: "rabbitmq",
                mounts: vec![
                    Mount::at("rabbitmq-data", "/var/lib/rabbitmq"),
                    Mount::at("rabbitmq-logs", "/var/log/rabbitmq"),
                ],
                check: Check::Command("bash /etc/contrailconfigmaps/check-rabbitmq.sh".to_owned()),
                readiness: Some(Check::Port(client)),
                requests: ("100m", "512Mi"),
                pre_stop: Some(BEFORE_ITS_END.to_owned()),
                ..Container::default()
            }],
            files: vec![
                File::shared("run-rabbitmq.sh", "rabbitmq/run-rabbitmq.sh"),
                File::shared("as-rabbitmq.sh", "rabbitmq/as-rabbitmq.sh"),
                File::shared("check-rabbitmq.sh", "rabbitmq/check-rabbitmq.sh"),
                File::shared("rabbitmq.conf", "rabbitmq/rabbitmq.ini"),
                File::shared("rabbitmq-env.conf", "rabbitmq/rabbitmq-env.ini"),
                File::shared("enabled_plugins", "rabbitmq/enabled_plugins.ini"),
                File::of_pod("ensemble", "rabbitmq/ensemble.sh"),
            ],
            values: json!({
                "port": client,
                "management_port": u32::from(client) + MANAGEMENT,
                "distribution_port": u32::from(client) + DISTRIBUTION,
                "epmd_port": port(settings.erl_epmd_port, EPMD),
                "partition_handling": partition_handling,
                "level": given.common.log_level.unwrap_or(LogLevel::Info),
                "tcp_listen_options": options(settings.tcp_listen_options.as_ref()),
                "login": format!("/etc/credentials/{login}"),
                "keeps_cookie": keeps_cookie,
            }),
            volumes: vec![
                Volume::data("rabbitmq-data", "/var/lib/contrail/rabbitmq"),
                Volume::folder("rabbitmq-logs", "/var/log/contrail/rabbitmq"),
            ],
            status: fields(
                &json!({"secret": other.clone().unwrap_or_else(|| own_secret(given.name, None))}),
            ),
            passwords: passwords(&settings, other.is_none()),
            own_secret: other.is_some().then_some("erlang-cookie"),
            credentials: other.map(of_bus).into_iter().collect(),
            storage: settings.storage.clone(),
            ensemble: Some(Arc::new(Nodes)),
            ..Description::default()
        })
    }
}

fn text<'a>(given: Option<&'a str>, default: &'a str) -> &'a str {
    given.filter(|given| !given.is_empty()).unwrap_or(default)
}

/// Those of clients too, where no other Secret has them.
fn passwords(settings: &RabbitmqConfiguration, has_login: bool) -> Vec<Password> {
    let password =
        |key, given: &Option<String>, letters| Password { key, given: given.clone(), letters };
    let mut all = vec![password("erlang_cookie", &settings.erlang_cookie, 32)];
    if has_login {
        all.push(password("user", &settings.user, 8));
        all.push(password("password", &settings.password, 32));
        all.push(password("vhost", &settings.vhost, 6));
    }
    all
}

fn options(given: Option<&TcpListenOptions>) -> Vec<Value> {
    let Some(given) = given else { return Vec::new() };
    // Templates would write it with a capital.
    let word = |is: bool| Value::from(is.to_string());
    let all = [
        ("backlog", given.backlog.map(Value::from)),
        ("nodelay", given.nodelay.map(word)),
        ("linger.on", given.linger_on.map(word)),
        ("linger.timeout", given.linger_timeout.map(Value::from)),
        ("exit_on_close", given.exit_on_close.map(word)),
    ];
    let set = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
    set.map(|(key, value)| json!({"key": key, "value": value})).collect()
}
