//! What two steps say of one fault is said by the one that knows more of it. The API server asks them in turn and never
//! comes to the second; here all are asked at once.

use std::collections::BTreeMap;

use crate::report::{Finding, ObjectId, Severity, Step};

/// A code, and the object that it is about.
type Fault<'a> = (&'a str, Option<&'a ObjectId>);
/// A JSON Pointer, and the number of the file.
type Place<'a> = (&'a str, usize);

/// The errors of policies: where each is.
struct OfPolicies<'a>(BTreeMap<Fault<'a>, Vec<Place<'a>>>);

impl<'a> OfPolicies<'a> {
    fn among(findings: &'a [Finding]) -> Self {
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let counts = |one: &&Finding| {
            one.step == Step::Policy && one.severity == Severity::Error && one.suppression.is_none()
        };
        for one in findings.iter().filter(counts) {
            let places = found.entry((one.code.as_str(), one.object.as_ref())).or_default();
            places.push((one.pointer.as_deref().unwrap_or_default(), one.place.file_number));
        }
        Self(found)
    }

    /// Whether one of them says it: a schema judges a whole map of which a policy names the entry, and who is refused
    /// claims nothing.
    fn say(&self, other: &Finding) -> bool {
        let pointer = other.pointer.as_deref().unwrap_or_default();
        let known = self.0.get(&(other.code.as_str(), other.object.as_ref()));
        known.into_iter().flatten().any(|(at, file)| {
            let below = at.strip_prefix(pointer);
            let is_there = match other.step {
                Step::Schema => below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
                Step::Set => below == Some(""),
                _ => false,
            };
            is_there && *file == other.place.file_number
        })
    }
}

/// Without what is said twice. A finding that is suppressed hides none.
pub(crate) fn said_once(mut findings: Vec<Finding>) -> Vec<Finding> {
    let of_policies = OfPolicies::among(&findings);
    let is_new: Vec<bool> =
        findings.iter().map(|one| one.code.is_empty() || !of_policies.say(one)).collect();
    let mut is_new = is_new.into_iter();
    findings.retain(|_| is_new.next().unwrap_or(true));
    findings
}

#[cfg(test)]
mod tests {
    use super::said_once;
    use crate::report::{By, Finding, Granted, Location, ObjectId, Origin, Severity, Step};

    const MAP: &str = "/spec/env";
    const ENTRY: &str = "/spec/env/1x";

    fn finding(step: Step, pointer: &str) -> Finding {
        let object = ObjectId { name: "one".to_owned(), ..ObjectId::default() };
        Finding {
            code: "OSDN1810".to_owned(),
            severity: Severity::Error,
            step,
            title: String::new(),
            message: String::new(),
            hint: String::new(),
            object: Some(object),
            pointer: Some(pointer.to_owned()),
            place: Location::of_file(Origin::File, "a.yaml".to_owned(), 1),
            related: Vec::new(),
            policy: None,
            suppression: None,
            fix: None,
        }
    }

    fn steps(findings: Vec<Finding>) -> Vec<Step> {
        said_once(findings).iter().map(|one| one.step).collect()
    }

    #[test]
    fn of_a_schema_and_a_policy_the_policy_says_it() {
        let two = vec![finding(Step::Schema, MAP), finding(Step::Policy, ENTRY)];
        assert_eq!(steps(two), [Step::Policy]);
        let at_one_place = vec![finding(Step::Schema, MAP), finding(Step::Policy, MAP)];
        assert_eq!(steps(at_one_place), [Step::Policy]);
    }

    #[test]
    fn who_is_refused_claims_nothing() {
        let two = vec![finding(Step::Policy, MAP), finding(Step::Set, MAP)];
        assert_eq!(steps(two), [Step::Policy]);
        let elsewhere = vec![finding(Step::Policy, ENTRY), finding(Step::Set, MAP)];
        assert_eq!(steps(elsewhere).len(), 2);
    }

    #[test]
    fn what_is_another_fault_stays() {
        let schema = || finding(Step::Schema, MAP);
        let policy = |change: &dyn Fn(&mut Finding)| {
            let mut one = finding(Step::Policy, ENTRY);
            change(&mut one);
            one
        };
        let changes: [&dyn Fn(&mut Finding); 6] = [
            &|one| one.code = "OSDN1811".to_owned(),
            &|one| one.pointer = Some("/spec/environment".to_owned()),
            &|one| one.severity = Severity::Warning,
            &|one| one.object = None,
            &|one| one.place.file_number = 2,
            &|one| one.suppression = Some(Granted { reason: "known".to_owned(), by: By::Comment }),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert_eq!(steps(vec![schema(), policy(change)]).len(), 2, "change {number}");
        }
    }
}
