//! Which kinds have to be listed for their objects to be evaluated. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::binding::Binding;
use crate::contract::{Interest, Operation, Step};
use crate::lookup::is_secret;

/// What can be listed of what policies are about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subjects {
    /// Groups and kinds.
    pub kinds: BTreeSet<(String, String)>,
    /// Policies that are about any kind, which cannot be listed, with the reason in words.
    pub not_listed: BTreeMap<String, String>,
}

impl Subjects {
    /// The kinds that these policies evaluate when an object is created or updated. `served` has
    /// the kinds of a group, where a policy is about all of them.
    pub fn of<'b>(
        bindings: impl Iterator<Item = &'b Binding>,
        served: &dyn Fn(&str) -> Vec<String>,
    ) -> Self {
        let mut subjects = Self::default();
        for (binding, interest) in interests(bindings) {
            subjects.add(binding, interest, served);
        }
        // Whatever a policy may read of them, no list of Secrets is to hold their values.
        subjects.kinds.retain(|(group, kind)| !is_secret(group, kind));
        subjects
    }

    /// The groups of which these policies evaluate all kinds.
    pub fn whole_groups<'b>(bindings: impl Iterator<Item = &'b Binding>) -> BTreeSet<String> {
        let whole = interests(bindings)
            .filter(|(binding, one)| binding.scope.kinds.is_empty() && one.kind == "*");
        whole.map(|(_, one)| one.group.clone()).filter(|group| group != "*").collect()
    }

    fn add(
        &mut self,
        binding: &Binding,
        interest: &Interest,
        served: &dyn Fn(&str) -> Vec<String>,
    ) {
        let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
        let rules = &binding.scope.kinds;
        for rule in rules {
            if is(&interest.group, &rule.group) && is(&interest.kind, &rule.kind) {
                self.kinds.insert((rule.group.clone(), rule.kind.clone()));
            }
        }
        if !rules.is_empty() {
            return;
        }
        let Interest { group, kind, .. } = interest;
        if group == "*" {
            let why = "it is about kinds of any group; name the kinds in spec.kinds of the \
                AdmissionPolicy to have them checked";
            self.not_listed.insert(binding.name.clone(), why.to_owned());
        } else if kind == "*" {
            self.kinds.extend(served(group).into_iter().map(|kind| (group.clone(), kind)));
        } else {
            self.kinds.insert((group.clone(), kind.clone()));
        }
    }
}

/// What the policies judge when an object is created or updated.
fn interests<'b>(
    bindings: impl Iterator<Item = &'b Binding>,
) -> impl Iterator<Item = (&'b Binding, &'b Interest)> {
    bindings.flat_map(|binding| {
        let interests = binding.policy.metadata().interests.iter();
        interests.filter(|one| writes(one)).map(move |one| (binding, one))
    })
}

fn writes(interest: &Interest) -> bool {
    let operations = &interest.operations;
    interest.step == Step::Validate
        && (operations.contains(&Operation::Create) || operations.contains(&Operation::Update))
}
