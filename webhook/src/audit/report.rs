//! What an audit found, bounded in size. Pure.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_policy_host::{EvalFailure, Finding, Mode, PolicySet, Severity, Verdict, beginning};
use serde::Serialize;

use crate::evaluate::StoredObject;

/// Findings, and failures, that are written out per policy. All are counted.
const EXAMPLES: usize = 20;
/// Things that were not checked that are written out. All are counted.
const NOT_CHECKED: usize = 100;
/// Longest message of a finding, in bytes.
const MESSAGE: usize = 500;
/// The report, well below what etcd takes.
const SIZE: usize = 256 << 10;

/// What one pass found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    began: String,
    ended: String,
    /// Objects evaluated, by group/kind.
    objects: BTreeMap<String, i64>,
    policies: BTreeMap<String, Policy>,
    not_checked_total: i64,
    not_checked: Vec<NotChecked>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    digest: String,
    mode: Mode,
    denials: i64,
    warnings: i64,
    /// Evaluations without an answer.
    failures: i64,
    examples: Vec<Example>,
    /// More was found than is written out.
    more: bool,
    #[serde(skip)]
    by_kind: BTreeMap<String, [i64; 3]>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Example {
    object: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pointer: String,
    message: String,
    #[serde(skip)]
    kind: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NotChecked {
    what: String,
    why: String,
}

/// An object as its user knows it.
pub(super) fn subject(stored: &StoredObject) -> String {
    let StoredObject { kind, namespace, name, .. } = stored;
    if namespace.is_empty() {
        format!("{kind} {name}")
    } else {
        format!("{kind} {namespace}/{name}")
    }
}

fn kind_of(group: &str, kind: &str) -> String {
    format!("{group}/{kind}")
}

impl Report {
    pub(super) fn start(set: &PolicySet, now: String) -> Self {
        let policy = |binding: &opensdn_policy_host::Binding| {
            let policy = Policy {
                digest: binding.policy.digest().to_string(),
                mode: binding.mode,
                denials: 0,
                warnings: 0,
                failures: 0,
                examples: Vec::new(),
                more: false,
                by_kind: BTreeMap::new(),
            };
            (binding.name.clone(), policy)
        };
        Self {
            began: now,
            ended: String::new(),
            objects: BTreeMap::new(),
            policies: set.bindings().map(policy).collect(),
            not_checked_total: 0,
            not_checked: Vec::new(),
        }
    }

    pub(super) fn end(&mut self, now: String) {
        self.ended = now;
    }

    pub(super) fn not_checked(&mut self, what: String, why: String) {
        self.not_checked_total += 1;
        if self.not_checked.len() < NOT_CHECKED {
            self.not_checked.push(NotChecked { what, why: beginning(&why, MESSAGE).to_owned() });
        }
    }

    /// What an object was found to be as created and as updated: what both say counts once.
    pub(super) fn add(&mut self, stored: &StoredObject, verdicts: Vec<Verdict>) {
        let kind = kind_of(&stored.group, &stored.kind);
        *self.objects.entry(kind.clone()).or_default() += 1;
        let object = subject(stored);
        let mut seen = BTreeSet::new();
        for Verdict { findings, failures, .. } in verdicts {
            for Finding { policy, code, severity, pointer, message, .. } in findings {
                if seen.insert((policy.clone(), code.clone(), pointer.clone(), message.clone())) {
                    let sort = if severity == Severity::Deny { 0 } else { 1 };
                    let message = beginning(&message, MESSAGE).to_owned();
                    let (object, kind) = (object.clone(), kind.clone());
                    self.count(&policy, sort, Example { object, code, pointer, message, kind });
                }
            }
            for EvalFailure { policy, reason, .. } in failures {
                let text = reason.to_string();
                if seen.insert((policy.clone(), String::new(), String::new(), text.clone())) {
                    let (code, pointer, message) = Default::default();
                    let (object, kind) = (object.clone(), kind.clone());
                    let mut example = Example { object, code, pointer, message, kind };
                    example.message =
                        format!("could not be evaluated: {}", beginning(&text, MESSAGE));
                    self.count(&policy, 2, example);
                }
            }
        }
    }

    fn count(&mut self, policy: &str, sort: usize, example: Example) {
        let Some(policy) = self.policies.get_mut(policy) else { return };
        let counts = policy.by_kind.entry(example.kind.clone()).or_default();
        if let Some(count) = counts.get_mut(sort) {
            *count += 1;
        }
        if policy.examples.len() < EXAMPLES {
            policy.examples.push(example);
        } else {
            policy.more = true;
        }
        policy.sum();
    }

    /// A kind is evaluated again.
    pub(super) fn forget(&mut self, group: &str, kind: &str) {
        let kind = kind_of(group, kind);
        self.objects.remove(&kind);
        for policy in self.policies.values_mut() {
            policy.by_kind.remove(&kind);
            policy.examples.retain(|example| example.kind != kind);
            policy.sum();
        }
    }

    pub(super) fn objects(&self) -> i64 {
        self.objects.values().sum()
    }

    pub(super) fn unchecked(&self) -> i64 {
        self.not_checked_total
    }

    /// Policy, severity, number.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&str, &'static str, i64)> {
        self.policies.iter().flat_map(|(name, policy)| {
            let Policy { denials, warnings, failures, .. } = policy;
            [(&**name, "deny", *denials), (name, "warn", *warnings), (name, "failure", *failures)]
        })
    }

    pub(super) fn log(&self) {
        for (policy, found) in &self.policies {
            if found.denials + found.warnings + found.failures > 0 {
                let Policy { denials, warnings, failures, .. } = found;
                tracing::warn!(policy, denials, warnings, failures, "audit found problems");
            }
        }
        let (objects, not_checked) = (self.objects(), self.not_checked_total);
        tracing::info!(objects, not_checked, "audit finished");
    }

    /// As JSON, with as many examples as fit.
    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        let mut report = self.clone();
        let mut most = EXAMPLES;
        loop {
            let text = serde_json::to_string_pretty(&report)?;
            if text.len() <= SIZE || most == 0 {
                return Ok(text);
            }
            most /= 2;
            for policy in report.policies.values_mut() {
                policy.more |= policy.examples.len() > most;
                policy.examples.truncate(most);
            }
        }
    }
}

impl Policy {
    fn sum(&mut self) {
        let [mut denials, mut warnings, mut failures] = [0; 3];
        for [denied, warned, failed] in self.by_kind.values() {
            denials += denied;
            warnings += warned;
            failures += failed;
        }
        (self.denials, self.warnings, self.failures) = (denials, warnings, failures);
    }
}

#[cfg(test)]
mod tests;
