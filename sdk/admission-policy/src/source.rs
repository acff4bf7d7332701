//! Where the bytes of a policy come from. A further source (OCI) is a further variant here and a
//! further reader in `contents.rs`; nothing else asks.

use std::path::{Component, Path};

use opensdn_crds::admission_policy::Module;
use opensdn_policies::BuiltIn;
use opensdn_policy_host::{Digest, quoted};

use crate::problem::{Fault, Problem};

/// A source that is well formed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A policy that comes with the webhook.
    BuiltIn(&'static str),
    /// A key of `binaryData`.
    ConfigMap {
        /// Namespace of the ConfigMap.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// A file below the policy folder.
    Folder(String),
}

impl Source {
    /// Whether the module is part of this program, and so as trusted as it.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        matches!(self, Self::BuiltIn(_))
    }
}

/// The source and the pinned digest that the specification names.
///
/// # Errors
/// Everything that is wrong with them.
pub fn parse(module: &Module) -> Result<(Source, Option<Digest>), Vec<Problem>> {
    let mut problems = Vec::new();
    let source = keep(&mut problems, one_source(module));
    let digest = keep(&mut problems, digest(module));
    match (source, digest) {
        (Some(source), Some(digest)) => Ok((source, digest)),
        _ => Err(problems),
    }
}

fn keep<T>(problems: &mut Vec<Problem>, result: Result<T, Problem>) -> Option<T> {
    result.map_err(|problem| problems.push(problem)).ok()
}

fn one_source(module: &Module) -> Result<Source, Problem> {
    let wrong = |pointer: &str, message: &str, hint: &str| {
        Err(Problem::new(Fault::SourceInvalid, format!("/spec/module{pointer}"), message, hint))
    };
    match (&module.built_in, &module.config_map, &module.folder) {
        (Some(name), None, None) => built_in(name),
        (None, Some(place), None) => {
            if place.namespace.is_empty() || place.name.is_empty() || place.key.is_empty() {
                let hint = "fill in namespace, name and key";
                return wrong("/configMap", "the ConfigMap is not named completely", hint);
            }
            let (namespace, name) = (place.namespace.clone(), place.name.clone());
            Ok(Source::ConfigMap { namespace, name, key: place.key.clone() })
        }
        (None, None, Some(folder)) => {
            if !is_below(Path::new(&folder.path)) {
                let message = format!("{:?} leads out of the policy folder", quoted(&folder.path));
                let hint = "give a path below it, without a leading / and without ..";
                return wrong("/folder/path", &message, hint);
            }
            Ok(Source::Folder(folder.path.clone()))
        }
        (None, None, None) => {
            wrong("", "no source is given", "give exactly one of builtIn, configMap and folder")
        }
        _ => wrong(
            "",
            "more than one source is given",
            "give exactly one of builtIn, configMap and folder",
        ),
    }
}

/// Whether every part of the path is a plain name.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn built_in(name: &str) -> Result<Source, Problem> {
    if let Some(policy) = opensdn_policies::find(name) {
        return Ok(Source::BuiltIn(policy.name));
    }
    let names: Vec<&str> = opensdn_policies::ALL.iter().map(|policy| policy.name).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("use one of {}", names.join(", ")),
    };
    let message = format!("there is no built-in policy {:?}", quoted(name));
    Err(Problem::new(Fault::UnknownBuiltIn, "/spec/module/builtIn", message, hint))
}

/// The bytes of a built-in policy.
#[must_use]
pub fn built_in_bytes(name: &str) -> Option<&'static [u8]> {
    opensdn_policies::find(name).map(|&BuiltIn { bytes, .. }| bytes)
}

/// Whether these are the bytes of a built-in policy, which are part of this program.
#[must_use]
pub fn is_built_in(bytes: &[u8]) -> bool {
    opensdn_policies::ALL.iter().any(|built_in| *built_in.bytes == *bytes)
}

fn digest(module: &Module) -> Result<Option<Digest>, Problem> {
    let wrong = |message: String| {
        let hint = "write sha256: and the output of `sha256sum` on the module";
        Err(Problem::new(Fault::DigestInvalid, "/spec/module/digest", message, hint))
    };
    match &module.digest {
        None if module.built_in.is_some() => Ok(None),
        None => wrong("a module from outside has no digest".to_owned()),
        Some(text) => text.parse().map(Some).or_else(|error| wrong(format!("{error}"))),
    }
}

/// The candidate that differs in the fewest letters, if it is near enough to be meant.
fn nearest<'n>(name: &str, candidates: &[&'n str]) -> Option<&'n str> {
    let far = name.chars().count().max(3) / 2;
    candidates
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .min()
        .filter(|(distance, _)| *distance <= far)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (number, left) in one.chars().enumerate() {
        let mut diagonal = number;
        let mut before = number + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(other.chars()) {
            let changed = diagonal + usize::from(left != right);
            diagonal = *cell;
            before = changed.min(before + 1).min(diagonal + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = number + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(module: &Value) -> Vec<Problem> {
        parse(&serde_json::from_value(module.clone()).unwrap()).unwrap_err()
    }

    #[test]
    fn a_misspelt_built_in_is_answered_with_the_right_name() {
        let problems = problems(&json!({"builtIn": "evn-quorums"}));
        assert_eq!(problems[0].fault.code(), "OSDN4001");
        assert_eq!(problems[0].hint, "did you mean even-quorum?");
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_module_from_outside_needs_a_digest_that_is_one() {
        let place = json!({"namespace": "n", "name": "c", "key": "p.wasm"});
        let missing = problems(&json!({"configMap": place}));
        assert_eq!(missing[0].fault, Fault::DigestInvalid);
        let malformed = problems(&json!({"configMap": place, "digest": "sha256:12"}));
        assert_eq!(malformed[0].fault, Fault::DigestInvalid);
    }

    #[test]
    fn everything_that_is_wrong_with_a_source_is_found_at_once() {
        let both = problems(&json!({"builtIn": "even-quorum", "folder": {"path": "a"},
            "digest": "x"}));
        let faults: Vec<Fault> = both.iter().map(|problem| problem.fault).collect();
        assert_eq!(faults, [Fault::SourceInvalid, Fault::DigestInvalid]);
    }

    #[test]
    fn no_more_than_100_bytes_of_what_is_wrong_are_quoted() {
        let long = "x".repeat(9_000);
        for module in [
            json!({"builtIn": long}),
            json!({"builtIn": "even-quorum", "digest": long}),
            json!({"folder": {"path": format!("../{long}")}}),
        ] {
            for problem in problems(&module) {
                assert!(problem.text().matches('x').count() < 150, "{problem:?}");
            }
        }
    }

    #[test]
    fn a_folder_cannot_be_left() {
        for path in ["/etc/passwd", "../x", "a/../../x", ""] {
            assert!(!is_below(Path::new(path)), "{path}");
        }
        assert!(is_below(Path::new("team/policy.wasm")));
    }
}
