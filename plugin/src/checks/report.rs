//! What `check` answers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::{Category, Check, Mode, Severity};
use crate::output::Answer;

/// What a check says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// It is as it has to be.
    Ok,
    /// It is not as it should be; OpenSDN may work all the same.
    Warn,
    /// OpenSDN will not work.
    Fail,
    /// It was not looked at, and why.
    Skipped,
    /// It was looked at, and what can be seen does not say.
    Uncertain,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::Skipped => "skip",
            Self::Uncertain => "?",
        }
    }
}

/// What a check says, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) message: String,
    /// A command; the catalogue's where there is none that fits better.
    pub(crate) fix: Option<String>,
    pub(crate) nodes: Vec<NodeResult>,
}

impl Outcome {
    /// The worst of several: that of which most has to be done. Ok where there is none.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter()
            .filter(|one| one.rank() > 0)
            .max_by_key(|one| one.rank())
            .unwrap_or(Self::Ok)
    }

    /// How bad it is.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Skipped | Self::Ok => 0,
            Self::Uncertain => 1,
            Self::Warn => 2,
            Self::Fail => 3,
        }
    }
}

impl Verdict {
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into(), fix: None, nodes: Vec::new() }
    }

    pub(crate) fn ok(message: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, message)
    }

    pub(crate) fn warn(message: impl Into<String>) -> Self {
        Self::new(Outcome::Warn, message)
    }

    pub(crate) fn fail(message: impl Into<String>) -> Self {
        Self::new(Outcome::Fail, message)
    }

    pub(crate) fn skipped(message: impl Into<String>) -> Self {
        Self::new(Outcome::Skipped, message)
    }

    pub(crate) fn uncertain(message: impl Into<String>) -> Self {
        Self::new(Outcome::Uncertain, message)
    }

    /// With a command that puts it right.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(crate) fn on(mut self, nodes: Vec<NodeResult>) -> Self {
        self.nodes = nodes;
        self
    }

    /// A check that only warns never fails.
    pub(super) fn within(mut self, severity: Severity) -> Self {
        if severity != Severity::Fatal && self.outcome == Outcome::Fail {
            self.outcome = Outcome::Warn;
        }
        self
    }
}

/// What a check says of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NodeResult {
    /// The node.
    pub(crate) name: String,
    /// What it is there.
    pub(crate) result: Outcome,
    /// Why.
    pub(crate) message: String,
}

/// What the checks say of a cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckReport {
    /// The context of the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    /// Address of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// The version of the API server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kubernetes: String,
    /// How many nodes it has; nothing where they could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nodes: Option<usize>,
    /// Milliseconds until all was read that is judged.
    pub(crate) read_ms: u64,
    /// How many ended in which way.
    pub(crate) summary: Summary,
    /// Each check, in the order of the catalogue.
    pub(crate) checks: Vec<Checked>,
}

/// Whole milliseconds.
pub(crate) fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

impl Answer for CheckReport {
    const KIND: &'static str = "CheckReport";
}

/// How many ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Summary {
    /// As it has to be.
    pub(crate) passed: usize,
    /// Not as it should be.
    pub(crate) warning: usize,
    /// OpenSDN will not work.
    pub(crate) failed: usize,
    /// Not looked at.
    pub(crate) skipped: usize,
    /// Looked at, and not known.
    pub(crate) uncertain: usize,
}

impl Summary {
    /// Whether something was looked at, and nothing of it is known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.uncertain > 0 && self.passed + self.warning + self.failed == 0
    }

    pub(crate) fn of(all: &[Outcome]) -> Self {
        let count = |outcome: Outcome| all.iter().filter(|one| **one == outcome).count();
        Self {
            passed: count(Outcome::Ok),
            warning: count(Outcome::Warn),
            failed: count(Outcome::Fail),
            skipped: count(Outcome::Skipped),
            uncertain: count(Outcome::Uncertain),
        }
    }
}

/// A check and what it says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checked {
    /// Its id, which never changes.
    pub(crate) id: &'static str,
    /// What it is about.
    pub(crate) category: Category,
    /// What has to be so.
    pub(crate) title: &'static str,
    /// What it says.
    pub(crate) result: Outcome,
    /// How bad it is where it is not so.
    pub(crate) severity: Severity,
    /// How it finds out.
    pub(crate) mode: Mode,
    /// What was found, or why it was not looked at.
    pub(crate) message: String,
    /// A command that puts it right, where something is wrong or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
    /// The nodes that it is about.
    pub(crate) nodes: Vec<NodeResult>,
    /// Milliseconds until it was judged, after all was read (`readMs` of the report).
    pub(crate) duration_ms: u64,
    /// Where it is explained.
    pub(crate) docs: String,
}

impl Checked {
    pub(super) fn of(check: &Check, verdict: Verdict, took: Duration) -> Self {
        let needs_fix =
            matches!(verdict.outcome, Outcome::Warn | Outcome::Fail | Outcome::Uncertain);
        let fix = verdict.fix.unwrap_or_else(|| check.fix.to_owned());
        Self {
            id: check.id,
            category: check.category,
            title: check.title,
            result: verdict.outcome,
            severity: check.severity,
            mode: check.mode,
            message: verdict.message,
            fix: Some(fix).filter(|_| needs_fix),
            nodes: verdict.nodes,
            duration_ms: milliseconds(took),
            docs: format!("kubectl opensdn explain {}", check.id),
        }
    }
}

/// The checks that there are.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CheckCatalogue {
    /// In the order in which they are reported.
    pub(crate) checks: Vec<Listed>,
}

impl Answer for CheckCatalogue {
    const KIND: &'static str = "CheckCatalogue";
}

/// A check as `--list` shows it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
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
    /// Whether this version can judge it.
    pub(crate) is_judged: bool,
}
