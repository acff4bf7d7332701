//! The words of the help: what an administrator says, not what a translation gives. The list is that
//! of CONTRIBUTING.md. Texts of policies and schemas are not this program's.

use clap::Command;

/// What no help may say, and what it says instead.
const BANNED: &[(&str, &str)] = &[
    ("told", "reported"),
    ("tell", "report"),
    ("tells", "reports"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("anew", "again"),
    ("patience", "timeout"),
    ("keeper", "controller"),
    ("spoke", "reported"),
    ("begun", "started"),
    ("nobody", "no user, no caller"),
    ("somebody", "a user, a caller"),
    ("whoever", "each that"),
    ("for ever", "without limit"),
    ("heard of", "known"),
    ("goes on", "continues"),
    ("living cluster", "live cluster"),
    ("look-up", "lookup"),
    ("look-ups", "lookups"),
    ("stands in", "is in"),
    ("stands at", "is at"),
];

/// The banned words of a text.
fn banned(text: &str) -> impl Iterator<Item = String> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '-';
    let words: Vec<&str> =
        text.split(|letter| !is_of_word(letter)).filter(|one| !one.is_empty()).collect();
    let text = format!(" {} ", words.join(" ").to_lowercase());
    let found = BANNED.iter().filter(move |(word, _)| text.contains(&format!(" {word} ")));
    found.map(|(word, better)| format!("`{word}` (better: {better})"))
}

fn check(command: &Command, path: &str, wrong: &mut Vec<String>) {
    let path = format!("{path} {}", command.get_name());
    let of_command = [
        command.get_about(),
        command.get_long_about(),
        command.get_after_help(),
        command.get_after_long_help(),
    ];
    for text in of_command.into_iter().flatten() {
        wrong.extend(banned(&text.to_string()).map(|word| format!("{path}: {word}")));
    }
    for one in command.get_arguments() {
        let of_values = one.get_possible_values();
        let texts = [one.get_help(), one.get_long_help()].into_iter().flatten();
        let texts = texts.chain(of_values.iter().filter_map(|value| value.get_help()));
        for text in texts {
            let id = one.get_id();
            wrong.extend(banned(&text.to_string()).map(|word| format!("{path} {id}: {word}")));
        }
    }
    command.get_subcommands().for_each(|within| check(within, &path, wrong));
}

#[test]
fn help_says_what_an_administrator_says() {
    let mut wrong = Vec::new();
    let mut command = kubectl_opensdn::command();
    command.build();
    check(&command, "", &mut wrong);
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "in the help:\n  {}", wrong.join("\n  "));
}

#[test]
fn a_banned_word_is_found_in_any_line_and_case() {
    let found = |text: &str| banned(text).count();
    assert_eq!((found("It waits for\n  ever."), found("Whoever reads")), (1, 1));
    assert_eq!((found("recommend a look-up"), found("lookups, foretold")), (1, 0));
}
