//! When the CA changes, as one pure function. A caller that has not yet heard of a CA refuses what
//! it signed, so a new one is first announced, then used, and the old one is trusted for a while
//! longer:
//!
//! | phase | signs | in the bundle | ends when |
//! |---|---|---|---|
//! | settled | current | current | the current one is in its last year, or somebody asks |
//! | announced | current | current, next | the API server has had the bundle for a minute |
//! | changed | next, now current | current, previous | a day has passed: every replica has reissued |

use std::fmt::Write as _;

use time::{Duration, OffsetDateTime};

use super::{Authority, Error, read_certificate};

/// A new CA is announced when the current one has less than this left.
const LAST_YEAR: Duration = Duration::days(365);
/// How long a bundle must have been in place before a certificate relies on it: API servers learn
/// of it by a watch, each in its own time.
const SETTLE: Duration = Duration::minutes(1);
/// How long the CA before is still trusted. Replicas reissue within seconds; one that could not
/// reach the API server meanwhile has this long.
const OVERLAP: Duration = Duration::days(1);
/// So close to the end, an announced CA is used even where nobody could say that its bundle is in
/// place: not using it would end in the same refusals, with certainty.
const LAST_RESORT: Duration = Duration::days(7);

/// The CAs as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities {
    /// Signs certificates.
    pub current: Authority,
    /// Announced, does not sign yet.
    pub next: Option<Authority>,
    /// Signed before, in PEM; its key is gone.
    pub previous: Option<String>,
}

impl Authorities {
    /// A first CA.
    pub fn first(now: OffsetDateTime) -> Result<Self, Error> {
        Ok(Self::only(Authority::create(now)?, None))
    }

    /// Every CA that a caller has to trust, in PEM: the `caBundle`.
    pub fn bundle(&self) -> String {
        let next = self.next.as_ref().map(Authority::certificate);
        let all = [Some(self.current.certificate()), next, self.previous.as_deref()];
        let mut bundle = String::new();
        for certificate in all.into_iter().flatten() {
            // Writing to a String cannot fail.
            let _ = writeln!(bundle, "{}", certificate.trim());
        }
        bundle
    }

    fn only(current: Authority, previous: Option<String>) -> Self {
        Self { current, next: None, previous }
    }
}

/// What was found in the Secret.
#[derive(Clone, Debug)]
pub enum Stored {
    /// There is no Secret.
    Nothing,
    /// It cannot be used for signing; what can still be read of the CA's certificate is trusted
    /// further, so that replicas that have a certificate of it go on serving.
    Damaged {
        /// The certificate, if it is one.
        trusted: Option<String>,
    },
    /// All is there.
    Whole {
        /// The CAs.
        authorities: Authorities,
        /// When the phase began.
        since: OffsetDateTime,
        /// What an administrator asks for.
        wish: Wish,
    },
}

/// What an administrator asks for by annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// A new CA, because the key of this one may be known to others.
    Rotate,
}

/// A bundle that every webhook configuration has carried for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// As in [`Authorities::bundle`].
    pub bundle: String,
    /// Since when.
    pub since: OffsetDateTime,
}

/// What should be stored instead, if anything. The one who asks holds the Lease, or stores only on
/// condition that nothing has changed since.
pub fn advance(
    stored: &Stored,
    published: Option<&Published>,
    now: OffsetDateTime,
) -> Result<Option<Authorities>, Error> {
    let (authorities, since, wish) = match stored {
        Stored::Nothing => return Authorities::first(now).map(Some),
        Stored::Damaged { trusted } => {
            let trusted = trusted.clone().filter(|pem| is_valid(pem, now));
            return Ok(Some(Authorities::only(Authority::create(now)?, trusted)));
        }
        Stored::Whole { authorities, since, wish } => (authorities, *since, *wish),
    };
    let Authorities { current, next, previous } = authorities;
    let left = current.not_after() - now;
    if let Some(next) = next {
        let in_place = published.is_some_and(|published| {
            published.bundle == authorities.bundle() && now - published.since >= SETTLE
        });
        let change = in_place || left <= LAST_RESORT;
        let changed = || {
            let before = Some(current.certificate().to_owned()).filter(|pem| is_valid(pem, now));
            Authorities::only(next.clone(), before)
        };
        return Ok(change.then(changed));
    }
    if previous.as_ref().is_some_and(|pem| now - since >= OVERLAP || !is_valid(pem, now)) {
        return Ok(Some(Authorities::only(current.clone(), None)));
    }
    if left <= Duration::ZERO {
        return Authorities::first(now).map(Some);
    }
    // One change at a time: three CAs in a bundle help nobody.
    if previous.is_none() && (left <= LAST_YEAR || wish == Wish::Rotate) {
        let next = Some(Authority::create(now)?);
        return Ok(Some(Authorities { next, ..authorities.clone() }));
    }
    Ok(None)
}

fn is_valid(pem: &str, now: OffsetDateTime) -> bool {
    read_certificate(pem).is_ok_and(|(not_after, _)| not_after > now)
}

#[cfg(test)]
mod tests;
