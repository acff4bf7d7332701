//! What an AdmissionPolicy asks for, checked against what its module says of itself, as a binding
//! that the host can put in force. The webhook and the plugin read AdmissionPolicies here, so that
//! both say the same of them. Deliberately not here: reading bytes, compiling, any client.

mod inactive;
mod never_judged;
mod plan;
mod problem;
mod secrets;
mod source;

pub use inactive::{inactive, interests, judges, named};
pub use plan::{CLOSED_GROUPS, bind};
pub use problem::{Fault, Problem};
pub use source::{Source, built_in_bytes, is_built_in, parse};
