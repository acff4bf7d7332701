//! What Cargo compiled, as it says itself with `--message-format=json`, against what a bill names: by
//! two ways to one list, so that neither can be wrong in silence.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::graph::{Graph, Id};

/// The bill and the build do not agree; each text names a list of packages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("name exactly what was compiled: {}", .0.join("; "))]
pub struct Disagreement(Vec<String>);

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    package_id: String,
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

/// Compares what was compiled for the target.
///
/// # Errors
/// They differ.
pub fn check(graph: &Graph, messages: &str, target: &str) -> Result<(), Disagreement> {
    let lines = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let compiled: BTreeSet<Id> = lines.filter_map(|one| compiled_for(&one, target)).collect();
    let linked = graph.packages.iter().filter(|(_, package)| package.targets.contains(target));
    let named: BTreeSet<Id> = linked.map(|(id, _)| id.clone()).collect();
    let differences = [
        ("compiled and not named", compiled.difference(&named)),
        ("named and not compiled", named.difference(&compiled)),
    ];
    let texts = differences.into_iter().filter_map(|(what, ids)| {
        let ids: Vec<String> = ids.map(|id| format!("{} {}", id.name, id.version)).collect();
        (!ids.is_empty()).then(|| format!("{what}: {}", ids.join(", ")))
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { Ok(()) } else { Err(Disagreement(texts)) }
}

/// The package, if this message is of a library or program for the target. What runs during a build has
/// its files elsewhere.
fn compiled_for(message: &Message, target: &str) -> Option<Id> {
    let kinds = &message.target.as_ref()?.kind;
    let runs_at_build = kinds.iter().any(|kind| kind == "proc-macro" || kind == "custom-build");
    let is_there = message
        .filenames
        .iter()
        .any(|file| Path::new(file).components().any(|part| part.as_os_str() == target));
    let counts = message.reason == "compiler-artifact" && !runs_at_build && is_there;
    counts.then(|| id_of(&message.package_id)).flatten()
}

/// `registry+…#name@1.2.3`, or `path+file:///folder/name#1.2.3` where the folder has the package's name.
fn id_of(package_id: &str) -> Option<Id> {
    let (place, rest) = package_id.rsplit_once('#')?;
    let (name, version) = match rest.split_once('@') {
        Some(both) => both,
        None => (place.rsplit_once('/')?.1, rest),
    };
    Some(Id { name: name.to_owned(), version: version.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::graph::Package;

    const TARGET: &str = "x86_64-unknown-linux-musl";

    fn graph(names: &[&str]) -> Graph {
        let id = |name: &&str| Id { name: (*name).to_owned(), version: "1.0.0".to_owned() };
        let package = Package { targets: [TARGET.to_owned()].into(), ..Package::default() };
        let packages: BTreeMap<Id, Package> =
            names.iter().map(|name| (id(name), package.clone())).collect();
        Graph { root: id(&"ours"), packages }
    }

    fn messages() -> String {
        let artifact = |id: &str, kind: &str, file: &str| {
            json!({"reason": "compiler-artifact", "package_id": id, "target": {"kind": [kind]},
                "filenames": [file]})
        };
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        let lines = [
            artifact(
                &format!("{registry}#linked@1.0.0"),
                "lib",
                "/t/x86_64-unknown-linux-musl/d/l",
            ),
            artifact(&format!("{registry}#derives@1.0.0"), "proc-macro", "/t/release/d/d.so"),
            artifact(&format!("{registry}#builds@1.0.0"), "lib", "/t/release/d/libbuilds.rlib"),
            artifact("path+file:///w/ours#1.0.0", "bin", "/t/x86_64-unknown-linux-musl/r/ours"),
            json!({"reason": "build-finished", "success": true}),
        ];
        lines.map(|line| line.to_string()).join("\n")
    }

    #[test]
    fn what_was_compiled_for_the_target_is_all_that_may_be_named() {
        assert_eq!(check(&graph(&["ours", "linked"]), &messages(), TARGET), Ok(()));
        let error = check(&graph(&["ours", "tested"]), &messages(), TARGET).unwrap_err();
        assert_eq!(
            error.to_string(),
            "name exactly what was compiled: compiled and not named: linked 1.0.0; \
             named and not compiled: tested 1.0.0"
        );
    }
}
