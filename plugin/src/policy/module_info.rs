//! What a file of WebAssembly is, without running it: its world, what it wants from the host, who
//! made it. Works for what is no policy too, so that the reason can be shown. Deliberately not
//! here: what a policy says of itself, for which it must run.

use opensdn_policy_host::ALLOWED_IMPORTS;
use schemars::JsonSchema;
use serde::Serialize;
use wasmparser::{KnownCustom, Parser, Payload};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, WorldItem, WorldKey};

/// What every policy exports.
const EXPORTS: [&str; 3] = ["describe", "mutate", "validate"];

/// What the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// A WebAssembly component.
    Component,
    /// A core module: what a compiler leaves before `policy build` makes a component of it.
    CoreModule,
    /// Something else.
    NotWebAssembly,
}

/// What the bytes show of themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModuleInfo {
    /// What the bytes are.
    pub(crate) form: Form,
    /// What it wants from the host.
    pub(crate) imports: Vec<String>,
    /// What it offers to the host.
    pub(crate) exports: Vec<String>,
    /// Who says to have made it: languages, compilers, versions. It is not checked.
    pub(crate) producers: Vec<Producer>,
    /// Why it cannot be a policy, as far as the bytes show.
    pub(crate) problems: Vec<String>,
}

/// A part of the producers section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Producer {
    /// `language`, `processed-by`, `sdk`.
    pub(crate) role: String,
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
}

impl ModuleInfo {
    /// Looks at the bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let form = form(bytes);
        let mut info = Self {
            form,
            imports: Vec::new(),
            exports: Vec::new(),
            producers: producers(bytes),
            problems: Vec::new(),
        };
        match form {
            Form::NotWebAssembly => info.problems.push("it is not WebAssembly".to_owned()),
            Form::CoreModule => info.problems.push(
                "it is a core module, not a component; make one with `kubectl opensdn policy build`"
                    .to_owned(),
            ),
            Form::Component => info.look_inside(bytes),
        }
        info
    }

    fn look_inside(&mut self, bytes: &[u8]) {
        match decode(bytes) {
            Ok(DecodedWasm::Component(resolve, world)) => {
                if let Some(world) = resolve.worlds.get(world) {
                    self.imports = names(&resolve, world.imports.iter());
                    self.exports = names(&resolve, world.exports.iter());
                }
                self.compare();
            }
            Ok(DecodedWasm::WitPackage(..)) => {
                self.problems.push("it holds a WIT package and no code".to_owned());
            }
            Err(error) => self.problems.push(format!("its types cannot be read: {error:#}")),
        }
    }

    fn compare(&mut self) {
        let foreign =
            self.imports.iter().filter(|import| !ALLOWED_IMPORTS.contains(&import.as_str()));
        for import in foreign {
            let why = if import.starts_with("wasi:") {
                "; build it without WASI: a policy has no clock, files, network or randomness"
            } else {
                "; a policy may import nothing but opensdn:policy/cluster@1.0.0"
            };
            self.problems.push(format!("it imports {import}{why}"));
        }
        for export in EXPORTS {
            if !self.exports.iter().any(|name| name == export) {
                self.problems.push(format!("it does not export {export}"));
            }
        }
    }
}

/// The eight bytes at the beginning: a magic number, then version and layer.
fn form(bytes: &[u8]) -> Form {
    match (bytes.get(..4), bytes.get(4..6), bytes.get(6..8)) {
        (Some(b"\0asm"), Some(_), Some([1, 0])) => Form::Component,
        (Some(b"\0asm"), Some([1, 0]), Some([0, 0])) => Form::CoreModule,
        _ => Form::NotWebAssembly,
    }
}

fn names<'w>(
    resolve: &Resolve,
    items: impl Iterator<Item = (&'w WorldKey, &'w WorldItem)>,
) -> Vec<String> {
    let mut names: Vec<String> = items
        .filter(|(_, item)| !matches!(item, WorldItem::Type { .. }))
        .map(|(key, _)| resolve.name_world_key(key))
        .collect();
    names.sort();
    names
}

/// The producers of the component and of all modules in it, each once. A section that cannot be
/// read is left out; it is for information only.
fn producers(bytes: &[u8]) -> Vec<Producer> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else { break };
        let Payload::CustomSection(section) = payload else { continue };
        let KnownCustom::Producers(fields) = section.as_known() else { continue };
        for field in fields.into_iter().flatten() {
            found.extend(field.values.into_iter().flatten().map(|value| Producer {
                role: field.name.to_owned(),
                name: value.name.to_owned(),
                version: value.version.to_owned(),
            }));
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::{Form, ModuleInfo};

    #[test]
    fn a_built_in_policy_fits_the_world() {
        let policy = opensdn_policies::find("even-quorum").unwrap();
        let info = ModuleInfo::of(policy.bytes);
        assert_eq!(info.form, Form::Component);
        assert_eq!(info.problems, Vec::<String>::new());
        assert!(info.imports.contains(&"opensdn:policy/cluster@1.0.0".to_owned()));
        assert!(info.exports.contains(&"validate".to_owned()), "{:?}", info.exports);
    }

    #[test]
    fn what_is_no_policy_is_explained() {
        assert_eq!(ModuleInfo::of(b"#!/bin/sh").problems, ["it is not WebAssembly"]);
        let module = ModuleInfo::of(b"\0asm\x01\0\0\0");
        assert_eq!(module.form, Form::CoreModule);
        assert!(module.problems.iter().any(|problem| problem.contains("policy build")));
        let empty = ModuleInfo::of(b"\0asm\x0d\0\x01\0");
        assert_eq!(empty.form, Form::Component);
        assert!(empty.problems.iter().any(|problem| problem.contains("export describe")));
        let cut = opensdn_policies::find("even-quorum").unwrap().bytes.get(..1000).unwrap();
        assert!(!ModuleInfo::of(cut).problems.is_empty());
    }
}
