//! What no policy is asked about, whatever an AdmissionPolicy and its module say: connections, and
//! whether an AdmissionPolicy may be deleted.

use opensdn_crds::admission_policy as crd;
use opensdn_policy_host::{Metadata, Operation};

use crate::plan;
use crate::problem::{Fault, Problem};

/// Operations of which no policy is asked, named by the AdmissionPolicy or, where that names no
/// kinds, by the module.
pub(crate) fn never_judged(metadata: &Metadata, kinds: &[crd::KindRule]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, rule) in kinds.iter().enumerate() {
        let place = format!("/spec/kinds/{number}/operations");
        for operation in &rule.operations {
            let hint = "take the operation out of the list";
            let why = why_never(plan::operation(*operation), &rule.group, &rule.kind);
            problems.extend(
                why.map(|why| Problem::new(Fault::OperationNotJudged, place.clone(), why, hint)),
            );
        }
    }
    for interest in metadata.interests.iter().filter(|_| kinds.is_empty()) {
        for operation in &interest.operations {
            let hint = "name in spec.kinds what is to be judged, or build the policy without it";
            problems.extend(why_never(*operation, &interest.group, &interest.kind).map(|why| {
                let message = format!("{} wants to judge what it cannot: {why}", metadata.name);
                Problem::new(Fault::OperationNotJudged, "/spec/module", message, hint)
            }));
        }
    }
    problems
}

fn why_never(operation: Operation, group: &str, kind: &str) -> Option<String> {
    let title = plan::title(group, kind);
    match operation {
        Operation::Connect => {
            Some(format!("a connection to {title} has no object that a policy could judge"))
        }
        Operation::Delete if (group, kind) == (opensdn_crds::OPENSDN_GROUP, "AdmissionPolicy") => {
            let why = "else it could keep itself active";
            Some(format!("no policy is asked whether an AdmissionPolicy may be deleted, {why}"))
        }
        Operation::Create | Operation::Update | Operation::Delete => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_no_policy_is_asked_about_is_refused() {
        let texts = |metadata: &Metadata, kinds: Value| -> Vec<String> {
            let kinds: Vec<crd::KindRule> = serde_json::from_value(kinds).unwrap();
            never_judged(metadata, &kinds).iter().map(Problem::text).collect()
        };
        let mut metadata = plan::tests::metadata("opensdn.io", "AdmissionPolicy");
        let policies = |operation: &str| json!([{"group": "opensdn.io", "kind": "AdmissionPolicy", "operations": [operation]}]);
        assert_eq!(texts(&metadata, policies("UPDATE")), [""; 0]);
        let said = texts(&metadata, policies("DELETE"));
        assert!(said[0].starts_with("OSDN4015: /spec/kinds/0/operations: no policy"), "{said:?}");
        let said = texts(&metadata, json!([{"kind": "Pod", "operations": ["CONNECT"]}]));
        assert!(said[0].contains("a connection to Pod has no object"), "{said:?}");
        // What the module says for itself counts where no kinds are named.
        metadata.interests[0].operations = vec![Operation::Delete, Operation::Connect];
        assert_eq!(texts(&metadata, policies("CREATE")), [""; 0]);
        assert_eq!(texts(&metadata, json!([])).len(), 2);
    }
}
