//! A key without a value. YAML reads it as null, and the schemas let it pass, as unset.

use serde::{Deserialize, Deserializer};

/// Reads null as the default: `#[serde(deserialize_with = "null_as_default")]`, beside
/// `#[serde(default)]` for the key that is not there at all.
///
/// # Errors
/// The value is neither null nor a `T`.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
