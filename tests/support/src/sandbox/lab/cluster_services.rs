//! What a cluster has besides nodes: name service (CoreDNS, two pods on two nodes) and the
//! default StorageClass. Deliberately not here: who makes the volumes (`volumes`).

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};

use crate::sandbox::kubectl::{self, KubectlError};

const MANIFESTS: &str = include_str!("cluster_services.yaml");

/// Why they could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterServicesError {
    /// kubectl could not be run.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// The API server did not take them.
    #[error("install name service and storage: kubectl said: {said}")]
    Refused {
        /// What kubectl said.
        said: String,
    },
}

pub(super) async fn install(
    kubectl: &Path,
    kubeconfig: &Path,
    folder: &Path,
) -> Result<(), ClusterServicesError> {
    let command = kubectl::command(kubectl, kubeconfig, folder);
    let output = kubectl::run(command, &["apply", "--filename=-"], MANIFESTS).await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ClusterServicesError::Refused { said })
}

/// Whether names are served.
pub(super) async fn ready(client: &Client) -> Result<(), String> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let found = deployments.get("coredns").await.map_err(|error| error.to_string())?;
    let wanted = found.spec.and_then(|spec| spec.replicas).unwrap_or_default();
    let ready = found.status.and_then(|status| status.ready_replicas).unwrap_or_default();
    match ready >= wanted {
        true => Ok(()),
        false => Err(format!("{ready} of {wanted} pods of CoreDNS are ready")),
    }
}
