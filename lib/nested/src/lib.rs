//! The plan of nested mode: from what a cluster wants (`input`) and what the cloud has (`live`) come the rows of
//! link-local services, what happens to fabric SNAT and its port pools, the environment of the workloads, and all
//! that speaks against it (`catalogue`). Everything here is pure: the same input and cloud give the same plan.
//! Deliberately not here: how the cloud is read and written (`opensdn-config-api`), manifests, and verification.

#![warn(missing_docs)]

mod allocate;
pub mod catalogue;
mod checks;
pub mod drift;
pub mod finding;
pub mod fingerprint;
pub mod input;
mod list;
pub mod live;
mod naming;
pub mod plan;
pub mod pool;
mod ranges;
pub mod roles;
pub mod rows;
pub mod subnet;
pub mod table;

#[cfg(test)]
mod fixture;

pub use catalogue::Code;
pub use checks::check_table;
pub use drift::{Drift, drift};
pub use finding::{Finding, Severity, Subject, Unknown};
pub use fingerprint::Fingerprint;
pub use input::{Choices, Driver, Input, Kubernetes, NotGiven, Permission, Permissions};
pub use live::{Fact, Live};
pub use plan::{Plan, plan};
pub use pool::Pool;
pub use roles::{Naming, Profile, Role};
pub use rows::{Change, Endpoint, Fate, Origin, PlannedRow, RemovedRow, Sharing};
pub use subnet::Subnet;
pub use table::table;
