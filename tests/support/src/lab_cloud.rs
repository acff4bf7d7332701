//! A cloud around a lab: its nodes are virtual machines of it, the fabric's services listen in the network of the control
//! plane, which stands for the fabric, and on each node a stand-in of the vrouter agent leads link-local services there.
//! Deliberately not here: what is written into the cloud, which is a test's.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Failed;
use crate::config_api::{FakeConfigApi, Settings, WorkedExample};
use crate::eventually::eventually;
use crate::programs::program;
use crate::sandbox::lab::{Lab, api_server_url};
use crate::sandbox::{Sandbox, User};

/// Where all services but Keystone are in the fabric, as in the worked example.
const CONFIG: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 100);
const KEYSTONE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 168, 1, 200)), 35357);
const CONFIG_PORT: u16 = 8082;
/// Of analytics, message bus, config database and ZooKeeper, where connections are taken and nothing is said.
const SILENT: [u16; 4] = [8086, 5673, 9041, 2181];
/// From where link-local services get their addresses.
pub const SERVICE_ADDRESSES: &str = "10.10.10.0/24";
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The cloud; its processes end with it, and else with the lab.
pub struct LabCloud<'a> {
    lab: &'a Lab,
    kubeconfig: PathBuf,
    agents: Vec<Child>,
    api: FakeConfigApi,
    _silent: Vec<TcpListener>,
    folder: TempDir,
}

impl Drop for LabCloud<'_> {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            // Only what enters the node; the agent itself ends with the node.
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

impl<'a> LabCloud<'a> {
    /// Starts services and agents.
    ///
    /// # Errors
    /// A network cannot be set up, or a program does not start.
    pub fn start(sandbox: &'a Sandbox) -> Result<Self, Failed> {
        let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
        let folder = TempDir::new()?;
        wire(lab)?;
        let settings = Settings {
            listen: (CONFIG, CONFIG_PORT).into(),
            keystone_listen: KEYSTONE,
            ..Settings::default()
        };
        // The errors of the fake stay in their thread.
        let start = || FakeConfigApi::start(settings).map_err(|error| error.to_string());
        let api = lab.made_beside_control_plane(start)??;
        let open = || SILENT.map(|port| TcpListener::bind((CONFIG, port)));
        let silent = lab.made_beside_control_plane(open)?;
        let silent = silent.into_iter().collect::<Result<_, _>>()?;
        WorkedExample::fill_for_real_nodes(&api).map_err(|refusal| refusal.text)?;
        let kubeconfig = kubeconfig(sandbox, folder.path())?;
        let mut cloud = Self { lab, kubeconfig, agents: Vec::new(), api, _silent: silent, folder };
        for node in lab.nodes() {
            let agent = cloud.agent(node.name())?;
            cloud.agents.push(agent);
        }
        Ok(cloud)
    }

    fn agent(&self, node: &str) -> Result<Child, Failed> {
        let mut command = self.lab.on_node(node, &program("opensdn-link-local-agent")?)?;
        command.arg("--config-api").arg(format!("{CONFIG}:{CONFIG_PORT}"));
        command.env_clear().env("PATH", PATH).current_dir("/");
        // What it says is the test's.
        Ok(command.stdin(Stdio::null()).spawn()?)
    }

    /// The fake of the Config API and of Keystone.
    #[must_use]
    pub fn api(&self) -> &FakeConfigApi {
        &self.api
    }

    /// The file of a NestedCluster that wants link-local services for everything.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn nested_cluster(&self) -> Result<PathBuf, Failed> {
        let spec = json!({
            "clusterName": "k8s-lab",
            "connectivity": "LinkLocal",
            "clusterNetwork": {"project": "admin", "name": "vms"},
            "configApi": {"urls": [self.api.url()]},
            "services": {
                "config": {"addresses": [CONFIG]},
                "keystone": {"addresses": [KEYSTONE.ip()], "port": KEYSTONE.port()},
            },
            "serviceAddresses": [SERVICE_ADDRESSES],
        });
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "NestedCluster",
            "metadata": {"name": "lab", "namespace": "tf"}, "spec": spec});
        let path = self.folder.path().join("nested-cluster.json");
        fs::write(&path, object.to_string())?;
        Ok(path)
    }

    /// Runs the plugin where the Config API is reached, as the cluster's administrator.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn plugin(&self, arguments: &[&str]) -> Result<Output, Failed> {
        let mut command: Command = self.lab.beside_control_plane(&program("kubectl-opensdn")?);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command.env_clear().env("PATH", PATH).env("HOME", self.folder.path());
        Ok(command.current_dir(self.folder.path()).stdin(Stdio::null()).output()?)
    }

    /// Waits until the agents of all nodes lead the services that the cloud has now, and no others.
    pub async fn settled(&self) {
        let entries = self.api.entries();
        let mut wanted: Vec<String> = entries.as_array().into_iter().flatten().map(rule).collect();
        wanted.sort_unstable();
        for node in self.lab.nodes() {
            let is_so = async || self.rules(node.name()).is_ok_and(|rules| rules == wanted);
            let what = format!("{} leads {wanted:#?}", node.name());
            eventually(&what, is_so).await;
        }
    }

    fn rules(&self, node: &str) -> Result<Vec<String>, Failed> {
        let said = self.lab.run_on(node, "list rules", "iptables -t nat -S OPENSDN-LINK-LOCAL")?;
        let words = |line: &str| {
            let after = |key: &str| {
                let mut words = line.split_whitespace().skip_while(|word| *word != key);
                words.nth(1).unwrap_or_default().trim_end_matches("/32").to_owned()
            };
            format!("{}:{} {}", after("-d"), after("--dport"), after("--to-destination"))
        };
        let mut rules: Vec<String> =
            said.lines().filter(|line| line.starts_with("-A")).map(words).collect();
        rules.sort_unstable();
        Ok(rules)
    }
}

fn rule(entry: &Value) -> String {
    let of = |pointer: &str| match entry.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    format!(
        "{}:{} {}:{}",
        of("/linklocal_service_ip"),
        of("/linklocal_service_port"),
        of("/ip_fabric_service_ip/0"),
        of("/ip_fabric_service_port")
    )
}

/// Gives the fabric its addresses, and each node, as its compute node has it, the way there.
fn wire(lab: &Lab) -> Result<(), Failed> {
    for address in [CONFIG.to_string(), KEYSTONE.ip().to_string()] {
        let mut ip = lab.beside_control_plane(Path::new("/usr/sbin/ip"));
        let said = ip.args(["address", "add", &address, "dev", "lo"]).output()?;
        if !said.status.success() {
            return Err(String::from_utf8_lossy(&said.stderr).into_owned().into());
        }
    }
    let api_server = api_server_url();
    let gateway = api_server.trim_start_matches("https://").split(':').next().unwrap_or_default();
    for node in lab.nodes() {
        let route = format!("ip route add 192.168.1.0/24 via {gateway}");
        lab.run_on(node.name(), "add the way to the fabric", &route)?;
    }
    Ok(())
}

/// The administrator's, with the address that the API server has beside it.
fn kubeconfig(sandbox: &Sandbox, folder: &Path) -> Result<PathBuf, Failed> {
    let of_host = sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?;
    let text = fs::read_to_string(of_host)?;
    let lines = text.lines().map(|line| match line.split_once("server: ") {
        Some((before, _)) => format!("{before}server: {}\n", api_server_url()),
        None => format!("{line}\n"),
    });
    let path = folder.join("kubeconfig");
    fs::write(&path, lines.collect::<String>())?;
    Ok(path)
}
