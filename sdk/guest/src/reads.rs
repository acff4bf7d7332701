//! What a policy reads: a struct whose fields are the declared parts of an object.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::bindings::opensdn::policy::types as wire;

/// What the user asks the API server to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to an object's subresource. No policy is asked about it.
    Connect,
}

impl Operation {
    pub(crate) fn into_wire(self) -> wire::Operation {
        match self {
            Self::Create => wire::Operation::Create,
            Self::Update => wire::Operation::Update,
            Self::Delete => wire::Operation::Delete,
            Self::Connect => wire::Operation::Connect,
        }
    }

    pub(crate) fn from_wire(operation: wire::Operation) -> Self {
        match operation {
            wire::Operation::Create => Self::Create,
            wire::Operation::Update => Self::Update,
            wire::Operation::Delete => Self::Delete,
            wire::Operation::Connect => Self::Connect,
        }
    }
}

/// The parts of one kind of object that a policy reads. Derived: see [`derive@crate::Reads`].
pub trait Reads: Sized {
    /// API group; `""` is the core group, `"*"` any.
    const GROUP: &'static str;
    /// Kind; `"*"` any.
    const KIND: &'static str;
    /// Operations that the policy wants to see.
    const OPERATIONS: &'static [Operation];
    /// JSON Pointers of the parts, one per field.
    const POINTERS: &'static [&'static str];

    /// Makes the struct of the parts' JSON texts, in the order of [`Self::POINTERS`].
    ///
    /// # Errors
    /// A part is missing or has another type than the field.
    fn from_parts(parts: &[Option<String>]) -> Result<Self, Unreadable>;
}

/// A part of the object does not have the type of the policy's field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pointer: &'static str,
    reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "the object" } else { self.pointer };
        write!(formatter, "{place} is not of the expected type: {}", self.reason)
    }
}

impl std::error::Error for Unreadable {}

/// One field from the JSON text of its part. An absent part reads as `null`, so a field that may
/// be absent is an `Option`.
pub trait FromPart: Sized {
    /// Parses the part found at `pointer`.
    ///
    /// # Errors
    /// The part is missing or has another type.
    fn from_part(part: Option<&str>, pointer: &'static str) -> Result<Self, Unreadable>;
}

impl<T: DeserializeOwned> FromPart for T {
    fn from_part(part: Option<&str>, pointer: &'static str) -> Result<Self, Unreadable> {
        serde_json::from_str(part.unwrap_or("null"))
            .map_err(|error| Unreadable { pointer, reason: error.to_string() })
    }
}
