//! From what was found in an object to its report for others. Pure.

use std::collections::BTreeMap;

use opensdn_audit_report::{
    Counts, MOST_RESULTS, Outcome, PolicyReport, ReportResult, SOURCE, Scope, Timestamp,
};
use opensdn_policy_host::beginning;
use opensdn_policy_host::stored::{Found, StoredObject, Weight};

/// Longest message of a result, which may have several findings' in it, in bytes.
const MESSAGE: usize = 1000;

/// The report on an object, with a result for each code of each policy; nothing where nothing was found.
/// `now` is in seconds since 1970.
pub(super) fn report(stored: &StoredObject, found: &[Found], now: i64) -> Option<PolicyReport> {
    let mut groups: BTreeMap<(Outcome, &str, &str), Vec<&Found>> = BTreeMap::new();
    for one in found {
        groups.entry((outcome(one.weight), &one.policy, &one.code)).or_default().push(one);
    }
    let counts = Counts::of(groups.keys().map(|(outcome, ..)| *outcome));
    let results = groups.iter().take(MOST_RESULTS);
    let results = results.map(|((outcome, policy, code), found)| ReportResult {
        source: SOURCE.to_owned(),
        policy: (*policy).to_owned(),
        rule: (*code).to_owned(),
        category: opensdn_policies::category(code).unwrap_or_default().to_owned(),
        severity: outcome.severity(),
        result: *outcome,
        scored: *outcome != Outcome::Warn,
        message: message(found),
        timestamp: Timestamp { seconds: now, nanos: 0 },
        properties: properties(found),
    });
    let results: Vec<ReportResult> = results.collect();
    (!results.is_empty()).then(|| PolicyReport { scope: scope(stored), results, counts })
}

fn scope(stored: &StoredObject) -> Scope {
    Scope {
        api_version: match stored.group.as_str() {
            "" => stored.version.clone(),
            group => format!("{group}/{}", stored.version),
        },
        kind: stored.kind.clone(),
        namespace: stored.namespace.clone(),
        name: stored.name.clone(),
        uid: stored.uid.clone(),
    }
}

fn outcome(weight: Weight) -> Outcome {
    match weight {
        Weight::Denial => Outcome::Fail,
        Weight::Warning => Outcome::Warn,
        Weight::Failure => Outcome::Error,
    }
}

/// Every message, once.
fn message(found: &[&Found]) -> String {
    let text = distinct(found, |one| &one.message).join("\n");
    beginning(&text, MESSAGE).to_owned()
}

fn properties(found: &[&Found]) -> BTreeMap<String, String> {
    let mode = found.first().map(|one| one.mode).unwrap_or_default();
    let properties = [
        ("mode", mode.label().to_owned()),
        ("places", distinct(found, |one| &one.pointer).join(" ")),
        ("hint", distinct(found, |one| &one.hint).join("\n")),
    ];
    let said = properties.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name.to_owned(), beginning(&text, MESSAGE).to_owned())).collect()
}

fn distinct<'f>(found: &[&'f Found], text: impl Fn(&'f Found) -> &'f String) -> Vec<&'f str> {
    let mut texts = Vec::new();
    for one in found {
        let text = text(one).as_str();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::Mode;
    use serde_json::json;

    use super::*;

    fn stored() -> StoredObject {
        let object = json!({
            "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
            "metadata": {"name": "z", "namespace": "tf", "uid": "1-2"},
        });
        StoredObject::read(&object).unwrap()
    }

    fn found(code: &str, weight: Weight, pointer: &str) -> Found {
        Found {
            policy: "even-quorum".to_owned(),
            mode: Mode::Audit,
            code: code.to_owned(),
            weight,
            pointer: pointer.to_owned(),
            message: format!("{code} is said"),
            hint: "do".to_owned(),
        }
    }

    #[test]
    fn an_object_has_one_result_for_each_code_with_all_its_places() {
        let all = [
            found("OSDN1202", Weight::Warning, "/spec/a"),
            found("OSDN1201", Weight::Denial, "/spec/b"),
            found("OSDN1202", Weight::Warning, "/spec/c"),
        ];
        let report = report(&stored(), &all, 7).unwrap();
        let rules: Vec<&str> = report.results.iter().map(|one| &*one.rule).collect();
        assert_eq!(rules, ["OSDN1201", "OSDN1202"], "denials are first");
        let Counts { fail, warn, error, .. } = report.counts;
        assert_eq!((fail, warn, error), (1, 1, 0));
        let warning = &report.results[1];
        assert_eq!(warning.properties["places"], "/spec/a /spec/c");
        assert_eq!(warning.properties["mode"], "audit");
        assert_eq!(warning.message, "OSDN1202 is said");
        assert_eq!(warning.category, "Placement");
        assert_eq!(warning.timestamp.seconds, 7);
    }

    #[test]
    fn what_is_not_written_out_is_counted() {
        let all: Vec<Found> = (0..300)
            .map(|number| found(&format!("OSDN{number}"), Weight::Denial, "/spec"))
            .collect();
        let report = report(&stored(), &all, 7).unwrap();
        assert_eq!((report.results.len(), report.counts.fail), (MOST_RESULTS, 300));
    }

    #[test]
    fn an_object_without_a_finding_has_no_report() {
        assert_eq!(report(&stored(), &[], 7), None);
    }

    #[test]
    fn a_report_stays_small_whatever_policies_say() {
        let long = |number: usize| Found {
            message: "ä".repeat(10_000),
            hint: "ä".repeat(10_000),
            pointer: format!("/{}{number}", "x".repeat(900)),
            ..found(&format!("OSDN{}", number % 150), Weight::Denial, "")
        };
        let all: Vec<Found> = (0..3000).map(long).collect();
        let report = report(&stored(), &all, 7).unwrap();
        let text =
            report.object(&opensdn_audit_report::API_GROUPS[0], "v1alpha1", "r", "m").to_string();
        assert!(text.len() < 512 << 10, "{}", text.len());
    }
}
