//! The command line as a whole: every command.

use super::*;

fn args(words: &[&str]) -> Vec<OsString> {
    std::iter::once("kubectl-opensdn").chain(words.iter().copied()).map(OsString::from).collect()
}

#[track_caller]
fn refused(words: &[&str]) -> Failure {
    match parse(&args(words)) {
        Parsed::Failure { failure, .. } => failure,
        _ => panic!("{words:?} must be refused"),
    }
}

/// Each command with the words that lead to it.
fn each(command: &clap::Command, words: &str, visit: &mut impl FnMut(&str, &clap::Command)) {
    visit(words, command);
    for within in command.get_subcommands().filter(|within| within.get_name() != "help") {
        each(within, &format!("{words} {}", within.get_name()), visit);
    }
}

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

#[test]
fn help_of_every_command_fits_100_columns_and_has_examples() {
    let mut command = command();
    command.build();
    each(&command, "kubectl opensdn", &mut |words, command| {
        let after = [command.get_after_help(), command.get_after_long_help()];
        for line in after
            .into_iter()
            .flatten()
            .flat_map(|text| text.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
        {
            assert!(
                line.chars().count() <= 100,
                "{words}: its end would be a line of its own: {line}"
            );
        }
        let mut command = command.clone().color(clap::ColorChoice::Never);
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{words}: {line}");
            }
        }
        let help = command.render_long_help().to_string();
        assert!(help.contains("\nExamples:\n  "), "{words} has no examples");
        assert!(help.is_ascii(), "{words}: {help}");
    });
}

#[test]
fn every_command_shows_the_flags_that_it_takes_and_no_others() {
    let mut command = command();
    command.build();
    each(&command, "kubectl opensdn", &mut |words, command| {
        let shown = command
            .get_arguments()
            .any(|flag| flag.get_id() == "kubeconfig" && !flag.is_hide_set());
        let wanted = command.has_subcommands() || asks_cluster(command);
        assert_eq!(shown, wanted, "{words}");
    });
}

#[test]
fn flags_may_stand_before_and_after_the_command() {
    for words in [["--context", "one", "version"], ["version", "--context", "one"]] {
        let Parsed::Command { cli, .. } = parse(&args(&words)) else { panic!("{words:?}") };
        assert_eq!(cli.global.cluster.context.as_deref(), Some("one"));
    }
}

#[test]
fn flags_without_effect_are_refused() {
    for words in [["explain", "--token=x"], ["--token=x", "explain"]] {
        let failure = refused(&words);
        assert_eq!(failure.message, "--token has no effect: explain asks no cluster");
        assert_eq!(failure.exit, crate::exit::Exit::Usage);
    }
}

#[test]
fn a_misspelt_word_is_answered_with_the_right_one() {
    for (typed, meant) in [
        ("explian", "explain"),
        ("expl", "explain"),
        ("instal", "install"),
        ("uninstal", "uninstall"),
        ("unistall", "uninstall"),
        ("stat", "status"),
        ("vers", "version"),
        ("conectivity", "connectivity"),
    ] {
        let hint = refused(&[typed]).hint;
        assert!(hint.starts_with(&format!("did you mean {meant}?")), "{typed}: {hint}");
    }
    assert!(refused(&["version", "--clint"]).hint.starts_with("did you mean --client?"));
    let failure = refused(&["explain", "-o", "jsom"]);
    assert!(failure.message.contains("possible values: human, json, yaml, name"));
}

#[test]
fn a_missing_command_is_answered_with_those_that_there_are() {
    assert!(refused(&[]).hint.contains("explain, config, version"));
}

#[test]
fn the_wanted_document_is_known_even_if_nothing_else_is() {
    for words in [["-ojson", "x"], ["-o=json", "x"], ["--output=json", "x"]] {
        let Parsed::Failure { document_format, .. } = parse(&args(&words)) else {
            panic!("{words:?}")
        };
        assert_eq!(document_format, Some(DocumentFormat::Json), "{words:?}");
    }
    let after = args(&["x", "--", "-ojson"]);
    assert_eq!(value(&after, "-o", "--output"), None);
    assert_eq!(value(&args(&["-o", "yaml", "-o", "json"]), "-o", "--output"), Some("json"));
}

#[test]
fn usage_says_how_the_user_calls_us() {
    for (program, expected) in [
        ("kubectl-opensdn", "Usage: kubectl opensdn version"),
        ("/usr/local/bin/opensdn", "Usage: opensdn version"),
    ] {
        let words = [program, "version", "--help"].map(OsString::from);
        let Parsed::Text { text, .. } = parse(&words) else { panic!("no help") };
        assert!(text.to_string().contains(expected), "{text}");
    }
}
