//! Kubernetes Events, by which `kubectl describe` shows what happened to an object. Repeated ones
//! are counted by the API's series instead of written again.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};

use crate::call::{Call, CallError, Verb};

/// Longest note of an Event, in bytes; the API server takes no longer one.
const MAX_NOTE_BYTES: usize = 1024;

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

    /// Publishes an Event about the object, with as much of its note as the API server takes.
    ///
    /// # Errors
    /// The call fails; the Event is then lost.
    pub async fn publish(&self, event: Event, about: &ObjectReference) -> Result<(), CallError> {
        let call = Call::new(Verb::Create, "events");
        call.run(self.recorder.publish(&shortened(event), about)).await
    }
}

fn shortened(mut event: Event) -> Event {
    if let Some(note) = &mut event.note {
        note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES));
    }
    event
}

#[cfg(test)]
mod tests {
    use kube::runtime::events::EventType;

    use super::*;

    #[test]
    fn a_note_has_as_many_whole_characters_as_the_api_server_takes() {
        let event = |note: String| Event {
            type_: EventType::Normal,
            reason: "Reason".into(),
            note: Some(note),
            action: "Act".into(),
            secondary: None,
        };
        let note = |text: String| shortened(event(text)).note.unwrap();
        assert_eq!(note("ä".repeat(1000)).len(), MAX_NOTE_BYTES);
        assert_eq!(note(format!("a{}", "ä".repeat(1000))).len(), MAX_NOTE_BYTES - 1);
        assert_eq!(note("short".into()), "short");
    }
}
