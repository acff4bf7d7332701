//! The modules of a program are in an order in which each uses only those before it, so that none can be understood
//! only together with another.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A program with its modules, from what knows no other module to what knows them all. The root (`lib.rs`, `main.rs`) is
/// above.
struct Program {
    folder: &'static str,
    order: &'static [&'static str],
}

const PROGRAMS: [Program; 2] = [
    Program {
        folder: "webhook",
        order: &[
            "allocator",
            "memory",
            "poll_file",
            "tls",
            "metrics",
            "replicas",
            "path_tokens",
            "server",
            "certificates",
            "active",
            "lookup",
            "policies",
            "configuration",
            "evaluate",
            "claims",
            "audit",
            "admission",
            "args",
            "wiring",
            "startup",
        ],
    },
    Program {
        folder: "operator",
        order: &[
            "quantity",
            "probe",
            "args",
            "exec",
            "network",
            "release",
            "kind",
            "names",
            "object",
            "cache",
            "cluster",
            "node",
            "peers",
            "canary",
            "ensemble",
            "pod",
            "component",
            "ensembles",
            "components",
            "services",
            "template",
            "build",
            "introspect",
            "gone",
            "metrics",
            "progress",
            "report",
            "reconcile",
            "manager",
            "cloud",
            "upgrade",
            "under_way",
            "controller",
        ],
    },
];

impl Program {
    fn source(&self) -> PathBuf {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(self.folder).join("src")
    }
}

/// The files of a module without its tests.
fn files(source: &Path, module: &str) -> Vec<PathBuf> {
    let mut found = vec![source.join(format!("{module}.rs"))];
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && path.file_name().is_some_and(|name| name != "tests.rs")
            {
                found.push(path);
            }
        }
    }
    found
}

/// The code of a file: no comments, and nothing from its tests on.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path);
    assert!(text.is_ok(), "{path:?}: {text:?}");
    let text = text.unwrap_or_default();
    // A file's own tests come last; `mod tests;` may be anywhere.
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The names right behind `crate::`, also those of a group in braces.
fn used(code: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let is_whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        let rest = &code[at + "crate::".len()..];
        if !is_whole {
            continue;
        }
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(name(rest));
            continue;
        };
        let (mut depth, mut starts) = (0, true);
        for (at, letter) in group.char_indices() {
            if starts && depth == 0 && !letter.is_whitespace() {
                names.insert(name(&group[at..]));
                starts = false;
            }
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' => starts = true,
                _ => {}
            }
        }
    }
    names.remove("");
    names
}

#[test]
fn what_a_file_uses_is_read_to_its_end() {
    let [webhook, operator] = PROGRAMS.map(|program| program.source());
    for (file, expected) in
        [(webhook.join("admission.rs"), "active"), (operator.join("controller.rs"), "reconcile")]
    {
        let used = used(&code(&file));
        assert!(used.contains(expected), "{file:?}: {used:?}");
    }
}

#[test]
fn every_module_is_in_the_order() {
    for program in PROGRAMS {
        let root = code(&program.source().join("lib.rs"));
        let modules: BTreeSet<&str> = root
            .lines()
            .filter_map(|line| {
                line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')
            })
            .collect();
        let order: BTreeSet<&str> = program.order.iter().copied().collect();
        assert_eq!(modules, order, "{}: lib.rs has other modules than the order", program.folder);
    }
}

#[test]
fn a_module_uses_only_those_before_it() {
    let mut wrong = Vec::new();
    for Program { folder, order } in &PROGRAMS {
        let source = Program { folder, order }.source();
        for (at, module) in order.iter().enumerate() {
            for file in files(&source, module) {
                for other in used(&code(&file)) {
                    let is_before = order[..=at].contains(&other.as_str());
                    if order.contains(&other.as_str()) && !is_before {
                        wrong.push(format!("{} uses crate::{other}", file.display()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "backwards in the order:\n  {}", wrong.join("\n  "));
}

#[test]
fn names_in_groups_are_found() {
    let code =
        "use crate::a::B;\nuse crate::{\n    c::{D, e},\n    f,\n};\nfn g() { $crate::h(); }";
    let expected: BTreeSet<String> = ["a", "c", "f"].map(str::to_owned).into();
    assert_eq!(used(code), expected);
}
