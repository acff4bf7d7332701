//! Requests over HTTP and HTTPS to servers that are no API server of Kubernetes: TLS with the machine's CAs and those
//! that are given, the environment's proxy, time limits, answers that are not read without end. Deliberately not here:
//! whom to ask and how often, redirects, logins.

mod body;
mod certificate;
mod client;
mod trust;

pub use body::{Body, next_piece, no_body, read_whole, whole_body};
pub use certificate::certificate_of;
pub use client::HttpClient;
pub use hyper::body::Incoming;
pub use trust::Trust;

use std::io;
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CA cannot be used.
    #[error("{from} has no certificates that can be used: {why}")]
    Certificates {
        /// The file, or what else has them.
        from: String,
        /// What is wrong with it.
        why: String,
    },
    /// The library of TLS refuses its settings.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// There is no connection, or it broke before an answer began.
    #[error("{host} cannot be reached")]
    Connect {
        /// Its name and port.
        host: String,
        /// Why.
        source: hyper_util::client::legacy::Error,
    },
    /// It cannot be reached, or does not speak TLS.
    #[error("{host} shows no certificate")]
    NoTls {
        /// Its address and port.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// No answer began.
    #[error("{host} did not answer within {} s", limit.as_secs())]
    TimedOut {
        /// Its name and port.
        host: String,
        /// How long it had.
        limit: Duration,
    },
    /// The answer has begun, but does not come to its end.
    #[error("the answer broke off")]
    BrokeOff(#[source] io::Error),
    /// The answer is longer than it may be.
    #[error("the answer is longer than {most} bytes")]
    TooLong {
        /// How long it may be.
        most: u64,
    },
}

impl Error {
    /// Whether the server cannot have got the request.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        matches!(self, Self::Connect { source, .. } if source.is_connect())
    }
}

#[cfg(test)]
mod tests;
