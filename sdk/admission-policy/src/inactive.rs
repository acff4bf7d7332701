//! An AdmissionPolicy whose module cannot be loaded, as the host takes it: what it is about, as far
//! as that is known without the module, and whom it leaves alone.

use std::collections::BTreeMap;

use opensdn_crds::admission_policy as crd;
use opensdn_crds::admission_policy::AdmissionPolicySpec;
use opensdn_policy_host::{
    FailureMode, InactivePolicy, Interest, KindRule, Operation, Scope, Step,
};

use crate::plan::{exemptions, failure_mode, kind_rule, mode, operation, selector};
use crate::problem::Problem;

/// What repairs an AdmissionPolicy must not wait for one.
const REPAIR: (&str, &str) = (opensdn_crds::OPENSDN_GROUP, "AdmissionPolicy");

/// The policy as one that cannot judge because of the `problems`; `None` if it does not enforce, so
/// that nothing depends on it. `interests` are those of its module, where that has been loaded.
#[must_use]
pub fn inactive(
    name: &str,
    spec: &AdmissionPolicySpec,
    interests: Option<Vec<Interest>>,
    problems: &[Problem],
) -> Option<InactivePolicy> {
    if spec.mode != crd::Mode::Enforce {
        return None;
    }
    // A selector that cannot be evaluated selects everything: to leave out is what it is for.
    let read = |one: &Option<crd::LabelSelector>| selector(one.as_ref(), "").ok().flatten();
    let why: Vec<String> = problems.iter().map(Problem::text).collect();
    Some(InactivePolicy {
        name: name.to_owned(),
        mode: mode(spec.mode),
        failure_mode: spec.failure_mode.map(failure_mode),
        scope: Scope {
            kinds: spec.kinds.iter().flatten().map(kind_rule).collect(),
            namespace_selector: read(&spec.namespace_selector),
            object_selector: read(&spec.object_selector),
            exemptions: exemptions(spec.exemptions.as_ref()),
        },
        interests,
        never: vec![(REPAIR.0.to_owned(), REPAIR.1.to_owned())],
        why: why.join("; "),
    })
}

/// The kinds that an AdmissionPolicy names, and what becomes of requests that it cannot judge: what is
/// known of it without its module.
#[must_use]
pub fn named(spec: &AdmissionPolicySpec) -> (Vec<KindRule>, Option<FailureMode>) {
    (spec.kinds.iter().flatten().map(kind_rule).collect(), spec.failure_mode.map(failure_mode))
}

/// What a module is about, as the status of its AdmissionPolicy has it: each kind once.
#[must_use]
pub fn judges(interests: &[Interest]) -> Vec<crd::KindRule> {
    let mut rules: BTreeMap<(&str, &str), Vec<crd::Operation>> = BTreeMap::new();
    for interest in interests {
        let operations = rules.entry((&interest.group, &interest.kind)).or_default();
        // No policy is asked about connections, and a status that names one is refused.
        let judged = interest.operations.iter().filter(|one| **one != Operation::Connect);
        for operation in judged.map(|one| stored_operation(*one)) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
    }
    rules.retain(|_, operations| !operations.is_empty());
    let rule = |((group, kind), operations): ((&str, &str), _)| {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        crd::KindRule { group, version: None, kind, operations }
    };
    rules.into_iter().map(rule).collect()
}

/// The same read back, as far as it matters for a module that cannot be run.
#[must_use]
pub fn interests(judges: &[crd::KindRule]) -> Vec<Interest> {
    let interest = |rule: &crd::KindRule| Interest {
        step: Step::Validate,
        group: rule.group.clone(),
        kind: rule.kind.clone(),
        operations: rule.operations.iter().copied().map(operation).collect(),
        reads: Vec::new(),
    };
    judges.iter().map(interest).collect()
}

fn stored_operation(operation: Operation) -> crd::Operation {
    match operation {
        Operation::Create => crd::Operation::Create,
        Operation::Update => crd::Operation::Update,
        Operation::Delete => crd::Operation::Delete,
        Operation::Connect => crd::Operation::Connect,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::problem::Fault;

    fn inactive(rest: &Value) -> Option<InactivePolicy> {
        let mut spec = json!({"module": {"builtIn": "x"}});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let spec = serde_json::from_value(spec).unwrap();
        let problem =
            Problem::new(Fault::SourceUnreachable, "/spec/module", "it is gone", "put it");
        super::inactive("p", &spec, None, &[problem])
    }

    #[test]
    fn only_a_policy_that_enforces_is_missed() {
        let policy = inactive(&json!({})).unwrap();
        assert_eq!(policy.why, "OSDN4010: /spec/module: it is gone; put it");
        assert_eq!(inactive(&json!({"mode": "warn"})), None);
        assert_eq!(inactive(&json!({"mode": "audit"})), None);
    }

    #[test]
    fn what_a_module_is_about_is_read_back_from_the_status() {
        let interest = |step, kind: &str, operations: &[Operation]| Interest {
            step,
            group: "g".into(),
            kind: kind.into(),
            operations: operations.to_vec(),
            reads: vec!["/spec".into()],
        };
        let (create, delete) = (Operation::Create, Operation::Delete);
        let judged = judges(&[
            interest(Step::Mutate, "Thing", &[create]),
            interest(Step::Validate, "Thing", &[create, delete]),
            interest(Step::Validate, "Other", &[delete]),
        ]);
        let read = interests(&judged);
        let read: Vec<_> = read.iter().map(|one| (&*one.kind, &*one.operations)).collect();
        assert_eq!(read, [("Other", &[delete][..]), ("Thing", &[create, delete])]);
    }

    #[test]
    fn what_the_administrator_said_of_it_holds_without_its_module() {
        let policy = inactive(&json!({
            "kinds": [{"kind": "Pod"}], "failureMode": "fail",
            "exemptions": {"users": ["operator"]},
            "objectSelector": {"matchLabels": {"a": "b"}},
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}));
        let scope = policy.unwrap().scope;
        assert_eq!(scope.kinds[0].kind, "Pod");
        assert_eq!(scope.exemptions.users, ["operator"]);
        assert!(scope.object_selector.is_some());
        assert_eq!(scope.namespace_selector, None, "it cannot be read, so it leaves nobody out");
    }
}
