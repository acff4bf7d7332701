//! Which requests the API server has to send us: from the policies, in force or lost, to the rules of the
//! webhook configurations. Pure.
//!
//! | entry | about | failurePolicy |
//! |---|---|---|
//! | `ours` | OpenSDN's kinds, always, so that no rule has to come before a policy can work | Fail |
//! | `others` | kinds that AdmissionPolicies name | Ignore |
//! | `others-fail` | the same, of AdmissionPolicies that say `failureMode: fail` | Fail |
//!
//! UniqueClaims are in none of them: they are written by the webhook while it answers. Nor is the
//! deletion of AdmissionPolicies, which no policy may refuse.
//!
//! Where an AdmissionPolicy names a version of a kind, the rules name it, too: the API server then
//! converts objects that are written in another one (`matchPolicy: Equivalent`). It converts only
//! where no rule of the entry names the version that was written, and calls each entry by itself. So
//! a second version of a kind is in a second entry (`ours-2`), a third in a third: every object comes
//! once in each of the versions, and no policy misses what is written in another's version.

use std::collections::{BTreeMap, BTreeSet};

use kube::Resource;
use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::nested_cluster::NestedCluster;
use opensdn_crds::upgrade::Upgrade;
use opensdn_crds::vrouter_profile::VrouterProfile;
use opensdn_policy_host::{FailureMode, Interest, Operation, Step};
use opensdn_runtime::discovery::{Resolution, Snapshot};
use serde_json::{Value, json};

use crate::policies::Judged;

/// The webhook entries of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Ours,
    Others,
    OthersFail,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Ours, Self::Others, Self::OthersFail];

    /// Name of the entry; `number` counts from 0.
    pub(super) fn name(self, step: Step, number: usize) -> String {
        let part = self.word();
        match number {
            0 => format!("{part}.{}.opensdn.io", step.label()),
            _ => format!("{part}-{}.{}.opensdn.io", number + 1, step.label()),
        }
    }

    /// The part that an entry of this name is of.
    pub(super) fn of(name: &str, step: Step) -> Option<Self> {
        let name = name.strip_suffix(&format!(".{}.opensdn.io", step.label()))?;
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        Self::ALL.into_iter().find(|part| {
            let rest = name.strip_prefix(part.word());
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number)
            })
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Others => "others",
            Self::OthersFail => "others-fail",
        }
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
type Operations = BTreeSet<&'static str>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Covered {
    operations: Operations,
    /// The versions in which objects are to come; none: as they are written.
    versions: BTreeSet<String>,
}

/// What each entry covers.
pub(super) type Plan = BTreeMap<Part, Coverage>;

/// What has to be covered for a step. `own` are our resources of the group `opensdn.io`.
pub(super) fn plan(step: Step, judged: &[Judged<'_>], table: &Snapshot, own: &[String]) -> Plan {
    let mut plan = Plan::new();
    if step == Step::Validate {
        let ours = plan.entry(Part::Ours).or_default();
        for operation in [Operation::Create, Operation::Update] {
            ours.add(opensdn_crds::TUNGSTEN_GROUP, "*", operation, &[]);
            for resource in own {
                ours.add(opensdn_crds::OPENSDN_GROUP, resource, operation, &[]);
            }
        }
    }
    let mut named: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for judged in judged {
        for subject in subjects(step, judged) {
            let closed = CLOSED_GROUPS.contains(&subject.group);
            let part = match (closed, judged.failure_mode) {
                (true, _) => Part::Ours,
                (false, Some(FailureMode::Fail)) => Part::OthersFail,
                (false, _) => Part::Others,
            };
            for resource in resources(&subject, table, own) {
                for operation in &subject.operations {
                    let coverage = plan.entry(part).or_default();
                    coverage.add(subject.group, &resource, *operation, &[]);
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

/// A kind that a policy judges.
struct Subject<'b> {
    group: &'b str,
    kind: &'b str,
    version: Option<&'b str>,
    operations: Vec<Operation>,
}

fn subjects<'b>(step: Step, judged: &Judged<'b>) -> Vec<Subject<'b>> {
    let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
    let mut subjects = Vec::new();
    let Some(interests) = judged.interests else {
        // Its steps are not known: a rule too many costs a call.
        let named = judged.kinds.iter().map(|rule| Subject {
            group: &rule.group,
            kind: &rule.kind,
            version: rule.version.as_deref(),
            operations: rule.operations.clone(),
        });
        return named.collect();
    };
    for interest in interests.iter().filter(|interest| interest.step == step) {
        let Interest { group, kind, operations, .. } = interest;
        if judged.kinds.is_empty() {
            let operations = operations.clone();
            subjects.push(Subject { group, kind, version: None, operations });
        }
        for rule in judged.kinds {
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
/// request at all; and an entry more for the only version of a kind of ours would judge all twice.
fn version(subject: &Subject<'_>, table: &Snapshot) -> Option<(String, String)> {
    let wanted = subject.version?;
    let Resolution::Served(resource) = table.find(subject.group, subject.kind) else { return None };
    let is_served = resource.versions.iter().any(|version| version == wanted);
    let is_only = CLOSED_GROUPS.contains(&subject.group) && resource.versions.len() == 1;
    (is_served && !is_only).then(|| (resource.plural, wanted.to_owned()))
}

/// What no policy may refuse: a policy could keep itself in force. And what has no object that a
/// policy could be about: a connection is one to a subresource.
fn is_never_judged(group: &str, resource: &str, operation: Operation) -> bool {
    let policies = AdmissionPolicy::plural(&());
    let is_policies = group == opensdn_crds::OPENSDN_GROUP && [&*policies, "*"].contains(&resource);
    operation == Operation::Connect || (operation == Operation::Delete && is_policies)
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
    fn add(&mut self, group: &str, resource: &str, operation: Operation, versions: &[String]) {
        if is_never_judged(group, resource, operation) {
            return;
        }
        let key = (group.to_owned(), resource.to_owned());
        let covered = self.resources.entry(key).or_default();
        covered.operations.insert(word(operation));
        covered.versions.extend(versions.iter().cloned());
    }

    /// The rules of each webhook entry: as many entries as a resource needs.
    pub(super) fn entries(&self) -> Vec<Value> {
        let versions = self.resources.keys().map(|(group, name)| self.versions(group, name).len());
        let count = versions.max().unwrap_or_default().max(1);
        (0..count).map(|number| self.rules(number)).collect()
    }

    /// The rules of one entry, fewest first: what has the same group, operations and version is one.
    fn rules(&self, number: usize) -> Value {
        let mut rules: BTreeMap<(&str, &str, &Operations), Vec<&str>> = BTreeMap::new();
        for ((group, resource), covered) in &self.resources {
            if let Some(Some(version)) = self.versions(group, resource).get(number) {
                let same = (group.as_str(), *version, &covered.operations);
                rules.entry(same).or_default().push(resource);
            }
        }
        let rule = |((group, version, operations), resources): ((&str, &str, _), Vec<&str>)| {
            json!({"apiGroups": [group], "apiVersions": [version],
                "operations": operations, "resources": resources, "scope": "*"})
        };
        rules.into_iter().map(rule).collect()
    }

    /// The version of the resource in each entry, `*` for any; none where the rule for the whole
    /// group covers it. That one takes objects as they are written, so a version that is named has
    /// to be in another entry.
    fn versions(&self, group: &str, resource: &str) -> Vec<Option<&str>> {
        let find = |name: &str| self.resources.get(&(group.to_owned(), name.to_owned()));
        let Some(covered) = find(resource) else { return Vec::new() };
        let whole = find("*").filter(|_| resource != "*");
        let named = covered.versions.iter().map(|version| Some(version.as_str()));
        match whole {
            Some(whole) if covered.versions.is_empty() => {
                let is_covered = whole.operations.is_superset(&covered.operations);
                vec![(!is_covered).then_some("*")]
            }
            Some(_) => [None].into_iter().chain(named).collect(),
            None if covered.versions.is_empty() => vec![Some("*")],
            None => named.collect(),
        }
    }

    /// Adds what the rules of an entry, as the API server has it, cover.
    pub(super) fn add_rules(&mut self, rules: &Value) {
        let all = [Operation::Create, Operation::Update, Operation::Delete];
        for rule in rules.as_array().into_iter().flatten() {
            let words = |key: &str| -> Vec<String> {
                let list = rule.get(key).and_then(Value::as_array).into_iter().flatten();
                list.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let (operations, mut named) = (words("operations"), words("apiVersions"));
            named.retain(|version| version != "*");
            for operation in
                all.into_iter().filter(|one| operations.iter().any(|w| w == word(*one)))
            {
                for group in words("apiGroups") {
                    for resource in words("resources") {
                        self.add(&group, &resource, operation, &named);
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
    vec![
        name::<AdmissionPolicy>(),
        name::<VrouterProfile>(),
        name::<LinkLocalService>(),
        name::<NestedCluster>(),
        name::<Upgrade>(),
    ]
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::KindRule;

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
        let entries = plan[&Part::Ours].entries();
        assert_eq!(
            entries,
            [json!([
                {"apiGroups": ["opensdn.io"], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["admissionpolicies", "linklocalservices"], "scope": "*"},
                {"apiGroups": ["tf.tungsten.io"], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["*"], "scope": "*"},
            ])]
        );
        assert!(super::plan(Step::Mutate, &[], &Snapshot::default(), &own).is_empty());
    }

    #[test]
    fn a_policy_that_was_never_loaded_has_rules_for_the_kinds_that_its_administrator_named() {
        let kinds = [KindRule {
            group: opensdn_crds::TUNGSTEN_GROUP.to_owned(),
            version: None,
            kind: "*".to_owned(),
            operations: vec![Operation::Delete],
        }];
        let lost = Judged { interests: None, kinds: &kinds, failure_mode: None };
        for step in [Step::Mutate, Step::Validate] {
            let plan = plan(step, &[lost], &Snapshot::default(), &[]);
            let rules = json!(plan[&Part::Ours].entries());
            assert!(rules.to_string().contains("DELETE"), "{rules}");
        }
        let nothing = Judged { interests: None, kinds: &[], failure_mode: None };
        assert!(plan(Step::Mutate, &[nothing], &Snapshot::default(), &[]).is_empty());
    }

    #[test]
    fn rules_that_were_read_come_out_as_they_were() {
        let mut coverage = Coverage::default();
        coverage.add("g", "things", Operation::Create, &[]);
        coverage.add("g", "others", Operation::Create, &["v1".to_owned(), "v2".to_owned()]);
        coverage.add("", "pods", Operation::Delete, &[]);
        let mut read = Coverage::default();
        coverage.entries().iter().for_each(|rules| read.add_rules(rules));
        assert_eq!(read, coverage);
    }

    #[test]
    fn a_resource_that_the_whole_group_covers_is_not_named_again() {
        let mut coverage = Coverage::default();
        coverage.add("g", "*", Operation::Create, &[]);
        coverage.add("g", "things", Operation::Create, &[]);
        coverage.add("g", "others", Operation::Delete, &[]);
        let entries = coverage.entries();
        let resources: Vec<&Value> =
            entries[0].as_array().unwrap().iter().map(|rule| &rule["resources"]).collect();
        assert_eq!(resources, [&json!(["*"]), &json!(["others"])]);
    }

    #[test]
    fn each_version_of_a_kind_that_is_named_has_an_entry_of_its_own() {
        let mut coverage = Coverage::default();
        coverage.add("g", "things", Operation::Create, &["v2".to_owned(), "v1".to_owned()]);
        coverage.add("g", "others", Operation::Create, &["v1".to_owned()]);
        coverage.add("h", "plain", Operation::Create, &[]);
        let rule = |group: &str, version: &str, resources: &[&str]| {
            json!({"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"],
                "resources": resources, "scope": "*"})
        };
        let first = [rule("g", "v1", &["others", "things"]), rule("h", "*", &["plain"])];
        assert_eq!(coverage.entries(), [json!(first), json!([rule("g", "v2", &["things"])])]);

        // What is taken as it is written is in another entry than what is to be converted.
        let mut coverage = Coverage::default();
        coverage.add("g", "*", Operation::Create, &[]);
        coverage.add("g", "things", Operation::Create, &["v1".to_owned()]);
        let entries = [json!([rule("g", "*", &["*"])]), json!([rule("g", "v1", &["things"])])];
        assert_eq!(coverage.entries(), entries);
    }

    #[test]
    fn entries_are_known_by_their_names() {
        for part in Part::ALL {
            for number in [0, 1, 10] {
                let name = part.name(Step::Validate, number);
                assert_eq!(Part::of(&name, Step::Validate), Some(part), "{name}");
                assert_eq!(Part::of(&name, Step::Mutate), None, "{name}");
            }
        }
        assert_eq!(Part::Ours.name(Step::Mutate, 1), "ours-2.mutate.opensdn.io");
        for foreign in ["ours-x.validate.opensdn.io", "mine.validate.opensdn.io", "ours"] {
            assert_eq!(Part::of(foreign, Step::Validate), None, "{foreign}");
        }
    }

    #[test]
    fn deletions_of_admission_policies_and_connections_are_never_asked_for() {
        let mut coverage = Coverage::default();
        for resource in ["admissionpolicies", "*"] {
            coverage.add("opensdn.io", resource, Operation::Delete, &[]);
        }
        coverage.add("", "pods", Operation::Connect, &[]);
        assert_eq!(coverage, Coverage::default());
        // Nor retained, where an older version has asked for them.
        coverage.add_rules(&json!([{"apiGroups": ["opensdn.io", ""], "apiVersions": ["*"],
            "operations": ["CREATE", "DELETE", "CONNECT"],
            "resources": ["admissionpolicies", "linklocalservices"]}]));
        let rules = coverage.entries().swap_remove(0);
        let ours = rules.as_array().unwrap().iter().filter(|rule| rule["apiGroups"][0] != "");
        for rule in ours {
            let deletes = rule["operations"].to_string().contains("DELETE");
            let policies = rule["resources"].to_string().contains("admissionpolicies");
            assert!(!(deletes && policies), "{rule}");
        }
        assert!(!rules.to_string().contains("CONNECT"), "{rules}");
    }
}
