//! The sandbox with a real control plane, for whole-system tests and for the first try; the lab
//! with real nodes, faults in it, and load.
//! Deliberately not here: anything that ships, and any crate of a program that ships: they are
//! processes to this crate.

pub mod admin_changes;
pub mod admin_port;
pub mod balancer;
pub mod command_line;
pub mod config_api;
pub mod contention;
pub mod creation_order;
pub mod development_image;
pub mod eventually;
pub mod fault_proxy;
mod get;
pub mod image;
pub mod installer;
pub mod kubectl;
pub mod lab_client;
pub mod lab_cloud;
pub mod lab_daemons;
pub mod lab_image;
pub mod lab_operator;
pub mod lab_product;
pub mod lab_script;
pub mod lab_under_load;
pub mod link_local;
pub mod long_runs;
pub mod manager;
pub mod measure;
pub mod memory_cgroup;
pub mod oha;
pub mod operator;
pub mod output;
pub mod product;
pub mod programs;
pub mod registry;
pub mod report_apis;
pub mod sandbox;
pub mod shared;
pub mod signal;
pub mod steady_load;
pub mod with_crds;
pub mod written_cluster;
pub mod wrk;

/// Why a test, or something that tests do, came to nothing.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;
/// How a test ends.
pub type Outcome = Result<(), Failed>;
