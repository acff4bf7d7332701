//! Between the plan of a nested cluster, which is pure, and the Config API of the cloud: what a plan needs is read, a
//! plan is carried out step by step, and what a cluster has in the cloud is taken away. Deliberately not here: where
//! the plan comes from, what a user is asked, and Kubernetes.

#![warn(missing_docs)]

mod apply;
mod error;
mod former;
mod record;
mod remove;
mod snat;
mod survey;

pub use apply::{Applied, apply};
pub use error::Error;
pub use remove::{Leftover, Network, Removal, Removed, removal, remove};
pub use snat::{SnatDone, SnatError};
pub use survey::{Asked, survey};
