//! The HTTPS and admin ports over real connections, with a reviewer that is only an echo. What
//! reviews say is tested elsewhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

mod stage;

mod abuse;
mod admin;
mod drain;
mod process;
mod protocol;
mod tls;
