//! The page of what is promised (`docs/src/promises.md`) and the tests hold together: every promise
//! names a test, and every test that is named exists and runs. Deliberately not here: whether a test
//! fails when its promise is broken, which its reader judges.

use std::fs;
use std::path::Path;

const PAGE: &str = "docs/src/promises.md";
/// Of a table of promises; other tables of the page need no tests.
const HEAD: &str = "| promise | test |";
/// With fewer than that the page, or how it is read, is broken.
const LEAST: usize = 150;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The rows of the tables of promises, with the numbers of their lines.
fn promises(page: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        let is_head = line == HEAD;
        inside = is_head || (inside && line.starts_with('|'));
        if inside && !is_head && !line.starts_with("| --- |") {
            rows.push((number, line));
        }
    }
    rows
}

/// What is in backticks as `path::name`.
fn tests(text: &str) -> Vec<(&str, &str)> {
    let in_backticks = text.split('`').skip(1).step_by(2);
    in_backticks.filter_map(|text| text.rsplit_once("::")).collect()
}

/// Whether a row has a promise, and behind it a test.
fn is_complete(row: &str) -> bool {
    let cells = row.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
    let cells = cells.and_then(|cells| cells.split_once(" | "));
    cells.is_some_and(|(promise, named)| !promise.trim().is_empty() && !tests(named).is_empty())
}

/// Why this is no test that runs, if it is none.
fn problem(path: &str, name: &str) -> Option<&'static str> {
    let Ok(text) = fs::read_to_string(root().join(path)) else {
        return Some("there is no such file");
    };
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let function = format!("fn {name}(");
    let is_function = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.starts_with(&function)
    };
    let Some(at) = lines.iter().position(|line| is_function(line)) else {
        return Some("the file has no such function");
    };
    let above = lines.iter().take(at).rev();
    let above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let attributes: Vec<&str> = above.copied().collect();
    let has = |attribute: &str| attributes.iter().any(|line| line.starts_with(attribute));
    if !has("#[test]") && !has("#[tokio::test") {
        return Some("the function has no attribute of a test above it");
    }
    // In pieces, so that no other test takes this for a test that is switched off.
    has(concat!("#[", "ignore")).then_some("the test is switched off")
}

/// What is wrong, by line.
fn problems(page: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        for (path, name) in tests(line) {
            let why = problem(path, name);
            wrong.extend(why.map(|why| format!("{PAGE}:{number}: {path}::{name}: {why}")));
        }
    }
    let incomplete = promises(page).into_iter().filter(|(_, row)| !is_complete(row));
    wrong.extend(incomplete.map(|(number, row)| format!("{PAGE}:{number}: no test: {row}")));
    wrong
}

#[test]
fn every_promise_names_tests_that_exist_and_run() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let wrong = problems(&page);
    assert!(
        wrong.is_empty(),
        "write the test's new name there, or take a promise that no test proves to \"Not \
         promised\":\n  {}",
        wrong.join("\n  ")
    );
    let found = promises(&page).len();
    assert!(found >= LEAST, "{found} promises in {PAGE}, at least {LEAST} are known");
}

#[test]
fn a_promise_without_a_test_that_runs_is_found() {
    let page = "\
| promise | test |
| --- | --- |
| this one holds | `tests/tests/promises.rs::a_promise_without_a_test_that_runs_is_found` |
| no test |  |
| a test in the wrong cell, `tests/tests/promises.rs::root` |
| no file | `tests/tests/nowhere.rs::root` |
| no function | `tests/tests/promises.rs::nobody` |
| no test | `tests/tests/promises.rs::root` |

| what | why not |
| --- | --- |
| not promised | needs none |
";
    assert_eq!(promises(page).len(), 6);
    let lines: Vec<String> = problems(page)
        .iter()
        .filter_map(|text| text.strip_prefix(PAGE)?.split(": ").next().map(str::to_owned))
        .collect();
    assert_eq!(lines, [":5", ":6", ":7", ":8", ":4", ":5"]);
}
