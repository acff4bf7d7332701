//! What an audit found, as an answer and for people.

use std::collections::BTreeSet;
use std::io::{self, Write};

use opensdn_policy_host::stored::{Found, StoredObject, Weight};
use opensdn_validate::WouldSay;
use opensdn_validate::report::{NotChecked, Severity, one_line};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Answer;
use crate::ui::{Layout, style, wrap};

/// What `audit` answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditFindings {
    /// Where this is from.
    pub(super) source: Source,
    /// When the webhook's audit ended (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    /// Objects that were judged, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) objects: Option<i64>,
    /// How much each policy found: in the whole cluster, or of what is here where a namespace is named.
    pub(super) policies: Vec<PolicyCounts>,
    /// What was found, worst first.
    pub(super) findings: Vec<AuditFinding>,
    /// Whether more was found than is here.
    pub(super) more: bool,
    /// What was not judged, and why.
    pub(super) not_checked: Vec<NotChecked>,
    /// How many reports on objects the webhook could not write, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_written: Option<String>,
    /// Whether reports are written, so that nothing need be installed to see all.
    #[serde(skip)]
    pub(super) is_reported: bool,
    /// Whether findings are newer than the audit that has ended.
    #[serde(skip)]
    pub(super) is_mixed: bool,
}

/// Where findings are from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Source {
    /// The summary of the webhook's audit: of each policy the first findings.
    #[default]
    Summary,
    /// Reports on objects, of this API.
    Reports(String),
    /// The policies were run on what is stored, as if they were enforced.
    WhatIf,
}

/// How much a policy found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyCounts {
    /// Name of the AdmissionPolicy.
    pub(super) name: String,
    /// `enforce`, `warn` or `audit`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) mode: String,
    /// Findings that refuse where it enforces.
    pub(super) denials: i64,
    /// Findings that never refuse.
    pub(super) warnings: i64,
    /// Evaluations without an answer.
    pub(super) failures: i64,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditFinding {
    /// What it would do at admission.
    pub(super) severity: Word,
    /// Name of the AdmissionPolicy.
    pub(super) policy: String,
    /// Stable code; empty for an evaluation without an answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) code: String,
    /// `Kind namespace/name`.
    pub(super) object: String,
    /// JSON Pointers of the fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) places: Vec<String>,
    /// What is wrong.
    pub(super) message: String,
    /// What to do, where it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) hint: String,
    /// When it was found first, in seconds since 1970, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
}

/// What a finding would do at admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Word {
    /// Refuse, where the policy enforces.
    Deny,
    /// There is no answer.
    Failure,
    /// Be said.
    Warn,
}

impl Answer for AuditFindings {
    const KIND: &'static str = "AuditFindings";
}

impl Word {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Failure => "failure",
            Self::Warn => "warn",
        }
    }

    pub(super) fn severity(self) -> Severity {
        match self {
            Self::Deny | Self::Failure => Severity::Error,
            Self::Warn => Severity::Warning,
        }
    }
}

impl From<Weight> for Word {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Denial => Self::Deny,
            Weight::Warning => Self::Warn,
            Weight::Failure => Self::Failure,
        }
    }
}

impl AuditFindings {
    /// What policies would say that are not in force.
    pub(super) fn of(said: WouldSay) -> Self {
        let names = said.policies.iter().map(|policy| policy.name.clone());
        let policies = names.map(|name| PolicyCounts { name, ..PolicyCounts::default() });
        let findings = said.findings.iter().map(|(object, found)| AuditFinding::of(object, found));
        let mut found = Self {
            source: Source::WhatIf,
            objects: i64::try_from(said.objects).ok(),
            policies: policies.collect(),
            findings: findings.collect(),
            not_checked: said.not_checked,
            ..Self::default()
        };
        found.count();
        found.sort();
        found
    }

    /// Reports are written while an audit is under way, and its summary at the end: whether they are newer. Then
    /// only what is here can be counted.
    pub(super) fn notice_newer(&mut self, ended: Option<i64>) {
        let is_newer = |one: &AuditFinding| ended.is_some_and(|ended| one.since > Some(ended));
        let counted = |policy: &PolicyCounts| policy.denials + policy.warnings + policy.failures;
        let here = |policy: &PolicyCounts| {
            let here = self.findings.iter().filter(|one| one.policy == policy.name);
            i64::try_from(here.count()).unwrap_or(i64::MAX)
        };
        if self.findings.iter().any(is_newer)
            || self.policies.iter().any(|one| here(one) > counted(one))
        {
            self.is_mixed = true;
            self.count();
        }
    }

    /// Counts what is here.
    pub(super) fn count(&mut self) {
        for policy in &mut self.policies {
            let of_policy = self.findings.iter().filter(|one| one.policy == policy.name);
            let (mut denials, mut warnings, mut failures) = (0, 0, 0);
            for finding in of_policy {
                *match finding.severity {
                    Word::Deny => &mut denials,
                    Word::Warn => &mut warnings,
                    Word::Failure => &mut failures,
                } += 1;
            }
            (policy.denials, policy.warnings, policy.failures) = (denials, warnings, failures);
        }
    }

    /// Adds what is not here yet.
    pub(super) fn add_missing(&mut self, others: Vec<AuditFinding>) {
        let key = |one: &AuditFinding| (one.policy.clone(), one.code.clone(), one.object.clone());
        let known: BTreeSet<_> = self.findings.iter().map(key).collect();
        self.findings.extend(others.into_iter().filter(|one| !known.contains(&key(one))));
    }

    /// Whether something was left out of which it is not known what it is.
    fn lacks_some(&self) -> bool {
        !self.not_checked.is_empty()
    }

    /// Whether that nothing was found means nothing, because something was not looked at.
    pub(super) fn is_unknown(&self) -> bool {
        self.findings.is_empty() && self.lacks_some()
    }

    pub(super) fn sort(&mut self) {
        self.findings.sort_by(|one, other| one.order().cmp(&other.order()));
    }

    /// How bad the worst finding is, also among those that are only counted.
    pub(super) fn worst(&self) -> Option<Severity> {
        let shown = self.findings.iter().map(|one| one.severity.severity()).max();
        let counted = self.policies.iter().filter(|_| self.more).map(|one| {
            let refuses = one.denials + one.failures > 0;
            let warns = (one.warnings > 0).then_some(Severity::Warning);
            if refuses { Some(Severity::Error) } else { warns }
        });
        counted.flatten().max().max(shown)
    }

    /// What is to be known besides findings.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let objects = match self.objects {
            Some(1) => "1 object".to_owned(),
            Some(number) => format!("{number} objects"),
            None => "an unknown number of objects".to_owned(),
        };
        match (&self.source, &self.ended) {
            (Source::WhatIf, _) => notes.push(format!("{objects} judged as if enforced")),
            (_, Some(ended)) => notes.push(format!("{objects} in the audit that ended {ended}")),
            (_, None) => notes.push("when the audit ended is not known".to_owned()),
        }
        if self.is_mixed {
            let why = "some findings are newer than that: an audit is under way, or was broken off";
            notes.push(why.to_owned());
        }
        for NotChecked { what, why } in &self.not_checked {
            notes.push(one_line(&format!("not checked: {what}: {why}")));
        }
        let not_written = self.not_written.iter();
        notes.extend(not_written.map(|why| one_line(&format!("not written: {why}"))));
        notes
    }

    /// How to see more.
    pub(super) fn hint(&self) -> Option<String> {
        let how = if self.is_reported {
            "all are in the reports on objects, where they could be written and you may list them, and said by \
             --what-if FILE"
        } else {
            "all are reported where the API of OpenReports is installed (https://openreports.io), or by \
             --what-if FILE"
        };
        self.more.then(|| format!("the summary has the first findings of each policy only; {how}"))
    }

    pub(super) fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        for finding in &self.findings {
            finding.write(layout, out)?;
        }
        match (self.findings.is_empty(), self.lacks_some()) {
            (true, false) => writeln!(out, "nothing found")?,
            (true, true) => writeln!(out, "nothing found in what was checked")?,
            (false, _) => {}
        }
        let found_any = |one: &&PolicyCounts| one.denials + one.warnings + one.failures > 0;
        let policies: Vec<&PolicyCounts> = self.policies.iter().filter(found_any).collect();
        if policies.is_empty() {
            return Ok(());
        }
        let width = policies.iter().map(|one| one.name.len()).max().unwrap_or(0).max(6);
        let (strong, end) = (style::STRONG, style::STRONG.render_reset());
        writeln!(
            out,
            "\n{strong}{:<width$}  {:<7}  {:>7}  {:>8}  {:>8}{end}",
            "POLICY", "MODE", "DENIALS", "WARNINGS", "FAILURES"
        )?;
        for PolicyCounts { name, mode, denials, warnings, failures } in policies {
            let (name, mode) = (one_line(name), if mode.is_empty() { "-" } else { mode });
            writeln!(out, "{name:<width$}  {mode:<7}  {denials:>7}  {warnings:>8}  {failures:>8}")?;
        }
        Ok(())
    }
}

impl AuditFinding {
    fn of(object: &StoredObject, found: &Found) -> Self {
        Self {
            severity: found.weight.into(),
            policy: found.policy.clone(),
            code: found.code.clone(),
            object: object.title(),
            places: Some(found.pointer.clone()).filter(|one| !one.is_empty()).into_iter().collect(),
            message: found.message.clone(),
            hint: found.hint.clone(),
            since: None,
        }
    }

    fn order(&self) -> (Word, &str, &str, &str) {
        (self.severity, &self.policy, &self.code, &self.object)
    }

    fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: usize = 9;
        let color = match self.severity {
            Word::Deny | Word::Failure => style::ERROR,
            Word::Warn => style::WARNING,
        };
        let (strong, word) = (style::STRONG, self.severity.text());
        let code = match self.code.as_str() {
            "" => String::new(),
            code => format!("{}  ", one_line(code)),
        };
        let object = one_line(&self.object);
        writeln!(out, "{color}{word:<7}{color:#}  {code}{strong}{object}{strong:#}")?;
        let places = match self.places.as_slice() {
            [] => String::new(),
            places => format!("{}: ", places.join(" ")),
        };
        let text = one_line(&format!("{}: {places}{}", self.policy, self.message));
        let hint = one_line(&self.hint);
        for (label, text) in [("", text), ("do: ", hint)] {
            let lines = wrap(&text, layout.width.saturating_sub(INDENT + label.len()));
            for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
                let label = if number == 0 { label } else { "" };
                writeln!(out, "{:INDENT$}{label}{line}", "")?;
            }
        }
        Ok(())
    }
}
