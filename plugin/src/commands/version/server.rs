//! What runs in the cluster. The API server has to answer; our webhook may be absent, or not ours
//! to see, which is said instead.

use std::io::{self, Write};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use opensdn_deploy::names;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::clients::{unanswered, why};
use crate::exit::Failure;
use crate::runtime::Runtime;
use crate::ui::Ui;

/// The versions of Kubernetes that this release is tested with.
const SUPPORTED: std::ops::RangeInclusive<u32> = 33..=36;
/// A version is not worth waiting long for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What runs in the cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Server {
    /// Version of the API server.
    kubernetes: String,
    /// Whether this release is tested with it.
    supported: bool,
    /// The webhook.
    webhook: Webhook,
}

/// The webhook in the cluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "state")]
enum Webhook {
    /// It is there.
    Installed {
        /// Its image, with tag or digest.
        image: String,
        /// Replicas that are ready.
        ready: i32,
        /// Replicas that there should be.
        wanted: i32,
    },
    /// There is none in the namespace.
    Absent {
        /// The namespace.
        namespace: String,
    },
    /// It could not be asked for.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// Asks the cluster of the flags and kubeconfig.
pub(super) fn ask(global: &Global, namespace: &str, ui: &mut Ui) -> Result<Server, Failure> {
    let mut global = global.clone();
    global.cluster.request_timeout = global.cluster.request_timeout.or(Some(REQUEST_TIMEOUT));
    Runtime::start(&global)?.block_on(async {
        let (client, server) = global.client_and_server().await?;
        ui.detail(&format!("asking {server}"));
        let version = client
            .apiserver_version()
            .await
            .map_err(|error| unanswered(&format!("ask {server} for its version"), &error))?;
        // Some providers write 1.33+.
        let minor = version.minor.trim_end_matches('+').parse().ok();
        Ok(Server {
            kubernetes: version.git_version,
            supported: minor.is_some_and(|minor| SUPPORTED.contains(&minor)),
            webhook: webhook(client, namespace).await,
        })
    })
}

async fn webhook(client: kube::Client, namespace: &str) -> Webhook {
    let deployments: Api<Deployment> = Api::namespaced(client, namespace);
    match deployments.get_opt(names::webhook::NAME).await {
        Ok(None) => Webhook::Absent { namespace: namespace.to_owned() },
        Ok(Some(deployment)) => {
            let spec = deployment.spec.unwrap_or_default();
            let pod = spec.template.spec.unwrap_or_default();
            let image = pod.containers.into_iter().next().and_then(|container| container.image);
            Webhook::Installed {
                image: image.unwrap_or_default(),
                ready: deployment.status.and_then(|status| status.ready_replicas).unwrap_or(0),
                wanted: spec.replicas.unwrap_or(1),
            }
        }
        Err(error) => Webhook::Unknown { reason: why(&error) },
    }
}

impl Server {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (oldest, newest) = (SUPPORTED.start(), SUPPORTED.end());
        let supported = if self.supported { "supported" } else { "not supported" };
        writeln!(out, "kubernetes  {} ({supported}: 1.{oldest} - 1.{newest})", self.kubernetes)?;
        match &self.webhook {
            Webhook::Installed { image, ready, wanted } => {
                writeln!(out, "webhook     {image} ({ready} of {wanted} ready)")
            }
            Webhook::Absent { namespace } => {
                writeln!(out, "webhook     not installed in the namespace {namespace}")
            }
            Webhook::Unknown { reason } => writeln!(out, "webhook     unknown: {reason}"),
        }
    }
}
