//! A real Kubernetes control plane on this machine, for tests and the first try: etcd,
//! kube-apiserver, kube-controller-manager, kube-scheduler, and nodes that kwok simulates.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use opensdn_testing::sandbox::{Sandbox, User};
//!
//! let sandbox = Sandbox::start().await?;
//! let admin = sandbox.client()?;
//! let bob = sandbox.client_for(&User::new("bob").in_group("network-operators"))?;
//! let output = sandbox.kubectl(&["get", "namespaces"]).await?;
//! # Ok(()) }
//! ```
//!
//! Everything a sandbox started ends with it, also when its process is killed. It listens on
//! 127.0.0.1 only. Deliberately not here: our own product, which `product` installs into a
//! sandbox. Real nodes are in `lab`.

mod access;
mod binaries;
mod certificates;
mod cluster;
mod control_plane;
mod data_folder;
mod etcd_data;
mod kubectl;
pub mod lab;
mod program;
mod simulated_nodes;
mod surroundings;

use std::ops::Deref;
use std::path::{Path, PathBuf};

pub use access::{AccessError, User};
pub use binaries::{
    Binaries, BinariesError, DEFAULT_KUBERNETES, KUBERNETES_VARIABLE, known_versions,
};
pub use certificates::CertificateError;
pub(crate) use certificates::write_private;
pub use cluster::{AttachError, Cluster};
pub use control_plane::ControlPlaneError;
pub use data_folder::FolderError;
pub(crate) use data_folder::{Owner, owner, prepared};
pub use kubectl::KubectlError;
pub(crate) use program::Program;
pub use program::{LogTail, ProgramError};
pub use simulated_nodes::{SIMULATED_LABEL, SimulatedNodesError};

use access::Access;
use control_plane::{ControlPlane, ETCD, Extent, Site};
use data_folder::DataFolder;
use lab::fault::{self, Fault, FaultError};
use lab::{Lab, LabError, LabNetwork};

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The data folder could not be made.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The programs are not there.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// What etcd has could not be copied.
    #[error("copy what etcd has: {}", path.display())]
    Data {
        /// What was kept, or where it is kept.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: std::io::Error,
    },
    /// The control plane did not start.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// The simulated nodes did not start.
    #[error(transparent)]
    SimulatedNodes(#[from] SimulatedNodesError),
    /// The real nodes did not start.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Nodes were asked for without the controllers that they need.
    #[error(
        "have nodes without controllers: leave out either only_api_server, or simulated_nodes and real_nodes"
    )]
    NodesWithoutControllers,
    /// Too many nodes, or of two sorts.
    #[error(
        "have {real} real and {simulated} simulated nodes: have up to {} of one sort",
        lab::MOST_NODES
    )]
    MixedNodes {
        /// How many real ones were asked for.
        real: u8,
        /// How many simulated ones.
        simulated: u32,
    },
    /// Real nodes of another version.
    #[error(
        "start real nodes with Kubernetes {0}: theirs is {DEFAULT_KUBERNETES}, so leave out \
         --kubernetes"
    )]
    NodesOfAnotherVersion(String),
}

/// A running control plane. Dropping it ends every program and removes the data.
pub struct Sandbox {
    // Dropped in this order: clients before servers, and the folder when nothing writes to it.
    lab: Option<Lab>,
    simulated_nodes: Option<Program>,
    control_plane: ControlPlane,
    cluster: Cluster,
    _folder: DataFolder,
}

/// Who has a sandbox may do all that users of its cluster do.
impl Deref for Sandbox {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// What a sandbox shall be like.
#[derive(Debug, Clone)]
pub struct Builder {
    simulated_nodes: u32,
    real_nodes: u8,
    kubernetes: Option<String>,
    extent: Extent,
    data_folder: Option<PathBuf>,
    etcd_data: Option<PathBuf>,
}

impl Builder {
    /// That many simulated nodes, `node-0` and up, on which pods become Running. Default: none.
    #[must_use]
    pub fn simulated_nodes(mut self, count: u32) -> Self {
        self.simulated_nodes = count;
        self
    }

    /// That many real nodes, `node-1` and up, which run containers. Needs Linux and root; see
    /// [`lab::available`]. Default: none.
    #[must_use]
    pub fn real_nodes(mut self, count: u8) -> Self {
        self.real_nodes = count;
        self
    }

    /// Another Kubernetes than the default, such as `1.36`. Without this call the variable
    /// `OPENSDN_KUBERNETES` decides, so that the same tests run against every version.
    #[must_use]
    pub fn kubernetes(mut self, version: impl Into<String>) -> Self {
        self.kubernetes = Some(version.into());
        self
    }

    /// Neither controller-manager nor scheduler: enough for admission, schemas and RBAC.
    #[must_use]
    pub fn only_api_server(mut self) -> Self {
        self.extent = Extent::OnlyApiServer;
        self
    }

    /// Keeps the data in this folder, which must not exist yet or belonged to a sandbox that
    /// is gone. Default: a new folder below `$XDG_CACHE_HOME/opensdn/sandboxes`.
    #[must_use]
    pub fn data_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_folder = Some(folder.into());
        self
    }

    /// Has etcd start with what was kept of another, by [`Sandbox::keep_data`].
    #[must_use]
    pub(crate) fn starting_with(mut self, etcd_data: PathBuf) -> Self {
        self.etcd_data = Some(etcd_data);
        self
    }

    /// One of the same version of Kubernetes, and like the default in all else.
    #[must_use]
    pub(crate) fn same_kubernetes(&self) -> Self {
        Self { kubernetes: self.kubernetes.clone(), ..Sandbox::builder() }
    }

    /// The API server that it is to have.
    ///
    /// # Errors
    /// It is not there, and cannot be built.
    pub(crate) async fn api_server(&self) -> Result<PathBuf, BinariesError> {
        Binaries::find(self.kubernetes.as_deref()).await?.program("kube-apiserver")
    }

    /// Starts the programs and returns when they are ready.
    ///
    /// # Errors
    /// Names the program that failed, with the end of its log; the data folder is then left
    /// for reading until the next start.
    pub async fn start(self) -> Result<Sandbox, SandboxError> {
        self.check()?;
        // kubelets are pinned with the default version only.
        let default = (self.real_nodes > 0).then_some(DEFAULT_KUBERNETES);
        let binaries = Binaries::find(self.kubernetes.as_deref().or(default)).await?;
        for program in self.extent.programs() {
            binaries.program(program)?;
        }
        let mut folder = match &self.data_folder {
            Some(path) => DataFolder::at(path)?,
            None => DataFolder::new()?,
        };
        match self.start_programs(&binaries, folder.path()).await {
            Ok(Started { control_plane, access, simulated_nodes, lab }) => {
                let has_crds = self.etcd_data.is_some();
                let cluster = Cluster::new(access, binaries, folder.path(), has_crds);
                Ok(Sandbox { lab, simulated_nodes, control_plane, cluster, _folder: folder })
            }
            Err(error) => {
                folder.leave();
                Err(error)
            }
        }
    }

    fn check(&self) -> Result<(), SandboxError> {
        let (real, simulated) = (self.real_nodes, self.simulated_nodes);
        if self.extent == Extent::OnlyApiServer && (real > 0 || simulated > 0) {
            return Err(SandboxError::NodesWithoutControllers);
        }
        if (real > 0 && simulated > 0) || real > lab::MOST_NODES {
            return Err(SandboxError::MixedNodes { real, simulated });
        }
        match &self.kubernetes {
            Some(other) if real > 0 && other != DEFAULT_KUBERNETES => {
                return Err(SandboxError::NodesOfAnotherVersion(other.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    async fn start_programs(
        &self,
        binaries: &Binaries,
        folder: &Path,
    ) -> Result<Started, SandboxError> {
        let network = match self.real_nodes {
            0 => None,
            count => Some(LabNetwork::create(count, folder).await?),
        };
        let site = network.as_ref().map_or(Site::Loopback, LabNetwork::site);
        if let Some(kept) = &self.etcd_data {
            etcd_data::restore(kept, &folder.join(ETCD))
                .map_err(|source| SandboxError::Data { path: kept.clone(), source })?;
        }
        let (control_plane, access) =
            ControlPlane::start(binaries, self.extent, folder, &site).await?;
        let simulated_nodes = match self.simulated_nodes {
            0 => None,
            count => Some(simulated_nodes::start(binaries, &access, count, folder).await?),
        };
        let lab = match network {
            None => None,
            Some(network) => Some(Lab::start(network, &access, binaries, folder).await?),
        };
        Ok(Started { control_plane, access, simulated_nodes, lab })
    }
}

struct Started {
    // Dropped in this order when a later step fails.
    lab: Option<Lab>,
    simulated_nodes: Option<Program>,
    control_plane: ControlPlane,
    access: Access,
}

impl Sandbox {
    /// Starts a whole control plane without nodes.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub async fn start() -> Result<Self, SandboxError> {
        Self::builder().start().await
    }

    /// Starts a whole cluster with that many real nodes: the lab.
    ///
    /// # Errors
    /// As [`Builder::start`]; also when this machine cannot have real nodes.
    pub async fn with_real_nodes(count: u8) -> Result<Self, SandboxError> {
        Self::builder().real_nodes(count).start().await
    }

    /// A sandbox that is unlike the default.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            simulated_nodes: 0,
            real_nodes: 0,
            kubernetes: None,
            extent: Extent::Everything,
            data_folder: None,
            etcd_data: None,
        }
    }

    /// The real nodes, if it has some.
    #[must_use]
    pub fn lab(&self) -> Option<&Lab> {
        self.lab.as_ref()
    }

    /// The programs and their versions, such as `("etcd", "3.6.5")`.
    pub async fn versions(&self) -> Vec<(String, String)> {
        let mut paths: Vec<(&str, Option<PathBuf>)> = vec![
            ("Kubernetes", self.cluster.binaries().program("kube-apiserver").ok()),
            ("etcd", self.cluster.binaries().program("etcd").ok()),
        ];
        if self.simulated_nodes.is_some() {
            paths.push(("kwok", self.cluster.binaries().kwok().await.ok()));
        }
        let mut versions = Vec::new();
        for (name, path) in paths {
            let version = match path {
                Some(path) => binaries::version_of(&path).await,
                None => None,
            };
            versions.push((name.to_owned(), version.unwrap_or_else(|| "unknown".into())));
        }
        versions
    }

    /// The process ids of the programs that run now.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        let programs = self.control_plane.programs().chain(&self.simulated_nodes);
        let of_nodes = self.lab.iter().flat_map(Lab::process_ids);
        programs.filter_map(Program::id).chain(of_nodes).collect()
    }

    /// Ends the API server with SIGTERM, starts it again, and returns when it is ready.
    ///
    /// # Errors
    /// When it does not become ready again.
    pub async fn restart_api_server(&self) -> Result<(), SandboxError> {
        self.control_plane.api_server().stop().await;
        self.start_api_server().await
    }

    /// Ends the API server with SIGKILL. It stays away until `start_api_server`.
    pub fn kill_api_server(&self) {
        self.control_plane.api_server().kill();
    }

    /// Starts the API server if it does not run, and returns when it is ready.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start_api_server(&self) -> Result<(), SandboxError> {
        self.control_plane.api_server().start().map_err(ControlPlaneError::from)?;
        self.wait_until_ready().await
    }

    /// Ends etcd with SIGTERM, starts it again, and returns when the API server is ready.
    ///
    /// # Errors
    /// When the API server does not become ready again.
    pub async fn restart_etcd(&self) -> Result<(), SandboxError> {
        self.control_plane.etcd().stop().await;
        self.start_etcd().await
    }

    /// Ends etcd with SIGKILL. It stays away until `start_etcd`.
    pub fn kill_etcd(&self) {
        self.control_plane.etcd().kill();
    }

    /// Starts etcd if it does not run, and returns when the API server is ready.
    ///
    /// # Errors
    /// When the API server does not become ready.
    pub async fn start_etcd(&self) -> Result<(), SandboxError> {
        self.control_plane.etcd().start().map_err(ControlPlaneError::from)?;
        self.wait_until_ready().await
    }

    /// Ends it, and keeps what its etcd has, for others to start with.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(crate) async fn keep_data(self, to: &Path) -> Result<(), SandboxError> {
        self.control_plane.api_server().stop().await;
        self.control_plane.etcd().stop().await;
        let data = self.data_folder().join(ETCD);
        etcd_data::keep(&data, to)
            .map_err(|source| SandboxError::Data { path: to.to_owned(), source })
    }

    /// Pauses etcd, its connections open, until the fault is dropped. Nothing can be
    /// stored meanwhile, and what was stored can hardly be read.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause_etcd(&self) -> Result<Fault, FaultError> {
        fault::pause("etcd", self.control_plane.etcd())
    }

    /// Pauses the API server, its connections open, until the fault is dropped.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause_api_server(&self) -> Result<Fault, FaultError> {
        fault::pause("kube-apiserver", self.control_plane.api_server())
    }

    /// Returns when a program has ended that was not asked to end, and says which and why.
    pub async fn broken(&self) -> SandboxError {
        loop {
            for program in self.control_plane.programs().chain(&self.simulated_nodes) {
                if let Err(error) = program.check_alive() {
                    return SandboxError::ControlPlane(error.into());
                }
            }
            if let Some(Err(error)) = self.lab.as_ref().map(Lab::check_alive) {
                return LabError::from(error).into();
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }

    async fn wait_until_ready(&self) -> Result<(), SandboxError> {
        let client = self.client().map_err(ControlPlaneError::from)?;
        Ok(self.control_plane.wait_for_api_server(&client).await?)
    }
}
