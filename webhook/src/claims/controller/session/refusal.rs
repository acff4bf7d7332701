//! Whether the API server takes claims: what it has answered to those that had to be written, and to a
//! probe, since there may be none to write for hours. While it takes none only the probe asks. Deliberately
//! not here: the calls.

use std::collections::BTreeMap;
use std::time::Duration;

use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use tokio::time::Instant;

/// How often it is asked.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// How soon it may be asked again after it has refused a claim.
const PROBE_AGAIN: Duration = Duration::from_secs(1);

/// What is known of it.
pub(super) struct Refusals {
    next_probe: Instant,
    last_probe: Option<Instant>,
    /// The answer to the last probe: why not, if so.
    probed: Option<Option<String>>,
    /// It has refused a claim, and has not been asked since whether it refuses all of them.
    is_in_doubt: bool,
    /// Claims of stored objects that are not written yet.
    unwritten: BTreeMap<String, Unwritten>,
    /// How many of those there are of each policy.
    by_policy: BTreeMap<String, usize>,
    /// Whether it was logged that they are refused.
    is_logged: bool,
}

/// A claim that has to be written.
struct Unwritten {
    policy: String,
    /// Why it was refused, if it was.
    why: Option<String>,
}

/// What an administrator should know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Claims are refused from now on, and so many wait.
    Refused { error: String, waiting: usize },
    /// They are not any more, and so many are to be written.
    Taken { waiting: usize },
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self {
            next_probe: Instant::now(),
            last_probe: None,
            probed: None,
            is_in_doubt: false,
            unwritten: BTreeMap::new(),
            by_policy: BTreeMap::new(),
            is_logged: false,
        }
    }

    /// When it is to be asked again.
    pub(super) fn next_probe(&self) -> Instant {
        self.next_probe
    }

    /// It is being asked.
    pub(super) fn asked(&mut self, now: Instant) {
        self.last_probe = Some(now);
        self.next_probe = now + PROBE_INTERVAL;
    }

    /// It has answered.
    pub(super) fn answered(&mut self, answer: &Result<(), CallError>) {
        self.is_in_doubt = false;
        match answer {
            Ok(()) => self.is_taken(),
            // No answer is no refusal: whether it takes claims is as unknown as everything else.
            Err(error) => {
                let refused_before = self.probed.take().flatten();
                self.probed = refusal(error).or(refused_before).map(Some);
            }
        }
    }

    /// It takes claims again: what was refused before says nothing of now.
    fn is_taken(&mut self) {
        if self.probed != Some(None) {
            self.unwritten.values_mut().for_each(|one| one.why = None);
        }
        self.probed = Some(None);
    }

    /// Whether it is worth while to write claims, or to give any up: not while none is taken.
    pub(super) fn may_write(&self) -> bool {
        !self.is_in_doubt && !matches!(self.probed, Some(Some(_)))
    }

    /// This claim of a policy has to be written.
    pub(super) fn is_unwritten(&mut self, name: &str, policy: &str) {
        let why = self.unwritten.get_mut(name).and_then(|known| known.why.take());
        self.is_settled(name);
        *self.by_policy.entry(policy.to_owned()).or_default() += 1;
        self.unwritten.insert(name.to_owned(), Unwritten { policy: policy.to_owned(), why });
    }

    /// It is written, or has not to be any more.
    pub(super) fn is_settled(&mut self, name: &str) {
        let Some(known) = self.unwritten.remove(name) else { return };
        if let Some(count) = self.by_policy.get_mut(&known.policy) {
            *count = count.saturating_sub(1);
        }
    }

    /// It was written; of which policy it is, if it had to be.
    pub(super) fn is_written(&mut self, name: &str) -> Option<String> {
        // Where a probe says that claims are taken, those that are refused nevertheless stay so.
        self.is_taken();
        let policy = self.unwritten.get(name).map(|known| known.policy.clone());
        self.is_settled(name);
        policy
    }

    /// It could not be written, if it was to be.
    pub(super) fn failed(&mut self, name: &str, error: &CallError, now: Instant) {
        let Some(known) = self.unwritten.get_mut(name) else { return };
        known.why = refusal(error);
        if known.why.is_some() && self.may_write() {
            self.is_in_doubt = true;
            let soon = self.last_probe.map_or(now, |last| now.max(last + PROBE_AGAIN));
            self.next_probe = self.next_probe.min(soon);
        }
    }

    /// Whether all have been written.
    pub(super) fn are_all_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Whether any of a policy have not.
    pub(super) fn are_left_of(&self, policy: &str) -> bool {
        self.by_policy.get(policy).is_some_and(|count| *count > 0)
    }

    /// Why claims are refused, if they are; `None` while that is not known.
    pub(super) fn reason(&self) -> Option<Option<&str>> {
        let first = || self.unwritten.values().find_map(|one| one.why.as_deref());
        match &self.probed {
            Some(Some(why)) => Some(Some(why)),
            Some(None) => Some(first()),
            None => first().map(Some),
        }
    }

    /// What has changed since the last call.
    pub(super) fn change(&mut self) -> Option<Change> {
        let (reason, waiting) = (self.reason()?, self.unwritten.len());
        let change = match reason {
            Some(error) if !self.is_logged => Change::Refused { error: error.to_owned(), waiting },
            None if self.is_logged => Change::Taken { waiting },
            _ => return None,
        };
        self.is_logged = !self.is_logged;
        Some(change)
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

    const FORBIDDEN: &str = "create uniqueclaims: forbidden";

    #[tokio::test]
    async fn claims_are_refused_as_long_as_the_probe_or_one_of_them_is() {
        let mut refusals = Refusals::new();
        let now = Instant::now();
        assert_eq!(refusals.reason(), None, "nothing is known");
        refusals.answered(&answer(403, "forbidden").await);
        assert_eq!(refusals.reason(), Some(Some(FORBIDDEN)));
        for (code, message) in [(429, "too many"), (400, "webhook x does not support dry run")] {
            refusals.answered(&answer(code, message).await);
            assert_eq!(refusals.reason(), Some(Some(FORBIDDEN)), "{message}: it says nothing else");
        }
        refusals.is_unwritten("c", "p");
        refusals.answered(&Ok(()));
        assert_eq!(refusals.reason(), Some(None));
        assert!(!refusals.are_all_written());
        let error = answer(422, "invalid").await.unwrap_err();
        refusals.failed("c", &error, now);
        refusals.failed("was-to-be-released", &error, now);
        refusals.answered(&Ok(()));
        let own = Some(Some("create uniqueclaims: invalid"));
        assert_eq!(refusals.reason(), own, "this one is, and no other");
        refusals.is_unwritten("c", "p");
        assert_eq!(refusals.is_written("other"), None);
        assert_eq!(refusals.reason(), own);
        refusals.is_settled("c");
        assert_eq!(refusals.reason(), Some(None));
        assert!(refusals.are_all_written());
    }

    #[tokio::test]
    async fn while_claims_are_refused_only_the_probe_asks_and_the_first_that_is_taken_ends_it() {
        let mut refusals = Refusals::new();
        let now = Instant::now();
        for name in ["a", "b", "c"] {
            refusals.is_unwritten(name, "p");
            refusals.is_unwritten(name, "p");
        }
        assert!(refusals.may_write());
        refusals.asked(now);
        refusals.answered(&Ok(()));
        let error = answer(404, "page not found").await.unwrap_err();
        let later = now + PROBE_AGAIN * 3;
        refusals.failed("a", &error, later);
        assert!(!refusals.may_write(), "it may be all of them");
        assert_eq!(refusals.next_probe(), later);
        refusals.asked(later);
        refusals.failed("b", &error, later);
        let error = "create uniqueclaims: page not found".to_owned();
        assert_eq!(refusals.change(), Some(Change::Refused { error, waiting: 3 }));
        refusals.answered(&answer(404, "page not found").await);
        assert!(!refusals.may_write());
        assert_eq!((refusals.next_probe(), refusals.change()), (later + PROBE_INTERVAL, None));

        refusals.answered(&Ok(()));
        assert!(refusals.may_write());
        assert_eq!(refusals.reason(), Some(None), "none is refused any more, whatever is left");
        assert_eq!(refusals.change(), Some(Change::Taken { waiting: 3 }));
        assert!(refusals.are_left_of("p") && !refusals.are_left_of("q"));
        for name in ["a", "b", "c"] {
            assert_eq!(refusals.is_written(name).as_deref(), Some("p"));
        }
        assert!(refusals.are_all_written() && !refusals.are_left_of("p"));
    }

    #[tokio::test]
    async fn where_no_probe_is_answered_claims_are_tried_a_few_at_a_time_until_one_is_taken() {
        let mut refusals = Refusals::new();
        let now = Instant::now();
        for name in ["a", "b"] {
            refusals.is_unwritten(name, "p");
        }
        refusals.asked(now);
        refusals.failed("a", &answer(403, "forbidden").await.unwrap_err(), now);
        assert_eq!(refusals.next_probe(), now + PROBE_AGAIN, "not more often than that");
        assert!(!refusals.may_write());
        refusals.answered(&answer(400, "webhook x does not support dry run").await);
        assert!(refusals.may_write());
        assert_eq!(refusals.reason(), Some(Some(FORBIDDEN)));
        assert_eq!(refusals.is_written("b").as_deref(), Some("p"));
        assert_eq!(refusals.reason(), Some(None), "it was the first one of many");
    }
}
