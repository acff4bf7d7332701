//! All Upgrades of a namespace, the newest first.

use std::io::{self, Write};

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Phase, Upgrade};
use opensdn_upgrade::report::seconds;
use schemars::JsonSchema;
use serde::Serialize;

use super::report::elapsed;
use super::stage;
use super::table::{self, Row};
use crate::output::Answer;
use crate::ui::{Layout, one_line};

/// What `upgrade history` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct UpgradeHistory {
    /// The namespace.
    namespace: String,
    /// The newest first.
    upgrades: Vec<PastUpgrade>,
}

/// An Upgrade in short.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PastUpgrade {
    /// Its name.
    name: String,
    /// The Manager.
    manager: String,
    /// The releases that ran.
    from: Option<String>,
    /// The releases that shall run.
    to: Option<String>,
    /// How far it is; none before the operator has seen it.
    phase: Option<Phase>,
    /// When it began, RFC 3339.
    started_at: Option<String>,
    /// When it ended, RFC 3339.
    finished_at: Option<String>,
    /// How long it took, if it has ended.
    seconds: Option<i64>,
    /// Who asked for it, as he said.
    requested_by: Option<String>,
}

impl Answer for UpgradeHistory {
    const KIND: &'static str = "UpgradeHistory";
}

impl UpgradeHistory {
    /// Of these.
    pub(crate) fn of(namespace: &str, all: Vec<Upgrade>) -> Self {
        let upgrades = stage::newest_first(all).into_iter().map(past).collect();
        Self { namespace: namespace.to_owned(), upgrades }
    }

    /// Each as kubectl names it.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.upgrades.iter().map(|one| format!("upgrade.opensdn.io/{}", one.name))
    }

    /// Writes it; what is at work is timed up to `now`.
    pub(crate) fn write(
        &self,
        now: Timestamp,
        layout: Layout,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.upgrades.is_empty() {
            return writeln!(
                out,
                "there is no Upgrade in the namespace {}",
                one_line(&self.namespace)
            );
        }
        let heads = ["NAME", "FROM", "TO", "PHASE", "STARTED", "DURATION", "REQUESTED BY"];
        let rows: Vec<Row> = self.upgrades.iter().map(|one| row(one, now)).collect();
        table::write(&heads, &rows, layout, out)
    }
}

fn past(upgrade: Upgrade) -> PastUpgrade {
    let status = stage::status(&upgrade);
    PastUpgrade {
        name: upgrade.name_any(),
        manager: upgrade.spec.manager,
        seconds: seconds(status.started_at.as_ref(), status.finished_at.as_ref()),
        from: status.from,
        to: status.to,
        phase: status.phase,
        started_at: status.started_at,
        finished_at: status.finished_at,
        requested_by: upgrade.spec.requested_by,
    }
}

fn row(one: &PastUpgrade, now: Timestamp) -> Row {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let cells = vec![
        one.name.clone(),
        text(&one.from),
        text(&one.to),
        one.phase.map_or("-", Phase::as_str).to_owned(),
        text(&one.started_at),
        elapsed(one.started_at.as_ref(), one.finished_at.as_ref(), now),
        one.requested_by.clone().unwrap_or_default(),
    ];
    Row { cells, ..Row::default() }
}
