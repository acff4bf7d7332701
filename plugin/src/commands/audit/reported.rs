//! What the webhook's audit reported: the summary for counts and what was not checked, the reports on
//! objects for all findings. A user who may read only one of them is shown that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Error;
use opensdn_audit_report::{
    API_GROUPS, Example, MANAGED_BY, MANAGED_BY_LABEL, Outcome, PolicyReports, ReportResult,
    SUMMARY_KEY, Scope, Summary, name_of,
};
use opensdn_deploy::names::webhook::AUDIT_REPORT;
use opensdn_validate::report::NotChecked;
use serde::Deserialize;
use serde_json::Value;

use super::found::{AuditFinding, AuditFindings, PolicyCounts, Source, Word};
use crate::clients::unanswered;
use crate::exit::{Exit, Failure};
use crate::live::Live;

/// What a summary cannot say of one namespace.
pub(super) const REST: &str = "the rest of this namespace";

/// What the ConfigMap of the audit said.
enum Read {
    Summary(Box<Summary>),
    Absent,
    Forbidden(String),
}

/// What the reports on objects said.
enum Reported {
    /// The API in which they are, and all findings.
    Findings(String, Vec<AuditFinding>),
    Absent,
    Forbidden(String),
}

/// Reads what was reported; of one namespace where one is named.
///
/// # Errors
/// The cluster does not answer, or neither of the two can be read.
pub(super) async fn read(
    live: &Live,
    control_namespace: &str,
    namespace: Option<&str>,
) -> Result<AuditFindings, Failure> {
    let summary = summary(live, control_namespace).await?;
    let is_reported = match &summary {
        Read::Summary(summary) => {
            summary.policy_reports.as_ref().is_some_and(|reports| !reports.api_version.is_empty())
        }
        Read::Absent | Read::Forbidden(_) => true,
    };
    let reported = if is_reported { reports(live, namespace).await? } else { Reported::Absent };
    match (summary, reported) {
        (Read::Summary(summary), Reported::Findings(api, findings)) => {
            let all = summary.policy_reports.as_ref().is_some_and(|one| one.failure.is_empty());
            let mut found = of_summary(*summary, namespace);
            found.source = Source::Reports(api);
            // Where some could not be written the summary knows what is not in them.
            let of_summary = std::mem::replace(&mut found.findings, findings);
            if all {
                found.more = false;
                found.not_checked.retain(|one| one.what != REST);
            } else {
                found.add_missing(of_summary);
            }
            if namespace.is_some() {
                found.count();
            }
            found.notice_newer(found.ended.as_deref().and_then(seconds));
            found.sort();
            Ok(found)
        }
        (Read::Summary(summary), Reported::Absent) => Ok(of_summary(*summary, namespace)),
        (Read::Summary(summary), Reported::Forbidden(why)) => {
            let mut found = of_summary(*summary, namespace);
            found.not_checked.push(NotChecked { what: "the reports on objects".to_owned(), why });
            Ok(found)
        }
        (Read::Absent, Reported::Findings(_, findings)) if findings.is_empty() => {
            Err(no_audit(control_namespace))
        }
        (Read::Absent, Reported::Absent | Reported::Forbidden(_)) => {
            Err(no_audit(control_namespace))
        }
        (summary, Reported::Findings(api, findings)) => {
            let source = Source::Reports(api);
            let mut found = AuditFindings { source, findings, ..AuditFindings::default() };
            // A good object has no report, and neither has one that was never looked at.
            let why = match summary {
                Read::Forbidden(why) => why,
                _ => format!(
                    "there is no ConfigMap {AUDIT_REPORT} in {control_namespace}: the first audit has not ended, or it \
                     is in another namespace (--control-namespace)"
                ),
            };
            let what = "whether an audit has looked at all objects".to_owned();
            found.not_checked.push(NotChecked { what, why });
            found.sort();
            Ok(found)
        }
        (Read::Forbidden(why), Reported::Absent | Reported::Forbidden(_)) => {
            Err(forbidden(control_namespace, &why))
        }
    }
}

fn no_audit(namespace: &str) -> Failure {
    let message = format!("there is no report of an audit in the namespace {namespace}");
    let hint = "the first is there a minute after the webhook is installed (kubectl opensdn version); in \
        another namespace: --control-namespace; without a webhook: --what-if FILE";
    Failure::new(Exit::Unreachable, "no-audit", message, hint)
}

fn forbidden(namespace: &str, why: &str) -> Failure {
    let message = format!("you may not read the report of the audit: {why}");
    let hint = format!(
        "ask for the right to get the ConfigMap {AUDIT_REPORT} in {namespace}, or look at one namespace \
         with --what-if FILE"
    );
    Failure::new(Exit::Unreachable, "forbidden", message, hint)
}

async fn summary(live: &Live, namespace: &str) -> Result<Read, Failure> {
    let map = match live.config_map(namespace, AUDIT_REPORT).await {
        Ok(Some(map)) => map,
        Ok(None) => return Ok(Read::Absent),
        Err(Error::Api(status)) if status.code == 403 => {
            return Ok(Read::Forbidden(status.message.clone()));
        }
        Err(error) => return Err(unanswered("read the report of the audit", &error)),
    };
    let text = map.data.unwrap_or_default().remove(SUMMARY_KEY).unwrap_or_default();
    let summary = serde_json::from_str(&text).map_err(|error| {
        let message = format!("the ConfigMap {namespace}/{AUDIT_REPORT} is no report of an audit");
        let hint = "delete it: the next audit writes it again";
        Failure::new(Exit::Unreachable, "no-audit", message, hint).because(&error)
    })?;
    Ok(Read::Summary(Box::new(summary)))
}

/// After two intervals without an audit it is not known what has changed. An audit may itself take some minutes.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// That the webhook should have audited since, and has not.
fn overdue(summary: &Summary, now: Timestamp) -> Option<NotChecked> {
    let interval = i64::try_from(summary.interval_seconds).ok().filter(|seconds| *seconds > 0)?;
    let ended: Timestamp = summary.ended.parse().ok()?;
    let limit = SignedDuration::from_secs(interval.saturating_mul(2)).saturating_add(SLACK);
    (now.duration_since(ended) > limit).then(|| NotChecked {
        what: format!("what has changed since {}", summary.ended),
        why: format!(
            "an audit is due every {interval} s, and there was none: look at the pods of the webhook, and at \
             the log of the one that leads"
        ),
    })
}

fn seconds(time: &str) -> Option<i64> {
    time.parse().ok().map(|time: Timestamp| time.as_second())
}

/// What the webhook could not write.
fn not_written(reports: &PolicyReports) -> Option<String> {
    let PolicyReports { failed, failure, .. } = reports;
    let number = match failed {
        0 => "the reports on objects".to_owned(),
        1 => "1 report on an object".to_owned(),
        many => format!("{many} reports on objects"),
    };
    (!failure.is_empty()).then(|| format!("{number}: {failure}"))
}

/// With a namespace only what is found there is shown; counts stay those of the cluster.
fn of_summary(summary: Summary, namespace: Option<&str>) -> AuditFindings {
    let reports = summary.policy_reports.as_ref();
    let mut found = AuditFindings {
        source: Source::Summary,
        not_checked: overdue(&summary, Timestamp::now()).into_iter().collect(),
        not_written: reports.and_then(not_written),
        is_reported: reports.is_some_and(|reports| !reports.api_version.is_empty()),
        ended: Some(summary.ended),
        objects: Some(summary.objects.values().sum()),
        ..AuditFindings::default()
    };
    for (name, policy) in summary.policies {
        found.more |= policy.more;
        if policy.more && namespace.is_some() {
            let why = format!(
                "the summary has the first findings of {name} only, which may be of other namespaces"
            );
            found.not_checked.push(NotChecked { what: REST.to_owned(), why });
        }
        let examples = policy.examples.into_iter().filter(|one| is_in(&one.object, namespace));
        found.findings.extend(examples.map(|one| of_example(&name, one)));
        let (denials, warnings, failures) = (policy.denials, policy.warnings, policy.failures);
        let mode = policy.mode;
        found.policies.push(PolicyCounts { name, mode, denials, warnings, failures });
    }
    let not_checked = summary.not_checked.into_iter();
    found.not_checked.extend(not_checked.map(|one| NotChecked { what: one.what, why: one.why }));
    if namespace.is_some() {
        found.count();
    }
    found.sort();
    found
}

/// Whether the `Kind namespace/name` is in the namespace.
fn is_in(object: &str, namespace: Option<&str>) -> bool {
    let Some(namespace) = namespace else { return true };
    let name = object.split_once(' ').map(|(_, name)| name);
    name.and_then(|name| name.split_once('/')).is_some_and(|(found, _)| found == namespace)
}

fn of_example(policy: &str, example: Example) -> AuditFinding {
    let Example { object, severity, code, pointer, message } = example;
    AuditFinding {
        severity: match severity.as_str() {
            "warn" => Word::Warn,
            "failure" => Word::Failure,
            _ => Word::Deny,
        },
        policy: policy.to_owned(),
        code,
        object,
        places: Some(pointer).filter(|one| !one.is_empty()).into_iter().collect(),
        message,
        hint: String::new(),
        since: None,
    }
}

/// A report, of whichever API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StoredReport {
    metadata: ObjectMeta,
    scope: Scope,
    results: Vec<ReportResult>,
}

async fn reports(live: &Live, namespace: Option<&str>) -> Result<Reported, Failure> {
    let selector = format!("{MANAGED_BY_LABEL}={MANAGED_BY}");
    for group in &API_GROUPS {
        let mut findings = Vec::new();
        let mut api = None;
        let kinds = [Some(group.namespaced), Some(group.cluster).filter(|_| namespace.is_none())];
        for kind in kinds.into_iter().flatten() {
            let Some((resource, _)) = live.resource(group.group, kind).await? else { continue };
            let listed = live.selected(&resource, namespace, &selector).await;
            let listed = match listed {
                Err(Error::Api(status)) if status.code == 403 => {
                    return Ok(Reported::Forbidden(status.message.clone()));
                }
                listed => listed
                    .map_err(|error| unanswered(&format!("list {}", resource.plural), &error))?,
            };
            findings.extend(listed.into_iter().flat_map(of_report));
            api = Some(resource.api_version);
        }
        if let Some(api) = api {
            return Ok(Reported::Findings(api, findings));
        }
    }
    Ok(Reported::Absent)
}

fn of_report(report: Value) -> Vec<AuditFinding> {
    // Anyone who may write reports can give them our label: what is none of ours is left out, as is what is about
    // another namespace than its own.
    let Ok(StoredReport { metadata, scope, results }) = serde_json::from_value(report) else {
        return Vec::new();
    };
    let is_of = metadata.namespace.unwrap_or_default() == scope.namespace
        && metadata.name.as_deref() == Some(&name_of(&scope.uid));
    if !is_of {
        return Vec::new();
    }
    let Scope { kind, namespace, name, .. } = scope;
    let object = match namespace.as_str() {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    };
    results.into_iter().map(|result| of_result(&object, result)).collect()
}

fn of_result(object: &str, result: ReportResult) -> AuditFinding {
    let mut properties = result.properties;
    let places = properties.remove("places").unwrap_or_default();
    AuditFinding {
        severity: match result.result {
            Outcome::Fail => Word::Deny,
            Outcome::Error => Word::Failure,
            Outcome::Warn | Outcome::Pass | Outcome::Skip => Word::Warn,
        },
        policy: result.policy,
        code: result.rule,
        object: object.to_owned(),
        places: places.split_whitespace().map(str::to_owned).collect(),
        message: result.message,
        hint: properties.remove("hint").unwrap_or_default(),
        since: Some(result.timestamp.seconds),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary() -> Summary {
        serde_json::from_value(json!({
            "ended": "2026-11-23T14:00:00Z", "objects": {"tf.tungsten.io/Zookeeper": 3},
            "policies": {"even-quorum": {"mode": "audit", "denials": 21, "warnings": 1, "more": true,
                "examples": [
                    {"object": "Zookeeper tf/b", "severity": "warn", "code": "OSDN1202", "message": "w"},
                    {"object": "Zookeeper a/a", "severity": "deny", "code": "OSDN1201",
                        "pointer": "/spec/replicas", "message": "m"}]}},
            "notChecked": [{"what": "policy x", "why": "y"}],
        }))
        .unwrap()
    }

    #[test]
    fn of_a_summary_all_is_shown_that_it_has_and_that_there_is_more() {
        let found = of_summary(summary(), None);
        let codes: Vec<&str> = found.findings.iter().map(|one| &*one.code).collect();
        assert_eq!(codes, ["OSDN1201", "OSDN1202"], "the worst comes first");
        assert!(found.more && found.hint().is_some());
        assert_eq!(found.policies[0].denials, 21);
        assert_eq!(found.notes()[0], "3 objects in the audit that ended 2026-11-23T14:00:00Z");
        assert_eq!(found.notes()[1], "not checked: policy x: y");
    }

    #[test]
    fn of_one_namespace_nothing_of_others_is_shown() {
        let found = of_summary(summary(), Some("tf"));
        let objects: Vec<&str> = found.findings.iter().map(|one| &*one.object).collect();
        assert_eq!(objects, ["Zookeeper tf/b"]);
        assert!(is_in("Zookeeper tf/b", Some("tf")) && !is_in("Node tf", Some("tf")));
    }

    #[test]
    fn an_audit_that_is_overdue_is_no_knowledge_of_what_has_changed_since() {
        let late = |seconds: u64, now: &str| {
            let summary = Summary { interval_seconds: seconds, ..summary() };
            overdue(&summary, now.parse().unwrap()).map(|one| one.why)
        };
        assert_eq!(late(3600, "2026-11-23T16:04:59Z"), None, "two intervals, and some minutes");
        let why = late(3600, "2026-11-23T16:05:01Z").unwrap();
        assert!(why.starts_with("an audit is due every 3600 s"), "{why}");
        assert_eq!(late(0, "2027-11-23T16:00:00Z"), None, "an older webhook does not say");
        assert_eq!(late(u64::MAX, "2027-11-23T16:00:00Z"), None);
    }

    #[test]
    fn reports_that_are_newer_than_the_summary_are_counted_and_it_is_said() {
        let report = |seconds: i64| {
            let scope = json!({"apiVersion": "v1", "kind": "Zookeeper", "name": "x", "uid": "u"});
            of_report(json!({"metadata": {"name": "opensdn-u"}, "scope": scope,
                "results": [{"policy": "even-quorum", "result": "fail", "severity": "high",
                    "timestamp": {"seconds": seconds}}]}))
        };
        let read = |since: i64| {
            let mut found = of_summary(summary(), None);
            found.findings = report(since);
            assert_eq!(found.findings.len(), 1);
            found.notice_newer(found.ended.as_deref().and_then(seconds));
            (found.policies[0].denials, found.notes().concat().contains("an audit is under way"))
        };
        let ended = seconds("2026-11-23T14:00:00Z").unwrap();
        assert_eq!(read(ended), (21, false));
        assert_eq!(read(ended + 1), (1, true));
    }

    #[test]
    fn reports_that_could_not_be_written_are_no_objects_that_were_not_checked() {
        let mut summary = summary();
        summary.not_checked.clear();
        let failure = "Zookeeper tf/b: patch reports: quota".to_owned();
        let api_version = "openreports.io/v1alpha1".to_owned();
        let reports = PolicyReports { api_version, failed: 2, failure, ..PolicyReports::default() };
        summary.policy_reports = Some(reports);
        summary.interval_seconds = 0;
        let found = of_summary(summary, None);
        assert_eq!(found.not_checked, []);
        let said = "not written: 2 reports on objects: Zookeeper tf/b: patch reports: quota";
        assert!(found.notes().contains(&said.to_owned()), "{:?}", found.notes());
        let hint = found.hint().unwrap();
        assert!(!hint.contains("installed"), "{hint}");
    }

    #[test]
    fn what_is_no_report_of_ours_is_left_out() {
        assert_eq!(of_report(json!({"results": "none"})), []);
        let strange = json!({"results": [{"policy": "p", "severity": "catastrophic"}]});
        assert_eq!(of_report(strange), []);
        let of = |namespace: &str, name: &str| {
            let scope = json!({"apiVersion": "v1", "kind": "K", "namespace": "kube-system", "name": "x", "uid": "u"});
            of_report(json!({"metadata": {"name": name, "namespace": namespace}, "scope": scope,
                "results": [{"policy": "p", "result": "fail", "severity": "high"}]}))
        };
        assert_eq!(of("kube-system", "opensdn-u").len(), 1);
        assert_eq!(of("tenant", "opensdn-u"), [], "it tells of another namespace");
        assert_eq!(of("kube-system", "forged"), [], "it is not called after its object");
    }
}
