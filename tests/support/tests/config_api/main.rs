//! The fake Config API against what is known of the real one: one test for each row, over real HTTP.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is a test, and the line says where"
)]

mod access;
mod asker;
mod calls;
mod collections;
mod entries;
mod faults;
mod library;
mod objects;
mod watch;
mod worked_example;
