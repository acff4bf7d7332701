//! The Config API of OpenSDN: its link-local services, fabric SNAT, encapsulation priorities, registered nodes and what a
//! plan of nested mode reads of the cloud, with edits that lose no row of others. Deliberately not here: which rows are
//! wanted, and Kubernetes.

pub mod apply;
pub mod client;
pub mod deregistration;
pub mod discovery;
pub mod edit;
pub mod encapsulation;
pub mod fields;
mod jitter;
pub mod keystone;
pub mod limits;
pub mod link_local;
pub mod lock;
mod operations;
pub mod ownership;
pub mod pairs;
pub mod virtual_network;
pub mod vrouter_config;
pub mod watch;

pub use client::ConfigApi;
pub use operations::{AaaMode, Object, Version};
