//! The project of a policy on disk: its file `opensdn-policy.yaml`, and what a policy may be called.
//! What its limits mean is known where policies are run.

use std::path::{Path, PathBuf};

use opensdn_manifests::read_limited_text;
use opensdn_policy_templates::Language;
use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// What `policy new` writes beside the source.
const PROJECT_FILE: &str = "opensdn-policy.yaml";

/// What the project file says about building.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Where it is.
    pub(crate) folder: PathBuf,
    /// Name of the policy.
    pub(crate) name: String,
    /// What it is written in, as people call it.
    pub(crate) language: String,
    /// The project's own command; none where this program builds by itself.
    pub(crate) command: Option<BuildCommand>,
}

/// How the project builds itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuildCommand {
    /// Program and arguments, run in the project's folder.
    pub(crate) command: Vec<String>,
    /// What it leaves there: a component, or a core module for the C bindings of the policy world.
    pub(crate) output: PathBuf,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
pub(crate) struct ProjectFile {
    name: String,
    language: String,
    #[serde(default)]
    build: Option<BuildCommand>,
    /// Limits of one evaluation.
    #[serde(default)]
    pub(crate) limits: ProjectLimits,
}

/// Named as in the specification of an AdmissionPolicy.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ProjectLimits {
    /// Time of one evaluation.
    #[serde(default)]
    pub(crate) timeout_milliseconds: Option<u32>,
    /// Memory of one evaluation.
    #[serde(default)]
    pub(crate) memory_mebibytes: Option<u32>,
}

/// The most of the file, which is written by hand.
const MOST: u64 = 1 << 20;

impl ProjectFile {
    /// The file of the project in the folder, if there is one that can be read.
    ///
    /// # Errors
    /// It cannot be understood.
    pub(crate) fn find(folder: &Path) -> Result<Option<Self>, Failure> {
        let file = folder.join(PROJECT_FILE);
        let Ok(text) = read_limited_text(&file, MOST) else { return Ok(None) };
        Self::parse(&shown(&file), &text).map(Some)
    }

    fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        serde_saphyr::from_str(text).map_err(|error| {
            let hint = "it has name and language, build with command and output, and limits with \
                        timeoutMilliseconds and memoryMebibytes";
            refused(format!("{name} cannot be understood"), hint).because(&error)
        })
    }
}

impl Project {
    /// The project in the folder.
    ///
    /// # Errors
    /// There is none, or its file cannot be understood.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(PROJECT_FILE);
        let shown = shown(&file);
        let text = read_limited_text(&file, MOST).map_err(|error| {
            let hint = "go to the project's folder, or create one: kubectl opensdn policy new NAME";
            refused(format!("{shown} cannot be read"), hint).because(&error)
        })?;
        let project = ProjectFile::parse(&shown, &text)?;
        check_name(&project.name)?;
        let command = project.build.clone();
        if command.is_none() && project.language != Language::Rust.name() {
            let message = format!("{shown} does not say how {} is built", project.language);
            let hint = "add build with command (a list: program and arguments) and output (a path)";
            return Err(refused(message, hint));
        }
        let ProjectFile { name, language, .. } = project;
        Ok(Self { folder: folder.into(), name, language, command })
    }
}

fn shown(file: &Path) -> String {
    file.strip_prefix(".").unwrap_or(file).display().to_string()
}

fn refused(message: String, hint: &str) -> Failure {
    Failure::new(Exit::Usage, "unreadable-project", message, hint)
}

/// Names that a package cannot have, or that hide a dependency.
const TAKEN: [&str; 11] = [
    "alloc",
    "build",
    "core",
    "deps",
    "opensdn-policy-sdk",
    "opensdn-policy-sdk-derive",
    "proc-macro",
    "schemars",
    "serde",
    "std",
    "test",
];

/// The words of Rust that consist of small letters and are no names.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    pub ref return self static struct super trait true try type typeof union unsafe unsized use \
    virtual where while yield";

/// A policy is named after what is wrong: `even-quorum`.
///
/// # Errors
/// It cannot have that name.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let refused = |message: String| {
        let hint = "name it after what is wrong, in words of a-z and 0-9 with -: no-owner";
        Err(Failure::new(Exit::Usage, "bad-name", message, hint))
    };
    if name.len() > 63 {
        return refused(format!("the name {name} is longer than 63 letters"));
    }
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || name.ends_with('-') || name.contains("--") || !name.chars().all(plain) {
        return refused(format!("a policy cannot be called {name:?}"));
    }
    if TAKEN.contains(&name) || KEYWORDS.split(' ').any(|word| word == name) {
        return refused(format!("the name {name} has a meaning in Rust"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{BuildCommand, Project, check_name};

    fn read(text: &str) -> Result<Project, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("opensdn-policy.yaml"), text).unwrap();
        Project::read(folder.path()).map_err(|failure| failure.message)
    }

    #[test]
    fn a_policy_is_named_in_words() {
        for name in ["no-owner", "a", "x2-y"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(64);
        for name in ["", "No-Owner", "no_owner", "-a", "a-", "a--b", "2a", "../a", "test", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("match").is_err());
    }

    #[test]
    fn a_project_says_how_it_is_built() {
        let rust = read("name: no-owner\nlanguage: rust\nlimits: {memoryMebibytes: 32}\n").unwrap();
        assert_eq!((rust.name.as_str(), rust.command), ("no-owner", None));
        let c = read(
            "name: no-owner\nlanguage: c\nbuild: {command: [make, -s], output: build/a.wasm}\n",
        );
        let command = ["make", "-s"].map(str::to_owned).into();
        let expected = BuildCommand { command, output: "build/a.wasm".into() };
        assert_eq!(c.unwrap().command, Some(expected));
    }

    #[test]
    fn a_project_file_that_says_too_little_is_refused() {
        assert!(read("name: no-owner\nlanguage: c\n").unwrap_err().contains("how c is built"));
        assert!(read("name: ..\nlanguage: rust\n").unwrap_err().contains("cannot be called"));
        assert!(read("name: [").unwrap_err().contains("cannot be understood"));
        assert!(read("language: rust\n").unwrap_err().contains("cannot be understood"));
    }
}
