//! From the words of the command line to a command, or to what the user has to be told instead.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anstream::ColorChoice;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches};

use crate::cli::{Cli, Color};
use crate::clients::{AsksCluster, ClusterFlags};
use crate::exit::Failure;
use crate::output::Notation;
use crate::plugins;

/// What a command line comes to.
pub(crate) enum Parsed {
    /// A command.
    Command {
        /// With its arguments.
        cli: Box<Cli>,
        /// The document that was asked for.
        notation: Option<Notation>,
    },
    /// Help or the version was asked for.
    Text {
        /// It.
        text: StyledStr,
        /// Whether in colours.
        color: ColorChoice,
    },
    /// It cannot be understood.
    Failure {
        /// Why.
        failure: Failure,
        /// Whether in colours.
        color: ColorChoice,
        /// The document that was asked for, as far as can be told.
        notation: Option<Notation>,
    },
}

/// The definition of the command line, as help, completion and manual show it.
pub(crate) fn command() -> clap::Command {
    without_cluster_flags(Cli::command(), &ClusterFlags::augment_args(clap::Command::new("flags")))
}

/// Hides the flags in the commands where they are refused. An argument of the same id in a command
/// stands for the one that would be handed down.
fn without_cluster_flags(command: clap::Command, flags: &clap::Command) -> clap::Command {
    let names: Vec<String> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |one| {
            let one = without_cluster_flags(one, flags);
            if asks_cluster(&one) || one.has_subcommands() {
                return one;
            }
            one.args(flags.get_arguments().map(|flag| flag.clone().hide(true)))
        })
    })
}

fn asks_cluster(command: &clap::Command) -> bool {
    command.get_groups().any(|group| group.get_id() == AsksCluster::GROUP)
}

/// Reads a command line, with the program's name first.
pub(crate) fn parse(args: &[OsString]) -> Parsed {
    let name = args.first().map(|name| called(name)).unwrap_or_default();
    let definition = command().bin_name(name);
    let mut definition = definition.color(match color(args) {
        ColorChoice::Never => clap::ColorChoice::Never,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => clap::ColorChoice::Always,
        ColorChoice::Auto => clap::ColorChoice::Auto,
    });
    let parsed = definition.try_get_matches_from_mut(args).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((Box::new(cli), matches))
    });
    match parsed {
        Ok((cli, matches)) => {
            let notation = notation(&matches);
            match refusal(&definition, &cli, &matches) {
                Ok(()) => Parsed::Command { cli, notation },
                Err(failure) => {
                    Parsed::Failure { failure, color: cli.global.color.choice(), notation }
                }
            }
        }
        Err(error) if !error.use_stderr() => {
            Parsed::Text { text: error.render(), color: color(args) }
        }
        Err(error) => Parsed::Failure {
            failure: usage(&error, &definition, args),
            color: color(args),
            notation: value(args, "-o", "--output").and_then(Notation::named),
        },
    }
}

/// What the user calls us: kubectl finds `kubectl-opensdn` when `kubectl opensdn` is typed.
fn called(program: &OsStr) -> &'static str {
    let name = Path::new(program).file_stem().unwrap_or_default();
    if name == "opensdn" { "opensdn" } else { "kubectl opensdn" }
}

/// The innermost command, with the words that lead to it.
fn innermost<'a>(
    definition: &'a clap::Command,
    matches: &'a ArgMatches,
) -> (&'a clap::Command, &'a ArgMatches, Vec<&'a str>) {
    let (mut definition, mut matches, mut words) = (definition, matches, Vec::new());
    while let Some((name, within)) = matches.subcommand() {
        let Some(next) = definition.find_subcommand(name) else { break };
        (definition, matches) = (next, within);
        words.push(name);
    }
    (definition, matches, words)
}

fn notation(matches: &ArgMatches) -> Option<Notation> {
    let mut matches = matches;
    while let Some((_, within)) = matches.subcommand() {
        matches = within;
    }
    let mut values = matches.try_get_raw("output").ok().flatten()?;
    Notation::named(values.next()?.to_str()?)
}

/// A flag that has no effect is not accepted: whoever gives `--context` believes that the cluster
/// is asked.
fn refusal(definition: &clap::Command, cli: &Cli, matches: &ArgMatches) -> Result<(), Failure> {
    cli.global.check()?;
    let (command, _, words) = innermost(definition, matches);
    if asks_cluster(command) {
        return Ok(());
    }
    cli.global
        .cluster
        .must_be_absent(&format!("{} asks no cluster", words.join(" ")), "leave it out")
}

/// clap's refusal as ours: its first paragraph says what is wrong, the rest what to do.
fn usage(error: &clap::Error, definition: &clap::Command, args: &[OsString]) -> Failure {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand};
    if matches!(error.kind(), DisplayHelpOnMissingArgumentOrSubcommand | MissingSubcommand) {
        return missing_command(definition, args);
    }
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let message: Vec<&str> = message.lines().map(str::trim).collect();
    let mut hint = String::new();
    if let Some(suggestion) = suggestion(error) {
        hint = format!("did you mean {suggestion}? ");
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        hint.push_str(&external(word));
    }
    hint.push_str("for what there is: --help");
    Failure::usage(message.join(" "), hint)
}

fn missing_command(definition: &clap::Command, args: &[OsString]) -> Failure {
    let words = args.iter().skip(1).filter_map(|word| word.to_str());
    let within =
        words.fold(definition, |within, word| within.find_subcommand(word).unwrap_or(within));
    let shown =
        within.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    Failure::usage("a command is missing", format!("use one of: {} (--help)", names.join(", ")))
}

fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(all) => all.first().cloned(),
        _ => None,
    })
}

/// A command may be a program of its own, which kubectl runs and we do not.
fn external(word: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = plugins::found_in(&path);
    let fitting = found.iter().find(|one| one.words.first().is_some_and(|first| first == word));
    match fitting {
        Some(one) => format!(
            "{} is a program of its own: kubectl opensdn {} runs it; ",
            one.path.display(),
            one.words.join(" ")
        ),
        None => String::new(),
    }
}

/// The value of a flag before the command line has been understood.
fn value<'a>(args: &'a [OsString], short: &str, long: &str) -> Option<&'a str> {
    let mut words = args.iter().skip(1).filter_map(|word| word.to_str());
    let mut found = None;
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let after = |flag: &str| word.strip_prefix(flag).filter(|_| !flag.is_empty());
        if word == long || word == short {
            found = words.next();
        } else if let Some(value) = after(long).and_then(|rest| rest.strip_prefix('=')) {
            found = Some(value);
        } else if let Some(value) = after(short) {
            found = Some(value.strip_prefix('=').unwrap_or(value));
        }
    }
    found
}

fn color(args: &[OsString]) -> ColorChoice {
    let variable = std::env::var("KUBECTL_OPENSDN_COLOR").ok();
    match value(args, "", "--color").or(variable.as_deref()) {
        Some("always") => Color::Always.choice(),
        Some("never") => Color::Never.choice(),
        _ => Color::Auto.choice(),
    }
}

#[cfg(test)]
mod tests;
