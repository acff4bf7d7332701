//! The configuration: a file with default values of flags, in general and for contexts of the
//! kubeconfig. It is weaker than the variables, and these than the flags.
//!
//! ```text
//! keys.rs    which flags can have a default, and the variable of each
//! file.rs    from the text to settings, with the place of each and of what is wrong
//! layers.rs  from settings to clap's definition, so that clap decides what wins
//! edit.rs    one value changed in the text, and nothing else
//! ```
//!
//! Deliberately not here: aliases and registries, for which no command has a use yet, and secrets:
//! no key takes one.

use std::path::{Path, PathBuf};

use crate::cli::Global;
use crate::exit::Failure;

pub(crate) mod edit;
pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod layers;

use file::ConfigFile;
use keys::Key;

/// A value that the file gives to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: &'static Key,
    /// The context of the kubeconfig for which it is; none: for all.
    pub(crate) context: Option<String>,
    pub(crate) value: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) settings: Vec<Setting>,
    /// What is in the file and has no effect, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// Where the file is, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) path: PathBuf,
    /// Whether a flag or variable names it. Then it has to be there.
    pub(crate) named: bool,
}

impl Location {
    /// `--config`, else the place of the XDG specification. Nothing where there is no home.
    pub(crate) fn of(global: &Global) -> Option<Self> {
        if let Some(path) = &global.config {
            return Some(Self { path: path.clone(), named: true });
        }
        let folder = opensdn_user_folders::configuration()?;
        Some(Self { path: folder.join("kubectl-opensdn").join("config.yaml"), named: false })
    }
}

impl Config {
    /// Reads the file and checks all of it.
    ///
    /// # Errors
    /// It is named and not there, cannot be read, or has something that is wrong.
    pub(crate) fn load(location: &Location, definition: &clap::Command) -> Result<Self, Failure> {
        match file::bytes(location)? {
            Some(bytes) => ConfigFile::parse(&location.path, bytes)?.settings(definition),
            None => Ok(Self::default()),
        }
    }

    /// The value of a key: the context's, else the general one.
    pub(crate) fn of(&self, key: &Key, context: Option<&str>) -> Option<&Setting> {
        let find = |context: Option<&str>| {
            let fits = |one: &&Setting| one.key == key && one.context.as_deref() == context;
            self.settings.iter().find(fits)
        };
        context.and_then(|context| find(Some(context))).or_else(|| find(None))
    }

    /// Whether there is a value that only holds for some context.
    pub(crate) fn knows_contexts(&self) -> bool {
        self.settings.iter().any(|one| one.context.is_some())
    }
}

/// The way to a value in the file.
pub(crate) fn path_of<'a>(key: &'a Key, context: Option<&'a str>) -> Vec<&'a str> {
    match context {
        Some(context) => vec![file::CONTEXTS, context, key.name],
        None => vec![file::DEFAULTS, key.name],
    }
}

/// A place in the file for people.
pub(crate) fn place(path: &Path, line: usize, column: usize) -> String {
    format!("{}:{line}:{column}", path.display())
}

#[cfg(test)]
mod tests;
