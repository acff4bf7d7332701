//! All policies in force: which of them a request concerns, what they say together.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use crate::{
    binding::{Binding, interest},
    contract::{Severity, Step, wire},
    lookup::Lookup,
    patch::{self, Merging},
    policy::Call,
    request::Request,
    scan::{Document, Paths, Slot},
    slots::SlotClass,
    text::{shorten, shown},
    verdict::{
        Claim, EvalFailure, Evaluation, FailureMode, FailureReason, Finding, Mode, Mutation,
        Outcome, UnappliedPatch, Verdict,
    },
};

mod inactive;
mod ratchet;
mod seen;

pub use inactive::InactivePolicy;
pub use ratchet::{NEVER_RATCHETS, TELLS_ABSENCE, absent_kinds, ratchet};
pub use seen::{Part, Seen};

/// Labels of more text match every selector: as a map they are several times that, and in a cluster an object as a
/// whole has some 1.5 MB.
const LARGEST_LABELS: usize = 1 << 20;

/// All policies in force. It never changes; another one takes its place.
#[derive(Clone, Debug, Default)]
pub struct PolicySet {
    entries: Vec<Entry>,
    inactive: Vec<InactivePolicy>,
    paths: Paths,
    labels: Option<Slot>,
    closed_groups: Vec<String>,
}

#[derive(Clone, Debug)]
struct Entry {
    binding: Binding,
    /// Per interest of the policy, the slot of each part that it reads.
    slots: Vec<Vec<Slot>>,
}

/// What an evaluation may use besides the request.
#[derive(Clone)]
pub struct Context {
    /// Answers lookups.
    pub lookup: Arc<dyn Lookup>,
    /// When the answer must be there.
    pub deadline: Instant,
    /// Whether no request waits for it: then it leaves alone what is kept for those.
    pub is_background: bool,
}

/// A policy that a request concerns.
struct Match<'s> {
    number: usize,
    entry: &'s Entry,
    interest: usize,
}

impl PolicySet {
    /// Puts these policies in force. For the kinds of `closed_groups` an inconclusive policy
    /// refuses the request, for all others it does not, unless its binding says otherwise.
    #[must_use]
    pub fn new(mut bindings: Vec<Binding>, closed_groups: Vec<String>) -> Self {
        bindings.sort_by(|one, other| one.name.cmp(&other.name));
        let mut paths = Paths::new();
        let labels = Some(paths.want("/metadata/labels"));
        let entries = bindings
            .into_iter()
            .map(|binding| {
                let interests = &binding.policy.metadata().interests;
                let mut slots = Vec::new();
                for interest in interests {
                    slots.push(interest.reads.iter().map(|pointer| paths.want(pointer)).collect());
                }
                Entry { slots, binding }
            })
            .collect();
        Self { entries, inactive: Vec::new(), paths, labels, closed_groups }
    }

    /// With policies that should judge too and cannot: what they are about is inconclusive.
    #[must_use]
    pub fn with_inactive(mut self, mut inactive: Vec<InactivePolicy>) -> Self {
        inactive.sort_by(|one, other| one.name.cmp(&other.name));
        self.inactive = inactive;
        self
    }

    /// The policies that should judge and cannot, in the order of their names.
    #[must_use]
    pub fn inactive(&self) -> &[InactivePolicy] {
        &self.inactive
    }

    /// What a scan must look for in an object that this set is to judge.
    #[must_use]
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The policies in force, in the order of their names.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.entries.iter().map(|entry| &entry.binding)
    }

    /// Whether any policy would be evaluated on the request.
    #[must_use]
    pub fn concerns(&self, step: Step, request: &Request<'_>) -> bool {
        self.matches(step, request).next().is_some()
            || (step == Step::Validate && self.inactive_for(request).next().is_some())
    }

    /// Runs every validating policy that the request concerns and reports all that they find.
    pub async fn evaluate(&self, request: &Request<'_>, context: &Context) -> Verdict {
        let mut verdict = Verdict::default();
        for matched in self.matches(Step::Validate, request) {
            let started = Instant::now();
            let Entry { binding, .. } = matched.entry;
            let call = self.call(binding, request, context);
            let parts = matched.parts(request);
            let wire = matched.request(request, &parts);
            let result = binding.policy.validate(call, wire, &binding.settings).await;
            let outcome = match result {
                Ok(said) => add(&mut verdict, binding, said),
                Err(reason) => {
                    verdict.failures.push(self.failure_of(binding, request, reason));
                    Outcome::Failed
                }
            };
            let duration = started.elapsed();
            verdict.evaluations.push(Evaluation { binding: matched.number, duration, outcome });
        }
        verdict.failures.extend(self.inactive_for(request).map(|policy| {
            let reason = FailureReason::Inactive(policy.why.clone());
            self.failure(&policy.name, policy.mode, policy.failure_mode, request, reason)
        }));
        verdict.claims.sort();
        verdict.claims.dedup_by(|one, other| one.scope == other.scope && one.key == other.key);
        verdict
    }

    /// Runs every mutating policy that the request concerns and merges their patches.
    pub async fn mutate(&self, request: &Request<'_>, context: &Context) -> Mutation {
        let mut mutation = Mutation::default();
        let mut merging = None;
        for matched in self.matches(Step::Mutate, request) {
            let started = Instant::now();
            let Entry { binding, .. } = matched.entry;
            let call = self.call(binding, request, context);
            let parts = matched.parts(request);
            let wire = matched.request(request, &parts);
            let patch = binding.policy.mutate(call, wire, &binding.settings).await;
            let patch = patch.and_then(|asked| accept(asked, request, binding, &mut merging));
            let outcome = match patch {
                Ok(patch) if patch.0.is_empty() => Outcome::Passed,
                Ok(_) if binding.mode == Mode::Enforce => Outcome::Reported,
                Ok(patch) => {
                    let (policy, mode) = (binding.name.clone(), binding.mode);
                    mutation.unapplied.push(UnappliedPatch { policy, mode, patch });
                    Outcome::Reported
                }
                Err(reason) => {
                    mutation.failures.push(self.failure_of(binding, request, reason));
                    Outcome::Failed
                }
            };
            let duration = started.elapsed();
            mutation.evaluations.push(Evaluation { binding: matched.number, duration, outcome });
        }
        mutation.patch = merging.map(Merging::merged).unwrap_or_default();
        mutation
    }

    fn matches<'s>(
        &'s self,
        step: Step,
        request: &'s Request<'_>,
    ) -> impl Iterator<Item = Match<'s>> {
        self.entries.iter().enumerate().filter_map(move |(number, entry)| {
            let interests = &entry.binding.policy.metadata().interests;
            let interest = interest(interests, step, request)?;
            let covered = entry.binding.scope.covers(request, || self.labels(request));
            covered.then_some(Match { number, entry, interest })
        })
    }

    /// The labels of the object and of the old object, as far as there are any; `None` where they are more than
    /// is read.
    fn labels(&self, request: &Request<'_>) -> Option<Vec<BTreeMap<String, String>>> {
        let read = |document: &Document<'_>| {
            let labels = self.labels.and_then(|slot| document.part(slot)).unwrap_or("{}");
            let is_read = labels.len() <= LARGEST_LABELS;
            is_read.then(|| serde_json::from_str(labels).unwrap_or_default())
        };
        request.object.iter().chain(&request.old_object).map(read).collect()
    }

    /// An object of a closed group is refused where no slot becomes free, so those have slots that
    /// no other can take.
    fn call(&self, binding: &Binding, request: &Request<'_>, context: &Context) -> Call {
        let class = match self.is_closed(request.group) && !context.is_background {
            true => SlotClass::Kept,
            false => SlotClass::Shared,
        };
        let Context { deadline, .. } = *context;
        Call { limits: binding.limits, class, deadline, lookup: Arc::clone(&context.lookup) }
    }

    /// The policies that should judge the request and cannot. One refusal is enough, so they are
    /// asked for in the validating step only, whichever they have.
    fn inactive_for<'s>(
        &'s self,
        request: &'s Request<'_>,
    ) -> impl Iterator<Item = &'s InactivePolicy> {
        let labels = || self.labels(request);
        self.inactive
            .iter()
            .filter(move |policy| policy.concerns(request, &self.closed_groups, labels))
    }

    fn failure_of(
        &self,
        binding: &Binding,
        request: &Request<'_>,
        reason: FailureReason,
    ) -> EvalFailure {
        self.failure(&binding.name, binding.mode, binding.failure_mode, request, reason)
    }

    fn failure(
        &self,
        policy: &str,
        mode: Mode,
        failure_mode: Option<FailureMode>,
        request: &Request<'_>,
        reason: FailureReason,
    ) -> EvalFailure {
        let default = match self.is_closed(request.group) {
            true => FailureMode::Fail,
            false => FailureMode::Ignore,
        };
        EvalFailure {
            policy: policy.to_owned(),
            mode,
            failure_mode: failure_mode.unwrap_or(default),
            reason: reason.shortened(),
        }
    }

    fn is_closed(&self, group: &str) -> bool {
        self.closed_groups.iter().any(|closed| closed == group)
    }
}

/// What a policy sees of a request as lists, which its record only borrows.
struct Parts<'r> {
    groups: Vec<&'r str>,
    object: Vec<Option<&'r str>>,
    old_object: Vec<Option<&'r str>>,
}

impl Match<'_> {
    /// Only the parts that the policy declared.
    fn parts<'r>(&self, request: &'r Request<'_>) -> Parts<'r> {
        let slots = self.entry.slots.get(self.interest).map(Vec::as_slice).unwrap_or_default();
        let of = |document: &Document<'r>| slots.iter().map(|slot| document.part(*slot)).collect();
        Parts {
            groups: request.groups.iter().map(String::as_str).collect(),
            object: request.object.as_ref().map(of).unwrap_or_default(),
            old_object: request.old_object.as_ref().map(of).unwrap_or_default(),
        }
    }

    /// The request as the policy sees it.
    fn request<'r>(&self, request: &'r Request<'_>, parts: &'r Parts<'r>) -> wire::Request<'r> {
        wire::Request {
            operation: request.operation.into(),
            interest: u32::try_from(self.interest).unwrap_or(u32::MAX),
            group: request.group,
            version: request.version,
            kind: request.kind,
            subresource: request.subresource,
            name: request.name,
            namespace: request.namespace,
            user: request.user,
            groups: &parts.groups,
            dry_run: request.dry_run,
            object: &parts.object,
            old_object: &parts.old_object,
        }
    }
}

fn add(verdict: &mut Verdict, binding: &Binding, said: wire::Verdict) -> Outcome {
    let outcome = if said.findings.is_empty() { Outcome::Passed } else { Outcome::Reported };
    verdict.findings.extend(findings(binding, said.findings));
    if binding.mode == Mode::Enforce {
        verdict.claims.extend(said.claims.into_iter().map(|claim| {
            let (scope, key, value) = shared(claim.scope, claim.key);
            let policy = binding.name.clone();
            Claim { scope, key, value, pointer: claim.pointer, policy, code: claim.code }
        }));
    }
    outcome
}

/// Scope, key and value of a claim. The scope is the policy's, and never what a user wrote, so that a key does not
/// become a shared one by what is in it.
fn shared(scope: String, key: String) -> (String, String, Option<String>) {
    let Some(plain) = scope.strip_suffix(";shared") else { return (scope, key, None) };
    match key.split_once('\u{1f}') {
        Some((key, value)) => (plain.to_owned(), key.to_owned(), Some(value.to_owned())),
        None => (plain.to_owned(), key, None),
    }
}

fn findings(binding: &Binding, said: Vec<wire::Finding>) -> impl Iterator<Item = Finding> {
    said.into_iter().map(|finding| Finding {
        policy: binding.name.clone(),
        mode: binding.mode,
        code: finding.code,
        severity: Severity::from(finding.severity),
        pointer: shorten(finding.pointer),
        message: shown(finding.message),
        hint: shown(finding.hint),
    })
}

/// The patch that a policy asks for; one that enforces gets it, if it fits the object and no
/// other policy changes the same place differently.
fn accept<'b>(
    operations: Vec<wire::PatchOperation>,
    request: &Request<'_>,
    binding: &'b Binding,
    merging: &mut Option<Merging<'b>>,
) -> Result<json_patch::Patch, FailureReason> {
    if operations.is_empty() {
        return Ok(json_patch::Patch::default());
    }
    let patch = patch::read(operations).map_err(FailureReason::BadReply)?;
    let Some(object) = &request.object else {
        return Err(FailureReason::BadPatch("there is no object to change".to_owned()));
    };
    let merging = match merging {
        Some(merging) => merging,
        None => merging.insert(Merging::of(object.text()).map_err(FailureReason::BadPatch)?),
    };
    let fitting = merging.fit(&patch).map_err(FailureReason::BadPatch)?;
    if binding.mode == Mode::Enforce {
        merging.take(&binding.name, patch.clone(), fitting);
    }
    Ok(patch)
}
