//! From the project of a policy to its component in `build/`, checked to be one that the webhook
//! loads. Rust is compiled here; other languages by the command that the project names.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opensdn_manifests::read_limited;
use opensdn_policy_build::{Build, BuildError, component_of, folders_outside, is_component};
use opensdn_policy_host::Policy;

use super::dev_policy;
use super::project::{BuildCommand, Project};
use super::reference::{BUILD_FOLDER, MAX_BYTES, Module, Origin};
use crate::atomic_write::replace;
use crate::exit::{Exit, Failure};
use crate::runtime::Runtime;

/// A policy that was built.
pub(crate) struct Built {
    pub(crate) policy: Policy,
    pub(crate) file: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) repeatable: Repeatable,
}

/// Whether the next build of the same source gives the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    /// On any machine with the same compiler.
    Anywhere,
    /// Only where the SDK is in these folders.
    Here(Vec<PathBuf>),
    /// It is up to the project's own command.
    Unknown,
}

/// Builds the project, checks the component and leaves it in `build/`.
///
/// # Errors
/// It does not compile, or what comes out is not a policy.
pub(crate) fn build(project: &Project, runtime: &Runtime) -> Result<Built, Failure> {
    let (bytes, repeatable) = match &project.command {
        None => rust(project)?,
        Some(command) => (by_command(project, command)?, Repeatable::Unknown),
    };
    let file = project.folder.join(BUILD_FOLDER).join(format!("{}.wasm", project.name));
    let shown = file.strip_prefix(".").unwrap_or(&file).to_owned();
    let module = Module { origin: Origin::File(shown.clone()), bytes: bytes.into(), version: None };
    let policy = dev_policy::load(runtime, &module)?;
    let name = &policy.metadata().name;
    if *name != project.name {
        let message = format!("the policy calls itself {name}, its project {}", project.name);
        let hint = "give them one name, in the source or in opensdn-policy.yaml";
        return Err(Failure::new(Exit::Findings, "other-name", message, hint));
    }
    let bytes = module.bytes.into_owned();
    keep(&file, &bytes).map_err(|error| {
        let message = format!("{} cannot be written", shown.display());
        Failure::new(Exit::Usage, "unwritable-output", message, "").because(&error)
    })?;
    Ok(Built { policy, file: shown, bytes, repeatable })
}

fn rust(project: &Project) -> Result<(Vec<u8>, Repeatable), Failure> {
    let cargo = PathBuf::from(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    let target = match variable("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => project.folder.join("target"),
    };
    // Cargo runs in the project's folder, where a relative path means another place.
    let target = std::path::absolute(&target).unwrap_or(target);
    let packages = [project.name.clone()];
    let build =
        Build { workspace: &project.folder, cargo: &cargo, target: &target, packages: &packages };
    let built = build.run().map_err(|error| uncompiled(&error))?;
    let outside = folders_outside(&project.folder, &cargo).map_err(|error| uncompiled(&error))?;
    let bytes = built.into_iter().next().map(|component| component.bytes).unwrap_or_default();
    let repeatable =
        if outside.is_empty() { Repeatable::Anywhere } else { Repeatable::Here(outside) };
    Ok((bytes, repeatable))
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn uncompiled(error: &BuildError) -> Failure {
    let (exit, code, hint) = match error {
        BuildError::Run(..) | BuildError::CargoHome => {
            (Exit::Unreachable, "no-compiler", "install Rust: https://rustup.rs")
        }
        BuildError::Target => {
            (Exit::Unreachable, "no-target", "rustup target add wasm32-unknown-unknown")
        }
        BuildError::Read(..) => (Exit::Usage, "unreadable-file", ""),
        BuildError::Compile | BuildError::Metadata(..) => {
            (Exit::Findings, "does-not-compile", "see what the compiler says above")
        }
        BuildError::Component { .. } => {
            (Exit::Findings, "not-a-policy", "end src/lib.rs with one `policy!` {…}")
        }
    };
    Failure::new(exit, code, "the policy cannot be built", hint).because(error)
}

fn by_command(project: &Project, build: &BuildCommand) -> Result<Vec<u8>, Failure> {
    let BuildCommand { command, output } = build;
    let shown = command.join(" ");
    let Some((program, arguments)) = command.split_first() else {
        let message = "build.command in opensdn-policy.yaml is empty";
        let hint = "a list of program and arguments: [make, --silent]";
        return Err(Failure::new(Exit::Usage, "unreadable-project", message, hint));
    };
    let status = Command::new(program)
        .args(arguments)
        .current_dir(&project.folder)
        .stdin(Stdio::null())
        // Standard output is for the answer.
        .stdout(Stdio::from(io::stderr()))
        .status();
    let status = status.map_err(|error| {
        let message = format!("{program} cannot be run");
        let hint = "the project's README.md says what has to be installed";
        Failure::new(Exit::Unreachable, "no-compiler", message, hint).because(&error)
    })?;
    if !status.success() {
        let message = format!("the project's own command failed: {shown}");
        let hint = "see what it says above; README.md says what has to be installed";
        return Err(Failure::new(Exit::Findings, "does-not-compile", message, hint));
    }
    let file = project.folder.join(output);
    let bytes = read_limited(&file, MAX_BYTES).map_err(|error| {
        let message = format!("{shown} left no {}", output.display());
        let hint = "build.output in opensdn-policy.yaml names what the command makes";
        Failure::new(Exit::Findings, "no-module", message, hint).because(&error)
    })?;
    if is_component(&bytes) {
        return Ok(bytes);
    }
    component_of(&bytes).map_err(|error| {
        let message = format!("no component can be made of {}", output.display());
        let hint = "it has to export describe, validate and mutate as wit/policy.wit says";
        Failure::new(Exit::Findings, "not-a-policy", message, hint).because(&error)
    })
}

/// In a folder that is made if it is not there.
fn keep(file: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    replace(file, bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{by_command, keep};
    use crate::policy::project::{BuildCommand, Project};

    fn run(folder: &Path, script: &str) -> Result<Vec<u8>, &'static str> {
        let project = Project {
            folder: folder.to_owned(),
            name: "no-owner".into(),
            language: "c".into(),
            command: None,
        };
        let command = ["sh", "-c", script].map(str::to_owned).into();
        let build = BuildCommand { command, output: "out.wasm".into() };
        by_command(&project, &build).map_err(|failure| failure.code)
    }

    #[test]
    fn says_why_a_projects_command_gave_no_component() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path(), "exit 3"), Err("does-not-compile"));
        assert_eq!(run(folder.path(), "true"), Err("no-module"));
        assert_eq!(run(folder.path(), "echo text > out.wasm"), Err("not-a-policy"));
        let component = "printf '\\0asm\\015\\0\\001\\0' > out.wasm";
        assert_eq!(run(folder.path(), component), Ok(b"\0asm\x0d\0\x01\0".into()));
    }

    #[test]
    fn leaves_nothing_but_the_component() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("build/no-owner.wasm");
        for bytes in [b"old", b"new"] {
            keep(&file, bytes).unwrap();
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
        assert_eq!(fs::read_dir(folder.path().join("build")).unwrap().count(), 1);
    }
}
