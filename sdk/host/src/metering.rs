//! What evaluations cost, for policy authors: the webhook's engine keeps no count.
//! Deliberately not here: the limits, which hold in every engine (`engine.rs`).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// What an engine counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metering {
    /// Nothing.
    #[default]
    Off,
    /// Time and memory. The code is the very same as without, so its times are those of the
    /// webhook.
    Time,
    /// Fuel too: a count of instructions that is the same on every machine. The code that counts
    /// is slower, so its times say little.
    Fuel,
}

/// What one evaluation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Until the fresh instance was ready.
    pub instantiate: Duration,
    /// All of it, the instance and lookups included.
    pub total: Duration,
    /// Instructions, where they are counted.
    pub fuel: Option<u64>,
    /// Linear memory at its largest, in bytes.
    pub memory: usize,
}

/// Collects the costs of the evaluations of one engine, in the order in which they end.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    costs: Arc<Mutex<Vec<Cost>>>,
}

impl Meter {
    /// The costs since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Cost> {
        std::mem::take(&mut *self.costs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, cost: Cost) {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner).push(cost);
    }
}
