//! Upgrades (pure): which services of a Manager get which images, in which order, what speaks against it, what is next,
//! and how it went. Deliberately not here: how the cluster is read and written; the operator and the plugin do that.
//!
//! ```text
//! version   releases as tags of images say them
//! order     the waves
//! images    the images of a Manager, and those that it gets
//! health    how services are
//! plan      what is to be done, and what speaks against it
//! estimate  for how long services will be at work
//! pull      which node needs which of the new images, and has them
//! gate      what has to be well behind a wave
//! settled   for how long a pod has to be ready before the next is replaced
//! interruption  for how long nodes were without their vrouter
//! daemons   what daemons say of themselves, compared with what they said before
//! next      what is next, by what was done and how it is now
//! report    how it went
//! digest    short names for what is long
//! ```

#![warn(missing_docs)]

pub mod daemons;
pub mod digest;
pub mod drain;
pub mod estimate;
pub mod gate;
pub mod health;
pub mod images;
pub mod interruption;
pub mod next;
mod object;
pub mod order;
pub mod plan;
pub mod pull;
pub mod report;
pub mod settled;
mod time;
pub mod version;
