//! Clusters that tests use at the same time, each in a namespace of its own. The gate starts them
//! with `opensdn-sandbox up` and says where they are; without them a test starts its own.
//! Deliberately not here: tests that change policies, restart something, or need keys or cluster
//! objects for themselves; they start a sandbox.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::Path;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};
use tokio::sync::OnceCell;

use crate::Failed;
use crate::product::{Installation, Product};
use crate::sandbox::{Cluster, Sandbox};

/// Names the folder of a sandbox with the product: `opensdn-sandbox up --product --dir DIR`.
pub const PRODUCT_VARIABLE: &str = "OPENSDN_TEST_SANDBOX";
/// Names the folder of a sandbox with the CRDs alone: `opensdn-sandbox up --crds --dir DIR`.
pub const CRDS_VARIABLE: &str = "OPENSDN_TEST_CRDS_SANDBOX";

/// A cluster that is not this test's alone.
pub struct Shared {
    home: Home,
}

enum Home {
    /// Another process keeps it.
    Elsewhere(Cluster),
    /// This process has started it; the product ends first.
    Here { _product: Option<Product>, sandbox: Box<Sandbox> },
}

impl Shared {
    /// One with the product: CRDs, webhook, and all built-in policies in force. One that this
    /// process starts is the caller's alone: its balancer ends with the caller's runtime.
    ///
    /// # Errors
    /// The one that is named does not run, or none can be started.
    pub async fn with_product() -> Result<Self, Failed> {
        if let Some(dir) = named(PRODUCT_VARIABLE) {
            return Self::attach(Path::new(&dir)).await;
        }
        let sandbox = Box::new(Sandbox::builder().with_crds().await?);
        let product = Installation::built()?.install(&sandbox).await?;
        Ok(Self { home: Home::Here { _product: Some(product), sandbox } })
    }

    /// One with our CRDs and nothing else of ours.
    ///
    /// # Errors
    /// The one that is named does not run, or none can be started.
    pub async fn with_crds() -> Result<&'static Self, Failed> {
        static SHARED: OnceCell<Shared> = OnceCell::const_new();
        SHARED
            .get_or_try_init(async || {
                if let Some(dir) = named(CRDS_VARIABLE) {
                    return Self::attach(Path::new(&dir)).await;
                }
                let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
                let sandbox = Box::new(sandbox);
                Ok(Self { home: Home::Here { _product: None, sandbox } })
            })
            .await
    }

    async fn attach(dir: &Path) -> Result<Self, Failed> {
        Ok(Self { home: Home::Elsewhere(Cluster::attach(dir).await?) })
    }

    /// A namespace that no other test has.
    ///
    /// # Errors
    /// The API server does not make it.
    pub async fn namespace(&self) -> Result<String, Failed> {
        let metadata =
            ObjectMeta { generate_name: Some("test-".to_owned()), ..ObjectMeta::default() };
        let namespaces: Api<Namespace> = Api::all(self.client()?);
        let wanted = Namespace { metadata, ..Namespace::default() };
        Ok(namespaces.create(&PostParams::default(), &wanted).await?.name_any())
    }
}

impl Deref for Shared {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        match &self.home {
            Home::Elsewhere(cluster) => cluster,
            Home::Here { sandbox, .. } => sandbox,
        }
    }
}

fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}
