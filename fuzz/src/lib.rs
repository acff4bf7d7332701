//! Targets for fuzzing: what reads bytes from outside, with the properties that must hold for all
//! bytes. A target does not know its driver: `run` drives it for a bounded number of inputs
//! in every test run, `libfuzzer/` for as long as a person likes.

pub mod describe;
pub mod mutate;
pub mod reply;
pub mod review;
pub mod run;

use opensdn_policy_host::Engine;
use tokio::runtime::Runtime;

/// What came of one input: a short text that is the same for inputs that took the same way
/// through the code, so that a driver knows which inputs are worth keeping.
pub type Signature = String;

/// Something that reads bytes from outside.
pub trait Target {
    /// Name of its folder in `fuzz/corpus`.
    const NAME: &'static str;

    /// Checks every property for one input.
    ///
    /// # Errors
    /// A property does not hold.
    fn check(&self, input: &[u8]) -> Result<Signature, Violation>;
}

/// A property that does not hold; the text says which, and for what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

/// A target that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("set up the target {target}: {step}")]
pub struct SetUpError {
    target: &'static str,
    step: &'static str,
    #[source]
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl SetUpError {
    /// For `map_err`: what was tried, for which target.
    fn at<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        target: &'static str,
        step: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |cause| Self { target, step, cause: cause.into() }
    }
}

/// What a target runs policies on.
fn host(target: &'static str) -> Result<(Runtime, Engine), SetUpError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(SetUpError::at(target, "start the runtime"))?;
    let engine = Engine::start(2).map_err(SetUpError::at(target, "start the engine"))?;
    Ok((runtime, engine))
}

/// Fails with the text unless the property holds.
fn require(holds: bool, text: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(text())) }
}
