//! `connectivity test`: whether pods reach each other, Services and names, asked of pods that are made for it and removed;
//! `connectivity perf`: how fast. What is asked, in which order, and what answers mean is in `crate::connectivity`; here
//! are the arguments.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use opensdn_node_probe::{MOST_SECONDS, MOST_STREAMS, MOST_TARGETS, Target};

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::connectivity::sample::Sample;
use crate::connectivity::speed::{ConnectivitySpeed, Measurement};
use crate::connectivity::{ConnectivityReport, Scenario, Tested};
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::output::Output;
use crate::probe::run::{LONGEST_OF_THREE, up_to};
use crate::runtime::Runtime;
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
  kubectl opensdn connectivity test -o junit

  # Where nodes cannot pull the operator's image of this release
  kubectl opensdn connectivity test --probe-image registry.example/opensdn-operator:0.1.0

A namespace opensdn-probe-... is made with three pods on each node, at most --nodes of them, and
a Service: pods that listen, pods that ask them, and pods on the network of the node, which show
whether it is the network of pods that is missing. It is removed whatever happens. Pods of
others are not asked and not disturbed. Addresses of IPv4 alone are tried.

Exit codes: 0 no test fails, 1 one does (as --fail-on says), 3 the cluster cannot be asked, or no
test had an answer (all are uncertain),
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
    #[arg(long, value_name = "NAME", conflicts_with = "nodes")]
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
    #[arg(long, value_name = "NAME", conflicts_with = "nodes")]
    node: Vec<String>,
    /// On how many nodes pods are made: the first by name whose kubelet answers.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
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
        if self.outside.len() > MOST_TARGETS {
            let message = format!("--outside is given {} times", self.outside.len());
            return Err(Failure::usage(message, format!("at most {MOST_TARGETS} are tried")));
        }
        let runtime = Runtime::start(global)?;
        let report = runtime.block_on(Box::pin(self.test(global, ui)))?;
        let layout = ui.layout();
        match self.output {
            Format::Junit => ui.write(|out| report.write_junit(|one| self.fails(one), out))?,
            output => {
                ui.answer(&report, |out| report.write(output == Format::Wide, layout, out))?
            }
        }
        let is_bad = report.tests.iter().any(|one| self.fails(one));
        Ok(match is_bad {
            _ if self.exit_zero => Exit::Done,
            true => Exit::Findings,
            // Nothing is known of any pod: that is no pass.
            false if report.summary.is_unknown() => Exit::Unreachable,
            false => Exit::Done,
        })
    }

    fn fails(&self, one: &Tested) -> bool {
        self.fail_on.is_reached_by(one.result)
    }

    fn chosen(&self) -> Vec<Scenario> {
        let is_chosen = |one: &Scenario| {
            (self.only.is_empty() || self.only.contains(one)) && !self.skip.contains(one)
        };
        Scenario::value_variants().iter().copied().filter(is_chosen).collect()
    }

    async fn test(&self, global: &Global, ui: &mut Ui) -> Result<ConnectivityReport, Failure> {
        let (client, server) = global.client_and_server().await?;
        let sample = Sample {
            node: self.node.clone(),
            nodes: self.nodes.into(),
            outside: self.outside.clone(),
            image: self.probe_image.clone(),
            timeout: self.probe_timeout,
            needed_by: "connectivity test",
        };
        let mut report = sample.test(&client, &server, &self.chosen(), ui).await?;
        report.cluster = global.cluster.context_in_use();
        report.server = Some(server);
        Ok(report)
    }
}
