//! Every code that the product gives, with its explanation, known without running anything: what the
//! built-in policies say (`policies/README.md`), the rules in the schemas (`crds/RULES.md`), the
//! checks of AdmissionPolicies, what `validate` says of texts and schemas, the checks of clusters,
//! those of the plans of nested clusters and of what is verified of them, and what speaks against upgrades. Both tables are generated and checked for being current, so
//! the catalogue is what the policies and schemas are. Deliberately not here: the codes of policies
//! that are not ours, which `policy explain` takes from the module itself.

use schemars::JsonSchema;
use serde::Serialize;

mod admission_policies;
mod cluster_checks;
mod nested_manifest;
mod nested_plan;
mod nested_verify;
mod reasons;
mod table;
pub(crate) mod upgrade;
mod words;

const POLICIES: &str = include_str!("../../policies/README.md");
const RULES: &str = include_str!("../../crds/RULES.md");
/// What shows that the rules in the schemas are right, as `sources.txt` of each policy does for it.
const SOURCES_OF_RULES: &str = include_str!("../../crds/sources.txt");
/// The same for all codes that are neither a policy's nor a schema's.
const SOURCES: &str = include_str!("catalogue/sources.txt");

/// What a code means. Rarely more than one thing: a policy may continue where the schema's rule ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation {
    /// The code.
    pub(crate) code: String,
    /// Who gives it, and why.
    pub(crate) meanings: Vec<Meaning>,
}

/// Why one part of the product gives a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meaning {
    /// Who finds it.
    pub(crate) found_by: Finder,
    /// The built-in policy, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// What it does to a request.
    pub(crate) severity: Severity,
    /// What is wrong.
    pub(crate) title: String,
    /// Why it is wrong.
    pub(crate) why: String,
    /// What to do.
    pub(crate) remedy: String,
    /// The texts that the API server gives, and for which fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<Rule>,
    /// What shows it: repository, path and lines each, or the address of a page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<&'static str>,
}

/// Who finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Finder {
    /// A policy that comes with the product.
    Policy,
    /// The API server itself, by the rules in the CustomResourceDefinitions.
    Schema,
    /// The webhook, when an AdmissionPolicy is applied.
    AdmissionPolicy,
    /// `validate`, of a text, a schema or a set of documents.
    Validate,
    /// `check`, of a cluster.
    Check,
    /// `nested plan` and `nested apply`, of a nested cluster and its cloud.
    NestedPlan,
    /// `nested registry-secret` and `nested insecure-registry`, of what pods and nodes need to pull.
    NestedSetup,
    /// `nested verify`, of a nested cluster that is set up.
    NestedVerify,
    /// `upgrade plan` and the operator, of an upgrade.
    Upgrade,
}

/// What a finding does to a request, or a failed check to the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// It is refused.
    Deny,
    /// Of a check: the report fails.
    Fatal,
    /// It passes with a warning. Of a check: the report has a warning.
    Warn,
    /// It passes.
    Info,
}

impl Severity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Fatal => "fatal",
            Self::Warn => "warn",
            Self::Info => "info",
        }
    }
}

/// A rule in a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Rule {
    /// What the API server says.
    pub(crate) message: String,
    /// Of which fields, as the table of rules has it.
    pub(crate) fields: String,
}

/// Every code, in order.
pub(crate) fn all() -> Vec<Explanation> {
    let mut all: Vec<Explanation> = Vec::new();
    let sources = table::policies(POLICIES)
        .chain(table::rules(RULES))
        .chain(admission_policies::meanings())
        .chain(words::meanings())
        .chain(cluster_checks::meanings())
        .chain(cluster_checks::codes())
        .chain(nested_manifest::meanings())
        .chain(nested_plan::meanings())
        .chain(nested_verify::meanings())
        .chain(upgrade::meanings());
    for (code, mut meaning) in sources {
        meaning.sources = match meaning.found_by {
            Finder::Policy => {
                opensdn_policies::sources(meaning.policy.as_deref().unwrap_or_default(), code)
                    .to_vec()
            }
            Finder::Schema => sources_of(SOURCES_OF_RULES, code),
            Finder::AdmissionPolicy
            | Finder::Validate
            | Finder::Check
            | Finder::NestedPlan
            | Finder::NestedSetup
            | Finder::NestedVerify
            | Finder::Upgrade => sources_of(SOURCES, code),
        };
        match all.iter_mut().find(|known| known.code == code) {
            Some(known) => add(known, meaning),
            None => all.push(Explanation { code: code.to_owned(), meanings: vec![meaning] }),
        }
    }
    all.sort_by(|one, other| one.code.cmp(&other.code));
    all
}

fn sources_of(text: &'static str, code: &str) -> Vec<&'static str> {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let found =
        lines.filter(|(known, _)| *known == code).flat_map(|(_, sources)| sources.split("; "));
    found.collect()
}

/// A policy's message is a meaning of its own; the rules of one code in the schemas are one.
fn add(known: &mut Explanation, meaning: Meaning) {
    let same = known
        .meanings
        .iter_mut()
        .find(|before| before.found_by == Finder::Schema && meaning.found_by == Finder::Schema);
    match same {
        Some(before) => before.rules.extend(meaning.rules),
        None => known.meanings.push(meaning),
    }
}

/// The code as it is written, from how people write it: `1201`, `osdn1201`, `OSDN-1201`; or, where
/// it has no number, `Schema-Type`, `schema_type`.
pub(crate) fn normalized(text: &str) -> String {
    let text = text.trim().trim_matches(['[', ']']);
    let upper = text.to_ascii_uppercase();
    let digits = upper.strip_prefix("OSDN").unwrap_or(&upper).trim_start_matches(['-', '_', ' ']);
    if upper.starts_with("OSDN") || digits.starts_with(|first: char| first.is_ascii_digit()) {
        format!("OSDN{digits}")
    } else if cluster_checks::is_id(&upper) {
        upper
    } else {
        text.to_ascii_lowercase().replace(['_', ' '], "-")
    }
}

/// The known codes that are most like it, best first.
pub(crate) fn nearest<'a>(wanted: &str, known: &'a [Explanation]) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = known
        .iter()
        .map(|one| (distance(wanted, &one.code), one.code.as_str()))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, code)| code).take(3).collect()
}

/// How many characters have to be changed, put in or taken out (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut before: Vec<usize> = (0..=other.chars().count()).collect();
    for (row, here) in one.chars().enumerate() {
        let mut diagonal = row;
        let mut left = row + 1;
        let mut now = vec![left];
        for (there, above) in other.chars().zip(before.iter().skip(1)) {
            let cost = usize::from(here != there);
            left = (diagonal + cost).min(above + 1).min(left + 1);
            diagonal = *above;
            now.push(left);
        }
        before = now;
    }
    before.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
