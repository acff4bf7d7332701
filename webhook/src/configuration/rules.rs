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

use std::collections::{BTreeMap, BTreeSet};

use kube::Resource;
use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::vrouter_profile::VrouterProfile;
use opensdn_policy_host::{Binding, FailureMode, Interest, Operation, Step};
use serde_json::{Value, json};

use crate::kinds::{Known, Table};

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

/// Group and resource, and the operations on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    resources: BTreeMap<(String, String), BTreeSet<&'static str>>,
}

/// What each entry covers.
pub(super) type Plan = BTreeMap<Part, Coverage>;

/// What has to be covered for a step. `own` are our resources of the group `opensdn.io`.
pub(super) fn plan(step: Step, bindings: &[Binding], table: &Table, own: &[String]) -> Plan {
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
        }
    }
    plan.retain(|_, coverage| !coverage.resources.is_empty());
    plan
}

/// A kind that a policy in force judges.
struct Subject<'b> {
    group: &'b str,
    kind: &'b str,
    operations: Vec<Operation>,
}

fn subjects(step: Step, binding: &Binding) -> Vec<Subject<'_>> {
    let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
    let mut subjects = Vec::new();
    let interests = &binding.policy.metadata().interests;
    for interest in interests.iter().filter(|interest| interest.step == step) {
        let Interest { group, kind, operations, .. } = interest;
        if binding.scope.kinds.is_empty() {
            subjects.push(Subject { group, kind, operations: operations.clone() });
        }
        for rule in &binding.scope.kinds {
            if is(group, &rule.group) && is(kind, &rule.kind) {
                let both = rule.operations.iter().filter(|one| operations.contains(one));
                let operations = both.copied().collect();
                subjects.push(Subject { group: &rule.group, kind: &rule.kind, operations });
            }
        }
    }
    subjects
}

/// The resources of a kind. One that the cluster does not serve has none yet.
fn resources(subject: &Subject<'_>, table: &Table, own: &[String]) -> Vec<String> {
    let Subject { group, kind, .. } = subject;
    match (*group, *kind) {
        ("*", _) => Vec::new(),
        (opensdn_crds::OPENSDN_GROUP, "*") => own.to_vec(),
        (_, "*") => vec!["*".to_owned()],
        _ => match table.find(group, kind) {
            Known::Served(resource) => {
                let ours = *group == opensdn_crds::OPENSDN_GROUP;
                let covered = !ours || own.contains(&resource.plural);
                covered.then_some(resource.plural).into_iter().collect()
            }
            Known::Absent | Known::Unknown(_) => Vec::new(),
        },
    }
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
    fn add(&mut self, group: &str, resource: &str, operation: Operation) {
        let key = (group.to_owned(), resource.to_owned());
        self.resources.entry(key).or_default().insert(word(operation));
    }

    /// The rules of a webhook entry, fewest first: what has the same group and operations is one.
    pub(super) fn rules(&self) -> Value {
        let mut rules: BTreeMap<(&str, &BTreeSet<&'static str>), Vec<&str>> = BTreeMap::new();
        for ((group, resource), operations) in &self.resources {
            let whole = self.resources.get(&(group.clone(), "*".to_owned()));
            if resource != "*" && whole.is_some_and(|whole| whole.is_superset(operations)) {
                continue;
            }
            rules.entry((group, operations)).or_default().push(resource);
        }
        let rule = |((group, operations), resources)| {
            json!({"apiGroups": [group], "apiVersions": ["*"], "operations": operations,
                "resources": resources, "scope": "*"})
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
            let operations = words("operations");
            for operation in
                all.into_iter().filter(|one| operations.iter().any(|w| w == word(*one)))
            {
                for group in words("apiGroups") {
                    for resource in words("resources") {
                        self.add(&group, &resource, operation);
                    }
                }
            }
        }
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
        let plan = plan(Step::Validate, &[], &Table::default(), &own);
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
        assert!(super::plan(Step::Mutate, &[], &Table::default(), &own).is_empty());
    }

    #[test]
    fn rules_that_were_read_come_out_as_they_were() {
        let mut coverage = Coverage::default();
        coverage.add("g", "things", Operation::Create);
        coverage.add("g", "others", Operation::Create);
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
