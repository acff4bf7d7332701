//! Which rows are ours: a record of each nested cluster in an annotation of global-vrouter-config, which the Config API
//! sets and removes by itself, without the other annotations. Deliberately not here: the rows themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::ConfigApi;
use crate::link_local::{Hosts, Key, Target};
use crate::virtual_network::Snat;
use crate::vrouter_config;

/// What the names of these annotations begin with.
const PREFIX: &str = "kubectl-opensdn/";
/// The version that is written.
const VERSION: u64 = 1;

/// By what a nested cluster is known, for example the uid of its namespace `kube-system`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(String);

impl ClusterId {
    /// Of letters, digits, `-`, `_` and `.`.
    ///
    /// # Errors
    /// It is empty or has other characters.
    pub fn new(text: &str) -> Result<Self, Error> {
        let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if text.is_empty() || !text.bytes().all(is_of_id) {
            return Err(Error::ClusterId(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name of its annotation.
    #[must_use]
    pub fn annotation(&self) -> String {
        format!("{PREFIX}{}", self.0)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// What a cluster has in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The name of the cluster in OpenSDN, where it is known.
    pub cluster: Option<String>,
    /// Its rows.
    pub rows: BTreeMap<Key, Held>,
    /// What `fabric_snat` was before we changed it, by the UUID of the network.
    pub snat: BTreeMap<String, Snat>,
    /// Whether the port pools are ours.
    pub pools: Pools,
}

/// A row of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub name: String,
    /// What it leads to.
    pub target: Target,
    /// How we came by it.
    pub how: How,
}

/// How we came by a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// We have written it, or are about to.
    Written,
    /// It was there: it is never removed by us.
    Adopted,
    /// We have written it, and it is not wanted any more: it stays for those that still use it.
    Leaving,
}

impl How {
    /// Whether it is ours to change and to remove.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Written | Self::Leaving)
    }
}

/// Who has added the port pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pools {
    /// They were there.
    #[default]
    Theirs,
    /// We have.
    Ours,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An id that cannot be in the name of an annotation.
    #[error("{0:?} is no id of a cluster: use letters, digits, hyphens, underscores and dots")]
    ClusterId(String),
    /// A record from which not even keys can be read.
    #[error(
        "the annotation {annotation} of global-vrouter-config is no record that can be read: {why}; update this program, \
         or remove the annotation if its cluster no longer exists"
    )]
    Unreadable {
        /// Its name.
        annotation: String,
        /// What is wrong.
        why: String,
    },
}

/// All records, as they were read.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Ours.
    pub ours: Record,
    /// Keys of the rows that others have.
    pub other_keys: BTreeSet<Key>,
    /// Those of them that another has written: who uses such a row, too, takes it away when it is the last to go.
    pub other_written: BTreeSet<Key>,
    /// The UUIDs of networks whose SNAT others depend on, with what it was before them.
    pub other_networks: BTreeMap<String, Snat>,
    /// Whether another has added the port pools.
    pub other_pools: Pools,
    /// How many others have a record.
    pub others: usize,
    /// The names of clusters that others have a record of, with by what that record is known.
    pub other_clusters: BTreeMap<String, String>,
}

impl Records {
    /// Reads all of them.
    ///
    /// # Errors
    /// Ours is of another version, or keys of one of others cannot be read.
    pub fn read(
        annotations: &BTreeMap<String, String>,
        cluster: &ClusterId,
    ) -> Result<Self, Error> {
        let mut records = Self::default();
        for (name, text) in annotations.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let unreadable = |why: String| Error::Unreadable { annotation: name.clone(), why };
            if *name == cluster.annotation() {
                records.ours = Record::parse(text).map_err(unreadable)?;
            } else {
                let other: Other =
                    serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
                if let Some(cluster) = other.cluster.as_str() {
                    let id = name.strip_prefix(PREFIX).unwrap_or(name);
                    records.other_clusters.insert(cluster.to_owned(), id.to_owned());
                }
                records.add(other).map_err(unreadable)?;
            }
        }
        Ok(records)
    }
}

impl Records {
    fn add(&mut self, other: Other) -> Result<(), String> {
        self.others += 1;
        for (network, before) in other.snat {
            // Off where one of them says so: the first of them has switched it on.
            let before = Snat::from(before != Value::Bool(false));
            let noted = self.other_networks.entry(network).or_insert(before);
            *noted = if before == Snat::Off { Snat::Off } else { *noted };
        }
        if other.pools == "ours" {
            self.other_pools = Pools::Ours;
        }
        for row in other.rows {
            let key = row.key.parse().map_err(|_| format!("key {:?}", row.key))?;
            self.other_keys.insert(key);
            if row.how == "written" || row.how == "leaving" {
                self.other_written.insert(key);
            }
        }
        Ok(())
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    rows: Vec<StoredRow>,
    #[serde(default)]
    snat: BTreeMap<String, bool>,
    #[serde(default)]
    pools: Pools,
}

#[derive(Serialize, Deserialize)]
struct StoredRow {
    key: String,
    name: String,
    addresses: Vec<Ipv4Addr>,
    /// The name of the target, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    port: u16,
    how: How,
}

/// What has to be known of a record of others, whatever its version.
#[derive(Deserialize)]
struct Other {
    #[serde(default)]
    cluster: Value,
    rows: Vec<OtherRow>,
    #[serde(default)]
    snat: BTreeMap<String, Value>,
    #[serde(default)]
    pools: Value,
}

#[derive(Deserialize)]
struct OtherRow {
    key: String,
    #[serde(default)]
    how: Value,
}

impl Record {
    /// Whether there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.snat.is_empty() && self.pools == Pools::Theirs
    }

    fn parse(text: &str) -> Result<Self, String> {
        let version: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let version = version.get("version").and_then(Value::as_u64);
        if version != Some(VERSION) {
            return Err(format!("its version is not {VERSION}"));
        }
        let stored: Stored = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut rows = BTreeMap::new();
        for row in stored.rows {
            let key = row.key.parse().map_err(|_| format!("key {:?}", row.key))?;
            let hosts = Hosts::of(row.addresses.into_iter().collect(), row.host);
            let target = Target { hosts, port: row.port };
            rows.insert(key, Held { name: row.name, target, how: row.how });
        }
        let snat = stored.snat.into_iter().map(|(network, is_on)| (network, is_on.into()));
        Ok(Self { cluster: stored.cluster, rows, snat: snat.collect(), pools: stored.pools })
    }

    fn json(&self) -> String {
        let rows = self.rows.iter().map(|(key, held)| StoredRow {
            key: key.to_string(),
            name: held.name.clone(),
            addresses: held.target.hosts.addresses().into_iter().flatten().copied().collect(),
            host: held.target.hosts.name().map(str::to_owned),
            port: held.target.port,
            how: held.how,
        });
        let snat = self.snat.iter().map(|(network, snat)| (network.clone(), *snat == Snat::On));
        let stored = Stored {
            version: VERSION,
            cluster: self.cluster.clone(),
            rows: rows.collect(),
            snat: snat.collect(),
            pools: self.pools,
        };
        serde_json::json!(stored).to_string()
    }

    /// Writes it to global-vrouter-config of this UUID; one in which nothing is left is removed.
    ///
    /// # Errors
    /// The Config API does not take it.
    pub async fn write(
        &self,
        api: &ConfigApi,
        uuid: &str,
        cluster: &ClusterId,
    ) -> Result<(), crate::client::Error> {
        let name = cluster.annotation();
        if self.is_empty() {
            return vrouter_config::remove_annotation(api, uuid, &name).await;
        }
        vrouter_config::annotate(api, uuid, &name, &self.json()).await
    }
}

#[cfg(test)]
mod tests;
