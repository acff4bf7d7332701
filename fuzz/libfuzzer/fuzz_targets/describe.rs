//! The target `describe` under libFuzzer. What it checks is in `fuzz/src/describe.rs`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use opensdn_fuzz::{Target as _, describe::Describe};

static TARGET: LazyLock<Describe> = LazyLock::new(|| Describe::new().expect("the target can be made"));

fuzz_target!(|input: &[u8]| {
    if let Err(violation) = TARGET.check(input) {
        panic!("{violation}");
    }
});
