//! The built-in policies as WebAssembly components. They are built from the crates beside this
//! one; what they say is in those, how they are run is in `opensdn-policy-host`.

/// A policy that comes with the product.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// What is wrong when it has a finding, and the name of its folder: `even-quorum`.
    pub name: &'static str,
    /// The component.
    pub bytes: &'static [u8],
}

/// Every built-in policy, by name. Not a constant: of that each place that uses it would have its own 5 MB.
pub static ALL: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

static CASES: &[(&str, &[(&str, &str)])] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// The cases of the built-in policy of that name: the names of the files, and their texts.
#[must_use]
pub fn cases(policy: &str) -> &'static [(&'static str, &'static str)] {
    let cases = CASES.iter().find(|(name, _)| *name == policy);
    cases.map(|(_, cases)| *cases).unwrap_or_default()
}

static SOURCES: &[(&str, &str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// What shows that the policy says what is so with this code: `REPOSITORY PATH:LINES` each, in the
/// repositories of OpenSDN-io or in this one. Empty for a code that it does not have.
#[must_use]
pub fn sources(policy: &str, code: &str) -> &'static [&'static str] {
    let mut all = SOURCES.iter();
    let found = all.find(|(name, other, _)| (*name, *other) == (policy, code));
    found.map(|(_, _, sources)| *sources).unwrap_or_default()
}

/// Every code with sources that the policy is said to have.
pub fn codes_with_sources(policy: &str) -> impl Iterator<Item = &'static str> {
    SOURCES.iter().filter(move |(name, _, _)| *name == policy).map(|(_, code, _)| *code)
}

/// The built-in policy of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|policy| policy.name == name)
}

/// What codes are about, by the number with which they begin: the groups of the catalogue.
const CATEGORIES: &[(&str, &str)] = &[
    ("OSDN11", "Identity and shape"),
    ("OSDN12", "Placement"),
    ("OSDN13", "Containers and images"),
    ("OSDN14", "Authentication"),
    ("OSDN15", "Databases and queues"),
    ("OSDN16", "Services"),
    ("OSDN17", "Kubernetes network"),
    ("OSDN18", "Vrouter"),
    ("OSDN19", "Certificates"),
    ("OSDN20", "Upgrade"),
    ("OSDN30", "Underlay network"),
];

/// What a code is about, in a word or three; nothing for a code that is not in the catalogue.
#[must_use]
pub fn category(code: &str) -> Option<&'static str> {
    let mut all = CATEGORIES.iter();
    all.find(|(beginning, _)| code.starts_with(beginning)).map(|(_, category)| *category)
}
