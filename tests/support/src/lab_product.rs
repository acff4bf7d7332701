//! OpenSDN in the pods of a lab, installed as on any cluster: its image, and all of `installer`.
//! Deliberately not here: the webhook as a process of this machine (`product`).

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use opensdn_deploy::names::{NAME_LABEL, NAMESPACE, configuration, webhook};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::admin_changes::certificate_expiry;
use crate::development_image::{DevelopmentImage, DevelopmentImageError};
use crate::installer::{self, InstallError};

use crate::sandbox::lab::LabError;
use crate::sandbox::{AccessError, KubectlError, Sandbox};

/// The kinds of what calls it, all named `opensdn-webhook`, as kubectl takes them.
pub const CONFIGURATIONS: &str = "validatingwebhookconfiguration,mutatingwebhookconfiguration";
/// How many replicas the manifest asks for.
pub const REPLICAS: usize = 3;
/// How long something may take in the cluster before it counts as missing.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);
/// How soon something is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(300);
/// How long a replica may take for an answer: one that is cut off has none.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What answers reviews.
const DEPLOYMENT: &str = "deployment/opensdn-webhook";
/// What writes the webhook configurations.
const WRITERS: &str = "deployment/opensdn-webhook-configuration";

/// Why the product is not installed, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum LabProductError {
    /// The image for tests could not be made.
    #[error(transparent)]
    Development(#[from] DevelopmentImageError),
    /// The product could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The image could not be built.
    #[error("build the image with deploy/images/build.sh webhook: {0}")]
    Image(String),
    /// The script could not be run.
    #[error("run deploy/images/build.sh")]
    Script(#[from] std::io::Error),
    /// The sandbox has no real nodes.
    #[error("load the image: the sandbox has no real nodes")]
    NoLab,
    /// A node did not take the image.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// kubectl does not run.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// No client.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// kubectl failed.
    #[error("kubectl {command}: {said}")]
    Refused {
        /// What was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// A replica does not answer.
    #[error("ask {pod}: no answer")]
    Silent {
        /// Which.
        pod: String,
    },
    /// The API server does not answer.
    #[error("{what}")]
    ApiServer {
        /// What was asked.
        what: &'static str,
        /// What it said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Of which build the pods' program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The image as it is shipped: a release build, minutes if it has not been built yet.
    Release,
    /// The program that the tests have built, with its libraries: seconds.
    Development,
}

/// The product in a lab.
pub struct LabProduct<'s> {
    sandbox: &'s Sandbox,
    client: Client,
}

impl<'s> LabProduct<'s> {
    /// Builds the image if it is not built, loads it into every node, installs the product and
    /// returns when its policies are in force.
    ///
    /// # Errors
    /// Says which step failed.
    pub async fn install(sandbox: &'s Sandbox, build: Build) -> Result<Self, LabProductError> {
        let product = Self::prepare(sandbox, build).await?;
        product.apply().await?;
        product.wait_until_in_force().await?;
        Ok(product)
    }

    /// Only loads the image.
    ///
    /// # Errors
    /// It cannot be built, or not be loaded.
    pub async fn prepare(sandbox: &'s Sandbox, build: Build) -> Result<Self, LabProductError> {
        let lab = sandbox.lab().ok_or(LabProductError::NoLab)?;
        match build {
            Build::Release => lab.load_image(&release_image().await?).await?,
            Build::Development => {
                lab.load_image(DevelopmentImage::of_ours(webhook::NAME)?.archive()).await?
            }
        }
        Ok(Self { sandbox, client: sandbox.client()? })
    }

    /// Applies all steps of the installation, each again until it is taken: a webhook that is
    /// configured and not ready yet refuses what it would judge.
    ///
    /// # Errors
    /// It is not taken.
    pub async fn apply(&self) -> Result<(), LabProductError> {
        for step in opensdn_deploy::webhook().map_err(InstallError::from)? {
            let deadline = Instant::now() + INSTALL_TIMEOUT;
            while let Err(error) = installer::apply(self.sandbox, &step).await {
                if Instant::now() > deadline {
                    return Err(error.into());
                }
                sleep(RETRY_DELAY).await;
            }
        }
        Ok(())
    }

    /// Waits until every replica is ready and runs every policy.
    ///
    /// # Errors
    /// They are not.
    pub async fn wait_until_in_force(&self) -> Result<(), LabProductError> {
        self.wait_until_rolled_out().await?;
        self.kubectl_until(&["get", CONFIGURATIONS, webhook::NAME]).await?;
        let ready = ["wait", "--for=condition=Ready", "admissionpolicies", "--all"];
        self.kubectl_until(&[&ready[..], &["--timeout=20s"]].concat()).await
    }

    /// Waits until every replica is ready, and what writes the webhook configurations is.
    ///
    /// # Errors
    /// They are not.
    pub async fn wait_until_rolled_out(&self) -> Result<(), LabProductError> {
        for deployment in [DEPLOYMENT, WRITERS] {
            let status = ["-n", NAMESPACE, "rollout", "status", deployment, "--timeout=30s"];
            self.kubectl_until(&status).await?;
        }
        Ok(())
    }

    /// Replaces every pod, as an upgrade does.
    ///
    /// # Errors
    /// The API server does not take it, or it does not come to its end.
    pub async fn restart(&self) -> Result<(), LabProductError> {
        self.kubectl(&["-n", NAMESPACE, "rollout", "restart", DEPLOYMENT, WRITERS]).await?;
        self.wait_until_rolled_out().await
    }

    /// Runs kubectl once.
    ///
    /// # Errors
    /// It fails.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, LabProductError> {
        let output = self.sandbox.kubectl(arguments).await?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(refused(arguments, &output))
    }

    async fn kubectl_until(&self, arguments: &[&str]) -> Result<(), LabProductError> {
        let deadline = Instant::now() + INSTALL_TIMEOUT;
        loop {
            match self.kubectl(arguments).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => sleep(RETRY_DELAY).await,
            }
        }
    }

    /// The replicas' pods that are not on their way out.
    ///
    /// # Errors
    /// The API server does not list them.
    pub async fn pods(&self) -> Result<Vec<Pod>, LabProductError> {
        self.pods_of(webhook::NAME).await
    }

    /// The pods that write the webhook configurations, and are not on their way out.
    ///
    /// # Errors
    /// The API server does not list them.
    pub async fn writers(&self) -> Result<Vec<Pod>, LabProductError> {
        self.pods_of(configuration::NAME).await
    }

    async fn pods_of(&self, name: &str) -> Result<Vec<Pod>, LabProductError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let selector = format!("{NAME_LABEL}={name}");
        let listed = pods.list(&ListParams::default().labels(&selector)).await;
        let listed = listed.map_err(|source| LabProductError::ApiServer {
            what: "list the webhook's pods",
            source: Box::new(source),
        })?;
        Ok(listed.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// What a replica says on its admin port, asked by way of the API server.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn admin(&self, pod: &str, path: &str) -> Result<String, LabProductError> {
        self.ask(pod, 8080, path).await
    }

    /// What the API server hears from a pod's port.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn ask(&self, pod: &str, port: u16, path: &str) -> Result<String, LabProductError> {
        let uri = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:{port}/proxy{path}");
        let failed =
            |source| LabProductError::ApiServer { what: "ask a replica", source: Box::new(source) };
        let request = http::Request::get(uri).body(Vec::new());
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer = timeout(CALL_TIMEOUT, self.client.request_text(request)).await;
        answer.map_err(|_| LabProductError::Silent { pod: pod.to_owned() })?.map_err(failed)
    }

    /// The metrics of the replicas that answer.
    pub async fn metrics(&self) -> Vec<String> {
        let pods = self.pods().await.unwrap_or_default();
        let asked = pods.iter().map(async |pod| self.admin(&pod.name_any(), "/metrics").await.ok());
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// What the replicas have written.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn logs(&self) -> Result<String, LabProductError> {
        let selector = format!("{NAME_LABEL} in ({}, {})", webhook::NAME, configuration::NAME);
        self.kubectl(&["-n", NAMESPACE, "logs", "--prefix", "--tail=200", "-l", &selector]).await
    }

    /// When the certificates of the replicas that answer expire, as they say themselves.
    pub async fn certificate_expiries(&self) -> Vec<String> {
        let metrics = self.metrics().await;
        metrics.iter().filter_map(|metrics| certificate_expiry(metrics)).collect()
    }

    /// Asks for so many replicas.
    ///
    /// # Errors
    /// The API server does not take it.
    pub async fn scale(&self, replicas: usize) -> Result<(), LabProductError> {
        let replicas = format!("--replicas={replicas}");
        let scale = ["-n", NAMESPACE, "scale", DEPLOYMENT, replicas.as_str()];
        self.kubectl(&scale).await.map(drop)
    }
}

fn refused(arguments: &[&str], output: &Output) -> LabProductError {
    LabProductError::Refused {
        command: arguments.join(" "),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    }
}

/// The archive of the webhook's image; takes minutes the first time.
async fn release_image() -> Result<PathBuf, LabProductError> {
    let script = Path::new(ROOT).join("deploy/images/build.sh");
    let output = Command::new(script).arg("webhook").output().await?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(LabProductError::Image(said));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
