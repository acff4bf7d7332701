//! What `kubectl opensdn check --probe` and `nested verify` ask of a node, and what the node answers: one document each
//! way, between the plugin and `opensdn-operator probe`, which may be of different releases. What could not be seen is
//! said with its reason for each part, and is never left out as if all were well. What is asked of others than the node
//! is in `asked`, what nodes are to reach of each other in `matrix`, with packets of which size in `packets`, how fast it is
//! between them in `speed`, what interfaces are made of in
//! `devices`, huge pages in `huge_pages`.
//! Deliberately not here: how it is looked at (`operator`), and whether it is good (`plugin`).

#![warn(missing_docs)]

mod asked;
mod devices;
mod huge_pages;
mod matrix;
mod packets;
mod speed;

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

pub use asked::{
    By, Contact, Listen, MOST_TARGETS, ModuleFinding, ModuleState, NameFinding, Names, Question,
    Reached, Reply, ServiceFinding, Target, TargetFinding, WantedService,
};
pub use devices::{
    Device, Devices, Function, Given, Group, Hardware, VirtualFunctions, WithoutIommu,
};
pub use huge_pages::{HugePageMount, HugePages, NumaPages};
pub use matrix::{
    Extent, MOST_GROUPS, MOST_MEMBERS, MOST_MISSED, Matrix, MatrixFindings, Miss, Missed,
    PeerGroup, Ports, SilentPort, Trial,
};
pub use packets::{LARGEST_PACKET, PacketFindings, SIZES_PORT, SMALLEST_PACKET, Stopped};
pub use speed::{MOST_SECONDS, MOST_STREAMS, RoundTrips, Sink, Speed, WantedSpeed};

/// The format of both documents. An answer of another one is not read.
pub const FORMAT: u32 = 1;
/// So many names are shown of what is in a folder: with as many there may be more.
pub const MOST_ENTRIES: usize = 5;
/// By which a line of the pod's log is known for the answer.
pub const KIND: &str = "NodeFindings";

/// What is looked for on each node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wanted {
    /// [`FORMAT`].
    pub format: u32,
    /// Ports that have to be free.
    pub ports: Vec<WantedPort>,
    /// Folders in which components store data.
    pub directories: Vec<String>,
    /// Networks of IPv4 that are ours, for which routes and addresses of the node are shown.
    pub networks: Vec<String>,
    /// Settings of the kernel, as `sysctl` names them.
    pub sysctls: Vec<String>,
    /// Name of the kernel module: `vrouter`.
    pub module: String,
    /// Other kernel modules, which the kernel brings along.
    pub modules: Vec<String>,
    /// Names of hosts that are to lead to addresses; where there are any, that of the node itself is looked for too.
    pub names: Vec<String>,
    /// Services that are to be reached.
    pub services: Vec<WantedService>,
    /// What is outside of the cluster and is to be reached: the first [`MOST_TARGETS`] of them.
    pub targets: Vec<Target>,
    /// What peers are to reach.
    pub listen: Option<Listen>,
    /// What nodes are to reach of each other.
    pub matrix: Option<Matrix>,
    /// What takes bytes for one that measures.
    pub sink: Option<Sink>,
    /// What is measured.
    pub speed: Option<WantedSpeed>,
}

/// A port on the network of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WantedPort {
    /// Its number.
    pub number: u16,
    /// Its protocol.
    pub transport: Transport,
}

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// As Kubernetes writes it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// What was seen of something, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Seen<T> {
    /// It is so.
    Is(T),
    /// It is not known, because of this.
    Unknown(String),
}

impl<T> Seen<T> {
    /// What is so.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// The same of a part of it.
    pub fn map<U>(self, part: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Is(value) => Seen::Is(part(value)),
            Self::Unknown(why) => Seen::Unknown(why),
        }
    }
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self::Unknown("it was not looked at".to_owned())
    }
}

impl<T> From<Result<T, String>> for Seen<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(value) => Self::Is(value),
            Err(why) => Self::Unknown(why),
        }
    }
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFindings {
    /// [`KIND`].
    pub kind: String,
    /// [`FORMAT`].
    pub format: u32,
    /// The release of the program that looked.
    pub version: String,
    /// The addresses of the node on which ports were tried.
    pub addresses: Vec<IpAddr>,
    /// Ports of [`Wanted::ports`] that are not free, or could not be tried.
    pub ports: Vec<PortFinding>,
    /// The kernel and its module.
    pub kernel: Kernel,
    /// Interfaces, but for those of pods.
    pub interfaces: Seen<Interfaces>,
    /// Routes of IPv4: default ones, those of the node's own addresses, and those that overlap [`Wanted::networks`].
    pub routes: Seen<Vec<Route>>,
    /// Configurations of networks of pods.
    pub cni: Seen<Cni>,
    /// Each of [`Wanted::directories`].
    pub directories: Vec<Directory>,
    /// Huge pages.
    pub huge_pages: Seen<HugePages>,
    /// Each of [`Wanted::sysctls`] that there is.
    pub sysctls: Vec<Sysctl>,
    /// Devices that memory is swapped to.
    pub swaps: Seen<Vec<String>>,
    /// Whether the kernel says that its clock is synchronised.
    pub synchronised: Seen<bool>,
    /// Firewalls that run.
    pub firewall: Seen<Firewall>,
    /// Each of [`Wanted::modules`]; none in an answer of an older release, as of what follows.
    #[serde(default)]
    pub modules: Vec<ModuleFinding>,
    /// [`Wanted::names`].
    #[serde(default)]
    pub names: Names,
    /// Each of [`Wanted::services`].
    #[serde(default)]
    pub services: Vec<ServiceFinding>,
    /// Whether [`Wanted::listen`] is done.
    #[serde(default)]
    pub listens: Option<Seen<u16>>,
    /// The node's own addresses in [`Wanted::networks`], of any interface; nothing in an answer of an older release.
    #[serde(default)]
    pub local: Option<Seen<Vec<Ipv4Addr>>>,
    /// What interfaces are made of; nothing in an answer of an older release.
    #[serde(default)]
    pub devices: Option<Seen<Devices>>,
    /// Each of [`Wanted::targets`] that was tried.
    #[serde(default)]
    pub targets: Vec<TargetFinding>,
    /// What came of [`Wanted::matrix`]; nothing where none was wanted, and in an answer of an older release.
    #[serde(default)]
    pub matrix: Option<Seen<MatrixFindings>>,
    /// The port of [`Wanted::sink`].
    #[serde(default)]
    pub sink: Option<Seen<u16>>,
    /// What came of [`Wanted::speed`]; nothing where none was wanted, and in an answer of an older release.
    #[serde(default)]
    pub speed: Option<Seen<Speed>>,
}

/// The clock of a node, at the moment in which the line was written; several follow the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Microseconds since 1970.
    pub clock: i64,
}

/// A port that is not free, or could not be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortFinding {
    /// The port.
    #[serde(flatten)]
    pub port: WantedPort,
    /// The address on which it was tried.
    pub address: IpAddr,
    /// Who has it; unknown where it could not be tried.
    pub holder: Seen<Holder>,
}

/// Who has a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Holder {
    /// A process.
    Process {
        /// Its program.
        program: String,
        /// Its number.
        pid: u32,
        /// The UID of its pod, where it is in one.
        #[serde(default)]
        pod: Option<String>,
    },
    /// The kernel itself: a tunnel.
    Kernel,
    /// It is held; by whom is not seen, because of this.
    Hidden(String),
}

/// The kernel and the module that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kernel {
    /// `uname -r`.
    pub release: Seen<String>,
    /// Whether the module is loaded.
    pub loaded: Seen<bool>,
    /// Files of it for this kernel.
    pub files: Seen<Vec<ModuleFile>>,
    /// Whether headers to build it with are there.
    pub headers: Seen<bool>,
    /// Whether Secure Boot is on.
    pub secure_boot: Seen<bool>,
    /// Whether only signed modules are loaded.
    pub only_signed: Seen<bool>,
    /// Mode of lockdown: `none`, `integrity`, `confidentiality`.
    pub lockdown: Seen<String>,
}

/// A file of a kernel module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleFile {
    /// Where it is.
    pub path: String,
    /// The kernel that it is for, as it says.
    pub vermagic: Seen<String>,
    /// Whether it has a signature.
    pub signed: Seen<bool>,
}

/// The interfaces of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interfaces {
    /// Each but for those of pods.
    pub shown: Vec<Interface>,
    /// How many of pods there are, with the first of their names.
    pub of_pods: usize,
    /// The first of those of pods.
    pub first_of_pods: Option<String>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// What the kernel says of its state: `up`, `down`, `unknown`.
    pub state: Seen<String>,
    /// Its MTU.
    pub mtu: Seen<u32>,
    /// The bridge or bond that it is a part of.
    #[serde(default)]
    pub master: Option<String>,
    /// Its driver, where it is a device.
    #[serde(default)]
    pub driver: Option<String>,
    /// The mode of a bond.
    #[serde(default)]
    pub bond: Option<String>,
    /// The first [`MOST_ENTRIES`] networks of IPv4 that it is in, by routes without a router; nothing where routes cannot be
    /// read, and in an answer of an older release.
    #[serde(default)]
    pub networks: Option<Vec<String>>,
}

/// A route of IPv4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// `10.0.0.0/8`.
    pub destination: String,
    /// By which interface.
    pub interface: String,
    /// By which router, if by one.
    #[serde(default)]
    pub gateway: Option<String>,
}

/// Configurations of networks of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cni {
    /// Their folder.
    pub folder: String,
    /// By which the folder is known, where it is another than the usual one.
    pub named_by: Option<String>,
    /// In the order in which containerd takes them.
    pub files: Vec<CniFile>,
    /// The network that CRI-O is set to, if it is.
    pub default_network: Option<String>,
}

/// A configuration of a network of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CniFile {
    /// Its name.
    pub file: String,
    /// The name of the network.
    pub network: String,
    /// Its plugins.
    pub plugins: Vec<String>,
    /// Why it cannot be read.
    pub error: Option<String>,
}

/// A folder in which components store data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directory {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub state: Seen<DirectoryState>,
}

/// What a folder is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DirectoryState {
    /// It can be made, on a file system that has this.
    Absent(Space),
    /// Something else has its name.
    NoFolder,
    /// It is there.
    Present {
        /// What its file system has.
        space: Space,
        /// The first names in it.
        entries: Vec<String>,
    },
}

/// What a file system has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Space {
    /// Bytes that are free for others than root.
    pub free: u64,
    /// Whether it is mounted for reading alone.
    pub read_only: Seen<bool>,
}

/// A setting of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sysctl {
    /// `net.ipv4.conf.all.rp_filter`.
    pub name: String,
    /// Its value; none where this kernel does not have it.
    pub value: Seen<Option<String>>,
}

/// Firewalls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Firewall {
    /// Programs that write rules of their own: `firewalld`, `ufw`.
    pub programs: Vec<String>,
    /// Whether the kernel can filter packets at all: rules are not read.
    pub can_filter: bool,
}
