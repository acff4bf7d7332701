//! The ConfigMap with the files of all pods: shared ones, and one of each pod's own, whose key has the
//! pod's address. A pod waits for its own.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::{BuildError, Owner, digest};
use crate::component::Scope;
use crate::reconcile::validate::Valid;
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
        let shared = with(&valid.description.values, &[("log_level", valid.log_level())]);
        match file.scope {
            Scope::Shared => {
                let text = templates.render(file.template, &shared)?;
                read_once.push(text.clone());
                all.insert(file.name.to_owned(), text);
            }
            Scope::Pod => {
                for address in &valid.addresses {
                    let host = valid.host_of(address);
                    let values = with(&shared, &[("pod_ip", address), ("host", host)]);
                    let text = templates.render(file.template, &values)?;
                    all.insert(format!("{}.{address}", file.name), text);
                }
            }
        }
    }
    let digest = digest(read_once.iter().map(String::as_bytes));
    Ok(Files { all, digest })
}

fn with(values: &Value, more: &[(&str, &str)]) -> Value {
    let mut values = values.clone();
    for (name, value) in more {
        if let Value::Object(values) = &mut values {
            values.insert((*name).to_owned(), (*value).into());
        }
    }
    values
}

pub(super) fn build(owner: &Owner<'_>, files: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap {
        metadata: owner.metadata(owner.valid.instance.config_map()),
        data: Some(files),
        ..ConfigMap::default()
    }
}
