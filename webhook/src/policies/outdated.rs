//! Whether the AdmissionPolicies are read. While they cannot be, as for want of a right, what is active
//! may not be what they say any more. Deliberately not here: the watch.

use std::time::Duration;

use opensdn_runtime::watch::Event;
use tokio::time::Instant;

/// An API server that restarts is back by then.
const TOLERATED: Duration = Duration::from_secs(15);

/// Since when the watch of AdmissionPolicies is disconnected.
#[derive(Debug, Default)]
pub(super) struct Silence {
    since: Option<Instant>,
    /// What went wrong, as it is reported: always the same words, until something is heard again.
    why: String,
    is_reported: bool,
}

impl Silence {
    /// Takes in what the watch says.
    pub(super) fn observe(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Disconnected { why, .. } => {
                self.since.get_or_insert(now);
                if !self.is_reported {
                    self.why.clone_from(why);
                }
            }
            // A list that begins has not been answered yet.
            Event::Init => {}
            _ => *self = Self::default(),
        }
    }

    /// Why what is active may be outdated, if it may.
    pub(super) fn reason(&mut self, now: Instant) -> Option<&str> {
        let is_long = now.saturating_duration_since(self.since?) >= TOLERATED;
        self.is_reported |= is_long;
        is_long.then_some(&*self.why)
    }
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::watch::Listed;
    use serde_json::Value;

    use super::*;

    fn lost(why: &str) -> Event {
        Event::Disconnected { absent: false, why: why.to_owned() }
    }

    #[test]
    fn what_is_not_heard_of_for_long_is_outdated_until_it_is_heard_of_again() {
        let (start, mut silence) = (Instant::now(), Silence::default());
        assert_eq!(silence.reason(start), None);
        silence.observe(&lost("first"), start);
        silence.observe(&Event::Init, start);
        silence.observe(&lost("forbidden"), start + TOLERATED / 2);
        assert_eq!(silence.reason(start + TOLERATED / 2), None);
        assert_eq!(silence.reason(start + TOLERATED), Some("forbidden"));
        // No new words, else the status would be written again and again.
        silence.observe(&lost("in other words"), start + TOLERATED);
        assert_eq!(silence.reason(start + TOLERATED * 2), Some("forbidden"));
        for heard in
            [Event::Heartbeat, Event::InitApply(Value::Null), Event::InitDone(Listed::default())]
        {
            silence.observe(&lost("again"), start);
            silence.observe(&heard, start + TOLERATED * 2);
            assert_eq!(silence.reason(start + TOLERATED * 4), None, "{heard:?}");
        }
    }
}
