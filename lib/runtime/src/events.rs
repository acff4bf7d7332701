//! Kubernetes Events, by which `kubectl describe` shows what happened to an object. Repeated ones
//! are counted by the API's series instead of written again.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};

use crate::call::{Call, CallError, Verb};

/// Publishes Events; cheap to clone.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// `controller` is the program, `instance` the replica.
    pub fn new(client: Client, controller: &str, instance: &str) -> Self {
        let reporter =
            Reporter { controller: controller.to_owned(), instance: Some(instance.to_owned()) };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Publishes an Event about the object.
    ///
    /// # Errors
    /// The call fails; the Event is then lost.
    pub async fn publish(&self, event: &Event, about: &ObjectReference) -> Result<(), CallError> {
        let call = Call::new(Verb::Create, "events");
        call.run(self.recorder.publish(event, about)).await
    }
}
