//! Installs OpenSDN step by step, by the list that `opensdn-deploy` renders: in a sandbox and in the
//! lab alike. Deliberately not here: what runs the webhook, a process (`product`) or pods
//! (`lab_product`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use opensdn_deploy::{Phase, RenderError, Step};
use serde_json::Value;

use crate::sandbox::{AccessError, Cluster};

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
    /// The API server refused an object, or does not know its kind.
    #[error("apply the objects of {phase:?}: {said}")]
    Apply {
        /// Of which phase it is.
        phase: Phase,
        /// What the API server said.
        said: String,
    },
}

impl From<AccessError> for InstallError {
    fn from(error: AccessError) -> Self {
        Self::Access(Box::new(error))
    }
}

/// Until the next try.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// What the API server says of a webhook that does not answer.
const NOT_CALLED: &str = "failed calling webhook";

/// Applies one step and returns when the next can be applied.
///
/// # Errors
/// The API server does not take an object of it.
pub async fn apply(cluster: &Cluster, step: &Step) -> Result<(), InstallError> {
    // To apply them as they are takes the API server nearly half as long as to start.
    if step.phase == Phase::Definitions && cluster.has_crds() {
        return Ok(());
    }
    if step.phase == Phase::Definitions {
        let crds =
            step.objects.iter().cloned().map(serde_json::from_value::<CustomResourceDefinition>);
        let crds = crds.collect::<Result<Vec<_>, _>>().map_err(InstallError::Unreadable)?;
        return install_crds(&cluster.client()?, &crds).await;
    }
    let client = cluster.client()?;
    let mut kinds = HashMap::new();
    let begun = Instant::now();
    for object in &step.objects {
        while let Err(error) = apply_object(&client, &mut kinds, object).await {
            let said = match error {
                kube::Error::Api(status) => status.message.clone(),
                error => format!("{error:?}"),
            };
            // On a machine that is busy compiling the webhook that is being installed may be late.
            if !said.contains(NOT_CALLED) || begun.elapsed() > ESTABLISHED {
                return Err(InstallError::Apply { phase: step.phase, said });
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
    Ok(())
}

/// As `kubectl apply --server-side --force-conflicts` does, whose field manager it has, without the tenth of a second of processor
/// time that kubectl takes to start.
async fn apply_object(
    client: &Client,
    kinds: &mut HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>,
    object: &Value,
) -> kube::Result<()> {
    let object: DynamicObject =
        serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let types = object.types.clone().unwrap_or_default();
    let gvk = GroupVersionKind::try_from(&types);
    let gvk = gvk.unwrap_or_else(|_| GroupVersionKind::gvk("", &types.api_version, &types.kind));
    let (resource, can) = match kinds.entry(gvk) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(unknown) => {
            let found = pinned_kind(client, unknown.key()).await?;
            unknown.insert(found)
        }
    };
    let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
    let api: Api<DynamicObject> = match can.scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &namespace, resource),
    };
    let params = PatchParams::apply("kubectl").force().validation_strict();
    api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_control_plane_starts_with_is_what_is_installed() {
        let all = opensdn_crds::all();
        let stored = all.iter().map(serde_json::to_value);
        let stored: Vec<Value> = stored.map(Result::unwrap).collect();
        let steps = [opensdn_deploy::webhook().unwrap(), opensdn_deploy::operator().unwrap()];
        let steps = steps.into_iter().flatten();
        let definitions = steps.filter(|step| step.phase == Phase::Definitions);
        for object in definitions.flat_map(|step| step.objects) {
            let name = object.pointer("/metadata/name");
            assert!(stored.contains(&object), "{name:?} is another one");
        }
    }
}
