//! What the scripts in `gate/` promise: a truthful count, and a build cache that never passes
//! another clone's work off as ours.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use opensdn_testing::output::text;
use opensdn_testing::{Failed, Outcome};
use tempfile::TempDir;

const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gate");

/// Runs a bash script in a folder, with `$GATE` and a cache of its own.
fn bash(script: &str, folder: &Path, cache: &Path) -> Result<Output, std::io::Error> {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder);
    // What the cargo that runs this test has set is not for the one that the script runs.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_") && text != "CARGO_HOME" {
            command.env_remove(&name);
        }
    }
    command.env("GATE", GATE).env("XDG_CACHE_HOME", cache).output()
}

/// A workspace of a program and a library that says `word`, checked out an hour ago.
fn clone_that_says(word: &str, parent: &Path) -> Result<PathBuf, Failed> {
    let root = parent.join(word);
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"said\", \"say\"]\nresolver = \"3\"\n".to_owned()),
        ("said/Cargo.toml", "[package]\nname = \"said\"\nversion = \"0.1.0\"\n".to_owned()),
        ("said/src/lib.rs", format!("pub const WORD: &str = {word:?};\n")),
        (
            "say/Cargo.toml",
            "[package]\nname = \"say\"\nversion = \"0.1.0\"\n\
             [dependencies]\nsaid = { path = \"../said\" }\n"
                .to_owned(),
        ),
        ("say/src/main.rs", "fn main() { println!(\"{}\", said::WORD) }\n".to_owned()),
    ];
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().ok_or("no parent")?)?;
        fs::write(&path, content)?;
        File::options().write(true).open(&path)?.set_modified(an_hour_ago)?;
    }
    Ok(root)
}

#[test]
fn clone_never_takes_anothers_build_for_its_own() -> Outcome {
    let (parent, cache) = (TempDir::new()?, TempDir::new()?);
    let clones = [clone_that_says("one", parent.path())?, clone_that_says("two", parent.path())?];
    let build = "source $GATE/cache.sh; take_build_slot; cargo run --quiet --offline 8>&-";
    for round in 0..2 {
        for (clone, word) in clones.iter().zip(["one\n", "two\n"]) {
            let said = bash(build, clone, cache.path())?;
            assert_eq!(text(&said), word, "round {round}");
        }
    }
    // All of it in one slot, and what has not changed hands is not built again.
    let slots = fs::read_dir(cache.path().join("opensdn/build"))?.flatten();
    assert_eq!(slots.filter(|entry| entry.path().is_dir()).count(), 1);
    let again = "source $GATE/cache.sh; take_build_slot; cargo build --offline 8>&-";
    let said = text(&bash(again, &clones[1], cache.path())?);
    assert!(!said.contains("Compiling"), "{said}");
    Ok(())
}

#[test]
fn second_run_at_the_same_time_takes_another_slot() -> Outcome {
    let (parent, cache) = (TempDir::new()?, TempDir::new()?);
    let clone = clone_that_says("one", parent.path())?;
    // The outer one must outlive the inner one, else bash ends it first.
    let script = "source $GATE/cache.sh; take_build_slot; echo ${CARGO_BUILD_BUILD_DIR##*/}
        bash -c 'source $GATE/cache.sh; take_build_slot; echo ${CARGO_BUILD_BUILD_DIR##*/}'
        exit 0";
    assert_eq!(text(&bash(script, &clone, cache.path())?), "slot-1\nslot-2\n");
    let script = "source $GATE/cache.sh; take_build_slot; echo ${CARGO_BUILD_BUILD_DIR##*/}";
    assert_eq!(text(&bash(script, &clone, cache.path())?), "slot-1\n");
    Ok(())
}

/// Commits all that is in the folder.
fn commit(folder: &Path) -> Outcome {
    let git = "git init -q .; git add -A; git -c user.name=gate -c user.email=gate@localhost \
        commit -q --allow-empty -m change";
    let done = bash(git, folder, folder)?;
    assert!(done.status.success(), "{}", text(&done));
    Ok(())
}

/// What cargo says while it builds the clone in the slot.
fn build(clone: &Path, cache: &Path) -> Result<String, Failed> {
    let script = "source $GATE/cache.sh; take_build_slot; cargo run --offline 8>&-; record_sources";
    Ok(text(&bash(script, clone, cache)?))
}

#[test]
fn fresh_clone_builds_only_what_differs_from_the_last_build() -> Outcome {
    let (parent, cache) = (TempDir::new()?, TempDir::new()?);
    let first = clone_that_says("one", parent.path())?;
    fs::write(first.join(".gitignore"), "target\nCargo.lock\n")?;
    commit(&first)?;
    assert!(build(&first, cache.path())?.contains("Compiling said"));
    let second = parent.path().join("second");
    let clone = bash("git clone -q one second", parent.path(), cache.path())?;
    assert!(clone.status.success(), "{}", text(&clone));
    let said = build(&second, cache.path())?;
    assert!(!said.contains("Compiling") && said.contains("one"), "{said}");

    // Only the program differs: the library stays.
    fs::write(second.join("say/src/main.rs"), "fn main() { println!(\"2 {}\", said::WORD) }\n")?;
    commit(&second)?;
    let said = build(&second, cache.path())?;
    assert!(!said.contains("Compiling said") && said.contains("2 one"), "{said}");
    let said = build(&first, cache.path())?;
    assert!(!said.contains("Compiling said") && !said.contains("2 one"), "{said}");

    // What is not committed is not known to the next clone, which takes nothing for its own.
    fs::write(first.join("said/src/lib.rs"), "pub const WORD: &str = \"edited\";\n")?;
    assert!(build(&first, cache.path())?.contains("edited"));
    let said = build(&second, cache.path())?;
    assert!(said.contains("Compiling said") && said.contains("2 one"), "{said}");
    Ok(())
}

#[test]
fn what_names_the_path_of_another_clone_is_built_again() -> Outcome {
    let (parent, cache) = (TempDir::new()?, TempDir::new()?);
    let first = clone_that_says("one", parent.path())?;
    fs::write(first.join(".gitignore"), "target\nCargo.lock\n")?;
    fs::write(first.join("page.txt"), "first page")?;
    let main = "fn main() {\n    println!(\"{}\", env!(\"CARGO_MANIFEST_DIR\"));\n    \
        println!(\"{} {}\", said::WORD, include_str!(\"../../page.txt\"));\n}\n";
    fs::write(first.join("say/src/main.rs"), main)?;
    commit(&first)?;
    let said = build(&first, cache.path())?;
    assert!(said.contains("/one/say\none first page\n"), "{said}");
    let clone = bash("git clone -q one second", parent.path(), cache.path())?;
    assert!(clone.status.success(), "{}", text(&clone));
    let second = parent.path().join("second");
    // Nothing that cargo takes for a source of the second clone differs.
    fs::write(second.join("page.txt"), "second page")?;
    commit(&second)?;
    let said = build(&second, cache.path())?;
    assert!(said.contains("/second/say\none second page\n"), "{said}");
    let said = build(&first, cache.path())?;
    assert!(said.contains("/one/say\none first page\n"), "{said}");
    Ok(())
}

#[test]
fn what_names_the_program_of_another_clone_is_built_again() -> Outcome {
    let (parent, cache) = (TempDir::new()?, TempDir::new()?);
    let first = clone_that_says("one", parent.path())?;
    fs::write(first.join(".gitignore"), "target\nCargo.lock\n")?;
    fs::create_dir_all(first.join("say/tests"))?;
    let program = "#[test]\nfn program() { println!(\"{}\", env!(\"CARGO_BIN_EXE_say\")); }\n";
    fs::write(first.join("say/tests/program.rs"), program)?;
    commit(&first)?;
    let clone = bash("git clone -q one second", parent.path(), cache.path())?;
    assert!(clone.status.success(), "{}", text(&clone));
    for name in ["one", "second", "one"] {
        let script = "source $GATE/cache.sh; take_build_slot
            cargo test --quiet --offline --test program -- --nocapture 8>&-; record_sources";
        let said = text(&bash(script, &parent.path().join(name), cache.path())?);
        assert!(said.contains(&format!("/{name}/target/debug/say\n")), "{said}");
    }
    Ok(())
}

#[test]
fn overrides_for_all_tests_of_the_system_come_after_the_special_ones() {
    let text = include_str!("../../.config/nextest.toml");
    let filters: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("filter = ")).collect();
    let general = filters.iter().position(|filter| *filter == "'package(opensdn-tests)'");
    assert_eq!(
        general,
        Some(filters.len() - 1),
        "nextest takes the first that matches: {filters:?}"
    );
}

#[test]
fn no_test_needs_several_threads() {
    let text = include_str!("../../.config/nextest.toml");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let several: Vec<&str> = lines.filter(|line| line.contains("threads-required")).collect();
    assert!(several.is_empty(), "the runner forgets the tests that wait behind: {several:?}");
}

#[test]
fn interrupted_build_is_no_record_for_the_next_clone() -> Outcome {
    let (parent, cache) = (TempDir::new()?, TempDir::new()?);
    let clones = [clone_that_says("one", parent.path())?, clone_that_says("two", parent.path())?];
    for clone in &clones {
        fs::write(clone.join(".gitignore"), "target\nCargo.lock\n")?;
        commit(clone)?;
    }
    build(&clones[0], cache.path())?;
    // Takes the slot and ends before all is built.
    let ended = "source $GATE/cache.sh; take_build_slot; cargo build -q --offline -p said 8>&-";
    bash(ended, &clones[1], cache.path())?;
    let said = build(&clones[0], cache.path())?;
    assert!(said.contains("Compiling said") && said.starts_with("one\n"), "{said}");
    Ok(())
}

/// Runs the command as tests, in place of a runner, and ends: the exit code and the last lines.
fn finish(command: &str) -> Result<(i32, String), Failed> {
    let folder = TempDir::new()?;
    let script = format!(
        "source $GATE/summary.sh; runner() {{ {command}; }}; tests all runner; finish 'left out: some'"
    );
    let output = bash(&script, folder.path(), folder.path())?;
    Ok((output.status.code().unwrap_or(-1), text(&output)))
}

/// The same of a runner that printed this and failed.
fn finish_after(log: &str) -> Result<(i32, String), Failed> {
    let folder = TempDir::new()?;
    let file = folder.path().join("log");
    fs::write(&file, log)?;
    finish(&format!("cat {}; return 100", file.display()))
}

#[test]
fn closing_line_is_the_sum_over_all_runners() -> Outcome {
    let good = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured'";
    let nextest = |result: &str| format!("echo '     Summary [   1.234s] 12 tests run: {result}'");
    let cases = [
        (format!("{good}; {good}"), 0, "6 passed, 0 failed"),
        (
            format!("{good}; {}", nextest("9 passed (2 slow, 1 flaky), 4 skipped")),
            0,
            "12 passed, 0 failed",
        ),
        (
            format!("{}; return 100", nextest("9 passed, 2 failed, 1 timed out, 4 skipped")),
            1,
            "9 passed, 3 failed",
        ),
        (
            format!("{}; return 100", nextest("9 passed (1 slow), 3 failed (1 flaky)")),
            1,
            "9 passed, 3 failed",
        ),
        // A target that does not build, or is killed, has no result of its own.
        (format!("{good}; return 101"), 1, "3 passed, 1 failed"),
    ];
    for (command, code, last) in cases {
        let (ended, said) = finish(&command)?;
        assert_eq!((ended, said.lines().last()), (code, Some(last)), "{command}: {said}");
        assert!(said.contains("\nleft out: some\n"), "{said}");
    }
    Ok(())
}

#[test]
fn test_that_passes_at_the_second_try_is_named_in_the_last_lines() -> Outcome {
    let flaky = "echo '  FLAKY 2/2 [   0.012s] opensdn-tests::system lab_short::update'
        echo '     Summary [   1.2s] 2 tests run: 2 passed (1 flaky), 0 skipped'";
    let (code, said) = finish(flaky)?;
    let end =
        "\nflaky: opensdn-tests::system lab_short::update\nleft out: some\n2 passed, 0 failed\n";
    assert!(code == 0 && said.ends_with(end), "{said}");
    Ok(())
}

#[test]
fn test_that_failed_is_named_with_its_reason_in_the_last_lines() -> Outcome {
    let log = "  TRY 1 FAIL [   0.012s] (1/3) opensdn-tests::tests lab::update
  stderr ───
    thread 'lab::update' (7) panicked at tests/lab.rs:9:1:
    the first try
  TRY 2 FAIL [   0.012s] (1/3) opensdn-tests::tests lab::update
  stderr ───
    thread 'lab::update' (8) panicked at tests/lab.rs:10:1:
    no node is ready
        FAIL [   0.012s] (2/3) opensdn-pki leaf::name
  stdout ───
    Error: NoName
  TRY 1 FAIL [   0.012s] (3/3) opensdn-pki leaf::late
    Error: Late
  TRY 2 PASS [   0.012s] (3/3) opensdn-pki leaf::late
     Summary [   1.2s] 3 tests run: 1 passed (1 flaky), 2 failed, 0 skipped
  TRY 2 FAIL [   0.012s] (1/3) opensdn-tests::tests lab::update
        FAIL [   0.012s] (2/3) opensdn-pki leaf::name";
    let (code, said) = finish_after(log)?;
    let end = "left out: some
FAILED: opensdn-tests::tests lab::update: thread 'lab::update' (8) panicked at tests/lab.rs:10:1: no node is ready
FAILED: opensdn-pki leaf::name: Error: NoName
1 passed, 2 failed\n";
    assert!(code == 1 && said.ends_with(end), "{said}");
    Ok(())
}

#[test]
fn tests_that_were_not_run_are_a_failure_and_named_as_one() -> Outcome {
    let log = "     Summary [   1.2s] 709/875 tests run: 709 passed (3 slow), 13 skipped
warning: 166/875 tests were not run
error: test run failed";
    let (code, said) = finish_after(log)?;
    let end = "FAILED: all: 166/875 tests were not run\n709 passed, 1 failed\n";
    assert!(code == 1 && said.ends_with(end), "{said}");
    Ok(())
}

#[test]
fn failed_step_is_shown_and_fails_the_gate_though_all_tests_pass() -> Outcome {
    let folder = TempDir::new()?;
    let script = "source $GATE/summary.sh
        step good true; step bad bash -c 'echo the reason; false'; step later true
        tests all echo 'test result: ok. 1 passed; 0 failed'; finish";
    let output = bash(script, folder.path(), folder.path())?;
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("    the reason\n") && said.contains("later "), "{said}");
    assert!(said.ends_with("failed: bad\nFAILED: bad: the reason\n1 passed, 0 failed\n"), "{said}");
    Ok(())
}

#[test]
fn setup_names_what_is_missing_and_the_command_that_would_help() -> Outcome {
    let cache = TempDir::new()?;
    // Rust is there, Go is not.
    let script = "tools=$(mktemp -d); trap 'rm -rf $tools' EXIT
        for tool in bash cc cut dirname flock head mkdir mktemp printf rm sed sha256sum sort \
            cat tail; do
          ln -s \"$(command -v $tool)\" $tools/
        done
        for tool in cargo rustc rustup; do
          printf '#!/bin/sh\\nexec %s \"$@\"\\n' \"$(command -v $tool)\" >$tools/$tool
          chmod +x $tools/$tool
        done
        unset KUBEBUILDER_ASSETS; PATH=$tools $GATE/setup.sh cluster";
    let output = bash(script, cache.path(), cache.path())?;
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("Go is needed once") && said.contains("https://go.dev/doc/install"),
        "{said}"
    );
    assert!(said.contains("tests/control-plane/build.sh 1.35"), "{said}");
    Ok(())
}
