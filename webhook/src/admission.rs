//! AdmissionReview (admission.k8s.io/v1) on the outside, requests and verdicts on the inside. No
//! other file knows what an AdmissionReview looks like.
//!
//! A review is never parsed into a tree: one scan finds the envelope's fields and what the
//! policies in force declared, and refuses what could be read in two ways. Every end of a review,
//! a fault of ours included, is an answer with status 200.

mod answer;
mod groups;
mod members;
mod owner_lag;
mod review;
mod text;
mod unjudged;

#[cfg(all(test, not(target_env = "musl")))]
mod allocated;
#[cfg(test)]
mod tests;

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use opensdn_admission_policy::{Fault, Problem};
use opensdn_policy_host::{
    Claim, Context, EvalFailure, FailureMode, Finding, Mutation, Outcome, Severity, Step, Verdict,
    lookup::Lookup, ratchet,
};
use tokio::time::Instant;

use crate::{
    active::{ActivePolicies, ActiveSet},
    claims::Holder,
    metrics::{self, Metrics},
    server::{Call, Reviewer},
};
use answer::{Answer, Decision};
use owner_lag::OwnerLag;
use review::{Review, Unreadable};

/// What the review needs from the rest of the webhook, besides policies and lookups.
pub trait ReviewBackend: Send + Sync + 'static {
    /// Takes the claims, all or none; what prevents it is returned as a finding or failure.
    /// Called only when every policy has allowed the request. `old` are those that the stored
    /// object makes.
    fn claim(
        &self,
        holder: Holder,
        claims: Vec<Claim>,
        old: Vec<Claim>,
        purpose: Purpose,
        deadline: Instant,
    ) -> impl Future<Output = Claimed> + Send;

    /// What is wrong with an AdmissionPolicy, given as JSON text.
    fn check_policy(&self, object: &str) -> impl Future<Output = Vec<Finding>> + Send;

    /// Labels of a namespace, if they are known.
    fn namespace_labels(&self, namespace: &str) -> Option<Arc<Labels>>;

    /// Answers the lookups of policies.
    fn lookup(&self) -> Arc<dyn Lookup>;
}

/// Labels of an object.
pub type Labels = std::collections::BTreeMap<String, String>;

/// What claims are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing will be stored.
    DryRun,
    /// A create, which the API server refuses if an object of that name is stored.
    Create,
    /// A write that stores the object whether it is there or not: an update, a server-side apply.
    Write,
}

/// What came of taking claims.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// Keys that another object holds.
    pub findings: Vec<Finding>,
    /// The UIDs of the objects that hold them.
    pub held_by: Vec<Option<String>>,
    /// Claims that could not be taken for another reason.
    pub failures: Vec<EvalFailure>,
    /// An object of that name is stored: no claim was taken, as the create cannot succeed.
    pub name_is_taken: bool,
}

/// An AdmissionPolicy is read as a whole, and as a tree its settings can become sixteen times as
/// large.
const LARGEST_ADMISSION_POLICY: usize = 1 << 20;

/// Reviews requests by the policies in force.
pub struct Admission<S> {
    active: Arc<ActivePolicies>,
    backend: S,
    metrics: Metrics,
    owner_lag: OwnerLag,
}

impl<S: ReviewBackend> Admission<S> {
    /// Reviews by the `active` policies.
    pub fn new(active: Arc<ActivePolicies>, backend: S, metrics: Metrics) -> Self {
        Self { active, backend, metrics, owner_lag: OwnerLag::default() }
    }

    async fn decide(
        &self,
        current: &ActiveSet,
        review: &Review<'_>,
        step: Step,
        deadline: Instant,
    ) -> Decision {
        if review.passes_unjudged() {
            return Decision::default();
        }
        let labels = self.backend.namespace_labels(review.namespace());
        let labels = labels.as_deref();
        let context = Context { lookup: self.backend.lookup(), deadline, is_background: false };
        match step {
            // A module could switch it on again.
            Step::Mutate if review.switches_policy_off() => Decision::default(),
            Step::Mutate => {
                let mutation = current.set.mutate(&review.request(labels), &context).await;
                count(current, &mutation.evaluations, &mutation.failures);
                from_mutation(mutation)
            }
            Step::Validate => self.validate(current, review, labels, &context).await,
        }
    }

    async fn validate(
        &self,
        current: &ActiveSet,
        review: &Review<'_>,
        labels: Option<&Labels>,
        context: &Context,
    ) -> Decision {
        let may_claim = current.set.bindings().any(|one| one.policy.metadata().claims);
        let mut retry = self.owner_lag.begin(review.controller_uid());
        loop {
            let mut verdict = self.judge(current, review, labels, context).await;
            let old = match review.request_of_old(labels) {
                Some(old)
                    if !verdict.denies()
                        && (!verdict.claims.is_empty()
                            || (may_claim && review.is_no_more_shown_whole())) =>
                {
                    current.set.evaluate(&old, context).await.claims
                }
                _ => Vec::new(),
            };
            let claimed = self.take_claims(review, &mut verdict, old, context.deadline).await;
            if !retry.wait(&claimed.held_by, context.deadline).await {
                let name_is_taken = claimed.name_is_taken;
                let decision = Decision::of(verdict.findings, verdict.failures);
                return Decision { name_is_taken, ..decision };
            }
        }
    }

    /// What policies say, with the claims that are to be taken if none of them refuses.
    async fn judge(
        &self,
        current: &ActiveSet,
        review: &Review<'_>,
        labels: Option<&Labels>,
        context: &Context,
    ) -> Verdict {
        let request = review.request(labels);
        let mut verdict = current.set.evaluate(&request, context).await;
        count(current, &verdict.evaluations, &verdict.failures);
        current.set.ratchet(&mut verdict, &request, context).await;
        verdict.findings.extend(self.check_policy(review).await);
        if review.switches_policy_off() {
            only_warn(&mut verdict);
        }
        verdict
    }

    /// What is wrong with the object, if it is an AdmissionPolicy, and was not before.
    async fn check_policy(&self, review: &Review<'_>) -> Vec<Finding> {
        let Some(object) = review.admission_policy() else { return Vec::new() };
        if object.len() > LARGEST_ADMISSION_POLICY {
            let message = format!("it is larger than {} KiB", LARGEST_ADMISSION_POLICY >> 10);
            let hint = "keep the settings small; a module belongs into a ConfigMap or a file";
            return vec![Problem::new(Fault::Unreadable, "", message, hint).finding()];
        }
        let mut findings = self.backend.check_policy(object).await;
        let old = review.old_admission_policy();
        if let Some(old) = old.filter(|_| findings.iter().any(Finding::denies)) {
            let stored = self.backend.check_policy(old).await;
            ratchet(&mut findings, &stored, object, old);
        }
        findings
    }

    /// What is in the way is in the verdict, too.
    async fn take_claims(
        &self,
        review: &Review<'_>,
        verdict: &mut Verdict,
        old: Vec<Claim>,
        deadline: Instant,
    ) -> Claimed {
        let claims = std::mem::take(&mut verdict.claims);
        // What it needs it had already. Its owner may have the claim, and wait to go until this is written;
        // the claim controller hands it over then.
        if review.changes_only_owners() {
            return Claimed::default();
        }
        if let Some(finding) = review.why_nothing_is_kept(claims.first().or(old.first())) {
            verdict.findings.push(finding);
            return Claimed::default();
        }
        let Some(holder) = review.holder().filter(|_| !claims.is_empty() && !verdict.denies())
        else {
            return Claimed::default();
        };
        let mut claimed = self.backend.claim(holder, claims, old, review.purpose(), deadline).await;
        verdict.findings.append(&mut claimed.findings);
        verdict.failures.append(&mut claimed.failures);
        claimed
    }

    fn record(&self, review: &Review<'_>, step: Step, decision: &Decision) {
        let verdict = if decision.denies() {
            if decision.name_is_taken || decision.findings.iter().any(Finding::denies) {
                metrics::Verdict::Denied
            } else {
                metrics::Verdict::Failed
            }
        } else if decision.is_silent() {
            metrics::Verdict::Allowed
        } else {
            metrics::Verdict::Warned
        };
        let (group, kind) = review.group_and_kind();
        self.metrics.kind_of(group, kind).reviewed(step, review.operation(), verdict);
        review.log(step, verdict, decision);
    }
}

impl<S: ReviewBackend> Reviewer for Admission<S> {
    async fn review(&self, call: Call) -> Bytes {
        let current = self.active.snapshot();
        let found = match review::scan(&call.body, &current) {
            Ok(found) => found,
            Err(unreadable) => return unreadable.answer(),
        };
        let review = match Review::read(&found, &current.places) {
            Ok(review) => review,
            Err(unreadable) => return unreadable.answer(),
        };
        if let Some(unreadable) = review.too_deep().filter(|_| !review.passes_unjudged()) {
            return unreadable.answer();
        }
        let decision = self.decide(&current, &review, call.step, call.deadline).await;
        self.record(&review, call.step, &decision);
        Answer { review: &review, step: call.step, decision }.into_bytes()
    }

    fn too_large(&self, prefix: &[u8]) -> Bytes {
        Unreadable::too_large(prefix).answer()
    }
}

/// To switch a policy off is never refused, no matter who says so: else a policy about AdmissionPolicies
/// could keep itself in force.
fn only_warn(verdict: &mut Verdict) {
    for finding in verdict.findings.iter_mut().filter(|finding| finding.denies()) {
        finding.severity = Severity::Warn;
    }
    for failure in &mut verdict.failures {
        failure.failure_mode = FailureMode::Ignore;
    }
    verdict.claims.clear();
}

fn from_mutation(mutation: Mutation) -> Decision {
    let mut decision = Decision::of(Vec::new(), mutation.failures);
    decision.patch = mutation.patch;
    decision.unapplied = mutation.unapplied;
    decision
}

fn count(
    current: &ActiveSet,
    evaluations: &[opensdn_policy_host::Evaluation],
    failures: &[EvalFailure],
) {
    for evaluation in evaluations {
        let Some(metrics) = current.metrics.get(evaluation.binding) else { continue };
        let verdict = match evaluation.outcome {
            Outcome::Passed => metrics::Verdict::Allowed,
            Outcome::Reported => metrics::Verdict::Denied,
            Outcome::Failed => metrics::Verdict::Failed,
        };
        metrics.evaluated(verdict, evaluation.duration);
    }
    for failure in failures {
        let binding = current.set.bindings().position(|binding| binding.name == failure.policy);
        if let Some(metrics) = binding.and_then(|number| current.metrics.get(number)) {
            metrics.failed(failure.reason.category());
        }
    }
}
