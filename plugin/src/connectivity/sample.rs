//! Asks pods: three on each of some nodes, in a namespace that is made for it and removed whatever happens.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use opensdn_node_probe::Target;
use opensdn_validate::report::printable;
use serde_json::Value;

use super::{ConnectivityReport, Places, PodAnswers, Scenario, judge};
use crate::exit::Failure;
use crate::fail_on::FailOn;
use crate::probe::image::{image, installed};
use crate::probe::peers::{PORT, listens};
use crate::probe::run::{Asking, Run};
use crate::probe::{self, Answers, Asked, Network, Nodes, readable};
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, text};
use crate::ui::Ui;

/// The DaemonSet of pods that listen, and the Service in front of them.
const PEERS: &str = "opensdn-peer";
/// The port of the Service `kubernetes` for clients.
const API_PORT: u16 = 443;

/// Where pods are made, and what they try beside each other.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// On these nodes alone, where any is named.
    pub(crate) node: Vec<String>,
    /// Else on so many, the first by name whose kubelet answers.
    pub(crate) nodes: usize,
    /// What is outside of the cluster.
    pub(crate) outside: Vec<Target>,
    /// Their image; else the operator's.
    pub(crate) image: Option<String>,
    /// How long they have for each of three questions.
    pub(crate) timeout: Duration,
    /// The command, for messages.
    pub(crate) needed_by: &'static str,
    /// So many pods are read at once.
    pub(crate) at_once: u16,
    /// How bad a test must be for pods to stay until the user has seen it; else they do not.
    pub(crate) pause: Option<FailOn>,
}

/// What the API server says before anything is made.
pub(super) struct Cluster {
    pub(super) nodes: Nodes,
    api: Result<SocketAddr, String>,
    operator: Option<Value>,
    now: Timestamp,
}

impl Sample {
    /// Makes them, asks them, removes them, and judges what they say.
    ///
    /// # Errors
    /// The cluster cannot be asked, or may not be. What keeps pods from answering is in the report.
    pub(crate) async fn test(
        &self,
        client: &Client,
        server: &str,
        chosen: &[Scenario],
        ui: &mut Ui,
    ) -> Result<ConnectivityReport, Failure> {
        let cluster = self.cluster(client, server).await?;
        let (pods, places) = self.ask(client, &cluster, chosen, ui).await?;
        Ok(judge(&pods, &places, chosen))
    }

    pub(super) async fn cluster(&self, client: &Client, server: &str) -> Result<Cluster, Failure> {
        let asker = &Asker::new(client.clone());
        let date = asker.version(server).await?.date;
        let (nodes, api, operator) = futures::join!(
            asker.list("/api/v1/nodes"),
            asker.get("/api/v1/namespaces/default/services/kubernetes"),
            installed(asker),
        );
        let nodes = self.nodes(readable(&nodes)?)?;
        let now = date.unwrap_or_else(Timestamp::now);
        Ok(Cluster { nodes, api: api_service(&api), operator, now })
    }

    /// The nodes that are meant; of one that cannot answer why.
    fn nodes(&self, nodes: &[Value]) -> Result<Nodes, Failure> {
        let all = probe::nodes(nodes);
        if let Some(missing) = self.node.iter().find(|node| !all.contains_key(*node)) {
            let message = format!("there is no node {missing} for pods of Linux");
            return Err(Failure::usage(message, "which there are: kubectl get nodes"));
        }
        let is_meant = |(name, why): &(String, Option<String>)| match self.node.is_empty() {
            true => why.is_none(),
            false => self.node.contains(name),
        };
        let most = if self.node.is_empty() { self.nodes } else { self.node.len() };
        Ok(all.into_iter().filter(is_meant).take(most).collect())
    }

    /// By which pods, and for how long.
    pub(super) fn run(&self, cluster: &Cluster) -> Result<Run, Failure> {
        let image = match &self.image {
            Some(image) => image.clone(),
            None => image(cluster.operator.as_ref(), None)?,
        };
        let (timeout, needed_by) = (self.timeout, self.needed_by);
        Ok(Run { image, timeout, now: cluster.now, needed_by, at_once: self.at_once })
    }

    /// Leaves pods where they are until the user has seen them, if a test fails. An interrupt ends that, and removes them.
    async fn pause(&self, namespace: &str, report: &ConnectivityReport, ui: &mut Ui) {
        let Some(fail_on) = self.pause else { return };
        let failed = report.tests.iter().filter(|one| fail_on.is_reached_by(one.result));
        let failed: Vec<String> =
            failed.map(|one| format!("{}: {}", one.id, one.message)).collect();
        if failed.is_empty() {
            return;
        }
        for one in &failed {
            ui.warn(&printable(one));
        }
        ui.note(&format!(
            "paused: look at the pods by `kubectl -n {namespace} get pods -o wide`; Enter removes them"
        ));
        enter().await;
    }

    async fn ask(
        &self,
        client: &Client,
        cluster: &Cluster,
        chosen: &[Scenario],
        ui: &mut Ui,
    ) -> Result<(PodAnswers, Places), Failure> {
        let run = self.run(cluster)?;
        let places =
            |service| Places { api: cluster.api.clone(), service, outside: self.outside.clone() };
        let done = run
            .within(client, ui, async |asking, ui| {
                let (pods, places) = ask_pods(asking, &cluster.nodes, &places, ui).await;
                self.pause(asking.namespace(), &judge(&pods, &places, chosen), ui).await;
                (pods, places)
            })
            .await?;
        Ok(done.unwrap_or_else(|why| {
            ui.warn(&format!("no pods were made, so that nothing was tried: {why}"));
            let none: Answers =
                cluster.nodes.keys().map(|node| (node.clone(), Err(why.clone()))).collect();
            let (peers, askers, of_nodes) = (none.clone(), none.clone(), none);
            let pods = PodAnswers { peers, askers, of_nodes, mark: String::new() };
            (pods, places(Err(why)))
        }))
    }
}

/// Where the Service `kubernetes` is.
fn api_service(service: &Read<Value>) -> Result<SocketAddr, String> {
    let service = match service {
        Read::Known(service) => service,
        Read::Absent => return Err("there is no Service kubernetes".to_owned()),
        Read::Unknown(why) => return Err(format!("the Service kubernetes may not be read: {why}")),
    };
    let address = text(service, "/spec/clusterIP");
    let address: IpAddr = address
        .parse()
        .map_err(|_| format!("the Service kubernetes has the address {address:?}"))?;
    Ok((address, API_PORT).into())
}

/// First those that listen, then those that ask them, and at last those on the network of their node.
async fn ask_pods(
    asking: &Asking<'_>,
    nodes: &Nodes,
    places: &dyn Fn(Result<SocketAddr, String>) -> Places,
    ui: &mut Ui,
) -> (PodAnswers, Places) {
    let mark = asking.mark().to_owned();
    let asked = |name: &str, network, wanted| {
        let (name, nodes) = (name.to_owned(), nodes.clone());
        Asked { name, network, nodes, wanted }
    };
    let peers = asking.ask(&asked(PEERS, Network::Pods, listens(&mark)), ui).await;
    let listening = peers.values().filter(|peer| peer.is_ok()).count();
    let service = match listening {
        0 => Err("no pod listens".to_owned()),
        pods => asking.service(PEERS, PORT, pods).await,
    };
    let places = places(service);
    let askers = match listening {
        // What keeps these from it keeps the others too.
        0 => peers.clone(),
        _ => {
            let wanted = places.asked_by_pods(&peers);
            asking.ask(&asked("opensdn-pod", Network::Pods, wanted), ui).await
        }
    };
    let wanted = places.asked_by_nodes();
    let of_nodes = asking.ask(&asked("opensdn-node", Network::NodeAlone, wanted), ui).await;
    (PodAnswers { peers, askers, of_nodes, mark }, places)
}

/// Waits for the key, in a thread that may wait until the process ends. Where nothing can be read there is no user.
async fn enter() {
    let (send, pressed) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let read = std::io::stdin().read_line(&mut String::new());
        send.send(read.is_ok())
    });
    // One that is lost was not read either.
    let _ = pressed.await;
}
