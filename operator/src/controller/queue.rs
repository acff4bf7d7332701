//! What a controller is to look at next. The passes themselves, and the times at which one is due again, are kube's.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use prometheus_client::metrics::gauge::Gauge;

/// An object, by its name.
pub(super) type Named = ObjectRef<DynamicObject>;

/// The objects that changed and wait for a pass.
pub(super) struct Queue {
    sender: UnboundedSender<Named>,
    /// Until it is read.
    receiver: Mutex<Option<UnboundedReceiver<Named>>>,
    /// Those of which no pass has started since, each once, as kube keeps them.
    waiting: Mutex<HashSet<Named>>,
    depth: Gauge,
}

impl Queue {
    /// An empty one. `depth` may count those of other queues, too.
    pub(super) fn new(depth: Gauge) -> Self {
        let (sender, receiver) = unbounded();
        let receiver = Mutex::new(Some(receiver));
        Self { sender, receiver, waiting: Mutex::default(), depth }
    }

    /// Has the object looked at.
    pub(super) fn send(&self, object: Named) {
        if self.waiting().insert(object.clone()) {
            self.depth.inc();
        }
        // An error means that the process ends.
        let _ = self.sender.unbounded_send(object);
    }

    /// What comes in; nothing, where that is read already.
    pub(super) fn receive(&self) -> Option<UnboundedReceiver<Named>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A pass over the object starts, or there is none any more to be looked at.
    pub(super) fn taken(&self, object: &Named) {
        if self.waiting().remove(object) {
            self.depth.dec();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashSet<Named>> {
        // A set cannot be left half changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn an_object_that_changes_again_before_its_pass_waits_once() {
        let depth = Gauge::default();
        let queue = Queue::new(depth.clone());
        let named = |name: &str| ObjectRef::new_with(name, Kind::Manager.resource()).within("tf");
        for name in ["a", "b", "a"] {
            queue.send(named(name));
        }
        assert_eq!(depth.get(), 2);
        queue.taken(&named("a"));
        queue.taken(&named("a"));
        assert_eq!(depth.get(), 1);
        queue.send(named("a"));
        assert_eq!(depth.get(), 2, "it changed while its pass was under way");
    }
}
