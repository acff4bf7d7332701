//! Says in the inventory that a removal is at work, again and again while it is: an install that comes meanwhile changes
//! nothing, and one that has taken the inventory back ends the removal. Without it one would delete what the other has just
//! found to be there.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::inventory::{self, Progress, REMOVAL_SEEN};
use super::requests::Requests;
use crate::exit::{Exit, Failure};
use crate::ui::{Ui, one_line};

/// How often it is said.
const EVERY: Duration = Duration::from_secs(3);
/// A call that takes longer is given up, and made again.
const CALL: Duration = Duration::from_secs(5);
/// A removal of which nothing is seen for so long is at work no more: longer than two calls that are given up.
const SILENCE: Duration = Duration::from_secs(20);

/// Of the inventory in one namespace.
#[derive(Clone, Copy)]
pub(crate) struct RemovalMark<'a> {
    requests: &'a Requests,
    namespace: &'a str,
    every: Duration,
    silence: Duration,
}

impl<'a> RemovalMark<'a> {
    pub(crate) fn new(requests: &'a Requests, namespace: &'a str) -> Self {
        Self { requests, namespace, every: EVERY, silence: SILENCE }
    }

    /// Says it for the first time; whether that is said. Where it is refused, as by the dead webhook of others, the removal is
    /// not held up by it.
    pub(crate) async fn set(self, ui: &mut Ui) -> bool {
        let said = self.say(None).await;
        if let Err(failure) = &said {
            let why = failure.causes.first().unwrap_or(&failure.message);
            ui.warn(&format!("others do not see that a removal is at work: {}", one_line(why)));
        }
        said.is_ok()
    }

    /// Over that version alone, where one is given: what an install has written since stays.
    async fn say(self, version: Option<&Value>) -> Result<(), Failure> {
        let state = Progress::Removing.word();
        let metadata = match version {
            Some(version) => json!({"resourceVersion": version}),
            None => json!({}),
        };
        let seen = Timestamp::now().to_string();
        let patch = json!({"metadata": metadata, "data": {"state": state, REMOVAL_SEEN: seen}});
        let key = inventory::key(self.namespace);
        self.requests.merge(&key, &patch, "say in the inventory that a removal is at work").await
    }

    /// Says it again and again. Returns when an install has taken the inventory back.
    pub(crate) async fn keep(self) -> Failure {
        loop {
            sleep(self.every).await;
            match timeout(CALL, self.stored()).await {
                Ok(Ok(Some(stored))) if is_removing(&stored) => {
                    let version = stored.pointer("/metadata/resourceVersion");
                    // Where it fails the next time counts.
                    let _ = timeout(CALL, self.say(version)).await;
                }
                Ok(Ok(Some(_))) => {
                    let message = "an install has started meanwhile: nothing more is deleted";
                    let hint = "agree with who installs; what is missing now: kubectl opensdn diff";
                    return Failure::new(Exit::Refused, "installed-meanwhile", message, hint);
                }
                // It is gone, as it shall be, or the API server does not answer for a moment: the removal sees that itself.
                Ok(Ok(None) | Err(_)) | Err(_) => {}
            }
        }
    }

    async fn stored(self) -> Result<Option<Value>, Failure> {
        self.requests.get(&inventory::key(self.namespace)).await
    }

    /// That no removal is at work; an interrupted one is none. Takes some seconds where one was begun.
    ///
    /// # Errors
    /// One is, or the cluster does not answer.
    pub(crate) async fn refuse_if_at_work(self, ui: &mut Ui) -> Result<(), Failure> {
        let seen = |stored: &Value| stored.pointer(&format!("/data/{REMOVAL_SEEN}")).cloned();
        let before = self.stored().await?;
        let Some(before) = before.filter(is_removing) else { return Ok(()) };
        ui.progress("a removal has started: looking whether it is at work");
        sleep(self.silence).await;
        let now = self.stored().await?;
        let Some(now) = now else { return Ok(()) };
        match (is_removing(&now), seen(&now) == seen(&before)) {
            (true, false) => {}
            (true, true) => {
                ui.note("a removal was interrupted: what it has deleted is made again");
                return Ok(());
            }
            // Another install has taken it back.
            (false, _) => return Ok(()),
        }
        let message = "a removal of this installation is at work: nothing has been changed";
        let hint = "wait for its end, or have who runs it stop it; then the same command";
        Err(Failure::new(Exit::Refused, "removal-at-work", message, hint))
    }
}

fn is_removing(stored: &Value) -> bool {
    stored.pointer("/data/state").and_then(Value::as_str) == Some(Progress::Removing.word())
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::clients::of_tests;
    use crate::fake_api_server::{FakeApiServer, Reply};
    use crate::output::DocumentFormat;

    /// The inventory: in which state it is the n-th time it is read, and when the removal has last said so.
    fn inventory(of: fn(usize) -> (&'static str, usize)) -> FakeApiServer {
        FakeApiServer::start(move |request, before| {
            let (state, seen) = of(if request.starts_with("GET") { before } else { 0 });
            Reply::Document(
                200,
                "",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "opensdn"},
                    "data": {"state": state, "removalSeenAt": seen.to_string()}}),
            )
        })
    }

    fn mark<'a>(requests: &'a Requests) -> RemovalMark<'a> {
        let (every, silence) = (Duration::from_millis(1), Duration::from_millis(1));
        RemovalMark { every, silence, ..RemovalMark::new(requests, "opensdn-system") }
    }

    async fn refused(of: fn(usize) -> (&'static str, usize)) -> Option<&'static str> {
        let server = inventory(of);
        let requests = Requests::new(of_tests(server.url()));
        let mut ui = Ui::plain(anstream::ColorChoice::Never, None::<DocumentFormat>);
        let refused = mark(&requests).refuse_if_at_work(&mut ui).await;
        refused.err().map(|failure| failure.code)
    }

    #[tokio::test]
    async fn a_removal_that_says_so_again_is_at_work_and_one_that_does_not_was_interrupted() {
        assert_eq!(refused(|read| ("removing", read)).await, Some("removal-at-work"));
        assert_eq!(refused(|_| ("removing", 1)).await, None);
        assert_eq!(refused(|_| ("applied", 1)).await, None);
    }

    #[tokio::test]
    async fn an_install_that_takes_the_inventory_back_ends_the_removal() {
        let server = inventory(|read| (if read < 3 { "removing" } else { "installing" }, 1));
        let requests = Requests::new(of_tests(server.url()));
        let failure = mark(&requests).keep().await;
        assert_eq!((failure.exit, failure.code), (Exit::Refused, "installed-meanwhile"));
        let said = server.seen().iter().filter(|one| one.starts_with("PATCH")).count();
        assert_eq!(said, 3, "it was said each time before: {:?}", server.seen());
    }
}
