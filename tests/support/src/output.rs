//! What a program has printed, and how it ended, as tests look at it.

use std::process::Output;

use serde_json::Value;

use crate::Failed;

/// Both streams, standard output first.
#[must_use]
pub fn text(output: &Output) -> String {
    let bytes = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The exit code; -1 where a signal ended it.
#[must_use]
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// The JSON on standard output.
///
/// # Errors
/// It is none; both streams are in the error.
pub fn document(output: &Output) -> Result<Value, Failed> {
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", text(output)).into())
}
