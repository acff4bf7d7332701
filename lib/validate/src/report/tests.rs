//! Forms of one report. What they look like from outside is in the transcripts.

use opensdn_manifests::{Source, Span};
use serde_json::{Value, json};

use super::*;

const LAYOUT: Layout = Layout { width: 80, unicode: false };
const TEXT: &str = "kind: Control\nspec:\n  asNumber: 0   # <&>\n";

fn place() -> Location {
    let start = TEXT.find("0   #").unwrap();
    let source = Source::new("deploy/a b,c:%.yaml", TEXT);
    Location::of_span(Origin::File, 0, &source, Span::new(start, start + 1))
}

fn finding(code: &str, severity: Severity) -> Finding {
    Finding {
        code: code.to_owned(),
        severity,
        step: Step::Policy,
        title: "BGP autonomous system number is reserved".to_owned(),
        message: "must be <1> to 4294967294".to_owned(),
        hint: "private numbers are 64512 & up\nor more".to_owned(),
        object: Some(ObjectId {
            api_version: "tf.tungsten.io/v1alpha1".to_owned(),
            kind: "Control".to_owned(),
            namespace: "tf".to_owned(),
            name: "control1".to_owned(),
        }),
        pointer: Some("/spec/asNumber".to_owned()),
        place: place(),
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}

fn report() -> ValidationReport {
    let mut granted = finding("OSDN3", Severity::Error);
    granted.suppression = Some(Granted { reason: "a lab".to_owned(), by: By::Comment });
    let mut related = finding("OSDN1", Severity::Error);
    let message = "the other one".to_owned();
    related.related.push(Related { message, object: None, place: place() });
    let mut report = ValidationReport {
        findings: vec![finding("OSDN2", Severity::Warning), related],
        suppressed: vec![granted],
        ..ValidationReport::default()
    };
    report.settle();
    report
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn findings_are_ordered_and_counted() {
    let report = report();
    let codes: Vec<&str> = report.findings.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["OSDN1", "OSDN2"], "the worse first");
    assert_eq!((report.summary.errors, report.summary.warnings), (1, 1));
    assert_eq!(report.summary.suppressed, 1);
}

#[test]
fn sarif_fits_its_schema() {
    // OASIS's own, as the crate serde-sarif 0.8 (MIT) ships it.
    let mut schema: Value =
        serde_json::from_str(include_str!("../../tests/sarif-2.1.0.schema.json")).unwrap();
    // A bracket too many, which only the lenient regular expressions of browsers take; we write no
    // such field.
    for owner in ["run", "toolComponent"] {
        let pointer = format!("/definitions/{owner}/properties/language");
        let language = schema.pointer_mut(&pointer).unwrap();
        language.as_object_mut().unwrap().remove("pattern").unwrap();
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    for report in [report(), ValidationReport::default()] {
        let document: Value = serde_json::from_str(&text(|out| write_sarif(&report, out))).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    }
    let document: Value = serde_json::from_str(&text(|out| write_sarif(&report(), out))).unwrap();
    let uri = "/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri";
    assert_eq!(document.pointer(uri), Some(&json!("deploy/a%20b%2Cc%3A%25.yaml")));
    let region = document.pointer("/runs/0/results/0/locations/0/physicalLocation/region");
    let expected = json!({"startLine": 3, "startColumn": 13, "endLine": 3, "endColumn": 14});
    assert_eq!(region, Some(&expected));
    let suppressed = document.pointer("/runs/0/results/2/suppressions/0/justification");
    assert_eq!(suppressed, Some(&json!("a lab")));
}

#[test]
fn github_commands_cannot_be_broken_out_of() {
    let written = text(|out| write_github(&report(), out));
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 2, "a line break in a text is no new command: {written}");
    assert!(lines[0].starts_with(
        "::error file=deploy/a b%2Cc%3A%25.yaml,line=3,endLine=3,col=13,endColumn=14,title=OSDN1::"
    ));
    assert!(lines[0].contains("& up%0Aor more"), "{written}");
    assert!(lines[1].starts_with("::warning "));
}

#[test]
fn junit_fails_for_errors_only_and_passes_for_clean_files() {
    let files = ["deploy/a b,c:%.yaml".to_owned(), "clean.yaml".to_owned()];
    let written = text(|out| write_junit(&report(), &files, out));
    assert!(written.contains(r#"tests="4" failures="1""#), "{written}");
    assert!(written.contains("must be &lt;1&gt;"));
    assert!(written.contains(r#"<testcase classname="clean.yaml" name="clean.yaml"/>"#));
    assert!(written.contains(r#"<skipped message="a lab"/>"#));
    assert!(!written.contains("<&"));
}

#[test]
fn people_see_the_line_the_hint_and_what_was_suppressed() {
    let written = text(|out| write_human(&report(), LAYOUT, &mut anstream::StripStream::new(out)));
    assert!(written.contains("error[OSDN1]: BGP autonomous system number is reserved"));
    assert!(written.contains("--> deploy/a b,c:%.yaml:3:13"), "{written}");
    assert!(written.contains("^ must be <1> to 4294967294"), "{written}");
    assert!(written.contains("OSDN3: must be <1> to 4294967294 (because: a lab)"), "{written}");
    assert!(written.lines().all(|line| line.chars().count() <= 80), "{written}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let mut bad = finding("OSDN1", Severity::Error);
    bad.message = "a\u{1b}[31mb\u{202e}".to_owned();
    bad.title = bad.message.clone();
    bad.object = None;
    let report = ValidationReport { findings: vec![bad], ..ValidationReport::default() };
    let written = text(|out| write_human(&report, LAYOUT, &mut anstream::StripStream::new(out)));
    assert!(!written.contains('\u{1b}') && !written.contains('\u{202e}'), "{written:?}");
}

/// One mistake, at three places of an object and once in another.
fn repeated() -> ValidationReport {
    let at = |component: &str, line| {
        let mut one = finding("OSDN1306", Severity::Warning);
        one.message = format!("{component}: no tag");
        one.place.line = Some(line);
        one
    };
    let mut elsewhere = at("Webui webui1", 9);
    elsewhere.object.as_mut().unwrap().name = "other".to_owned();
    let findings = vec![at("Redis redis1", 3), at("Config config1", 5), at("Config config1", 7)];
    let findings = findings.into_iter().chain([elsewhere]).collect();
    let mut report = ValidationReport { findings, ..ValidationReport::default() };
    report.settle();
    report
}

#[test]
fn people_see_one_mistake_of_an_object_once_with_its_places_and_machines_each_place() {
    let report = repeated();
    let written = text(|out| write_human(&report, LAYOUT, &mut anstream::StripStream::new(out)));
    assert_eq!(written.matches("warning[OSDN1306]").count(), 2, "{written}");
    let also = "= also at: deploy/a b,c:%.yaml:5:13\n             deploy/a b,c:%.yaml:7:13";
    assert!(written.contains(also), "{written}");
    assert!(written.contains("^ no tag") && written.contains("^ Webui webui1: no tag"));
    assert!(!written.contains("redis1"), "a name for all places: {written}");
    let last = summary(&report, std::time::Duration::ZERO);
    assert!(last.starts_with("2 warnings at 4 places in "), "{last}");
    assert_eq!(text(|out| write_github(&report, out)).lines().count(), 4);
    let document: Value = serde_json::from_str(&text(|out| write_sarif(&report, out))).unwrap();
    let results = document.pointer("/runs/0/results").and_then(Value::as_array).unwrap();
    assert_eq!(results.len(), 4);
    assert!(text(|out| write_junit(&report, &[], out)).contains(r#"tests="4""#));
}
