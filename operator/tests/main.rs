//! What the operator makes of objects, without a cluster and without a server: what is applied, which files the daemons
//! get, what the book says of them.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test, and the line says where"
)]

mod built;
mod campaign;
mod cassandra_leave;
mod config_api;
mod dpdk;
mod golden;
mod golden_managers;
mod golden_names;
mod nested;
mod pages;
mod rendered_files;
mod start_from_nothing;
mod supervise;
mod untouched;
mod vrouter_start;
