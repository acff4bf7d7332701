//! The page of the book with all commands and flags: made from the definition of the command line,
//! and checked for being current.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command};

const FILE: &str = "docs/src/reference/commands.md";
const UPDATE: &str = "UPDATE=1 cargo test -p kubectl-opensdn --test cli page";
/// What every command has is on the page once, at the end.
const SHARED: [&str; 2] = ["Global flags", "Cluster flags"];

fn page() -> String {
    let mut command = kubectl_opensdn::command().bin_name("kubectl opensdn");
    command.build();
    let mut text = format!(
        "<!-- Generated: {UPDATE} -->\n\n# Commands and flags\n\n{}. The same with `--help` behind \
         any command, and as manual pages: `kubectl opensdn man --out DIR`. \
         There is no `-o jsonpath`: `-o json | jq` does the same, and more.\n",
        plain(command.get_about())
    );
    for within in visible(&command) {
        section(within, &mut text);
    }
    for heading in SHARED {
        let shared = command.get_arguments().filter(|one| one.get_help_heading() == Some(heading));
        let intro = match heading {
            "Cluster flags" => "Of the commands that ask a cluster; others refuse them.",
            _ => "Every command has them.",
        };
        write!(text, "\n## {heading}\n\n{intro}\n\n").unwrap();
        shared.filter(|one| !one.is_hide_set()).for_each(|one| argument(one, &mut text));
    }
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    write!(text, "\n## Exit codes and environment\n\n```text\n{}\n```\n", after.trim()).unwrap();
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help")
}

fn section(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let about = plain(command.get_long_about().or_else(|| command.get_about()));
    write!(text, "\n## {name}\n\n{about}.\n\n```text\n{usage}\n```\n\n").unwrap();
    let aliases: Vec<String> =
        command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        write!(text, "Also called {}.\n\n", aliases.join(", ")).unwrap();
    }
    for one in command.get_arguments() {
        let shared = one.get_help_heading().is_some_and(|heading| SHARED.contains(&heading));
        if !shared && !one.is_hide_set() && !["help", "version"].contains(&one.get_id().as_str()) {
            argument(one, text);
        }
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(after) = after {
        write!(text, "\n```text\n{}\n```\n", after.to_string().trim()).unwrap();
    }
    for within in visible(command) {
        section(within, text);
    }
}

fn argument(one: &Arg, text: &mut String) {
    let values = one.get_value_names().unwrap_or_default();
    let takes_value = one.get_action().takes_values();
    let value: String = values
        .iter()
        .filter(|_| takes_value)
        .map(|name| if one.is_positional() { name.to_string() } else { format!(" {name}") })
        .collect();
    let names = [
        one.get_short().map(|short| format!("-{short}")),
        one.get_long().map(|long| format!("--{long}")),
    ];
    let names: Vec<String> = names.into_iter().flatten().collect();
    let help = plain(one.get_long_help().or_else(|| one.get_help()));
    write!(text, "- `{}{value}`: {help}.", names.join(", ")).unwrap();
    let possible = one.get_possible_values();
    let shown = possible.iter().filter(|value| takes_value && !value.is_hide_set());
    let shown: Vec<String> = shown.map(|value| format!("`{}`", value.get_name())).collect();
    if !shown.is_empty() {
        write!(text, " One of {}.", shown.join(", ")).unwrap();
    }
    let default: Vec<String> = one
        .get_default_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !default.is_empty() {
        write!(text, " Default: {}.", default.join(", ")).unwrap();
    }
    if let Some(variable) = one.get_env() {
        write!(text, " Environment: `{}`.", variable.to_string_lossy()).unwrap();
    }
    text.push('\n');
}

/// Words in one line, without what Markdown would take for a tag, and without the full stop.
fn plain(styled: Option<&clap::builder::StyledStr>) -> String {
    let text = styled.map(ToString::to_string).unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace('<', "&lt;").replace('*', "\\*");
    text.trim_end_matches('.').to_owned()
}

#[test]
fn the_page_of_commands_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
    let expected = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(current == expected, "{FILE} is not current: {UPDATE}");
}

#[test]
fn every_command_and_flag_that_help_shows_is_on_the_page() {
    fn check(command: &Command, page: &str) {
        for one in command.get_arguments().filter(|one| !one.is_hide_set()) {
            if let Some(long) = one.get_long().filter(|long| !["help", "version"].contains(long)) {
                assert!(page.contains(&format!("--{long}")), "{} --{long}", command.get_name());
            }
        }
        visible(command).for_each(|within| check(within, page));
    }
    check(&kubectl_opensdn::command(), &page());
}
