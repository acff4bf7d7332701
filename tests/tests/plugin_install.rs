//! `kubectl opensdn install`, `diff`, `uninstall` and `prune` on a real API server: from nothing to OpenSDN and back, and
//! what happens when they are interrupted or when others have been there before. Pods do not run here: simulated nodes say
//! that they do, and the test starts the webhook's processes in their place. Deliberately not here: what is
//! decided without a cluster (unit tests of `plugin/src/install`).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

mod manifests;
mod others;
mod owners;
mod prompts;
mod two_people;
pub(crate) mod whole;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use opensdn_deploy::{Phase, Values};
use opensdn_testing::fault_proxy::{Fault, FaultProxy};
use opensdn_testing::kubectl::read;
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Cluster, Sandbox};
use opensdn_testing::signal;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// What a command said, and how it ended.
pub(crate) struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    /// It ended so.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        self
    }

    /// All of these are in what it said on stderr.
    #[track_caller]
    fn with(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing in: {}", self.err);
        }
        self
    }

    fn document(&self) -> Result<Value, Failed> {
        Ok(serde_json::from_str(&self.out)?)
    }
}

/// The plugin, without anything of the developer's, and without a terminal.
pub(crate) struct Plugin {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: TempDir,
}

impl Plugin {
    fn of(cluster: &Cluster) -> Result<Self, Failed> {
        Self::by(cluster.kubeconfig())
    }

    pub(crate) fn by(kubeconfig: PathBuf) -> Result<Self, Failed> {
        Ok(Self { program: program("kubectl-opensdn")?, kubeconfig, home: tempfile::tempdir()? })
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, line: &str) -> Result<Said, Failed> {
        Ok(said(&self.command(line).output().await?))
    }
}

fn said(output: &std::process::Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Every object that the default values install, by phase.
pub(crate) fn rendered() -> Result<Vec<(Phase, Value)>, Failed> {
    let steps = opensdn_deploy::render(&Values::default())?.into_iter();
    Ok(steps.flat_map(|step| step.objects.into_iter().map(move |one| (step.phase, one))).collect())
}

/// What is stored of these objects: the UID of each that is there.
pub(crate) async fn uids(cluster: &Cluster) -> Result<BTreeMap<String, String>, Failed> {
    let mut found = BTreeMap::new();
    let objects: Vec<Value> = rendered()?.into_iter().map(|(_, object)| object).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let arguments = ["get", "-f", "-", "--ignore-not-found", "-o", "json"];
    let output = cluster.kubectl_with_input(&arguments, &list).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.trim().is_empty() {
        return Ok(found);
    }
    let stored: Value = serde_json::from_str(&text)?;
    for object in stored["items"].as_array().into_iter().flatten() {
        let metadata = &object["metadata"];
        let key = format!("{}/{}/{}", object["kind"], metadata["namespace"], metadata["name"]);
        found.insert(key, metadata["uid"].to_string());
    }
    Ok(found)
}

pub(crate) async fn only_api_server() -> Result<Sandbox, Failed> {
    Ok(Sandbox::builder().only_api_server().start().await?)
}

/// Starts the command behind a proxy at which its write of this number is lost, and kills it then.
async fn killed_at(sandbox: &Sandbox, folder: &Path, line: &str, write: usize) -> Outcome {
    let proxy =
        FaultProxy::of_what_is_stored(sandbox.client()?, [(write, Fault::LoseRequest)]).await?;
    let plugin = Plugin::by(proxy.kubeconfig(folder)?)?;
    let mut child = plugin.command(line).spawn()?;
    tokio::select! {
        () = proxy.broken() => {}
        status = child.wait() => return Err(format!("{line} ended before write {write}: {status:?}, {:?}", proxy.writes()).into()),
    }
    child.kill().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_that_is_killed_at_any_step_is_taken_up_by_the_next() -> Outcome {
    let sandbox = only_api_server().await?;
    let folder = tempfile::tempdir()?;
    let install = "install --yes --wait=false";
    let of = |phase: Phase| -> Result<usize, Failed> {
        Ok(rendered()?.iter().filter(|(one, _)| *one == phase).count())
    };
    let (definitions, access) = (of(Phase::Definitions)?, of(Phase::Access)?);
    let programs = of(Phase::Program)?;
    let mut known = BTreeMap::new();
    // What each run finds, and after how many writes of its own it is killed: after the inventory, in the middle of the
    // CRDs, after them, after the namespaces and rights, after the programs. The namespace of the inventory is
    // among those of access.
    let inventory = 1;
    let steps = [
        (0, 1 + inventory),
        (1, inventory + 5),
        (6, inventory + definitions - 5),
        (1 + definitions, inventory + access - 1),
        (definitions + access, inventory + programs),
    ];
    for (there, writes) in steps {
        assert_eq!(known.len(), there, "{known:?}");
        killed_at(&sandbox, folder.path(), install, writes).await?;
        let now = uids(&sandbox).await?;
        assert!(known.iter().all(|(key, uid)| now.get(key) == Some(uid)), "made twice: {now:?}");
        let state =
            read(&sandbox, &["-n", "opensdn-system", "configmap", "opensdn-inventory"]).await?;
        assert_eq!(state["data"]["state"], "installing");
        known = now;
    }
    let plugin = Plugin::of(&sandbox)?;
    let answer = plugin.run(&format!("{install} -o json")).await?.ended(0).document()?;
    let total = rendered()?.len();
    assert_eq!(answer["counts"]["same"], known.len(), "{answer:#}");
    assert_eq!(answer["counts"]["create"], total - known.len());
    let now = uids(&sandbox).await?;
    assert_eq!(now.len(), total);
    assert!(known.iter().all(|(key, uid)| now.get(key) == Some(uid)), "made twice");
    let state = read(&sandbox, &["-n", "opensdn-system", "configmap", "opensdn-inventory"]).await?;
    assert_eq!(state["data"]["state"], "applied");
    Ok(())
}

/// Nothing here runs a pod, so the programs are never available.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_at_the_timeout_with_4_and_at_an_interrupt_with_130_and_what_is_applied_stays()
-> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run("install --yes --wait=false").await?.ended(0);
    let late = plugin.run("install --yes --timeout 1s").await?.ended(4);
    late.with(&[
        "programs: 3 not ready after 1 s",
        "Deployment/opensdn-system/opensdn-webhook",
        "--timeout",
    ]);

    let mut child = plugin.command("install --yes").spawn()?;
    let process = child.id().ok_or("it has ended")?;
    let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("waiting for programs: 0 of 3") {
            signal::send(signal::Signal::INT, process)?;
        }
        said.push(line);
    }
    assert_eq!(child.wait().await?.code(), Some(130), "{said:?}");
    assert!(said.iter().any(|line| line.contains("detached: all is applied")), "{said:?}");
    Ok(())
}

/// A scheduler, and no node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_will_never_run_ends_the_wait_at_once_with_its_reason() -> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    let said = plugin.run("install --yes -o json").await?.ended(1);
    let failure = said.document()?;
    assert_eq!(failure["code"], "not-ready", "{failure:#}");
    said.with(&["is Unschedulable: ", "no nodes available", "--profile single-node"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_rendered_is_taken_by_kubectl_and_is_the_same_each_time() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    let line = "render --set registry=registry.local:5000/sdn --profile ha";
    let text = plugin.run(line).await?.ended(0).out;
    assert_eq!(plugin.run(line).await?.out, text);
    let apply = ["apply", "--server-side", "-f", "-"];
    // An AdmissionPolicy is taken only when its CRD is served.
    let taken = async || {
        sandbox.kubectl_with_input(&apply, &text).await.is_ok_and(|output| output.status.success())
    };
    opensdn_testing::eventually::eventually("all of it is taken", taken).await;
    let deployment =
        read(&sandbox, &["-n", "opensdn-system", "deployment", "opensdn-webhook"]).await?;
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.local:5000/sdn/opensdn-webhook:0.1.0");
    assert_eq!(
        deployment["metadata"].get("labels"),
        None,
        "who applies it himself manages it himself"
    );

    let folder = plugin.home.path().join("split");
    plugin.run(&format!("render --split {}", folder.display())).await?.ended(0);
    let files = std::fs::read_dir(&folder)?.count();
    assert_eq!(files, rendered()?.len());
    Ok(())
}
