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
    for (service, field, title) in [
        (&underlay.config_database, "configDatabase", "config database"),
        (&underlay.zookeeper, "zookeeper", "ZooKeeper"),
    ] {
        // Without one of its own it is looked for at the addresses of config.
        let (endpoint, field) = match service {
            Some(own) => (Some(own), field),
            None => (underlay.config.as_ref(), "config"),
        };
        let number = endpoint.map_or(0, |endpoint| endpoint.addresses.len());
        if number > 0 && number.is_multiple_of(2) {
            let text = format!("the {title} of the underlay is looked for at {number} addresses");
            verdict.add(EVEN.at(at.key(field).key("addresses")).says(text));
        }
    }
}
