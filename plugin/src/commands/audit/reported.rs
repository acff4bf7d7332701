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
    Found(Reports),
    Absent,
    Forbidden(String),
}

/// Reports on objects, and all findings in them.
struct Reports {
    /// The API in which they are.
    api: String,
    number: i64,
    findings: Vec<AuditFinding>,
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
    let reported = match &summary {
        Read::Summary(summary) => match reports_api(summary) {
            Some(api) => reports(live, Some(api), namespace).await?,
            None => Reported::Absent,
        },
        Read::Absent | Read::Forbidden(_) => reports(live, None, namespace).await?,
    };
    combine(summary, reported, control_namespace, namespace)
}

fn combine(
    summary: Read,
    reported: Reported,
    control_namespace: &str,
    namespace: Option<&str>,
) -> Result<AuditFindings, Failure> {
    match (summary, reported) {
        (Read::Summary(summary), Reported::Found(reports)) => {
            Ok(of_both(*summary, reports, namespace))
        }
        (Read::Summary(summary), Reported::Absent) => {
            let api = reports_api(&summary).map(str::to_owned);
            let mut found = of_summary(*summary, namespace);
            if let Some(api) = api {
                found.not_checked.push(NotChecked {
                    what: "the reports on objects".to_owned(),
                    why: format!(
                        "the API server does not serve {api} any more, in which they were"
                    ),
                });
            }
            Ok(found)
        }
        (Read::Summary(summary), Reported::Forbidden(why)) => {
            let mut found = of_summary(*summary, namespace);
            found.not_checked.push(NotChecked { what: "the reports on objects".to_owned(), why });
            Ok(found)
        }
        (Read::Absent, Reported::Found(reports)) if reports.findings.is_empty() => {
            Err(no_audit(control_namespace))
        }
        (Read::Absent, Reported::Absent | Reported::Forbidden(_)) => {
            Err(no_audit(control_namespace))
        }
        (summary, Reported::Found(Reports { api, findings, .. })) => {
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

/// Counts and what was not checked are those of the summary, findings those of the reports.
fn of_both(summary: Summary, reports: Reports, namespace: Option<&str>) -> AuditFindings {
    let written = summary.policy_reports.clone().unwrap_or_default();
    let mut found = of_summary(summary, namespace);
    found.source = Source::Reports(reports.api);
    let of_summary = std::mem::replace(&mut found.findings, reports.findings);
    // Of one namespace it is only known that there should be some.
    let should_be = match namespace {
        None => written.written + written.unchanged,
        Some(_) => i64::from(!of_summary.is_empty()),
    };
    let is_missing = reports.number < should_be;
    // Where some could not be written the summary knows what is not in them.
    if written.failure.is_empty() {
        found.more = false;
        found.not_checked.retain(|one| one.what != REST);
    } else {
        found.add_missing(of_summary);
    }
    if is_missing {
        let there = match reports.number {
            0 => "none of them is there".to_owned(),
            1 => "1 of them is there".to_owned(),
            many => format!("{many} of them are there"),
        };
        found.not_checked.push(NotChecked {
            what: "objects whose report is gone".to_owned(),
            why: format!(
                "the last audit has found something in them, and {there}: the objects have been deleted since, or \
                 their reports have; the next audit writes what is so"
            ),
        });
    }
    if namespace.is_some() {
        found.count();
    }
    found.notice_newer(found.ended.as_deref().and_then(seconds));
    found.sort();
    found
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

/// The API in which the audit wrote its reports; none where it found no such API.
fn reports_api(summary: &Summary) -> Option<&str> {
    let reports = summary.policy_reports.as_ref()?;
    Some(reports.api_version.as_str()).filter(|api| !api.is_empty())
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
    let is_reported = reports_api(&summary).is_some();
    let mut found = AuditFindings {
        source: Source::Summary,
        not_checked: overdue(&summary, Timestamp::now()).into_iter().collect(),
        not_written: summary.policy_reports.as_ref().and_then(not_written),
        is_reported,
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

/// From the API in which the last audit wrote them, `written`: where another has been installed since, it is empty.
async fn reports(
    live: &Live,
    written: Option<&str>,
    namespace: Option<&str>,
) -> Result<Reported, Failure> {
    let selector = format!("{MANAGED_BY_LABEL}={MANAGED_BY}");
    let written = written.map(|api| api.split_once('/').map_or(api, |(group, _)| group));
    let groups = API_GROUPS.iter().filter(|one| written.is_none_or(|group| one.group == group));
    for group in groups {
        let (mut number, mut findings) = (0, Vec::new());
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
            let ours: Vec<_> =
                listed.into_iter().map(of_report).filter(|one| !one.is_empty()).collect();
            number += i64::try_from(ours.len()).unwrap_or(i64::MAX);
            findings.extend(ours.into_iter().flatten());
            api = Some(resource.api_version);
        }
        if let Some(api) = api {
            return Ok(Reported::Found(Reports { api, number, findings }));
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
mod tests;
