//! `logs`: what the pods of a component have written, as one. How lines are merged is in `logs.rs`.

use std::time::Duration;

use clap::Args;
use k8s_openapi::jiff::Timestamp;
use opensdn_validate::report::{one_line, printable};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::status::{component, components};
use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::completion::objects::{nodes, words};
use crate::exit::{Exit, Failure};
use crate::logs::files::{Unread, files, folders};
use crate::logs::line::Level;
use crate::logs::merged::{self, Line};
use crate::logs::sources::{MOST, Part, Source, Subject, sources};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::snapshot::{Read, namespace};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # What did the agents of all nodes write in the last hour?
  kubectl opensdn logs vrouter

  # What goes wrong on one node, as it happens
  kubectl opensdn logs --node w7 --level warning -f

  # What the daemons of Config have written into their files on m1
  kubectl opensdn logs config --files --node m1

  # The last lines of the operator
  kubectl opensdn logs operator --tail 50

Each line is preceded by its node and its container; lines are in the order of their times. It
needs the right to list pods and to get their logs; what may not be read is named. Lines without
a level, as of a stack, belong to the one before.

Most daemons of OpenSDN write hardly anything but files on their nodes, below /var/log/contrail.
With --files these are read, through the API server and the kubelets: it needs the right to get
nodes/proxy. Of each the last 10 MiB count; those that were compressed are left out.

Exit codes: 0 all was read, 1 some could not be read, 3 nothing could be.";

/// Arguments of `logs`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Logs {
    /// A kind of component, such as cassandra or vrouter, or operator, or webhook [default: all components].
    #[arg(value_name = "COMPONENT", value_parser = subject, add = words(subjects))]
    subject: Option<Subject>,
    /// Only of this node.
    #[arg(long, value_name = "NAME", add = nodes())]
    node: Option<String>,
    /// Only of containers of this name.
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Only lines that are as grave as this.
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<Level>,
    /// How old lines may be [default: 1h, without --tail].
    #[arg(long, value_name = "TIME", value_parser = opensdn_duration::parse)]
    since: Option<Duration>,
    /// The last so many lines of each container.
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Show what is written from now on as well, until interrupted.
    #[arg(short, long)]
    follow: bool,
    /// Read the files that daemons write on their nodes.
    #[arg(long, conflicts_with_all = ["follow", "container"])]
    files: bool,
    #[command(flatten)]
    webhook: WebhookNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
}

/// Without `--since` and `--tail`.
const SINCE: Duration = Duration::from_secs(3600);

fn subject(text: &str) -> Result<Subject, String> {
    match text {
        "operator" => Ok(Subject::Operator),
        "webhook" => Ok(Subject::Webhook),
        _ => component(text)
            .map(Subject::Component)
            .map_err(|why| format!("{why}, operator, webhook")),
    }
}

impl Logs {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let runtime = Runtime::start(global)?;
        runtime.block_on(Box::pin(self.ask(global, ui)))
    }

    async fn ask(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let (client, server) = global.client_and_server().await?;
        let asker = Asker::new(client);
        asker.version(&server).await?;
        let (sources, unlisted) = self.sources(global, &asker).await?;
        let node = sources.iter().map(|one| one.node.chars().count()).max().unwrap_or_default();
        let container = sources.iter().map(|one| one.container.chars().count()).max();
        let container = container.unwrap_or_default();
        let prefix = |line: &Line| {
            let Source { node: name, container: of, .. } = sources.get(line.source)?;
            Some(format!(
                "{}  {}",
                one_line(&format!("{name:node$}")),
                one_line(&format!("{of:container$}"))
            ))
        };
        let mut written = Ok(());
        let mut take = |lines: &[Line]| {
            let result = ui.show(|out| {
                lines.iter().try_for_each(|line| {
                    let time = line.time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
                    writeln!(
                        out,
                        "{}  {time}  {}",
                        prefix(line).unwrap_or_default(),
                        printable(&line.text)
                    )
                })
            });
            let goes_on = result.is_ok() && !ui.is_closed();
            written = result;
            goes_on
        };
        let unread = match self.follow {
            true => merged::following(&asker, &sources, self.level, &mut take).await,
            false => merged::all(&asker, &sources, self.level, &mut take).await,
        };
        written?;
        let of_sources = unread.iter().map(|(number, why)| {
            let source = sources.get(*number);
            let source = source.map(|one| format!("{} {} {}", one.node, one.pod, one.container));
            (source.unwrap_or_default(), why.clone())
        });
        for (what, why) in unlisted.iter().cloned().chain(of_sources) {
            ui.warn(&format!("not read: {what}: {why}"));
        }
        Ok(match unread.len() {
            0 if unlisted.is_empty() => Exit::Done,
            all if all == sources.len() => Exit::Unreachable,
            _ => Exit::Findings,
        })
    }

    /// What is read, and what could not be listed.
    async fn sources(
        &self,
        global: &Global,
        asker: &Asker,
    ) -> Result<(Vec<Source>, Vec<Unread>), Failure> {
        let subject = self.subject.unwrap_or(Subject::All);
        let pods = self.pods(subject, global, asker).await?;
        let part = Part {
            node: self.node.clone(),
            container: self.container.clone(),
            since: self.since.or_else(|| self.tail.is_none().then_some(SINCE)),
            tail: self.tail,
            follow: self.follow,
        };
        let (sources, unlisted) = match self.files {
            true => self.files(&pods, subject, &part, asker).await?,
            false => (sources(&pods, subject, &part), Vec::new()),
        };
        if sources.is_empty() && unlisted.is_empty() {
            self.refuse_unknown_node(asker).await?;
            let (message, hint) = match self.files {
                true => (
                    "no daemon has written into a file in that time",
                    "look further back (--since 24h), or at what containers write: without --files",
                ),
                false => (
                    "there is no container that has started",
                    "see what there is: kubectl opensdn status --depth 3",
                ),
            };
            return Err(Failure::new(Exit::Unreachable, "no-logs", message, hint));
        }
        if sources.len() > MOST {
            let (what, hint) = match self.files {
                true => {
                    ("files", "name a component or a node (--node), or a shorter time (--since)")
                }
                false => (
                    "containers have logs",
                    "name a component, a namespace (-n), a node (--node), or a container (--container)",
                ),
            };
            let message = format!("{} {what}, and {MOST} are read at once", sources.len());
            return Err(Failure::new(Exit::Refused, "too-many-logs", message, hint));
        }
        Ok((sources, unlisted))
    }

    /// Of a node that is not there nothing is found, and that is why.
    async fn refuse_unknown_node(&self, asker: &Asker) -> Result<(), Failure> {
        let Some(node) = &self.node else { return Ok(()) };
        let node_name = utf8_percent_encode(node, NON_ALPHANUMERIC);
        match asker.get(&format!("/api/v1/nodes/{node_name}")).await {
            Read::Absent => {
                let message = format!("there is no node {node}");
                let hint = "kubectl get nodes lists them";
                Err(Failure::new(Exit::Usage, "no-node", message, hint))
            }
            Read::Known(_) | Read::Unknown(_) => Ok(()),
        }
    }

    async fn files(
        &self,
        pods: &[Value],
        subject: Subject,
        part: &Part,
        asker: &Asker,
    ) -> Result<(Vec<Source>, Vec<Unread>), Failure> {
        let is_meant = |node: &str| self.node.as_deref().is_none_or(|wanted| wanted == node);
        let folders = folders(pods, subject, is_meant);
        if folders.is_empty() {
            let message = "no pod of these has a folder for files below /var/log/contrail";
            let hint = "what containers write themselves: the same without --files";
            return Err(Failure::new(Exit::Unreachable, "no-logs", message, hint));
        }
        let now = Timestamp::now();
        let (files, unlisted) = files(asker, &folders, part.since, now).await;
        Ok((files.iter().map(|file| file.source(part, now)).collect(), unlisted))
    }

    async fn pods(
        &self,
        subject: Subject,
        global: &Global,
        asker: &Asker,
    ) -> Result<Vec<Value>, Failure> {
        let within = global.cluster.namespace.as_deref();
        if within.is_some() && !subject.is_of_components() {
            let message = "--namespace has no effect: where these run the installation says";
            return Err(Failure::usage(message, "for another installation: --control-namespace"));
        }
        let places = Places::of(asker, &self.webhook.control_namespace).await;
        match asker.list(&subject.pods(within, &places)).await {
            Read::Known(pods) if within.is_none() && subject.is_of_components() => {
                Ok(of_components(pods, &places, asker).await)
            }
            Read::Known(pods) => Ok(pods),
            Read::Absent => Ok(Vec::new()),
            Read::Unknown(why) => {
                let hint =
                    "it needs the right to list pods; name a namespace where you have it: -n NAME";
                let mut failure =
                    Failure::new(Exit::Unreachable, "forbidden", "pods may not be listed", hint);
                failure.causes.push(why);
                Err(failure)
            }
        }
    }
}

/// Those in namespaces where components are: elsewhere anyone may give a pod the label, and a hundred of them would leave no
/// room for the others. All, where that says nothing.
async fn of_components(pods: Vec<Value>, places: &Places, asker: &Asker) -> Vec<Value> {
    let managers = asker.list("/apis/tf.tungsten.io/v1alpha1/managers").await;
    let Some(own) = places.of_components(&managers) else { return pods };
    let (own, others): (Vec<_>, Vec<_>) =
        pods.into_iter().partition(|pod| own.contains(namespace(pod)));
    if own.is_empty() { others } else { own }
}

/// What may be named.
fn subjects() -> Vec<String> {
    let own = ["operator", "webhook"].map(str::to_owned);
    components().into_iter().chain(own).collect()
}
