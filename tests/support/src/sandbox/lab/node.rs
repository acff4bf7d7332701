//! A node of the lab: a machine with containerd, kubelet and kube-proxy. Deliberately not here:
//! their configuration (`configuration`), and when the cluster calls the node Ready (`lab`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::addresses::NodePlan;
use super::cgroups;
use super::configuration::{self, SOCKET};
use super::fault::Daemon;
use super::machine::{Machine, MachineError, said};
use super::wiring::{self, NODE_FOLDER, PROGRAMS};
use super::{LabError, volumes};
use crate::sandbox::User;
use crate::sandbox::access::Access;
use crate::sandbox::certificates::write_private;
use crate::sandbox::program::{Program, ProgramError, wait_until};

/// What nodes of one lab have in common.
pub(super) struct Surroundings<'a> {
    pub(super) lab: &'a str,
    pub(super) folder: &'a Path,
    pub(super) programs: &'a Path,
    pub(super) images: &'a [PathBuf],
    pub(super) all: &'a [NodePlan],
}

/// A node, whether it runs or not. Its disk stays when it is killed.
pub struct Node {
    plan: NodePlan,
    cgroup: String,
    folder: PathBuf,
    running: Mutex<Option<Arc<Running>>>,
}

/// A node that runs.
pub(crate) struct Running {
    // Dropped in this order.
    pub(super) kubelet: Program,
    pub(super) kube_proxy: Program,
    pub(super) containerd: Program,
    pub(super) machine: Arc<Machine>,
}

impl Node {
    /// Writes what the node needs to know; it does not run yet.
    pub(super) fn prepare(
        plan: NodePlan,
        around: &Surroundings<'_>,
        access: &Access,
    ) -> Result<Self, LabError> {
        let folder = around.folder.join("nodes").join(&plan.name);
        let node = Self {
            cgroup: format!("{}-{}", super::group_prefix(around.lab), plan.name),
            folder,
            plan,
            running: Mutex::new(None),
        };
        node.write_files(access)?;
        Ok(node)
    }

    /// Name and addresses.
    #[must_use]
    pub fn plan(&self) -> &NodePlan {
        &self.plan
    }

    /// Its name, such as `node-1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// The process of one of its programs, while it runs.
    #[must_use]
    pub fn process_of(&self, daemon: Daemon) -> Option<u32> {
        daemon.of(self.lock().as_ref()?).id()
    }

    /// Where its files are on this machine.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The machine and its programs.
    pub(super) fn running(&self) -> Result<Arc<Running>, LabError> {
        self.lock().clone().ok_or_else(|| LabError::NotRunning { node: self.name().to_owned() })
    }

    /// Switches the node off at once, as by its power cord.
    pub(super) fn kill(&self) {
        if let Some(running) = self.lock().take() {
            // Not by dropping it: a fault that is yet to be undone may hold it.
            running.kill();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Running>>> {
        // Replaced as a whole, so a panic elsewhere cannot break it.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_files(&self, access: &Access) -> Result<(), LabError> {
        let etc = self.folder.join("etc/cni/net.d");
        fs::create_dir_all(&etc).map_err(|source| LabError::Files { path: etc.clone(), source })?;
        let name = &self.plan.name;
        let address = self.plan.address.to_string();
        let url = super::api_server_url();
        let certificate = access.authority().server(name, &[name, &address])?;
        let kubelet = User::new(format!("system:node:{name}")).in_group("system:nodes");
        let files = [
            ("ca.crt", access.ca_pem()),
            ("kubelet.crt", certificate.certificate),
            ("kubelet.key", certificate.key),
            ("kubelet.json", configuration::kubelet(&self.cgroup).to_string()),
            ("kubelet.kubeconfig", access.kubeconfig_text(&kubelet, &url)?),
            ("kube-proxy.json", configuration::kube_proxy(&self.plan).to_string()),
            (
                "kube-proxy.kubeconfig",
                access.kubeconfig_text(&User::new("system:kube-proxy"), &url)?,
            ),
            ("containerd.toml", configuration::containerd()),
            ("etc/cni/net.d/10-lab.conflist", configuration::pod_network(&self.plan).to_string()),
        ];
        for (file, text) in files {
            write_private(&self.folder.join(file), &text)?;
        }
        Ok(())
    }

    /// Starts the machine and its programs, and returns when kubelet has been started. `plug`
    /// gives the machine its cable.
    pub(super) async fn start(
        &self,
        around: &Surroundings<'_>,
        plug: impl Fn(&Machine) -> Result<(), MachineError>,
    ) -> Result<(), LabError> {
        // None outlives a power cut. For each that is left a kubelet looks for its container, three seconds long, and
        // the node is not Ready before.
        cgroups::remove_one(&self.cgroup);
        cgroups::make(&self.cgroup)?;
        let machine = Machine::start(around.lab, self.name(), around.programs, around.folder)?;
        let machine = Arc::new(machine);
        plug(&machine)?;
        let folder = self.folder.display().to_string();
        let programs = around.programs.display().to_string();
        machine.run("mount its files", &wiring::files(self.name(), &folder, &programs))?;
        machine.run("set its addresses", &wiring::node(&self.plan, around.all))?;
        machine.run("mount its volumes", &volumes::mount_all())?;
        let program = |name: &str, path: &str, arguments: Vec<String>| {
            Program::new(format!("{}-{name}", self.name()), path.into(), arguments, around.folder)
                .surrounded_by(machine.surroundings())
        };
        let containerd = program(
            "containerd",
            "/usr/bin/containerd",
            vec![format!("--config={NODE_FOLDER}/containerd.toml")],
        );
        let kubelet =
            program("kubelet", &format!("{PROGRAMS}/kubelet"), kubelet_arguments(&self.plan));
        let kube_proxy = program(
            "kube-proxy",
            &format!("{PROGRAMS}/kube-proxy"),
            vec![format!("--config={NODE_FOLDER}/kube-proxy.json")],
        );
        let running = Running { kubelet, kube_proxy, containerd, machine };
        running.start_programs(around.images).await?;
        *self.lock() = Some(Arc::new(running));
        Ok(())
    }

    /// Fails when the node has gone off by itself.
    pub(super) fn check_alive(&self) -> Result<(), ProgramError> {
        self.lock().as_ref().map_or(Ok(()), |running| running.machine.program().check_alive())
    }

    /// Starts programs again that have ended by themselves, as on any node. A kubelet that
    /// meets no containerd ends, for one.
    pub(super) fn restart_ended(&self) -> Result<(), ProgramError> {
        let Some(running) = self.lock().clone() else { return Ok(()) };
        running.machine.program().check_alive()?;
        [&running.containerd, &running.kubelet, &running.kube_proxy]
            .into_iter()
            .try_for_each(Program::start_if_ended)
    }

    /// Ids of its own programs, the first process of its machine among them.
    pub(super) fn process_ids(&self) -> Vec<u32> {
        let Some(running) = self.lock().clone() else { return Vec::new() };
        let programs = [&running.kubelet, &running.kube_proxy, &running.containerd];
        programs.into_iter().filter_map(Program::id).chain([running.machine.process()]).collect()
    }
}

impl Running {
    fn kill(&self) {
        self.machine.program().kill();
        for program in [&self.kubelet, &self.kube_proxy, &self.containerd] {
            program.kill();
        }
    }

    async fn start_programs(&self, images: &[PathBuf]) -> Result<(), LabError> {
        self.containerd.start()?;
        wait_until(&self.containerd, &[&self.containerd], || async {
            let version = self.ctr(&["version"], None).await;
            version.map(drop).map_err(|error| error.to_string())
        })
        .await?;
        for image in images {
            self.import(image).await?;
        }
        self.kubelet.start()?;
        self.kube_proxy.start()?;
        Ok(())
    }

    /// Loads an image archive into the node's containerd.
    pub(super) async fn import(&self, archive: &Path) -> Result<String, LabError> {
        let file = File::open(archive)
            .map_err(|source| LabError::Files { path: archive.to_owned(), source })?;
        Ok(self.ctr(&["images", "import", "-"], Some(file)).await?)
    }

    /// containerd's own client, in the namespace of Kubernetes.
    pub(super) async fn ctr(
        &self,
        arguments: &[&str],
        input: Option<File>,
    ) -> Result<String, MachineError> {
        let ctr = ["--address", SOCKET, "--namespace", "k8s.io"];
        self.run("/usr/bin/ctr", &[&ctr, arguments].concat(), input).await
    }

    async fn run(
        &self,
        program: &str,
        arguments: &[&str],
        input: Option<File>,
    ) -> Result<String, MachineError> {
        let mut command = self.machine.surroundings().command(Path::new(program));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .current_dir("/")
            .stdin(input.map_or_else(std::process::Stdio::null, Into::into));
        let what = format!("{program} {}", arguments.join(" "));
        let name = self.machine.name();
        let output = tokio::process::Command::from(command).kill_on_drop(true).output().await;
        let failed = |source: io::Error| MachineError::Run {
            machine: name.to_owned(),
            what: what.clone(),
            source,
        };
        said(name, &what, &output.map_err(failed)?)
    }
}

fn kubelet_arguments(plan: &NodePlan) -> Vec<String> {
    vec![
        format!("--config={NODE_FOLDER}/kubelet.json"),
        format!("--kubeconfig={NODE_FOLDER}/kubelet.kubeconfig"),
        format!("--hostname-override={}", plan.name),
        // It could not be guessed: there is no default route.
        format!("--node-ip={}", plan.address),
        "--root-dir=/var/lib/kubelet".into(),
        "--cert-dir=/var/lib/kubelet/pki".into(),
    ]
}
