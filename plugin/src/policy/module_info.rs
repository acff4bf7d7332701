//! What a file of WebAssembly is, without running it: its world, what it wants from the host, who
//! made it. Works for what is no policy too, so that the reason can be shown. The bytes may be
//! anybody's, so a process with limits reads them, which is this program again. Deliberately not
//! here: what a policy says of itself, for which it must run.

use std::ffi::OsString;
use std::future::pending;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use opensdn_module_process::{BoundedProcess, Ended, restrict};
use opensdn_policy_host::{ALLOWED_IMPORTS, MAX_TEXT_BYTES, cut};
use opensdn_validate::report::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmparser::{KnownCustom, Parser, Payload};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, WorldItem, WorldKey};

/// What every policy exports.
const EXPORTS: [&str; 3] = ["describe", "mutate", "validate"];
/// The argument that makes this program read a module for another process; the mebibytes of memory that it
/// may take follow.
const INSPECT: &str = "inspect-module";
/// So many of each are shown; no policy has more.
const MAX_SHOWN: usize = 200;

/// What the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Producer {
    /// `language`, `processed-by`, `sdk`.
    pub(crate) role: String,
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
}

impl ModuleInfo {
    /// Has a process of its own look at the bytes. What that cannot is a problem of the module.
    pub(crate) async fn by_process(process: Option<&BoundedProcess>, bytes: &[u8]) -> Self {
        let Some(process) = process else {
            return Self::unread(bytes, "this program cannot start itself again".to_owned());
        };
        let mebibytes = process.mebibytes();
        let arguments = [INSPECT.into(), mebibytes.to_string().into()];
        let ended = process.run(&arguments, bytes, pending()).await;
        let died_of = ended.as_ref().and_then(Ended::died_of);
        let why = match ended {
            Some(Ended::Done(answer)) => match serde_json::from_slice(&answer) {
                Ok(info) => return info,
                Err(error) => error.to_string(),
            },
            Some(Ended::OutOfMemory) => format!("to read it takes more than {mebibytes} MiB"),
            Some(Ended::Interrupted(why) | Ended::Refused(_, why) | Ended::Full(why)) => why,
            Some(Ended::OutOfTime | Ended::Crashed(_)) | None => died_of.unwrap_or_default(),
        };
        Self::unread(bytes, why)
    }

    fn unread(bytes: &[u8], why: String) -> Self {
        let problems = vec![format!("its bytes cannot be read: {why}")];
        Self { problems, ..Self::empty(form(bytes)) }
    }

    fn empty(form: Form) -> Self {
        let (imports, exports) = (Vec::new(), Vec::new());
        Self { form, imports, exports, producers: Vec::new(), problems: Vec::new() }
    }

    /// Looks at the bytes.
    fn of(bytes: &[u8]) -> Self {
        let mut info = Self { producers: producers(bytes), ..Self::empty(form(bytes)) };
        info.look(bytes);
        info.shorten();
        info
    }

    /// What a module says is as long as it likes, and of any characters.
    fn shorten(&mut self) {
        let short = |text: &mut String| *text = cut(&one_line(text), MAX_TEXT_BYTES).into_owned();
        self.producers.truncate(MAX_SHOWN);
        for Producer { role, name, version } in &mut self.producers {
            [role, name, version].into_iter().for_each(short);
        }
        for texts in [&mut self.imports, &mut self.exports, &mut self.problems] {
            texts.truncate(MAX_SHOWN);
            texts.iter_mut().for_each(short);
        }
    }

    fn look(&mut self, bytes: &[u8]) {
        match self.form {
            Form::NotWebAssembly => self.problems.push("it is not WebAssembly".to_owned()),
            Form::CoreModule => self.problems.push(
                "it is a core module, not a component; make one with `kubectl opensdn policy build`"
                    .to_owned(),
            ),
            Form::Component => self.look_inside(bytes),
        }
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

/// How much memory this process may take, if it is to read a module for another.
pub(crate) fn request(arguments: &[OsString]) -> Option<u64> {
    match arguments {
        [_, verb, mebibytes] if verb == INSPECT => mebibytes.to_str()?.parse().ok(),
        _ => None,
    }
}

/// That process, whole.
pub(crate) fn run(mebibytes: u64) -> ExitCode {
    let answer = || -> io::Result<()> {
        restrict(mebibytes)?;
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes)?;
        let answer = serde_json::to_vec(&ModuleInfo::of(&bytes))?;
        io::stdout().write_all(&answer)
    };
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nothing reads it, the exit code still says that there is no answer.
            let _said = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
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
