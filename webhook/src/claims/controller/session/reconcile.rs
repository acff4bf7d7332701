//! What is done next about each claim and each object, and what follows from what the calls have shown:
//! decisions by what is known now, without a call. So many calls are under way at once, and each claim
//! is worked by one of them. Deliberately not here: the calls.

use opensdn_policy_host::Claim;
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::refusal::Change;
use super::release::{Inspected, Release};
use super::work::Urgency;
use super::{RETRY_DELAY, Session};
use crate::claims::Holder;
use crate::claims::cache::CachedClaim;
use crate::claims::error::ClaimError;
use crate::claims::ledger::{Action, Claimant, KnownObject, Mark, ObjectRef, ReleaseReason};
use crate::claims::store::Sharing;
use crate::policies::ClaimsProgress;

/// What has been done about a claim.
pub(super) type ClaimOutcome = Result<Step, ClaimError>;

/// How far a claim has got.
pub(super) enum Step {
    /// Nothing is left to be done, or the watch will show what.
    Done,
    /// It is written; no object had it.
    Taken,
    /// It is written; it named another UID, value or policy.
    Adopted,
    /// Its holder has been read.
    Inspected(Box<(Release, Inspected)>),
    /// It is this object's now.
    HandedOver(Box<(ObjectRef, KnownObject, Claim)>),
    /// It is not known whether an object needs it.
    NotKnown,
}

/// What has been done about an object.
pub(super) enum ObjectOutcome {
    /// Conflicts were reported on it.
    Reported(Result<(), CallError>),
    /// It was read and evaluated; before, it was outdated since then.
    Reread(Option<Mark>, Box<Result<Option<(ObjectRef, KnownObject)>, CallError>>),
}

impl Session<'_> {
    /// Starts what has to be done, as far as there is room for it.
    pub(super) fn start_work(&mut self) {
        while let Some(name) = self.ledger.pop() {
            if self.claims.contains(&name) {
                self.changed.insert(name);
            } else {
                self.plan(name);
            }
        }
        while self.refusals.may_write()
            && self.claims.has_room()
            && let Some(name) = self.queue.pop()
        {
            self.start_claim(name);
        }
        self.start_evaluations();
        self.start_reports();
    }

    fn action(&mut self, name: &str, seen: Option<&CachedClaim>) -> Action {
        let (grace, policies) = (self.calls.inner().grace, &self.calls.plan.policies);
        let unchanged = seen.map(|seen| seen.since.elapsed()).unwrap_or_default();
        self.ledger.action(name, seen, unchanged, grace, policies)
    }

    /// Puts the claim into the queue if there is something to be done about it.
    fn plan(&mut self, name: String) {
        let seen = self.calls.inner().cache.get(&name);
        let action = self.action(&name, seen.as_ref());
        self.note_unwritten(&name, &action);
        let urgency = match action {
            Action::Keep => None,
            Action::Wait(left) => {
                self.requeue(&name, left);
                None
            }
            Action::Take(_) | Action::Adopt(_) => Some(Urgency::NotWritten),
            Action::Release(ReleaseReason::Deleted) => Some(Urgency::HolderDeleted),
            Action::Release(_) => Some(Urgency::LeftBehind),
        };
        match urgency {
            Some(urgency) => self.queue.push(name, urgency),
            None => {
                self.queue.remove(&name);
                self.note(&name);
            }
        }
    }

    /// Notes whether the claim has to be written.
    fn note_unwritten(&mut self, name: &str, action: &Action) {
        let claimed = match action {
            Action::Take(claimant) | Action::Adopt(claimant) => {
                self.ledger.claim(&claimant.object_ref, name)
            }
            Action::Keep | Action::Wait(_) | Action::Release(_) => None,
        };
        match claimed {
            Some(claim) => self.refusals.is_unwritten(name, &claim.policy),
            None => self.refusals.is_settled(name),
        }
    }

    /// Starts what has to be done about a claim whose turn it is, by what is known now.
    fn start_claim(&mut self, name: String) {
        let (calls, seen) = (self.calls, self.calls.inner().cache.get(&name));
        match (self.action(&name, seen.as_ref()), seen) {
            (Action::Take(claimant), _) => self.start_write(name, &claimant, None),
            (Action::Adopt(claimant), seen) => self.start_write(name, &claimant, seen),
            (Action::Release(reason), Some(seen)) => {
                let release = Release { name: name.clone(), seen, reason };
                self.claims.start(name, async move {
                    let inspected = calls.inspect(&release).await?;
                    Ok(Step::Inspected(Box::new((release, inspected))))
                });
            }
            // Nothing any more.
            (Action::Keep | Action::Wait(_) | Action::Release(_), _) => self.plan(name),
        }
    }

    fn start_write(&mut self, name: String, claimant: &Claimant, seen: Option<CachedClaim>) {
        let Some((holder, claim)) = self.wanted(&name, claimant) else {
            self.refusals.is_settled(&name);
            self.settle(&name);
            return;
        };
        let calls = self.calls;
        let is_shared = self.ledger.is_shared(&name, &claimant.object_ref);
        let sharing = if is_shared { Sharing::WithOthers } else { Sharing::Alone };
        self.claims.start(name.clone(), async move {
            calls.write(&name, &holder, (&claim, sharing), seen.as_ref()).await
        });
    }

    fn wanted(&self, name: &str, claimant: &Claimant) -> Option<(Holder, Claim)> {
        let known = self.ledger.known(&claimant.object_ref)?;
        let claim = self.ledger.claim(&claimant.object_ref, name)?;
        Some((claimant.holder(&known.version), claim.clone()))
    }

    /// Takes in what has been done about a claim.
    pub(super) fn finish_claim(&mut self, name: String, outcome: ClaimOutcome) {
        match outcome {
            Ok(Step::Done) => self.refusals.is_settled(&name),
            Ok(Step::Taken) => {
                self.taken += 1;
                if let Some(policy) = self.refusals.is_written(&name) {
                    let now = OffsetDateTime::now_utc();
                    self.say(|progress| progress.found_unclaimed(&policy, now));
                }
            }
            Ok(Step::Adopted) => {
                self.taken += 1;
                self.refusals.is_written(&name);
            }
            Ok(Step::Inspected(inspected)) => {
                if self.go_on(&inspected.0, &inspected.1) {
                    return;
                }
            }
            Ok(Step::HandedOver(heir)) => {
                let (object_ref, known, claim) = *heir;
                if self.put_read(&object_ref, known) {
                    self.ledger.add_claim(&object_ref, &name, &claim);
                }
            }
            Ok(Step::NotKnown) => self.requeue(&name, RETRY_DELAY),
            Err(error) => {
                if let ClaimError::Call(error) = &error {
                    self.refusals.failed(&name, error, Instant::now());
                }
                // That claims are refused is logged once, whatever their number.
                let error = error_chain(&error);
                tracing::debug!(claim = name, error, "failed to reconcile a claim; will retry");
                self.requeue(&name, RETRY_DELAY);
            }
        }
        self.settle(&name);
    }

    /// Nothing is under way any more for this claim.
    fn settle(&mut self, name: &str) {
        if self.changed.remove(name) {
            self.ledger.touch([name.to_owned()]);
        }
        self.note(name);
    }

    fn note(&mut self, name: &str) {
        let seen = self.calls.inner().cache.get(name);
        let holder = seen.map(|seen| ObjectRef::of(&seen.spec.holder));
        self.conflicts.note(&self.ledger, name, holder.as_ref());
    }

    /// From now on no new object can take a key that an older one has, by these policies.
    pub(super) fn say_claimed(&self) {
        self.say(|progress| progress.are_left(|policy| self.refusals.are_left_of(policy)));
        let are_written = self.refusals.are_all_written() && self.refusals.may_write();
        if are_written && self.not_evaluated.is_empty() {
            let number = Some(self.calls.plan.number);
            self.say(|progress| progress.claimed = number);
        }
    }

    /// Logs how many claims of stored objects were written, once they are.
    pub(super) fn say_taken(&mut self) {
        if self.taken > 0 {
            tracing::info!(claims = self.taken, "took claims for stored objects");
            self.taken = 0;
        }
    }

    /// Says whether the API server takes claims. What the session before has found holds until this one
    /// knows.
    pub(super) fn say_refused(&mut self) {
        match self.refusals.change() {
            Some(Change::Refused { error, waiting }) => {
                tracing::warn!(error, waiting, "failed to write claims; will retry");
            }
            Some(Change::Taken { waiting }) => {
                tracing::info!(waiting, "claims can be written again");
            }
            None => {}
        }
        if let Some(reason) = self.refusals.reason() {
            self.say(|progress| progress.is_refused(reason));
        }
    }

    fn say(&self, change: impl FnOnce(&mut ClaimsProgress)) {
        self.calls.controller.progress.send_if_modified(|progress| {
            let before = progress.clone();
            change(progress);
            *progress != before
        });
    }

    /// Asks whether a claim could be written, where there may be any to write.
    pub(super) fn start_probe(&mut self) {
        if !self.calls.plan.resources.is_empty() {
            let calls = self.calls;
            self.probes.start((), async move { calls.probe().await });
        }
    }

    fn start_evaluations(&mut self) {
        let calls = self.calls;
        while self.objects.has_room()
            && let Some(object_ref) = self.to_evaluate.pop_first()
        {
            let Some(known) = self.ledger.known(&object_ref) else { continue };
            let held = object_ref.held(known, None);
            let mark = self.ledger.mark_of(&object_ref);
            self.objects.start(object_ref, async move {
                ObjectOutcome::Reread(mark, Box::new(calls.reread(&held).await))
            });
        }
    }

    /// Reports conflicts on the objects of which no claim is about to change.
    fn start_reports(&mut self) {
        let calls = self.calls;
        while self.objects.has_room() {
            let is_settled = |object_ref: &ObjectRef| {
                let known = self.ledger.known(object_ref);
                let claims = known.and_then(|known| known.claims.as_ref());
                let mut names = claims.into_iter().flat_map(|claims| claims.keys());
                !self.objects.contains(object_ref)
                    && !names.any(|name| self.queue.contains(name) || self.claims.contains(name))
            };
            let Some((object_ref, conflicts)) = self.conflicts.next_unreported(is_settled) else {
                return;
            };
            let Some(known) = self.ledger.known(&object_ref).cloned() else { continue };
            let held = object_ref.held(&known, None);
            self.objects.start(object_ref, async move {
                ObjectOutcome::Reported(calls.report(&held, &known, &conflicts).await)
            });
        }
    }

    /// Takes in what has been done about an object.
    pub(super) fn finish_object(&mut self, object_ref: ObjectRef, outcome: ObjectOutcome) {
        let (kind, name) = (&object_ref.kind, &object_ref.name);
        match outcome {
            ObjectOutcome::Reported(Ok(())) => {}
            ObjectOutcome::Reported(Err(error)) => {
                let error = error_chain(&error);
                tracing::warn!(kind, name, error, "failed to report conflict; will retry");
                self.unreported.insert(object_ref);
                self.due.entry(Instant::now() + RETRY_DELAY).or_default();
            }
            ObjectOutcome::Reread(mark, read) => match *read {
                Ok(Some((found, known))) => {
                    if self.put_read(&found, known)
                        && let Some(mark) = mark
                    {
                        self.ledger.evaluated_again(&found, mark);
                    }
                }
                // The watch will report that it is gone.
                Ok(None) => {}
                Err(error) => {
                    let error = error_chain(&error);
                    tracing::debug!(
                        kind,
                        name,
                        error,
                        "failed to read an object to evaluate it again"
                    );
                    self.not_evaluated.insert(object_ref);
                }
            },
        }
    }
}
