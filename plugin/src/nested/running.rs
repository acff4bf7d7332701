//! The workloads of a nested cluster as they are run: a manifest, as `nested manifest` prints it, is applied object by object
//! when the cloud has its part, and taken away before that goes. What the objects are is opensdn-nested-workloads's; what
//! they find in the cloud is the plan's.
//!
//! - `file`: the manifest, and whether it is for a plan. Pure but for reading it.
//! - `needs`: what its pods take from Secrets and ConfigMaps that it does not have. Pure.
//! - `survey`: what an apply would do, and what speaks against it.
//! - `start` and `stop`: that, with what is waited for.

pub(crate) mod file;
mod needs;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod survey;
