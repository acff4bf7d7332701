//! The target `reply` under libFuzzer. What it checks is in `fuzz/src/reply.rs`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use opensdn_fuzz::{Target as _, reply::Reply};

static TARGET: LazyLock<Reply> = LazyLock::new(|| Reply::new().expect("the target can be made"));

fuzz_target!(|input: &[u8]| {
    if let Err(violation) = TARGET.check(input) {
        panic!("{violation}");
    }
});
