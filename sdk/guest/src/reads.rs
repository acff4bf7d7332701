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
            .map_err(|error| Unreadable { pointer, reason: without_value(&error) })
    }
}

/// What serde says, without the value that it quotes: that may be a secret in the wrong field, and
/// what a policy says reaches users and logs. What stays are names of types and of the policy's own
/// fields, and where it is.
pub(crate) fn without_value(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let said = text.strip_suffix(&place).unwrap_or(&text);
    let place = place.trim_start();
    if said.starts_with("missing field ") {
        return format!("{said} {place}");
    }
    let wrong = ["invalid type: ", "invalid value: "];
    let found = wrong.iter().find_map(|wrong| said.strip_prefix(wrong)).map(|rest| {
        // `string "…"`, ``integer `5` ``, `map`: the value begins with its quote.
        rest.split(['"', '`', ',']).next().unwrap_or_default().trim()
    });
    // What was expected comes last, in the words of the type.
    let expected = said.rsplit_once(", expected ").map(|(_, expected)| expected);
    match (found, expected) {
        (Some(found), Some(expected)) => format!("{found}, expected {expected} {place}"),
        _ => format!("it does not fit {place}"),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::FromPart;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only whether it can be read is asked")]
    struct Settings {
        port: u16,
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize)]
    enum Mode {
        Strict,
    }

    fn said(part: &str) -> String {
        Settings::from_part(Some(part), "/spec").unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_type_and_never_by_its_value() {
        for part in [
            r#"{"port": "hunter2"}"#,
            r#"{"port": "a, expected hunter2"}"#,
            r#"{"port": 1, "mode": "hunter2"}"#,
            r#"{"port": 1, "hunter2": 1}"#,
            r#"{"port": 1, "mode": {"hunter2": 1}}"#,
            r#"{"port": 1, "mode": "a`, expected hunter2"}"#,
            r#""hunter2""#,
        ] {
            let said = said(part);
            assert!(said.starts_with("/spec is not of the expected type: "), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        let type_ = "/spec is not of the expected type: string, expected u16 at line 1 column 18";
        assert_eq!(said(r#"{"port": "hunter2"}"#), type_);
        assert!(said("{}").contains("missing field `port` at line 1"), "{}", said("{}"));
        let number = said(r#"{"port": 70000}"#);
        assert!(number.ends_with("integer, expected u16 at line 1 column 14"), "{number}");
    }
}
