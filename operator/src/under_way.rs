//! Which passes are under way: what a process waits for that stops, and what it says of those that it leaves.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use tokio::sync::Notify;

/// The passes that have started and not ended.
#[derive(Default)]
pub struct UnderWay {
    passes: Mutex<Passes>,
    ended: Notify,
}

#[derive(Default)]
struct Passes {
    started: u64,
    objects: BTreeMap<u64, String>,
}

/// One of them, until it is dropped.
pub(crate) struct Pass<'a> {
    of: &'a UnderWay,
    number: u64,
}

impl UnderWay {
    /// A pass over that object starts.
    pub(crate) fn start(&self, subject: &str, object: &DynamicObject) -> Pass<'_> {
        let namespace = object.namespace().unwrap_or_default();
        let mut passes = self.passes();
        passes.started += 1;
        let number = passes.started;
        passes.objects.insert(number, format!("{subject} {namespace}/{}", object.name_any()));
        drop(passes);
        Pass { of: self, number }
    }

    /// Kind, namespace and name of each, the oldest first.
    pub(crate) fn list(&self) -> Vec<String> {
        self.passes().objects.values().cloned().collect()
    }

    /// Returns when there is none.
    pub(crate) async fn over(&self) {
        loop {
            // Before the look, so that none ends between the two.
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.passes().objects.is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn passes(&self) -> MutexGuard<'_, Passes> {
        // Texts cannot be left half changed.
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.of.passes().objects.remove(&self.number);
        self.of.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pass_is_under_way_until_it_is_dropped() {
        let under_way = UnderWay::default();
        let object = |name: &str| {
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "tf"}})).unwrap()
        };
        let first = under_way.start("Config", &object("a"));
        let second = under_way.start("Network", &object("a"));
        assert_eq!(under_way.list(), ["Config tf/a", "Network tf/a"]);
        drop(first);
        assert_eq!(under_way.list(), ["Network tf/a"]);
        drop(second);
        assert!(under_way.list().is_empty());
    }

    #[tokio::test]
    async fn they_are_over_when_the_last_is_dropped() {
        let under_way = UnderWay::default();
        under_way.over().await;
        let object = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
        let pass = under_way.start("Config", &object);
        let over = under_way.over();
        let mut over = std::pin::pin!(over);
        assert!(futures::poll!(&mut over).is_pending());
        drop(pass);
        over.await;
    }
}
