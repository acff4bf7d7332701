//! The tokens in the paths of reviews, `/validate/TOKEN`: who does not know one is no API server and is
//! answered 404. They are in a Secret that all replicas share (`path_tokens/secret.rs`), or in a file.
//!
//! An API server shows the path to its users when a call fails, so tokens are replaced again and again.
//! Three are accepted, the one before, the current and the next one: whatever order replicas and API
//! servers learn of a change in, no call is turned away.

pub mod args;
mod controller;
pub mod file;
mod follow;
mod secret;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use opensdn_pki::crypto_provider;
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

pub use controller::PathTokenController;
pub use follow::follow_secret;

/// Bytes of randomness in a token.
const RANDOM_BYTES: usize = 32;
/// A shorter one could be guessed.
const SHORTEST: usize = 20;
const LONGEST: usize = 128;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TokenError {
    #[error(
        "a path token is {SHORTEST} to {LONGEST} lower-case letters, digits or, between them, `-`"
    )]
    Malformed,
    #[error("the system gives no random bytes")]
    Random,
}

/// One token; never printed.
#[derive(Clone)]
pub struct PathToken(Arc<str>);

impl PathToken {
    /// A new one.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        crypto_provider().secure_random.fill(&mut bytes).map_err(|_| TokenError::Random)?;
        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(hexadecimal.into()))
    }

    /// One that was made before.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        // The API server takes DNS names only as segments of clientConfig.service.path.
        let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (SHORTEST..=LONGEST).contains(&text.len())
            && text.bytes().all(|byte| is_alphanumeric(byte) || byte == b'-')
            && [text.bytes().next(), text.bytes().last()]
                .into_iter()
                .flatten()
                .all(is_alphanumeric);
        if fits { Ok(Self(text.into())) } else { Err(TokenError::Malformed) }
    }

    /// The text, for a path or the Secret, nothing else.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text of others without the token, for a log: the API server quotes what it refuses.
    #[must_use]
    pub fn masked_in(&self, text: &str) -> String {
        text.replace(&*self.0, "TOKEN")
    }

    fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl PartialEq for PathToken {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for PathToken {}

impl fmt::Debug for PathToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathToken(…)")
    }
}

/// The accepted tokens; cheap to clone.
#[derive(Clone)]
pub struct PathTokens {
    accepted: Arc<ArcSwap<Vec<PathToken>>>,
    current: Arc<watch::Sender<PathToken>>,
}

impl PathTokens {
    /// Accepts `current`, which is what API servers use, and `others`.
    #[must_use]
    pub fn new(current: PathToken, others: impl IntoIterator<Item = PathToken>) -> Self {
        let accepted = std::iter::once(current.clone()).chain(others).collect();
        Self {
            accepted: Arc::new(ArcSwap::from_pointee(accepted)),
            current: Arc::new(watch::Sender::new(current)),
        }
    }

    /// Replaces them all.
    pub fn replace(&self, current: PathToken, others: impl IntoIterator<Item = PathToken>) {
        let accepted = std::iter::once(current.clone()).chain(others).collect();
        // Accepted before any API server is to use it.
        self.accepted.store(Arc::new(accepted));
        self.current.send_if_modified(|before| {
            let changed = *before != current;
            *before = current;
            changed
        });
    }

    /// Whether a caller who shows this is let in.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        self.accepted.load().iter().any(|token| token.is(text))
    }

    /// What API servers are to use, as it changes.
    #[must_use]
    pub fn current(&self) -> watch::Receiver<PathToken> {
        self.current.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_random_and_fit_into_a_path() {
        let (one, other) = (PathToken::random().unwrap(), PathToken::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.as_str().len(), 2 * RANDOM_BYTES);
        assert_eq!(PathToken::parse(one.as_str()).unwrap(), one);
        for none in [
            "",
            "short",
            "with/slash/and-more-text",
            "a space is not allowed",
            "Upper-case-letters-are-none",
            "ends-with-a-hyphen-here-",
            &"x".repeat(129),
        ] {
            assert!(PathToken::parse(none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_token_is_never_printed() {
        let token = PathToken::parse("a-token-that-nobody-may-see").unwrap();
        assert!(!format!("{token:?}").contains("nobody"));
        let said = token.masked_in("Invalid value: \"/validate/a-token-that-nobody-may-see\"");
        assert_eq!(said, "Invalid value: \"/validate/TOKEN\"");
    }

    #[test]
    fn the_ones_before_and_after_the_current_token_are_accepted_and_no_other() {
        let [one, two, three, four] = [(); 4].map(|()| PathToken::random().unwrap());
        let tokens = PathTokens::new(one.clone(), [two.clone()]);
        assert!(tokens.accepts(one.as_str()) && tokens.accepts(two.as_str()));
        assert!(!tokens.accepts(three.as_str()) && !tokens.accepts(""));
        tokens.replace(two.clone(), [one.clone(), three.clone()]);
        assert!([&one, &two, &three].iter().all(|token| tokens.accepts(token.as_str())));
        assert!(*tokens.current().borrow() == two);
        tokens.replace(three, [two, four]);
        assert!(!tokens.accepts(one.as_str()));
    }
}
