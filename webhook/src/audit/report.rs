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
    /// Each with its group/kind and its namespace.
    examples: Vec<(String, String, Example)>,
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
            policy.keep(kind.clone(), &stored.namespace, example(stored, one));
        }
    }

    /// A kind is evaluated again.
    pub(super) fn forget(&mut self, group: &str, kind: &str) {
        let kind = kind_of(group, kind);
        self.objects.remove(&kind);
        for policy in self.policies.values_mut() {
            policy.by_kind.remove(&kind);
            policy.examples.retain(|(of, ..)| *of != kind);
        }
    }

    /// The kind could not be read: what the last audit found of it stays, where it is by the same policy.
    pub(super) fn unread(&mut self, group: &str, kind: &str, why: String, last: Option<&Self>) {
        self.forget(group, kind);
        let kind = kind_of(group, kind);
        let known = last.filter(|last| last.objects.contains_key(&kind));
        let Some(last) = known else { return self.not_checked(kind, why) };
        self.objects.extend(last.objects.get(&kind).map(|number| (kind.clone(), *number)));
        for (name, policy) in &mut self.policies {
            let earlier = last.policies.get(name).filter(|one| one.digest == policy.digest);
            if let Some(earlier) = earlier {
                policy.take_over(&kind, earlier);
            }
        }
        let why = format!("{why}; what an earlier audit found of it stays");
        self.not_checked(kind, why);
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
        interval_seconds: u64,
        policy_reports: Option<&PolicyReports>,
    ) -> Result<String, serde_json::Error> {
        let mut most = EXAMPLES;
        loop {
            let summary = Summary {
                ended: ended.to_owned(),
                interval_seconds,
                policy_reports: policy_reports.cloned(),
                ..self.summary(most)
            };
            let text = serde_json::to_string_pretty(&summary)?;
            if text.len() <= SIZE || most == 0 {
                return Ok(text);
            }
            most /= 2;
        }
    }

    fn summary(&self, most: usize) -> Summary {
        let policies = self.policies.iter();
        Summary {
            began: self.began.clone(),
            objects: self.objects.clone(),
            policies: policies.map(|(name, one)| (name.clone(), one.summary(most))).collect(),
            not_checked_total: self.not_checked_total,
            not_checked: self.not_checked.clone(),
            ..Summary::default()
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
    /// Keeps an example, where there is no room in the place of one of the namespace that has the most: the first
    /// twenty of one namespace would say nothing of the others, whose users look here too.
    fn keep(&mut self, kind: String, namespace: &str, example: Example) {
        if self.examples.len() < EXAMPLES {
            self.examples.push((kind, namespace.to_owned(), example));
            return;
        }
        self.more = true;
        let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, of, _) in &self.examples {
            *shown.entry(of).or_default() += 1;
        }
        let own = shown.get(namespace).copied().unwrap_or_default();
        let most = shown.into_iter().max_by_key(|(_, number)| *number);
        let Some((most, _)) = most.filter(|(_, number)| *number > own + 1) else { return };
        let last = self.examples.iter().rposition(|(_, of, _)| of == most);
        if let Some(place) = last.and_then(|last| self.examples.get_mut(last)) {
            *place = (kind, namespace.to_owned(), example);
        }
    }

    /// What was found of the kind earlier.
    fn take_over(&mut self, kind: &str, earlier: &Self) {
        let counts = earlier.by_kind.get(kind);
        self.by_kind.extend(counts.map(|counts| (kind.to_owned(), *counts)));
        for (of, namespace, example) in earlier.examples.iter().filter(|(of, ..)| of == kind) {
            self.keep(of.clone(), namespace, example.clone());
        }
        let written = self.examples.iter().filter(|(of, ..)| of == kind).count();
        let all = counts.map_or(0, |one| one.denials + one.warnings + one.failures);
        self.more |= i64::try_from(written).is_ok_and(|written| written < all);
    }

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
            examples: examples.map(|(.., example)| example.clone()).collect(),
            more: self.more || self.examples.len() > most,
        }
    }
}

#[cfg(test)]
mod tests;
