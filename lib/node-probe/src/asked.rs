//! What a probe asks of others than its node: services, names, a peer that listens.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::Seen;

/// A service that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedService {
    /// Where it is.
    pub at: SocketAddr,
    /// What it is asked.
    pub question: Question,
}

/// What a service is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// Nothing: a connection over TCP is all that is wanted.
    Connect,
    /// `GET` of this path, by HTTP, and by HTTPS where that is not understood.
    Get(String),
    /// The line that it writes by itself.
    Line,
}

/// What came of asking a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFinding {
    /// What was asked.
    #[serde(flatten)]
    pub wanted: WantedService,
    /// What came of it.
    pub reached: Reached,
}

/// How far one gets with a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reached {
    /// There is no connection, because of this.
    No(String),
    /// There is one, and nothing was asked.
    Connected,
    /// There is one, and no answer that can be read, because of this.
    Silent(String),
    /// It answered.
    Answered(Reply),
}

/// The answer of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// How it was asked.
    pub by: By,
    /// Its status of HTTP; none of a line.
    #[serde(default)]
    pub status: Option<u16>,
    /// The first keys of its JSON object, where it is one.
    #[serde(default)]
    pub keys: Vec<String>,
    /// How its text begins.
    #[serde(default)]
    pub begins: String,
}

/// How a service was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// Without TLS.
    Plain,
    /// With TLS, whatever its certificate.
    UnverifiedTls,
}

/// What a probe does for its peers: a port of its own network on which it writes a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listen {
    /// The port.
    pub port: u16,
    /// The line.
    pub line: String,
}

/// What a name leads to on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameFinding {
    /// The name.
    pub name: String,
    /// Its addresses.
    pub addresses: Seen<Vec<IpAddr>>,
}

/// The names that were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// What the node calls itself.
    pub own: Option<NameFinding>,
    /// Those that were wanted.
    pub wanted: Vec<NameFinding>,
}

/// A kernel module that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFinding {
    /// Its name.
    pub name: String,
    /// Whether the kernel has it.
    pub state: Seen<ModuleState>,
}

/// Whether a kernel has a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModuleState {
    /// It is a part of the kernel.
    BuiltIn,
    /// It is loaded.
    Loaded,
    /// It is loaded when it is needed.
    Loadable,
    /// It is none of these.
    Missing,
}

/// So many targets are tried at most.
pub const MOST_TARGETS: usize = 8;

/// A server outside of the cluster, by name or address: nothing is sent to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// Its name or address.
    pub host: String,
    /// Its port of TCP.
    pub port: u16,
}

/// What came of trying a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFinding {
    /// What was tried.
    #[serde(flatten)]
    pub target: Target,
    /// What came of it; unknown where no address was tried to its end.
    pub contact: Seen<Contact>,
}

/// Whether a target takes a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Contact {
    /// One of its addresses does: this one.
    Made(IpAddr),
    /// None of them does: each with the reason.
    Failed(String),
}
