//! The calls about one claim or one object, which several of run at once: nothing of what they are
//! given changes meanwhile. How a claim is given up is in `release.rs`. Deliberately not here: when
//! they are made, and what follows.

use std::collections::BTreeMap;

use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_policy_host::Claim;
use opensdn_policy_host::stored::{EvaluateAs, StoredObject};
use opensdn_runtime::call::CallError;
use opensdn_runtime::levels;
use serde_json::Value;

use super::ClaimController;
use super::reconcile::Step;
use crate::claims::cache::CachedClaim;
use crate::claims::controller::Plan;
use crate::claims::decide::claim_name;
use crate::claims::error::ClaimError;
use crate::claims::ledger::{KnownObject, ObjectRef};
use crate::claims::owner::Owner;
use crate::claims::report::{self, Conflicts};
use crate::claims::store::{self, Lock, Sharing};
use crate::claims::{Holder, Inner};

/// What all calls share.
#[derive(Clone, Copy)]
pub(super) struct Calls<'k> {
    pub(super) controller: &'k ClaimController,
    pub(super) plan: &'k Plan,
}

impl<'k> Calls<'k> {
    pub(super) fn inner(self) -> &'k Inner {
        &self.controller.claims.inner
    }

    /// What is known of an object when it has been evaluated; `None` if it is none.
    pub(super) async fn evaluate(self, object: &Value) -> Option<(ObjectRef, KnownObject)> {
        let stored = StoredObject::read(object)?;
        let resource_version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let known = KnownObject {
            claims: self.claims_of(object, &stored).await,
            condition: report::reported(object),
            owner: Owner::of(object),
            resource_version: resource_version.unwrap_or_default().to_owned(),
            uid: stored.uid.clone(),
            version: stored.version.clone(),
            created: stored.created.clone(),
        };
        Some((ObjectRef::of_stored(&stored), known))
    }

    /// What the object claims, as created or as updated; `None` if that could not be evaluated.
    pub(super) async fn claims_of(
        self,
        object: &Value,
        stored: &StoredObject,
    ) -> Option<BTreeMap<String, Claim>> {
        if let Err(error) = levels::check(object) {
            let (kind, name, namespace) = (&stored.kind, &stored.name, &stored.namespace);
            tracing::warn!(kind, namespace, name, %error, "failed to read a stored object");
            return None;
        }
        let mut claims = BTreeMap::new();
        for evaluate_as in [EvaluateAs::Updated, EvaluateAs::Created] {
            let evaluator = &self.controller.evaluator;
            let verdict = match evaluator.evaluate(&self.plan.set, stored, evaluate_as).await {
                Ok(verdict) => verdict,
                Err(error) => {
                    let (kind, name) = (&stored.kind, &stored.name);
                    tracing::warn!(kind, name, %error, "failed to read a stored object");
                    return None;
                }
            };
            if verdict.failures.iter().any(|failure| self.plan.policies.is_active(&failure.policy))
            {
                return None;
            }
            let named = |claim: Claim| (claim_name(&claim.scope, &claim.key), claim);
            claims.extend(verdict.claims.into_iter().map(named));
        }
        Some(claims)
    }

    /// The object as it is stored now; `None` if it is not.
    pub(super) async fn reread(
        self,
        held: &StoredHolder,
    ) -> Result<Option<(ObjectRef, KnownObject)>, CallError> {
        let found = self.inner().holders.get(held).await?;
        let Some((_, object)) = found else { return Ok(None) };
        Ok(self.evaluate(&object).await)
    }

    /// Makes the claim the stored object's; `seen` is the claim if there is one.
    pub(super) async fn write(
        self,
        name: &str,
        holder: &Holder,
        (claim, sharing): (&Claim, Sharing),
        seen: Option<&CachedClaim>,
    ) -> Result<Step, ClaimError> {
        let api = &self.inner().api;
        let written = match seen {
            Some(seen) => store::update(api, &lock(name, seen), holder, claim, sharing).await?,
            None => store::create(api, name, holder, claim, sharing).await?,
        };
        if written.is_none() {
            // Another writer was faster, and the watch will show it.
            return Ok(Step::Done);
        }
        let (kind, holder) = (&holder.kind, &holder.name);
        tracing::debug!(claim = name, kind, holder, "took a claim for a stored object");
        Ok(if seen.is_some() { Step::Adopted } else { Step::Taken })
    }

    /// Whether a claim could be written.
    pub(super) async fn probe(self) -> Result<(), CallError> {
        store::probe(&self.inner().api).await
    }

    /// Says on the object which conflicts it has.
    pub(super) async fn report(
        self,
        held: &StoredHolder,
        known: &KnownObject,
        conflicts: &Conflicts,
    ) -> Result<(), CallError> {
        let Some(resource) = self.inner().holders.served(held).await? else { return Ok(()) };
        self.controller.reporter.report(&resource, held, known, conflicts).await
    }
}

pub(super) fn lock(name: &str, seen: &CachedClaim) -> Lock {
    Lock { name: name.to_owned(), uid: seen.uid.clone(), version: seen.version.clone() }
}
