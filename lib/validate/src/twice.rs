//! What two steps say of one fault is said by the one that knows more of it. The API server asks them in turn and never
//! comes to the second; here all are asked at once.

use std::collections::BTreeMap;

use crate::report::{Finding, ObjectId, Severity, Step};

/// A code, and the object that it is about.
type Fault<'a> = (&'a str, Option<&'a ObjectId>);
/// The codes of which a policy repeats the very rule of the schema, for it names the entry or the value. Of another code
/// that both have the two are different faults (OSDN1804: a name that is too long, and several interfaces without L3MH).
const REPEATED: [&str; 2] = ["OSDN1604", "OSDN1810"];

/// The errors of policies.
struct OfPolicies<'a>(BTreeMap<Fault<'a>, Vec<&'a Finding>>);

impl<'a> OfPolicies<'a> {
    fn among(findings: &'a [Finding]) -> Self {
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let counts = |one: &&Finding| {
            one.step == Step::Policy && one.severity == Severity::Error && one.suppression.is_none()
        };
        for one in findings.iter().filter(counts) {
            found.entry((one.code.as_str(), one.object.as_ref())).or_default().push(one);
        }
        Self(found)
    }

    /// Whether one of them says it: a schema judges a whole map of which a policy names the entry, and who is refused
    /// because of another object claims nothing of that one.
    fn say(&self, other: &Finding) -> bool {
        let pointer = other.pointer.as_deref().unwrap_or_default();
        let known = self.0.get(&(other.code.as_str(), other.object.as_ref()));
        known.into_iter().flatten().any(|one| {
            let below = one.pointer.as_deref().unwrap_or_default().strip_prefix(pointer);
            let says_it = match other.step {
                Step::Schema => {
                    REPEATED.contains(&other.code.as_str())
                        && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                }
                Step::Set => below == Some("") && is_about(one, other),
                _ => false,
            };
            says_it && one.place.file_number == other.place.file_number
        })
    }
}

/// Whether the message of a policy names the object that has what is claimed.
fn is_about(of_policy: &Finding, claim: &Finding) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '.';
    let words: Vec<_> = of_policy.message.split(|letter| !is_of_name(letter)).collect();
    let holders = claim.related.iter().filter_map(|one| one.object.as_ref());
    let is_named = |word: &String| word.is_empty() || words.contains(&word.as_str());
    let mut holders =
        holders.filter(|holder| is_named(&holder.name) && is_named(&holder.namespace));
    holders.next().is_some()
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
    use crate::report::{
        By, Finding, Granted, Location, ObjectId, Origin, Related, Severity, Step,
    };

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
    fn who_is_refused_because_of_another_claims_nothing_of_it() {
        let refused = |pointer| Finding {
            message: "vrouters of Manager two in namespace tf run on all nodes".to_owned(),
            ..finding(Step::Policy, pointer)
        };
        let claim_of = |name: &str| {
            let holder = ObjectId {
                name: name.to_owned(),
                namespace: "tf".to_owned(),
                ..ObjectId::default()
            };
            let place = Location::of_file(Origin::File, "b.yaml".to_owned(), 2);
            let holder = Related { message: String::new(), object: Some(holder), place };
            Finding { related: vec![holder], ..finding(Step::Set, MAP) }
        };
        assert_eq!(steps(vec![refused(MAP), claim_of("two")]), [Step::Policy]);
        assert_eq!(steps(vec![refused(MAP), claim_of("three")]).len(), 2);
        assert_eq!(steps(vec![refused(MAP), claim_of("tw")]).len(), 2);
        assert_eq!(steps(vec![refused(ENTRY), claim_of("two")]).len(), 2);
    }

    #[test]
    fn a_rule_of_the_schema_that_no_policy_repeats_is_said_beside_another_of_its_code() {
        let of_interfaces = |step| Finding { code: "OSDN1804".to_owned(), ..finding(step, MAP) };
        assert_eq!(steps(vec![of_interfaces(Step::Schema), of_interfaces(Step::Policy)]).len(), 2);
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
