//! The ConfigMap with the files of all pods: shared ones, and one of each pod's own, whose key has the
//! pod's address. A pod waits for its own.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::Valid;
use super::{BuildError, Owner, digest};
use crate::component::Scope;
use crate::ensemble::DATA_LOST;
use crate::ensemble::record::ANNOTATION;
use crate::template::Templates;

/// The files of all pods.
pub(super) struct Files {
    /// By key.
    pub(super) all: BTreeMap<String, String>,
    /// A digest of what no pod reads again while it runs. Addresses are not in it: a member more restarts
    /// none of the others.
    pub(super) digest: String,
}

pub(super) fn files(templates: &Templates, valid: &Valid) -> Result<Files, BuildError> {
    let mut all = BTreeMap::new();
    let mut read_once = Vec::new();
    for file in &valid.description.files {
        let levels = [
            ("log_level", valid.log_level().into()),
            ("log_level_name", valid.log_level_name().into()),
        ];
        let shared = with(&valid.description.values, levels);
        let shared = with(&shared, file.number.map(|number| ("number", number.into())));
        let name = match file.number {
            Some(number) => format!("{}.{number}", file.name),
            None => file.name.to_owned(),
        };
        match file.scope {
            Scope::Shared | Scope::Watched => {
                let text = templates.render(file.template, &shared)?;
                if file.scope == Scope::Shared {
                    read_once.push(text.clone());
                }
                all.insert(name, text);
            }
            Scope::Pod => {
                for address in &valid.addresses {
                    let host = valid.host_of(address);
                    let own = [("pod_ip", address.as_str().into()), ("host", host.into())];
                    let values = with(&shared, own.into_iter().chain(ensemble(valid, address)));
                    let text = templates.render(file.template, &values)?;
                    all.insert(format!("{name}.{address}"), text);
                }
            }
        }
    }
    let digest = digest(read_once.iter().map(String::as_bytes));
    Ok(Files { all, digest })
}

/// What a member gets to know of the others. Who starts together only those learn that do.
fn ensemble(valid: &Valid, address: &str) -> Vec<(&'static str, Value)> {
    let Some(members) = &valid.members else { return Vec::new() };
    let record = &members.record;
    let id = |address: &str| record.ids.get(address).copied();
    let first = record.first.iter().filter(|_| !members.had_quorum);
    let first = first.map(|address| json!({"id": id(address), "host": address}));
    vec![
        ("id", json!(id(address))),
        ("peers", json!(valid.addresses)),
        ("first", first.collect()),
        ("data_lost", DATA_LOST.into()),
    ]
}

fn with(values: &Value, more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let mut values = values.clone();
    if let Value::Object(values) = &mut values {
        values.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    values
}

/// With what is on record of the members, where that is in no single StatefulSet, from their first start on.
pub(super) fn build(
    owner: &Owner<'_>,
    files: BTreeMap<String, String>,
    is_started: bool,
) -> ConfigMap {
    let valid = owner.valid;
    let mut metadata = owner.metadata(valid.instance.config_map());
    // Nodes that have no address yet are none.
    let has_homes = valid.homes.as_ref().is_some_and(|homes| !homes.is_empty());
    let members = valid.members.as_ref();
    let members = members.filter(|members| has_homes && (is_started || members.is_recorded));
    let record = members.map(|members| json!(members.record).to_string());
    metadata.annotations = record.map(|record| [(ANNOTATION.to_owned(), record)].into());
    ConfigMap { metadata, data: Some(files), ..ConfigMap::default() }
}
