//! `connectivity test`: whether pods reach each other, Services and names, asked of pods that are made for it and removed;
//! `connectivity perf`: how fast. What is asked, in which order, and what answers mean is in `crate::connectivity`; here
//! are the arguments.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use opensdn_node_probe::{MOST_SECONDS, MOST_STREAMS, MOST_TARGETS, Target};

use crate::atomic_write::replace;
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::commands::support_bundle::SupportBundleCommand;
use crate::completion::objects::nodes;
use crate::connectivity::chosen::{Pattern, chosen, pattern};
use crate::connectivity::cleanup::ConnectivityCleanup;
use crate::connectivity::sample::Sample;
use crate::connectivity::speed::{ConnectivitySpeed, Measurement};
use crate::connectivity::{ConnectivityReport, Scenario, Tested};
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::output::Output;
use crate::probe::cleanup::cleanup;
use crate::probe::run::{AT_ONCE, LONGEST_OF_THREE, up_to};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

const GROUP_EXAMPLES: &str = "\
Examples:
  # Do pods reach each other, Services and names?
  kubectl opensdn connectivity test

  # How fast, between two nodes?
  kubectl opensdn connectivity perf --node w3 --node w7";

const PERF_EXAMPLES: &str = "\
Examples:
  # How fast do pods on two nodes reach each other, and these nodes without pods?
  kubectl opensdn connectivity perf

  # Between these nodes, by four connections at once
  kubectl opensdn connectivity perf --node w3 --node w7 --streams 4

  # From each of eight nodes to the next
  kubectl opensdn connectivity perf --nodes 8 -o json

A namespace opensdn-probe-... is made with pods on these nodes, and removed whatever happens.
One way is measured after the other: a byte of TCP there and back, up to a thousand times, and
then what arrives while as much is sent as gets through. It takes bandwidth from others for that
time, and a processor of each of both nodes. The same is measured on the network of the nodes,
at a port that is free: where a firewall keeps it apart, that is said.

Exit codes: 0 all is measured, 1 something is not, 3 the cluster cannot be asked, 130 or 143
interrupted: what was made is removed.";

const EXAMPLES: &str = "\
Examples:
  # Do pods reach each other, Services and names?
  kubectl opensdn connectivity test

  # On two nodes, and only between pods
  kubectl opensdn connectivity test --node w3 --node w7 --only pod-to-pod

  # And what is outside of the cluster
  kubectl opensdn connectivity test --outside keystone.example.org:5000

  # For CI
  kubectl opensdn connectivity test --junit-file connectivity.xml --collect-bundle-on-failure

  # Between pods alone, and with time to look at them where one does not reach another
  kubectl opensdn connectivity test --test '^pod-to-pod' --pause-on-fail

  # Remove what runs have left that were killed
  kubectl opensdn connectivity test --cleanup

  # Where nodes cannot pull the operator's image of this release
  kubectl opensdn connectivity test --probe-image registry.example/opensdn-operator:0.1.0

A namespace opensdn-probe-... is made with three pods on each node, at most --nodes of them, and
a Service: pods that listen, pods that ask them, and pods on the network of the node, which show
whether it is the network of pods that is missing. It is removed whatever happens. Pods of
others are not asked and not disturbed. Addresses of IPv4 alone are tried.

Exit codes: 0 no test fails, 1 one does (as --fail-on says), 3 the cluster cannot be asked, or no
test had an answer (all are uncertain), 4 what --cleanup removes is not gone in a minute,
130 or 143 interrupted: what was made is removed.";

/// Arguments of `connectivity`.
#[derive(Debug, Args)]
#[command(after_long_help = GROUP_EXAMPLES)]
pub(crate) struct Connectivity {
    #[command(subcommand)]
    command: Of,
}

#[derive(Debug, Subcommand)]
enum Of {
    /// Try whether pods reach each other, Services and names.
    Test(Box<Test>),
    /// Measure how fast pods on different nodes reach each other, and these nodes without pods.
    Perf(Box<Perf>),
}

/// Arguments of `connectivity perf`.
#[derive(Debug, Args)]
#[command(after_long_help = PERF_EXAMPLES)]
struct Perf {
    /// This node (at least two, up to eight).
    #[arg(long, value_name = "NAME", conflicts_with = "nodes", add = nodes())]
    node: Vec<String>,
    /// On how many nodes: the first by name whose kubelet answers.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=MOST_NODES as i64))]
    nodes: u16,
    /// So many seconds are bytes sent each way.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=MOST_SECONDS as i64))]
    seconds: u8,
    /// By so many connections at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=MOST_STREAMS as i64))]
    streams: u8,
    /// The image of the pods [default: the operator's of this cluster, else of this release].
    #[arg(long, value_name = "IMAGE")]
    probe_image: Option<String>,
    /// How long pods have to answer each question, up to 4m.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = up_to(LONGEST_OF_THREE))]
    probe_timeout: Duration,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// One after the other, they have to end in ten minutes.
const MOST_NODES: u16 = 8;

/// Arguments of `connectivity test`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Test {
    /// Only this node (repeatable).
    #[arg(long, value_name = "NAME", conflicts_with = "nodes", add = nodes())]
    node: Vec<String>,
    /// On how many nodes pods are made: the first by name whose kubelet answers.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// On one node alone: the first by name whose kubelet answers, else that of --node.
    #[arg(long, conflicts_with = "nodes")]
    single_node: bool,
    /// Only tests whose names this regular expression matches; with ! in front all but these (repeatable).
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    test: Vec<Pattern>,
    /// Only these tests.
    #[arg(long, value_enum, value_name = "TEST", value_delimiter = ',')]
    only: Vec<Scenario>,
    /// All tests but these.
    #[arg(long, value_enum, value_name = "TEST", value_delimiter = ',')]
    skip: Vec<Scenario>,
    /// What is outside of the cluster, as HOST:PORT: a connection of TCP is made and nothing sent (repeatable).
    #[arg(long, value_name = "HOST:PORT", value_parser = target)]
    outside: Vec<Target>,
    /// The image of the pods [default: the operator's of this cluster, else of this release].
    #[arg(long, value_name = "IMAGE")]
    probe_image: Option<String>,
    /// How long pods have to answer each of three questions, up to 4m.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = up_to(LONGEST_OF_THREE))]
    probe_timeout: Duration,
    /// So many pods are read at once.
    #[arg(long, value_name = "NUMBER", default_value_t = AT_ONCE, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,
    /// Where a test fails, leave the pods until Enter is pressed, so that they can be looked at.
    #[arg(long)]
    pause_on_fail: bool,
    /// Where a test fails, make a support bundle in this folder.
    #[arg(long)]
    collect_bundle_on_failure: bool,
    /// Also write JUnit's XML into this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit_file: Option<PathBuf>,
    /// Remove what earlier runs have left, also one that is at work, and test nothing.
    #[arg(long, conflicts_with_all = ["node", "nodes", "single_node", "test", "only", "skip", "outside", "probe_image",
        "pause_on_fail", "collect_bundle_on_failure", "junit_file"])]
    cleanup: bool,
    /// How bad it must be for exit code 1: error is what fails, warning what warns too, info also what is uncertain.
    #[arg(long, value_enum, default_value_t, value_name = "SEVERITY")]
    fail_on: FailOn,
    /// Exit with 0 whatever is found.
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    _cluster: AsksCluster,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Table,
    /// The same with the tests that were skipped.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// JUnit's XML.
    Junit,
}

/// An address of IPv6 stands in brackets.
fn target(text: &str) -> Result<Target, String> {
    let (host, port) = text.rsplit_once(':').ok_or("must be HOST:PORT")?;
    let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || port == 0 {
        return Err("must be HOST:PORT".to_owned());
    }
    Ok(Target { host: host.to_owned(), port })
}

impl Connectivity {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        if global.cluster.namespace.is_some() {
            let message = "--namespace has no effect: the pods are in a namespace of their own";
            return Err(Failure::usage(message, "leave it out"));
        }
        match &self.command {
            Of::Test(test) => test.run(global, ui),
            Of::Perf(perf) => perf.run(global, ui),
        }
    }
}

impl Perf {
    fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        if self.node.len() == 1 || self.node.len() > MOST_NODES.into() {
            let message = format!("--node is given {} times", self.node.len());
            return Err(Failure::usage(message, format!("name two nodes, or up to {MOST_NODES}")));
        }
        let runtime = Runtime::start(global)?;
        let report = runtime.block_on(Box::pin(self.measure(global, ui)))?;
        ui.answer(&report, |out| report.write(out))?;
        Ok(if report.is_complete() { Exit::Done } else { Exit::Findings })
    }

    async fn measure(&self, global: &Global, ui: &mut Ui) -> Result<ConnectivitySpeed, Failure> {
        let (client, server) = global.client_and_server().await?;
        let sample = Sample {
            node: self.node.clone(),
            nodes: self.nodes.into(),
            outside: Vec::new(),
            image: self.probe_image.clone(),
            timeout: self.probe_timeout,
            needed_by: "connectivity perf",
            at_once: AT_ONCE,
            pause: None,
        };
        let measurement = Measurement { sample, seconds: self.seconds, streams: self.streams };
        let mut report = measurement.run(&client, &server, ui).await?;
        report.cluster = global.cluster.context_in_use();
        report.server = Some(server);
        Ok(report)
    }
}

impl Test {
    fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let chosen = self.chosen(ui)?;
        let runtime = Runtime::start(global)?;
        if self.cleanup {
            let done = runtime.block_on(Box::pin(clean_up(global, ui)))?;
            ui.answer(&done, |out| done.write(out))?;
            return Ok(done.exit());
        }
        let mut report = runtime.block_on(Box::pin(self.test(global, &chosen, ui)))?;
        let is_bad = report.tests.iter().any(|one| self.fails(one));
        if is_bad && self.collect_bundle_on_failure {
            // What is known of pods is said whether there is one or not.
            match SupportBundleCommand::of_all().and_then(|all| all.make(global, ui)) {
                Ok(bundle) => report.bundle = bundle.archive,
                Err(failure) => ui.warn(&format!("there is no bundle: {}", failure.message)),
            }
        }
        self.show(&report, ui)?;
        Ok(match is_bad {
            _ if self.exit_zero => Exit::Done,
            true => Exit::Findings,
            // Nothing is known of any pod: that is no pass.
            false if report.summary.is_unknown() => Exit::Unreachable,
            false => Exit::Done,
        })
    }

    fn show(&self, report: &ConnectivityReport, ui: &mut Ui) -> Result<(), Failure> {
        let layout = ui.layout();
        let fails = |one: &Tested| self.fails(one);
        match self.output {
            Format::Junit => ui.write(|out| report.write_junit(fails, out))?,
            output => ui.answer(report, |out| report.write(output == Format::Wide, layout, out))?,
        }
        let Some(path) = &self.junit_file else { return Ok(()) };
        let mut xml = Vec::new();
        let written = report.write_junit(fails, &mut xml);
        written.and_then(|()| replace(path, &xml)).map_err(|error| {
            let message = format!("{} cannot be written", path.display());
            let hint = "name another file: --junit-file FILE";
            Failure::new(Exit::Usage, "unwritable-file", message, hint).because(&error)
        })
    }

    fn fails(&self, one: &Tested) -> bool {
        self.fail_on.is_reached_by(one.result)
    }

    /// Which tests are meant, where all flags go together.
    fn chosen(&self, ui: &Ui) -> Result<Vec<Scenario>, Failure> {
        if self.outside.len() > MOST_TARGETS {
            let message = format!("--outside is given {} times", self.outside.len());
            return Err(Failure::usage(message, format!("at most {MOST_TARGETS} are tried")));
        }
        if self.single_node && self.node.len() > 1 {
            let message = format!("--single-node is given with {} nodes", self.node.len());
            return Err(Failure::usage(message, "name one node"));
        }
        if self.pause_on_fail && !ui.can_ask() {
            let message = "--pause-on-fail waits for Enter, and there is no terminal to wait on";
            return Err(Failure::usage(message, "leave it out, or run it on a terminal"));
        }
        let chosen = chosen(Scenario::value_variants(), &self.only, &self.skip, &self.test);
        if chosen.is_empty() {
            let names: Vec<&str> = Scenario::value_variants().iter().map(|one| one.id()).collect();
            let message = "no test is left by --test, --only and --skip";
            return Err(Failure::usage(message, format!("there are: {}", names.join(", "))));
        }
        Ok(chosen)
    }

    async fn test(
        &self,
        global: &Global,
        chosen: &[Scenario],
        ui: &mut Ui,
    ) -> Result<ConnectivityReport, Failure> {
        let (client, server) = global.client_and_server().await?;
        let sample = Sample {
            node: self.node.clone(),
            nodes: if self.single_node { 1 } else { self.nodes.into() },
            outside: self.outside.clone(),
            image: self.probe_image.clone(),
            timeout: self.probe_timeout,
            needed_by: "connectivity test",
            at_once: self.concurrency,
            pause: self.pause_on_fail.then_some(self.fail_on),
        };
        let mut report = sample.test(&client, &server, chosen, ui).await?;
        report.cluster = global.cluster.context_in_use();
        report.server = Some(server);
        Ok(report)
    }
}

/// Removes what earlier runs have left.
async fn clean_up(global: &Global, ui: &mut Ui) -> Result<ConnectivityCleanup, Failure> {
    let (client, server) = global.client_and_server().await?;
    Asker::new(client.clone()).version(&server).await?;
    let removed = cleanup(&client, ui).await.map_err(|why| {
        let message = format!("what earlier runs have left cannot be listed: {why}");
        let hint = "your user needs the right to list namespaces";
        Failure::new(Exit::Unreachable, "unknown-namespaces", message, hint)
    })?;
    Ok(ConnectivityCleanup::of(removed))
}
