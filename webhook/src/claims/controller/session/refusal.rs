//! Whether the API server takes claims: what it has answered to those that had to be written, and to a
//! probe, since there may be none to write for hours. Deliberately not here: the calls.

use std::collections::BTreeMap;
use std::time::Duration;

use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use tokio::time::Instant;

/// How often it is asked.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// What is known of it.
pub(super) struct Refusals {
    next_probe: Instant,
    /// The answer to the last probe: why not, if so.
    probed: Option<Option<String>>,
    /// Claims of stored objects that are not written yet, and why they were refused, if they were.
    unwritten: BTreeMap<String, Option<String>>,
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self { next_probe: Instant::now(), probed: None, unwritten: BTreeMap::new() }
    }

    /// When it is to be asked again.
    pub(super) fn next_probe(&self) -> Instant {
        self.next_probe
    }

    /// It is being asked.
    pub(super) fn asked(&mut self, now: Instant) {
        self.next_probe = now + PROBE_INTERVAL;
    }

    /// It has answered.
    pub(super) fn answered(&mut self, answer: &Result<(), CallError>) {
        let before = self.probed.clone();
        match answer {
            Ok(()) => self.probed = Some(None),
            // No answer is no refusal: whether it takes claims is as unknown as everything else.
            Err(error) => {
                if let Some(why) = refusal(error) {
                    self.probed = Some(Some(why));
                }
            }
        }
        match (before.flatten(), self.probed.clone().flatten()) {
            (None, Some(error)) => tracing::error!(error, "failed to write claims"),
            (Some(_), None) => tracing::info!("claims can be written again"),
            _ => {}
        }
    }

    /// This claim has to be written.
    pub(super) fn is_unwritten(&mut self, name: &str) {
        self.unwritten.entry(name.to_owned()).or_default();
    }

    /// It is written, or has not to be any more.
    pub(super) fn is_settled(&mut self, name: &str) {
        self.unwritten.remove(name);
    }

    /// It could not be written, if it was to be.
    pub(super) fn failed(&mut self, name: &str, error: &CallError) {
        if let Some(why) = self.unwritten.get_mut(name) {
            *why = refusal(error);
        }
    }

    /// Whether all have been written.
    pub(super) fn are_all_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Why claims are refused, if they are; `None` while that is not known.
    pub(super) fn reason(&self) -> Option<Option<&str>> {
        let first = self.unwritten.values().flatten().next();
        match &self.probed {
            Some(Some(why)) => Some(Some(why)),
            Some(None) | None if first.is_some() => Some(first.map(String::as_str)),
            Some(None) => Some(None),
            None => None,
        }
    }
}

/// Why the API server refuses the write, if that is what it says, and not that it has no time, or that
/// another was faster.
fn refusal(error: &CallError) -> Option<String> {
    let status = error.status()?;
    // Then a webhook of another product wants to see only claims that are stored.
    let is_of_probes = status.message.contains("does not support dry run");
    let is_refused = ![408, 409, 429].contains(&status.code) && !is_of_probes;
    is_refused.then(|| error_chain(error))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use opensdn_runtime::call::{Call, Verb};

    use super::*;

    async fn answer(code: u16, message: &str) -> Result<(), CallError> {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        let answer = async { Err::<(), _>(kube::Error::Api(status.boxed())) };
        Call::new(Verb::Create, "uniqueclaims").run(answer).await
    }

    #[tokio::test]
    async fn claims_are_refused_as_long_as_the_probe_or_one_of_them_is() {
        let mut refusals = Refusals::new();
        assert_eq!(refusals.reason(), None, "nothing is known");
        refusals.answered(&answer(403, "forbidden").await);
        let why = "create uniqueclaims: forbidden";
        assert_eq!(refusals.reason(), Some(Some(why)));
        for (code, message) in [(429, "too many"), (400, "webhook x does not support dry run")] {
            refusals.answered(&answer(code, message).await);
            assert_eq!(refusals.reason(), Some(Some(why)), "{message}: it says nothing else");
        }
        refusals.is_unwritten("c");
        refusals.answered(&Ok(()));
        assert_eq!(refusals.reason(), Some(None));
        assert!(!refusals.are_all_written());
        let error = answer(422, "invalid").await.unwrap_err();
        refusals.failed("c", &error);
        refusals.failed("was-to-be-released", &error);
        assert_eq!(refusals.reason(), Some(Some("create uniqueclaims: invalid")));
        refusals.is_settled("c");
        assert_eq!(refusals.reason(), Some(None));
        assert!(refusals.are_all_written());
    }
}
