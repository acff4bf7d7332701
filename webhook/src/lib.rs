//! The admission webhook that enforces OpenSDN policies: its parts, and how they start and stop
//! together.

pub mod admin;
pub mod admission;
pub mod audit;
pub mod background;
pub mod claims;
mod kinds;
pub mod leader;
pub mod metrics;
pub mod related;
pub mod server;
pub mod serving;
pub mod shutdown;
pub mod tls;
mod watching;

/// An error and its causes in one line, for logs.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
