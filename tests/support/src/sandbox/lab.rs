//! The lab: real nodes on one machine. Each node is a machine of its own to the kernel (network,
//! mounts, process ids, host name) with containerd, kubelet and kube-proxy; the control plane
//! has a network of its own too; a switch joins them. No network has a default route, so that no
//! packet can leave. It needs Linux and root.
//!
//! Everything of a machine ends with its first process, and that with the lab's owner, also when
//! the owner is killed. What the kernel does not remove by itself (cgroups, files) carries
//! the lab's id, and the next start sweeps it.
//!
//! Deliberately not here: our product and its images. [`Lab::load_image`] takes any archive.

mod addresses;
mod availability;
mod cgroups;
mod cluster_services;
mod configuration;
pub mod fault;
mod forwarder;
mod machine;
mod names;
mod netns;
mod node;
mod pod;
mod volumes;
mod wiring;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::{Api, Client};
use tokio::task::JoinHandle;

pub use addresses::{CONTROL, MOST_NODES, NodePlan};
pub use availability::{Missing, available};
pub use cgroups::CgroupError;
pub use cluster_services::ClusterServicesError;
pub use forwarder::ForwarderError;
pub use machine::MachineError;
pub use names::RegisterError;
pub use node::Node;
pub use pod::{address_of, node_of};
pub use volumes::STORAGE_CLASS;

use super::access::{Access, AccessError};
use super::binaries::{Binaries, BinariesError, NodeBinaries};
use super::certificates::CertificateError;
use super::control_plane::{LAB_API_SERVER_PORT, Site};
use super::program::{ProgramError, wait_until};
use super::surroundings::Surroundings;
use forwarder::Forwarder;
use machine::Machine;
use names::Name;
use volumes::Provisioner;

/// Images that every node has from the start: a shell with the usual tools (busybox), for pods
/// of tests. Pull policy `Never` or `IfNotPresent`: there is no registry.
pub const TOOLS_IMAGE: &str = "opensdn.lab/tools:1";

/// How soon a node's program is started again that has ended by itself.
const RESTART: Duration = Duration::from_secs(1);

/// Why the lab is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine cannot have one.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The programs of nodes are not there.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// No id could be had.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A machine is not as it should be.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// There is no way to the API server.
    #[error(transparent)]
    Forwarder(#[from] ForwarderError),
    /// A node has no cgroup.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A certificate could not be made, or a file not written.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No client could be made.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A program of a node did not start, ended, or a node is not ready.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Name service or storage could not be installed.
    #[error(transparent)]
    ClusterServices(#[from] ClusterServicesError),
    /// A file of the lab could not be made or read.
    #[error("use {}", path.display())]
    Files {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
    /// The node has been switched off.
    #[error("reach {node}: it is switched off; start it with `start_node`")]
    NotRunning {
        /// Which node.
        node: String,
    },
    /// There is no such node.
    #[error("find {node}: there are {}", known.join(", "))]
    UnknownNode {
        /// What was asked for.
        node: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The API server did not do what was asked.
    #[error("{what}")]
    ApiServer {
        /// What was tried.
        what: String,
        /// What it said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// What must be there before a control plane can start in it: the networks.
pub(super) struct LabNetwork {
    // Dropped in this order; the name last, when nothing runs in its cgroups any more.
    forwarder: Forwarder,
    control: Arc<Machine>,
    switch: Arc<Machine>,
    plans: Vec<NodePlan>,
    binaries: NodeBinaries,
    name: Name,
}

impl LabNetwork {
    /// Makes the networks for that many nodes. `folder` is the sandbox's.
    pub(super) async fn create(nodes: u8, folder: &Path) -> Result<Self, LabError> {
        available()?;
        let binaries = Binaries::of_nodes().await?;
        let name = Name::take(folder)?;
        let plans = addresses::nodes(nodes);
        let start = |machine: &str| {
            Machine::start(name.id(), machine, &binaries.folder, folder).map(Arc::new)
        };
        let switch = start("switch")?;
        switch.wire("make the bridge", wiring::SWITCH)?;
        let control = start("control")?;
        plug(&switch, &control)?;
        control.wire("set its addresses", &wiring::control(&plans))?;
        let target = SocketAddr::from(([127, 0, 0, 1], LAB_API_SERVER_PORT));
        let forwarder = Forwarder::start(control.process(), target)?;
        Ok(Self { forwarder, control, switch, plans, binaries, name })
    }

    /// Where the control plane runs.
    pub(super) fn site(&self) -> Site {
        Site::Lab {
            machine: self.control.process(),
            address: addresses::CONTROL,
            forwarded_port: self.forwarder.port(),
        }
    }
}

fn plug(switch: &Machine, machine: &Machine) -> Result<(), MachineError> {
    let cable = wiring::cable(machine.name(), machine.process());
    switch.wire(&format!("plug {} in", machine.name()), &cable).map(drop)
}

/// Where nodes reach the API server, and what runs beside the control plane does.
#[must_use]
pub fn api_server_url() -> String {
    format!("https://{}:{LAB_API_SERVER_PORT}", addresses::CONTROL)
}

/// How the names of a lab's cgroups begin.
fn group_prefix(id: &str) -> String {
    format!("opensdn-lab-{id}")
}

/// Real nodes, with name service and storage. Dropping it ends them.
pub struct Lab {
    // Dropped in this order.
    provisioner: Provisioner,
    keeper: Option<JoinHandle<()>>,
    nodes: Vec<Arc<Node>>,
    network: LabNetwork,
    client_of_admin: AdminKubeconfig,
    folder: PathBuf,
}

/// The administrator's kubeconfig file, and kubectl.
struct AdminKubeconfig {
    path: PathBuf,
    kubectl: PathBuf,
}

impl Lab {
    /// Starts the nodes in this network, beside a control plane that is ready, and returns when
    /// all are Ready and names are served.
    pub(super) async fn start(
        network: LabNetwork,
        access: &Access,
        binaries: &Binaries,
        folder: &Path,
    ) -> Result<Self, LabError> {
        let admin = AdminKubeconfig {
            path: access.admin_kubeconfig(),
            kubectl: binaries.program("kubectl")?,
        };
        let client = access.client()?;
        let mut nodes = Vec::new();
        let images = network.binaries.images();
        for plan in &network.plans {
            let around = surroundings(&network, folder, &images);
            nodes.push(Arc::new(Node::prepare(plan.clone(), &around, access)?));
        }
        let provisioner = Provisioner::start(client.clone(), nodes.clone());
        let mut lab = Self {
            provisioner,
            keeper: None,
            nodes,
            network,
            client_of_admin: admin,
            folder: folder.to_owned(),
        };
        let starting = try_join_all(lab.nodes.iter().map(|node| lab.start_programs(node)));
        let (started, installed) = tokio::join!(starting, lab.install_services());
        started?;
        installed?;
        lab.wait_until_ready(&client).await?;
        // Not earlier: a program that ends while the lab starts is an error.
        lab.keeper = Some(tokio::spawn(keep_programs(lab.nodes.clone())));
        Ok(lab)
    }

    async fn install_services(&self) -> Result<(), LabError> {
        let AdminKubeconfig { path, kubectl } = &self.client_of_admin;
        Ok(cluster_services::install(kubectl, path, &self.folder).await?)
    }

    async fn start_programs(&self, node: &Node) -> Result<(), LabError> {
        let images = self.network.binaries.images();
        let around = surroundings(&self.network, &self.folder, &images);
        node.start(&around, |machine| plug(&self.network.switch, machine)).await
    }

    async fn wait_until_ready(&self, client: &Client) -> Result<(), LabError> {
        for node in &self.nodes {
            self.wait_for_node(client, node).await?;
        }
        let Some(first) = self.nodes.first() else { return Ok(()) };
        let running = first.running()?;
        wait_until(&running.kubelet, &[], || cluster_services::ready(client)).await?;
        Ok(())
    }

    async fn wait_for_node(&self, client: &Client, node: &Node) -> Result<(), LabError> {
        let running = node.running()?;
        let objects: Api<NodeObject> = Api::all(client.clone());
        let programs = [&running.containerd, &running.kubelet, &running.kube_proxy];
        wait_until(&running.kubelet, &programs, || async {
            let object = objects.get(node.name()).await.map_err(|error| error.to_string())?;
            match super::simulated_nodes::is_ready(&object) {
                true => Ok(()),
                false => Err(format!("{} is not Ready", node.name())),
            }
        })
        .await?;
        Ok(())
    }

    /// Its id, which all that it makes carries.
    #[must_use]
    pub fn id(&self) -> &str {
        self.network.name.id()
    }

    /// The nodes, `node-1` first.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().map(AsRef::as_ref)
    }

    /// A node by name.
    ///
    /// # Errors
    /// When there is none; the error lists which there are.
    pub fn node(&self, name: &str) -> Result<&Node, LabError> {
        self.nodes().find(|node| node.name() == name).ok_or_else(|| LabError::UnknownNode {
            node: name.to_owned(),
            known: self.nodes().map(|node| node.name().to_owned()).collect(),
        })
    }

    /// Switches a node off at once, as by its power cord. Its disk stays.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn kill_node(&self, name: &str) -> Result<(), LabError> {
        self.node(name)?.kill();
        Ok(())
    }

    /// Starts a node that was switched off, and returns when it is Ready. One that runs is left
    /// alone.
    ///
    /// # Errors
    /// When there is no such node, or it does not become Ready.
    pub async fn start_node(&self, client: &Client, name: &str) -> Result<(), LabError> {
        let node = self.node(name)?;
        if node.running().is_err() {
            self.start_programs(node).await?;
        }
        self.wait_for_node(client, node).await
    }

    /// Loads an OCI or Docker image archive into every node that runs. Pods use it with
    /// `imagePullPolicy: Never` or `IfNotPresent`: nothing can be pulled.
    ///
    /// # Errors
    /// When a node does not take it.
    pub async fn load_image(&self, archive: &Path) -> Result<(), LabError> {
        let running: Vec<_> = self.nodes().filter_map(|node| node.running().ok()).collect();
        try_join_all(running.iter().map(|node| node.import(archive))).await.map(drop)
    }

    /// Gives an image that every node has another name too, both whole ones: `docker.io/library/NAME:TAG`.
    ///
    /// # Errors
    /// When a node that runs does not have it.
    pub async fn tag_image(&self, image: &str, other_name: &str) -> Result<(), LabError> {
        let running: Vec<_> = self.nodes().filter_map(|node| node.running().ok()).collect();
        let tag = ["images", "tag", "--force", image, other_name];
        try_join_all(running.iter().map(|node| node.ctr(&tag, None))).await?;
        Ok(())
    }

    /// Runs shell lines on a node, beside its programs; `what` they are for gets an error when one fails.
    ///
    /// # Errors
    /// There is no such node, it does not run, or a line fails.
    pub fn run_on(&self, node: &str, what: &str, script: &str) -> Result<String, LabError> {
        Ok(self.node(node)?.running()?.machine.run(what, script)?)
    }

    /// The command that runs a program of this machine in the network of the control plane, from which every node is
    /// reached; its arguments are still to be added.
    #[must_use]
    pub fn beside_control_plane(&self, program: &Path) -> Command {
        Surroundings::NetworkOf(self.network.control.process()).command(program)
    }

    /// What the work makes in the network of the control plane: sockets that it opens, and threads that it starts, stay
    /// there wherever they are used.
    ///
    /// # Errors
    /// The network cannot be entered.
    pub fn made_beside_control_plane<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LabError> {
        let (sender, made) = std::sync::mpsc::channel();
        let process = self.network.control.process();
        let hand_over = move |()| drop(sender.send(work()));
        let thread = netns::spawn("lab-work", process, || Ok(()), hand_over);
        thread.map_err(ForwarderError::Enter)?;
        made.recv().map_err(|_| ForwarderError::Enter(io::ErrorKind::BrokenPipe.into()).into())
    }

    /// The command that runs a program of this machine on a node, in all its namespaces; its arguments are still to be
    /// added. It ends with the node.
    ///
    /// # Errors
    /// There is no such node, or it does not run.
    pub fn on_node(&self, node: &str, program: &Path) -> Result<Command, LabError> {
        Ok(self.node(node)?.running()?.machine.surroundings().command(program))
    }

    /// Each node's name, address, and the process whose namespaces are the node's while it runs.
    #[must_use]
    pub fn places(&self) -> Vec<(String, String, u32)> {
        let running = self.nodes().filter_map(|node| Some((node, node.running().ok()?)));
        running
            .map(|(node, running)| {
                let plan = node.plan();
                (plan.name.clone(), plan.address.to_string(), running.machine.process())
            })
            .collect()
    }

    /// Process ids of the lab's own programs, without those of pods.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        let machines =
            [&self.network.control, &self.network.switch].map(|machine| machine.process());
        self.nodes().flat_map(Node::process_ids).chain(machines).collect()
    }

    /// Every process of the lab, those of pods too, by their ids on this machine: what shares
    /// process ids or a network with one of its machines.
    #[must_use]
    pub fn all_processes(&self) -> Vec<u32> {
        let machines: Vec<u32> = self
            .nodes()
            .filter_map(|node| Some(node.running().ok()?.machine.process()))
            .chain([&self.network.control, &self.network.switch].map(|machine| machine.process()))
            .collect();
        machine::inhabitants(&machines)
    }

    /// Fails when a machine has ended that was not asked to end.
    pub(super) fn check_alive(&self) -> Result<(), ProgramError> {
        self.network.control.program().check_alive()?;
        self.network.switch.program().check_alive()?;
        self.nodes().try_for_each(Node::check_alive)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.provisioner.stop();
        self.keeper.iter().for_each(JoinHandle::abort);
        // The provisioner's last step may still hold them.
        self.nodes.iter().for_each(|node| node.kill());
    }
}

/// Is to nodes what an init system is to a machine.
async fn keep_programs(nodes: Vec<Arc<Node>>) {
    loop {
        tokio::time::sleep(RESTART).await;
        for node in &nodes {
            if let Err(error) = node.restart_ended() {
                tracing::warn!(error = &error as &dyn std::error::Error, "{}", node.name());
            }
        }
    }
}

fn surroundings<'a>(
    network: &'a LabNetwork,
    folder: &'a Path,
    images: &'a [PathBuf],
) -> node::Surroundings<'a> {
    node::Surroundings {
        lab: network.name.id(),
        folder,
        programs: &network.binaries.folder,
        images,
        all: &network.plans,
    }
}
