//! The three writes of a claim: create, update, delete, the last two with the UID and version that
//! were read. Deliberately not here: when a claim is written.

use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_deploy::names::webhook::NAME;
use opensdn_policy_host::Claim;
use opensdn_runtime::call::{Call, CallError, Verb};

use super::Holder;

/// Name of the claim that is asked for and never stored.
const PROBE: &str = "opensdn-webhook-probe";

/// A claim in the state in which it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: String,
}

impl Lock {
    pub(super) fn of(claim: &UniqueClaim) -> Self {
        Self {
            name: claim.name_any(),
            uid: claim.uid().unwrap_or_default(),
            version: claim.resource_version().unwrap_or_default(),
        }
    }
}

/// Whether other objects than its holder have a claim, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// They have not.
    Alone,
    /// They have, or may have, with the same value.
    WithOthers,
}

impl Sharing {
    /// As the claim says, where the value stays.
    pub(super) fn of(stored: &UniqueClaimSpec, claim: &Claim) -> Self {
        if stored.shared == Some(true) && claim.shares_with(stored.value.as_deref()) {
            Self::WithOthers
        } else {
            Self::Alone
        }
    }
}

/// What became of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// It was made.
    Written,
    /// The claim is not the one that was read any more.
    Conflict,
}

/// Reads the claim; `None` if there is none.
pub(super) async fn get(
    api: &Api<UniqueClaim>,
    name: &str,
) -> Result<Option<UniqueClaim>, CallError> {
    call(Verb::Get, name).run(api.get_opt(name)).await
}

/// Creates the claim for the holder; `None` if there is one of that name.
pub(super) async fn create(
    api: &Api<UniqueClaim>,
    name: &str,
    holder: &Holder,
    claim: &Claim,
    sharing: Sharing,
) -> Result<Option<Lock>, CallError> {
    let object = UniqueClaim::new(name, spec(holder, claim, sharing));
    match call(Verb::Create, name).run(api.create(&params(), &object)).await {
        Ok(created) => Ok(Some(Lock::of(&created))),
        Err(error) if error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks the API server whether it would take a claim. Nothing is stored.
///
/// # Errors
/// It would not.
pub(super) async fn probe(api: &Api<UniqueClaim>) -> Result<(), CallError> {
    let holder = Holder { kind: PROBE.to_owned(), name: PROBE.to_owned(), ..Holder::default() };
    let text = || PROBE.to_owned();
    let claim = Claim {
        scope: text(),
        key: text(),
        value: None,
        pointer: text(),
        policy: text(),
        code: text(),
    };
    let object = UniqueClaim::new(PROBE, spec(&holder, &claim, Sharing::Alone));
    let params = PostParams { dry_run: true, ..params() };
    match call(Verb::Create, PROBE).run(api.create(&params, &object)).await {
        Err(error) if !error.is_conflict() => Err(error),
        // Also where there is one: then it may be asked.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Makes the claim the holder's; `None` if it is not the one that was read any more.
pub(super) async fn update(
    api: &Api<UniqueClaim>,
    lock: &Lock,
    holder: &Holder,
    claim: &Claim,
    sharing: Sharing,
) -> Result<Option<Lock>, CallError> {
    replace(api, lock, spec(holder, claim, sharing)).await
}

/// Makes the claim what it was before, if it is still the one that was written.
pub(super) async fn restore(
    api: &Api<UniqueClaim>,
    lock: &Lock,
    before: UniqueClaimSpec,
) -> Result<WriteOutcome, CallError> {
    let written = replace(api, lock, before).await?;
    Ok(if written.is_some() { WriteOutcome::Written } else { WriteOutcome::Conflict })
}

async fn replace(
    api: &Api<UniqueClaim>,
    lock: &Lock,
    spec: UniqueClaimSpec,
) -> Result<Option<Lock>, CallError> {
    let name = &lock.name;
    let mut object = UniqueClaim::new(name, spec);
    object.metadata.uid = Some(lock.uid.clone());
    object.metadata.resource_version = Some(lock.version.clone());
    match call(Verb::Update, name).run(api.replace(name, &params(), &object)).await {
        Ok(updated) => Ok(Some(Lock::of(&updated))),
        Err(error) if is_overtaken(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes the claim, if it is still the one that was read.
pub(super) async fn delete(api: &Api<UniqueClaim>, lock: &Lock) -> Result<WriteOutcome, CallError> {
    let precondition =
        Preconditions { uid: Some(lock.uid.clone()), resource_version: Some(lock.version.clone()) };
    let params = DeleteParams { preconditions: Some(precondition), ..DeleteParams::default() };
    match call(Verb::Delete, &lock.name).run(api.delete(&lock.name, &params)).await {
        Ok(_) => Ok(WriteOutcome::Written),
        Err(error) if is_overtaken(&error) => Ok(WriteOutcome::Conflict),
        Err(error) => Err(error),
    }
}

fn call(verb: Verb, name: &str) -> Call {
    Call::of::<UniqueClaim>(verb).name(name)
}

/// It is gone, or not as it was read.
fn is_overtaken(error: &CallError) -> bool {
    error.is_conflict() || error.is_not_found()
}

fn spec(holder: &Holder, claim: &Claim, sharing: Sharing) -> UniqueClaimSpec {
    UniqueClaimSpec {
        scope: claim.scope.clone(),
        key: claim.key.clone(),
        value: claim.value.clone(),
        shared: (sharing == Sharing::WithOthers).then_some(true),
        holder: holder.with_pointer(&claim.pointer),
        taken_at: Some(Timestamp::now().to_string()),
        policy: Some(claim.policy.clone()),
    }
}

fn params() -> PostParams {
    PostParams { dry_run: false, field_manager: Some(NAME.to_owned()) }
}
