//! Findings as SARIF 2.1.0, for code scanning.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::location::{Location, Origin};
use super::{By, Finding, ObjectId, Severity, ValidationReport, codes};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Writes the document.
pub fn write(report: &ValidationReport, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &document(report))?;
    out.write_all(b"\n")
}

fn document(report: &ValidationReport) -> Value {
    let findings: Vec<&Finding> = report.findings.iter().chain(&report.suppressed).collect();
    let rules = rules(&findings);
    let numbers: BTreeMap<&str, usize> =
        rules.keys().enumerate().map(|(number, code)| (*code, number)).collect();
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| result(finding, numbers.get(finding.code.as_str()).copied()))
        .collect();
    let notifications: Vec<Value> = report
        .not_checked
        .iter()
        .map(|one| json!({"level": "note", "message": {"text": format!("{}: {}", one.what, one.why)}}))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-opensdn",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    })
}

/// One rule a code, sorted by it.
fn rules<'f>(findings: &[&'f Finding]) -> BTreeMap<&'f str, Value> {
    let mut rules = BTreeMap::new();
    for finding in findings {
        rules.entry(finding.code.as_str()).or_insert_with(|| {
            let help = codes::remedy(&finding.code).map(str::to_owned);
            let help = help.unwrap_or_else(|| format!("kubectl opensdn explain {}", finding.code));
            let title = Some(finding.title.as_str()).filter(|title| !title.is_empty());
            let title = title.or_else(|| codes::meaning(&finding.code));
            let title = title.unwrap_or(&finding.message);
            json!({
                "id": finding.code,
                "shortDescription": {"text": title},
                "help": {"text": help},
            })
        });
    }
    rules
}

fn result(finding: &Finding, rule: Option<usize>) -> Value {
    let text = if finding.hint.is_empty() {
        finding.message.clone()
    } else {
        format!("{}. To fix it: {}", finding.message, finding.hint)
    };
    let related: Vec<Value> = finding
        .related
        .iter()
        .enumerate()
        .map(|(number, related)| {
            let mut place = location(&related.place, related.object.as_ref(), None);
            if let Some(place) = place.as_object_mut() {
                place.insert("id".to_owned(), json!(number));
                place.insert("message".to_owned(), json!({"text": related.message}));
            }
            place
        })
        .collect();
    let mut result = json!({
        "ruleId": finding.code,
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [location(&finding.place, finding.object.as_ref(), finding.pointer.as_deref())],
    });
    if let Some(result) = result.as_object_mut() {
        if let Some(rule) = rule {
            result.insert("ruleIndex".to_owned(), json!(rule));
        }
        if !related.is_empty() {
            result.insert("relatedLocations".to_owned(), json!(related));
        }
        if let Some(granted) = &finding.suppression {
            let kind = if granted.by == By::Baseline { "external" } else { "inSource" };
            let suppression = json!({"kind": kind, "justification": granted.reason});
            result.insert("suppressions".to_owned(), json!([suppression]));
        }
        if let Some(policy) = &finding.policy {
            result.insert("properties".to_owned(), json!({"policy": policy}));
        }
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn location(place: &Location, object: Option<&ObjectId>, pointer: Option<&str>) -> Value {
    let mut location = json!({});
    let Some(fields) = location.as_object_mut() else { return location };
    if place.origin != Origin::Cluster {
        let mut physical = json!({"artifactLocation": {"uri": uri(&place.file)}});
        if let (Some(physical), Some(region)) = (physical.as_object_mut(), region(place)) {
            physical.insert("region".to_owned(), region);
        }
        fields.insert("physicalLocation".to_owned(), physical);
    }
    if let Some(object) = object {
        let pointer = pointer.unwrap_or_default();
        let name = format!("{object}{pointer}");
        let logical = json!([{"fullyQualifiedName": name, "kind": "object"}]);
        fields.insert("logicalLocations".to_owned(), logical);
    }
    location
}

fn region(place: &Location) -> Option<Value> {
    let mut region = json!({"startLine": place.line?});
    let fields = region.as_object_mut()?;
    let others = [
        ("startColumn", place.column),
        ("endLine", place.end_line),
        ("endColumn", place.end_column),
    ];
    for (name, number) in others {
        if let Some(number) = number {
            fields.insert(name.to_owned(), json!(number));
        }
    }
    Some(region)
}

/// A path as a reference of RFC 3986.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
