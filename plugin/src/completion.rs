//! Completion as kubectl asks for it: one candidate a line with its description, then a line with
//! cobra's directive. Scripts for shells are in `commands/completion.rs`.
//!
//! kubectl runs `kubectl_complete-opensdn WORD...` with the word to complete last. It offers nothing
//! where that fails or writes nothing, so an error here is silence: no user would see it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _, complete,
};

use opensdn_upgrade::version::{RELEASES, Version};

pub(crate) mod objects;

/// The name under which kubectl runs this program for completion.
pub(crate) const PROGRAM: &str = "kubectl_complete-opensdn";
/// The hidden word by which the shim asks for the same.
pub(crate) const WORD: &str = "__complete";

/// No file names of the shell's own: where files are wanted they are among the candidates.
const NO_FILES: u8 = 4;
/// No blank after the candidate: more follows a folder's name.
const NO_SPACE: u8 = 2;

/// Completes a policy: the name of a built-in one, or a file.
pub(crate) fn policies() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let typed = current.to_string_lossy();
        let names = opensdn_policies::ALL.iter().map(|policy| policy.name);
        let names = names.filter(|name| name.starts_with(typed.as_ref()));
        let mut all: Vec<_> = names.map(CompletionCandidate::new).collect();
        all.extend(PathCompleter::any().complete(current));
        all
    })
}

/// The releases of OpenSDN that an upgrade may lead to, the newest first.
pub(crate) fn releases() -> Vec<String> {
    let version = |&(year, number)| Version { year, number, patch: 0 }.to_string();
    RELEASES.iter().rev().map(version).collect()
}

/// The words to complete, where this is a question for completion.
pub(crate) fn words(args: &[OsString]) -> Option<&[OsString]> {
    let (program, rest) = args.split_first()?;
    if Path::new(program).file_stem() == Some(OsStr::new(PROGRAM)) {
        return Some(rest);
    }
    match rest.split_first() {
        Some((word, rest)) if word == WORD => Some(rest),
        _ => None,
    }
}

/// Writes the candidates for the last word.
pub(crate) fn answer(words: &[OsString], out: &mut dyn Write) -> io::Result<()> {
    let Some(last) = words.last() else { return Ok(()) };
    objects::note(words);
    let mut command = crate::parse::command();
    let args: Vec<OsString> =
        std::iter::once(OsString::from("kubectl-opensdn")).chain(words.iter().cloned()).collect();
    let folder = std::env::current_dir().ok();
    let candidates =
        complete(&mut command, args, words.len(), folder.as_deref()).unwrap_or_default();
    let wants_flag = last.to_string_lossy().starts_with('-');
    let mut directive = NO_FILES;
    for candidate in &candidates {
        let value = value(candidate, &last.to_string_lossy());
        // The engine adds the flags to what else fits; they are asked for by a dash.
        if candidate.is_hide_set() || (value.starts_with('-') && !wants_flag) {
            continue;
        }
        if value.ends_with(['/', '=']) {
            directive |= NO_SPACE;
        }
        writeln!(out, "{value}{}", description(candidate))?;
    }
    writeln!(out, ":{directive}")
}

/// What is offered. Of a command and its aliases the engine keeps one, not always the name.
fn value(candidate: &CompletionCandidate, last: &str) -> String {
    let id = candidate.get_id().map(String::as_str).unwrap_or_default();
    match id.strip_prefix("command::").filter(|name| name.starts_with(last)) {
        Some(name) => name.to_owned(),
        None => candidate.get_value().to_string_lossy().into_owned(),
    }
}

/// A tab and the first line of the help, which must hold neither.
fn description(candidate: &CompletionCandidate) -> String {
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let line = help.lines().next().unwrap_or_default().replace('\t', " ");
    let line = line.trim().trim_end_matches('.');
    if line.is_empty() { String::new() } else { format!("\t{line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let mut out = Vec::new();
        answer(&words, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn offers_commands_with_their_description_and_the_directive_last() {
        let lines = candidates(&["vers"]);
        let [version, directive] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(version.starts_with("version\t"), "{version}");
        assert_eq!(directive, ":4");
    }

    #[test]
    fn an_empty_word_offers_commands_and_no_flags() {
        let lines = candidates(&[""]);
        assert!(lines.iter().any(|line| line.starts_with("explain\t")), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("validate\t")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.starts_with('-')), "{lines:?}");
    }

    #[test]
    fn an_alias_is_offered_where_its_beginning_was_typed() {
        let lines = candidates(&["li"]);
        assert!(lines.iter().any(|line| line.starts_with("lint\t")), "{lines:?}");
    }

    #[test]
    fn offers_flags_after_a_dash_and_not_those_that_are_refused() {
        let flags = |word: &str| candidates(&[word, "--contex"]).len();
        assert_eq!(flags("version"), 2);
        assert_eq!(flags("explain"), 1);
    }

    #[test]
    fn offers_values_and_codes() {
        let colors = candidates(&["--color", "a"]);
        assert!(colors.iter().any(|line| line.starts_with("always")), "{colors:?}");
        let codes = candidates(&["explain", "OSDN40"]);
        assert_eq!(codes.len(), 20, "{codes:?}");
        assert!(codes.iter().any(|line| line.starts_with("OSDN4001\tno built-in policy")));
    }

    #[test]
    fn offers_releases_and_built_in_policies_where_they_are_meant() {
        for words in [["upgrade", "plan", "r2"], ["check", "--upgrade", "R2"]] {
            let releases = candidates(&words);
            assert!(releases.contains(&"R25.1".to_owned()), "{releases:?}");
        }
        for command in ["inspect", "run", "test", "bench", "manifest"] {
            let policies = candidates(&["policy", command, "even-"]);
            assert!(policies.contains(&"even-quorum".to_owned()), "{command}: {policies:?}");
        }
    }

    #[test]
    fn every_name_of_a_node_is_completed() {
        fn without(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let nodes = command.get_arguments().filter(|one| one.get_long() == Some("node"));
            let bare = |one: &&clap::Arg| one.get::<ArgValueCompleter>().is_none();
            found.extend(nodes.filter(bare).map(|_| path.to_owned()));
            for one in command.get_subcommands() {
                without(one, &format!("{path} {}", one.get_name()), found);
            }
        }
        let mut found = Vec::new();
        without(&crate::parse::command(), "", &mut found);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn offers_nothing_for_what_is_no_command_line() {
        assert_eq!(candidates(&["no-such-command", "x"]), [":4"]);
        assert!(candidates(&[]).is_empty());
    }

    #[test]
    fn is_asked_by_name_or_by_word() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let by_name = args(&["/usr/bin/kubectl_complete-opensdn", "a", ""]);
        assert_eq!(words(&by_name), Some(&args(&["a", ""])[..]));
        let by_word = args(&["kubectl-opensdn", "__complete", "a"]);
        assert_eq!(words(&by_word), Some(&args(&["a"])[..]));
        assert_eq!(words(&args(&["kubectl-opensdn", "version"])), None);
    }
}
