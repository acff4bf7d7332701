//! What a machine can check of the style guide in CONTRIBUTING.md and of the invariants in
//! ARCHITECTURE.md. Each test collects everything that is wrong before it fails. Deliberately
//! not here: what clippy checks (length of functions, panics, printing).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::words::banned;

/// Lines of a file without its tests.
const FILE_WALL: usize = 600;
/// Lines of tests that may stay in the file that they test.
const INLINE_TESTS_WALL: usize = 150;
const MAIN_WALL: usize = 20;

/// A source file, by its path below the workspace's root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = !name.starts_with('.') && name != "target" && name != "node_modules";
        if is_ours && entry.path().is_dir() {
            walk(&entry.path(), files);
        } else if is_ours {
            files.push(entry.path());
        }
    }
}

/// All files of the workspace whose names end so.
pub(crate) fn sources(endings: &[&str]) -> Vec<Source> {
    let mut files = Vec::new();
    walk(root(), &mut files);
    files.sort();
    let wanted = |path: &&PathBuf| endings.iter().any(|end| path.to_string_lossy().ends_with(end));
    let found: Vec<Source> = files
        .iter()
        .filter(wanted)
        .map(|path| Source {
            path: path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned(),
            text: fs::read_to_string(path).unwrap_or_default(),
        })
        .collect();
    assert!(!found.is_empty(), "no {endings:?} below {}", root().display());
    found
}

impl Source {
    /// Whether the whole file is a test: in a `tests` folder, or a module called `tests`. The
    /// crate `tests` is not, but its own `tests` folder is.
    pub(crate) fn is_test(&self) -> bool {
        let in_crate = self.path.strip_prefix("tests/").unwrap_or(&self.path);
        in_crate.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// The lines before and after the start of the tests in the file.
    pub(crate) fn split_tests(&self) -> (Vec<&str>, Vec<&str>) {
        let lines: Vec<&str> = self.text.lines().collect();
        let begins = |at: &usize| {
            lines.get(*at) == Some(&"#[cfg(test)]")
                && lines.get(at + 1).is_some_and(|next| next.starts_with("mod tests {"))
        };
        let start = (0..lines.len()).find(begins).unwrap_or(lines.len());
        let (code, tests) = lines.split_at(start);
        (code.to_vec(), tests.to_vec())
    }

    /// Numbered lines that are not comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.text.lines().enumerate();
        numbered
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(|(at, line)| (at + 1, line))
    }

    /// Where a text is in the code.
    fn places_of(&self, text: &str) -> Vec<String> {
        let hits = self.code().filter(|(_, line)| line.contains(text));
        hits.map(|(number, _)| format!("{}:{number}: {text}", self.path)).collect()
    }
}

/// Fails with every place and what to do.
pub(crate) fn check(wrong: Vec<String>, remedy: &str) {
    assert!(wrong.is_empty(), "{remedy}:\n  {}", wrong.join("\n  "));
}

#[test]
fn files_are_short() {
    let mut wrong = Vec::new();
    for source in sources(&[".rs"]).iter().filter(|source| !source.is_test()) {
        let (code, tests) = source.split_tests();
        let is_main = source.path.ends_with("src/main.rs") || source.path.contains("/src/bin/");
        let wall = if is_main { MAIN_WALL } else { FILE_WALL };
        if code.len() > wall {
            wrong.push(format!("{}: {} lines, at most {wall}", source.path, code.len()));
        }
        if tests.len() > INLINE_TESTS_WALL {
            wrong.push(format!("{}: {} lines of tests", source.path, tests.len()));
        }
    }
    check(wrong, "split by subject; move long tests to <module>/tests.rs");
}

#[test]
fn every_file_says_what_is_in_it() {
    let silent = sources(&[".rs"]).into_iter().filter(|source| !source.text.starts_with("//!"));
    check(silent.map(|source| source.path).collect(), "begin with //! and what is here");
}

#[test]
fn no_path_is_a_drawer_for_anything() {
    let drawers = ["util", "utils", "helper", "helpers", "common", "misc", "base"];
    let is_drawer = |path: &str| {
        path.split('/').any(|part| drawers.contains(&part.split('.').next().unwrap_or(part)))
    };
    let found = sources(&[".rs", "Cargo.toml"]).into_iter().filter(|s| is_drawer(&s.path));
    check(found.map(|source| source.path).collect(), "name it after its subject");
}

#[test]
fn no_test_is_switched_off() {
    // In pieces, so that this file does not find itself.
    let attributes = [concat!("#[", "ignore"), concat!("#[", "should_panic")];
    let all = sources(&[".rs"]);
    let places = all.iter().flat_map(|source| attributes.map(|text| source.places_of(text)));
    check(places.flatten().collect(), "a test runs always, and says what it expects");
}

/// The gate knows them by the names of their modules, and leaves them out where no lab can be had.
#[test]
fn tests_that_need_real_nodes_are_in_modules_that_the_gate_knows() {
    let is_known = |path: &str| path.starts_with("tests/tests/lab_");
    let nodes =
        [concat!("with_real", "_nodes("), concat!(".real", "_nodes("), concat!("Lab", "Product")];
    let needs = |source: &Source| nodes.iter().any(|text| !source.places_of(text).is_empty());
    let tests = sources(&[".rs"]).into_iter();
    let files = tests.filter(|source| source.path.starts_with("tests/tests/") && needs(source));
    let (known, others): (Vec<_>, Vec<_>) = files.partition(|source| is_known(&source.path));
    assert!(known.len() > 4, "the lab's tests have gone");
    let wrong = others.into_iter().map(|source| source.path).collect();
    check(wrong, "begin the module's name with lab_");
}

#[test]
fn nothing_is_left_to_do() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("unimpl", "emented!(")];
    let mut wrong = Vec::new();
    for source in sources(&[".rs", ".sh", ".toml", ".yaml", ".wit", "Makefile"]) {
        for (at, line) in source.text.lines().enumerate() {
            wrong.extend(
                marks
                    .iter()
                    .filter(|mark| line.contains(*mark))
                    .map(|mark| format!("{}:{}: {mark}", source.path, at + 1)),
            );
        }
    }
    check(wrong, "do it, or leave it out");
}

/// The sections of a Cargo.toml that name dependencies, line by line.
fn dependency_lines(source: &Source) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.contains("dependencies");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            lines.push((at + 1, line));
        }
    }
    lines
}

#[test]
fn versions_stand_in_the_root_only() {
    let mut wrong = Vec::new();
    for source in sources(&["/Cargo.toml", "Cargo.toml"]) {
        // A crate that is a workspace of its own is no member.
        if source.text.contains("[workspace]") {
            continue;
        }
        let own = dependency_lines(&source)
            .into_iter()
            // A crate that only this one uses may be named by its path.
            .filter(|(_, line)| !line.contains("workspace") && !line.contains("path = "))
            .filter(|(_, line)| line.contains('='));
        wrong.extend(own.map(|(number, line)| format!("{}:{number}: {line}", source.path)));
    }
    check(wrong, "write `name.workspace = true`, and the version in the root's Cargo.toml");
}

/// Fails when a rule is about a path that is not there: it would check nothing.
pub(crate) fn check_paths<'p>(paths: impl IntoIterator<Item = &'p str>, all: &[Source]) {
    let gone = paths.into_iter().filter(|path| !all.iter().any(|one| one.path.starts_with(path)));
    check(gone.map(str::to_owned).collect(), "this rule is about a path that is not there");
}

#[test]
fn crates_know_only_whom_they_may_know() {
    let forbidden: [(&str, &[&str]); 8] = [
        ("sdk/host/Cargo.toml", &["kube", "k8s-openapi", "opensdn-crds", "axum"]),
        ("sdk/guest/Cargo.toml", &["kube", "tokio", "wasmtime"]),
        ("crds/Cargo.toml", &["tokio", "wasmtime"]),
        ("deploy/Cargo.toml", &["kube", "k8s-openapi", "tokio", "wasmtime"]),
        ("operator/Cargo.toml", &["wasmtime", "opensdn-policy-host", "opensdn-policies"]),
        ("webhook/Cargo.toml", &["wasmtime"]),
        ("tests/stand-in/Cargo.toml", &["kube", "k8s-openapi", "opensdn-crds", "wasmtime"]),
        ("tests/reserved-port/Cargo.toml", &["tokio", "kube", "opensdn-testing"]),
    ];
    let all = sources(&["Cargo.toml"]);
    check_paths(forbidden.map(|(path, _)| path), &all);
    let mut wrong = Vec::new();
    for (path, names) in forbidden {
        for source in all.iter().filter(|source| source.path == path) {
            for (number, line) in dependency_lines(source) {
                let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
                if names.contains(&name) {
                    wrong.push(format!("{path}:{number}: {name}"));
                }
            }
        }
    }
    check(wrong, "ARCHITECTURE.md says who may know whom");
}

/// What several programs are made of must not bring a third in, directly or not.
#[test]
fn libraries_of_several_programs_bring_neither_policies_nor_their_engine() {
    let policies = ["wasmtime", "opensdn-policies", "opensdn-policy-host", "opensdn-webhook"];
    let forbidden: [(&str, &[&str]); 3] = [
        ("opensdn-runtime", &[&policies[..], &["opensdn-crds"]].concat()),
        ("opensdn-pki", &[&policies[..], &["opensdn-crds"]].concat()),
        ("opensdn-testing", &[&policies[..], &["kubectl-opensdn"]].concat()),
    ];
    let mut wrong = Vec::new();
    for (package, names) in forbidden {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"])
            .args(["--package", package, "--format", "{lib}"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8_lossy(&output.stdout).replace('_', "-");
        let found = names.iter().filter(|name| tree.lines().any(|line| line == **name));
        wrong.extend(found.map(|name| format!("{package} brings {name}")));
    }
    check(wrong, "ARCHITECTURE.md says who may know whom");
}

#[test]
fn only_admission_knows_the_review() {
    let all = sources(&[".rs"]);
    let others = all.iter().filter(|source| {
        source.path.starts_with("webhook/src/")
            && source.path != "webhook/src/admission.rs"
            && !source.path.starts_with("webhook/src/admission/")
            && !source.is_test()
    });
    let mut wrong = Vec::new();
    for source in others {
        let code = source.split_tests().0.len();
        let before_tests = source.code().take_while(|(number, _)| *number <= code);
        wrong.extend(
            before_tests
                .filter(|(_, line)| line.contains("AdmissionReview"))
                .map(|(number, _)| format!("{}:{number}", source.path)),
        );
    }
    check(wrong, "only webhook/src/admission.rs translates from and to AdmissionReview");
}

#[test]
fn pure_modules_do_no_io() {
    let pure = [
        "crds/src/",
        "deploy/src/",
        "operator/src/build",
        "operator/src/component",
        "operator/src/kind.rs",
        "operator/src/manager/",
        "operator/src/names.rs",
        "operator/src/node.rs",
        "operator/src/object.rs",
        "operator/src/peers.rs",
        "operator/src/pod.rs",
        "operator/src/reconcile/fetch.rs",
        "operator/src/reconcile/status.rs",
        "operator/src/reconcile/validate.rs",
        "operator/src/template.rs",
        "webhook/src/claims/ledger.rs",
    ];
    let all = sources(&[".rs"]);
    check_paths(pure, &all);
    let modules = all.iter().filter(|source| pure.iter().any(|path| source.path.starts_with(path)));
    let forbidden = ["async fn", ".await", "kube::Client", "std::fs", "std::net"];
    let places = modules.flat_map(|source| forbidden.map(|text| source.places_of(text)));
    check(places.flatten().collect(), "move what talks to the world to another module");
}

/// To add a component is to describe it: what is the same for all stands once, and nowhere by a name.
#[test]
fn of_the_operator_only_descriptions_name_a_component() {
    let all = sources(&[".rs"]);
    let folder = "operator/src/components/";
    check_paths([folder], &all);
    let described = all.iter().filter(|source| source.path.starts_with(folder));
    let (mut wrong, mut words) = (Vec::new(), Vec::new());
    for source in described {
        let lines = source.split_tests().0.len();
        if (lines > 150 && !source.path.contains("/shared/")) || source.text.contains("async") {
            wrong.push(format!("{}: {lines} lines, or async", source.path));
        }
        let name = source.path.trim_start_matches(folder).trim_end_matches(".rs");
        // What several have in common is no component.
        if name != "shared" {
            words.push(name.replace('_', ""));
        }
    }
    let others = all.iter().filter(|source| {
        source.path.starts_with("operator/src/")
            && !source.path.starts_with("operator/src/components")
            // What services that count their members are asked.
            && !source.path.starts_with("operator/src/ensembles")
            && !source.path.ends_with("/tests.rs")
    });
    for source in others {
        let code = source.split_tests().0.join("\n").to_lowercase();
        let named = words.iter().filter(|word| names(&code, word));
        wrong.extend(named.map(|word| format!("{} names {word}", source.path)));
    }
    check(wrong, "a component is described in a file of its own, of 150 lines, without I/O");
}

/// Whether code, in small letters, names a component: by a word of its own, or as a text where the word is one of
/// everyday life too.
fn names(code: &str, word: &str) -> bool {
    const EVERYDAY: [&str; 3] = ["config", "control", "vrouter"];
    if EVERYDAY.contains(&word) {
        code.contains(&format!("\"{word}\""))
    } else {
        code.contains(word)
    }
}

/// Few files change what is in a cluster, so that a reader knows where to look, and each call has a
/// time limit and an error that names the grant that is missing.
#[test]
fn few_files_write_to_a_cluster() {
    let writers = [
        "lib/runtime/src/apply.rs",
        "lib/runtime/src/leader.rs",
        "plugin/src/install/requests.rs",
        "plugin/src/upgrade/requests.rs",
        "webhook/src/claims/store.rs",
    ];
    let all = sources(&[".rs"]);
    check_paths(writers, &all);
    let products = ["lib/", "operator/src/", "webhook/src/", "plugin/src/"];
    let others = all.iter().filter(|source| {
        products.iter().any(|folder| source.path.starts_with(folder))
            && !writers.contains(&source.path.as_str())
            && !source.is_test()
    });
    let mut wrong = Vec::new();
    for source in others {
        let code = source.split_tests().0.len();
        let writes = ["PatchParams", "PostParams", "DeleteParams"];
        let lines = source.code().take_while(|(number, _)| *number <= code);
        let found = lines.filter(|(_, line)| writes.iter().any(|text| line.contains(text)));
        wrong.extend(
            found.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())),
        );
    }
    check(wrong, "write by opensdn_runtime::apply");
}

/// A user writes the names of our objects into scripts and rules: each is in one place.
#[test]
fn names_of_our_objects_stand_in_one_place() {
    let all = sources(&[".rs"]);
    let names = all.iter().find(|source| source.path == "deploy/src/names.rs").unwrap();
    let names: Vec<&str> = names.code().filter_map(|(_, line)| line.split('"').nth(1)).collect();
    assert!(names.len() > 5, "{names:?}");
    // What the command line takes unless it is given, and names that are not objects'.
    let excepted = ["webhook/src/args.rs", "webhook/src/startup.rs", "webhook/src/configuration"];
    let others = all.iter().filter(|source| {
        let folders = ["webhook/src/", "lib/pki/src/", "lib/runtime/src/"];
        folders.iter().any(|folder| source.path.starts_with(folder))
            && !excepted.iter().any(|path| source.path.starts_with(path))
            && !source.is_test()
    });
    // One that ends so is the beginning of a name.
    let is_in = |line: &str, name: &str| {
        let end = if name.ends_with('-') { "" } else { "\"" };
        line.contains(&format!("\"{name}{end}"))
    };
    let mut wrong = Vec::new();
    for source in others {
        let code = source.split_tests().0.len();
        for (number, line) in source.code().take_while(|(number, _)| *number <= code) {
            let written = names.iter().filter(|name| is_in(line, name));
            wrong.extend(written.map(|name| format!("{}:{number}: {name}", source.path)));
        }
    }
    check(wrong, "take it from opensdn_deploy::names");
}

/// The message of every log call, where it is a literal, with its place.
fn log_messages(source: &Source) -> Vec<(usize, String)> {
    let code = source.split_tests().0.join("\n");
    let mut messages = Vec::new();
    for level in ["error!(", "warn!(", "info!(", "debug!(", "trace!("] {
        for (at, _) in code.match_indices(level) {
            let begin = code.get(..at).unwrap_or_default();
            // Not `on_error!(` and its like, and not in a comment.
            let line = begin.lines().last().unwrap_or_default();
            if begin.ends_with(|c: char| c.is_alphanumeric() || c == '_') || line.contains("//") {
                continue;
            }
            if let Some(message) = message(code.get(at + level.len()..).unwrap_or_default()) {
                messages.push((begin.lines().count(), message));
            }
        }
    }
    messages
}

/// The first argument that is a literal by itself, of a macro's arguments and what follows them.
fn message(arguments: &str) -> Option<String> {
    let (mut depth, mut at_start) = (0, true);
    let mut characters = arguments.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                let mut literal = String::new();
                while let Some(next) = characters.next() {
                    match next {
                        '"' => break,
                        '\\' => drop(characters.next()),
                        _ => literal.push(next),
                    }
                }
                if depth == 0 && at_start {
                    return Some(literal);
                }
                at_start = false;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return None,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            other if other.is_whitespace() => {}
            _ => at_start = false,
        }
    }
    None
}

#[test]
fn the_message_of_a_log_call_is_found() {
    let message = |text: &str| message(text).unwrap_or_default();
    assert_eq!(message("error = &error as &dyn Error, \"failed to read\");"), "failed to read");
    assert_eq!(message("%name, \"started\", x);"), "started");
    assert_eq!(message("a = f(\"not this\"), \n \"this {}\", b);"), "this {}");
    assert_eq!(message("a = \"not this\");"), "");
}

/// What an administrator searches for: what failed, was lost, has started.
#[test]
fn log_messages_are_what_an_administrator_searches_for() {
    let mut wrong = Vec::new();
    for source in sources(&[".rs"]).iter().filter(|source| !source.is_test()) {
        for (number, message) in log_messages(source) {
            let padded = format!(" {message} ");
            let first = message.split(' ').next().unwrap_or_default();
            // Names such as API and AdmissionPolicies keep their capitals.
            let is_name = first.chars().skip(1).any(char::is_uppercase);
            let capital = message.starts_with(char::is_uppercase) && !is_name;
            if capital || padded.contains(" is not ") || banned(&message).next().is_some() {
                wrong.push(format!("{}:{number}: {message}", source.path));
            }
        }
    }
    check(
        wrong,
        "begin with `failed to`, `lost`, `started` and the like; CONTRIBUTING.md has the words",
    );
}

/// Whether a line is in the body of a loop, by the indentation of the lines before it.
fn is_in_loop(lines: &[&str], at: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut level = lines.get(at).map_or(0, |line| indent(line));
    for line in lines.iter().take(at).rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < level {
            level = indent(line);
            let begins = line.trim_start();
            let words = ["loop", "while", "for "];
            if begins.contains("fn ") {
                return false;
            }
            if words.iter().any(|word| begins.starts_with(word)) || begins.ends_with("loop {") {
                return true;
            }
        }
    }
    false
}

/// A test waits for what it waits for; where nothing shows that, a comment says why it sleeps.
#[test]
fn a_fixed_sleep_in_a_test_says_why() {
    let mut wrong = Vec::new();
    let support = |source: &&Source| source.is_test() || source.path.starts_with("tests/");
    for source in sources(&[".rs"]).iter().filter(support) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in source.code().filter(|(_, line)| line.contains("sleep(")) {
            let is_call = line.contains(".await") || line.contains("thread::sleep(");
            let before = lines.get(number.saturating_sub(2)).map_or("", |line| line.trim_start());
            if is_call && !before.starts_with("//") && !is_in_loop(&lines, number - 1) {
                wrong.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    check(wrong, "wait for it with `eventually`, or say in a comment above why nothing shows it");
}

/// A reader of this repository cannot look them up.
#[test]
fn no_text_names_a_requirement_by_its_number() {
    let mut wrong = Vec::new();
    for source in sources(&[".rs", ".md", ".sh", ".yaml", ".toml"]) {
        for (at, line) in source.text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let found = words.filter(|word| is_requirement(word));
            wrong.extend(found.map(|word| format!("{}:{}: {word}", source.path, at + 1)));
        }
    }
    check(wrong, "write the sentence instead");
}

/// Two letters or `SEC`, and two digits.
fn is_requirement(word: &str) -> bool {
    let Some((letters, digits)) = word.split_once('-') else { return false };
    let known = ["AR", "CL", "FT", "MN", "UX", "SEC"];
    known.contains(&letters) && digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit())
}

#[test]
fn every_policy_has_cases() {
    let entries = fs::read_dir(root().join("policies")).into_iter().flatten().flatten();
    let policies = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("Cargo.toml").exists() && !path.ends_with("built-in"));
    let is_yaml = |entry: fs::DirEntry| entry.path().extension().is_some_and(|end| end == "yaml");
    let without = policies.filter(|path| {
        !fs::read_dir(path.join("cases")).into_iter().flatten().flatten().any(is_yaml)
    });
    check(
        without.map(|path| path.display().to_string()).collect(),
        "add cases/*.yaml: for each code one that passes and one that fails",
    );
}

#[test]
fn errors_fit_after_failed_to() {
    let mut wrong = Vec::new();
    for source in sources(&[".rs"]).iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            let Some((_, text)) = line.split_once("#[error(\"") else { continue };
            let Some((text, _)) = text.rsplit_once('"') else { continue };
            let begins = text.to_lowercase();
            if text.ends_with('.')
                || ["failed", "could not", "cannot", "error"].iter().any(|w| begins.starts_with(w))
            {
                wrong.push(format!("{}:{number}: {text}", source.path));
            }
        }
    }
    check(wrong, "write what was tried, in lower case, without a full stop");
}

#[test]
fn every_make_target_has_its_line_of_help() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let is_target = |line: &&str| {
        line.split_once(':').is_some_and(|(name, rest)| {
            !rest.starts_with('=') && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        })
    };
    let silent = makefile.lines().filter(is_target).filter(|line| !line.contains(" ## "));
    check(silent.map(String::from).collect(), "add `## what it does`");
}
