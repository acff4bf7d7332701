//! The target `review` under libFuzzer. What it checks is in `fuzz/src/review.rs`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use opensdn_fuzz::{Target as _, review::Review};

static TARGET: LazyLock<Review> = LazyLock::new(|| Review::new().expect("the target can be made"));

fuzz_target!(|input: &[u8]| {
    if let Err(violation) = TARGET.check(input) {
        panic!("{violation}");
    }
});
