//! What is said of a summary and of reports that do not belong together.

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

fn summary_with(reports: &Value) -> Read {
    let policies = json!({"unsafe": {"mode": "Enforce", "denials": 2, "warnings": 0, "failures": 0, "more": true,
        "examples": [{"object": "Vrouter tf/v", "severity": "deny", "code": "OSDN1801",
            "pointer": "/spec", "message": "no"}]}});
    let summary = json!({"ended": Timestamp::now().to_string(), "intervalSeconds": 3600,
        "objects": {"Vrouter": 2}, "policies": policies, "policyReports": reports});
    Read::Summary(Box::new(serde_json::from_value(summary).unwrap()))
}

fn reports(number: i64) -> Reported {
    let example = || Example { object: "Vrouter tf/v".to_owned(), ..Example::default() };
    let findings = (0..number).map(|_| of_example("unsafe", example())).collect();
    Reported::Found(Reports { api: "openreports.io/v1alpha1".to_owned(), number, findings })
}

fn combined(reported: Reported, namespace: Option<&str>) -> AuditFindings {
    let written = json!({"apiVersion": "openreports.io/v1alpha1", "written": 1, "unchanged": 1});
    combine(summary_with(&written), reported, "opensdn-system", namespace).unwrap()
}

#[test]
fn where_reports_are_gone_nothing_is_said_to_be_fine() {
    for namespace in [None, Some("tf")] {
        let found = combined(reports(0), namespace);
        assert!(found.is_unknown(), "{namespace:?}");
        let [gone] = found.not_checked.as_slice() else { panic!("{:?}", found.not_checked) };
        assert_eq!(gone.what, "objects whose report is gone");
        assert!(gone.why.contains("none of them is there"), "{}", gone.why);
    }
    let found = combined(reports(1), None);
    assert!(found.not_checked[0].why.contains("1 of them is there"));
    assert_eq!(found.findings.len(), 1);
    for (number, namespace) in [(2, None), (1, Some("tf")), (0, Some("other"))] {
        assert!(combined(reports(number), namespace).not_checked.is_empty(), "{namespace:?}");
    }
}

#[test]
fn where_the_api_of_the_reports_is_gone_the_summary_is_shown_and_says_so() {
    let found = combined(Reported::Absent, None);
    assert_eq!(found.findings.len(), 1);
    assert!(found.not_checked[0].why.contains("does not serve openreports.io/v1alpha1 any more"));
    let found = combine(summary_with(&Value::Null), Reported::Absent, "opensdn-system", None);
    assert!(found.unwrap().not_checked.is_empty());
}
