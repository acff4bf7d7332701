//! The three writes of a claim: create, change, delete. The last two only as it was read.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_policy_host::Claim;
use tokio::time::timeout;

use super::Holder;
use super::error::{ClaimError, Doing};

/// How long the API server may take for one call. The caller's deadline is another matter: this
/// is for what goes on without a caller.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is gone, or not as it was.
const OVERTAKEN: &[u16] = &[404, 409];

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

/// Whether a write was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It was.
    Yes,
    /// Somebody else changed, created or deleted the claim before.
    Overtaken,
}

/// Creates the claim for the holder; `None` if there is one of that name.
pub(super) async fn create(
    api: &Api<UniqueClaim>,
    name: &str,
    holder: &Holder,
    claim: &Claim,
) -> Result<Option<Lock>, ClaimError> {
    let object = UniqueClaim::new(name, spec(holder, claim));
    unless(&[409], call(Doing::Create, name, api.create(&params(), &object)).await)
        .map(|created| created.as_ref().map(Lock::of))
}

/// Makes the claim the holder's; `None` if it is not as it was any more.
pub(super) async fn change(
    api: &Api<UniqueClaim>,
    lock: &Lock,
    holder: &Holder,
    claim: &Claim,
) -> Result<Option<Lock>, ClaimError> {
    let name = &lock.name;
    let mut object = UniqueClaim::new(name, spec(holder, claim));
    object.metadata.uid = Some(lock.uid.clone());
    object.metadata.resource_version = Some(lock.version.clone());
    unless(OVERTAKEN, call(Doing::Change, name, api.replace(name, &params(), &object)).await)
        .map(|changed| changed.as_ref().map(Lock::of))
}

/// Deletes the claim, if it is still as it was.
pub(super) async fn delete(api: &Api<UniqueClaim>, lock: &Lock) -> Result<Done, ClaimError> {
    let precondition =
        Preconditions { uid: Some(lock.uid.clone()), resource_version: Some(lock.version.clone()) };
    let params = DeleteParams { preconditions: Some(precondition), ..DeleteParams::default() };
    let deleted = call(Doing::Delete, &lock.name, api.delete(&lock.name, &params)).await;
    Ok(if unless(OVERTAKEN, deleted)?.is_some() { Done::Yes } else { Done::Overtaken })
}

fn spec(holder: &Holder, claim: &Claim) -> UniqueClaimSpec {
    UniqueClaimSpec {
        scope: claim.scope.clone(),
        key: claim.key.clone(),
        holder: holder.with_pointer(&claim.pointer),
        taken_at: Some(Timestamp::now().to_string()),
        policy: Some(claim.policy.clone()),
    }
}

fn params() -> PostParams {
    PostParams { dry_run: false, field_manager: Some("opensdn-webhook".to_owned()) }
}

/// `None` where the API server refused with one of these codes.
fn unless<T>(codes: &[u16], answer: Result<T, ClaimError>) -> Result<Option<T>, ClaimError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ClaimError::Api { source, .. }) if matches!(&*source, kube::Error::Api(status) if codes.contains(&status.code)) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// One call with its end: whatever happens to the connection, it does not last for ever.
pub(super) async fn call<T>(
    doing: Doing,
    name: &str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ClaimError> {
    let name = || name.to_owned();
    match timeout(PATIENCE, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(ClaimError::Api { doing, name: name(), source: Box::new(source) }),
        Err(_) => Err(ClaimError::NoAnswer { doing, name: name(), patience: PATIENCE }),
    }
}
