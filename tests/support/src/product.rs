//! OpenSDN itself in a sandbox: its CRDs, RBAC, webhook processes on 127.0.0.1 behind a balancer,
//! and the built-in policies, from the files that a cluster gets. Deliberately not here: the
//! control plane (`sandbox`), and how the product is installed on a user's cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use opensdn_reserved_port::ReservedPort;

use crate::balancer::{Backend, Balancer};
use crate::programs::{ProgramsError, program};
use crate::sandbox::{AccessError, KubectlError, Program, ProgramError, Sandbox};

/// How long the API server may take to serve a new kind.
const ESTABLISHED: Duration = Duration::from_secs(60);
/// How long the webhook may take to be ready and its policies to be in force: on a busy machine
/// that has not compiled them yet, minutes.
const READY: Duration = Duration::from_secs(240);
/// How long a replica may take to end.
const DRAIN: Duration = Duration::from_secs(40);
/// Where the webhook's ServiceAccount, Leases and CA live.
pub const NAMESPACE: &str = "opensdn-system";
/// The webhook configurations of both kinds.
const CONFIGURATION: &str = "opensdn-webhook";
/// The folder of the files that a cluster gets.
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/webhook");

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
    /// kubectl does not run.
    #[error("run kubectl")]
    Kubectl(#[from] KubectlError),
    /// The API server refused a file of `deploy/webhook`.
    #[error("apply deploy/webhook/{file}: {said}")]
    Apply {
        /// The file.
        file: String,
        /// What kubectl said.
        said: String,
    },
    /// The webhook's program is not there.
    #[error("find the program {}: build it with `cargo build -p opensdn-webhook`", .0.display())]
    NoProgram(PathBuf),
    /// It does not build.
    #[error(transparent)]
    Build(#[from] ProgramsError),
    /// The API server does not answer.
    #[error("read the webhook configurations")]
    Configuration(#[source] kube::Error),
    /// No free port, or no balancer.
    #[error("listen on 127.0.0.1")]
    Listen(#[from] std::io::Error),
    /// A webhook process did not start or ended.
    #[error("start the webhook")]
    Webhook(#[from] ProgramError),
    /// A webhook process runs, but the policies are not in force.
    #[error("see {what} within {} s; the webhook's log is {log}", READY.as_secs())]
    NotReady {
        /// What was waited for.
        what: String,
        /// Where to look.
        log: String,
    },
}

/// How the product is installed.
#[derive(Clone, Debug)]
pub struct Installation {
    program: PathBuf,
    replicas: usize,
    arguments: Vec<String>,
    cache: Option<PathBuf>,
    policies: bool,
}

/// The installed product. Dropping it ends its processes; what it stored stays.
pub struct Product {
    webhooks: Vec<Program>,
    backends: Vec<Backend>,
    balancer: Balancer,
    _ports: Vec<ReservedPort>,
}

impl Installation {
    /// One replica of this program (`opensdn-webhook`), with the built-in policies.
    #[must_use]
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            replicas: 1,
            arguments: Vec::new(),
            cache: None,
            policies: true,
        }
    }

    /// The program as it is built from this workspace.
    ///
    /// # Errors
    /// It does not build.
    pub fn built() -> Result<Self, ProductError> {
        Ok(Self::of(program("opensdn-webhook")?))
    }

    /// The program that was built beside the one that runs.
    ///
    /// # Errors
    /// There is none.
    pub fn beside_this_program() -> Result<Self, ProductError> {
        let program = std::env::current_exe()?.with_file_name("opensdn-webhook");
        if program.is_file() {
            Ok(Self::of(program))
        } else {
            Err(ProductError::NoProgram(program))
        }
    }

    /// So many replicas.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// A further flag of the webhook.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Keeps compiled policies in this folder, which nobody else may write to. Default: one that
    /// all sandboxes of this user share.
    #[must_use]
    pub fn cache_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// No AdmissionPolicy objects: nothing is enforced until some are made.
    #[must_use]
    pub fn without_policies(mut self) -> Self {
        self.policies = false;
        self
    }

    /// Installs everything and returns when the policies are in force.
    ///
    /// # Errors
    /// Names the part that could not be installed.
    pub async fn install(self, sandbox: &Sandbox) -> Result<Product, ProductError> {
        let client = sandbox.client()?;
        install_crds(&client, &opensdn_crds::all()).await?;
        for file in ["namespace.yaml", "rbac.yaml", "unique-claims.yaml"] {
            apply(sandbox, file).await?;
        }
        let product = self.start(sandbox).await?;
        product.wait_until_ready(sandbox).await?;
        if self.policies {
            apply(sandbox, "policies.yaml").await?;
            wait_for_policies(sandbox).await?;
        }
        Ok(product)
    }

    async fn start(&self, sandbox: &Sandbox) -> Result<Product, ProductError> {
        let (mut backends, mut ports) = (Vec::new(), Vec::new());
        for _ in 0..self.replicas {
            let (serve, admin) = (ReservedPort::new()?, ReservedPort::new()?);
            backends.push(Backend { serve: serve.address(), admin: admin.address() });
            ports.extend([serve, admin]);
        }
        let balancer = Balancer::start(backends.clone()).await?;
        let account = "opensdn-webhook";
        let kubeconfig = sandbox.kubeconfig_for_service_account(NAMESPACE, account).await?;
        let cache = self.cache.clone().unwrap_or_else(|| cache_folder(sandbox));
        let mut webhooks = Vec::new();
        for (number, backend) in backends.iter().enumerate() {
            let replica = format!("webhook-{number}");
            let mut arguments = vec![
                format!("--listen={}", backend.serve),
                format!("--admin-listen={}", backend.admin),
                format!("--namespace={NAMESPACE}"),
                format!("--replica={replica}"),
                format!("--webhook-url=https://{}", balancer.address()),
                "--tls-name=127.0.0.1".to_owned(),
                format!("--cache-folder={}", cache.display()),
                "--log-format=text".to_owned(),
            ];
            arguments.extend(self.arguments.iter().cloned());
            let folder = sandbox.data_folder();
            let program = Program::new(replica, self.program.clone(), arguments, folder)
                .variable("KUBECONFIG", kubeconfig.as_os_str());
            program.start()?;
            webhooks.push(program);
        }
        Ok(Product { webhooks, backends, balancer, _ports: ports })
    }
}

impl Product {
    /// Where the API server sends reviews.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.balancer.address()
    }

    /// Where each replica serves and tells how it is.
    #[must_use]
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// The process of a replica, while it runs.
    #[must_use]
    pub fn process_id(&self, number: usize) -> Option<u32> {
        self.webhooks.get(number).and_then(Program::id)
    }

    /// Kills a replica at once, as when its node dies.
    pub fn kill_replica(&self, number: usize) {
        if let Some(program) = self.webhooks.get(number) {
            program.kill();
        }
    }

    /// Asks a replica to end, as the kubelet does, and returns when it has.
    pub async fn drain_replica(&self, number: usize) {
        if let Some(program) = self.webhooks.get(number) {
            program.stop_within(DRAIN).await;
        }
    }

    /// Starts a replica again.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_replica(&self, number: usize) -> Result<(), ProductError> {
        self.webhooks.get(number).map_or(Ok(()), |program| Ok(program.start()?))
    }

    async fn wait_until_ready(&self, sandbox: &Sandbox) -> Result<(), ProductError> {
        let deadline = Instant::now() + READY;
        for backend in &self.backends {
            while !self.balancer.sends_to(backend) {
                for webhook in &self.webhooks {
                    webhook.check_alive()?;
                }
                if Instant::now() > deadline {
                    return Err(not_ready(sandbox, "every replica ready"));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        // Made by the leading replica as soon as it is ready.
        let client = sandbox.client()?;
        while !is_called(&client).await? {
            if Instant::now() > deadline {
                return Err(not_ready(sandbox, "the webhook configurations written"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Compiled policies are kept over sandboxes: compiling all of them takes seconds.
fn cache_folder(sandbox: &Sandbox) -> PathBuf {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home);
    let folder = cache.unwrap_or_else(|| sandbox.data_folder().to_owned());
    folder.join("opensdn/policies")
}

async fn apply(sandbox: &Sandbox, file: &str) -> Result<(), ProductError> {
    let path = format!("{DEPLOY}/{file}");
    let output = sandbox.kubectl(&["apply", "--server-side", "-f", &path]).await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ProductError::Apply { file: file.to_owned(), said })
}

async fn wait_for_policies(sandbox: &Sandbox) -> Result<(), ProductError> {
    let timeout = format!("--timeout={}s", READY.as_secs());
    let arguments =
        ["wait", "--for=condition=Ready", "admissionpolicies", "--all", timeout.as_str()];
    let output = sandbox.kubectl(&arguments).await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(not_ready(sandbox, &format!("every policy in force ({said})")))
}

fn not_ready(sandbox: &Sandbox, what: &str) -> ProductError {
    let log = sandbox.data_folder().join("logs/webhook-0.log").display().to_string();
    ProductError::NotReady { what: what.to_owned(), log }
}

/// Whether the API server has been told to call the webhook.
async fn is_called(client: &Client) -> Result<bool, ProductError> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let read: kube::Result<bool> = async {
        let mutating = mutating.get_opt(CONFIGURATION).await?.is_some();
        Ok(mutating && validating.get_opt(CONFIGURATION).await?.is_some())
    }
    .await;
    read.map_err(ProductError::Configuration)
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
