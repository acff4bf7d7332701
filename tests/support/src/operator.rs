//! The operator in a sandbox: its CRDs, namespaces and rights from the files that a cluster gets, and its
//! processes on this machine, with the rights of its account. What it makes runs on the sandbox's nodes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use opensdn_deploy::names::operator::{NAME, NAMESPACE};
use opensdn_deploy::{Phase, RenderError, Step, Values};
use opensdn_reserved_port::ReservedPort;

use crate::programs::program;
use crate::sandbox::{Cluster, Program};
use crate::signal::{self, Signal};
use crate::{Failed, Outcome, admin_port, installer};

/// How long a replica may take to end by itself.
const DRAIN: Duration = Duration::from_secs(20);
/// The namespace whose components it looks after, unless others are named.
const WATCHED: &str = "tf";

/// The installed operator. Dropping it ends its processes; what it made stays.
pub struct Operator {
    replicas: Vec<(Program, SocketAddr)>,
    _ports: Vec<ReservedPort>,
    cloud_check_interval: String,
    introspect_interval: String,
    /// For how many seconds the Lease holds.
    lease: u32,
    /// The namespaces for which it is installed.
    watched: Vec<String>,
}

impl Operator {
    fn new() -> Self {
        Self {
            replicas: Vec::new(),
            _ports: Vec::new(),
            cloud_check_interval: "1s".to_owned(),
            introspect_interval: "0s".to_owned(),
            // A replica ends where it cannot renew its Lease, and no kubelet starts it again here. With several
            // control planes on two cores an API server may not answer for longer than the default.
            lease: 60,
            watched: vec![WATCHED.to_owned()],
        }
    }

    /// Installs it for the namespace `tf` and starts so many replicas.
    ///
    /// # Errors
    /// Something of it cannot be installed or started.
    pub async fn install(cluster: &Cluster, replicas: usize) -> Result<Self, Failed> {
        // Clouds of tests are on this machine.
        Self::install_looking_at_clouds_every(cluster, replicas, "1s").await
    }

    /// The same; clouds that report no changes are looked at after that time.
    ///
    /// # Errors
    /// Something of it cannot be installed or started.
    pub async fn install_looking_at_clouds_every(
        cluster: &Cluster,
        replicas: usize,
        interval: &str,
    ) -> Result<Self, Failed> {
        let operator = Self { cloud_check_interval: interval.to_owned(), ..Self::new() };
        operator.install_replicas(cluster, replicas).await
    }

    /// One that asks the daemons of its pods, too, every second.
    ///
    /// # Errors
    /// Something of it cannot be installed or started.
    pub async fn install_asking_daemons(cluster: &Cluster) -> Result<Self, Failed> {
        let operator = Self { introspect_interval: "1s".to_owned(), ..Self::new() };
        operator.install_replicas(cluster, 1).await
    }

    /// One for several namespaces, and no others.
    ///
    /// # Errors
    /// Something of it cannot be installed or started.
    pub async fn install_for(cluster: &Cluster, namespaces: &[&str]) -> Result<Self, Failed> {
        let watched = namespaces.iter().map(|&one| one.to_owned()).collect();
        let operator = Self { watched, ..Self::new() };
        operator.install_replicas(cluster, 1).await
    }

    async fn install_replicas(
        mut self,
        cluster: &Cluster,
        replicas: usize,
    ) -> Result<Self, Failed> {
        for step in self.steps()?.iter().filter(|step| step.phase < Phase::Program) {
            installer::apply(cluster, step).await?;
        }
        let account = cluster.kubeconfig_for_service_account(NAMESPACE, NAME).await?;
        let watched = self.watched.join(",");
        for number in 0..replicas {
            self.add(cluster, &account, &format!("operator-{number}"), NAMESPACE, &watched)?;
        }
        (0..replicas).try_for_each(|number| self.start(number))?;
        Ok(self)
    }

    /// For other namespaces than that of the files it is installed with all else that there is.
    fn steps(&self) -> Result<Vec<Step>, RenderError> {
        if self.watched == [WATCHED] {
            return opensdn_deploy::operator();
        }
        let mut values = Values::default();
        values.operator.watched_namespaces.clone_from(&self.watched);
        opensdn_deploy::render(&values)
    }

    /// Starts one for one namespace, in which its Lease is too, with a kubeconfig of the caller's.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_with(
        cluster: &Cluster,
        kubeconfig: &Path,
        namespace: &str,
    ) -> Result<Self, Failed> {
        let mut operator = Self::new();
        let name = format!("operator-of-{namespace}");
        operator.add(cluster, kubeconfig, &name, namespace, namespace)?;
        operator.start(0)?;
        Ok(operator)
    }

    /// Several for one namespace, each with a kubeconfig of its own and none started yet, of which one leads; who does not renew
    /// the Lease for so many seconds has lost it.
    ///
    /// # Errors
    /// There is no port.
    pub fn beside_each_other(
        cluster: &Cluster,
        kubeconfigs: &[&Path],
        namespace: &str,
        lease: u32,
    ) -> Result<Self, Failed> {
        let mut operator = Self { lease, ..Self::new() };
        for (number, kubeconfig) in kubeconfigs.iter().enumerate() {
            let name = format!("operator-{number}-of-{namespace}");
            operator.add(cluster, kubeconfig, &name, namespace, namespace)?;
        }
        Ok(operator)
    }

    /// The same, for all namespaces; its Lease is in one of them.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_everywhere(
        cluster: &Cluster,
        kubeconfig: &Path,
        own: &str,
    ) -> Result<Self, Failed> {
        let mut operator = Self::new();
        operator.add(cluster, kubeconfig, "operator-of-all", own, "")?;
        operator.start(0)?;
        Ok(operator)
    }

    fn add(
        &mut self,
        cluster: &Cluster,
        kubeconfig: &Path,
        name: &str,
        own: &str,
        watched: &str,
    ) -> Outcome {
        let port = ReservedPort::new()?;
        let arguments = vec![
            format!("--namespaces={watched}"),
            format!("--namespace={own}"),
            format!("--replica={name}"),
            format!("--admin-listen={}", port.address()),
            "--log-format=text".to_owned(),
            // kwok's pods run nothing.
            "--simulated-pods".to_owned(),
            format!("--leader-elect-lease-duration={}s", self.lease),
            format!("--leader-elect-renew-deadline={}s", self.lease * 3 / 4),
            format!("--cloud-check-interval={}", self.cloud_check_interval),
            "--forget-nodes-after=1s".to_owned(),
            format!("--introspect-interval={}", self.introspect_interval),
        ];
        let program =
            Program::new(name.to_owned(), program(NAME)?, arguments, cluster.data_folder());
        self.replicas
            .push((program.variable("KUBECONFIG", kubeconfig.as_os_str()), port.address()));
        self._ports.push(port);
        Ok(())
    }

    /// Starts a replica unless it runs.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self, number: usize) -> Outcome {
        if let Some((program, _)) = self.replicas.get(number) {
            program.start()?;
        }
        Ok(())
    }

    /// Ends a replica as the kubelet does.
    pub async fn stop(&self, number: usize) {
        if let Some((program, _)) = self.replicas.get(number) {
            program.stop_within(DRAIN).await;
        }
    }

    /// Ends a replica without a warning.
    pub fn kill(&self, number: usize) {
        if let Some((program, _)) = self.replicas.get(number) {
            program.kill();
        }
    }

    /// Stops a replica where it is, its connections open, or has it continue.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, number: usize, signal: Signal) -> Outcome {
        let process = self.replicas.get(number).and_then(|(program, _)| program.id());
        Ok(signal::send(signal, process.ok_or("the replica does not run")?)?)
    }

    /// Whether a replica runs.
    #[must_use]
    pub fn runs(&self, number: usize) -> bool {
        self.replicas.get(number).is_some_and(|(program, _)| program.id().is_some())
    }

    /// The sum of a metric over all of its labels; 0 where the replica does not answer.
    pub async fn metric(&self, number: usize, name: &str) -> f64 {
        let text = self.metrics(number).await;
        let values = text.lines().filter_map(|line| {
            let (metric, value) = line.rsplit_once(' ')?;
            let metric = metric.split('{').next()?;
            (metric == name).then(|| value.parse::<f64>().ok()).flatten()
        });
        values.sum()
    }

    /// All of its metrics; nothing where the replica does not answer.
    pub async fn metrics(&self, number: usize) -> String {
        let Some((_, admin)) = self.replicas.get(number) else { return String::new() };
        admin_port::get(*admin, "/metrics").await.unwrap_or_default()
    }

    /// Its resident memory in MiB, while it runs.
    #[must_use]
    pub fn memory(&self, number: usize) -> Option<f64> {
        self.mebibytes(number, "VmRSS:")
    }

    /// The most that was resident of it, in MiB, while it runs.
    #[must_use]
    pub fn peak_memory(&self, number: usize) -> Option<f64> {
        self.mebibytes(number, "VmHWM:")
    }

    fn mebibytes(&self, number: usize, of: &str) -> Option<f64> {
        let process = self.replicas.get(number)?.0.id()?;
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(of))?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes / 1024.0)
    }

    /// The seconds that processors have worked for it, while it runs (proc_pid_stat(5), fields 14 and 15).
    #[must_use]
    pub fn processor_time(&self, number: usize) -> Option<f64> {
        let process = self.replicas.get(number)?.0.id()?;
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let (user, system): (f64, f64) =
            (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // Linux counts in hundredths on every architecture that we build for.
        Some((user + system) / 100.0)
    }
}
