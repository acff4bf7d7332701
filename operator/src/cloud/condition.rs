//! What a pass says of an object, as conditions after kstatus.

use std::time::Duration;

use opensdn_crds::status::{Condition, ConditionStatus, Conditions, PAUSED, READY};

/// There is no Config whose Config API it could be, or that has no address or CA yet.
pub(super) const NO_CONFIG: &str = "NoConfig";
/// What a client needs is not there: a Secret, a key, a URL.
pub(super) const NO_CONNECTION: &str = "NoConnection";
/// What may get there by waiting is tried again after that.
const RETRY: Duration = Duration::from_secs(10);

/// What a pass came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    kind: Kind,
    /// One word, for programs.
    reason: &'static str,
    /// For people.
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    InPlace,
    Waits,
    Stalled,
    Paused,
}

impl Said {
    /// All is as it is wanted.
    pub(super) fn in_place(message: String) -> Self {
        Self { kind: Kind::InPlace, reason: "InPlace", message }
    }

    /// It may get there by waiting.
    pub(super) fn waits(reason: &'static str, message: String) -> Self {
        Self { kind: Kind::Waits, reason, message }
    }

    /// A person has to put something right.
    pub(super) fn stalled(reason: &'static str, message: String) -> Self {
        Self { kind: Kind::Stalled, reason, message }
    }

    /// Nothing is written, as a user wants it.
    pub(super) fn paused(why: &str, drifted: &str) -> Self {
        let message = if drifted.is_empty() { why.to_owned() } else { format!("{why}; {drifted}") };
        Self { kind: Kind::Paused, reason: "Paused", message }
    }

    /// One word, for programs.
    pub(super) fn reason(&self) -> &'static str {
        self.reason
    }

    /// For people.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Whether all is as it is wanted.
    pub(super) fn is_in_place(&self) -> bool {
        self.kind == Kind::InPlace
    }

    /// When it is looked at again, where that is done by `interval` while all is well. What a person has to put right
    /// waits that long, too: Keystone locks users out that come with a wrong password too often.
    pub(super) fn look_again_after(&self, interval: Duration) -> Duration {
        if self.kind == Kind::Waits { interval.min(RETRY) } else { interval }
    }

    /// Whether there was no way to a Config API, and so nothing was asked: what changes beside the object may make one.
    pub(super) fn is_of_the_way(&self) -> bool {
        [NO_CONFIG, NO_CONNECTION].contains(&self.reason)
    }

    /// As conditions, after those that the object has.
    pub(super) fn conditions(
        &self,
        before: &[Condition],
        generation: Option<i64>,
        now: &str,
    ) -> Vec<Condition> {
        let Self { kind, reason, message } = self;
        let mut conditions = Conditions::after(before);
        match kind {
            Kind::InPlace => conditions.ready(reason, message, generation, now),
            Kind::Waits => conditions.reconciling(reason, message, generation, now),
            Kind::Stalled => conditions.stalled(reason, message, generation, now),
            Kind::Paused => {
                let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
                conditions.set(READY, no, reason, message, generation, now);
                conditions.set(PAUSED, yes, "Annotation", message, generation, now);
            }
        }
        conditions.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(said: &Said) -> String {
        let all = said.conditions(&[], Some(3), "2026-01-01T00:00:00Z");
        let all = all.iter().map(|one| format!("{}={}", one.type_, one.status));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn conditions_are_those_that_kubectl_wait_reads() {
        assert_eq!(words(&Said::in_place(String::new())), "Ready=True");
        assert_eq!(
            words(&Said::waits("Unreachable", String::new())),
            "Ready=False Reconciling=True"
        );
        assert_eq!(words(&Said::stalled("Refused", String::new())), "Ready=False Stalled=True");
        let paused = Said::paused("paused", "1 row is missing");
        assert_eq!(words(&paused), "Ready=False Paused=True");
        assert_eq!(paused.message, "paused; 1 row is missing");
    }

    #[test]
    fn what_may_get_there_by_itself_is_tried_again_sooner_than_what_a_person_has_to_put_right() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Said::in_place(String::new()).look_again_after(hour), hour);
        assert_eq!(Said::stalled("Unauthorized", String::new()).look_again_after(hour), hour);
        let waits = Said::waits("Locked", String::new());
        assert_eq!(waits.look_again_after(hour), RETRY);
        assert_eq!(waits.look_again_after(RETRY / 2), RETRY / 2, "an interval that is shorter");
    }
}
