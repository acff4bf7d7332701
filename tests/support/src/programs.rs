//! The programs that tests run, as they are built from this workspace: each once per process, in
//! the profile of the test itself. The gate builds them before and says where they are. Deliberately
//! not here: running them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Names a folder with all programs, built before the tests; without it cargo is asked.
pub const PROGRAMS_VARIABLE: &str = "OPENSDN_PROGRAMS";
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What cargo sets for the test that runs, and for no build: some dependencies are built again
/// when it differs.
const SET_FOR_TESTS: [&str; 6] = [
    "CARGO_BIN_EXE_",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_PACKAGE",
];

/// Why there is no such program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// The folder of `OPENSDN_PROGRAMS` lacks it.
    #[error("find {}; build it with `cargo build --bin {name}`, or unset {PROGRAMS_VARIABLE}", path.display())]
    Missing {
        /// Its name.
        name: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// cargo could not be run.
    #[error("run cargo build --bin {name}")]
    Cargo {
        /// The program to build.
        name: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// It does not build, or no crate has a program of that name.
    #[error("build {name}:\n{said}")]
    Build {
        /// The program to build.
        name: String,
        /// What cargo said.
        said: String,
    },
}

/// The path of a program of this workspace, such as `opensdn-webhook`. Builds it if it is not built.
///
/// # Errors
/// It does not build.
pub fn program(name: &str) -> Result<PathBuf, ProgramsError> {
    if let Some(folder) = std::env::var_os(PROGRAMS_VARIABLE).filter(|folder| !folder.is_empty()) {
        // The test may work in another folder than the one in which it was set.
        let path = Path::new(WORKSPACE).join(folder).join(name);
        let is_there = path.is_file();
        return if is_there {
            Ok(path)
        } else {
            Err(ProgramsError::Missing { name: name.to_owned(), path })
        };
    }
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = built.get(name) {
        return Ok(path.clone());
    }
    let path = build(name)?;
    built.insert(name.to_owned(), path.clone());
    Ok(path)
}

fn build(name: &str) -> Result<PathBuf, ProgramsError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // By the program's name and not by its package: cargo then unites the features of all members,
    // as for the tests, and compiles no dependency twice.
    command.args(["build", "--locked", "--message-format=json-render-diagnostics", "--bin", name]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        if SET_FOR_TESTS.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&variable);
        }
    }
    let output = command
        .current_dir(WORKSPACE)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ProgramsError::Cargo { name: name.to_owned(), source })?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let found = messages.lines().find_map(|line| executable(line, name));
    found.filter(|_| output.status.success()).ok_or_else(|| ProgramsError::Build {
        name: name.to_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The path in cargo's message about the program; none if the message is about something else.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message.pointer("/target/name")?.as_str()? == name;
    message.get("executable")?.as_str().filter(|_| is_it).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_taken_from_the_message_about_the_program() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"a","kind":["bin"]},"executable":"/t/debug/a"}"#;
        assert_eq!(executable(message, "a"), Some("/t/debug/a".into()));
        assert_eq!(executable(message, "b"), None);
        let library = r#"{"target":{"name":"a","kind":["lib"]},"executable":null}"#;
        assert_eq!(executable(library, "a"), None);
        assert_eq!(executable("   Compiling a", "a"), None);
    }
}
