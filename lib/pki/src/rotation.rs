//! When the CA changes, as one pure function. A client that does not trust a CA yet rejects what it
//! signed, so a new CA is first announced, then used, and the old one is trusted for a while
//! longer:
//!
//! | phase | signs | in the bundle | ends when |
//! |---|---|---|---|
//! | settled | current | current | the current CA nears its end, or a rotation is requested |
//! | announced | current | current, next | the bundle has been in place for a minute |
//! | changed | next, now current | current, previous | a day has passed: every replica has reissued |
//!
//! Deliberately not here: how the CAs are stored, and how it is known which bundle is in place.

use std::fmt::Write as _;

use time::{Duration, OffsetDateTime};

use crate::authority::{Authority, AuthorityError, read_certificate};
use crate::profile::CaProfile;

/// What new CAs are made like, and when the phases of a rotation end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// What a CA is made like.
    pub ca: CaProfile,
    /// The CA that a user has given. None is made then; another that he gives is announced like one that was made.
    pub given: Option<Authority>,
    /// A new CA is announced when the current one has less than this left.
    pub announce_before: Duration,
    /// How long a bundle must have been in place before a certificate relies on it: clients learn
    /// of it by a watch, each in its own time.
    pub settle: Duration,
    /// How long the previous CA is still trusted. Replicas reissue within seconds; one that could
    /// not reach the API server meanwhile has this long.
    pub overlap: Duration,
    /// So close to the end, a CA that has been announced for as long as `overlap`, or for all the
    /// time that was left, is used even if its bundle is not known to be in place: not using it
    /// would end in the same rejections, with certainty.
    pub last_resort: Duration,
}

impl Rotation {
    /// Announced in the last year, used after a minute in place, the old CA trusted for a day.
    #[must_use]
    pub fn new(ca: CaProfile) -> Self {
        Self {
            ca,
            given: None,
            announce_before: Duration::days(365),
            settle: Duration::minutes(1),
            overlap: Duration::days(1),
            last_resort: Duration::days(7),
        }
    }

    /// A new CA: the one that is given, if one is.
    fn make(&self, now: OffsetDateTime) -> Result<Authority, AuthorityError> {
        self.given.clone().map_or_else(|| Authority::create(&self.ca, now), Ok)
    }
}

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
    ///
    /// # Errors
    /// It cannot be made.
    pub fn first(ca: &CaProfile, now: OffsetDateTime) -> Result<Self, AuthorityError> {
        Ok(Self::only(Authority::create(ca, now)?, None))
    }

    /// Every CA that a client has to trust, in PEM: the `caBundle`.
    #[must_use]
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

/// What the Secret holds.
#[derive(Clone, Debug)]
pub enum SecretState {
    /// There is no Secret.
    Missing,
    /// It cannot be used for signing; what can still be read of the CA's certificate stays
    /// trusted, so that replicas that have a certificate of it continue to serve.
    Damaged {
        /// The certificate, if it is one.
        trusted: Option<String>,
    },
    /// All is there.
    Complete {
        /// The CAs.
        authorities: Authorities,
        /// When the phase started.
        since: OffsetDateTime,
        /// What an administrator asks for.
        request: Request,
    },
}

/// What an administrator asks for by annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Nothing.
    None,
    /// A new CA, because the key of this one may be known to others.
    Rotate,
}

/// A bundle that every client has been configured with for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// As in [`Authorities::bundle`].
    pub bundle: String,
    /// Since when.
    pub since: OffsetDateTime,
}

/// What should be stored instead, if anything. A caller holds the Lease, or stores only on
/// condition that nothing has changed since.
///
/// # Errors
/// A CA cannot be made.
pub fn advance(
    state: &SecretState,
    published: Option<&Published>,
    now: OffsetDateTime,
    rotation: &Rotation,
) -> Result<Option<Authorities>, AuthorityError> {
    let Rotation { given, announce_before, settle, overlap, last_resort, .. } = rotation;
    let (authorities, since, request) = match state {
        SecretState::Missing => return Ok(Some(Authorities::only(rotation.make(now)?, None))),
        SecretState::Damaged { trusted } => {
            let trusted = trusted.clone().filter(|pem| is_valid(pem, now));
            return Ok(Some(Authorities::only(rotation.make(now)?, trusted)));
        }
        SecretState::Complete { authorities, since, request } => (authorities, *since, *request),
    };
    let Authorities { current, next, previous } = authorities;
    let left = current.not_after() - now;
    if let Some(next) = next {
        if let Some(given) = given.as_ref().filter(|given| *given != next) {
            let next = Some(given).filter(|given| *given != current).cloned();
            return Ok(Some(Authorities { next, ..authorities.clone() }));
        }
        let in_place = published.is_some_and(|published| {
            published.bundle == authorities.bundle() && now - published.since >= *settle
        });
        // A user may replace a CA in its last days: there is time to announce the next all the same.
        let has_waited = now - since >= *overlap || left <= *settle * 2;
        let change = in_place || (left <= *last_resort && has_waited);
        let changed = || {
            let before = Some(current.certificate().to_owned()).filter(|pem| is_valid(pem, now));
            Authorities::only(next.clone(), before)
        };
        return Ok(change.then(changed));
    }
    if previous.as_ref().is_some_and(|pem| now - since >= *overlap || !is_valid(pem, now)) {
        return Ok(Some(Authorities::only(current.clone(), None)));
    }
    let is_wanted = match given {
        Some(given) => given != current,
        None => left <= *announce_before || request == Request::Rotate,
    };
    if is_wanted && left <= Duration::ZERO {
        return Ok(Some(Authorities::only(rotation.make(now)?, None)));
    }
    // One change at a time: three CAs in a bundle help no client.
    if is_wanted && previous.is_none() {
        return Ok(Some(Authorities { next: Some(rotation.make(now)?), ..authorities.clone() }));
    }
    Ok(None)
}

fn is_valid(pem: &str, now: OffsetDateTime) -> bool {
    read_certificate(pem).is_ok_and(|(not_after, _)| not_after > now)
}

#[cfg(test)]
mod tests;
