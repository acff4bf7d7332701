//! Installs OpenSDN step by step, by the list that `opensdn-deploy` renders: in a sandbox and in the
//! lab alike. Deliberately not here: what runs the webhook, a process (`product`) or pods
//! (`lab_product`).

use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use opensdn_deploy::{Phase, RenderError, Step};
use serde_json::{Value, json};

use crate::sandbox::{AccessError, Cluster, KubectlError};

/// How long the API server may take to serve a new kind.
const ESTABLISHED: Duration = Duration::from_secs(60);

/// Why something is not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The manifests cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// No client of the cluster.
    #[error(transparent)]
    Access(Box<AccessError>),
    /// A CRD is no CRD.
    #[error("read a CRD of the manifests")]
    Unreadable(#[source] serde_json::Error),
    /// The API server refused a CRD.
    #[error("install the CRD {name}")]
    Crd {
        /// Its name.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A CRD was taken but is not served.
    #[error("see the CRD {name} served within {} s: look at its conditions with `kubectl describe crd {name}`", ESTABLISHED.as_secs())]
    NotServed {
        /// Its name.
        name: String,
    },
    /// kubectl does not run.
    #[error("run kubectl")]
    Kubectl(#[from] KubectlError),
    /// The API server refused an object.
    #[error("apply the objects of {phase:?}: {said}")]
    Apply {
        /// Of which phase it is.
        phase: Phase,
        /// What kubectl said.
        said: String,
    },
}

impl From<AccessError> for InstallError {
    fn from(error: AccessError) -> Self {
        Self::Access(Box::new(error))
    }
}

/// What the API server says of a webhook that does not answer.
const NOT_CALLED: &str = "failed calling webhook";

/// Applies one step and returns when the next can be applied.
///
/// # Errors
/// The API server does not take an object of it.
pub async fn apply(cluster: &Cluster, step: &Step) -> Result<(), InstallError> {
    if step.phase == Phase::Definitions {
        let crds =
            step.objects.iter().cloned().map(serde_json::from_value::<CustomResourceDefinition>);
        let crds = crds.collect::<Result<Vec<_>, _>>().map_err(InstallError::Unreadable)?;
        return install_crds(&cluster.client()?, &crds).await;
    }
    let list: Value = json!({"apiVersion": "v1", "kind": "List", "items": step.objects});
    let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let begun = Instant::now();
    loop {
        let output = cluster.kubectl_with_input(&arguments, &list.to_string()).await?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        // On a machine that is busy compiling the webhook that is being installed may be late.
        if !said.contains(NOT_CALLED) || begun.elapsed() > ESTABLISHED {
            return Err(InstallError::Apply { phase: step.phase, said });
        }
    }
}

/// Applies the CRDs and returns when the API server serves all of them.
///
/// # Errors
/// Names the CRD that was refused or is not served.
pub async fn install_crds(
    client: &Client,
    crds: &[CustomResourceDefinition],
) -> Result<(), InstallError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("opensdn-sandbox").force();
    for crd in crds {
        let name = crd.name_any();
        api.patch(&name, &params, &Patch::Apply(crd))
            .await
            .map_err(|source| InstallError::Crd { name, source: Box::new(source) })?;
    }
    for crd in crds {
        let name = crd.name_any();
        let served = await_condition(api.clone(), &name, conditions::is_crd_established());
        if !matches!(tokio::time::timeout(ESTABLISHED, served).await, Ok(Ok(_))) {
            return Err(InstallError::NotServed { name });
        }
    }
    Ok(())
}
