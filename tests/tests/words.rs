//! The words of all that administrators read: what they say themselves, not what a translation gives.
//! One list for the log (where `tidy` finds its lines), the help, the texts in the code of the programs and
//! of policies, the descriptions of the CRDs, and the documents. CONTRIBUTING.md has the terms and what
//! they mean; here are those of the words it rejects that are never right in such a text, and their like.

use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use clap::{Command, CommandFactory as _};
use serde_json::Value;

use crate::tidy::{Source, check, check_paths, sources};

/// What no text may say, and what it says instead.
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
    ("whoever", "each that, anyone who"),
    ("for ever", "without limit"),
    ("heard of", "known"),
    ("sign of life", "heartbeat"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("living cluster", "live cluster"),
    ("look-up", "lookup"),
    ("look-ups", "lookups"),
    ("re-judge", "evaluate again"),
    ("could not tell", "inconclusive"),
    ("stands in", "is in"),
    ("stands at", "is at"),
];

/// The banned words of a text.
pub(crate) fn banned(text: &str) -> impl Iterator<Item = String> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '-';
    let words: Vec<&str> =
        text.split(|letter| !is_of_word(letter)).filter(|one| !one.is_empty()).collect();
    let text = format!(" {} ", words.join(" ").to_lowercase());
    let found = BANNED.iter().filter(move |(word, _)| text.contains(&format!(" {word} ")));
    found.map(|(word, better)| format!("`{word}` (better: {better})"))
}

fn of_help(command: &Command, path: &str, wrong: &mut Vec<String>) {
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
    command.get_subcommands().for_each(|within| of_help(within, &path, wrong));
}

#[test]
fn help_says_what_an_administrator_says() {
    let mut wrong = Vec::new();
    let commands = [
        kubectl_opensdn::command(),
        opensdn_webhook::Args::command(),
        opensdn_operator::Args::command(),
        opensdn_testing::command_line::command(),
    ];
    for mut command in commands {
        command.build();
        of_help(&command, "", &mut wrong);
    }
    wrong.sort();
    wrong.dedup();
    check(wrong, "say it in the help as an administrator does");
}

/// The rest of a raw text after its `r`; none, and nothing taken, where it begins something else.
fn raw(characters: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut ahead = characters.clone();
    let mut end = String::from("\"");
    while ahead.next_if_eq(&'#').is_some() {
        end.push('#');
    }
    ahead.next_if_eq(&'"')?;
    let mut text = String::new();
    while !text.ends_with(end.as_str()) {
        text.push(ahead.next()?);
    }
    *characters = ahead;
    Some(text.trim_end_matches(end.as_str()).to_owned())
}

/// The texts in the code with the lines where they begin.
fn literals(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut line, mut characters) = (1, code.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '\n' => line += 1,
            '/' if characters.peek() == Some(&'/') => {
                while characters.next_if(|next| *next != '\n').is_some() {}
            }
            '\'' if characters.peek() == Some(&'"') => drop(characters.next()),
            'r' if matches!(characters.peek(), Some('"' | '#')) => {
                if let Some(text) = raw(&mut characters) {
                    let begin = line;
                    line += text.matches('\n').count();
                    found.push((begin, text));
                }
            }
            '"' => {
                let (begin, mut text) = (line, String::new());
                while let Some(next) = characters.next().filter(|next| *next != '"') {
                    line += usize::from(next == '\n');
                    match next {
                        '\\' if characters.next() == Some('\n') => {
                            line += 1;
                            while characters.next_if(|next| next.is_whitespace()).is_some() {}
                        }
                        '\\' => {}
                        other => text.push(other),
                    }
                }
                found.push((begin, text));
            }
            _ => {}
        }
    }
    found
}

/// Findings, errors, hints, Events, conditions and what programs print.
#[test]
fn texts_in_code_say_what_an_administrator_says() {
    let mut wrong = Vec::new();
    let folders = [
        "lib/",
        "operator/src/",
        "plugin/src/",
        "policies/",
        "sdk/admission-policy/src/",
        "sdk/host/src/",
        "tests/support/src/",
        "webhook/src/",
    ];
    let all = sources(&[".rs"]);
    check_paths(folders, &all);
    let is_of_texts = |source: &&Source| {
        folders.iter().any(|folder| source.path.starts_with(folder)) && !source.is_test()
    };
    for source in all.iter().filter(is_of_texts) {
        for (line, text) in literals(&source.split_tests().0.join("\n")) {
            let place = |word| format!("{}:{line}: {word}", source.path);
            wrong.extend(banned(&text).map(place));
        }
    }
    check(wrong, "say it in findings, errors, hints and Events as an administrator does");
}

/// The paragraphs of a document, each row of a table and each item of a list for itself, with the lines where
/// they begin. What is quoted as code says what it says elsewhere; the table of words has to name those that it
/// rejects.
fn paragraphs(document: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut in_words, mut in_code, mut begins) = (false, false, true);
    for (at, line) in document.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if line.starts_with("## ") && !in_code {
            in_words = line == "## Words";
        }
        if line.trim().is_empty() || in_words || in_code || is_fence {
            begins = true;
        } else if begins || line.starts_with(['|', '-']) {
            found.push((at + 1, line.to_owned()));
            begins = false;
        } else if let Some((_, text)) = found.last_mut() {
            text.push('\n');
            text.push_str(line);
        }
    }
    for (_, text) in &mut found {
        let parts = text.split('`').enumerate();
        *text = parts.map(|(at, part)| if at % 2 == 0 { part } else { " code " }).collect();
    }
    found
}

#[test]
fn documents_say_what_an_administrator_says() {
    let mut wrong = Vec::new();
    let folders =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "deploy/", "docs/src/", "policies/"];
    let all = sources(&[".md"]);
    check_paths(folders, &all);
    let is_ours = |one: &&Source| folders.iter().any(|folder| one.path.starts_with(folder));
    for source in all.iter().filter(is_ours) {
        for (line, text) in paragraphs(&source.text) {
            let place = |word| format!("{}:{line}: {word}", source.path);
            wrong.extend(banned(&text).map(place));
        }
    }
    check(
        wrong,
        "say it in documents as an administrator does; what is generated, where it comes from",
    );
}

/// The descriptions and messages in a schema, with their places.
fn of_schema(value: &Value, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "description" || key == "message" => {
                        found.push((place.to_owned(), text.clone()));
                    }
                    other => of_schema(other, &format!("{place}/{key}"), found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| of_schema(item, place, found)),
        _ => {}
    }
}

#[test]
fn descriptions_of_the_crds_say_what_an_administrator_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/yaml");
    let (mut files, mut wrong) = (0, Vec::new());
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        files += 1;
        let definition: Value =
            serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut texts = Vec::new();
        of_schema(&definition, &name, &mut texts);
        assert!(!texts.is_empty(), "{name} describes nothing");
        for (place, text) in texts {
            wrong.extend(banned(&text).map(|word| format!("{place}: {word}")));
        }
    }
    assert!(files > 15, "{files} files");
    check(wrong, "say it in crds/src as an administrator does");
}

#[test]
fn a_banned_word_is_found_in_any_line_and_case() {
    let found = |text: &str| banned(text).count();
    assert_eq!((found("It waits for\n  ever."), found("Whoever reads")), (1, 1));
    assert_eq!((found("recommend a look-up"), found("lookups, foretold")), (1, 0));
}

#[test]
fn the_texts_in_code_are_found_and_comments_are_not() {
    let code = "// \"not this\"\nsay('\"', \"one \\\n    two\", \"a \\\"b\\\" c\");\nlet x = \"\";\n\
                raw(r#\"a\n\"b\"\"#, r\"c\\\", r#type);\n\"d\"";
    let found = literals(code);
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["one two", "a b c", "", "a\n\"b\"", "c\\", "d"]);
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
}

#[test]
fn the_words_of_documents_are_found_and_names_in_code_are_not() {
    let document = "# A\nOne `is_told` and\ntwo.\n\n## Words\n| mend |\n\n## B\n```\ntold\n\n\
                    told\n```\n| 1 |\n| 2 |\n";
    let paragraphs = paragraphs(document);
    let texts: Vec<(usize, &str)> =
        paragraphs.iter().map(|(at, one)| (*at, one.as_str())).collect();
    assert_eq!(
        texts,
        [(1, "# A\nOne  code  and\ntwo."), (8, "## B"), (14, "| 1 |"), (15, "| 2 |")]
    );
}
