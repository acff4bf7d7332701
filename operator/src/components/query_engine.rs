//! QueryEngine: answers queries over what analytics has stored. It has no data of its own.

use opensdn_crds::component::{self, Component as Facts};
use serde_json::{Value, json};

use crate::component::{
    Check, Component, Container, Description, File, HostPath, Quorum, Scope, SettingsError,
    Template,
};
use crate::peers::{Peer, Peers};

/// The kind QueryEngine.
pub(super) struct QueryEngine;

/// Of introspect; no field changes it.
const PORT: u16 = 8091;
/// Hours for which statistics are kept, where the Analytics says nothing else.
const DATA_TTL: i64 = 48;
/// The name of a Cassandra for analytics begins so; others are of config (tf-operator,
/// `pkg/apis/tf/v1alpha1/cassandra_types.go:156`).
const ANALYTICS_DATABASE: &str = "analyticsdb";

impl Component for QueryEngine {
    fn facts(&self) -> &'static Facts {
        const { component::row("QueryEngine") }
    }

    fn templates(&self) -> &'static [Template] {
        &[
            (
                "queryengine/run-queryengine.sh",
                include_str!("../../templates/queryengine/run-queryengine.sh.j2"),
            ),
            (
                "queryengine/queryengine.ini",
                include_str!("../../templates/queryengine/queryengine.ini.j2"),
            ),
        ]
    }

    fn describe(&self, _: &Value, peers: &Peers) -> Result<Description, SettingsError> {
        let analytics = peers.of_kind("Analytics").next();
        Ok(Description {
            containers: vec![Container {
                name: "queryengine",
                mounts: vec![],
                check: Check::Port(PORT),
                readiness: None,
                requests: ("50m", "128Mi"),
                // For dumps of its own memory.
                capabilities: &["SYS_PTRACE"],
            }],
            files: vec![
                File {
                    name: "run-queryengine.sh",
                    template: "queryengine/run-queryengine.sh",
                    scope: Scope::Shared,
                },
                File {
                    name: "queryengine",
                    template: "queryengine/queryengine.ini",
                    scope: Scope::Pod,
                },
            ],
            values: json!({
                "data_ttl": analytics.map_or(DATA_TTL, |one| one.number("analyticsDataTTL", DATA_TTL)),
                "cassandra": database(peers),
                "collectors": peers.list("Analytics", "collectorPort"),
                "redis": peers.list("Redis", "redisPort"),
            }),
            host_paths: vec![HostPath {
                volume: "contrail-logs",
                path: "/var/log/contrail/queryengine",
            }],
            quorum: Quorum::Majority,
            ensemble: None,
        })
    }
}

/// The database of analytics, or the only one.
fn database(peers: &Peers) -> String {
    let is_its_own = |peer: &&Peer| peer.name.starts_with(ANALYTICS_DATABASE);
    let own = peers.of_kind("Cassandra").find(is_its_own);
    let database = own.or_else(|| peers.of_kind("Cassandra").next());
    database.map(|database| database.endpoints("cqlPort").join(" ")).unwrap_or_default()
}
