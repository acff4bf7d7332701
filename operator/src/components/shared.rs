//! What the descriptions of several components have in common.

pub(super) mod access;
pub(super) mod around;
pub(super) mod control;
pub(super) mod node_init;
pub(super) mod node_manager;
pub(super) mod provisioner;

use crate::component::Volume;

/// The port that a field has, or the default.
pub(super) fn port(given: Option<i64>, default: u16) -> u16 {
    given.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0).unwrap_or(default)
}

/// Where the daemons of a component log.
pub(super) const fn logs(path: &'static str) -> Volume {
    Volume::folder("contrail-logs", path)
}
