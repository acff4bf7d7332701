//! The plan: all that is to be done in the cloud, all that speaks against it, and by what the world is known from which
//! it was made. As a file it is stable: the same plan is the same text.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_config_api::edit::Unwanted;
use opensdn_config_api::virtual_network::Snat;
use opensdn_crds::nested_cluster::Connectivity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocate::allocate;
use crate::checks::{self, World};
use crate::finding::{Finding, Severity, Unknown};
use crate::fingerprint::Fingerprint;
use crate::input::{Input, NetworkName, Permission};
use crate::list::List;
use crate::live::{Fact, Live, Protocol};
use crate::rows::{PlannedRow, RemovedRow, environment, removed, rows};

/// The format of a plan as a file. One of another format is not carried out.
pub const FORMAT: u32 = 1;

/// What is to be done for a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`FORMAT`].
    pub format: u32,
    /// The cluster's name in OpenSDN.
    pub cluster: String,
    /// By what its record is known.
    pub record: String,
    /// How it reaches the underlay.
    #[schemars(with = "String")]
    pub connectivity: Connectivity,
    /// The network of its nodes.
    pub network: NetworkName,
    /// The link-local services, in order.
    pub rows: Vec<PlannedRow>,
    /// Rows of our record that are of no use any more.
    pub removed: Vec<RemovedRow>,
    /// What happens to fabric SNAT of the network.
    pub snat: SnatAction,
    /// Networks, by their UUIDs, whose fabric SNAT our record has and the nodes do not need any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_snat: Vec<String>,
    /// Whether what the cluster has and does not want any more is taken away.
    #[serde(default)]
    pub prune: bool,
    /// What happens to the port translation pools, before SNAT.
    pub pools: PoolsAction,
    /// The variables by which the workloads find the services.
    pub environment: BTreeMap<String, String>,
    /// What speaks against it, by code.
    pub findings: Vec<Finding>,
    /// Checks that could not be made.
    pub unknown: Vec<Unknown>,
    /// Why it is not known whose the name is in the cloud, where our record does not have it: it is not carried out
    /// before a person has said that it is this cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whose_name: Option<String>,
    /// Parts of the cloud without which it cannot be carried out, and which could not be read.
    pub unread: Vec<Part>,
    /// The world from which it was made.
    pub fingerprint: Fingerprint,
}

/// A part of the cloud that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The rows.
    Rows,
    /// The records.
    Records,
    /// The network of the nodes.
    Network,
    /// The pools.
    Pools,
}

/// What happens to fabric SNAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum SnatAction {
    /// It is not touched.
    Leave,
    /// It is on already.
    AlreadyOn,
    /// It is turned on.
    Enable {
        /// What is stored now; the undo restores it.
        previous: Option<bool>,
    },
    /// What it is could not be read.
    Unknown,
}

/// The pool of a protocol: the numbers are kube-manager's own, which overwrites any others at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortPool {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its first port.
    pub first: u16,
    /// Its last port.
    pub last: u16,
}

/// What happens to the port translation pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "action", content = "pools")]
pub enum PoolsAction {
    /// They are not touched.
    Leave,
    /// These are added.
    Add(Vec<PortPool>),
    /// What there is could not be read.
    Unknown,
}

impl Plan {
    /// What becomes of rows of ours that it does not have.
    #[must_use]
    pub fn unwanted(&self) -> Unwanted {
        if self.prune { Unwanted::Remove } else { Unwanted::Keep }
    }

    /// Whether nothing forbids to carry it out.
    #[must_use]
    pub fn is_applicable(&self) -> bool {
        self.unread.is_empty()
            && self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }
}

/// Plans.
#[must_use]
pub fn plan(input: &Input, live: &Live) -> Plan {
    let list = List::new(live.rows.known().map(Vec::as_slice).unwrap_or_default());
    let allocation = allocate(input, live, &list);
    let rows = rows(input, live, &allocation, &list);
    let removed = removed(input, live, &list, &rows);
    let world = World { input, live, list: &list, allocation: &allocation, rows: &rows };
    let report = checks::run(&world);
    Plan {
        format: FORMAT,
        cluster: input.cluster.clone(),
        record: input.choices.record.clone(),
        connectivity: input.connectivity,
        network: input.network.clone(),
        snat: snat(input, live),
        former_snat: former_snat(input, live),
        prune: input.choices.permissions.prune == Permission::Granted,
        pools: pools(input, live),
        environment: environment(input, &allocation),
        whose_name: checks::cluster::doubt(&world, &report),
        findings: report.findings,
        unknown: report.unknown,
        unread: unread(input, live),
        fingerprint: Fingerprint::of(live),
        rows,
        removed,
    }
}

fn former_snat(input: &Input, live: &Live) -> Vec<String> {
    let present = match &live.network {
        _ if input.is_link_local() => None,
        Fact::Known(network) => network.as_ref().map(|network| network.uuid.as_str()),
        // Which of them is that of the nodes is not known then.
        Fact::Unknown(_) => return Vec::new(),
    };
    let Some(records) = live.records.known() else { return Vec::new() };
    let is_ours = |before: Snat, uuid: &str| {
        before == Snat::Off && Some(uuid) != present && !records.other_networks.contains_key(uuid)
    };
    let former = records.ours.snat.iter().filter(|(uuid, before)| is_ours(**before, uuid));
    former.map(|(uuid, _)| uuid.clone()).collect()
}

fn snat(input: &Input, live: &Live) -> SnatAction {
    if input.is_link_local() {
        return SnatAction::Leave;
    }
    match &live.network {
        Fact::Unknown(_) => SnatAction::Unknown,
        // That it is missing is an error of its own.
        Fact::Known(None) => SnatAction::Leave,
        Fact::Known(Some(network)) => match network.fabric_snat {
            Some(true) => SnatAction::AlreadyOn,
            previous => SnatAction::Enable { previous },
        },
    }
}

fn pools(input: &Input, live: &Live) -> PoolsAction {
    if input.is_link_local() {
        return PoolsAction::Leave;
    }
    match &live.pools {
        Fact::Unknown(_) => PoolsAction::Unknown,
        Fact::Known(there) => match missing_pools(there) {
            missing if missing.is_empty() => PoolsAction::Leave,
            missing => PoolsAction::Add(missing),
        },
    }
}

/// Those of kube-manager, of each protocol that has none: what is there stays as it is.
pub(crate) fn missing_pools(there: &BTreeSet<Protocol>) -> Vec<PortPool> {
    let all = [
        PortPool { protocol: Protocol::Tcp, first: 56000, last: 57023 },
        PortPool { protocol: Protocol::Udp, first: 57024, last: 58047 },
    ];
    all.into_iter().filter(|pool| !there.contains(&pool.protocol)).collect()
}

fn unread(input: &Input, live: &Live) -> Vec<Part> {
    let needs_snat = !input.is_link_local();
    let parts = [
        (Part::Rows, live.rows.known().is_none()),
        (Part::Records, live.records.known().is_none()),
        (Part::Network, needs_snat && live.network.known().is_none()),
        (Part::Pools, needs_snat && live.pools.known().is_none()),
    ];
    parts.into_iter().filter(|(_, is_unread)| *is_unread).map(|(part, _)| part).collect()
}

#[cfg(test)]
mod tests;
