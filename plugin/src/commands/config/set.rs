//! `config set`: one value changed in the file, or the file made. A file that cannot be read is
//! never overwritten.

use std::io;
use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use schemars::JsonSchema;
use serde::Serialize;

use super::{keys, location};
use crate::atomic_write::replace;
use crate::cli::Global;
use crate::clients::NamesContext;
use crate::config::file::{ConfigFile, bytes, checked};
use crate::config::keys::{Key, Takes};
use crate::config::{Location, edit, path_of};
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Warnings fail too, in every validate
  kubectl opensdn config set validate.fail-on warning

  # The webhook of this cluster runs elsewhere
  kubectl opensdn config set version.control-namespace sdn --context prod

Keys are called like their flags, behind the words of the command where the flag is not of all
commands; `kubectl opensdn config view` lists them.";

/// Arguments of `config set`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Set {
    /// The key, such as color or validate.fail-on.
    #[arg(value_name = "KEY", add = ArgValueCompleter::new(keys))]
    key: String,
    /// What the flag of that name takes; of a flag without a value: true or false.
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    _context: NamesContext,
    #[command(flatten)]
    _output: Output,
}

/// What `config set` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigChange {
    /// The file.
    file: String,
    /// The key.
    key: &'static str,
    /// The context for which it is; without one it holds in general.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    /// Its value.
    value: String,
    /// The value before, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Whether the file has been written.
    changed: bool,
}

impl Answer for ConfigChange {
    const KIND: &'static str = "ConfigChange";
}

impl Set {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let Location { path, .. } = location(global)?;
        let value = self.value()?;
        let definition = crate::parse::command();
        let key = checked(&self.key, &value, &definition)?;
        let context = global.cluster.context.as_deref();
        // A file that is named need not be there: this makes it.
        let old = bytes(&Location { path: path.clone(), named: false })?.unwrap_or_default();
        let file = ConfigFile::parse(&path, old)?;
        let before = file.value(&path_of(key, context));
        let changed = before.as_ref() != Some(&value);
        if changed {
            write(&file, key, context, &value, &definition)?;
        }
        let answer = ConfigChange {
            file: path.display().to_string(),
            key: key.name,
            context: context.map(str::to_owned),
            value,
            before,
            changed,
        };
        ui.answer(&answer, |out| answer.write(out))?;
        if std::env::var_os(key.variable).is_some() {
            ui.warn(&format!("{} is set, and wins over the file", key.variable));
        }
        Ok(Exit::Done)
    }

    /// The value as it goes into the file: a path must mean the same in every folder.
    fn value(&self) -> Result<String, Failure> {
        let is_path = Key::named(&self.key)?.takes == Takes::Path;
        if !is_path || self.value.is_empty() {
            return Ok(self.value.clone());
        }
        std::path::absolute(&self.value).map(|path| path.display().to_string()).map_err(|error| {
            let message = format!("{}: no path can be made of '{}'", self.key, self.value);
            Failure::usage(message, "give the whole path").because(&error)
        })
    }
}

fn write(
    file: &ConfigFile,
    key: &Key,
    context: Option<&str>,
    value: &str,
    definition: &clap::Command,
) -> Result<(), Failure> {
    let path = &file.path;
    let Some(text) = edit::with(file, &path_of(key, context), value) else {
        let message =
            format!("{} is written in a way that only a person can change", path.display());
        let hint = "edit it yourself, with one key a line: kubectl opensdn config --help";
        return Err(Failure::new(Exit::Usage, "broken-config", message, hint));
    };
    // What else is wrong in it would stop every command; it is reported with its place now.
    let after = ConfigFile::parse(path, text.clone().into_bytes())?.settings(definition);
    if let Err(wrong) = after {
        return Err(file.settings(definition).err().unwrap_or(wrong));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| replace(path, text.as_bytes())).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("{} cannot be written", path.display());
    let hint = "look at the permissions of the file and its folder, or name another one: --config";
    Failure::new(Exit::Usage, "unwritable-output", message, hint).because(error)
}

impl ConfigChange {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let Self { file, key, value, .. } = self;
        let context =
            self.context.as_ref().map(|name| format!(" for context {name}")).unwrap_or_default();
        match (self.changed, &self.before) {
            (false, _) => writeln!(out, "{key} is {value}{context} already, in {file}"),
            (true, Some(before)) => {
                writeln!(out, "{key} is {value}{context} now (was {before}), in {file}")
            }
            (true, None) => writeln!(out, "{key} is {value}{context} now, in {file}"),
        }
    }
}
