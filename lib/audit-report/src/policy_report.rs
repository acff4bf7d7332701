//! A report per object, in the form that Kyverno, Kubewarden, Falco and policy-reporter share: `Report` and
//! `ClusterReport` of OpenReports, or the older `PolicyReport` and `ClusterPolicyReport` of the
//! Kubernetes policy working group. Their fields are the same where these are filled.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// An API group in which reports can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiGroup {
    /// Its name.
    pub group: &'static str,
    /// The kind for objects that live in a namespace.
    pub namespaced: &'static str,
    /// The kind for objects that do not.
    pub cluster: &'static str,
}

/// Those groups; the first that a cluster serves is used. One alone, as programs that read them all
/// would count everything twice.
pub const API_GROUPS: [ApiGroup; 2] = [
    ApiGroup { group: "openreports.io", namespaced: "Report", cluster: "ClusterReport" },
    ApiGroup {
        group: "wgpolicyk8s.io",
        namespaced: "PolicyReport",
        cluster: "ClusterPolicyReport",
    },
];

/// By which label our reports are found among those of others: by the program that writes them.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Its value, for the webhook.
pub const MANAGED_BY: &str = "opensdn-webhook";
/// Annotation that says whether the results are still the same, without reading them.
pub const FINGERPRINT: &str = "opensdn.io/results";
/// Who found it, as dashboards group by it.
pub const SOURCE: &str = "opensdn";
/// Results that a report has at most. All are counted.
pub const MOST_RESULTS: usize = 100;

/// How the names of our reports begin.
pub const NAME_PREFIX: &str = "opensdn-";

/// The name of the report on the object with that UID. Other engines use the UID alone.
#[must_use]
pub fn name_of(uid: &str) -> String {
    format!("{NAME_PREFIX}{uid}")
}

/// A report on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyReport {
    /// The object.
    pub scope: Scope,
    /// What was found, worst first.
    pub results: Vec<ReportResult>,
    /// All of it.
    pub counts: Counts,
}

/// The object that a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scope {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for a cluster-scoped object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// How many results of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// What was in order. An object of which nothing was found has no report of the audit.
    pub pass: i64,
    /// Denials.
    pub fail: i64,
    /// Warnings.
    pub warn: i64,
    /// Evaluations without an answer.
    pub error: i64,
    /// What was left out.
    pub skip: i64,
}

impl Counts {
    /// Of results, by what they are.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            *match outcome {
                Outcome::Pass => &mut counts.pass,
                Outcome::Fail => &mut counts.fail,
                Outcome::Warn => &mut counts.warn,
                Outcome::Error => &mut counts.error,
                Outcome::Skip => &mut counts.skip,
            } += 1;
        }
        counts
    }
}

/// One code of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportResult {
    /// Who found it: [`SOURCE`].
    pub source: String,
    /// The AdmissionPolicy.
    pub policy: String,
    /// Stable code; empty for an evaluation without an answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// What the code is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// How bad it is.
    pub severity: ReportSeverity,
    /// What it is.
    pub result: Outcome,
    /// Whether it counts as a failure.
    pub scored: bool,
    /// What is wrong.
    pub message: String,
    /// When it was found first.
    pub timestamp: Timestamp,
    /// `places`: JSON Pointers of the fields, separated by spaces; `hint`: what to do; `mode`: that of
    /// the AdmissionPolicy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// What a result is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A denial.
    #[default]
    Fail,
    /// No answer.
    Error,
    /// A warning.
    Warn,
    /// It is in order.
    Pass,
    /// It was left out.
    Skip,
}

impl Outcome {
    /// How bad it is.
    #[must_use]
    pub const fn severity(self) -> ReportSeverity {
        match self {
            Self::Fail | Self::Error => ReportSeverity::High,
            Self::Warn => ReportSeverity::Medium,
            Self::Pass | Self::Skip => ReportSeverity::Info,
        }
    }
}

/// How bad a result is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportSeverity {
    /// Not written by us.
    Critical,
    /// It is refused, or would be where the policy enforced.
    #[default]
    High,
    /// It passes with a warning.
    Medium,
    /// Not written by us.
    Low,
    /// Nothing is wrong.
    Info,
}

/// A time, as these kinds have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Always 0.
    pub nanos: i32,
}

impl PolicyReport {
    /// What distinguishes the results of this report from others, but for when they were found.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(json!(self.scope).to_string().as_bytes());
        for result in &self.results {
            let timeless = ReportResult { timestamp: Timestamp::default(), ..result.clone() };
            hash.update(json!(timeless).to_string().as_bytes());
        }
        hash.update(json!(self.counts).to_string().as_bytes());
        hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The fingerprint of what a stored report says, whatever its annotation is; nothing where it is no report.
    #[must_use]
    pub fn fingerprint_of(stored: &Value) -> Option<String> {
        let part = |key: &str| stored.get(key).cloned().unwrap_or_default();
        let report = Self {
            scope: serde_json::from_value(part("scope")).ok()?,
            results: serde_json::from_value(part("results")).ok()?,
            counts: serde_json::from_value(part("summary")).ok()?,
        };
        Some(report.fingerprint())
    }

    /// What was found before keeps the time at which it was.
    pub fn keep_times_of(&mut self, earlier: &Value) {
        let earlier = earlier.get("results").cloned().unwrap_or_default();
        let earlier: Vec<ReportResult> = serde_json::from_value(earlier).unwrap_or_default();
        for result in &mut self.results {
            let is_it = |other: &&ReportResult| {
                (&other.policy, &other.rule, other.result)
                    == (&result.policy, &result.rule, result.result)
            };
            if let Some(found) = earlier.iter().find(is_it) {
                result.timestamp = found.timestamp;
            }
        }
    }

    /// As an object of that group and version, of that name and by that program. It is gone when the object is that it is about.
    #[must_use]
    pub fn object(&self, group: &ApiGroup, version: &str, name: &str, by: &str) -> Value {
        let Self { scope, results, counts } = self;
        let mut object = json!({
            "apiVersion": format!("{}/{version}", group.group),
            "kind": if scope.namespace.is_empty() { group.cluster } else { group.namespaced },
            "metadata": {
                "name": name,
                "labels": {MANAGED_BY_LABEL: by},
                "annotations": {FINGERPRINT: self.fingerprint()},
                "ownerReferences": [{
                    "apiVersion": scope.api_version, "kind": scope.kind,
                    "name": scope.name, "uid": scope.uid,
                }],
            },
            "scope": scope,
            "summary": counts,
            "results": results,
        });
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata.filter(|_| !scope.namespace.is_empty()) {
            metadata.insert("namespace".to_owned(), json!(scope.namespace));
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(policy: &str, rule: &str, seconds: i64) -> ReportResult {
        ReportResult {
            source: SOURCE.to_owned(),
            policy: policy.to_owned(),
            rule: rule.to_owned(),
            timestamp: Timestamp { seconds, nanos: 0 },
            ..ReportResult::default()
        }
    }

    fn report(namespace: &str, results: Vec<ReportResult>) -> PolicyReport {
        let scope = Scope {
            api_version: "tf.tungsten.io/v1alpha1".to_owned(),
            kind: "Zookeeper".to_owned(),
            namespace: namespace.to_owned(),
            name: "z".to_owned(),
            uid: "1-2".to_owned(),
        };
        PolicyReport { scope, results, counts: Counts::default() }
    }

    #[test]
    fn time_alone_makes_no_other_fingerprint_and_anything_else_does() {
        let first = report("tf", vec![result("p", "OSDN1201", 1)]);
        let later = report("tf", vec![result("p", "OSDN1201", 2)]);
        assert_eq!(first.fingerprint(), later.fingerprint());
        let mut hinted = first.clone();
        hinted.results[0].properties.insert("hint".to_owned(), "do".to_owned());
        let mut counted = first.clone();
        counted.counts.fail = 101;
        let other = report("tf", vec![result("p", "OSDN1202", 1)]);
        for changed in [hinted, counted, other, report("tf", Vec::new())] {
            assert_ne!(first.fingerprint(), changed.fingerprint(), "{changed:?}");
        }
    }

    #[test]
    fn what_was_found_before_keeps_its_time() {
        let earlier = report("tf", vec![result("p", "A", 1), result("p", "B", 2)]);
        let mut later = report("tf", vec![result("p", "B", 9), result("q", "A", 9)]);
        later.keep_times_of(&earlier.object(&API_GROUPS[0], "v1alpha1", "r", MANAGED_BY));
        let times: Vec<i64> = later.results.iter().map(|one| one.timestamp.seconds).collect();
        assert_eq!(times, [2, 9]);
        later.keep_times_of(&json!({"results": "no list"}));
        assert_eq!(later.results[0].timestamp.seconds, 2);
    }

    #[test]
    fn an_object_without_a_namespace_has_a_cluster_wide_report() {
        let one = report("", Vec::new()).object(&API_GROUPS[1], "v1alpha2", "r", MANAGED_BY);
        assert_eq!(one["kind"], "ClusterPolicyReport");
        assert_eq!(one["apiVersion"], "wgpolicyk8s.io/v1alpha2");
        assert_eq!(one["metadata"].get("namespace"), None);
        let other = report("tf", Vec::new()).object(&API_GROUPS[0], "v1alpha1", "r", MANAGED_BY);
        assert_eq!(
            (&other["kind"], &other["metadata"]["namespace"]),
            (&json!("Report"), &json!("tf"))
        );
        assert_eq!(other["metadata"]["ownerReferences"][0]["uid"], "1-2");
    }
}
