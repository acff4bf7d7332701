//! `policies/README.md` is generated from what the policies say of themselves.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use opensdn_policy_host::{Engine, Metadata, Operation, Policy, Severity, Step};

const HEAD: &str = "\
# Built-in policies

<!-- Generated: UPDATE=1 cargo test -p opensdn-policies table_is_current -->

Each folder is one policy: its reason and code in `src/`, what it says to which object in
`cases/`. A policy is put in force by an `AdmissionPolicy` (see `deploy/webhook/policies.yaml`);
its settings stand in `spec.settings`. How to write one: CONTRIBUTING.md.

";

/// Kept by hand; the test below reports what is missing.
const NOT_CHECKED: &str = include_str!("../not-checked-yet.md");

/// How many rules the groups A to J of the catalogue have. The codes of a group begin with 11 to
/// 20, and are numbered from 1.
const RULES: [usize; 10] = [12, 15, 11, 12, 19, 19, 9, 20, 6, 8];

fn table(policies: &[Metadata]) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("| policy | what it is about | kinds |\n| --- | --- | --- |\n");
    for policy in policies {
        let mut kinds: Vec<&str> =
            policy.interests.iter().map(|interest| interest.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let name = &policy.name;
        writeln!(text, "| [{name}](#{name}) | {} | {} |", policy.summary, kinds.join(", "))
            .unwrap();
    }
    for policy in policies {
        section(&mut text, policy);
    }
    text + NOT_CHECKED
}

fn section(text: &mut String, policy: &Metadata) {
    writeln!(text, "\n## {}\n\n{}.", policy.name, policy.summary).unwrap();
    let mutates = policy.has(Step::Mutate);
    if mutates {
        text.push_str("It changes objects: the patch is what its cases show.\n");
    }
    if policy.claims {
        text.push_str(
            "What it finds unique is claimed, so that it holds under concurrent writes.\n",
        );
    }
    let deletes =
        policy.interests.iter().any(|interest| interest.operations.contains(&Operation::Delete));
    if deletes {
        text.push_str("It looks at deletions too.\n");
    }
    if !policy.messages.is_empty() {
        text.push_str("\n| code | severity | what is wrong | why | what to do |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
    }
    for message in &policy.messages {
        let severity = match message.severity {
            Severity::Deny => "deny",
            Severity::Warn => "warn",
        };
        let cell = |cell: &str| cell.replace('|', "\\|").replace('\n', " ");
        writeln!(
            text,
            "| {} | {severity} | {} | {} | {} |",
            message.code,
            cell(&message.title),
            cell(&message.explanation),
            cell(&message.hint)
        )
        .unwrap();
    }
    let settings = policy.settings_schema.get("properties").and_then(|all| all.as_object());
    if let Some(settings) = settings.filter(|all| !all.is_empty()) {
        text.push_str("\n| setting | meaning | default |\n| --- | --- | --- |\n");
        for (name, schema) in settings {
            let field = |key: &str| schema.get(key).map(ToString::to_string).unwrap_or_default();
            let meaning = schema.get("description").and_then(|text| text.as_str()).unwrap_or("");
            let meaning = meaning.replace('|', "\\|").replace('\n', " ");
            writeln!(text, "| `{name}` | {meaning} | `{}` |", field("default")).unwrap();
        }
    }
}

async fn policies() -> Vec<Metadata> {
    let engine = Engine::start(4).unwrap();
    let mut policies = Vec::new();
    for built_in in opensdn_policies::ALL {
        let policy =
            Policy::load(&engine, built_in.bytes, None, crate::compiled().as_ref()).await.unwrap();
        policies.push(policy.metadata().clone());
    }
    policies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rule_of_the_catalogue_is_checked_or_said_not_to_be() {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds/RULES.md");
    let schemas = std::fs::read_to_string(schemas).unwrap();
    let policies = policies().await;
    let messages: BTreeSet<&str> = policies
        .iter()
        .flat_map(|policy| &policy.messages)
        .map(|message| message.code.as_str())
        .collect();
    let (not_at_all, in_part) = NOT_CHECKED.split_once("### In part").unwrap();
    let mut wrong = Vec::new();
    for (group, rules) in RULES.iter().enumerate() {
        for number in 1..=*rules {
            let code = format!("OSDN{}{number:02}", 11 + group);
            let checked = messages.contains(code.as_str()) || schemas.contains(&code);
            match (checked, not_at_all.contains(&format!("| {code} |"))) {
                (true, true) => wrong.push(format!("{code} is checked, and said not to be")),
                (false, false) if !not_at_all.contains(&code) => {
                    wrong.push(format!("{code} is forgotten"));
                }
                (false, _) if in_part.contains(&format!("| {code} |")) => {
                    wrong.push(format!("{code} is said to be checked in part, and is not"));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "policies/built-in/not-checked-yet.md: {wrong:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_of_policies_is_current() {
    let policies = policies().await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("README.md");
    let expected = table(&policies);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        current == expected,
        "policies/README.md is not current: UPDATE=1 cargo test -p opensdn-policies table_is_current"
    );
}
