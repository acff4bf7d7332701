//! What was written into status last, so that nothing is written twice. The watch shows what was
//! written some time later; and while it is lost it shows nothing, so that what is stored has to be
//! remembered for as long.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// What was written has come back by the watch by then, or is written again.
const ECHO: Duration = Duration::from_secs(5);

/// Whether the watch shows what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// It does, a moment later.
    Yes,
    /// It is lost.
    Lost,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is stored.
    Stored,
    /// It failed.
    Failed,
}

/// What was written last, per policy and part.
#[derive(Debug, Default)]
pub(super) struct Sent {
    parts: HashMap<(String, &'static str), (Value, Instant, Outcome)>,
}

impl Sent {
    /// Forgets what the watch must have shown by now, and what is about policies that are gone.
    pub(super) fn forget(&mut self, exists: impl Fn(&str) -> bool, watched: Watched, now: Instant) {
        self.parts.retain(|(name, _), (_, at, outcome)| {
            let is_kept = watched == Watched::Lost && *outcome == Outcome::Stored;
            exists(name) && (is_kept || now.saturating_duration_since(*at) < ECHO)
        });
    }

    /// Whether this was not written just now.
    pub(super) fn is_new(&self, name: &str, part: &'static str, value: &Value) -> bool {
        self.parts.get(&(name.to_owned(), part)).is_none_or(|(before, ..)| before != value)
    }

    /// Remembers what was written.
    pub(super) fn note(&mut self, name: &str, part: &'static str, value: Value, outcome: Outcome) {
        self.parts.insert((name.to_owned(), part), (value, Instant::now(), outcome));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_stored_is_not_written_again_while_the_watch_is_lost() {
        let (mut sent, one, start) = (Sent::default(), json!({"a": 1}), Instant::now());
        assert!(sent.is_new("p", "sum", &one));
        sent.note("p", "sum", one.clone(), Outcome::Stored);
        sent.note("p", "own", one.clone(), Outcome::Failed);
        assert!(!sent.is_new("p", "own", &one));
        for number in 1..10 {
            sent.forget(|_| true, Watched::Lost, start + ECHO * (number + 1));
            assert!(!sent.is_new("p", "sum", &one));
            assert!(sent.is_new("p", "sum", &json!({"a": 2})));
            assert!(sent.is_new("p", "own", &one), "it failed, and is tried again");
        }
        sent.forget(|_| true, Watched::Yes, start + ECHO * 11);
        assert!(sent.is_new("p", "sum", &one), "the watch has shown something else");
        sent.note("p", "sum", one.clone(), Outcome::Stored);
        sent.forget(|_| false, Watched::Lost, start);
        assert!(sent.is_new("p", "sum", &one), "the policy is gone");
    }
}
