//! `connectivity test`: whether pods reach each other, Services and names, asked of pods that are made for it and removed.
//! What is asked, in which order, and what answers mean is in `crate::connectivity`; here are the arguments.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use opensdn_node_probe::{MOST_TARGETS, Target};

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::connectivity::sample::Sample;
use crate::connectivity::{ConnectivityReport, Scenario, Tested};
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::probe::run::{LONGEST_OF_THREE, up_to};
use crate::runtime::Runtime;
use crate::ui::Ui;

const GROUP_EXAMPLES: &str = "\
Examples:
  # Do pods reach each other, Services and names?
  kubectl opensdn connectivity test";

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

A namespace opensdn-probe-... is made with three pods on each node, at most --nodes of them, and a Service: pods that
listen, pods that ask them, and pods on the network of the node, which show whether it is the network of
pods that is missing. It is removed whatever happens. Pods of others are not asked and not disturbed.
Addresses of IPv4 alone are tried.

Exit codes: 0 no test fails, 1 one does (as --fail-on says), 3 the cluster cannot be asked,
130 interrupted: what was made is removed.";

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
}

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
        let Of::Test(test) = &self.command;
        test.run(global, ui)
    }
}

impl Test {
    fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        if global.cluster.namespace.is_some() {
            let message = "--namespace has no effect: the pods are in a namespace of their own";
            return Err(Failure::usage(message, "leave it out"));
        }
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
        Ok(if is_bad && !self.exit_zero { Exit::Findings } else { Exit::Done })
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
