//! Calls, writes and leader election against a small HTTP server in the place of the API server:
//! it answers as each test says. What a real one does with the requests is tested in the webhook's
//! and the product's tests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

mod api_server;
mod calls;
mod election;
mod watching;
mod writes;
