//! `config view`: the value of every key, and where it comes from: a flag, a variable, the file, or
//! the program itself.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::location;
use crate::cli::Global;
use crate::clients::NamesContext;
use crate::config::keys::{KEYS, Key, Takes};
use crate::config::{Config, Setting};
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::ui::{Ui, style};

const EXAMPLES: &str = "\
Examples:
  # What holds, and why?
  kubectl opensdn config view --origin

  # What holds where the cluster of this context is asked?
  kubectl opensdn config view --context prod -o yaml";

/// Arguments of `config view`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct View {
    /// Say where each value comes from; -o json and yaml always do.
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    _context: NamesContext,
    #[command(flatten)]
    _output: Output,
}

/// What `config view` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigView {
    /// The file; none where there is no place for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Whether it is there.
    exists: bool,
    /// What holds: for the context that was named, else in general.
    values: Vec<Shown>,
    /// What holds for contexts of the kubeconfig, as far as it differs; not where one was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contexts: Vec<InContext>,
}

/// What holds for a context.
#[derive(Debug, Serialize, JsonSchema)]
struct InContext {
    /// Its name in the kubeconfig.
    name: String,
    /// Its values.
    values: Vec<Shown>,
}

/// A key with its value.
#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    /// The key.
    key: &'static str,
    /// Its value; none where the command finds one by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Where the value comes from.
    origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "from", rename_all = "lowercase")]
enum Origin {
    /// The program itself.
    Default,
    /// The file, at this place.
    File {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// An environment variable.
    Variable {
        /// Its name.
        name: &'static str,
    },
    /// A flag.
    Flag {
        /// It.
        flag: String,
    },
}

impl Answer for ConfigView {
    const KIND: &'static str = "ConfigView";
}

impl View {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let definition = crate::parse::command();
        // Without a home there is no file, and values all the same.
        let location = location(global).ok();
        let config = match &location {
            Some(location) => Config::load(location, &definition)?,
            None => Config::default(),
        };
        let context = global.cluster.context.as_deref();
        let of = |key| Shown::of(key, config.of(key, context), global, &definition);
        let view = ConfigView {
            file: location.as_ref().map(|location| location.path.display().to_string()),
            exists: location.as_ref().is_some_and(|location| location.path.exists()),
            values: KEYS.iter().map(of).collect(),
            contexts: match context {
                Some(_) => Vec::new(),
                None => of_contexts(&config),
            },
        };
        ui.answer(&view, |out| view.write(self.origin, out))?;
        config.warnings.iter().for_each(|warning| ui.warn(warning));
        if let (false, Some(file)) = (view.exists, &view.file) {
            ui.hint(&format!("there is no {file}; kubectl opensdn config set makes it"));
        }
        Ok(Exit::Done)
    }
}

impl Shown {
    fn of(
        key: &'static Key,
        setting: Option<&Setting>,
        global: &Global,
        definition: &clap::Command,
    ) -> Self {
        let given = global.given.iter().find(|(one, _)| *one == key);
        let variable = std::env::var(key.variable).ok();
        let (value, origin) = match (given, variable, setting) {
            (Some((_, value)), ..) => {
                (Some(value.clone()), Origin::Flag { flag: format!("--{}", key.name) })
            }
            (None, Some(value), _) => (Some(value), Origin::Variable { name: key.variable }),
            (None, None, Some(setting)) => return Self::of_file(setting),
            (None, None, None) => (built_in(key, definition), Origin::Default),
        };
        Self { key: key.name, value, origin }
    }

    fn of_file(setting: &Setting) -> Self {
        let Setting { key, value, line, column, .. } = setting;
        let origin = Origin::File { line: *line, column: *column };
        Self { key: key.name, value: Some(value.clone()), origin }
    }
}

fn built_in(key: &Key, definition: &clap::Command) -> Option<String> {
    if key.takes == Takes::Switch {
        return Some("false".to_owned());
    }
    let value = key.argument(definition)?.get_default_values().first()?;
    Some(value.to_string_lossy().into_owned())
}

fn of_contexts(config: &Config) -> Vec<InContext> {
    let mut contexts: Vec<InContext> = Vec::new();
    for setting in &config.settings {
        let Some(name) = &setting.context else { continue };
        let shown = Shown::of_file(setting);
        match contexts.iter_mut().find(|context| context.name == *name) {
            Some(context) => context.values.push(shown),
            None => contexts.push(InContext { name: name.clone(), values: vec![shown] }),
        }
    }
    contexts
}

impl ConfigView {
    fn write(&self, origin: bool, out: &mut dyn Write) -> io::Result<()> {
        self.table(&self.values, origin, out)?;
        for InContext { name, values } in &self.contexts {
            writeln!(out, "\nwhere the cluster of context {name} is asked:")?;
            self.table(values, origin, out)?;
        }
        Ok(())
    }

    fn table(&self, values: &[Shown], origin: bool, out: &mut dyn Write) -> io::Result<()> {
        let longest = |of: fn(&Shown) -> usize| values.iter().map(of).max().unwrap_or_default();
        let (key, value) =
            (longest(|one| one.key.len()), longest(|one| one.text().chars().count()));
        for one in values {
            let (strong, text) = (style::STRONG, one.text());
            write!(out, "{strong}{:<key$}{strong:#}  ", one.key)?;
            match origin {
                true => writeln!(out, "{text:<value$}  {}", self.origin(&one.origin))?,
                false => writeln!(out, "{text}")?,
            }
        }
        Ok(())
    }

    fn origin(&self, origin: &Origin) -> String {
        let file = self.file.as_deref().unwrap_or_default();
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::File { line, column } => crate::config::place(Path::new(file), *line, *column),
            Origin::Variable { name } => (*name).to_owned(),
            Origin::Flag { flag } => flag.clone(),
        }
    }
}

impl Shown {
    fn text(&self) -> &str {
        self.value.as_deref().unwrap_or("-")
    }
}
