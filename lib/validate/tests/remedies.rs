//! What hints say to do, done: it puts right what they are about without a new fault, for the schemas and for all
//! policies. That the finding itself is gone is tested with the cases of its policy.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end here, and the line says where"
)]

use std::collections::BTreeSet;

use opensdn_policies::BuiltIn;
use opensdn_policy_host::{
    Cache, Engine, Metering, Policy,
    cases::{Case, Conditions, judge},
};
use opensdn_validate::report::Step;
use opensdn_validate::{Loader, Task, validate};
use serde_json::Value;

/// Of what the objects of the cases leave out, as they have what their policy reads and no more: what a remedy adds has
/// neither all containers nor all fields.
const OF_WHAT_IS_LEFT_OUT: &[&str] =
    &["OSDN1302", "OSDN1303", "OSDN1304", "schema-required", "not-checked"];
/// Remedies with a price, which the hints say.
const KNOWN: &[(&str, &str)] = &[
    // tf-operator's upgrade reads the password from the object and nowhere else.
    ("an-upgrade-needs-keystones-parameters.yaml", "OSDN1409"),
];

struct Judges {
    engine: Engine,
    cache: Cache,
    policies: Vec<(&'static BuiltIn, Policy)>,
}

impl Judges {
    async fn start() -> Self {
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache/opensdn");
        let (engine, cache) = (
            Engine::start_metered(4, Metering::Off).unwrap(),
            Cache::below(folder.as_ref()).unwrap(),
        );
        let mut policies = Vec::new();
        for one in opensdn_policies::ALL {
            let policy = Policy::load(&engine, one.bytes, None, Some(&cache)).await.unwrap();
            policies.push((one, policy));
        }
        Self { engine, cache, policies }
    }

    /// What is said of the case: code and field.
    async fn say(&self, case: &Case) -> BTreeSet<(String, String)> {
        let mut said = BTreeSet::new();
        for (_, policy) in &self.policies {
            let report = judge(policy, case, &Conditions::default()).await.unwrap();
            let findings = report.verdict.findings.into_iter();
            said.extend(findings.map(|one| (one.code, one.pointer)));
        }
        if let Some(object) = &case.object {
            said.extend(self.say_by_schema(object).await);
        }
        said
    }

    async fn say_by_schema(&self, object: &Value) -> Vec<(String, String)> {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("object.yaml"), object.to_string()).unwrap();
        let task = Task { names: vec![root.path().to_owned()], ..Task::default() };
        let loader = Loader { engine: &self.engine, cache: Some(&self.cache), compiler: None };
        let findings = Box::pin(validate(loader, &task, None)).await.unwrap().report.findings;
        let of_schema = findings.into_iter().filter(|one| one.step == Step::Schema);
        of_schema.map(|one| (one.code, one.pointer.unwrap_or_default())).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remedy_brings_no_new_finding_of_any_policy_or_schema() {
    let judges = Judges::start().await;
    let (mut problems, mut tried) = (Vec::new(), 0);
    for (built_in, _) in &judges.policies {
        for (file, text) in opensdn_policies::cases(built_in.name) {
            let case: Case =
                serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            let Some(remedied) = case.remedied() else { continue };
            // The settings are those of one policy.
            let plain = |case: &Case| Case { settings: Case::default().settings, ..case.clone() };
            let before = judges.say(&plain(&case)).await;
            let after = judges.say(&plain(&remedied)).await;
            let new = after.difference(&before).filter(|(code, _)| {
                !OF_WHAT_IS_LEFT_OUT.contains(&code.as_str())
                    && !KNOWN.contains(&(*file, code.as_str()))
            });
            let texts =
                new.map(|(code, pointer)| format!("{}/{file}: {code} at {pointer}", built_in.name));
            problems.extend(texts);
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried} remedies were tried");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
