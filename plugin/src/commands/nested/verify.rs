//! `nested verify`: whether a nested cluster works, asked of the cloud, of its nodes, and of pods that are made for it and
//! removed. What is asked and what answers mean is in `crate::nested::verify`; here are the arguments, and the order.

use std::time::Duration;

use clap::Args;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use opensdn_node_probe::{FORMAT, Wanted};
use serde_json::Value;

use super::plan::{Made, Sources};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::nested::verify::pods::{self, PodAnswers};
use crate::nested::verify::services::{Target, targets};
use crate::nested::verify::workloads::Workloads;
use crate::nested::verify::{NestedVerification, World, verify};
use crate::output::Output;
use crate::probe::image::{image, installed};
use crate::probe::peers::listens;
use crate::probe::run::{AT_ONCE, Asking, LONGEST_OF_THREE, Run, up_to};
use crate::probe::{self, Answers, Asked, Network, Nodes, readable};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # All of it: the cloud, services from each node, files, workloads, pods that reach each other
  kubectl opensdn nested verify -f nested-cluster.yaml

  # Without pods on the network of pods
  kubectl opensdn nested verify -f nested-cluster.yaml --no-pods

  # Where nodes cannot pull the operator's image of this release
  kubectl opensdn nested verify -f nested-cluster.yaml \\
    --probe-image registry.example/opensdn-operator:0.1.0

  # What is behind a code?
  kubectl opensdn explain OSDN3081

The arguments are those of nested plan, so that the plan of this moment says what has to be
there. A namespace opensdn-probe-... with pods on the network of each node is made, then with
pods as any other on at most --pods nodes, and it is removed whatever happens. Nothing is
written into the cloud, but for what kube-manager makes of these pods and takes away with them.

Login: by OpenStack's variables OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, ..., as for nested plan.
It is not given to any pod.

Exit codes: 0 nothing fails, 1 something does (as --fail-on says), 2 the arguments or the file,
3 the cluster or the Config API cannot be asked, 130 or 143 interrupted: what was made is
removed.";

/// Arguments of `nested verify`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct VerifyCommand {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    probe: VerifyFlags,
    #[command(flatten)]
    _output: Output,
}

/// How nodes and pods are asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Verification")]
struct VerifyFlags {
    /// Namespace of kube-manager and the CNI agent.
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    target_namespace: String,
    /// Make no pods on the network of pods.
    #[arg(long)]
    no_pods: bool,
    /// On how many nodes such pods are made: the first by name whose kubelet answers.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "no_pods")]
    pods: u16,
    /// The image of the pods [default: the operator's of this cluster, else of this release].
    #[arg(long, visible_alias = "image", value_name = "IMAGE")]
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
}

/// What the API server says before anything is made.
struct Cluster {
    nodes: Vec<Value>,
    workloads: Workloads,
    operator: Option<Value>,
    now: Timestamp,
}

impl VerifyCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let runtime = Runtime::start(global)?;
        let answer = runtime.block_on(Box::pin(self.verify(global, ui)))?;
        let layout = ui.layout();
        ui.answer(&answer, |out| answer.write(layout, out))?;
        let is_bad =
            |one: &&crate::nested::verify::Verified| self.probe.fail_on.is_reached_by(one.result);
        let bad = answer.results.iter().find(is_bad);
        if let Some(bad) = bad {
            ui.hint(&format!("why, and what to do: kubectl opensdn explain {}", bad.code));
        }
        Ok(if bad.is_some() && !self.probe.exit_zero { Exit::Findings } else { Exit::Done })
    }

    async fn verify(&self, global: &Global, ui: &mut Ui) -> Result<NestedVerification, Failure> {
        let made = self.sources.made(global, ui).await?;
        let (client, server) = global.client_and_server().await?;
        let cluster = self.cluster(&Asker::new(client.clone()), &server).await?;
        let (of_nodes, of_pods) = self.ask(&client, &made, &cluster, ui).await?;
        let world = World {
            input: &made.input,
            plan: &made.plan.plan,
            nodes: &cluster.nodes,
            workloads: &cluster.workloads,
            of_nodes: &of_nodes,
            of_pods: of_pods.as_ref(),
        };
        Ok(verify(&world, &made.plan.config_api))
    }

    async fn cluster(&self, asker: &Asker, server: &str) -> Result<Cluster, Failure> {
        let place = &self.probe.target_namespace;
        let date = asker.version(server).await?.date;
        let paths = [
            "/api/v1/nodes".to_owned(),
            format!("/apis/apps/v1/namespaces/{place}/deployments"),
            format!("/apis/apps/v1/namespaces/{place}/daemonsets"),
            format!("/api/v1/namespaces/{place}/pods"),
        ];
        let [nodes, deployments, daemon_sets, pods] = &paths;
        let (nodes, deployments, daemon_sets, pods, operator) = futures::join!(
            asker.list(nodes),
            asker.list(deployments),
            asker.list(daemon_sets),
            asker.list(pods),
            installed(asker),
        );
        let nodes = readable(&nodes)?.to_vec();
        let workloads = Workloads { namespace: place.clone(), deployments, daemon_sets, pods };
        let now = date.unwrap_or_else(Timestamp::now);
        Ok(Cluster { nodes, workloads, operator, now })
    }

    /// What nodes and pods answer; no pods where none were to be made.
    async fn ask(
        &self,
        client: &Client,
        made: &Made,
        cluster: &Cluster,
        ui: &mut Ui,
    ) -> Result<(Answers, Option<PodAnswers>), Failure> {
        let image = match &self.probe.probe_image {
            Some(image) => image.clone(),
            None => image(cluster.operator.as_ref(), None)?,
        };
        let timeout = self.probe.probe_timeout;
        let run =
            Run { image, timeout, now: cluster.now, needed_by: "nested verify", at_once: AT_ONCE };
        let of_nodes = on_nodes(made, cluster);
        let nodes = self.nodes_of_pods(&cluster.nodes);
        let done = run
            .within(client, ui, async |asking, ui| {
                let answers = asking.ask(&of_nodes, ui).await;
                let of_pods = match self.probe.no_pods {
                    true => None,
                    false => Some(ask_pods(asking, made, &nodes, ui).await),
                };
                (answers, of_pods)
            })
            .await?;
        Ok(done.unwrap_or_else(|why| {
            ui.warn(&format!("no pods were made, and what only they know is uncertain: {why}"));
            let askers = nodes.keys().map(|node| (node.clone(), Err(why.clone()))).collect();
            let of_pods = PodAnswers { askers, ..PodAnswers::default() };
            (of_nodes.none(&why), (!self.probe.no_pods).then_some(of_pods))
        }))
    }

    /// The first nodes by name that can answer.
    fn nodes_of_pods(&self, nodes: &[Value]) -> Nodes {
        let able = probe::nodes(nodes).into_iter().filter(|(_, why)| why.is_none());
        able.take(self.probe.pods.into()).collect()
    }
}

fn on_nodes(made: &Made, cluster: &Cluster) -> Asked {
    let targets = targets(&made.plan.plan, &made.input);
    let services = targets.into_iter().map(Target::question).collect();
    let wanted =
        Wanted { format: FORMAT, module: "vrouter".to_owned(), services, ..Wanted::default() };
    Asked {
        name: "opensdn-probe".to_owned(),
        network: Network::Node,
        nodes: probe::nodes(&cluster.nodes),
        wanted,
    }
}

/// First those that listen, then those that ask them.
async fn ask_pods(asking: &Asking<'_>, made: &Made, nodes: &Nodes, ui: &mut Ui) -> PodAnswers {
    let mark = asking.mark().to_owned();
    let asked = |name: &str, wanted| {
        let (name, nodes) = (name.to_owned(), nodes.clone());
        Asked { name, network: Network::Pods, nodes, wanted }
    };
    let peers = asking.ask(&asked("opensdn-peer", listens(&mark)), ui).await;
    if peers.values().all(Result::is_err) {
        // What keeps these from it keeps the others too.
        return PodAnswers { askers: peers.clone(), peers, mark };
    }
    let wanted = pods::asks(&made.plan.plan, &made.input, &peers);
    let askers = asking.ask(&asked("opensdn-pod", wanted), ui).await;
    PodAnswers { peers, askers, mark }
}
