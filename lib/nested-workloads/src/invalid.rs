//! What is refused: each value with its field and the rule that it breaks, all at once.

use std::fmt;

/// A value that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The field, as `nested.underlay.config.addresses`.
    pub field: String,
    /// The value as it was given.
    pub value: String,
    /// What it must be.
    pub rule: &'static str,
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, rule } = self;
        // With the escapes of a text of Rust: a line break in a value makes no line of its own.
        write!(formatter, "{field} is {value:?}: it {rule}")
    }
}

/// All values that are refused.
#[derive(Debug, thiserror::Error)]
#[error("render the workloads of nested mode: {}", lines(.0))]
pub struct InvalidInputs(pub Vec<InvalidValue>);

fn lines(values: &[InvalidValue]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
