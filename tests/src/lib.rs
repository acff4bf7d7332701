//! The sandbox with a real control plane, for whole-system tests and for the first try.
//! Deliberately not here: anything that ships. Nothing depends on this crate but tests.

pub mod age;
pub mod balancer;
pub mod changes;
pub mod command_line;
pub mod eventually;
pub mod image;
pub mod kubectl;
pub mod lab_product;
pub mod lab_under_load;
pub mod link_local;
pub mod measure;
pub mod product;
pub mod rush;
pub mod sandbox;
pub mod signal;
pub mod steady_load;
pub mod wrk;
