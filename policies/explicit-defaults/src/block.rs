//! A block of an object, and which defaults it gets.

use opensdn_policy_sdk::{Outcome, Patch, Pointer};
use serde::Serialize;
use serde_json::{Value, json};

use crate::table::Static;

/// [`Block::write`] or [`Block::write_always`].
pub(crate) type Write = fn(&mut Block, &mut Patch, &str, Static) -> Outcome;

/// A block, as it is in the request and as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) at: Pointer,
    pub(crate) current: Value,
    /// `None` where what has it is new.
    pub(crate) before: Option<Value>,
}

impl Block {
    /// The spec with its commonConfiguration alone.
    pub(crate) fn of_spec(common: &Option<Value>, before: Option<&Option<Value>>) -> Self {
        Self {
            at: Pointer::from("/spec"),
            current: json!({"commonConfiguration": common}),
            before: before.map(|common| json!({"commonConfiguration": common})),
        }
    }

    /// What was stored at `path`.
    pub(crate) fn before(&self, path: &str) -> Option<&Value> {
        self.before.as_ref()?.pointer(path).filter(|value| !value.is_null())
    }

    /// Writes the default into what is new, and where the change takes out the default that was stored. Without another
    /// value that was there it runs as its operator does without one, which need not be the default.
    pub(crate) fn write(
        &mut self,
        patch: &mut Patch,
        path: &str,
        value: impl Serialize,
    ) -> Outcome {
        let stored =
            |before: &Value| serde_json::to_value(&value).is_ok_and(|value| *before == value);
        if self.before.is_none() || self.before(path).is_some_and(stored) {
            self.write_always(patch, path, value)?;
        }
        Ok(())
    }

    /// Writes the default wherever the block has none.
    pub(crate) fn write_always(
        &mut self,
        patch: &mut Patch,
        path: &str,
        value: impl Serialize,
    ) -> Outcome {
        patch.default_value(&mut self.current, &self.at, path, value)
    }
}
