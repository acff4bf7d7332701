//! The report counts everything and stays small.

use serde_json::{Value, json};

use super::*;

fn empty() -> Report {
    let policy = Policy {
        digest: "sha256:0".into(),
        mode: Mode::Enforce,
        denials: 0,
        warnings: 0,
        failures: 0,
        examples: Vec::new(),
        more: false,
        by_kind: BTreeMap::new(),
    };
    let mut report = Report::start(&PolicySet::default(), "now".into());
    for name in ["even-quorum", "plaintext"] {
        report.policies.insert(name.into(), policy.clone());
    }
    report
}

fn stored(name: &str) -> StoredObject {
    let object = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": name, "namespace": "tf"},
    });
    StoredObject::read(&object).unwrap()
}

fn verdict(message: &str) -> Verdict {
    let finding = Finding {
        policy: "even-quorum".into(),
        mode: Mode::Enforce,
        code: "OSDN1001".into(),
        severity: Severity::Deny,
        pointer: "/spec/replicas".into(),
        message: message.into(),
        hint: String::new(),
    };
    Verdict { findings: vec![finding], ..Verdict::default() }
}

fn written(report: &Report) -> Value {
    serde_json::from_str(&report.text().unwrap()).unwrap()
}

#[test]
fn a_finding_on_create_and_on_update_counts_once() {
    let mut report = empty();
    report.add(&stored("z"), vec![verdict("even"), verdict("even")]);
    let written = written(&report);
    assert_eq!(written["policies"]["even-quorum"]["denials"], 1);
    assert_eq!(written["policies"]["even-quorum"]["examples"][0]["object"], "Zookeeper tf/z");
    assert_eq!(written["objects"]["tf.tungsten.io/Zookeeper"], 1);
    assert_eq!(written["policies"]["plaintext"]["denials"], 0);
}

#[test]
fn everything_is_counted_and_twenty_are_written_out() {
    let mut report = empty();
    for number in 0..1000 {
        report.add(&stored(&format!("z{number}")), vec![verdict("even")]);
    }
    let policy = &written(&report)["policies"]["even-quorum"];
    assert_eq!(policy["denials"], 1000);
    assert_eq!(policy["examples"].as_array().map(Vec::len), Some(20));
    assert_eq!(policy["more"], true);
}

#[test]
fn the_report_stays_below_its_limit_whatever_is_found() {
    let mut report = empty();
    let policy = report.policies["even-quorum"].clone();
    for number in 0..100 {
        report.policies.insert(format!("policy-{number}"), policy.clone());
    }
    for number in 0..20 {
        for policy in 0..100 {
            let mut verdict = verdict(&"ä".repeat(10_000));
            verdict.findings[0].policy = format!("policy-{policy}");
            report.add(&stored(&format!("z{number}")), vec![verdict]);
        }
    }
    for number in 0..10_000 {
        report.not_checked(format!("g/Kind{number}"), "why ".repeat(1000));
    }
    let text = report.text().unwrap();
    assert!(text.len() <= SIZE, "{}", text.len());
    assert_eq!(written(&report)["notCheckedTotal"], 10_000);
}

#[test]
fn a_kind_that_is_evaluated_again_is_not_counted_twice() {
    let mut report = empty();
    report.add(&stored("z"), vec![verdict("even")]);
    report.forget("tf.tungsten.io", "Zookeeper");
    report.add(&stored("z"), vec![verdict("even")]);
    assert_eq!(report.objects(), 1);
    assert_eq!(written(&report)["policies"]["even-quorum"]["denials"], 1);
}
