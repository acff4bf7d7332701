//! The report counts everything and stays small.

use opensdn_policy_host::stored::distinct;
use opensdn_policy_host::{Mode, Verdict};
use serde_json::{Value, json};

use super::*;

fn empty() -> Report {
    let mut report = Report::start(&PolicySet::default(), "now".into());
    for name in ["even-quorum", "plaintext"] {
        report.policies.insert(name.into(), Policy::default());
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

fn found(message: &str) -> Found {
    Found {
        policy: "even-quorum".into(),
        mode: Mode::Enforce,
        code: "OSDN1201".into(),
        weight: Weight::Denial,
        pointer: "/spec/replicas".into(),
        message: message.into(),
        hint: String::new(),
    }
}

fn written(report: &Report) -> Value {
    serde_json::from_str(&report.text("later", 3600, None).unwrap()).unwrap()
}

#[test]
fn a_finding_on_create_and_on_update_counts_once() {
    let finding = opensdn_policy_host::Finding {
        policy: "even-quorum".into(),
        mode: Mode::Enforce,
        code: "OSDN1201".into(),
        severity: opensdn_policy_host::Severity::Deny,
        pointer: "/spec/replicas".into(),
        message: "even".into(),
        hint: String::new(),
    };
    let verdict = || Verdict { findings: vec![finding.clone()], ..Verdict::default() };
    let mut report = empty();
    report.add(&stored("z"), &distinct(vec![verdict(), verdict()]));
    let written = written(&report);
    assert_eq!(written["policies"]["even-quorum"]["denials"], 1);
    let example = &written["policies"]["even-quorum"]["examples"][0];
    assert_eq!(example["object"], "Zookeeper tf/z");
    assert_eq!(example["severity"], "deny");
    assert_eq!(written["objects"]["tf.tungsten.io/Zookeeper"], 1);
    assert_eq!(written["policies"]["plaintext"]["denials"], 0);
    assert_eq!(written["ended"], "later");
}

#[test]
fn everything_is_counted_and_twenty_are_written_out() {
    let mut report = empty();
    for number in 0..1000 {
        report.add(&stored(&format!("z{number}")), &[found("even")]);
    }
    let policy = &written(&report)["policies"]["even-quorum"];
    assert_eq!(policy["denials"], 1000);
    assert_eq!(policy["examples"].as_array().map(Vec::len), Some(20));
    assert_eq!(policy["more"], true);
}

#[test]
fn what_is_written_out_is_of_every_namespace_that_has_something() {
    let mut report = empty();
    for number in 0..1000 {
        report.add(&stored(&format!("z{number}")), &[found("even")]);
    }
    for number in 0..30 {
        let mut other = stored("z");
        other.namespace = format!("other-{}", number % 3);
        report.add(&other, &[found("even")]);
    }
    let policy = &written(&report)["policies"]["even-quorum"];
    assert_eq!(policy["denials"], 1030);
    let examples = policy["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 20);
    let of = |namespace: &str| {
        let begins = format!("Zookeeper {namespace}");
        examples.iter().filter(|one| one["object"].as_str().unwrap().starts_with(&begins)).count()
    };
    assert_eq!(["tf/", "other-0/", "other-1/", "other-2/"].map(of), [5; 4]);
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
            let policy = format!("policy-{policy}");
            let one = Found { policy, ..found(&"ä".repeat(250)) };
            report.add(&stored(&format!("z{number}")), &[one]);
        }
    }
    for number in 0..10_000 {
        report.not_checked(format!("g/Kind{number}"), "why ".repeat(1000));
    }
    let text = report.text("later", 3600, None).unwrap();
    assert!(text.len() <= SIZE, "{}", text.len());
    assert_eq!(written(&report)["notCheckedTotal"], 10_000);
}

#[test]
fn a_kind_that_is_evaluated_again_is_not_counted_twice() {
    let mut report = empty();
    report.add(&stored("z"), &[found("even")]);
    report.forget("tf.tungsten.io", "Zookeeper");
    report.add(&stored("z"), &[found("even")]);
    assert_eq!(report.objects(), 1);
    assert_eq!(written(&report)["policies"]["even-quorum"]["denials"], 1);
}

#[test]
fn what_was_found_of_a_kind_stays_while_it_cannot_be_read() {
    let mut last = empty();
    for number in 0..30 {
        last.add(&stored(&format!("z{number}")), &[found("even")]);
    }
    let mut report = empty();
    // It was read in part.
    report.add(&stored("z0"), &[found("even")]);
    report.policies.get_mut("plaintext").unwrap().digest = "another".into();
    report.unread("tf.tungsten.io", "Zookeeper", "forbidden".into(), Some(&last));
    let written = written(&report);
    let policy = &written["policies"]["even-quorum"];
    assert_eq!((&policy["denials"], &policy["more"]), (&json!(30), &json!(true)));
    assert_eq!(policy["examples"].as_array().map(Vec::len), Some(20));
    assert_eq!(written["objects"]["tf.tungsten.io/Zookeeper"], 30);
    let why = &written["notChecked"][0]["why"];
    assert_eq!(why, "forbidden; what an earlier audit found of it stays");
}

#[test]
fn of_a_kind_that_was_never_read_nothing_is_known_nor_of_another_policy() {
    let mut report = empty();
    report.add(&stored("z0"), &[found("even")]);
    report.unread("tf.tungsten.io", "Zookeeper", "forbidden".into(), None);
    assert_eq!((report.objects(), report.unchecked()), (0, 1));
    assert_eq!(report.counts().map(|(_, _, number)| number).sum::<i64>(), 0);

    let mut last = empty();
    last.add(&stored("z0"), &[found("even")]);
    report.policies.get_mut("even-quorum").unwrap().digest = "another".into();
    report.unread("tf.tungsten.io", "Zookeeper", "forbidden".into(), Some(&last));
    assert_eq!(
        report.counts().map(|(_, _, number)| number).sum::<i64>(),
        0,
        "it may say otherwise"
    );
}
