//! OpenSDN itself in a sandbox: its CRDs, RBAC, webhook processes on 127.0.0.1 behind a balancer,
//! and the built-in policies, from the files that a cluster gets. Deliberately not here: the
//! control plane (`sandbox`), and how the product is installed on a user's cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_deploy::names::{NAMESPACE, configuration, webhook};
use opensdn_deploy::{Phase, Step};
use opensdn_reserved_port::ReservedPort;
use serde_json::{Value, json};

use crate::balancer::{self, Backend, Balancer};
use crate::installer::{self, InstallError};
use crate::programs::{ProgramsError, program};
use crate::sandbox::{AccessError, Cluster, LogTail, Program, ProgramError};

/// How long the webhook may take to be ready and its policies to be in force: on a busy machine
/// that has not compiled them yet, minutes.
const READY: Duration = Duration::from_secs(240);
/// How long a replica may take to end.
const DRAIN: Duration = Duration::from_secs(40);

/// Why the product is not installed.
#[derive(Debug, thiserror::Error)]
pub enum ProductError {
    /// No client of the sandbox.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A step of the installation failed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The API server does not answer.
    #[error("read the policies")]
    Policy(#[source] kube::Error),
    /// The webhook's program is not there.
    #[error("find the program {}: build it with `cargo build -p opensdn-webhook`", .0.display())]
    NoProgram(PathBuf),
    /// It does not build.
    #[error(transparent)]
    Build(#[from] ProgramsError),
    /// The API server does not answer.
    #[error("read the webhook configurations")]
    Configuration(#[source] kube::Error),
    /// The API server does not answer, or the webhook has made no token.
    #[error("read the token in the webhook's paths")]
    PathToken(#[source] kube::Error),
    /// No free port, or no balancer.
    #[error("listen on 127.0.0.1")]
    Listen(#[from] std::io::Error),
    /// A webhook process did not start or ended.
    #[error("start the webhook")]
    Webhook(#[from] ProgramError),
    /// The webhook runs, and its policies were not taken.
    #[error("{source}; {log}")]
    Policies {
        /// What was said.
        source: Box<InstallError>,
        /// What the first replica has logged.
        log: Box<LogTail>,
    },
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
    /// Processes that write the webhook configurations; none: each replica does everything.
    writers: usize,
    arguments: Vec<String>,
    cache: Option<PathBuf>,
    policies: bool,
}

/// The installed product. Dropping it ends its processes; what it stored stays.
pub struct Product {
    webhooks: Vec<Program>,
    backends: Vec<Backend>,
    writers: Vec<(Program, SocketAddr)>,
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
            writers: 0,
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

    /// As a cluster has it: who answers reviews does not write the webhook configurations, and so many
    /// processes of another account do.
    #[must_use]
    pub fn apart(mut self, writers: usize) -> Self {
        self.writers = writers;
        self
    }

    /// A further flag of the webhook.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Keeps compiled policies in this folder, which no other user may write to. Default: one that
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
    pub async fn install(self, cluster: &Cluster) -> Result<Product, ProductError> {
        let product = self.prepare(cluster).await?;
        for number in 0..self.replicas {
            product.start_replica(number)?;
        }
        for number in 0..self.writers {
            product.start_writer(number)?;
        }
        product.wait_until_ready(cluster).await?;
        let steps = opensdn_deploy::webhook().map_err(InstallError::from)?;
        for step in steps.iter().filter(|step| step.phase > Phase::Program && self.policies) {
            let applied = installer::apply(cluster, step).await;
            applied.map_err(|source| product.with_log(source))?;
            wait_for_policies(cluster).await?;
        }
        Ok(product)
    }

    /// Installs what comes before the processes, and starts none of them.
    ///
    /// # Errors
    /// Names the part that could not be installed.
    pub async fn prepare(&self, cluster: &Cluster) -> Result<Product, ProductError> {
        let steps = opensdn_deploy::webhook().map_err(InstallError::from)?;
        for step in steps.iter().filter(|step| step.phase < Phase::Program) {
            installer::apply(cluster, step).await?;
        }
        if self.writers == 0 {
            installer::apply(cluster, &rights_of_both(&steps)).await?;
        }
        let (mut backends, mut ports) = (Vec::new(), Vec::new());
        for _ in 0..self.replicas {
            let (serve, admin) = (ReservedPort::new()?, ReservedPort::new()?);
            backends.push(Backend { serve: serve.address(), admin: admin.address() });
            ports.extend([serve, admin]);
        }
        let balancer = Balancer::start(backends.clone()).await?;
        let account = cluster.kubeconfig_for_service_account(NAMESPACE, webhook::NAME).await?;
        let webhooks = backends.iter().enumerate().map(|(number, backend)| {
            let run = if self.writers == 0 { "all" } else { "reviews" };
            let ports = [
                format!("--listen={}", backend.serve),
                format!("--admin-listen={}", backend.admin),
                format!("--run={run}"),
                "--tls-name=127.0.0.1".to_owned(),
            ];
            self.program(cluster, format!("webhook-{number}"), &balancer, &account, &ports)
        });
        let webhooks = webhooks.collect();
        let account =
            cluster.kubeconfig_for_service_account(NAMESPACE, configuration::NAME).await?;
        let mut writers = Vec::new();
        for number in 0..self.writers {
            let admin = ReservedPort::new()?;
            let flags =
                [format!("--admin-listen={}", admin.address()), "--run=configuration".to_owned()];
            let name = format!("configuration-{number}");
            let program = self.program(cluster, name, &balancer, &account, &flags);
            writers.push((program, admin.address()));
            ports.push(admin);
        }
        Ok(Product { webhooks, backends, writers, balancer, _ports: ports })
    }

    fn program(
        &self,
        cluster: &Cluster,
        name: String,
        balancer: &Balancer,
        account: &Path,
        flags: &[String],
    ) -> Program {
        let cache = self.cache.clone().unwrap_or_else(|| cache_folder(cluster));
        let mut arguments = vec![
            format!("--namespace={NAMESPACE}"),
            format!("--replica={name}"),
            format!("--webhook-url=https://{}", balancer.address()),
            format!("--cache-folder={}", cache.display()),
            "--log-format=text".to_owned(),
        ];
        arguments.extend(flags.iter().chain(&self.arguments).cloned());
        Program::new(name, self.program.clone(), arguments, cluster.data_folder())
            .variable("KUBECONFIG", account.as_os_str())
    }
}

/// Lets one process do everything: the account of those that answer reviews gets the rights of those that
/// write the webhook configurations as well.
fn rights_of_both(steps: &[Step]) -> Step {
    let bindings = steps.iter().flat_map(|step| &step.objects).filter(|object| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        kind.ends_with("RoleBinding")
            && object.pointer("/metadata/name") == Some(&json!(configuration::NAME))
    });
    let objects = bindings.cloned().map(|mut binding| {
        for (pointer, name) in
            [("/metadata/name", "opensdn-webhook-all"), ("/subjects/0/name", webhook::NAME)]
        {
            if let Some(value) = binding.pointer_mut(pointer) {
                *value = json!(name);
            }
        }
        binding
    });
    Step { phase: Phase::Access, objects: objects.collect() }
}

impl Product {
    fn with_log(&self, source: InstallError) -> ProductError {
        match self.webhooks.first() {
            Some(webhook) => {
                let log = Box::new(webhook.log_tail());
                ProductError::Policies { source: Box::new(source), log }
            }
            None => source.into(),
        }
    }

    /// Where the API server sends reviews.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.balancer.address()
    }

    /// Where each replica serves requests and its readiness.
    #[must_use]
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// The path of validating reviews, as API servers use it now: for a test that calls a replica
    /// itself.
    ///
    /// # Errors
    /// There is no Secret with its token.
    pub async fn validate_path(&self, cluster: &Cluster) -> Result<String, ProductError> {
        let secrets: Api<Secret> = Api::namespaced(cluster.client()?, NAMESPACE);
        let secret = secrets.get(webhook::PATH_SECRET).await.map_err(ProductError::PathToken)?;
        let token = secret.data.unwrap_or_default().remove("current").unwrap_or_default();
        Ok(format!("/validate/{}", String::from_utf8_lossy(&token.0)))
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

    /// Starts a process that writes the webhook configurations, or starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_writer(&self, number: usize) -> Result<(), ProductError> {
        self.writers.get(number).map_or(Ok(()), |(program, _)| Ok(program.start()?))
    }

    /// Kills such a process at once.
    pub fn kill_writer(&self, number: usize) {
        if let Some((program, _)) = self.writers.get(number) {
            program.kill();
        }
    }

    /// Where such a process shows its metrics.
    #[must_use]
    pub fn writer_admin(&self, number: usize) -> Option<SocketAddr> {
        self.writers.get(number).map(|(_, admin)| *admin)
    }

    /// Whether such a process says that it is ready.
    pub async fn is_writer_ready(&self, number: usize) -> bool {
        match self.writer_admin(number) {
            Some(admin) => balancer::is_ready(admin).await == Some(true),
            None => false,
        }
    }

    /// Whether a replica gets new connections.
    #[must_use]
    pub fn is_replica_ready(&self, number: usize) -> bool {
        self.backends.get(number).is_some_and(|backend| self.balancer.sends_to(backend))
    }

    /// Waits until every replica is ready and the API server calls them.
    ///
    /// # Errors
    /// They are not, or it does not.
    pub async fn wait_until_ready(&self, cluster: &Cluster) -> Result<(), ProductError> {
        let deadline = Instant::now() + READY;
        for backend in &self.backends {
            while !self.balancer.sends_to(backend) {
                for program in &self.webhooks {
                    program.check_alive()?;
                }
                if Instant::now() > deadline {
                    return Err(not_ready(cluster, "every replica ready"));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        // Made by the process that leads as soon as it and a replica are ready.
        let client = cluster.client()?;
        while !is_called(&client).await? {
            if Instant::now() > deadline {
                return Err(not_ready(cluster, "the webhook configurations written"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Compiled policies are kept over sandboxes: compiling all of them takes seconds.
fn cache_folder(cluster: &Cluster) -> PathBuf {
    let cache = opensdn_user_folders::cache();
    cache.unwrap_or_else(|| cluster.data_folder().join("opensdn")).join("policies")
}

/// As `kubectl wait --for=condition=Ready admissionpolicies --all` does, which takes a tenth of a second of processor time to start.
async fn wait_for_policies(cluster: &Cluster) -> Result<(), ProductError> {
    let policies: Api<AdmissionPolicy> = Api::all(cluster.client()?);
    let deadline = Instant::now() + READY;
    loop {
        let all = policies.list(&ListParams::default()).await;
        let all = all.map_err(ProductError::Policy)?.items;
        let missing: Vec<String> =
            all.iter().filter(|one| !is_ready(one)).map(ResourceExt::name_any).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(not_ready(
                cluster,
                &format!("these policies Ready: {}", missing.join(", ")),
            ));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_ready(policy: &AdmissionPolicy) -> bool {
    let conditions = policy.status.iter().flat_map(|status| &status.conditions).flatten();
    let mut ready = conditions.filter(|one| one.type_ == "Ready" && one.status == "True");
    // Older than what is to be in force it says nothing of that.
    ready.any(|one| {
        one.observed_generation.is_none_or(|seen| Some(seen) == policy.metadata.generation)
    })
}

fn not_ready(cluster: &Cluster, what: &str) -> ProductError {
    let log = cluster.data_folder().join("logs/webhook-0.log").display().to_string();
    ProductError::NotReady { what: what.to_owned(), log }
}

/// Whether the API server calls the webhook.
async fn is_called(client: &Client) -> Result<bool, ProductError> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let read: kube::Result<bool> = async {
        let mutating = mutating.get_opt(webhook::NAME).await?.is_some();
        Ok(mutating && validating.get_opt(webhook::NAME).await?.is_some())
    }
    .await;
    read.map_err(ProductError::Configuration)
}
