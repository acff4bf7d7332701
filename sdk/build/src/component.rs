//! From core modules to components of the policy world.

use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

use crate::ComponentError;

/// The contract, which this program carries.
const CONTRACT: &str = include_str!("../../wit/policy.wit");

/// Whether these bytes are a component already; if not, they may be a core module.
#[must_use]
pub fn is_component(bytes: &[u8]) -> bool {
    // After the magic number come version and layer: 1 and 0 in a module, 13 and 1 in a component.
    bytes.starts_with(b"\0asm") && bytes.get(6..8) == Some(&[1, 0])
}

/// Makes a component of a core module that was compiled against the C bindings of the policy world.
///
/// # Errors
/// The bytes are not a core module, or it exports or imports something else than the world says.
pub fn component_of(module: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let mut resolve = Resolve::default();
    let package = resolve
        .push_str("policy.wit", CONTRACT)
        .map_err(|error| ComponentError(error.to_string().into()))?;
    let world = resolve
        .select_world(&[package], Some("policy"))
        .map_err(|error| ComponentError(error.to_string().into()))?;
    let mut module = module.to_owned();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| ComponentError(error.into()))?;
    encode(&module)
}

/// Makes a component of a core module that says itself which world it is made for.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let component = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode());
    component.map_err(|error| ComponentError(error.into()))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::{component_of, is_component};

    #[test]
    fn distinguishes_a_component_from_a_module_and_from_other_files() {
        assert!(is_component(b"\0asm\x0d\0\x01\0"));
        for other in [&b"\0asm\x01\0\0\0"[..], b"\0asm", b"", b"#!/bin/sh"] {
            assert!(!is_component(other));
        }
    }

    #[test]
    fn a_module_without_the_exports_of_a_policy_is_refused() {
        let refused = component_of(b"\0asm\x01\0\0\0").unwrap_err();
        let causes = std::iter::successors(refused.source(), |&cause| cause.source());
        let said = causes.fold(refused.to_string(), |said, cause| format!("{said}: {cause}"));
        assert!(said.contains("describe") || said.contains("mutate"), "{said}");
        assert!(component_of(b"#!/bin/sh").is_err());
    }
}
