//! The tests of the built-in policies as they ship, one binary of them: each would link wasmtime.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod cases;
mod crowds;
mod pages_are_current;
mod samples;
mod table_is_current;

/// What has been compiled of the policies before: to compile them takes longer than all tests together.
fn compiled() -> Option<opensdn_policy_host::Cache> {
    opensdn_policy_host::Cache::of_user().unwrap()
}
