//! From settings to the definition of the command line: a value of the configuration is the flag's
//! default there, so that clap itself decides that variables and flags win. Which file the settings
//! are from is not known here.

use std::path::Path;

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Command, parser::ValueSource};

use super::Config;
use super::keys::{About, KEYS, Key, Takes};
use crate::exit::Failure;

/// What a command line runs in.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandContext {
    /// Whether a cluster is asked.
    pub(crate) asks: bool,
    /// The context by which it is asked.
    pub(crate) context: Option<String>,
}

/// The definition with the values of the configuration as defaults; nothing where none applies.
pub(crate) fn with_defaults(
    config: &Config,
    around: &CommandContext,
    definition: impl FnOnce() -> Command,
) -> Option<Command> {
    let mut changes = Vec::new();
    for key in KEYS.iter().filter(|key| key.about == About::Runs || around.asks) {
        let value = config.of(key, around.context.as_deref()).map(|one| one.value.clone());
        // Others refuse the flag, so its variable must not look like it there.
        let variable = (key.about == About::Clusters).then_some(key.variable);
        let variable = variable.filter(|name| std::env::var_os(name).is_some());
        if value.is_some() || variable.is_some() {
            changes.push((key, value, variable));
        }
    }
    if changes.is_empty() {
        return None;
    }
    Some(changes.into_iter().fold(definition(), |definition, (key, value, variable)| {
        let (words, flag) = key.words_and_flag();
        changed(definition, &words, flag, &|mut arg| {
            if let Some(value) = &value {
                arg = arg.default_value(value.clone());
            }
            if let Some(name) = variable {
                arg = arg.env(name);
            }
            arg
        })
    }))
}

fn changed(command: Command, words: &[&str], flag: &str, change: &dyn Fn(Arg) -> Arg) -> Command {
    if let Some((word, rest)) = words.split_first() {
        return command.mut_subcommand(word, |within| changed(within, rest, flag, change));
    }
    let found = command.get_arguments().find(|one| one.get_long() == Some(flag));
    match found.map(|one| one.get_id().clone()) {
        Some(id) => command.mut_arg(id, change),
        None => command,
    }
}

/// Whether the flag takes the value: asked of its own parser.
///
/// # Errors
/// It does not; the failure has no place yet.
pub(crate) fn check(key: &Key, definition: &Command, value: &str) -> Result<(), Failure> {
    match key.takes {
        Takes::Switch if value == "true" || value == "false" => return Ok(()),
        Takes::Switch => {
            let message = format!("invalid value '{value}' [possible values: true, false]");
            return Err(Failure::usage(message, ""));
        }
        Takes::Path if !Path::new(value).is_absolute() => {
            let message = format!("'{value}' is not the whole path");
            return Err(Failure::usage(message, "begin it with /; ~ is not expanded here"));
        }
        Takes::Path | Takes::Value => {}
    }
    let Some(argument) = key.argument(definition) else { return Ok(()) };
    let (_, flag) = key.words_and_flag();
    let argument = argument.clone().global(false).env(Resettable::Reset);
    Command::new("config")
        .no_binary_name(true)
        .color(clap::ColorChoice::Never)
        .arg(argument)
        .try_get_matches_from([format!("--{flag}={value}")])
        .map(drop)
        .map_err(|error| {
            let (message, meant) = crate::parse::clap_message(&error);
            let hint = meant.map(|meant| format!("did you mean {meant}?")).unwrap_or_default();
            Failure::usage(message, hint)
        })
}

/// The flags with a key that were given on the command line, with their values.
pub(crate) fn given(matches: &ArgMatches) -> Vec<(&'static Key, String)> {
    let is_given = |key: &&Key| {
        let (words, flag) = key.words_and_flag();
        let id = flag.replace('-', "_");
        words.is_empty()
            && matches!(matches.try_contains_id(&id), Ok(true))
            && matches.value_source(&id) == Some(ValueSource::CommandLine)
    };
    let value = |key: &Key| {
        let mut values = matches.try_get_raw(&key.name.replace('-', "_")).ok().flatten()?;
        Some(values.next()?.to_string_lossy().into_owned())
    };
    KEYS.iter().filter(is_given).map(|key| (key, value(key).unwrap_or_default())).collect()
}
