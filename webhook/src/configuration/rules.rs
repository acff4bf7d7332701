//! Which requests the API server has to send us: from the policies in force to the rules of the
//! webhook configurations. Pure.
//!
//! | entry | about | failurePolicy |
//! |---|---|---|
//! | `ours` | OpenSDN's kinds, always, so that no rule has to come before a policy can work | Fail |
//! | `others` | kinds that AdmissionPolicies name | Ignore |
//! | `others-fail` | the same, of AdmissionPolicies that say `failureMode: fail` | Fail |
//!
//! UniqueClaims are in none of them: they are written by the webhook while it answers.
//!
//! Where an AdmissionPolicy names a version of a kind, the rules name it, too: the API server then
//! converts objects that are written in another one (`matchPolicy: Equivalent`).

use std::collections::{BTreeMap, BTreeSet};

use kube::Resource;
use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::vrouter_profile::VrouterProfile;
use opensdn_policy_host::{Binding, FailureMode, Interest, Operation, Step};
use opensdn_runtime::discovery::{Resolution, Snapshot};
use serde_json::{Value, json};

/// The webhook entries of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Ours,
    Others,
    OthersFail,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Ours, Self::Others, Self::OthersFail];

    /// Name of the entry.
    pub(super) fn name(self, step: Step) -> String {
        let part = match self {
            Self::Ours => "ours",
            Self::Others => "others",
            Self::OthersFail => "others-fail",
        };
        let step = match step {
            Step::Mutate => "mutate",
            Step::Validate => "validate",
        };
        format!("{part}.{step}.opensdn.io")
    }

    pub(super) fn failure_policy(self) -> &'static str {
        match self {
            Self::Ours | Self::OthersFail => "Fail",
            Self::Others => "Ignore",
        }
    }
}

/// What is covered of each group and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    resources: BTreeMap<(String, String), Covered>,
}

/// Ordered, so that rules come out the same every time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Covered {
    operations: BTreeSet<&'static str>,
    /// The versions in which objects are to come; none: as they are written.
    versions: BTreeSet<String>,
}

/// What each entry covers.
pub(super) type Plan = BTreeMap<Part, Coverage>;

/// What has to be covered for a step. `own` are our resources of the group `opensdn.io`.
pub(super) fn plan(step: Step, bindings: &[Binding], table: &Snapshot, own: &[String]) -> Plan {
    let mut plan = Plan::new();
    if step == Step::Validate {
        let ours = plan.entry(Part::Ours).or_default();
        for operation in [Operation::Create, Operation::Update] {
            ours.add(opensdn_crds::TUNGSTEN_GROUP, "*", operation);
            for resource in own {
                ours.add(opensdn_crds::OPENSDN_GROUP, resource, operation);
            }
        }
    }
    let mut named: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for binding in bindings {
        for subject in subjects(step, binding) {
            let closed = CLOSED_GROUPS.contains(&subject.group);
            let part = match (closed, binding.failure_mode) {
                (true, _) => Part::Ours,
                (false, Some(FailureMode::Fail)) => Part::OthersFail,
                (false, _) => Part::Others,
            };
            for resource in resources(&subject, table, own) {
                for operation in &subject.operations {
                    plan.entry(part).or_default().add(subject.group, &resource, *operation);
                }
            }
            if let Some((resource, version)) = version(&subject, table) {
                named.entry((subject.group.to_owned(), resource)).or_default().insert(version);
            }
        }
    }
    for coverage in plan.values_mut() {
        for (resource, covered) in &mut coverage.resources {
            covered.versions = named.get(resource).cloned().unwrap_or_default();
        }
    }
    plan.retain(|_, coverage| !coverage.resources.is_empty());
    plan
}

/// A kind that a policy in force judges.
struct Subject<'b> {
    group: &'b str,
    kind: &'b str,
    version: Option<&'b str>,
    operations: Vec<Operation>,
}

fn subjects(step: Step, binding: &Binding) -> Vec<Subject<'_>> {
    let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
    let mut subjects = Vec::new();
    let interests = &binding.policy.metadata().interests;
    for interest in interests.iter().filter(|interest| interest.step == step) {
        let Interest { group, kind, operations, .. } = interest;
        if binding.scope.kinds.is_empty() {
            let operations = operations.clone();
            subjects.push(Subject { group, kind, version: None, operations });
        }
        for rule in &binding.scope.kinds {
            if is(group, &rule.group) && is(kind, &rule.kind) {
                let both = rule.operations.iter().filter(|one| operations.contains(one));
                let operations = both.copied().collect();
                let (group, kind, version) = (&rule.group, &rule.kind, rule.version.as_deref());
                subjects.push(Subject { group, kind, version, operations });
            }
        }
    }
    subjects
}

/// The resources of a kind. One that the cluster does not serve has none yet.
fn resources(subject: &Subject<'_>, table: &Snapshot, own: &[String]) -> Vec<String> {
    let Subject { group, kind, .. } = subject;
    match (*group, *kind) {
        ("*", _) => Vec::new(),
        (opensdn_crds::OPENSDN_GROUP, "*") => own.to_vec(),
        (_, "*") => vec!["*".to_owned()],
        _ => match table.find(group, kind) {
            Resolution::Served(resource) => {
                let ours = *group == opensdn_crds::OPENSDN_GROUP;
                let covered = !ours || own.contains(&resource.plural);
                covered.then_some(resource.plural).into_iter().collect()
            }
            Resolution::Absent | Resolution::Unknown(_) => Vec::new(),
        },
    }
}

/// The resource of a kind and the requested version. One that is not served would match no
/// request at all.
fn version(subject: &Subject<'_>, table: &Snapshot) -> Option<(String, String)> {
    let wanted = subject.version?;
    let Resolution::Served(resource) = table.find(subject.group, subject.kind) else { return None };
    let is_served = resource.versions.iter().any(|version| version == wanted);
    is_served.then(|| (resource.plural, wanted.to_owned()))
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

impl Coverage {
    fn add(&mut self, group: &str, resource: &str, operation: Operation) -> &mut Covered {
        let key = (group.to_owned(), resource.to_owned());
        let covered = self.resources.entry(key).or_default();
        covered.operations.insert(word(operation));
        covered
    }

    /// The rules of a webhook entry, fewest first: what has the same group, operations and versions
    /// is one.
    pub(super) fn rules(&self) -> Value {
        let mut rules: BTreeMap<(&str, &Covered), Vec<&str>> = BTreeMap::new();
        for ((group, resource), covered) in &self.resources {
            let whole = self.resources.get(&(group.clone(), "*".to_owned()));
            if resource != "*" && whole.is_some_and(|whole| whole.includes(covered)) {
                continue;
            }
            rules.entry((group, covered)).or_default().push(resource);
        }
        let rule = |((group, covered), resources): ((&str, &Covered), Vec<&str>)| {
            let any = BTreeSet::from(["*".to_owned()]);
            let versions = if covered.versions.is_empty() { &any } else { &covered.versions };
            json!({"apiGroups": [group], "apiVersions": versions,
                "operations": covered.operations, "resources": resources, "scope": "*"})
        };
        rules.into_iter().map(rule).collect()
    }

    /// Adds what the rules of an entry, as the API server has it, cover.
    pub(super) fn add_rules(&mut self, rules: &Value) {
        let all = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
        for rule in rules.as_array().into_iter().flatten() {
            let words = |key: &str| -> Vec<String> {
                let list = rule.get(key).and_then(Value::as_array).into_iter().flatten();
                list.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let (operations, versions) = (words("operations"), words("apiVersions"));
            for operation in
                all.into_iter().filter(|one| operations.iter().any(|w| w == word(*one)))
            {
                for group in words("apiGroups") {
                    for resource in words("resources") {
                        let named = versions.iter().filter(|version| *version != "*");
                        self.add(&group, &resource, operation).versions.extend(named.cloned());
                    }
                }
            }
        }
    }
}

impl Covered {
    fn includes(&self, other: &Self) -> bool {
        self.versions == other.versions && self.operations.is_superset(&other.operations)
    }
}

/// Resources of our own group that are reviewed: all but claims, which only the webhook writes.
/// Their names alone: the definitions would bring all schemas with them.
pub(super) fn own() -> Vec<String> {
    fn name<K: Resource<DynamicType = ()>>() -> String {
        K::plural(&()).into_owned()
    }
    vec![name::<AdmissionPolicy>(), name::<VrouterProfile>(), name::<LinkLocalService>()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_our_group_but_claims_is_reviewed() {
        let ours = opensdn_crds::all().into_iter().map(|crd| crd.spec);
        let ours = ours.filter(|spec| spec.group == opensdn_crds::OPENSDN_GROUP);
        let names = ours.map(|spec| spec.names).filter(|names| names.kind != "UniqueClaim");
        assert_eq!(own(), names.map(|names| names.plural).collect::<Vec<_>>());
    }

    #[test]
    fn our_kinds_are_covered_without_any_policy_and_unique_claims_never() {
        let own = ["admissionpolicies".to_owned(), "linklocalservices".to_owned()];
        let plan = plan(Step::Validate, &[], &Snapshot::default(), &own);
        let rules = plan[&Part::Ours].rules();
        assert_eq!(
            rules,
            json!([
                {"apiGroups": ["opensdn.io"], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["admissionpolicies", "linklocalservices"], "scope": "*"},
                {"apiGroups": ["tf.tungsten.io"], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["*"], "scope": "*"},
            ])
        );
        assert!(super::plan(Step::Mutate, &[], &Snapshot::default(), &own).is_empty());
    }

    #[test]
    fn rules_that_were_read_come_out_as_they_were() {
        let mut coverage = Coverage::default();
        coverage.add("g", "things", Operation::Create);
        coverage.add("g", "others", Operation::Create).versions.insert("v1".to_owned());
        coverage.add("", "pods", Operation::Delete);
        let mut read = Coverage::default();
        read.add_rules(&coverage.rules());
        assert_eq!(read, coverage);
    }

    #[test]
    fn a_resource_that_the_whole_group_covers_is_not_named_again() {
        let mut coverage = Coverage::default();
        coverage.add("g", "*", Operation::Create);
        coverage.add("g", "things", Operation::Create);
        coverage.add("g", "others", Operation::Delete);
        let rules = coverage.rules();
        let resources: Vec<&Value> =
            rules.as_array().unwrap().iter().map(|rule| &rule["resources"]).collect();
        assert_eq!(resources, [&json!(["*"]), &json!(["others"])]);
    }
}
