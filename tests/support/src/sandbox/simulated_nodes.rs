//! Nodes that kwok plays: pods scheduled to them become Running, and nothing runs. The
//! stages it plays are in `stages.yaml`. Deliberately not here: real nodes.

use std::path::Path;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource as _};

use super::access::{Access, AccessError, User};
use super::binaries::{Binaries, BinariesError};
use super::certificates::{CertificateError, write_private};
use super::control_plane::sparing;
use super::program::{Program, ProgramError, wait_until};

const STAGES: &str = include_str!("stages.yaml");
/// What a simulated node can be selected by.
pub const SIMULATED_LABEL: &str = "opensdn.io/simulated";
/// How many nodes are created at once.
const AT_ONCE: usize = 16;

/// Why there are no simulated nodes.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedNodesError {
    /// kwok is not there.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// It could not be given rights.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Its stages could not be written.
    #[error(transparent)]
    Stages(#[from] CertificateError),
    /// It did not start, ended, or the nodes are not ready.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The API server did not take a node.
    #[error("create the simulated node {name}")]
    Create {
        /// The node.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Starts kwok with that many nodes, `node-0` and up, and returns when all are Ready.
pub(super) async fn start(
    binaries: &Binaries,
    access: &Access,
    count: u32,
    folder: &Path,
) -> Result<Program, SimulatedNodesError> {
    let stages = folder.join("stages.yaml");
    write_private(&stages, STAGES)?;
    // Its own name in the audit log; everything allowed, for it deletes pods of anyone.
    let kubeconfig = access.kubeconfig_for(&User::new("kwok").in_group("system:masters"))?;
    let arguments = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", stages.display()),
        "--manage-all-nodes=true".into(),
        "--cidr=10.244.0.0/16".into(),
        // Keeps the nodes' leases fresh, else they turn NotReady after 40 s.
        "--node-lease-duration-seconds=40".into(),
        // Its kubelet server would listen on all interfaces.
        "--node-port=0".into(),
    ];
    let kwok = Program::new("kwok", binaries.kwok().await?, arguments, folder);
    let kwok = sparing(kwok);
    kwok.start()?;
    let client = access.client()?;
    create(&client, count).await?;
    let nodes: Api<Node> = Api::all(client);
    wait_until(&kwok, &[&kwok], || all_ready(&nodes, count)).await?;
    Ok(kwok)
}

async fn create(client: &Client, count: u32) -> Result<(), SimulatedNodesError> {
    let nodes: Api<Node> = Api::all(client.clone());
    stream::iter(0..count)
        .map(|number| {
            let nodes = nodes.clone();
            async move {
                let node = node(number);
                let name = node.meta().name.clone().unwrap_or_default();
                match nodes.create(&PostParams::default(), &node).await {
                    Ok(_) => Ok(()),
                    Err(source) => {
                        Err(SimulatedNodesError::Create { name, source: Box::new(source) })
                    }
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

fn node(number: u32) -> Node {
    let name = format!("node-{number}");
    let mut node = Node::default();
    node.metadata.labels = Some(
        [
            ("kubernetes.io/hostname", name.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            (SIMULATED_LABEL, "true"),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect(),
    );
    node.metadata.name = Some(name);
    node
}

async fn all_ready(nodes: &Api<Node>, count: u32) -> Result<(), String> {
    let listed = nodes.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let ready = listed.items.iter().filter(|node| is_ready(node)).count();
    if ready >= count as usize { Ok(()) } else { Err(format!("{ready} of {count} nodes Ready")) }
}

/// Whether pods may be put on a node.
pub(super) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let tainted = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
        // The controller-manager takes its not-ready taint off a moment later.
        && tainted.is_none_or(Vec::is_empty)
}
