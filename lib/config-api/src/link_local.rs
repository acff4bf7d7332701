//! Rows of `linklocal_services`, the property that vrouter agents take link-local services from. What others have
//! written is kept as it was read, since the property can only be written whole; what is read of it is read as an
//! agent does. Deliberately not here: which rows are wanted, and how they are written.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde_json::{Map, Value, json};

const NAME: &str = "linklocal_service_name";
const IP: &str = "linklocal_service_ip";
const PORT: &str = "linklocal_service_port";
const FABRIC_NAME: &str = "ip_fabric_DNS_service_name";
const FABRIC_IPS: &str = "ip_fabric_service_ip";
const FABRIC_PORT: &str = "ip_fabric_service_port";
const ENTRIES: &str = "linklocal_service_entry";

/// By what an agent knows a service. Of rows with equal keys it takes the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The address that VMs use. IPv6 is known to agents, but never leads to a target.
    pub ip: IpAddr,
    /// The port that VMs use.
    pub port: u16,
}

impl Key {
    /// A service of IPv4.
    #[must_use]
    pub fn new(ip: Ipv4Addr, port: u16) -> Self {
        Self { ip: ip.into(), port }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.ip, self.port).fmt(to)
    }
}

impl FromStr for Key {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|key: SocketAddr| Self { ip: key.ip(), port: key.port() })
    }
}

/// What a service leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The hosts.
    pub hosts: Hosts,
    /// The port on them.
    pub port: u16,
}

/// The hosts of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Addresses of the fabric, of which an agent takes one by chance for each flow.
    Addresses(BTreeSet<Ipv4Addr>),
    /// A name, which an agent resolves.
    Name(String),
    /// Both: an agent takes the addresses.
    Both {
        /// Addresses of the fabric.
        addresses: BTreeSet<Ipv4Addr>,
        /// The name, without effect.
        name: String,
    },
    /// Neither: the service leads nowhere.
    Neither,
}

impl Target {
    /// A port on these addresses.
    #[must_use]
    pub fn new(addresses: impl IntoIterator<Item = Ipv4Addr>, port: u16) -> Self {
        Self { hosts: Hosts::of(addresses.into_iter().collect(), None), port }
    }

    /// A port on a host: on its address, or on its name, which agents resolve. An address that is not written as one of
    /// IPv4 is a name, as it is to the provisioner.
    #[must_use]
    pub fn on_host(host: &str, port: u16) -> Self {
        let hosts = match host.parse() {
            Ok(address) => Hosts::of([address].into(), None),
            Err(_) => Hosts::of(BTreeSet::new(), Some(host.to_owned())),
        };
        Self { hosts, port }
    }

    /// Whether an agent leads to the same: a name beside addresses has no effect.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same = match (self.hosts.addresses(), other.hosts.addresses()) {
            (None, None) => self.hosts == other.hosts,
            (ours, theirs) => ours == theirs,
        };
        is_same && self.port == other.port
    }
}

impl Hosts {
    /// An empty name is none.
    pub(crate) fn of(addresses: BTreeSet<Ipv4Addr>, name: Option<String>) -> Self {
        let name = name.filter(|name| !name.is_empty());
        match (addresses.is_empty(), name) {
            (true, None) => Self::Neither,
            (true, Some(name)) => Self::Name(name),
            (false, None) => Self::Addresses(addresses),
            (false, Some(name)) => Self::Both { addresses, name },
        }
    }

    /// The addresses, where there are some.
    #[must_use]
    pub fn addresses(&self) -> Option<&BTreeSet<Ipv4Addr>> {
        match self {
            Self::Addresses(addresses) | Self::Both { addresses, .. } => Some(addresses),
            Self::Name(_) | Self::Neither => None,
        }
    }

    /// The name, where there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) | Self::Both { name, .. } => Some(name),
            Self::Addresses(_) | Self::Neither => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.hosts.addresses().into_iter().flatten();
        let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
        match &self.hosts {
            Hosts::Addresses(_) | Hosts::Both { .. } => to.write_str(&addresses.join(","))?,
            Hosts::Name(name) => write!(to, "{}", name.escape_debug())?,
            Hosts::Neither => to.write_str("nothing")?,
        }
        write!(to, ":{}", self.port)
    }
}

/// One row, as it was read: with unknown fields and types that the schema does not have. Rows are equal when they
/// mean the same, since other clients write `null`, `""`, `[]` and nothing at all for the same.
#[derive(Clone, Debug)]
pub struct Row(Value);

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        meaning(&self.0) == meaning(&other.0)
    }
}

impl From<Value> for Row {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?} {} -> {}", self.name(), self.key(), self.target())
    }
}

impl Row {
    /// A row of ours, as the server stores it.
    #[must_use]
    pub fn new(name: &str, key: Key, target: &Target) -> Self {
        let addresses: Vec<String> =
            target.hosts.addresses().into_iter().flatten().map(ToString::to_string).collect();
        let mut row = json!({
            NAME: name,
            IP: key.ip.to_string(),
            PORT: key.port,
            FABRIC_IPS: addresses,
            FABRIC_PORT: target.port,
        });
        if let (Some(name), Some(row)) = (target.hosts.name(), row.as_object_mut()) {
            row.insert(FABRIC_NAME.to_owned(), name.into());
        }
        Self(row)
    }

    /// What was read, byte for byte what is written again.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// By what VMs find the service in DNS, in small letters there; empty where there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text(NAME)
    }

    /// Whether agents take it for Nova's metadata service.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        is_metadata(self.name())
    }

    /// By what an agent knows it: ports are cut to 16 bits, and an address that is none is 0.0.0.0.
    #[must_use]
    pub fn key(&self) -> Key {
        let ip = self.service_ip().parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Key { ip, port: seen_port(self.service_port()) }
    }

    /// What it leads to, as an agent sees it.
    #[must_use]
    pub fn target(&self) -> Target {
        let addresses = self.fabric_ips().into_iter().filter_map(|text| text.parse().ok());
        let hosts = Hosts::of(addresses.collect(), Some(self.text(FABRIC_NAME).to_owned()));
        Target { hosts, port: seen_port(self.fabric_port()) }
    }

    /// The text of the service's address; empty where there is none.
    #[must_use]
    pub fn service_ip(&self) -> &str {
        self.text(IP)
    }

    /// The service's port as it is written; nothing where there is none.
    #[must_use]
    pub fn service_port(&self) -> Option<i64> {
        self.number(PORT)
    }

    /// The texts of the target's addresses but for empty ones.
    #[must_use]
    pub fn fabric_ips(&self) -> Vec<&str> {
        let all = match self.0.get(FABRIC_IPS) {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => Vec::new(),
        };
        all.into_iter().filter(|text| !text.is_empty()).collect()
    }

    /// The target's port as it is written; nothing where there is none.
    #[must_use]
    pub fn fabric_port(&self) -> Option<i64> {
        self.number(FABRIC_PORT)
    }

    fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Fractions are cut off and texts are read, as the server does with what it stores.
    fn number(&self, field: &str) -> Option<i64> {
        match self.0.get(field)? {
            Value::Number(number) => number.as_i64().or_else(|| Some(number.as_f64()? as i64)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

/// Whether agents take a row of this name for Nova's metadata service.
#[must_use]
pub fn is_metadata(name: &str) -> bool {
    name.to_lowercase().contains("metadata")
}

/// What an agent makes of a port.
fn seen_port(written: Option<i64>) -> u16 {
    written.unwrap_or_default() as u16
}

/// What is left of a row without what stands for nothing.
fn meaning(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), meaning(value)));
            let fields: Map<String, Value> =
                fields.filter(|(_, value)| !is_nothing(value)).collect();
            if fields.is_empty() { Value::Null } else { fields.into() }
        }
        Value::Array(all) => {
            let all = all.iter().map(meaning).filter(|value| !is_nothing(value));
            all.collect::<Vec<Value>>().into()
        }
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        _ => false,
    }
}

/// The property as it was read.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
    /// What is beside the list in the property.
    others: Map<String, Value>,
}

/// What is there is no list of rows, so that it cannot be written again without loss.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("linklocal_services is no list of rows, but {found}: correct it in the Config API")]
pub struct NotRows {
    found: String,
}

impl Rows {
    /// Reads the property where it is there: as an object with the list, as the list alone, or as nothing.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(property: Option<&Value>) -> Result<Self, NotRows> {
        let mut others = Map::new();
        let list = match property {
            Some(Value::Object(fields)) => {
                others = fields.clone();
                others.remove(ENTRIES)
            }
            Some(other) => Some(other.clone()),
            None => None,
        };
        let rows = match list {
            Some(Value::Array(all)) => all.into_iter().map(Row).collect(),
            Some(other) if !is_falsy(&other) => {
                let mut found = other.to_string();
                found.truncate(found.floor_char_boundary(60));
                return Err(NotRows { found });
            }
            _ => Vec::new(),
        };
        Ok(Self { rows, others })
    }

    /// The rows in their order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The same property with other rows.
    #[must_use]
    pub fn with(&self, rows: Vec<Row>) -> Self {
        Self { rows, others: self.others.clone() }
    }

    /// The property as it is written.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut fields = self.others.clone();
        let rows = self.rows.iter().map(|row| row.0.clone());
        fields.insert(ENTRIES.to_owned(), rows.collect::<Vec<Value>>().into());
        fields.into()
    }
}

/// The server checks nothing of what is false to Python, and stores it.
fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Object(fields) => fields.is_empty(),
        other => is_nothing(other),
    }
}

#[cfg(test)]
mod tests;
