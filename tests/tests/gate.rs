//! What the scripts in `gate/` promise: a truthful count, and a build cache that never passes
//! another clone's work off as ours.

use opensdn_testing::{Failed, Outcome};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

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

fn text(output: &Output) -> String {
    let bytes = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&bytes).into_owned()
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
    // The outer one must go on after the inner one, else bash ends it first.
    let script = "source $GATE/cache.sh; take_build_slot; echo ${CARGO_BUILD_BUILD_DIR##*/}
        bash -c 'source $GATE/cache.sh; take_build_slot; echo ${CARGO_BUILD_BUILD_DIR##*/}'
        exit 0";
    assert_eq!(text(&bash(script, &clone, cache.path())?), "slot-1\nslot-2\n");
    let script = "source $GATE/cache.sh; take_build_slot; echo ${CARGO_BUILD_BUILD_DIR##*/}";
    assert_eq!(text(&bash(script, &clone, cache.path())?), "slot-1\n");
    Ok(())
}

/// Runs `run_tests_and_finish` with a command in place of cargo.
fn finish(command: &str) -> Result<(i32, String), Failed> {
    let folder = TempDir::new()?;
    let script =
        format!("source $GATE/summary.sh; tests() {{ {command}; }}; run_tests_and_finish tests");
    let output = bash(&script, folder.path(), folder.path())?;
    let last = text(&output).lines().last().unwrap_or_default().to_owned();
    Ok((output.status.code().unwrap_or(-1), last))
}

#[test]
fn closing_line_is_the_sum_over_all_targets() -> Outcome {
    let good = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured'";
    let bad = "echo 'test result: FAILED. 10 passed; 2 failed; 0 ignored'";
    assert_eq!(finish(&format!("{good}; {good}"))?, (0, "6 passed, 0 failed".into()));
    assert_eq!(finish(&format!("{good}; {bad}; return 101"))?, (1, "13 passed, 2 failed".into()));
    // A target that does not build, or is killed, has no result of its own.
    assert_eq!(finish(&format!("{good}; return 101"))?, (1, "3 passed, 1 failed".into()));
    Ok(())
}

#[test]
fn tests_that_are_left_out_are_counted_before_the_closing_line() -> Outcome {
    let folder = TempDir::new()?;
    let script = "source $GATE/summary.sh
        run_tests_and_finish echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; \
        2 filtered out; finished in 1.00s'";
    let output = bash(script, folder.path(), folder.path())?;
    let said = text(&output);
    let end = "\n2 tests left out: those of the lab (real nodes)\n3 passed, 0 failed\n";
    assert!(output.status.success() && said.ends_with(end), "{said}");
    Ok(())
}

#[test]
fn tests_beside_the_others_are_shown_behind_them_and_counted() -> Outcome {
    let folder = TempDir::new()?;
    let run = |code: i32| {
        let script = format!(
            "source $GATE/summary.sh
            lab_is_tested=yes
            run_tests_beside bash -c \"sleep 0.2; echo 'test result: ok. 2 passed; 0 failed'; exit {code}\"
            run_tests_beside echo 'test result: ok. 4 passed; 0 failed'
            run_tests_and_finish echo 'test result: ok. 3 passed; 0 failed; 2 filtered out'"
        );
        bash(&script, folder.path(), folder.path())
    };
    let said = text(&run(0)?);
    let results = "3 passed; 0 failed; 2 filtered out\ntest result: ok. 2 passed; 0 failed\n\
        test result: ok. 4 passed; 0 failed\n";
    assert!(said.contains(results) && said.ends_with("\n9 passed, 0 failed\n"), "{said}");
    assert!(!said.contains("left out"), "{said}");
    let killed = run(137)?;
    assert_eq!(killed.status.code(), Some(1));
    assert!(text(&killed).ends_with("\nfailed: tests\n9 passed, 1 failed\n"));
    Ok(())
}

#[test]
fn failed_step_is_shown_and_fails_the_gate_though_all_tests_pass() -> Outcome {
    let folder = TempDir::new()?;
    let script = "source $GATE/summary.sh
        step good true; step bad bash -c 'echo the reason; false'; step later true
        run_tests_and_finish echo 'test result: ok. 1 passed; 0 failed'";
    let output = bash(script, folder.path(), folder.path())?;
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("    the reason\n") && said.contains("later "), "{said}");
    assert!(said.ends_with("failed: bad\n1 passed, 0 failed\n"), "{said}");
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
        unset KUBEBUILDER_ASSETS; PATH=$tools $GATE/setup.sh --without-gate";
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
