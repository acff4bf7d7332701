//! `support-bundle`: what a person who helps needs of a cluster, in one archive without secrets.

use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::bundle::archive::Archive;
use crate::bundle::collect::{self, Collected};
use crate::bundle::plan::{self, Task};
use crate::bundle::redact;
use crate::bundle::report::{Failed, SupportBundle};
use crate::checks::planned::Planned;
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::logs::files::{Unread, files, folders};
use crate::logs::sources::Subject;
use crate::output::{Answer, Output};
use crate::part_file::{PartFile, PartFileError};
use crate::runtime::Runtime;
use crate::signals::Signals;
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::snapshot::text;
use crate::ui::Ui;
use crate::{checks, status};

const EXAMPLES: &str = "\
Examples:
  # Everything of the last day, into opensdn-support-TIME.tar.gz
  kubectl opensdn support-bundle

  # Objects, status and checks, without any log
  kubectl opensdn support-bundle --quick

  # What would be asked for
  kubectl opensdn support-bundle --dry-run

Data of Secrets is left out, and what is a secret by its name, its form or its shape is replaced
in objects, texts and logs. Look at what is in it before you send it: a secret that is none of
these is not known.

Exit codes: 0 all is in it, 1 something could not be had (the archive is written), 2 it cannot be
written, 3 the cluster cannot be asked.";

/// Arguments of `support-bundle`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SupportBundleCommand {
    /// The archive [default: opensdn-support-TIME.tar.gz in this folder]. It must not exist.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// How old what is in logs may be.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = opensdn_duration::parse)]
    since: Duration,
    /// Without logs.
    #[arg(long)]
    quick: bool,
    /// Only logs of pods on this node (repeatable).
    #[arg(long, value_name = "NAME", conflicts_with = "quick")]
    node: Vec<String>,
    /// Without the files that daemons write on their nodes, for which the right to get nodes/proxy is needed.
    #[arg(long)]
    no_files: bool,
    /// Show what would be asked for; nothing is written.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

impl SupportBundleCommand {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        if global.cluster.namespace.is_some() {
            let message = "--namespace has no effect: the namespaces of OpenSDN are meant";
            return Err(Failure::usage(message, "leave it out"));
        }
        let runtime = Runtime::start(global)?;
        let (client, server) = runtime.block_on(global.client_and_server())?;
        let asker = Asker::new(client);
        let namespaces = runtime.block_on(Box::pin(async {
            asker.version(&server).await?;
            let places = Places::of(&asker, opensdn_deploy::names::NAMESPACE).await;
            let managers = asker.list("/apis/tf.tungsten.io/v1alpha1/managers").await;
            Ok::<_, Failure>(plan::namespaces(managers.items(), &places))
        }))?;
        let lists = plan::lists(&namespaces);
        if self.dry_run {
            let report = self.planned(&lists);
            ui.answer(&report, |out| {
                report.planned.iter().try_for_each(|path| writeln!(out, "{path}"))
            })?;
            return Ok(Exit::Done);
        }
        let now = Timestamp::now();
        let name = format!("opensdn-support-{}", now.strftime("%Y%m%d-%H%M%S"));
        let path = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
        let file = PartFile::begin(&path).map_err(unwritable)?;
        let lost = |source| unwritable(file.unwritable(source));
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let mut archive = Archive::new(BufWriter::new(file.file()), &name, seconds);
        let mut failed = Vec::new();
        ui.progress(&format!("asking {server} for {} lists", lists.len()));
        let collected = Box::pin(unless_interrupted(self.collect(&asker, lists, &server, ui)));
        for (name, content) in runtime.block_on(collected)? {
            match content {
                Ok(Some(content)) => archive.add(&name, &content).map_err(lost)?,
                Ok(None) => {}
                Err(why) => failed.push(Failed { path: name, why: redact::text(&why) }),
            }
        }
        let files = archive.finish(&now.to_string(), &failed).map_err(lost)?;
        file.finish().map_err(unwritable)?;
        let archive = Some(path.display().to_string());
        let report = SupportBundle { archive, files, failed, planned: vec![] };
        let bytes: usize = report.files.iter().map(|file| file.bytes).sum();
        ui.answer(&report, |out| {
            let (path, files) = (path.display(), report.files.len());
            writeln!(
                out,
                "{path}  {files} files, {} KiB, {} could not be had",
                bytes >> 10,
                report.failed.len()
            )
        })?;
        for (why, paths) in grouped(&report.failed) {
            ui.note(&format!("not in it: {}: {why}", named(&paths)));
        }
        Ok(if report.failed.is_empty() { Exit::Done } else { Exit::Findings })
    }
}

/// A file, and its content: none where there is nothing of the kind, else why not.
type Answered = (String, Result<Option<Vec<u8>>, String>);

impl SupportBundleCommand {
    /// What would be asked for.
    fn planned(&self, lists: &[Task]) -> SupportBundle {
        let planned = lists.iter().map(|task| task.path.clone());
        let logs = format!("logs of every container of these pods{}", self.of_nodes());
        let files = format!(
            "files that daemons of these pods write below /var/log/contrail{}",
            self.of_nodes()
        );
        let planned = planned.chain(Some(logs).filter(|_| !self.quick));
        let planned =
            planned.chain(Some(files).filter(|_| !self.quick && !self.no_files)).collect();
        SupportBundle { archive: None, files: vec![], failed: vec![], planned }
    }

    /// The nodes that are meant, where not all are.
    fn of_nodes(&self) -> String {
        if self.node.is_empty() { String::new() } else { format!(" on {}", self.node.join(" ")) }
    }

    /// All that the archive shall have.
    async fn collect(
        &self,
        asker: &Asker,
        lists: Vec<Task>,
        server: &str,
        ui: &mut Ui,
    ) -> Vec<Answered> {
        let mut collected = collect::lists(asker, lists).await;
        let mut unlisted = Vec::new();
        if !self.quick {
            let mut pods: Vec<Value> = collected.iter().flat_map(pods_in).collect();
            let is_meant = |node: &str| self.node.iter().any(|one| one == node);
            pods.retain(|pod| self.node.is_empty() || is_meant(text(pod, "/spec/nodeName")));
            let logs = plan::logs(&pods, self.since.as_secs().max(1));
            let (most, number) = (plan::MOST_LOG >> 20, logs.len());
            let of = format!("{number} logs of {} pods{}", pods.len(), self.of_nodes());
            ui.progress(&format!("reading {of}: {} MiB at most, {most} of each", number * most));
            collected.extend(collect::logs(asker, logs).await);
            if !self.no_files {
                unlisted = self.files(asker, &pods, &mut collected, ui).await;
            }
        }
        let judged = Box::pin(judged(asker, server)).await;
        let judged = judged.map(|(file, content)| (file.to_owned(), content.map(Some)));
        let unlisted = unlisted.into_iter().map(|(folder, why)| (folder, Err(why)));
        let collected = collected.into_iter().map(|(task, content)| (task.file, content));
        collected.chain(unlisted).chain(judged).collect()
    }

    /// Adds the files that daemons of these pods write on their nodes; what could not be listed.
    async fn files(
        &self,
        asker: &Asker,
        pods: &[Value],
        collected: &mut Vec<Collected>,
        ui: &mut Ui,
    ) -> Vec<Unread> {
        let folders = folders(pods, Subject::All, |_| true);
        if folders.is_empty() {
            return Vec::new();
        }
        ui.progress(&format!("looking for files of daemons in {} folders of nodes", folders.len()));
        let (files, unlisted) = files(asker, &folders, Some(self.since), Timestamp::now()).await;
        ui.progress(&format!("reading {} files of daemons", files.len()));
        collected.extend(collect::files(asker, plan::files(&files)).await);
        unlisted
    }
}

/// What could not be had for the same reason, together.
fn grouped(failed: &[Failed]) -> Vec<(String, Vec<&str>)> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for one in failed {
        let why = without_path(&one.why);
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, paths)) => paths.push(&one.path),
            None => groups.push((why, vec![&one.path])),
        }
    }
    groups
}

/// A kubelet that does not answer is one reason, whichever log it was asked for: what is behind its address goes.
fn without_path(why: &str) -> String {
    let Some((before, address)) = why.split_once("https://") else { return why.to_owned() };
    let end = address.find(['"', ' ']).unwrap_or(address.len());
    let (address, after) = address.split_at(end);
    let host = address.split('/').next().unwrap_or_default();
    format!("{before}https://{host}{after}")
}

/// The first of several files.
fn named(paths: &[&str]) -> String {
    match paths {
        [one] => (*one).to_owned(),
        [first, ..] => format!("{} files, such as {first}", paths.len()),
        [] => String::new(),
    }
}

/// What was collected; an interrupt leaves no file.
async fn unless_interrupted<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut signals = Signals::install().map_err(|error| {
        let message = "signals cannot be caught, and a part of an archive is left by chance";
        Failure::new(Exit::Unreachable, "no-signals", message, "").because(&error)
    })?;
    let exit = tokio::select! {
        biased;
        exit = signals.next() => exit,
        done = work => return Ok(done),
    };
    let message = "interrupted: nothing was written";
    Err(Failure::new(exit, "interrupted", message, "the same command starts again"))
}

fn unwritable(error: PartFileError) -> Failure {
    let hint = match &error {
        PartFileError::Exists(_) => "remove it, or name another file: --out FILE",
        PartFileError::Busy(_) => "wait for it, or name another file: --out FILE",
        PartFileError::Write { .. } => "is the disk full? name another file: --out FILE",
    };
    let message = "the archive cannot be written";
    Failure::new(Exit::Usage, "unwritable-archive", message, hint).because(&error)
}

/// The pods of a list that was collected.
fn pods_in((task, content): &Collected) -> Vec<Value> {
    let is_pods = task.file.ends_with("/pods.json");
    let content = content.as_ref().ok().and_then(Option::as_ref).filter(|_| is_pods);
    let list: Option<Value> = content.and_then(|content| serde_json::from_slice(content).ok());
    match list.and_then(|mut list| list.get_mut("items").map(Value::take)) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// What `status` and `check` say.
async fn judged(asker: &Asker, server: &str) -> [(&'static str, Result<Vec<u8>, String>); 2] {
    let scope = status::ask::Scope {
        control_namespace: opensdn_deploy::names::NAMESPACE.to_owned(),
        ..status::ask::Scope::default()
    };
    let world = Box::pin(status::ask::world(asker, &scope)).await;
    let status = document(&status::assess(&world, Timestamp::now()));
    let checks = match Box::pin(checks::ask::world(asker, server, &Planned::default())).await {
        Ok(world) => document(&checks::judge(&world, &checks::Chosen::default())),
        Err(failure) => Err(failure.message),
    };
    [("status.json", status), ("check.json", checks)]
}

fn document<A: Answer>(answer: &A) -> Result<Vec<u8>, String> {
    let mut value = serde_json::to_value(answer).map_err(|error| error.to_string())?;
    redact::object(&mut value);
    serde_json::to_vec_pretty(&value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_a_kubelet_that_does_not_answer_are_one_line() {
        let of = |node: &str, pod: &str| Failed {
            path: format!("logs/tf/{pod}/a.log"),
            why: format!(
                "Get \"https://{node}:10250/containerLogs/tf/{pod}/a?limitBytes=1\": dial tcp {node}:10250: connect: \
                 connection refused"
            ),
        };
        let mut failed: Vec<Failed> =
            (0..50).map(|pod| of("10.0.0.7", &format!("p{pod}"))).collect();
        failed.push(of("10.0.0.8", "q"));
        failed.push(Failed { path: "cluster/nodes.json".to_owned(), why: "forbidden".to_owned() });
        let groups = grouped(&failed);
        let said: Vec<String> =
            groups.iter().map(|(why, paths)| format!("{}: {why}", named(paths))).collect();
        assert_eq!(
            said,
            [
                "50 files, such as logs/tf/p0/a.log: Get \"https://10.0.0.7:10250\": dial tcp 10.0.0.7:10250: connect: \
                 connection refused",
                "logs/tf/q/a.log: Get \"https://10.0.0.8:10250\": dial tcp 10.0.0.8:10250: connect: connection refused",
                "cluster/nodes.json: forbidden",
            ]
        );
    }
}
