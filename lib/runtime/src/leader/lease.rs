//! What is read from a Lease and what is to be done about it. Pure: no client, no clock of its own.
//!
//! No clock is compared with another machine's: a Lease has expired when it has not *changed* for
//! its duration by our own clock.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// A state of a Lease, and when we saw it first.
#[derive(Clone, Debug)]
pub struct Observed {
    version: String,
    since: Instant,
}

impl Observed {
    /// The Lease as first seen at `since`.
    pub fn new(lease: &Lease, since: Instant) -> Self {
        Self { version: lease.metadata.resource_version.clone().unwrap_or_default(), since }
    }

    /// The same state seen again keeps its time.
    pub fn update(before: Option<Self>, lease: &Lease, now: Instant) -> Self {
        let seen = Self::new(lease, now);
        before.filter(|before| before.version == seen.version).unwrap_or(seen)
    }

    /// How long it has not changed.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

/// What to do about the Lease.
#[derive(Debug)]
pub(super) enum Action {
    /// There is none.
    Create,
    /// It is free or has expired.
    Take(Lease),
    /// It is ours.
    Renew(Lease),
    /// Another replica holds it.
    Wait,
}

/// Decides, from the Lease as it is now and as it was when we looked last.
pub(super) fn decide(
    lease: Option<&Lease>,
    before: Option<Observed>,
    identity: &str,
    duration: Duration,
    now: Instant,
) -> (Action, Option<Observed>) {
    let Some(lease) = lease else { return (Action::Create, None) };
    let observed = Observed::update(before, lease, now);
    let expired = observed.age(now) >= promised(lease, duration);
    let action = match holder(lease) {
        Some(holder) if holder == identity => Action::Renew(taken(lease, identity, duration)),
        Some(_) if !expired => Action::Wait,
        Some(_) | None => Action::Take(taken(lease, identity, duration)),
    };
    (action, Some(observed))
}

/// Who has it, or had it last.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// What the holder promised, within bounds: a holder of an absurd duration would never expire.
fn promised(lease: &Lease, ours: Duration) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let promised = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    promised.map_or(ours, Duration::from_secs).min(4 * ours)
}

fn taken(lease: &Lease, identity: &str, duration: Duration) -> Lease {
    let mut lease = lease.clone();
    let now = MicroTime(Timestamp::now());
    let ours = holder(&lease) == Some(identity);
    let spec = lease.spec.get_or_insert_default();
    if !ours {
        spec.acquire_time = Some(now.clone());
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
    }
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = i32::try_from(duration.as_secs()).ok();
    spec.renew_time = Some(now);
    lease
}

/// The Lease without a holder, if `identity` holds it.
pub(super) fn released(mut lease: Lease, identity: &str) -> Option<Lease> {
    if holder(&lease) != Some(identity) {
        return None;
    }
    lease.spec.get_or_insert_default().holder_identity = None;
    Some(lease)
}

/// A new Lease, held by `identity`.
pub fn new_lease(name: &str, identity: &str, duration: Duration) -> Lease {
    let now = MicroTime(Timestamp::now());
    Lease {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec {
            holder_identity: Some(identity.to_owned()),
            lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn lease(holder: Option<&str>, version: &str) -> Lease {
        let mut lease = new_lease("a-lease", holder.unwrap_or_default(), DURATION);
        lease.metadata.resource_version = Some(version.to_owned());
        lease
    }

    fn action(
        lease: &Lease,
        before: Option<Observed>,
        now: Instant,
    ) -> (&'static str, Option<Observed>) {
        let (action, observed) = decide(Some(lease), before, "me", DURATION, now);
        let name = match action {
            Action::Create => "create",
            Action::Take(_) => "take",
            Action::Renew(_) => "renew",
            Action::Wait => "wait",
        };
        (name, observed)
    }

    #[tokio::test]
    async fn takes_a_lease_that_did_not_change_for_its_duration_whatever_its_times_say() {
        let mut other = lease(Some("other"), "1");
        // The other machine's clock is a day behind.
        let yesterday = Timestamp::now() - Duration::from_secs(86_400);
        other.spec.as_mut().unwrap().renew_time = Some(MicroTime(yesterday));
        let now = Instant::now();
        let (first, observed) = action(&other, None, now);
        assert_eq!(first, "wait");
        let (_, renewed) = action(&lease(Some("other"), "2"), observed, now + RENEWED);
        let (second, observed) = action(&lease(Some("other"), "2"), renewed, now + DURATION);
        assert_eq!(second, "wait", "it was renewed meanwhile");
        let (third, _) = action(&lease(Some("other"), "2"), observed, now + RENEWED + DURATION);
        assert_eq!(third, "take");
    }

    const RENEWED: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn renews_its_own_and_takes_a_released_one_at_once() {
        let now = Instant::now();
        assert_eq!(action(&lease(Some("me"), "1"), None, now).0, "renew");
        assert_eq!(action(&lease(None, "1"), None, now).0, "take");
        assert!(matches!(decide(None, None, "me", DURATION, now).0, Action::Create));
        assert!(released(lease(Some("other"), "1"), "me").is_none());
        let free = released(lease(Some("me"), "1"), "me").unwrap();
        assert_eq!(holder(&free), None);
    }

    #[test]
    fn taking_keeps_the_version_that_was_read_and_counts_the_transition() {
        let taken = taken(&lease(Some("other"), "7"), "me", DURATION);
        assert_eq!(taken.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(taken.spec.unwrap().lease_transitions, Some(1));
    }
}
