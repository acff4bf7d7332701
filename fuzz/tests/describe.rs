//! A bounded run of the target `describe`. Each target has a process of its own.

use std::{error::Error, path::Path};

use opensdn_fuzz::{
    describe::Describe,
    run::{Bounds, run},
};

#[test]
fn no_description_is_taken_that_is_not_within_every_bound() -> Result<(), Box<dyn Error>> {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let seen = run(&Describe::new()?, Bounds::from_environment(1_500), scratch)?;
    let has = |text: &str| seen.signatures.iter().any(|way| way.contains(text));
    // Else the run would prove nothing.
    for text in [
        "loaded",
        "cannot describe itself",
        "lower case words",
        "is not JSON:",
        "refers to itself",
        "deeper than",
        "more than",
        "is not a JSON Pointer",
        "segments",
        "a JSON Pointer may have",
        "pointers of what it reads",
        "two messages",
    ] {
        assert!(has(text), "no input led to {text:?}: {:#?}", seen.signatures);
    }
    Ok(())
}
