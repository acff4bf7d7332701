//! Every case of every built-in policy, against the real component.

use std::{
    fs,
    path::{Path, PathBuf},
};

use opensdn_policies::{ALL, BuiltIn};
use opensdn_policy_host::{
    Engine, Policy,
    cases::{self, Case},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_policy_says_what_its_cases_expect() {
    let engine = Engine::start(4).unwrap();
    let mut failures = Vec::new();
    for built_in in ALL {
        let policy = Policy::load(&engine, built_in.bytes, None, None).await.unwrap();
        for path in case_files(built_in) {
            if let Err(problem) = check(&policy, &path).await {
                failures.push(format!("{}: {problem}", path.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

async fn check(policy: &Policy, path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let case: Case = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
    let report = cases::run(policy, &case).await.map_err(|error| error.to_string())?;
    if report.problems.is_empty() { Ok(()) } else { Err(report.problems.join("\n")) }
}

fn case_files(policy: &BuiltIn) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(policy.name).join("cases");
    let files = fs::read_dir(&folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}
