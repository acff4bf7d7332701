//! What is meant by a path that leads nowhere: kinds and fields that are written alike, and the places of fields that are
//! written exactly so.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::resource::{Found, content};
use super::{Kind, Kinds};

/// How many are named.
const MOST: usize = 3;

/// Why there is no such field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The first word is none of our kinds.
    Kind {
        /// The word.
        word: String,
        /// Kinds that are written alike, best first.
        nearest: Vec<String>,
        /// Paths to fields of that name.
        elsewhere: Vec<String>,
    },
    /// What is before it has no field of that name.
    Field {
        /// The path to what has none.
        parent: String,
        /// The name.
        name: String,
        /// Fields of the same that are written alike, best first.
        nearest: Vec<String>,
        /// Paths to fields of that name elsewhere in the kind.
        elsewhere: Vec<String>,
        /// Whether it has any fields.
        has_fields: bool,
    },
}

impl Missing {
    pub(super) fn kind(word: &str, kinds: &[Kind]) -> Self {
        // The Manager has all of the others once more.
        let mut elsewhere: Vec<String> = kinds
            .iter()
            .filter(|kind| kind.name() != "Manager")
            .flat_map(|kind| places(kind, word))
            .collect();
        if elsewhere.is_empty() {
            elsewhere = kinds.iter().flat_map(|kind| places(kind, word)).collect();
        }
        let names = kinds.iter().flat_map(|kind| kind.names().map(str::to_lowercase));
        Self::Kind { word: word.to_owned(), nearest: alike(word, names), elsewhere: few(elsewhere) }
    }

    pub(super) fn field(kind: &Kind, found: &Found<'_>, name: &str) -> Self {
        let fields = content(found.schema).properties.as_ref();
        let names = fields.into_iter().flatten().map(|(name, _)| name.clone());
        Self::Field {
            parent: [&[kind.word()], found.path.as_slice()].concat().join("."),
            name: name.to_owned(),
            nearest: alike(name, names),
            elsewhere: few(places(kind, name)),
            has_fields: fields.is_some(),
        }
    }

    /// What could have been meant, in sentences; nothing where nothing is like it.
    pub(crate) fn hint(&self) -> Vec<String> {
        let (nearest, elsewhere) = match self {
            Self::Kind { nearest, elsewhere, .. } | Self::Field { nearest, elsewhere, .. } => {
                (nearest, elsewhere)
            }
        };
        let guess = |names: &[String]| match names {
            [] => None,
            [one] => Some(one.clone()),
            [before @ .., last] => Some(format!("{} or {last}", before.join(", "))),
        };
        let meant = guess(nearest).map(|names| format!("did you mean {names}?"));
        let there = guess(elsewhere).map(|paths| format!("a field of that name is {paths}"));
        meant.into_iter().chain(there).collect()
    }
}

impl Kinds {
    /// Kinds in their order, as paths begin with them.
    pub(crate) fn words(&self) -> Vec<String> {
        self.0.iter().map(Kind::word).collect()
    }
}

/// `vrouters[0].spec` is `vrouters.spec`.
pub(super) fn without_positions(words: &str) -> String {
    let mut depth = 0_usize;
    let mut text = String::with_capacity(words.len());
    for letter in words.trim().chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    text
}

/// Two mistakes in a word, or one in three letters of a long one.
fn alike(word: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = word.to_lowercase();
    let most = (wanted.chars().count() / 3).max(2);
    let distance = |name: &str| strsim::damerau_levenshtein(&wanted, &name.to_lowercase());
    let mut ranked: Vec<(usize, String)> = names
        .map(|name| (distance(&name), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// The shortest paths: those are what is meant most.
fn few(mut paths: Vec<String>) -> Vec<String> {
    // What a user sets comes before what a status says.
    paths.sort_by_key(|path| (path.contains(".status."), path.matches('.').count()));
    paths.truncate(MOST);
    paths
}

/// Where a kind has a field of that name, whatever the case of its letters.
fn places(kind: &Kind, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&kind.root, &kind.word(), name, &mut found);
    found
}

fn collect(schema: &JSONSchemaProps, path: &str, wanted: &str, found: &mut Vec<String>) {
    for (name, schema) in content(schema).properties.iter().flatten() {
        let path = format!("{path}.{name}");
        if name.eq_ignore_ascii_case(wanted) {
            found.push(path.clone());
        }
        collect(schema, &path, wanted, found);
    }
}
