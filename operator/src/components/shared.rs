//! What the descriptions of several components have in common.

pub(super) mod access;
pub(super) mod around;
pub(crate) mod config_api;
pub(super) mod control;
pub(crate) mod keystone;
pub(super) mod node_init;
pub(super) mod node_manager;
pub(super) mod provisioner;

use serde_json::{Map, Value};

use crate::component::Volume;

/// The port that a field has, or the default.
pub(super) fn port(given: Option<i64>, default: u16) -> u16 {
    given.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0).unwrap_or(default)
}

/// What a status has, of those that are there.
pub(super) fn fields(object: &Value) -> Map<String, Value> {
    let fields = object.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Where the daemons of a component log.
pub(super) const fn logs(path: &'static str) -> Volume {
    Volume::folder("contrail-logs", path)
}
