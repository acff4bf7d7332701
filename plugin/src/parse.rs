//! From the words of the command line to a command, or to what is reported instead.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anstream::ColorChoice;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches};

use crate::cli::{Cli, Color};
use crate::clients::{AsksCluster, ClusterFlags, NamesContext};
use crate::config::layers::{self, CommandContext};
use crate::config::{Config, Location};
use crate::exit::Failure;
use crate::output::DocumentFormat;
use crate::plugins;

/// What a command line comes to.
pub(crate) enum Parsed {
    /// A command.
    Command {
        /// With its arguments.
        cli: Box<Cli>,
        /// The document that was asked for.
        document_format: Option<DocumentFormat>,
        /// What in the configuration has no effect.
        warnings: Vec<String>,
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
        /// The document that was asked for, as far as the words show.
        document_format: Option<DocumentFormat>,
    },
}

/// The definition of the command line, as help, completion and manual show it.
#[must_use]
pub fn command() -> clap::Command {
    without_cluster_flags(Cli::command(), &ClusterFlags::augment_args(clap::Command::new("flags")))
}

/// Hides the flags in the commands where they are refused. An argument of the same id in a command
/// replaces the one that would be handed down.
fn without_cluster_flags(command: clap::Command, flags: &clap::Command) -> clap::Command {
    let names: Vec<String> =
        command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |one| {
            let one = without_cluster_flags(one, flags);
            if asks_cluster(&one) || one.has_subcommands() {
                return one;
            }
            let kept = if names_context(&one) { "context" } else { "" };
            let refused = flags.get_arguments().filter(|flag| flag.get_id() != kept);
            one.args(refused.map(|flag| flag.clone().hide(true)))
        })
    })
}

fn asks_cluster(command: &clap::Command) -> bool {
    command.get_groups().any(|group| group.get_id() == AsksCluster::GROUP)
}

fn names_context(command: &clap::Command) -> bool {
    command.get_groups().any(|group| group.get_id() == NamesContext::GROUP)
}

/// Reads a command line, with the program's name first.
pub(crate) fn parse(args: &[OsString]) -> Parsed {
    let name = args.first().map(|name| program_name(name)).unwrap_or_default();
    let define = || {
        command().bin_name(name).color(match color(args) {
            ColorChoice::Never => clap::ColorChoice::Never,
            ColorChoice::Always | ColorChoice::AlwaysAnsi => clap::ColorChoice::Always,
            ColorChoice::Auto => clap::ColorChoice::Auto,
        })
    };
    let mut definition = define();
    let (cli, matches) = match read(&mut definition, args) {
        Ok(read) => read,
        Err(error) if !error.use_stderr() => {
            return Parsed::Text { text: error.render(), color: color(args) };
        }
        Err(error) => return not_understood(&error, &definition, args),
    };
    let document_format = document_format(&matches);
    let color = cli.global.color.choice();
    let refused = refusal(&definition, &cli, &matches);
    match refused.and_then(|()| configuration(&cli, &definition)) {
        Ok(config) => configured(cli, &matches, &config, define, args),
        Err(failure) => Parsed::Failure { failure, color, document_format },
    }
}

fn read(
    definition: &mut clap::Command,
    args: &[OsString],
) -> Result<(Box<Cli>, ArgMatches), clap::Error> {
    let matches = definition.try_get_matches_from_mut(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.global.given = layers::given(&matches);
    Ok((Box::new(cli), matches))
}

/// What the configuration says. The commands that are about it read it themselves, for they are to
/// work, or to say more, where it is broken.
fn configuration(cli: &Cli, definition: &clap::Command) -> Result<Config, Failure> {
    let Some(location) = Location::of(&cli.global) else { return Ok(Config::default()) };
    match Config::load(&location, definition) {
        Err(_) if cli.command.is_about_configuration() => Ok(Config::default()),
        config => config,
    }
}

/// The same command line with what the configuration says in the place of the built-in defaults.
fn configured(
    cli: Box<Cli>,
    matches: &ArgMatches,
    config: &Config,
    define: impl FnOnce() -> clap::Command,
    args: &[OsString],
) -> Parsed {
    let asks = cli.command.asks_cluster();
    // A kubeconfig is read for this only where one is used, and something depends on it.
    let context = (asks && config.knows_contexts()).then(|| cli.global.cluster.context_in_use());
    let around = CommandContext { asks, context: context.flatten() };
    let warnings = match cli.command.is_about_configuration() {
        true => Vec::new(),
        false => config.warnings.clone(),
    };
    let Some(mut definition) = layers::with_defaults(config, &around, define) else {
        return Parsed::Command { cli, document_format: document_format(matches), warnings };
    };
    match read(&mut definition, args) {
        Ok((cli, matches)) => {
            Parsed::Command { cli, document_format: document_format(&matches), warnings }
        }
        Err(error) => not_understood(&error, &definition, args),
    }
}

fn not_understood(error: &clap::Error, definition: &clap::Command, args: &[OsString]) -> Parsed {
    Parsed::Failure {
        failure: usage(error, definition, args),
        color: color(args),
        document_format: value(args, "-o", "--output").and_then(DocumentFormat::named),
    }
}

/// What the user calls us: kubectl finds `kubectl-opensdn` when `kubectl opensdn` is typed.
fn program_name(program: &OsStr) -> &'static str {
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

fn document_format(matches: &ArgMatches) -> Option<DocumentFormat> {
    let mut matches = matches;
    while let Some((_, within)) = matches.subcommand() {
        matches = within;
    }
    let mut values = matches.try_get_raw("output").ok().flatten()?;
    DocumentFormat::named(values.next()?.to_str()?)
}

/// A flag that has no effect is not accepted: a user who gives `--context` believes that the cluster
/// is asked.
fn refusal(definition: &clap::Command, cli: &Cli, matches: &ArgMatches) -> Result<(), Failure> {
    cli.global.check(&cli.command)?;
    let (command, _, words) = innermost(definition, matches);
    if asks_cluster(command) {
        return Ok(());
    }
    let mut flags = cli.global.cluster.clone();
    if names_context(command) {
        flags.context = None;
    }
    flags.must_be_absent(&format!("{} asks no cluster", words.join(" ")), "leave it out")
}

/// clap's refusal as ours: its first paragraph says what is wrong, the rest what to do.
fn usage(error: &clap::Error, definition: &clap::Command, args: &[OsString]) -> Failure {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand};
    if matches!(error.kind(), DisplayHelpOnMissingArgumentOrSubcommand | MissingSubcommand) {
        return missing_command(definition, args);
    }
    let (message, suggestion) = clap_message(error);
    if let Some(hint) = meant_live(error, args) {
        return Failure::usage(message, hint);
    }
    let mut hint = String::new();
    if let Some(suggestion) = suggestion {
        hint = format!("did you mean {suggestion}? ");
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        hint.push_str(&external(word));
    }
    hint.push_str("for what there is: --help");
    Failure::usage(message, hint)
}

/// clap's first paragraph in one line, and what was probably meant.
pub(crate) fn clap_message(error: &clap::Error) -> (String, Option<String>) {
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let message: Vec<&str> = message.lines().map(str::trim).collect();
    (message.join(" "), suggestion(error))
}

/// `validate --cluster` is meant as `--live` by a user who gives it no name, or lets it take that of
/// the only file.
fn meant_live(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let has = |words: &[&str]| args.iter().skip(1).any(|arg| words.iter().any(|word| arg == word));
    let kinds = [ErrorKind::InvalidValue, ErrorKind::MissingRequiredArgument];
    let fits = has(&["validate", "lint"]) && has(&["--cluster"]) && kinds.contains(&error.kind());
    fits.then(|| crate::commands::validate::LIVE_NOT_CLUSTER.to_owned())
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
        // clap has the nearest last.
        ContextValue::Strings(all) => all.last().cloned(),
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
