//! The databases of the underlay that a nested cluster is given by their addresses.

use opensdn_policy_components::null_as_default;
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde::Deserialize;

pub(crate) const EVEN: Message = Message {
    code: "OSDN3025",
    severity: Severity::Warn,
    title: "an even number of the underlay's databases is named",
    explanation: "The config database and ZooKeeper have an odd number of members as a rule, for an even one survives no \
        more failures than one less. Of two or four addresses usually one was forgotten: while the others are down, \
        kube-manager does not get through although the database works.",
    hint: "name all members; if these are all, give the database of the underlay an odd number",
};

/// What is read of `nested`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Nested {
    #[serde(deserialize_with = "null_as_default")]
    underlay: Underlay,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Underlay {
    config: Option<Endpoint>,
    config_database: Option<Endpoint>,
    zookeeper: Option<Endpoint>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    #[serde(deserialize_with = "null_as_default")]
    addresses: Vec<String>,
}

/// `at` is where `nested` is.
pub(crate) fn judge_nested(nested: &Nested, at: &Pointer, verdict: &mut Verdict) {
    judge(&nested.underlay, &at.key("underlay"), verdict);
}

/// `at` is where the services are.
pub(crate) fn judge(underlay: &Underlay, at: &Pointer, verdict: &mut Verdict) {
    let (database, zookeeper) = (&underlay.config_database, &underlay.zookeeper);
    // Without addresses of its own a service is looked for at those of config.
    let of_config = match (database, zookeeper) {
        (None, None) => "config database and ZooKeeper of the underlay are",
        (None, Some(_)) => "config database of the underlay is",
        (Some(_), _) => "ZooKeeper of the underlay is",
    };
    let is_of_config = database.is_none() || zookeeper.is_none();
    for (endpoint, field, who) in [
        (underlay.config.as_ref().filter(|_| is_of_config), "config", of_config),
        (database.as_ref(), "configDatabase", "config database of the underlay is"),
        (zookeeper.as_ref(), "zookeeper", "ZooKeeper of the underlay is"),
    ] {
        let number = endpoint.map_or(0, |endpoint| endpoint.addresses.len());
        if number > 0 && number.is_multiple_of(2) {
            let text = format!("the {who} looked for at {number} addresses");
            verdict.add(EVEN.at(at.key(field).key("addresses")).says(text));
        }
    }
}
