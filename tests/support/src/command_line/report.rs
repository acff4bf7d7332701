//! What a running sandbox reports about itself, for people and for the next `status`.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Versions, addresses and files of a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    /// Program and version, such as `("etcd", "3.6.5")`.
    pub(super) versions: Vec<(String, String)>,
    pub(super) api_server: String,
    pub(super) kubeconfig: PathBuf,
    pub(super) kubectl: Option<PathBuf>,
    pub(super) logs: PathBuf,
    pub(super) simulated_nodes: u32,
    /// Real nodes: name, address, and the process whose namespaces are the node's.
    #[serde(default)]
    pub(super) nodes: Vec<(String, String, u32)>,
    pub(super) product: bool,
    #[serde(default)]
    pub(super) operator: bool,
    /// Where the fake of the Config API is.
    #[serde(default)]
    pub(super) config_api: Option<String>,
    pub(super) ready_after_ms: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<String> =
            self.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        writeln!(f, "versions     {}", versions.join(", "))?;
        writeln!(f, "API server   {}", self.api_server)?;
        if self.nodes.is_empty() {
            writeln!(f, "nodes        {} simulated", self.simulated_nodes)?;
        }
        for (name, address, process) in &self.nodes {
            let shell = format!("nsenter --target={process} --net --mount --pid --uts --ipc");
            writeln!(f, "{name:<13}{address}, a shell on it: {shell}")?;
        }
        let installed = match (self.product, self.operator) {
            (true, true) => "installed, with the operator",
            (true, false) => "installed",
            (false, _) => "not installed",
        };
        writeln!(f, "OpenSDN      {installed}")?;
        if let Some(url) = &self.config_api {
            writeln!(f, "config API   {url}, a fake")?;
        }
        writeln!(f, "logs         {}", self.logs.display())?;
        writeln!(f, "kubeconfig   {}", self.kubeconfig.display())?;
        if let Some(kubectl) = &self.kubectl {
            writeln!(f, "kubectl      {}", kubectl.display())?;
        }
        let tenths = self.ready_after_ms / 100;
        writeln!(f, "ready after  {}.{} s", tenths / 10, tenths % 10)
    }
}

/// What the supervisor reports to `up`, as one line of JSON on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Started {
    Ready(Box<Report>),
    Failed(String),
}
