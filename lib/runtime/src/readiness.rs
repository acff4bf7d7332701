//! Whether the process may be sent requests: each part adds a check and says whether it passes.
//! Who asks is in `admin`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The checks that must all pass before the process is ready; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    missing: Arc<Mutex<BTreeMap<String, String>>>,
    changes: Arc<watch::Sender<()>>,
    reported_ready: Arc<AtomicBool>,
}

/// One check, in the hands of the part that knows whether it passes.
#[derive(Debug)]
pub struct ReadinessCheck {
    name: String,
    readiness: Readiness,
}

impl Readiness {
    /// Adds a check that does not pass yet, and why. It does not start to pass when its handle is
    /// dropped: a part that died must not look like one that is ready.
    pub fn add_check(&self, name: impl Into<String>, why: impl Into<String>) -> ReadinessCheck {
        let check = ReadinessCheck { name: name.into(), readiness: self.clone() };
        check.fail(why);
        check
    }

    /// Adds a check that passes until it fails.
    pub fn initially_ready(&self, name: impl Into<String>) -> ReadinessCheck {
        ReadinessCheck { name: name.into(), readiness: self.clone() }
    }

    /// The checks that do not pass: name and reason.
    pub fn missing(&self) -> Vec<(String, String)> {
        self.lock().iter().map(|(name, why)| (name.clone(), why.clone())).collect()
    }

    /// Changes whenever a check starts to pass or to fail.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether the process has reported once that it is ready: requests may be on their way here
    /// since. A part that starts only then must not make the process unready by starting.
    pub fn has_reported_ready(&self) -> bool {
        self.reported_ready.load(Ordering::Acquire)
    }

    /// The process now reports that it is ready.
    pub(crate) fn report_ready(&self) {
        self.reported_ready.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A map of texts cannot be left half changed.
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadinessCheck {
    /// The check passes.
    pub fn pass(&self) {
        if self.readiness.lock().remove(&self.name).is_some() {
            self.readiness.changes.send_replace(());
        }
    }

    /// The check fails, and why.
    pub fn fail(&self, why: impl Into<String>) {
        if self.readiness.lock().insert(self.name.clone(), why.into()).is_none() {
            self.readiness.changes.send_replace(());
        }
    }

    /// Removes the check, as with a cache that is no longer needed.
    pub fn remove(self) {
        self.pass();
    }
}
