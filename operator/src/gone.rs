//! Objects that are not there any more: what is remembered of them is forgotten, and the cloud of one that has something there is
//! not asked any more.

use std::sync::{Mutex, PoisonError};

use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use kube::api::DynamicObject;

use crate::kind::Kind;

/// An object that is gone.
type GoneObject = (Kind, DynamicObject);

/// All that go, in their order.
pub(crate) struct Gone {
    sender: UnboundedSender<GoneObject>,
    /// Until they are read.
    receiver: Mutex<Option<UnboundedReceiver<GoneObject>>>,
}

impl Default for Gone {
    fn default() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl Gone {
    /// This one is gone.
    pub(crate) fn send(&self, kind: Kind, object: DynamicObject) {
        // An error means that the process ends.
        let _ = self.sender.unbounded_send((kind, object));
    }

    /// Does this for each that goes from now on; the first who asks has them. It never ends.
    pub(crate) async fn each(&self, forget: impl Fn(Kind, &DynamicObject)) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut gone) = receiver {
            while let Some((kind, object)) = gone.next().await {
                forget(kind, &object);
            }
        }
        std::future::pending().await
    }
}
