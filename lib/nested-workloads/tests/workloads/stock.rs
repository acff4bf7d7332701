//! Upstream's manifest of nested mode has its known defects, and ours has none.

use std::collections::BTreeSet;

use opensdn_manifests::{Source, codes, read};
use opensdn_nested_workloads::{DuplicateKey, Finding, Plugins, Severity, Token, lint, render};
use serde_json::Value;

use crate::example::{option_1, option_2, values, yaml};

const STOCK: &str = include_str!("../foreign/contrail-nested-kubernetes.yaml");

/// As a caller does it: the reader says which keys are there twice, and the place says in which document.
fn linted(text: &str) -> (Vec<Finding>, Vec<Value>) {
    let parsed = read(&Source::new("manifest.yaml", text));
    let mut duplicates = Vec::new();
    for problem in parsed.problems.iter().filter(|one| one.code == codes::DUPLICATE_KEY) {
        let span = problem.span.unwrap();
        let is_in =
            |whole: opensdn_manifests::Span| whole.start <= span.start && span.end <= whole.end;
        let mut documents = parsed.documents.iter();
        let document = documents.position(|one| is_in(one.nearest("").value)).unwrap();
        duplicates.push(DuplicateKey { document, pointer: problem.pointer.clone().unwrap() });
    }
    let values: Vec<_> = parsed.documents.into_iter().map(|one| one.value).collect();
    (lint(&values, &duplicates), values)
}

#[test]
fn the_stock_manifest_has_all_of_its_known_defects() {
    let (found, documents) = linted(STOCK);
    assert_eq!(documents.len(), 8);
    let codes: BTreeSet<_> = found.iter().map(|one| one.code).collect();
    let known = [
        "OSDN3041", "OSDN3042", "OSDN3043", "OSDN3044", "OSDN3045", "OSDN3046", "OSDN3047",
        "OSDN3048", "OSDN3049", "OSDN3050", "OSDN3051", "OSDN3052", "OSDN3053",
    ];
    assert_eq!(codes, BTreeSet::from(known), "{found:#?}");
    let errors: BTreeSet<_> =
        found.iter().filter(|one| one.severity == Severity::Error).map(|one| one.code).collect();
    assert_eq!(errors, BTreeSet::from(["OSDN3041", "OSDN3042", "OSDN3046"]));
    assert!(!format!("{found:?}").contains("c0ntrail123"));
}

#[test]
fn the_lost_selector_is_found_by_the_duplicate_key_and_without_it() {
    let of_first = |found: &[Finding]| {
        let one = found.iter().find(|one| one.code == "OSDN3041").unwrap();
        (one.document, one.pointer.clone(), one.message.clone())
    };
    let (found, values) = linted(STOCK);
    let (document, pointer, message) = of_first(&found);
    assert_eq!((document, pointer.as_str()), (2, "/spec"));
    assert!(message.contains("twice"), "{message}");
    let (document, _, message) = of_first(&lint(&values, &[]));
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
        assert_eq!(lint(&values(&workloads), &[]), []);
        let (found, read) = linted(&yaml(&workloads));
        assert_eq!(found, []);
        assert_eq!(read, values(&workloads));
    }
}
