//! `logs`: what the pods of a component have written, as one. How lines are merged is in `logs.rs`.

use std::time::Duration;

use clap::Args;
use opensdn_validate::report::{one_line, printable};

use super::status::{component, components};
use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::completion::objects::{completer, words};
use crate::exit::{Exit, Failure};
use crate::logs::line::Level;
use crate::logs::merged::{self, Line};
use crate::logs::sources::{MOST, Part, Source, Subject, sources};
use crate::runtime::Runtime;
use crate::snapshot::Read;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # What did the agents of all nodes write in the last hour?
  kubectl opensdn logs vrouter

  # What goes wrong on one node, as it happens
  kubectl opensdn logs --node w7 --level warning -f

  # The last lines of the operator
  kubectl opensdn logs operator --tail 50

Each line is preceded by its node and its container; lines are in the order of their times. It
needs the right to list pods and to get their logs; what may not be read is named. Lines without
a level, as of a stack, belong to the one before. Files that daemons write on their nodes are
not among these logs.

Exit codes: 0 all was read, 1 some could not be read, 3 nothing could be.";

/// Arguments of `logs`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Logs {
    /// A kind of component, such as cassandra or vrouter, or operator, or webhook [default: all components].
    #[arg(value_name = "COMPONENT", value_parser = subject, add = words(subjects))]
    subject: Option<Subject>,
    /// Only of this node.
    #[arg(long, value_name = "NAME", add = completer("/api/v1/nodes"))]
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
        let sources = self.sources(global, &asker).await?;
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
        for (number, why) in &unread {
            let source = sources.get(*number);
            let source = source.map(|one| format!("{} {} {}", one.node, one.pod, one.container));
            ui.warn(&format!("not read: {}: {why}", source.unwrap_or_default()));
        }
        Ok(match unread.len() {
            0 => Exit::Done,
            all if all == sources.len() => Exit::Unreachable,
            _ => Exit::Findings,
        })
    }

    async fn sources(&self, global: &Global, asker: &Asker) -> Result<Vec<Source>, Failure> {
        let subject = self.subject.unwrap_or(Subject::All);
        let path =
            subject.pods(global.cluster.namespace.as_deref(), &self.webhook.control_namespace);
        let pods = match asker.list(&path).await {
            Read::Known(pods) => pods,
            Read::Absent => Vec::new(),
            Read::Unknown(why) => {
                let hint =
                    "it needs the right to list pods; name a namespace where you have it: -n NAME";
                let mut failure =
                    Failure::new(Exit::Unreachable, "forbidden", "pods may not be listed", hint);
                failure.causes.push(why);
                return Err(failure);
            }
        };
        let part = Part {
            node: self.node.clone(),
            container: self.container.clone(),
            since: self.since.or_else(|| self.tail.is_none().then_some(SINCE)),
            tail: self.tail,
            follow: self.follow,
        };
        let sources = sources(&pods, subject, &part);
        if sources.is_empty() {
            let message = "there is no container that has started";
            let hint = "see what there is: kubectl opensdn status --depth 3";
            return Err(Failure::new(Exit::Unreachable, "no-logs", message, hint));
        }
        if sources.len() > MOST {
            let message =
                format!("{} containers have logs, and {MOST} are read at once", sources.len());
            let hint = "name a component, a node (--node), or a container (--container)";
            return Err(Failure::new(Exit::Refused, "too-many-logs", message, hint));
        }
        Ok(sources)
    }
}

/// What may be named.
fn subjects() -> Vec<String> {
    let own = ["operator", "webhook"].map(str::to_owned);
    components().into_iter().chain(own).collect()
}
