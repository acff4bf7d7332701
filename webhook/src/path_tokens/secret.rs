//! The tokens as they are stored in their Secret, and when they are replaced. Pure.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::{PathToken, TokenError};

/// Any value of this annotation asks for other tokens now; it is removed when they are replaced.
pub(super) const ROTATE: &str = "opensdn.io/rotate-paths";

const PREVIOUS: &str = "previous";
const CURRENT: &str = "current";
const NEXT: &str = "next";
const SINCE: &str = "since";

/// The tokens of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// API servers used this one before.
    pub(super) previous: Option<PathToken>,
    /// They use this one.
    pub(super) current: PathToken,
    /// They will use this one, which every replica accepts already.
    pub(super) next: PathToken,
    /// Since when that is so.
    pub(super) since: OffsetDateTime,
}

impl Stored {
    /// The first ones.
    pub(super) fn first(now: OffsetDateTime) -> Result<Self, TokenError> {
        let (current, next) = (PathToken::random()?, PathToken::random()?);
        Ok(Self { previous: None, current, next, since: now })
    }

    /// What the Secret holds; none if that cannot be used.
    pub(super) fn read(secret: &Secret) -> Option<Self> {
        let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
        let token = |key: &str| PathToken::parse(&text(key)?).ok();
        // A `since` that cannot be read is long ago: the tokens are replaced, which repairs it.
        let since = text(SINCE).and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
        Some(Self {
            previous: token(PREVIOUS),
            current: token(CURRENT)?,
            next: token(NEXT)?,
            since: since.unwrap_or(OffsetDateTime::UNIX_EPOCH),
        })
    }

    /// What to store.
    pub(super) fn data(&self) -> BTreeMap<String, ByteString> {
        let entry = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
        let since = self.since.format(&Rfc3339).unwrap_or_default();
        let previous = self.previous.iter().map(|token| entry(PREVIOUS, token.as_str()));
        let others = [
            entry(CURRENT, self.current.as_str()),
            entry(NEXT, self.next.as_str()),
            entry(SINCE, &since),
        ];
        previous.chain(others).collect()
    }

    /// What to accept besides the current one.
    pub(super) fn others(&self) -> impl Iterator<Item = PathToken> {
        self.previous.clone().into_iter().chain([self.next.clone()])
    }

    /// What follows, if it is time. `published` is what all webhook configurations carry: unless that is
    /// the current token, some API server may still use an older one, and replacing would lock it out.
    pub(super) fn advance(
        &self,
        published: Option<&PathToken>,
        is_requested: bool,
        period: Duration,
        now: OffsetDateTime,
    ) -> Result<Option<Self>, TokenError> {
        // A clock that was set back makes no token live longer than twice its time.
        let is_due = is_requested || now - self.since >= period || self.since - now >= period;
        if !is_due || published != Some(&self.current) {
            return Ok(None);
        }
        Ok(Some(Self {
            previous: Some(self.current.clone()),
            current: self.next.clone(),
            next: PathToken::random()?,
            since: now,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::hours(1);

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn after(
        stored: &Stored,
        published: &PathToken,
        requested: bool,
        later: Duration,
    ) -> Option<Stored> {
        stored.advance(Some(published), requested, PERIOD, now() + later).unwrap()
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let first = Stored::first(now()).unwrap();
        let second = after(&first, &first.current, true, Duration::ZERO).unwrap();
        for stored in [first, second] {
            let secret = Secret { data: Some(stored.data()), ..Secret::default() };
            assert_eq!(Stored::read(&secret), Some(stored));
        }
        assert_eq!(Stored::read(&Secret::default()), None);
    }

    #[test]
    fn the_next_token_was_accepted_before_anybody_is_told_it() {
        let first = Stored::first(now()).unwrap();
        let second = after(&first, &first.current, false, PERIOD).unwrap();
        assert_eq!(second.current, first.next);
        assert_eq!(second.previous.as_ref(), Some(&first.current));
        assert!(![&first.current, &first.next].contains(&&second.next));
        let third = after(&second, &second.current, false, PERIOD * 2).unwrap();
        assert!(
            third.others().all(|token| token != first.current) && third.current != first.current
        );
    }

    #[test]
    fn tokens_are_replaced_when_it_is_time_or_asked_for_and_the_current_one_is_in_use() {
        let stored = Stored::first(now()).unwrap();
        let current = &stored.current;
        assert_eq!(after(&stored, current, false, PERIOD - Duration::SECOND), None);
        assert!(after(&stored, current, false, PERIOD).is_some());
        assert!(after(&stored, current, true, Duration::ZERO).is_some());
        assert!(after(&stored, current, false, -PERIOD).is_some(), "the clock was set back");
        assert_eq!(after(&stored, &stored.next, true, PERIOD), None, "another one is in use");
        assert_eq!(stored.advance(None, true, PERIOD, now() + PERIOD).unwrap(), None);
    }
}
