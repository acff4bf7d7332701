//! The webhook over the wire and `kubectl opensdn validate` on files come to the same verdict: the
//! same codes at the same fields in the same words, for every sample as it is, and for every case of
//! every built-in policy in a cluster whose schemas let any values pass, so that the cases, which
//! have only what their policy reads, get as far as the webhook (`cases`). Of a deletion, which no file
//! says, the webhook says what the case expects. Deliberately not here: who changes an object, since
//! files have no user.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use opensdn_policy_host::{Finding, Group, Mode, Severity, group};
use opensdn_testing::programs::program;
use opensdn_testing::{Failed, Outcome, long_runs};
use opensdn_testing::{
    eventually::TIMEOUT,
    kubectl::{self, Said},
    product::{Installation, Product},
    sandbox::Sandbox,
};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::Instant;

use builder::Builder;
use cases::Compared;
use direct::Direct;

mod builder;
mod cases;
mod direct;
mod kinds;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// With the option that makes the webhook read the keys of Secrets.
const SECRET_KEYS: &str = "deploy/webhook/secret-keys.yaml";

/// What either side says of an object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// `error [CODE] field: message -> hint`, without those of the schema.
    lines: BTreeSet<String>,
    /// Whether the schema refuses it.
    schema: bool,
    /// How many warnings the webhook left out, to stay within what the API server hands on.
    more: usize,
}

/// Codes of what an AdmissionPolicy finds in its cluster (a module, a kind that is not there yet),
/// which files do not show; `validate` lists it as not checked.
const OF_CLUSTER: [&str; 4] = ["[OSDN4003]", "[OSDN4010]", "[OSDN4011]", "[OSDN4017]"];

/// Codes that say of an object in the cluster that it is not there. `validate` says so only where it
/// knows the kind; of a sample alone it knows none, and lists that as not checked.
const OF_ABSENCE: [&str; 8] = [
    "[OSDN1202]",
    "[OSDN1214]",
    "[OSDN1404]",
    "[OSDN1516]",
    "[OSDN1613]",
    "[OSDN1616]",
    "[OSDN1801]",
    "[OSDN1821]",
];

/// What is said over the wire and of files where that is not the same.
fn difference(wire: &Verdict, offline: &Verdict) -> Option<String> {
    let only = |one: &Verdict, other: &Verdict| -> Vec<String> {
        one.lines.difference(&other.lines).cloned().collect()
    };
    let (wire_only, offline_only) = (only(wire, offline), only(offline, wire));
    let left_out = |line: &String| line.starts_with("warning ");
    let same = wire_only.is_empty()
        && offline_only.len() == wire.more
        && (wire.more == 0 || offline_only.iter().all(left_out));
    let (wire_only, offline_only) = (wire_only.join("\n    "), offline_only.join("\n    "));
    (!same).then(|| {
        format!("\n  only over the wire:\n    {wire_only}\n  only of files:\n    {offline_only}")
    })
}

/// No user can write what these cases say.
const DELETED: &str = "only the API server writes that it is being deleted";
/// What a case has in fields of another type than the schema's never gets to a webhook.
const TYPES: &str = "the API server refuses its types";
/// The Secrets of these cases have a type and not the data that it demands.
const SECRET: &str = "its cluster cannot be brought about: Secret \"registry\" is invalid: data[.dockerconfigjson]: Required value";

/// The cases that are not compared, and why: no more, and no others.
const LEFT_OUT: [(&str, &str); 14] = [
    ("crossing-change/a-manager-that-goes-is-not-judged", DELETED),
    ("destructive-change/what-is-being-deleted-may-be-deleted-again", DELETED),
    (
        "duplicate-link-local/a-setting-that-is-no-network-is-a-failure",
        "with its settings no request gets as far as the policy",
    ),
    ("explicit-defaults/a-list-that-is-an-object-is-left-alone", TYPES),
    ("explicit-defaults/a-name-that-is-a-number-is-left-alone", TYPES),
    ("explicit-defaults/a-service-that-is-text-is-left-alone", TYPES),
    ("explicit-defaults/a-spec-that-is-text-is-left-alone", TYPES),
    ("explicit-defaults/common-configuration-that-is-text-is-left-alone", TYPES),
    ("explicit-defaults/services-that-are-a-list-is-left-alone", TYPES),
    ("missing-reference/missing-secrets-are-refused-by-setting", SECRET),
    ("missing-reference/missing-secrets-are-told", SECRET),
    ("missing-reference/secrets-are-left-alone-by-setting", SECRET),
    ("missing-reference/secrets-that-are-there-pass", SECRET),
    ("wrong-container/a-kind-without-containers-passes", TYPES),
];

struct World {
    sandbox: Sandbox,
    _product: Product,
    folder: tempfile::TempDir,
    /// The networks of Services, which `validate` is given: no case changes them.
    service_cidrs: Value,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        let product = Installation::built()?.install(&sandbox).await?;
        put_all_in_force(&sandbox).await?;
        let service_cidrs = kubectl::read(&sandbox, &["servicecidrs"]).await?;
        Ok(Self { sandbox, _product: product, folder: tempfile::tempdir()?, service_cidrs })
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<Said, Failed> {
        Ok(kubectl::kubectl(&self.sandbox, arguments).await?)
    }

    /// What the API server and the webhook say when the object is written.
    async fn wire(&self, verb: &str, object: &Value) -> Result<Verdict, Failed> {
        let arguments = [verb, "--dry-run=server", "--validate=ignore"];
        let until = Instant::now() + TIMEOUT;
        loop {
            let said = kubectl::send(&self.sandbox, &arguments, object).await?;
            // That is no verdict.
            let is_unjudged = said.err.contains("failed calling webhook");
            if !is_unjudged || Instant::now() > until {
                return Ok(of_wire(&said));
            }
        }
    }

    /// What `validate` says of the document.
    async fn offline(&self, document: &Value) -> Result<Verdict, Failed> {
        let names = self.write_files(&[document])?;
        let report = self.validate(&names, &[]).await?;
        Ok(of_report(&report, &first(&names)))
    }

    fn write_files(&self, documents: &[&Value]) -> Result<Vec<PathBuf>, Failed> {
        let mut names = Vec::new();
        for (number, document) in documents.iter().enumerate() {
            let name = self.folder.path().join(format!("{number:03}.json"));
            std::fs::write(&name, document.to_string())?;
            names.push(name);
        }
        Ok(names)
    }

    fn write_settings(&self, settings: &Value) -> Result<PathBuf, Failed> {
        let file = self.folder.path().join("settings.json");
        std::fs::write(&file, settings.to_string())?;
        Ok(file)
    }

    /// What `validate` would say of the first of the documents, with the others to look things up in.
    async fn judged(
        &self,
        direct: &Direct,
        documents: &[&Value],
        settings: &Value,
    ) -> Result<Verdict, Failed> {
        let names = self.write_files(documents)?;
        let report = direct.report(&names, self.write_settings(settings)?).await?;
        Ok(of_report(&report, &first(&names)))
    }

    /// What `validate --live` says of the object, as a change of the one that is stored.
    async fn offline_change(&self, object: &Value, settings: &Value) -> Result<Verdict, Failed> {
        let file = self.folder.path().join("changed.json");
        std::fs::write(&file, object.to_string())?;
        let settings_file = self.write_settings(settings)?;
        let kubeconfig = self.sandbox.kubeconfig();
        let flags: [&Path; 5] = [
            "--live".as_ref(),
            "--kubeconfig".as_ref(),
            &kubeconfig,
            "--settings".as_ref(),
            &settings_file,
        ];
        let names = [file];
        Ok(of_report(&self.validate(&names, &flags).await?, &first(&names)))
    }

    async fn validate(&self, names: &[PathBuf], more: &[&Path]) -> Result<Value, Failed> {
        let output = Command::new(program("kubectl-opensdn")?)
            .args(["validate", "-o", "json", "--operator", "tf-operator", "--policy"])
            .arg(Path::new(ROOT).join(SECRET_KEYS))
            .args(more)
            .args(names)
            .stdin(Stdio::null())
            .output()
            .await?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// The built-in policies that are not in force by default, as well.
async fn put_all_in_force(sandbox: &Sandbox) -> Outcome {
    for file in ["deploy/webhook/tf-operator.yaml", SECRET_KEYS] {
        let file = Path::new(ROOT).join(file).display().to_string();
        kubectl::kubectl(sandbox, &["apply", "-f", &file]).await?.success();
    }
    let ready = ["wait", "admissionpolicies", "--all", "--for=condition=Ready", "--timeout=120s"];
    kubectl::kubectl(sandbox, &ready).await?.success();
    Ok(())
}

fn first(names: &[PathBuf]) -> String {
    names.first().map(|name| name.display().to_string()).unwrap_or_default()
}

/// From kubectl's standard error: warnings one a line, a refusal with its reasons in lines.
fn of_wire(said: &Said) -> Verdict {
    let mut verdict = Verdict::default();
    let denied = said.err.contains("denied the request");
    for line in said.err.lines() {
        // What becomes of a request that a policy could not judge is the webhook's to say only.
        let line = match line.split_once(" -> ") {
            Some((said, _)) if said.contains("policy ") && !said.contains("[OSDN") => said,
            _ => line,
        };
        if let Some((number, _)) = line.split_once(" more warnings; ") {
            let number = number.strip_prefix("Warning: ").unwrap_or_default();
            verdict.more += number.parse::<usize>().unwrap_or_default();
        }
        if let Some(warning) = line.strip_prefix("Warning: ").filter(|one| is_ours(one)) {
            verdict.lines.insert(format!("warning {warning}"));
        } else if denied && is_ours(line.trim_start()) {
            verdict.lines.insert(format!("error {}", line.trim_start()));
        }
    }
    verdict.schema = !said.ok && !denied;
    verdict
}

fn is_ours(line: &str) -> bool {
    (line.starts_with("[OSDN") || line.starts_with("policy "))
        && !line.contains("would have changed")
        && !OF_CLUSTER.iter().any(|code| line.starts_with(code))
}

/// From the report of `validate`, what is about the file.
fn of_report(report: &Value, file: &str) -> Verdict {
    let mut verdict = Verdict::default();
    let mut findings = Vec::new();
    for finding in report["findings"].as_array().unwrap() {
        if finding["place"]["file"] != file || finding["code"] == "defined-twice" {
            continue;
        }
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        match text("step") {
            "schema" | "syntax" => verdict.schema |= text("severity") == "error",
            _ if text("code") == "policy-inconclusive" => {
                verdict.lines.insert(format!("{} {}", text("severity"), text("message")));
            }
            _ => findings.push(Finding {
                policy: String::new(),
                mode: Mode::Enforce,
                code: text("code").to_owned(),
                severity: match text("severity") {
                    "error" => Severity::Deny,
                    _ => Severity::Warn,
                },
                pointer: text("pointer").to_owned(),
                message: text("message").to_owned(),
                hint: text("hint").to_owned(),
            }),
        }
    }
    verdict.lines.extend(group(&findings).iter().map(line));
    verdict
}

/// One mistake as the webhook writes it: a refusal has every place, a warning three.
fn line(group: &Group<'_>) -> String {
    let Finding { code, severity, hint, .. } = group.first;
    let (severity, most) = match severity {
        Severity::Deny => ("error", usize::MAX),
        Severity::Warn => ("warning", 3),
    };
    let places = group.pointers.iter().map(|pointer| field(pointer));
    let places: Vec<_> = places.filter(|place| !place.is_empty()).collect();
    let shown = places.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    let rest = match places.len().saturating_sub(most) {
        0 => String::new(),
        1 => " and 1 more place".to_owned(),
        more => format!(" and {more} more places"),
    };
    let gap = if shown.is_empty() { "" } else { " " };
    let hint = if hint.is_empty() { String::new() } else { format!(" -> {hint}") };
    format!("{severity} [{code}]{gap}{shown}{rest}: {}{hint}", group.message)
}

/// A pointer as the webhook writes it.
fn field(pointer: &str) -> String {
    let mut path = String::new();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{segment}]"));
        } else if segment.contains(['.', '/']) {
            path.push_str(&format!("[{segment:?}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&segment);
        }
    }
    path
}

/// Takes out what is said of services that a Manager lacks, and returns which these are: some may be objects of their own,
/// which is a warning where only files are looked at.
fn missing_services(lines: &mut BTreeSet<String>) -> BTreeSet<String> {
    let places = |line: &String| -> Option<Vec<String>> {
        let (places, _) = line.split_once("[OSDN1105] ")?.1.split_once(": it is missing")?;
        Some(places.split(", ").map(str::to_owned).collect())
    };
    let found = lines.iter().filter_map(places).flatten().collect();
    lines.retain(|line| places(line).is_none());
    found
}

fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_and_every_case_gets_the_same_verdict() -> Outcome {
    let world = World::start().await?;
    world.kubectl(&["create", "namespace", "tf"]).await?.success();
    samples(&world).await?;
    living(&world).await?;
    cases::relax(&world).await?;
    let mut left_out = Vec::new();
    let mut different = Vec::new();
    // A policy has more cases than the step is wide.
    let cases = long_runs::every(5, cases::all());
    let mut stage = cases::Stage {
        builder: Builder::of(&world.sandbox)?,
        direct: Direct::of(&world)?,
        world: &world,
    };
    for (name, policy, case) in &cases {
        match cases::compare(&mut stage, policy, case).await? {
            Compared::Same => {}
            Compared::Different(how) => different.push(format!("{name}: {how}")),
            Compared::LeftOut(why) => left_out.push((name.as_str(), why)),
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    let left_out: Vec<(&str, &str)> =
        left_out.iter().map(|(name, why)| (*name, why.as_str())).collect();
    let expected = LEFT_OUT.iter().copied();
    let expected = expected.filter(|(left_out, _)| cases.iter().any(|(name, ..)| name == left_out));
    assert_eq!(left_out, expected.collect::<Vec<_>>());
    Ok(())
}

/// Each sample by itself: nothing else is in the cluster.
async fn samples(world: &World) -> Outcome {
    for file in files("deploy/samples").into_iter().chain(files("deploy/samples-refused")) {
        for mut document in documents(&file) {
            match text(&document, "/kind") {
                // Only the webhook may write these, so no user's files have them.
                "UniqueClaim" => continue,
                // One with that name is in force already.
                "AdmissionPolicy" => document["metadata"]["name"] = "sample".into(),
                _ => {}
            }
            let mut wire = world.wire("create", &document).await?;
            let mut offline = world.offline(&document).await?;
            let of_absence = |line: &String| OF_ABSENCE.iter().any(|code| line.contains(code));
            assert!(!offline.lines.iter().any(of_absence), "{}", file.display());
            wire.lines.retain(|line| !of_absence(line));
            let is_missed = |said: &mut Verdict| missing_services(&mut said.lines);
            let files_of = file.display();
            assert_eq!(is_missed(&mut wire), is_missed(&mut offline), "{files_of}");
            // Over the wire the schema's refusal comes before the policies'; files get both.
            if wire.schema {
                assert!(offline.schema, "{}: only the API server refuses it", file.display());
            } else {
                let difference = difference(&wire, &offline);
                assert_eq!((difference, offline.schema), (None, false), "{}", file.display());
            }
        }
    }
    Ok(())
}

/// With `--live` the cluster answers lookups, knows what is taken, and has what is changed.
async fn living(world: &World) -> Outcome {
    let sample = |name: &str| PathBuf::from(format!("{ROOT}/deploy/{name}.yaml"));
    let [control, service] = ["samples/control", "samples/link-local-service"].map(sample);
    let stored = [control.display().to_string(), service.display().to_string()];
    for file in &stored {
        world.kubectl(&["apply", "-f", file]).await?.success();
    }
    let kubeconfig = world.sandbox.kubeconfig();
    let live: [&Path; 3] = ["--live".as_ref(), "--kubeconfig".as_ref(), &kubeconfig];
    let codes = |report: &Value| -> Vec<String> {
        let findings = report["findings"].as_array().unwrap().iter();
        let errors = findings.filter(|one| one["severity"] == "error");
        errors.map(|one| text(one, "/code").to_owned()).collect()
    };
    let webui = [sample("samples/webui")];
    for flags in [&[] as &[&Path], &live] {
        assert_eq!(codes(&world.validate(&webui, flags).await?), Vec::<String>::new());
    }
    let mut misspelt = documents(&webui[0]);
    misspelt[0]["spec"]["serviceConfiguration"]["controlInstance"] = "contrl1".into();
    let misspelt = world.write_files(&misspelt.iter().collect::<Vec<_>>())?;
    assert_eq!(codes(&world.validate(&misspelt, &[]).await?), Vec::<String>::new());
    assert_eq!(codes(&world.validate(&misspelt, &live).await?), ["OSDN1616"]);

    let taken = [sample("samples-refused/link-local-service")];
    assert_eq!(codes(&world.validate(&taken, &[]).await?), Vec::<String>::new());
    let report = world.validate(&taken, &live).await?;
    assert_eq!(codes(&report), ["OSDN3009"]);
    let conflict = &report["findings"].as_array().unwrap().iter();
    let conflict = conflict.clone().find(|one| one["code"] == "OSDN3009").unwrap();
    assert_eq!(text(conflict, "/related/0/place/origin"), "cluster");
    let own = [sample("samples/link-local-service")];
    assert_eq!(codes(&world.validate(&own, &live).await?), Vec::<String>::new(), "it is its own");

    for file in &stored {
        world.kubectl(&["delete", "--wait=true", "-f", file]).await?.success();
    }
    Ok(())
}
