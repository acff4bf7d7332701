//! Upstream's manifest of nested mode has its known defects, and ours has none.

use std::collections::BTreeSet;

use opensdn_manifests::{Problem, Source, codes, read};
use opensdn_nested_workloads::{DocumentId, Finding, Lint, Plugins, Severity, Token, render};
use serde_json::Value;

use crate::example::{option_1, option_2, values, yaml};

const STOCK: &str = include_str!("../foreign/contrail-nested-kubernetes.yaml");

/// As a caller does it: the reader says which keys are there twice, and the place says in which document.
fn linted(text: &str) -> (Vec<Finding>, Vec<Value>) {
    let parsed = read(&Source::new("manifest.yaml", text));
    let twice = parsed.problems.iter().filter(|one| one.code == codes::DUPLICATE_KEY);
    let mut lint = Lint::default();
    for (number, document) in parsed.documents.iter().enumerate() {
        let whole = document.nearest("").value;
        let is_in = |one: &&Problem| {
            one.span.is_some_and(|span| whole.start <= span.start && span.end <= whole.end)
        };
        let pointers = twice.clone().filter(is_in).filter_map(|one| one.pointer.clone());
        let id = DocumentId { text: 0, document: number };
        lint.offer(id, &document.value, pointers.collect());
    }
    (lint.finish().findings, parsed.documents.into_iter().map(|one| one.value).collect())
}

/// Without what only a text shows.
fn linted_values(values: &[Value]) -> Vec<Finding> {
    let mut lint = Lint::default();
    for (document, value) in values.iter().enumerate() {
        lint.offer(DocumentId { text: 0, document }, value, Vec::new());
    }
    lint.finish().findings
}

#[test]
fn the_stock_manifest_has_all_of_its_known_defects() {
    let (found, documents) = linted(STOCK);
    assert_eq!(documents.len(), 8);
    let codes: BTreeSet<_> = found.iter().map(|one| one.rule.code).collect();
    let known = [
        "OSDN3041", "OSDN3042", "OSDN3043", "OSDN3044", "OSDN3045", "OSDN3046", "OSDN3047",
        "OSDN3048", "OSDN3049", "OSDN3050", "OSDN3051", "OSDN3052", "OSDN3053",
    ];
    assert_eq!(codes, BTreeSet::from(known), "{found:#?}");
    let errors = found.iter().filter(|one| one.rule.severity == Severity::Error);
    let errors: BTreeSet<_> = errors.map(|one| one.rule.code).collect();
    assert_eq!(errors, BTreeSet::from(["OSDN3041", "OSDN3042", "OSDN3046"]));
    assert!(!format!("{found:?}").contains("c0ntrail123"));
}

#[test]
fn the_lost_selector_is_found_by_the_duplicate_key_and_without_it() {
    let of_first = |found: &[Finding]| {
        let one = found.iter().find(|one| one.rule.code == "OSDN3041").unwrap();
        (one.document.document, one.pointer.clone(), one.message.clone())
    };
    let (found, values) = linted(STOCK);
    let (document, pointer, message) = of_first(&found);
    assert_eq!((document, pointer.as_str()), (2, "/spec"));
    assert!(message.contains("twice"), "{message}");
    let (document, _, message) = of_first(&linted_values(&values));
    assert_eq!(document, 2);
    assert!(message.contains("no selector"), "{message}");
}

#[test]
fn ours_has_none_of_them() {
    let mut others = option_2();
    others.plugins = Plugins::Kept;
    others.token = Token::InSecret("token".to_owned());
    others.log_level = Some(opensdn_crds::pod::LogLevel::Debug);
    for inputs in [option_1(), option_2(), others] {
        let workloads = render(&inputs).unwrap();
        assert_eq!(linted_values(&values(&workloads)), []);
        let (found, read) = linted(&yaml(&workloads));
        assert_eq!(found, []);
        assert_eq!(read, values(&workloads));
    }
}
