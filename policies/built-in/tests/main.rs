//! The tests of the built-in policies as they ship, one binary of them: each would link wasmtime.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod cases;
mod pages_are_current;
mod samples;
mod table_is_current;

/// What the tests have compiled of the policies, which takes longer than all of them together.
fn compiled() -> opensdn_policy_host::Cache {
    opensdn_policy_host::Cache::open(concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled")).unwrap()
}
