//! `status`: how OpenSDN is in a cluster, the cause first. What is said is decided in `status.rs`; here are the
//! arguments, and how often it is asked.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_validate::report::in_line;

use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::completion::objects::{nodes, words};
use crate::connectivity::sample::Sample;
use crate::connectivity::{ConnectivityReport, Scenario};
use crate::exit::{Exit, Failure};
use crate::install::inventory::Progress;
use crate::install::requests::Requests;
use crate::install::survey::inventory;
use crate::probe::run::AT_ONCE;
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::status::ask::{Scope, world};
use crate::status::report::{State, StatusReport};
use crate::status::{Detail, NOT_ASKED_FOR, assess};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Does everything work, and if not, what is the cause?
  kubectl opensdn status

  # One component with its pods
  kubectl opensdn status cassandra --depth 2

  # And does the network of pods work?
  kubectl opensdn status --connectivity

  # What runs on one node, as contrail-status shows it
  kubectl opensdn status --node w7 --legacy

Without -n all namespaces are meant, whatever the context says. It needs the right to list
Managers, pods, StatefulSets, DaemonSets, nodes, AdmissionPolicies and Secrets; what may not be
read is shown as ?. It makes nothing but with --connectivity, which needs the rights of
connectivity test.

Exit codes: 0 active, 1 degraded or not installed, 3 it cannot be said.";

/// Between two looks of `--watch`.
const INTERVAL: Duration = Duration::from_secs(5);
/// Nodes on which pods try each other, and how long they have for each of three questions.
const SAMPLED: usize = 3;
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Arguments of `status`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Status {
    /// Only this kind of component, such as cassandra or vrouter.
    #[arg(value_name = "COMPONENT", value_parser = component, add = words(components))]
    component: Option<&'static Component>,
    /// Only what runs on this node.
    #[arg(long, value_name = "NAME", add = nodes())]
    node: Option<String>,
    /// 1 shows components, 2 their pods as well, 3 the containers of these.
    #[arg(long, value_name = "DEPTH", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    depth: u8,
    /// Also try whether pods reach each other, Services and names: pods on three nodes are made for it and removed.
    #[arg(long, conflicts_with_all = ["legacy", "watch"])]
    connectivity: bool,
    /// Write it in the layout and the words of contrail-status.
    #[arg(long, conflicts_with_all = ["output", "watch"])]
    legacy: bool,
    /// Ask again every few seconds until interrupted: redraw on a terminal, else write what changes.
    #[arg(short, long, conflicts_with = "output")]
    watch: bool,
    #[command(flatten)]
    webhook: WebhookNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How a status is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Table,
    /// The same with more columns, whatever the width.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Status {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let runtime = Runtime::start(global)?;
        let (client, server) = runtime.block_on(global.client_and_server())?;
        let asker = Asker::new(client.clone());
        ui.progress(&format!("asking {server}"));
        let ask = || runtime.block_on(Box::pin(self.ask(global, &asker, &server)));
        let mut first = ask()?;
        if self.connectivity {
            match runtime.block_on(Box::pin(self.sample(&client, &server, ui))) {
                Ok(connectivity) => first.add(connectivity),
                // What is known of the rest is said all the same.
                Err(failure) => first.lacks_connectivity(failure.message),
            }
        }
        if self.watch {
            return self.watch(first, ask, ui);
        }
        self.show(&first, ui)?;
        for unread in &first.not_read {
            let line = in_line(&format!("not read: {}: {}", unread.what, unread.why));
            // In a cluster without anything of OpenSDN it would look like a fault.
            match first.state == State::Absent && unread.why == NOT_ASKED_FOR {
                true => ui.detail(&line),
                false => ui.note(&line),
            }
        }
        if first.not_read.iter().any(|unread| unread.why.contains("cluster scope")) {
            ui.hint("with rights in one namespace only, name it: -n NAMESPACE");
        }
        let is_well = first.exit() == Exit::Done;
        match (!is_well).then(|| runtime.block_on(self.progress(&client))).flatten() {
            Some(Progress::Removing) => ui.hint(
                "a removal has started and has not ended: the same kubectl opensdn uninstall, with --purge where it had that, continues it and says what it waits for",
            ),
            Some(Progress::Installing) if first.state == State::Absent => ui.hint(
                "an installation has started and is not complete: kubectl opensdn install continues it",
            ),
            Some(Progress::Installing | Progress::Applied) | None => {}
        }
        Ok(first.exit())
    }

    /// What the inventory says. Who may not read it learns nothing of it.
    async fn progress(&self, client: &Client) -> Option<Progress> {
        let requests = Requests::new(client.clone());
        let found = inventory(&requests, &self.webhook.control_namespace).await;
        found.ok().flatten().map(|inventory| inventory.progress)
    }

    async fn ask(
        &self,
        global: &Global,
        asker: &Asker,
        server: &str,
    ) -> Result<StatusReport, Failure> {
        asker.version(server).await?;
        let scope = Scope {
            namespace: global.cluster.namespace.clone(),
            control_namespace: self.webhook.control_namespace.clone(),
            kind: self.component,
        };
        let world = Box::pin(world(asker, &scope)).await;
        if let Some(node) = self.node.as_ref().filter(|node| world.lacks_node(node)) {
            let message = format!("there is no node {node}");
            return Err(Failure::new(
                Exit::Usage,
                "no-node",
                message,
                "kubectl get nodes lists them",
            ));
        }
        let mut report = assess(&world, Timestamp::now());
        report.cluster = global.cluster.context_in_use();
        report.server = Some(server.to_owned());
        report.narrow(self.component.map(|facts| facts.kind), self.node.as_deref());
        Ok(report)
    }

    /// On the node that is asked for, else on a few.
    async fn sample(
        &self,
        client: &Client,
        server: &str,
        ui: &mut Ui,
    ) -> Result<ConnectivityReport, Failure> {
        let sample = Sample {
            node: self.node.iter().cloned().collect(),
            nodes: SAMPLED,
            outside: Vec::new(),
            image: None,
            timeout: SAMPLE_TIMEOUT,
            needed_by: "status --connectivity",
            at_once: AT_ONCE,
            pause: None,
        };
        sample.test(client, server, Scenario::value_variants(), ui).await
    }

    fn show(&self, report: &StatusReport, ui: &mut Ui) -> Result<(), Failure> {
        if self.legacy {
            return ui.write(|out| report.write_legacy(out));
        }
        // Who asks for a node asks for its pods.
        let depth = if self.node.is_some() { self.depth.max(2) } else { self.depth };
        let detail = Detail { depth, wide: self.output == Format::Wide };
        let layout = ui.layout();
        ui.answer(report, |out| report.write(Timestamp::now(), detail, layout, out))
    }

    /// Until the user interrupts it, or nothing reads it any more.
    fn watch(
        &self,
        first: StatusReport,
        ask: impl Fn() -> Result<StatusReport, Failure>,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let mut report = first;
        let mut before = BTreeMap::new();
        let mut now = moment();
        loop {
            if ui.redraws() {
                ui.clear()?;
                let seconds = INTERVAL.as_secs();
                ui.write(|out| writeln!(out, "{now}  every {seconds} s, Ctrl-C ends it\n"))?;
                self.show(&report, ui)?;
            } else {
                let lines = report.lines();
                let changed = lines.iter().filter(|(key, line)| before.get(*key) != Some(*line));
                let gone = before.keys().filter(|key| !lines.contains_key(*key));
                let gone = gone.map(|key| format!("{key}: gone"));
                let all: Vec<String> =
                    changed.map(|(key, line)| format!("{key}: {line}")).chain(gone).collect();
                ui.write(|out| all.iter().try_for_each(|line| writeln!(out, "{now}  {line}")))?;
                before = lines;
            }
            if ui.is_closed() {
                return Ok(report.exit());
            }
            std::thread::sleep(INTERVAL);
            match ask() {
                Ok(next) => (report, now) = (next, moment()),
                // It may be back at the next look; what was known stays on the screen.
                Err(failure) => ui.warn(&failure.message),
            }
        }
    }
}

/// When it was asked, for who reads it later.
fn moment() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// By kind, key or plural, in any letters.
pub(crate) fn component(text: &str) -> Result<&'static Component, String> {
    let wanted = text.to_lowercase();
    let is = |facts: &&Component| {
        [facts.kind, facts.plural, facts.key].iter().any(|name| name.to_lowercase() == wanted)
    };
    COMPONENTS.iter().find(is).ok_or_else(|| {
        let kinds: Vec<String> = COMPONENTS.iter().map(|facts| facts.kind.to_lowercase()).collect();
        format!("there are: {}", kinds.join(", "))
    })
}

/// What may be named.
pub(crate) fn components() -> Vec<String> {
    COMPONENTS.iter().map(|facts| facts.kind.to_lowercase()).collect()
}
