//! The book of `docs/`: every link in it, and in the pages beside the code, leads somewhere. That
//! its commands do what it says is in `guide`; that the book can be built is a step of the gate.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let in_line = |line: &str| -> Vec<String> {
        let parts = line.split("](").skip(1);
        parts.filter_map(|part| part.split_once(')').map(|(link, _)| link.to_owned())).collect()
    };
    prose(text).flat_map(in_line).collect()
}

/// What can be after `#`, as mdBook and GitHub make it from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        let title = line.trim_start_matches('#').strip_prefix(' ')?;
        let kept = title.chars().filter_map(|one| match one {
            ' ' | '-' => Some('-'),
            one if one.is_alphanumeric() || one == '_' => Some(one.to_ascii_lowercase()),
            _ => None,
        });
        line.starts_with('#').then(|| kept.collect())
    };
    prose(text).filter_map(heading).collect()
}

fn broken(page: &Path, link: &str) -> Option<&'static str> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    if file.contains("://") {
        return None;
    }
    let target = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    let Ok(text) = std::fs::read_to_string(&target) else {
        return (!target.is_dir()).then_some("there is no such file");
    };
    let known = anchor.is_empty() || anchors(&text).contains(anchor);
    (!known).then_some("there is no such heading")
}

#[test]
fn every_link_of_the_book_and_of_the_pages_beside_the_code_leads_somewhere() {
    let mut files = Vec::new();
    pages(&root().join("docs/src"), &mut files);
    let beside = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    files.extend(beside.map(|name| root().join(name)));
    for folder in ["policies", "deploy", "crds", "tests/benches"] {
        files.extend(["README.md", "RULES.md"].map(|name| root().join(folder).join(name)));
    }
    files.retain(|file| file.exists());
    assert!(files.len() > 15, "{files:?}");
    let mut problems = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        for link in links(&text) {
            if let Some(problem) = broken(file, &link) {
                problems.push(format!("{}: {link}: {problem}", file.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let source = root().join("docs/src");
    let summary = std::fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> =
        links(&summary).iter().map(|link| source.join(link.as_str())).collect();
    let mut files = Vec::new();
    pages(&source, &mut files);
    files.retain(|file| !file.ends_with("SUMMARY.md") && !listed.contains(file));
    assert!(files.is_empty(), "not in SUMMARY.md: {files:?}");
}
