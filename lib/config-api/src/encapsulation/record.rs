//! Who has set the value, and to what: an annotation of global-vrouter-config.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::value::Priorities;
use crate::ownership::ClusterId;

/// Its name must not begin as those of nested clusters do, which would take it for one of theirs.
pub(super) const ANNOTATION: &str = "opensdn/encapsulation-priorities";
/// The version that is written.
const VERSION: u64 = 1;

/// Who has set the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// By the id of a cluster.
    pub owner: String,
    /// What it has set.
    pub set: Priorities,
    pub(super) state: State,
}

/// Whether the value was there already when the record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    Writing,
    Written,
}

/// What is no record.
#[derive(Debug, thiserror::Error)]
#[error(
    "the annotation {ANNOTATION} of global-vrouter-config is no record that can be read: {why}; update this program, or \
     remove the annotation if no cluster sets the encapsulation priorities any more"
)]
pub struct Unreadable {
    why: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u64,
    owner: String,
    set: Priorities,
    state: State,
}

impl Record {
    /// Whether it is this owner's.
    #[must_use]
    pub fn is_of(&self, owner: &ClusterId) -> bool {
        self.owner == owner.to_string()
    }

    pub(super) fn of(annotations: &BTreeMap<String, String>) -> Result<Option<Self>, Unreadable> {
        let Some(text) = annotations.get(ANNOTATION) else { return Ok(None) };
        let version: Value = serde_json::from_str(text).map_err(unreadable)?;
        if version.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(unreadable(format!("its version is not {VERSION}")));
        }
        let Written { owner, set, state, .. } = serde_json::from_str(text).map_err(unreadable)?;
        Ok(Some(Self { owner, set, state }))
    }

    pub(super) fn json(self) -> String {
        let Self { owner, set, state } = self;
        serde_json::json!(Written { version: VERSION, owner, set, state }).to_string()
    }
}

fn unreadable(why: impl ToString) -> Unreadable {
    Unreadable { why: why.to_string() }
}
