//! What a stored claim means to an object that wants its key. Pure: no client, no clock.

use std::time::Duration;

use opensdn_crds::unique_claim::UniqueClaimSpec;
use opensdn_policy_host::Claim;
use sha2::{Digest as _, Sha256};

use super::{Holder, error::HolderState};

/// Longest part of a scope that goes into a name; with the hash it stays below 253.
const SCOPE_IN_NAME: usize = 200;

/// The name of the claim on a key: `<scope>-<40 hexadecimal digits>`. The digits identify scope
/// and key; the scope before them, with `-` for what no name may have, is for people.
#[must_use]
pub fn claim_name(scope: &str, key: &str) -> String {
    use std::fmt::Write as _;
    let mut hash = Sha256::new();
    hash.update(scope.as_bytes());
    hash.update([0]);
    hash.update(key.as_bytes());
    let mut name: String = scope
        .chars()
        .take(SCOPE_IN_NAME)
        .map(|letter| letter.to_ascii_lowercase())
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .skip_while(|letter| *letter == '-')
        .collect();
    if !name.is_empty() {
        name.push('-');
    }
    for byte in hash.finalize().iter().take(20) {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// Whose a stored claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The same object's: a retry, or an update.
    Ours,
    /// Another object's.
    Others,
    /// Its scope and key are not those of its name.
    Forged,
}

/// Whose the stored claim is, for an object that wants the key that the name identifies.
pub(crate) fn ownership(stored: &UniqueClaimSpec, name: &str, holder: &Holder) -> Ownership {
    if claim_name(&stored.scope, &stored.key) != name {
        Ownership::Forged
    } else if holder.is_same_object(&stored.holder) {
        Ownership::Ours
    } else {
        Ownership::Others
    }
}

/// What a live read of a holder showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// An object of that name is stored.
    Stored {
        /// Its UID.
        uid: String,
        /// The UID of the object that controls it.
        controller: Option<String>,
    },
    /// There is no object of that name.
    Absent,
    /// The kind is not served now. That may be a definition that is being replaced, so it does
    /// not prove that the object is gone.
    NotServed,
}

/// What an object that wants a key may do about another holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contest {
    /// The holder is gone for certain and no create of it can be under way: take the claim.
    TakeOver,
    /// The holder is stored, and it is controlled by the object that wants the key: take the claim, and
    /// give it back to that holder if the request is refused.
    TakeFromOwned,
    /// It agrees on the value: have it, too.
    Join,
    /// Leave it.
    Refuse(HolderState),
}

/// Decides by what a live read of the holder showed. `claimant` is the UID of the object that wants the
/// key. `unchanged` is for how long this process has seen the claim as it is: unlike `takenAt` it does
/// not depend on other clocks.
pub(crate) fn contest(
    claimant: &str,
    held_by: Option<&str>,
    presence: &Presence,
    unchanged: Option<Duration>,
    grace: Duration,
) -> Contest {
    match presence {
        // It inherited the key when its owner gave it up. What it is made of is the owner's.
        Presence::Stored { controller: Some(controller), .. } if controller == claimant => {
            Contest::TakeFromOwned
        }
        Presence::Stored { uid, .. } if held_by.is_none_or(|held_by| held_by == uid) => {
            Contest::Refuse(HolderState::Stored)
        }
        // Whether the new object of that name makes the claim too, only the policies know.
        Presence::Stored { .. } => Contest::Refuse(HolderState::Replaced),
        Presence::NotServed => Contest::Refuse(HolderState::Unknown),
        Presence::Absent => match unchanged {
            Some(unchanged) if unchanged >= grace => Contest::TakeOver,
            unchanged => {
                let left = grace.saturating_sub(unchanged.unwrap_or_default());
                Contest::Refuse(HolderState::Pending { seconds: left.as_secs().max(1) })
            }
        },
    }
}

/// What becomes of that where objects may share the key.
pub(crate) fn shared(contest: Contest, stored: &UniqueClaimSpec, claim: &Claim) -> Contest {
    let agrees = claim.shares_with(stored.value.as_deref());
    match contest {
        Contest::Refuse(_) if agrees => Contest::Join,
        // Others than the holder may have it, and only the controller knows them.
        Contest::TakeOver | Contest::TakeFromOwned if stored.shared == Some(true) && !agrees => {
            Contest::Refuse(HolderState::Shared)
        }
        contest => contest,
    }
}

/// What the controller does about a claim that it was about to release, after a live read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// It is released.
    Release,
    /// The reason does not hold, or cannot be confirmed now.
    Later,
}

/// What the policies in force answer about a holder that was read live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It claims the key.
    Claims,
    /// It does not.
    DoesNotClaim,
    /// That could not be evaluated.
    Unknown,
}

/// Whether a live read of the holder confirms that the claim may go. `age`: whether it
/// has been unchanged for the grace that applies.
pub(crate) fn confirm(presence: &Presence, answer: Answer, age: Age) -> Confirmed {
    match (presence, answer, age) {
        (Presence::Absent, _, _)
        | (Presence::Stored { .. }, Answer::DoesNotClaim, Age::PastGrace)
        // Its definition is gone for so long, and its objects with it.
        | (Presence::NotServed, _, Age::PastGrace) => Confirmed::Release,
        (Presence::Stored { .. } | Presence::NotServed, _, _) => Confirmed::Later,
    }
}

/// Whether a claim is old enough to be taken from an object that may exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// It is.
    PastGrace,
    /// It is not.
    WithinGrace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_safe_and_distinguish_scope_from_key() {
        let name = claim_name("link-local-address", "10.0.0.1:80");
        assert_eq!(name.len(), "link-local-address-".len() + 40);
        assert!(name.starts_with("link-local-address-"));
        for scope in ["", "-", "Über alles/x", &"a".repeat(400)] {
            let name = claim_name(scope, "key");
            assert!(name.len() <= 253 && !name.starts_with('-'), "{name}");
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(name.bytes().all(plain), "{name}");
        }
        assert_ne!(claim_name("a", "b\0c"), claim_name("a\0b", "c"));
        assert_ne!(claim_name("a-b", "c"), claim_name("a.b", "c"));
    }

    #[test]
    fn a_claim_is_released_only_when_a_live_read_confirms_why() {
        let stored = Presence::Stored { uid: "u".into(), controller: None };
        let cases = [
            (&Presence::Absent, Answer::Unknown, Age::WithinGrace, Confirmed::Release),
            (&Presence::NotServed, Answer::Unknown, Age::WithinGrace, Confirmed::Later),
            (&Presence::NotServed, Answer::Unknown, Age::PastGrace, Confirmed::Release),
            (&stored, Answer::DoesNotClaim, Age::PastGrace, Confirmed::Release),
            (&stored, Answer::DoesNotClaim, Age::WithinGrace, Confirmed::Later),
            (&stored, Answer::Claims, Age::PastGrace, Confirmed::Later),
            (&stored, Answer::Unknown, Age::PastGrace, Confirmed::Later),
        ];
        for (presence, answer, age, expected) in cases {
            assert_eq!(confirm(presence, answer, age), expected, "{presence:?} {answer:?} {age:?}");
        }
    }

    #[test]
    fn a_key_is_shared_by_those_alone_who_agree_on_its_value() {
        let claim = |value: Option<&str>| Claim {
            scope: "s".into(),
            key: "k".into(),
            value: value.map(str::to_owned),
            pointer: String::new(),
            policy: String::new(),
            code: String::new(),
        };
        let stored = |value: Option<&str>, shared: Option<bool>| UniqueClaimSpec {
            value: value.map(str::to_owned),
            shared,
            ..UniqueClaimSpec::default()
        };
        let refused = || Contest::Refuse(HolderState::Stored);
        let kept = || Contest::Refuse(HolderState::Shared);
        let cases = [
            (refused(), stored(Some("x"), None), Some("x"), Contest::Join),
            (refused(), stored(Some("x"), None), Some("y"), refused()),
            // Without a value there is nothing to agree on, as in a claim of an older version.
            (refused(), stored(None, None), Some("x"), refused()),
            (refused(), stored(None, None), None, refused()),
            (Contest::TakeOver, stored(Some("x"), None), Some("y"), Contest::TakeOver),
            (Contest::TakeOver, stored(Some("x"), Some(true)), Some("x"), Contest::TakeOver),
            (Contest::TakeOver, stored(Some("x"), Some(true)), Some("y"), kept()),
            (Contest::TakeFromOwned, stored(Some("x"), Some(true)), Some("y"), kept()),
        ];
        for (before, stored, value, expected) in cases {
            let given = format!("{before:?} {stored:?} {value:?}");
            assert_eq!(shared(before, &stored, &claim(value)), expected, "{given}");
        }
    }

    #[test]
    fn a_claim_is_taken_over_only_when_its_holder_is_gone_for_longer_than_the_grace() {
        let grace = Duration::from_secs(90);
        let young = Some(Duration::from_secs(30));
        let old = Some(Duration::from_secs(90));
        let stored = |uid: &str| Presence::Stored { uid: uid.into(), controller: None };
        let owned = |by: &str| Presence::Stored { uid: "u1".into(), controller: Some(by.into()) };
        let pending = |seconds| Contest::Refuse(HolderState::Pending { seconds });
        let cases = [
            (Some("u1"), stored("u1"), old, Contest::Refuse(HolderState::Stored)),
            (None, stored("u1"), old, Contest::Refuse(HolderState::Stored)),
            (Some("u1"), stored("u2"), old, Contest::Refuse(HolderState::Replaced)),
            (Some("u1"), Presence::NotServed, old, Contest::Refuse(HolderState::Unknown)),
            (Some("u1"), owned("another"), old, Contest::Refuse(HolderState::Stored)),
            (Some("u1"), owned("claimant"), young, Contest::TakeFromOwned),
            (Some("u1"), Presence::Absent, old, Contest::TakeOver),
            (Some("u1"), Presence::Absent, young, pending(60)),
            (Some("u1"), Presence::Absent, None, pending(90)),
        ];
        for (held_by, presence, unchanged, expected) in cases {
            let contest = contest("claimant", held_by, &presence, unchanged, grace);
            assert_eq!(contest, expected, "{held_by:?} {presence:?} {unchanged:?}");
        }
    }
}
