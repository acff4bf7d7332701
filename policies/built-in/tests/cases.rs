//! Every case of every built-in policy, against the component that ships; and that each code has
//! a case that gives it and every policy a case that passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use opensdn_policy_host::{
    Engine, Policy, Step,
    cases::{self, Case},
};

/// Codes that warn of a change that is meant: what to do is to make it at another time, or beside it. OSDN1611 asks for
/// names in a DNS, which no object has.
const WITHOUT_REMEDY: &[&str] =
    &["OSDN1309", "OSDN1517", "OSDN1611", "OSDN1818", "OSDN1819", "OSDN1905"];

fn folder(policy: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(policy)
}

fn case_files(policy: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(policy).join("cases")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Case {
    let text = std::fs::read_to_string(file).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Problems of all cases of one policy, and what its cases do not show.
async fn problems(engine: &Engine, name: &str, bytes: &[u8]) -> Vec<String> {
    let policy = Policy::load(engine, bytes, None, crate::compiled().as_ref()).await.unwrap();
    let mut problems = Vec::new();
    let (mut given, mut silent, mut remedied) = (BTreeSet::new(), 0, BTreeSet::new());
    for file in case_files(name) {
        let case = read(&file);
        let report = cases::run(&policy, &case).await.unwrap();
        if case.remedy.is_some() {
            remedied.extend(report.verdict.findings.iter().map(|finding| finding.code.clone()));
            remedied.extend(report.verdict.claims.iter().map(|claim| claim.code.clone()));
        }
        let place = file.strip_prefix(folder("")).unwrap().display().to_string();
        problems.extend(report.problems.iter().map(|problem| format!("{place}: {problem}")));
        let findings = &report.verdict.findings;
        silent += usize::from(findings.is_empty() && report.mutation.patch.0.is_empty());
        given.extend(findings.iter().map(|finding| finding.code.clone()));
        given.extend(report.verdict.claims.iter().map(|claim| claim.code.clone()));
    }
    let metadata = policy.metadata();
    for message in metadata.messages.iter().filter(|message| !given.contains(&message.code)) {
        problems.push(format!("{name}: no case gives {}", message.code));
    }
    for message in &metadata.messages {
        let code = &message.code;
        if WITHOUT_REMEDY.contains(&code.as_str()) == remedied.contains(code) {
            problems.push(format!("{name}: no case tries the hint of {code}, or it need not"));
        }
    }
    for message in &metadata.messages {
        if opensdn_policies::category(&message.code).is_none() {
            problems.push(format!("{name}: {} has no category", message.code));
        }
    }
    if silent == 0 {
        problems.push(format!("{name}: no case passes in silence"));
    }
    if metadata.has(Step::Validate) && metadata.messages.is_empty() {
        problems.push(format!("{name}: it validates but has nothing to say"));
    }
    problems
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_policy_says_what_its_cases_expect() {
    let engine = Engine::start(8).unwrap();
    let mut all = Vec::new();
    for policy in opensdn_policies::ALL {
        all.extend(problems(&engine, policy.name, policy.bytes).await);
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_belongs_to_one_policy_and_every_message_helps() {
    let engine = Engine::start(8).unwrap();
    let mut seen = BTreeSet::new();
    for built_in in opensdn_policies::ALL {
        let policy =
            Policy::load(&engine, built_in.bytes, None, crate::compiled().as_ref()).await.unwrap();
        assert_eq!(policy.metadata().name, built_in.name, "a policy is named after its folder");
        for message in &policy.metadata().messages {
            assert!(seen.insert(message.code.clone()), "{} stands in two policies", message.code);
            let sources = opensdn_policies::sources(built_in.name, &message.code);
            assert!(!sources.is_empty(), "{} lacks a line in sources.txt", message.code);
            for text in [&message.title, &message.explanation, &message.hint] {
                assert!(!text.is_empty(), "{} lacks a title, explanation or hint", message.code);
            }
        }
    }
}
