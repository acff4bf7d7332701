//! What a policy that reads whole objects says to deep ones: their stack is small, for the sake of
//! speed, and has to be enough for what a JSON parser takes.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::path::Path;

use opensdn_policy_build::Build;
use opensdn_policy_host::cases::{self, Case};
use opensdn_policy_host::{Cache, Engine, Policy};
use serde_json::{Value, json};

fn policy() -> Vec<u8> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let build = Build {
        workspace: &workspace,
        cargo: Path::new(env!("CARGO")),
        target: &Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"),
        packages: &["whole-object".to_owned()],
    };
    build.run().unwrap().remove(0).bytes
}

/// A case with a needle so many levels below the object.
fn deep(levels: usize) -> Case {
    let wrap = |value: Value, level: usize| {
        if level.is_multiple_of(2) { json!({ "a": value }) } else { json!([value]) }
    };
    let spec = (0..levels).fold(json!("needle"), wrap);
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "deep"}, "spec": spec});
    serde_json::from_value(json!({"object": object, "expect": {}})).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_walks_as_deep_as_its_parser_reads_and_deeper_is_a_failure_not_a_pass() {
    let (engine, cache) = (Engine::start(2).unwrap(), Cache::of_user().unwrap());
    let policy = Policy::load(&engine, &policy(), None, cache.as_ref()).await.unwrap();
    for levels in [1, 10, 60, 120] {
        let report = cases::run(&policy, &deep(levels)).await.unwrap();
        let codes: Vec<_> =
            report.verdict.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["TEST0001"], "{levels} levels: {:?}", report.verdict.failures);
    }
    for levels in [130, 400] {
        let report = cases::run(&policy, &deep(levels)).await.unwrap();
        assert_eq!(report.verdict.failures.len(), 1, "{levels} levels");
    }
}
