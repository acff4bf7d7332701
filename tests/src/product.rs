//! OpenSDN itself in a sandbox: its CRDs, webhook processes on 127.0.0.1, and the built-in
//! policies. Deliberately not here: the control plane (`sandbox`), and how the product is
//! installed on a user's cluster, which is the plugin's work.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};

use crate::sandbox::{AccessError, Program, Sandbox};

/// How long the API server may take to serve a new kind.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// Why the product is not installed.
#[derive(Debug, thiserror::Error)]
pub enum ProductError {
    /// No client of the sandbox.
    #[error(transparent)]
    Access(#[from] AccessError),
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
    /// This source tree cannot do that part yet.
    #[error(
        "install {part}: this version of the source tree has no {part} yet; leave out --product"
    )]
    NotBuilt {
        /// The part that is missing.
        part: &'static str,
    },
}

/// The installed product. Dropping it ends its processes; what it stored stays.
pub struct Product {
    _webhooks: Vec<Program>,
}

impl Product {
    /// Installs everything and returns when the webhook answers. Until there is a webhook,
    /// it installs the CRDs and fails, naming the part that is missing: a control plane that
    /// refuses nothing must not look like the product.
    ///
    /// # Errors
    /// Names the part that could not be installed.
    pub async fn install(sandbox: &Sandbox) -> Result<Self, ProductError> {
        let client = sandbox.client()?;
        install_crds(&client, &opensdn_crds::all()).await?;
        Ok(Self { _webhooks: start_webhooks(sandbox)? })
    }
}

/// Applies the CRDs and returns when the API server serves all of them.
///
/// # Errors
/// Names the CRD that was refused or is not served.
pub async fn install_crds(
    client: &Client,
    crds: &[CustomResourceDefinition],
) -> Result<(), ProductError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("opensdn-sandbox").force();
    for crd in crds {
        let name = crd.name_any();
        api.patch(&name, &params, &Patch::Apply(crd))
            .await
            .map_err(|source| ProductError::Crd { name, source: Box::new(source) })?;
    }
    for crd in crds {
        let name = crd.name_any();
        let served = await_condition(api.clone(), &name, conditions::is_crd_established());
        if !matches!(tokio::time::timeout(ESTABLISHED, served).await, Ok(Ok(_))) {
            return Err(ProductError::NotServed { name });
        }
    }
    Ok(())
}

fn start_webhooks(_sandbox: &Sandbox) -> Result<Vec<Program>, ProductError> {
    Err(ProductError::NotBuilt { part: "webhook" })
}
