//! A bounded run of the target `review`. Each target has a process of its own.

use std::{error::Error, path::Path};

use opensdn_fuzz::{
    review::Review,
    run::{Bounds, run},
};

#[test]
fn no_body_gets_an_answer_that_is_none() -> Result<(), Box<dyn Error>> {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let seen = run(&Review::new()?, Bounds::from_environment(20_000), scratch)?;
    let has = |text: &str| seen.signatures.iter().any(|way| way.contains(text));
    // Else the run would prove nothing.
    for text in ["true false", "true true", "stands twice", "problem", "is missing"] {
        assert!(has(text), "no input led to {text:?}: {:#?}", seen.signatures);
    }
    Ok(())
}
