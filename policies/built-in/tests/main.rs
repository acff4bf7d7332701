//! The tests of the built-in policies as they ship, one binary of them: each would link wasmtime.

mod cases;
mod pages_are_current;
mod samples;
mod table_is_current;
