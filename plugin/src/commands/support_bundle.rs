//! `support-bundle`: what a person who helps needs of a cluster, in one archive without secrets.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use opensdn_crds::component::Component;
use opensdn_node_probe::{FORMAT, Wanted};
use serde_json::Value;

use crate::bundle::Pseudonyms;
use crate::bundle::collect::{Collected, Collector, Found, Lists};
use crate::bundle::introspect::{self, Daemon};
use crate::bundle::judged::{document, judged};
use crate::bundle::plan::{self, KernelLog, Metrics, Size, Task};
use crate::bundle::redactor::{Redactor, patterns};
use crate::bundle::report::{Failed, SupportBundle};
use crate::bundle::writing::Bundle;
use crate::checks::probed_node::SYSCTLS;
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::completion::objects::nodes;
use crate::dry_run::outside_the_cluster;
use crate::exit::{Exit, Failure};
use crate::logs::files::{Unread, files, folders};
use crate::logs::sources::Subject;
use crate::output::Output;
use crate::part_file::PartFileError;
use crate::probe::image::{image, installed};
use crate::probe::run::{AT_ONCE, LONGEST_OF_THREE, Run, up_to};
use crate::probe::{self, Answers, Asked, Network, Nodes, readable};
use crate::runtime::Runtime;
use crate::signals::Signals;
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::snapshot::{Read, name, namespace, text};
use crate::ui::{Ui, is_yes};

const EXAMPLES: &str = "\
Examples:
  # Everything of the last day, into opensdn-support-TIME.tar.gz
  kubectl opensdn support-bundle

  # Objects, status and checks, and nothing of pods and nodes
  kubectl opensdn support-bundle --quick

  # Also how nodes are, with their networks of pods: pods are made for it and removed
  kubectl opensdn support-bundle --probe

  # For others: without addresses, and without what patterns of your own match
  kubectl opensdn support-bundle --redact-addresses --redact-file patterns.txt

  # What would be asked for
  kubectl opensdn support-bundle --dry-run=client

How much it is at most is said before logs are read; on a terminal it is asked whether that is to
be done. The files of daemons and what kernels said need the right to get nodes/proxy, pages of
introspect and metrics the right to get pods/proxy. The operator has its metrics on its node alone:
the manifest has the command that reads them. What cannot be had is in manifest.json, with the
reason.

Data of Secrets is left out, and what is a secret by its name, its form or its shape is replaced
in objects, texts and logs. Look at what is in it before you send it: a secret that is none of
these is not known.

Exit codes: 0 all is in it, 1 something could not be had (the archive is written), 2 it cannot be
written, 3 the cluster cannot be asked, 5 the answer was no.";

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
    /// Without logs, and without what pods and nodes are asked for.
    #[arg(long)]
    quick: bool,
    /// Only logs of this node and of pods on it, and only what these are asked for (repeatable).
    #[arg(long, value_name = "NAME", conflicts_with = "quick", add = nodes())]
    node: Vec<String>,
    /// Without the files of nodes, for which the right to get nodes/proxy is needed.
    #[arg(long)]
    no_files: bool,
    /// Without pages of introspect and metrics, for which the right to get pods/proxy is needed.
    #[arg(long)]
    no_introspect: bool,
    /// Also look at each node, with its configurations of networks of pods, by a pod that is removed afterwards.
    #[arg(long, conflicts_with = "quick")]
    probe: bool,
    /// The image that looks [default: the operator's of this cluster, else of this release].
    #[arg(long, value_name = "IMAGE", requires = "probe")]
    probe_image: Option<String>,
    /// How long each node has to answer, up to 4m.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = up_to(LONGEST_OF_THREE))]
    probe_timeout: Duration,
    /// A file with a regular expression on each line: what matches one is taken out, too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    redact_file: Option<PathBuf>,
    /// Put a pseudonym in the place of each address, the same one everywhere.
    #[arg(long)]
    redact_addresses: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    /// Show what would be asked for; nothing is written
    /// (without a value it means client, the older spelling).
    #[arg(long, value_name = "HOW", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client", value_parser = outside_the_cluster())]
    dry_run: bool,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// What is asked for beside lists.
struct Plan {
    logs: Vec<Task>,
    metrics: Metrics,
    daemons: Vec<Daemon>,
    kernels: Vec<KernelLog>,
    files: Vec<Task>,
    /// Folders of nodes that could not be listed.
    unlisted: Vec<Unread>,
}

impl SupportBundleCommand {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        if global.cluster.namespace.is_some() {
            let message = "--namespace has no effect: the namespaces of OpenSDN are meant";
            return Err(Failure::usage(message, "leave it out"));
        }
        let report = self.make(global, ui)?;
        if self.dry_run {
            ui.answer(&report, |out| {
                report.planned.iter().try_for_each(|path| writeln!(out, "{path}"))
            })?;
            return Ok(Exit::Done);
        }
        show(&report, ui)?;
        Ok(if report.failed.is_empty() { Exit::Done } else { Exit::Findings })
    }

    /// What other commands make where something fails: all of it, in this folder, without a question.
    ///
    /// # Errors
    /// Never: its flags are constants.
    pub(crate) fn of_all() -> Result<Self, Failure> {
        #[derive(clap::Parser)]
        struct Usual {
            #[command(flatten)]
            command: SupportBundleCommand,
        }
        let usual = <Usual as clap::Parser>::try_parse_from(["support-bundle", "--yes"]);
        let usual = usual.map_err(|error| {
            Failure::usage("there are no usual flags", "make it by hand").because(&error)
        })?;
        Ok(usual.command)
    }

    /// Makes it; of a dry run, what would be asked for.
    pub(crate) fn make(&self, global: &Global, ui: &mut Ui) -> Result<SupportBundle, Failure> {
        let redactor = Arc::new(self.redactor()?);
        let runtime = Runtime::start(global)?;
        let (client, server) = runtime.block_on(global.client_and_server())?;
        let asker = Asker::new(client.clone());
        let namespaces = runtime.block_on(Box::pin(async {
            asker.version(&server).await?;
            let places = Places::of(&asker, opensdn_deploy::names::NAMESPACE).await;
            let managers = asker.list("/apis/tf.tungsten.io/v1alpha1/managers").await;
            Ok::<_, Failure>(plan::namespaces(managers.items(), &places))
        }))?;
        let lists = plan::lists(&namespaces);
        if self.dry_run {
            return Ok(self.planned(&lists));
        }
        let collector = Collector::new(asker, Arc::clone(&redactor));
        let bundle = Bundle::begin(self.out.as_deref(), Timestamp::now(), redactor);
        let mut bundle = bundle.map_err(unwritable)?;
        ui.progress(&format!("asking {server} for {} lists", lists.len()));
        let look = Box::pin(self.look(&collector, lists, ui));
        let (lists, plan) = runtime.block_on(unless_interrupted(look))?;
        let listed = unless_interrupted(put_lists(&mut bundle, lists, collector.redactor()));
        runtime.block_on(listed)??;
        self.confirm(&runtime, bundle.bytes(), &plan, ui)?;
        if self.probe {
            let run = Box::pin(unless_interrupted(self.run_of_probe(&server, &collector)));
            let probed = match runtime.block_on(run)? {
                // It catches signals by itself, and removes its pods then.
                Ok((run, asked)) => runtime.block_on(run.ask(&client, &asked, ui)),
                Err(failure) => Err(failure),
            };
            let found = found_by_probe(probed, collector.redactor())?;
            found.into_iter().try_for_each(|one| bundle.put(one)).map_err(unwritable)?;
        }
        let rest = Box::pin(collect(&mut bundle, &collector, plan, &server, ui));
        runtime.block_on(unless_interrupted(rest))??;
        bundle.finish().map_err(unwritable)
    }

    fn redactor(&self) -> Result<Redactor, Failure> {
        let patterns = match &self.redact_file {
            None => Vec::new(),
            Some(path) => patterns(path).map_err(|error| {
                let message = "the patterns of --redact-file cannot be used";
                let hint =
                    "write a regular expression on each line; what begins with # is a comment";
                Failure::usage(message, hint).because(&error)
            })?,
        };
        let addresses = self.redact_addresses.then(Pseudonyms::new).transpose();
        let addresses = addresses.map_err(|error| {
            let message = "addresses cannot be found";
            Failure::usage(message, "leave out --redact-addresses").because(&error)
        })?;
        Ok(Redactor::new(patterns, addresses))
    }

    /// Whether so much is to be read, where there is a user to ask.
    fn confirm(
        &self,
        runtime: &Runtime,
        read: usize,
        plan: &Plan,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        if self.quick {
            return Ok(());
        }
        let size = Size::of(read, &plan.logs, &plan.daemons, &plan.kernels);
        let size = size.with_files(plan.files.len()).text();
        ui.progress(&format!("to be read{}: {size}", self.of_nodes()));
        if self.yes || !ui.can_ask() {
            return Ok(());
        }
        ui.question(&format!("read {size}; is that to be done"));
        let (send, reply) = tokio::sync::oneshot::channel();
        // In a thread that may wait until the process ends, as an interrupt ends the question.
        std::thread::spawn(move || {
            let mut reply = String::new();
            let read = std::io::stdin().read_line(&mut reply);
            send.send(read.is_ok() && is_yes(&reply))
        });
        match runtime.block_on(unless_interrupted(reply))? {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => {
                let hint = "--since, --node, --no-files, --no-introspect and --quick make it less";
                Err(Failure::new(Exit::Refused, "not-confirmed", "nothing was written", hint))
            }
        }
    }

    /// What would be asked for.
    fn planned(&self, lists: &[Task]) -> SupportBundle {
        let on = self.of_nodes();
        let asks_pods = !self.quick && !self.no_introspect;
        let asks_nodes = !self.quick && !self.no_files;
        let more = [
            (!self.quick, format!("logs of every container of these pods{on}")),
            (asks_pods, format!("pages of introspect of the daemons in these pods{on}")),
            (asks_pods, "metrics of the webhook and of the operator".to_owned()),
            (
                asks_nodes,
                format!("files that daemons of these pods write below /var/log/contrail{on}"),
            ),
            (asks_nodes, format!("what kernels have written below /var/log of nodes{on}")),
            (self.probe, format!("how nodes are, by a pod on each{on}")),
        ];
        let more = more.into_iter().filter_map(|(is_meant, what)| is_meant.then_some(what));
        let planned = lists.iter().map(|task| task.path.clone()).chain(more).collect();
        SupportBundle { archive: None, files: vec![], failed: vec![], absent: vec![], planned }
    }

    /// The nodes that are meant, where not all are.
    fn of_nodes(&self) -> String {
        if self.node.is_empty() { String::new() } else { format!(" on {}", self.node.join(" ")) }
    }

    fn means(&self, node: &str) -> bool {
        self.node.is_empty() || self.node.iter().any(|one| one == node)
    }

    /// Asks for the lists, and says what else there is to ask for.
    async fn look(&self, collector: &Collector, tasks: Vec<Task>, ui: &mut Ui) -> (Lists, Plan) {
        let lists = collector.lists(tasks).await;
        let mut pods = lists.pods();
        let metrics = Metrics::of(&pods);
        pods.retain(|pod| self.means(text(pod, "/spec/nodeName")));
        let object = |facts: &Component, place: &str, one: &str| {
            let file = format!("opensdn/{}.json", facts.plural);
            lists.items(file).find(|object| namespace(object) == place && name(object) == one)
        };
        let daemons = introspect::daemons(&pods, object);
        let nodes: BTreeSet<&str> =
            lists.items("cluster/nodes.json".to_owned()).map(name).collect();
        let kernels = plan::kernel_logs(nodes.into_iter().filter(|node| self.means(node)));
        let logs = plan::logs(&pods, self.since.as_secs().max(1));
        let (files, unlisted) = (Vec::new(), Vec::new());
        let mut plan = Plan { logs, metrics, daemons, kernels, files, unlisted };
        if self.quick {
            plan.logs.clear();
        }
        if self.quick || self.no_introspect {
            plan.metrics = Metrics::default();
            plan.daemons.clear();
        }
        if self.quick || self.no_files {
            plan.kernels.clear();
        } else {
            (plan.files, plan.unlisted) = self.files(collector.asker(), &pods, ui).await;
        }
        (lists, plan)
    }

    /// The files that daemons of these pods write on their nodes; what could not be listed.
    async fn files(&self, asker: &Asker, pods: &[Value], ui: &mut Ui) -> (Vec<Task>, Vec<Unread>) {
        let folders = folders(pods, Subject::All, |_| true);
        if folders.is_empty() {
            return (Vec::new(), Vec::new());
        }
        ui.progress(&format!("looking for files of daemons in {} folders of nodes", folders.len()));
        let (files, unlisted) = files(asker, &folders, Some(self.since), Timestamp::now()).await;
        (plan::files(&files), unlisted)
    }

    /// What asks how nodes are, by a pod on each.
    async fn run_of_probe(
        &self,
        server: &str,
        collector: &Collector,
    ) -> Result<(Run, Asked), Failure> {
        let asker = collector.asker();
        let date = asker.version(server).await?.date;
        let nodes: Read<Vec<Value>> = asker.list("/api/v1/nodes").await;
        let nodes = probe::nodes(readable(&nodes)?).into_iter();
        let nodes: Nodes = nodes.filter(|(node, _)| self.means(node)).collect();
        let image = match &self.probe_image {
            Some(image) => image.clone(),
            None => image(installed(asker).await.as_ref(), None)?,
        };
        let now = date.unwrap_or_else(Timestamp::now);
        let (timeout, needed_by) = (self.probe_timeout, "--probe");
        let run = Run { image, timeout, now, needed_by, at_once: AT_ONCE };
        let wanted = Wanted {
            format: FORMAT,
            module: "vrouter".to_owned(),
            sysctls: SYSCTLS.map(str::to_owned).into(),
            ..Wanted::default()
        };
        let name = "opensdn-probe".to_owned();
        Ok((run, Asked { name, network: Network::Node, nodes, wanted }))
    }
}

/// A file for each node. Where none could be looked at the rest is collected all the same, unless that was interrupted.
fn found_by_probe(
    probed: Result<Answers, Failure>,
    redactor: &Redactor,
) -> Result<Vec<Collected>, Failure> {
    let answers = match probed {
        Ok(answers) => answers,
        Err(failure) if matches!(failure.exit, Exit::Interrupted | Exit::Terminated) => {
            return Err(failure);
        }
        Err(failure) => {
            let why = std::iter::once(&failure.message).chain(&failure.causes);
            let why: Vec<&str> = why.map(String::as_str).collect();
            return Ok(vec![("nodes/probe.json".to_owned(), Found::Failed(why.join(": ")))]);
        }
    };
    let one = |(node, answer): (String, Result<probe::Answer, String>)| {
        let content = answer.and_then(|answer| document(&answer.findings, redactor));
        let found = content.map_or_else(Found::Failed, Found::Content);
        (format!("nodes/{node}/probe.json"), found)
    };
    Ok(answers.into_iter().map(one).collect())
}

/// Writes all that the archive shall have beside lists, as it comes.
async fn collect(
    bundle: &mut Bundle,
    collector: &Collector,
    plan: Plan,
    server: &str,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let Plan { logs, metrics, daemons, kernels, files, unlisted } = plan;
    ui.progress(&format!("reading {} logs", logs.len()));
    put_all(bundle, collector.logs(logs)).await?;
    put_all(bundle, collector.metrics(metrics.asked)).await?;
    let at_loopback = metrics.at_loopback.into_iter();
    let at_loopback = at_loopback.map(|(file, why)| (file, Found::Absent(why)));
    put_all(bundle, stream::iter(at_loopback)).await?;
    ui.progress(&format!("asking {} daemons by introspect", daemons.len()));
    put_all(bundle, collector.pages(daemons)).await?;
    ui.progress(&format!("reading {} files of daemons", files.len()));
    put_all(bundle, collector.files(files)).await?;
    put_all(bundle, collector.kernels(kernels)).await?;
    let unlisted = unlisted.into_iter().map(|(folder, why)| (folder, Found::Failed(why)));
    put_all(bundle, stream::iter(unlisted)).await?;
    let judged = Box::pin(judged(collector.asker(), server, collector.redactor())).await;
    let judged =
        judged.map(|(file, content)| (file, content.map_or_else(Found::Failed, Found::Content)));
    put_all(bundle, stream::iter(judged)).await
}

async fn put_all(bundle: &mut Bundle, found: impl Stream<Item = Collected>) -> Result<(), Failure> {
    let mut found = std::pin::pin!(found);
    while let Some(one) = found.next().await {
        bundle.put(one).map_err(unwritable)?;
    }
    Ok(())
}

/// Writes lists without their secrets, which are taken out in a thread of its own: it takes a while, and an interrupt counts.
async fn put_lists(
    bundle: &mut Bundle,
    lists: Lists,
    redactor: &Arc<Redactor>,
) -> Result<(), Failure> {
    if let Err(error) = redactor.learn(lists.secrets()) {
        let why = format!("values of Secrets are not looked for elsewhere: {error}");
        bundle.put(("namespaces".to_owned(), Found::Failed(why))).map_err(unwritable)?;
    }
    let redactor = Arc::clone(redactor);
    let (send, mut clean) = tokio::sync::mpsc::channel(1);
    let cleaning = tokio::task::spawn_blocking(move || {
        // Who does not wait for the rest any more was interrupted.
        lists.files(&redactor).try_for_each(|one| send.blocking_send(one).ok());
    });
    put_all(bundle, stream::poll_fn(|context| clean.poll_recv(context))).await?;
    if cleaning.await.is_err() {
        let lost = Found::Failed("secrets could not be taken out".to_owned());
        bundle.put(("lists".to_owned(), lost)).map_err(unwritable)?;
    }
    Ok(())
}

/// Says what is in it and what is not.
fn show(report: &SupportBundle, ui: &mut Ui) -> Result<(), Failure> {
    let bytes: usize = report.files.iter().map(|file| file.bytes).sum();
    let (files, lacks) = (report.files.len(), report.failed.len());
    let said = format!("{files} files, {} KiB, {lacks} could not be had", bytes >> 10);
    let archive = report.archive.as_deref().unwrap_or_default();
    ui.answer(report, |out| writeln!(out, "{archive}  {said}"))?;
    for (why, paths) in grouped(&report.failed) {
        ui.note(&format!("not in it: {}: {why}", named(&paths)));
    }
    for (why, paths) in grouped(&report.absent) {
        ui.detail(&format!("not there: {}: {why}", named(&paths)));
    }
    Ok(())
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
        PartFileError::Write { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            "make the folder first, or name another file: --out FILE"
        }
        PartFileError::Write { source, .. }
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            "you may not write there: name another file: --out FILE"
        }
        PartFileError::Write { .. } => "is the disk full? name another file: --out FILE",
    };
    let message = "the archive cannot be written";
    Failure::new(Exit::Usage, "unwritable-archive", message, hint).because(&error)
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
