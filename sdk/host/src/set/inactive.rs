//! Policies that should judge requests and cannot, because their module could not be loaded. What
//! such a policy is about is inconclusive, so its failure mode decides: never a pass by silence.

use std::collections::BTreeMap;

use crate::{
    binding::Scope,
    contract::{Interest, Operation},
    request::Request,
    verdict::{FailureMode, Mode},
};

/// A policy that should judge requests and cannot.
#[derive(Clone, Debug, PartialEq)]
pub struct InactivePolicy {
    /// Name of the AdmissionPolicy, unique in a set.
    pub name: String,
    /// What its findings would do.
    pub mode: Mode,
    /// What becomes of a request that it cannot judge; by default that depends on the kind's group.
    pub failure_mode: Option<FailureMode>,
    /// Which requests it would see.
    pub scope: Scope,
    /// What its module said of itself when it was last loaded. `None`: it never was, so that it is
    /// about the kinds of its scope or, where that names none, about all kinds of the closed groups.
    pub interests: Option<Vec<Interest>>,
    /// Groups and kinds that it does not see whatever it is about: those by which it is repaired.
    pub never: Vec<(String, String)>,
    /// Why it cannot judge, and what to do.
    pub why: String,
}

impl InactivePolicy {
    /// Whether the policy would judge the request, in whichever step.
    pub(super) fn concerns(
        &self,
        request: &Request<'_>,
        closed_groups: &[String],
        labels: impl Fn() -> Option<Vec<BTreeMap<String, String>>>,
    ) -> bool {
        let is_subresource = !request.subresource.is_empty();
        if is_subresource && request.operation != Operation::Connect {
            return false;
        }
        let repairs =
            self.never.iter().any(|(group, kind)| group == request.group && kind == request.kind);
        !repairs && self.is_about(request, closed_groups) && self.scope.covers(request, labels)
    }

    fn is_about(&self, request: &Request<'_>, closed_groups: &[String]) -> bool {
        let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
        match &self.interests {
            Some(interests) => interests.iter().any(|interest| {
                is(&interest.group, request.group)
                    && is(&interest.kind, request.kind)
                    && interest.operations.contains(&request.operation)
            }),
            None if self.scope.kinds.is_empty() => {
                closed_groups.iter().any(|group| group == request.group)
            }
            // The scope says it.
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, FailureReason, InactivePolicy, Interest, KindRule, Mode, Operation, PolicySet,
        Request, Scope, Step, lookup::NoLookup, request::tests::request, verdict::EvalFailure,
    };
    use std::{sync::Arc, time::Duration};
    use tokio::time::Instant;

    fn inactive() -> InactivePolicy {
        InactivePolicy {
            name: "lost".into(),
            mode: Mode::Enforce,
            failure_mode: None,
            scope: Scope::default(),
            interests: None,
            never: vec![("ours".into(), "Policy".into())],
            why: "its file is gone".into(),
        }
    }

    async fn failures(policy: InactivePolicy, request: &Request<'_>) -> Vec<EvalFailure> {
        let set = PolicySet::new(Vec::new(), vec!["ours".into()]).with_inactive(vec![policy]);
        let deadline = Instant::now() + Duration::from_secs(60);
        let verdict = set
            .evaluate(
                request,
                &Context { lookup: Arc::new(NoLookup), deadline, is_background: false },
            )
            .await;
        assert_eq!(set.concerns(Step::Validate, request), !verdict.failures.is_empty());
        verdict.failures
    }

    #[tokio::test]
    async fn a_policy_of_which_nothing_is_known_refuses_the_closed_groups_but_not_its_repair() {
        let refused = failures(inactive(), &request("ours", "Thing", Operation::Delete)).await;
        assert!(refused[0].denies());
        assert_eq!(refused[0].reason, FailureReason::Inactive("its file is gone".into()));
        for (group, kind) in [("others", "Thing"), ("ours", "Policy")] {
            let request = request(group, kind, Operation::Create);
            assert_eq!(failures(inactive(), &request).await, [], "{group}/{kind}");
        }
    }

    #[tokio::test]
    async fn what_its_administrator_or_its_module_named_is_inconclusive_and_nothing_else() {
        let rule = KindRule {
            group: "others".into(),
            version: None,
            kind: "Thing".into(),
            operations: vec![Operation::Create],
        };
        let scope = Scope { kinds: vec![rule], ..Scope::default() };
        let named = InactivePolicy { scope, ..inactive() };
        let interest = Interest {
            step: Step::Mutate,
            group: "others".into(),
            kind: "Thing".into(),
            operations: vec![Operation::Create],
            reads: vec![String::new()],
        };
        let known = InactivePolicy { interests: Some(vec![interest]), ..inactive() };
        for policy in [named, known] {
            let create = request("others", "Thing", Operation::Create);
            let warned = failures(policy.clone(), &create).await;
            assert!(warned.len() == 1 && !warned[0].denies(), "its group is open: {warned:?}");
            for (group, kind, operation) in [
                ("others", "Thing", Operation::Delete),
                ("others", "Other", Operation::Create),
                ("ours", "Thing", Operation::Create),
            ] {
                let request = request(group, kind, operation);
                assert_eq!(failures(policy.clone(), &request).await, [], "{group}/{kind}");
            }
        }
    }

    #[tokio::test]
    async fn who_is_exempt_from_the_policy_is_exempt_when_it_is_lost() {
        let mut policy = inactive();
        policy.scope.exemptions.namespaces = vec!["ns".into()];
        let request = request("ours", "Thing", Operation::Create);
        assert_eq!(failures(policy, &request).await, []);
    }
}
