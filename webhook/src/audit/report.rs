//! The summary of an audit, bounded in size. Pure.

use std::collections::BTreeMap;

use opensdn_audit_report::{Example, NotChecked, PolicyReports, PolicySummary, Summary};
use opensdn_policy_host::stored::{Found, StoredObject, Weight};
use opensdn_policy_host::{PolicySet, beginning};

/// Findings, and failures, that are written out per policy. All are counted.
const EXAMPLES: usize = 20;
/// Things that were not checked that are written out. All are counted.
const NOT_CHECKED: usize = 100;
/// Longest reason, in bytes.
const REASON: usize = 500;
/// The report, well below what etcd takes.
const SIZE: usize = 256 << 10;

/// What one pass found.
#[derive(Clone, Debug)]
pub(super) struct Report {
    began: String,
    /// Objects evaluated, by group/kind.
    objects: BTreeMap<String, i64>,
    policies: BTreeMap<String, Policy>,
    not_checked_total: i64,
    not_checked: Vec<NotChecked>,
}

#[derive(Clone, Debug, Default)]
struct Policy {
    digest: String,
    mode: String,
    /// Each with its group/kind.
    examples: Vec<(String, Example)>,
    more: bool,
    by_kind: BTreeMap<String, Counts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    denials: i64,
    warnings: i64,
    failures: i64,
}

fn kind_of(group: &str, kind: &str) -> String {
    format!("{group}/{kind}")
}

impl Report {
    pub(super) fn start(set: &PolicySet, now: String) -> Self {
        let policy = |binding: &opensdn_policy_host::Binding| {
            let digest = binding.policy.digest().to_string();
            let mode = binding.mode.label().to_owned();
            (binding.name.clone(), Policy { digest, mode, ..Policy::default() })
        };
        Self {
            began: now,
            objects: BTreeMap::new(),
            policies: set.bindings().map(policy).collect(),
            not_checked_total: 0,
            not_checked: Vec::new(),
        }
    }

    pub(super) fn not_checked(&mut self, what: String, why: String) {
        self.not_checked_total += 1;
        if self.not_checked.len() < NOT_CHECKED {
            self.not_checked.push(NotChecked { what, why: beginning(&why, REASON).to_owned() });
        }
    }

    pub(super) fn add(&mut self, stored: &StoredObject, found: &[Found]) {
        let kind = kind_of(&stored.group, &stored.kind);
        *self.objects.entry(kind.clone()).or_default() += 1;
        for one in found {
            let Some(policy) = self.policies.get_mut(&one.policy) else { continue };
            policy.by_kind.entry(kind.clone()).or_default().count(one.weight);
            if policy.examples.len() < EXAMPLES {
                policy.examples.push((kind.clone(), example(stored, one)));
            } else {
                policy.more = true;
            }
        }
    }

    /// A kind is evaluated again.
    pub(super) fn forget(&mut self, group: &str, kind: &str) {
        let kind = kind_of(group, kind);
        self.objects.remove(&kind);
        for policy in self.policies.values_mut() {
            policy.by_kind.remove(&kind);
            policy.examples.retain(|(of, _)| *of != kind);
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
            let Counts { denials, warnings, failures } = policy.counts();
            [
                (&**name, Weight::Denial.word(), denials),
                (name, Weight::Warning.word(), warnings),
                (name, Weight::Failure.word(), failures),
            ]
        })
    }

    pub(super) fn log(&self) {
        for (policy, found) in &self.policies {
            let Counts { denials, warnings, failures } = found.counts();
            if denials + warnings + failures > 0 {
                tracing::warn!(policy, denials, warnings, failures, "audit found problems");
            }
        }
        let (objects, not_checked) = (self.objects(), self.not_checked_total);
        tracing::info!(objects, not_checked, "audit finished");
    }

    /// As JSON, with as many examples as fit.
    pub(super) fn text(
        &self,
        ended: &str,
        policy_reports: Option<&PolicyReports>,
    ) -> Result<String, serde_json::Error> {
        let mut most = EXAMPLES;
        loop {
            let text = serde_json::to_string_pretty(&self.summary(ended, policy_reports, most))?;
            if text.len() <= SIZE || most == 0 {
                return Ok(text);
            }
            most /= 2;
        }
    }

    fn summary(&self, ended: &str, policy_reports: Option<&PolicyReports>, most: usize) -> Summary {
        let policies = self.policies.iter();
        Summary {
            began: self.began.clone(),
            ended: ended.to_owned(),
            objects: self.objects.clone(),
            policies: policies.map(|(name, one)| (name.clone(), one.summary(most))).collect(),
            not_checked_total: self.not_checked_total,
            not_checked: self.not_checked.clone(),
            policy_reports: policy_reports.cloned(),
        }
    }
}

fn example(stored: &StoredObject, found: &Found) -> Example {
    Example {
        object: stored.title(),
        severity: found.weight.word().to_owned(),
        code: found.code.clone(),
        pointer: found.pointer.clone(),
        message: found.message.clone(),
    }
}

impl Counts {
    fn count(&mut self, weight: Weight) {
        *match weight {
            Weight::Denial => &mut self.denials,
            Weight::Warning => &mut self.warnings,
            Weight::Failure => &mut self.failures,
        } += 1;
    }
}

impl Policy {
    fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for Counts { denials, warnings, failures } in self.by_kind.values() {
            all.denials += denials;
            all.warnings += warnings;
            all.failures += failures;
        }
        all
    }

    fn summary(&self, most: usize) -> PolicySummary {
        let Counts { denials, warnings, failures } = self.counts();
        let examples = self.examples.iter().take(most);
        PolicySummary {
            digest: self.digest.clone(),
            mode: self.mode.clone(),
            denials,
            warnings,
            failures,
            examples: examples.map(|(_, example)| example.clone()).collect(),
            more: self.more || self.examples.len() > most,
        }
    }
}

#[cfg(test)]
mod tests;
