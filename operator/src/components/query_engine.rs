//! QueryEngine: answers queries over what analytics has stored. It has no data of its own.

use opensdn_crds::component::{self, Component};
use serde_json::json;

use super::shared::around::{analytics_database, around};
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Introspect, SettingsError, Template,
    Volume,
};

/// The kind QueryEngine.
pub(super) struct QueryEngine;

const ROW: &Component = component::row("QueryEngine");
/// Of introspect; no field changes it.
const PORT: u16 = ROW.fixed_port("queryengine");
/// Hours for which statistics are kept, where the Analytics says nothing else.
const DATA_TTL: i64 = 48;

impl ComponentKind for QueryEngine {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        &[template!("queryengine/run-queryengine.sh"), template!("queryengine/queryengine.ini")]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let analytics = given.peers.first("Analytics");
        Ok(Description {
            containers: vec![Container {
                name: "queryengine",
                check: Check::Port(PORT),
                introspect: Introspect::at(PORT),
                requests: ("50m", "128Mi"),
                // For dumps of its own memory.
                capabilities: &["SYS_PTRACE"],
                ..Container::default()
            }],
            files: vec![
                File::shared("run-queryengine.sh", "queryengine/run-queryengine.sh"),
                File::of_pod("queryengine", "queryengine/queryengine.ini"),
            ],
            values: json!({
                "data_ttl": analytics.map_or(DATA_TTL, |one| one.number("analyticsDataTTL", DATA_TTL)),
                "cassandra": analytics_database(given.peers)
                    .map(|database| database.endpoints("cqlPort").join(" "))
                    .unwrap_or_default(),
                "around": around(given),
            }),
            volumes: vec![Volume::folder("contrail-logs", "/var/log/contrail/queryengine")],
            ..Description::default()
        })
    }
}
