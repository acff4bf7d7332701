//! The kinds that the operator makes run: one line each.

/// A template by its name.
macro_rules! template {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $name, ".j2")))
    };
}

mod analytics;
mod analytics_alarm;
mod analytics_snmp;
mod cassandra;
mod config;
mod control;
mod kubemanager;
mod query_engine;
mod rabbitmq;
mod redis;
mod shared;
mod vrouter;
mod webui;
mod zookeeper;

pub(crate) use shared::{config_api, keystone};

use crate::component::{self, ComponentKind, Template};
use crate::kind::{Profiles, Workload};

/// All that it makes run.
pub static COMPONENTS: &[&dyn ComponentKind] = &[
    &analytics::Analytics,
    &analytics_alarm::AnalyticsAlarm,
    &analytics_snmp::AnalyticsSnmp,
    &cassandra::Cassandra,
    &config::Config,
    &control::Control,
    &kubemanager::Kubemanager,
    &query_engine::QueryEngine,
    &rabbitmq::Rabbitmq,
    &redis::Redis,
    &vrouter::Vrouter,
    &webui::Webui,
    &zookeeper::Zookeeper,
];

/// What the templates of several components are, or include.
const COMMON: &[Template] = &[
    template!("common/wait.sh"),
    template!("common/fill.sh"),
    template!("common/supervise.sh"),
    template!("common/daemon.sh"),
    template!("common/sandesh.ini"),
    template!("common/configdb.ini"),
    template!("common/configdb_python.ini"),
    template!("common/rabbit.ini"),
    template!("common/keystone.ini"),
    template!("common/vnc_api_lib.ini"),
    template!("common/nodemgr.ini"),
    template!("common/run-nodemanager.sh"),
    template!("common/provisioner.sh"),
    template!("common/provision.sh"),
    template!("common/run-provisioner.sh"),
];

/// All that are described.
pub fn described() -> impl Iterator<Item = &'static dyn ComponentKind> {
    COMPONENTS.iter().copied()
}

/// All templates.
pub fn templates() -> impl Iterator<Item = Template> {
    COMMON.iter().chain(COMPONENTS.iter().flat_map(|one| one.templates())).copied()
}

/// The kinds of profiles that they name.
pub fn profiles() -> impl Iterator<Item = Profiles> {
    described().filter_map(ComponentKind::profiles)
}

/// What keeps the pods of that kind.
#[must_use]
pub fn workload_of(kind: &str) -> Workload {
    let component = described().find(|component| component.facts().kind == kind);
    component.map_or_else(Workload::default, ComponentKind::workload)
}

/// The component of that kind that it makes run.
#[must_use]
pub fn of_kind(kind: &str) -> Option<&'static dyn ComponentKind> {
    COMPONENTS.iter().copied().find(|component| component.facts().kind == kind)
}

/// The component whose pods have that word for their kind.
#[must_use]
pub fn of_word(word: &str) -> Option<&'static dyn ComponentKind> {
    COMPONENTS.iter().copied().find(|component| component::word(component.facts()) == word)
}
