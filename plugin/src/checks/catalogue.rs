//! Every check that there is. An id stays what it is: a script skips it, a page explains it. The checks themselves are in
//! the files below, by what they are about.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;

use super::Purpose;
use super::report::{CheckCatalogue, Listed, Verdict};
use super::world::World;

mod of_clusters;
mod of_nested;
mod of_upgrades;

/// A check.
pub(crate) struct Check {
    /// Its id.
    pub(crate) id: &'static str,
    /// What it is about.
    pub(crate) category: Category,
    /// How bad it is where it is not so.
    pub(crate) severity: Severity,
    /// How it finds out.
    pub(crate) mode: Mode,
    /// What has to be so.
    pub(crate) title: &'static str,
    /// What happens otherwise.
    pub(crate) why: &'static str,
    /// A command.
    pub(crate) fix: &'static str,
    /// What it says of a cluster, and of its nodes where they were looked at; nothing where this version cannot tell.
    pub(crate) judge: Option<fn(&World) -> Verdict>,
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Category {
    /// The API server and rights.
    KubernetesApi,
    /// Nodes and what runs on them.
    Nodes,
    /// Ports.
    Ports,
    /// The data plane.
    DataPlane,
    /// Other networks of pods.
    Cni,
    /// Networks and routes.
    NetworkPlan,
    /// Clocks.
    Time,
    /// What is stored on nodes.
    Storage,
    /// Images and registries.
    Images,
    /// What is outside of the cluster.
    Surroundings,
    /// Before an upgrade.
    Upgrade,
    /// Clusters within virtual machines of an OpenSDN.
    Nested,
}

impl Category {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::KubernetesApi => "kubernetes-api",
            Self::Nodes => "nodes",
            Self::Ports => "ports",
            Self::DataPlane => "data-plane",
            Self::Cni => "cni",
            Self::NetworkPlan => "network-plan",
            Self::Time => "time",
            Self::Storage => "storage",
            Self::Images => "images",
            Self::Surroundings => "surroundings",
            Self::Upgrade => "upgrade",
            Self::Nested => "nested",
        }
    }
}

/// How bad it is where it is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// OpenSDN does not work.
    Fatal,
    /// It may work.
    Warning,
    /// It is good to know.
    Info,
}

impl Severity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fatal => "fatal",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// How a check finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// It asks the API server.
    Api,
    /// It needs a pod on each node.
    Probe,
    /// The API server shows a part of it, a pod on each node the rest.
    ApiAndProbe,
    /// It looks from where it is run.
    Client,
    /// Before an upgrade.
    Upgrade,
    /// In nested mode.
    Nested,
}

impl Mode {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Probe => "probe",
            Self::ApiAndProbe => "api+probe",
            Self::Client => "client",
            Self::Upgrade => "upgrade",
            Self::Nested => "nested",
        }
    }
}

/// The check of that id.
pub(crate) fn of_id(id: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(id))
}

/// Those that are about any cluster, beside the ones that are about nested clusters alone.
const OF_ANY: [&str; 7] = ["K001", "K002", "N102", "N105", "S501", "S502", "T601"];

/// Those that matter before an upgrade, beside the ones that are about it alone: pods are replaced on their nodes, and
/// images are pulled.
const BEFORE_UPGRADE: [&str; 10] =
    ["K001", "K002", "K004", "K007", "N101", "D301", "T601", "T602", "V701", "I801"];

/// Why the check is not about such a cluster, if it is not.
pub(super) fn other_purpose(check: &Check, purpose: Purpose) -> Option<&'static str> {
    let (is_nested, is_upgrade) =
        (check.category == Category::Nested, check.category == Category::Upgrade);
    match purpose {
        Purpose::Upgrade if is_upgrade || BEFORE_UPGRADE.contains(&check.id) => None,
        Purpose::Upgrade => Some("not about an upgrade: check without --upgrade"),
        _ if is_upgrade => Some("belongs to an upgrade: check --upgrade VERSION"),
        Purpose::Installation if is_nested => Some("belongs to nested mode: check --nested"),
        Purpose::Nested if !is_nested && !OF_ANY.contains(&check.id) => {
            Some("about clusters with a control plane or vrouters of their own")
        }
        Purpose::Installation | Purpose::Nested => None,
    }
}

/// What `--list` shows.
pub(crate) fn listed() -> CheckCatalogue {
    let listed = CHECKS.iter().map(|check| Listed {
        id: check.id,
        category: check.category,
        severity: check.severity,
        mode: check.mode,
        title: check.title,
        is_judged: check.judge.is_some(),
    });
    CheckCatalogue { checks: listed.collect() }
}

const fn check(
    id: &'static str,
    of: (Category, Mode, Severity),
    title: &'static str,
    why: &'static str,
    fix: &'static str,
    judge: Option<fn(&World) -> Verdict>,
) -> Check {
    Check { id, category: of.0, mode: of.1, severity: of.2, title, why, fix, judge }
}

/// Every check, in the order in which they are reported.
pub(crate) static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
    let clusters = of_clusters::CHECKS.into_iter();
    clusters.chain(of_upgrades::CHECKS).chain(of_nested::CHECKS).collect()
});
