//! Why the Config API did not do what it was asked, in words that say what to do.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use crate::keystone;

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address that is none.
    #[error(
        "{0:?} is no address of a Config API: write it as http://HOST:8082, without a login and a path"
    )]
    Address(String),
    /// No address at all.
    #[error("there is no address of a Config API")]
    NoAddress,
    /// There is no answer, or not all of it.
    #[error("the Config API {address} does not answer {what}")]
    Unreachable {
        /// Its address.
        address: String,
        /// What was asked.
        what: String,
        /// Why.
        source: Box<opensdn_http_client::Error>,
    },
    /// There is no token to ask with.
    #[error("there is no token for the Config API")]
    Login(#[source] Arc<keystone::Error>),
    /// A write that would have been sent by who may not do it any more.
    #[error("{what} was not sent: the Lease was not renewed in time, and another replica may lead")]
    NotSent {
        /// What was to be asked.
        what: String,
    },
    /// It answers with an error.
    #[error("the Config API {address} answers {what} with {refusal}")]
    Refused {
        /// Its address.
        address: String,
        /// What was asked.
        what: String,
        /// The error.
        refusal: Refusal,
    },
    /// Its answer is not what it should be.
    #[error(
        "the Config API {address} answers {what} with {why}: is this the address of a Config API?"
    )]
    Unreadable {
        /// Its address.
        address: String,
        /// What was asked.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Its answer would take more memory than it may.
    #[error(
        "the Config API {address} answers {what} with more than {most}, which is not read: the cloud has more objects \
         than this program plans for"
    )]
    TooLarge {
        /// Its address.
        address: String,
        /// What was asked.
        what: String,
        /// How much is read.
        most: String,
    },
    /// global-vrouter-config is not there.
    #[error("global-vrouter-config is missing: the Config API makes it when it starts; restart it")]
    NoVrouterConfig,
}

impl Error {
    /// What it refused, if it did.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Whether what was asked may have been done all the same, or may be the next time.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { refusal, .. } => {
                matches!(refusal, Refusal::Unavailable(_) | Refusal::TimedOut(_))
            }
            Self::Login(error) => error.is_passing(),
            _ => false,
        }
    }
}

/// An answer that is an error, with what the Config API says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 400
    BadRequest(String),
    /// 401
    Unauthorized {
        /// Whether a token of Keystone was sent.
        token: SentToken,
    },
    /// 403
    Forbidden(String),
    /// 404
    NotFound(String),
    /// 409: it is there already, or others refer to it.
    Conflict(String),
    /// 412
    OverQuota(String),
    /// 413
    TooLarge,
    /// 500
    Failed(String),
    /// 502, 503
    Unavailable(StatusCode),
    /// 504, 408
    TimedOut(StatusCode),
    /// Any other.
    Other(StatusCode, String),
}

/// Whether a token of Keystone was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentToken {
    /// It was.
    Sent,
    /// There was none.
    Absent,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, said: String, token: SentToken) -> Self {
        match status.as_u16() {
            400 => Self::BadRequest(said),
            401 => Self::Unauthorized { token },
            403 => Self::Forbidden(said),
            404 => Self::NotFound(said),
            409 => Self::Conflict(said),
            412 => Self::OverQuota(said),
            413 => Self::TooLarge,
            500 => Self::Failed(said),
            502 | 503 => Self::Unavailable(status),
            408 | 504 => Self::TimedOut(status),
            _ => Self::Other(status, said),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |to: &mut fmt::Formatter<'_>, status: &str, said: &str| {
            let joint = if said.is_empty() { "" } else { ": " };
            write!(to, "{status}{joint}{said}")
        };
        match self {
            Self::BadRequest(said) => with(to, "400", said),
            Self::Unauthorized { token: SentToken::Sent } => to.write_str(
                "401: it does not take the token; is this the Keystone that it asks (its \
                 configuration has auth_host)?",
            ),
            Self::Unauthorized { token: SentToken::Absent } => {
                to.write_str("401: it wants a token; name Keystone, a user and its password")
            }
            // The filter of aaa_mode cloud-admin: its text is cut, or says nothing.
            Self::Forbidden(said) if said.is_empty() || said == "403 Permission Denied" => to
                .write_str(
                    "403: the user needs the role admin, by that name (aaa_mode cloud-admin)",
                ),
            Self::Forbidden(said) => with(to, "403", said),
            Self::NotFound(said) => with(to, "404", said),
            Self::Conflict(said) => with(to, "409", said),
            Self::OverQuota(said) => with(to, "412 (over quota)", said),
            Self::TooLarge => {
                to.write_str("413: the body is longer than its max_request_size; raise that")
            }
            Self::Failed(said) => with(to, "500", said),
            Self::Unavailable(status) => write!(
                to,
                "{}: it has no connection to ZooKeeper or its database, or its proxy has none to it",
                status.as_u16()
            ),
            Self::TimedOut(status) => write!(to, "{}: it took too long", status.as_u16()),
            Self::Other(status, said) => with(to, status.as_str(), said),
        }
    }
}
