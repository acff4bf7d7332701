//! The world from which a plan was made, in a few letters: a plan that was stored is carried out only where it is still
//! so. It covers rows by what they mean to agents, the records, SNAT of the network and the pools. Deliberately not in
//! it: the order of rows with different keys, null against empty fields, and all other properties.

use std::fmt;

use opensdn_config_api::link_local::Row;
use opensdn_config_api::ownership::Records;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::live::{Fact, Live};

/// A digest of the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// That of this cloud.
    #[must_use]
    pub fn of(live: &Live) -> Self {
        let world = json!({
            "rows": fact(&live.rows, |rows| listed(rows)),
            "records": fact(&live.records, noted),
            "snat": fact(&live.network, |network| json!(
                network.as_ref().map(|network| network.fabric_snat.unwrap_or_default())
            )),
            "pools": fact(&live.pools, |pools| json!(pools)),
        });
        let digest = Sha256::digest(world.to_string());
        let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(digits.concat())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

fn fact<T>(fact: &Fact<T>, of: impl FnOnce(&T) -> Value) -> Value {
    match fact {
        Fact::Known(value) => json!({ "is": of(value) }),
        Fact::Unknown(_) => Value::Null,
    }
}

fn listed(rows: &[Row]) -> Value {
    let mut rows: Vec<[String; 3]> = rows
        .iter()
        .map(|row| [row.key().to_string(), row.name().to_owned(), row.target().to_string()])
        .collect();
    // Stable: of equal keys the first wins.
    rows.sort_by(|[one, ..], [other, ..]| one.cmp(other));
    json!(rows)
}

fn noted(records: &Records) -> Value {
    let ours = records.ours.rows.iter();
    let ours =
        ours.map(|(key, held)| format!("{key} {} {} {:?}", held.name, held.target, held.how));
    let others = records.other_keys.iter().map(ToString::to_string);
    json!({
        "ours": ours.collect::<Vec<_>>(),
        "snat": format!("{:?}", records.ours.snat),
        "pools": format!("{:?}", records.ours.pools),
        "others": others.collect::<Vec<_>>(),
        "networks": records.other_networks.keys().collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
