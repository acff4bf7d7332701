//! What `connectivity test --cleanup` answers.

use std::io::{self, Write};

use opensdn_validate::report::printable;
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::Answer;
use crate::probe::cleanup::Removed;
use crate::probe::run::is_right_missing;

/// What earlier runs had left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectivityCleanup {
    /// Namespaces that are gone with all that was in them.
    pub(crate) removed: Vec<String>,
    /// Namespaces that are still there.
    pub(crate) left: Vec<Left>,
}

/// A namespace that is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Left {
    /// Its name.
    pub(crate) namespace: String,
    /// Why.
    pub(crate) why: String,
}

impl Answer for ConnectivityCleanup {
    const KIND: &'static str = "ConnectivityCleanup";
}

impl ConnectivityCleanup {
    pub(crate) fn of(all: Vec<Removed>) -> Self {
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        for one in all {
            match one.left {
                None => removed.push(one.namespace),
                Some(why) => left.push(Left { namespace: one.namespace, why }),
            }
        }
        Self { removed, left }
    }

    /// The code by which a script knows it: what goes away later was waited for too long, and what this user may not remove
    /// stays.
    pub(crate) fn exit(&self) -> Exit {
        match &*self.left {
            [] => Exit::Done,
            left if left.iter().any(|one| is_right_missing(&one.why)) => Exit::Unreachable,
            _ => Exit::TimedOut,
        }
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.removed.is_empty() && self.left.is_empty() {
            return writeln!(out, "no earlier run has left anything");
        }
        for namespace in &self.removed {
            writeln!(out, "removed  namespace {}", printable(namespace))?;
        }
        for one in &self.left {
            let (namespace, why) = (printable(&one.namespace), printable(&one.why));
            writeln!(out, "left     namespace {namespace}: {why}")?;
        }
        Ok(())
    }
}
