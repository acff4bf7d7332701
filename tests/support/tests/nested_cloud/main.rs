//! What nested mode does to a cloud, over real HTTP: our client against the fake Config API with its faults. The tests
//! that need none run against the server that OPENSDN_CONFIG_API names, where it is set: one without logins, which has
//! no row in 198.18.0.0/15. What they make there is removed when they end.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is a test, and the line says where"
)]

mod again;
mod calls;
mod cloud;
mod deregistration;
mod encapsulation;
mod example;
mod interrupted;
mod lock;
mod logins;
mod parallel;
mod sharing;
mod snat;
mod survey;
mod switched;
mod watch;
mod writers;
