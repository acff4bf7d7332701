//! Writes to a cluster: server-side apply of an object or of its status, replacement and deletion of
//! exactly the object that was read, and the change of an object that several replicas share. Each is one bounded [`Call`]; conflicts between field managers
//! are forced, as the objects are ours. Deliberately not here: what an object should say.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use opensdn_runtime::apply::{Context, apply};
//! # use opensdn_runtime::call::CallError;
//! # async fn write(client: kube::Client, report: ConfigMap) -> Result<(), CallError> {
//! let ctx = Context::new(client, "opensdn-operator");
//! let stored = apply(&ctx, &report).await?;
//! # Ok(())
//! # }
//! ```

use std::fmt::{Debug, Write as _};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GetParams, ListParams, Patch, PatchParams,
    PostParams, Preconditions,
};
use kube::core::Request;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call::{CALL_TIMEOUT, Call, CallError, Verb};
use crate::levels::Whole;
use crate::list::read_object;
use crate::path::segment;

/// The API server takes no longer name.
const LONGEST_FIELD_MANAGER: usize = 128;

/// Who writes.
#[derive(Clone)]
pub struct Context {
    client: Client,
    field_manager: String,
    timeout: Duration,
}

impl Context {
    /// Writes as `field_manager`, of which what is too long for the API server is cut off.
    pub fn new(client: Client, field_manager: &str) -> Self {
        let field_manager = field_manager.chars().take(LONGEST_FIELD_MANAGER).collect();
        Self { client, field_manager, timeout: CALL_TIMEOUT }
    }

    /// With another time limit for each call than [`CALL_TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    fn params(&self) -> PatchParams {
        PatchParams::apply(&self.field_manager).force()
    }

    fn call(&self, verb: Verb, resource: String, name: &str) -> Call {
        Call::new(verb, resource).name(name).timeout(self.timeout)
    }
}

/// What became of an object that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is deleted, or will be when its finalizers are done.
    Deleted,
    /// It is gone already, or is not as it was read; whatever has its name now is untouched.
    NotTheSame,
}

/// Until when an object counts as the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactly {
    /// As long as its UID is the same.
    ThisObject,
    /// Until anything of it changes.
    ThisVersion,
}

/// What became of the write of an object that others write too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is stored.
    Stored,
    /// Another writer was faster: it is not as it was read.
    Conflict,
}

/// Reads an object by name; `None` if there is none.
///
/// # Errors
/// The call fails.
pub async fn read<K>(
    ctx: &Context,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<K>, CallError>
where
    K: Resource + DeserializeOwned,
    K::DynamicType: Default,
{
    read_as(ctx, &K::DynamicType::default(), namespace, name).await
}

/// The same for an object of any kind.
///
/// # Errors
/// As [`read`].
pub async fn read_as<K>(
    ctx: &Context,
    kind: &K::DynamicType,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<K>, CallError>
where
    K: Resource + DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(kind);
    let api = ctx.api(&resource, namespace);
    let request = async {
        let request = Request::new(api.resource_url()).get(&segment(name), &GetParams::default());
        match stored(&ctx.client, request.map_err(kube::Error::BuildRequest)?).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            found => found.map(Some),
        }
    };
    ctx.call(Verb::Get, resource.plural.clone(), name).run(request).await
}

/// Reads objects that are few, as they are now.
///
/// # Errors
/// The call fails.
pub async fn list_as(
    ctx: &Context,
    resource: &ApiResource,
    namespace: Option<&str>,
    params: &ListParams,
) -> Result<Vec<DynamicObject>, CallError> {
    let api = ctx.api(resource, namespace);
    let call = Call::new(Verb::List, resource.plural.clone()).timeout(ctx.timeout);
    Ok(call.run(api.list(params)).await?.items)
}

/// Stores an object that was made from the one that was [`read`]: replaces that if it carries its
/// resourceVersion, else creates it. So of several that write at once one succeeds, and the others
/// read what it wrote.
///
/// # Errors
/// The call fails for another reason than that another writer was faster.
pub async fn write_as_read<K>(ctx: &Context, object: &K) -> Result<WriteOutcome, CallError>
where
    K: Resource + Serialize + DeserializeOwned + Debug,
    K::DynamicType: Default,
{
    let kind = K::DynamicType::default();
    let is_new = object.meta().resource_version.is_none();
    let written = if is_new {
        create_as(ctx, &kind, object).await
    } else {
        replace_as(ctx, &kind, object).await.map(drop)
    };
    match written {
        Ok(()) => Ok(WriteOutcome::Stored),
        // Changed, created or deleted meanwhile.
        Err(error) if error.is_conflict() || (error.is_not_found() && !is_new) => {
            Ok(WriteOutcome::Conflict)
        }
        Err(error) => Err(error),
    }
}

/// Creates an object by an apply that is not forced. A POST has no name when the right is checked, and
/// who may create Secrets of any name in a namespace may make himself a token of each ServiceAccount
/// there. As a field manager of this call alone, so that what another writer has created meanwhile is a
/// conflict and not overwritten.
async fn create_as<K>(ctx: &Context, kind: &K::DynamicType, object: &K) -> Result<(), CallError>
where
    K: Resource + Serialize + Debug,
{
    let resource = ApiResource::erase::<K>(kind);
    let name = object.name_any();
    let params = PatchParams::apply(&own_field_manager(&ctx.field_manager));
    let request = api_request(ctx, &resource, object.meta().namespace.as_deref(), None);
    let request = request.send(&name, &params, object);
    ctx.call(Verb::Create, resource.plural.clone(), &name).run(request).await.map(drop)
}

fn own_field_manager(of: &str) -> String {
    let number = RandomState::new().hash_one(of);
    let suffix = format!("-{number:016x}");
    let most = LONGEST_FIELD_MANAGER - suffix.len();
    of.chars().take(most).chain(suffix.chars()).collect()
}

/// Where an apply is sent.
struct ApplyRequest<'a> {
    client: &'a Client,
    path: String,
    subresource: Option<&'static str>,
}

fn api_request<'a>(
    ctx: &'a Context,
    resource: &ApiResource,
    namespace: Option<&str>,
    subresource: Option<&'static str>,
) -> ApplyRequest<'a> {
    let path = DynamicObject::url_path(resource, namespace);
    ApplyRequest { client: &ctx.client, path, subresource }
}

impl ApplyRequest<'_> {
    /// As kube does it, but for what YAML would read differently.
    async fn send(
        self,
        name: &str,
        params: &PatchParams,
        object: &impl Serialize,
    ) -> kube::Result<DynamicObject> {
        let (request, name, patch) = (Request::new(self.path), segment(name), Patch::Apply(object));
        let request = match self.subresource {
            None => request.patch(&name, params, &patch),
            Some(subresource) => request.patch_subresource(subresource, &name, params, &patch),
        };
        let request = request.map_err(kube::Error::BuildRequest)?.map(escape_for_yaml);
        stored(self.client, request).await
    }
}

/// The object that an answer has. What others have written so deep that it is left out is none of ours.
async fn stored<K: DeserializeOwned>(
    client: &Client,
    request: http::Request<Vec<u8>>,
) -> kube::Result<K> {
    let object: Whole = read_object(client, request).await?;
    serde_json::from_value(object.without_mark()).map_err(kube::Error::SerdeError)
}

/// The API server reads what is applied as YAML. That refuses control characters which JSON has as they are,
/// so that one in a user's label would refuse all that is written together with it, and folds three kinds
/// of line breaks.
fn escape_for_yaml(json: Vec<u8>) -> Vec<u8> {
    let differs = |letter: char| {
        matches!(
            letter,
            '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}'
        )
    };
    let Ok(text) = std::str::from_utf8(&json) else { return json };
    if !text.contains(differs) {
        return json;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for letter in text.chars() {
        if differs(letter) {
            // Writing to a String cannot fail. Outside of strings JSON has none of them.
            let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    escaped.into_bytes()
}

/// Applies an object of a kind that is known when this is compiled. Returns it as it is stored.
///
/// # Errors
/// The call fails, or the answer is no such object.
pub async fn apply<K>(ctx: &Context, object: &K) -> Result<K, CallError>
where
    K: Resource + Serialize + DeserializeOwned + Debug,
    K::DynamicType: Default,
{
    apply_as(ctx, &K::DynamicType::default(), object).await
}

/// The same for an object of any kind.
///
/// # Errors
/// As [`apply`].
pub async fn apply_as<K>(ctx: &Context, kind: &K::DynamicType, object: &K) -> Result<K, CallError>
where
    K: Resource + Serialize + DeserializeOwned + Debug,
{
    let resource = ApiResource::erase::<K>(kind);
    let name = object.name_any();
    let request = async {
        let request = api_request(ctx, &resource, object.meta().namespace.as_deref(), None);
        let stored = request.send(&name, &ctx.params(), object).await?;
        let stored = serde_json::to_value(stored).map_err(kube::Error::SerdeError)?;
        serde_json::from_value(stored).map_err(kube::Error::SerdeError)
    };
    ctx.call(Verb::Patch, resource.plural.clone(), &name).run(request).await
}

/// Writes an object as a whole, which removes what other field managers have added; an apply leaves
/// it. It is a conflict, if the object is not the one any more that was read.
///
/// # Errors
/// The call fails, or the answer is no such object.
pub async fn replace_as<K>(ctx: &Context, kind: &K::DynamicType, object: &K) -> Result<K, CallError>
where
    K: Resource + Serialize + DeserializeOwned + Debug,
{
    let resource = ApiResource::erase::<K>(kind);
    let (name, api) = (object.name_any(), ctx.api(&resource, object.meta().namespace.as_deref()));
    let field_manager = Some(ctx.field_manager.clone());
    let params = PostParams { field_manager, ..PostParams::default() };
    let request = async {
        let object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        let stored = api.replace(&segment(&name), &params, &object).await?;
        let stored = serde_json::to_value(stored).map_err(kube::Error::SerdeError)?;
        serde_json::from_value(stored).map_err(kube::Error::SerdeError)
    };
    ctx.call(Verb::Update, resource.plural.clone(), &name).run(request).await
}

/// Applies the status of an object and nothing else of it. An object with a UID is meant alone:
/// another one of its name is a conflict.
///
/// # Errors
/// The call fails.
pub async fn apply_status<K>(ctx: &Context, object: &K) -> Result<(), CallError>
where
    K: Resource + Serialize,
    K::DynamicType: Default,
{
    apply_status_as(ctx, &K::DynamicType::default(), object).await
}

/// The same for an object of any kind.
///
/// # Errors
/// As [`apply_status`].
pub async fn apply_status_as<K>(
    ctx: &Context,
    kind: &K::DynamicType,
    object: &K,
) -> Result<(), CallError>
where
    K: Resource + Serialize,
{
    send_status(ctx, kind, object, &IDENTITY).await.map(drop)
}

/// The same, if nobody has changed the object since the version that it has; the version that it has then.
///
/// # Errors
/// As [`apply_status`]; a conflict, where somebody has.
pub async fn apply_status_if_unchanged<K>(
    ctx: &Context,
    kind: &K::DynamicType,
    object: &K,
) -> Result<Option<String>, CallError>
where
    K: Resource + Serialize,
{
    let [name, namespace, uid] = IDENTITY;
    let keys = [name, namespace, uid, "resourceVersion"];
    let stored = send_status(ctx, kind, object, &keys).await?;
    Ok(stored.metadata.resource_version)
}

/// What identifies an object, in its metadata.
const IDENTITY: [&str; 3] = ["name", "namespace", "uid"];

async fn send_status<K>(
    ctx: &Context,
    kind: &K::DynamicType,
    object: &K,
    keys: &[&str],
) -> Result<DynamicObject, CallError>
where
    K: Resource + Serialize,
{
    let resource = ApiResource::erase::<K>(kind);
    let name = object.name_any();
    let request = async {
        let object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let patch = status_only(&resource, &object, keys);
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let request = api_request(ctx, &resource, namespace, Some("status"));
        request.send(&name, &ctx.params(), &patch).await
    };
    let plural = format!("{}/status", resource.plural);
    ctx.call(Verb::Patch, plural, &name).run(request).await
}

/// What identifies the object, and its status.
fn status_only(resource: &ApiResource, object: &Value, keys: &[&str]) -> Value {
    let mut metadata = serde_json::Map::new();
    for key in keys {
        if let Some(value) = object.pointer(&format!("/metadata/{key}")) {
            metadata.insert((*key).to_owned(), value.clone());
        }
    }
    json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "status": object.get("status").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Deletes the object if it is still the one that was read.
///
/// # Errors
/// The call fails for another reason than that it is not.
pub async fn delete_exactly<K>(
    ctx: &Context,
    object: &K,
    exactly: Exactly,
) -> Result<Deletion, CallError>
where
    K: Resource,
    K::DynamicType: Default,
{
    delete_exactly_as(ctx, &K::DynamicType::default(), object, exactly).await
}

/// The same for an object of any kind.
///
/// # Errors
/// As [`delete_exactly`].
pub async fn delete_exactly_as<K>(
    ctx: &Context,
    kind: &K::DynamicType,
    object: &K,
    exactly: Exactly,
) -> Result<Deletion, CallError>
where
    K: Resource,
{
    let resource = ApiResource::erase::<K>(kind);
    let (name, api) = (object.name_any(), ctx.api(&resource, object.meta().namespace.as_deref()));
    let meta = object.meta();
    let preconditions = Preconditions {
        uid: meta.uid.clone(),
        resource_version: match exactly {
            Exactly::ThisObject => None,
            Exactly::ThisVersion => meta.resource_version.clone(),
        },
    };
    let params = DeleteParams::default().preconditions(preconditions);
    let call = ctx.call(Verb::Delete, resource.plural.clone(), &name);
    match call.run(api.delete(&segment(&name), &params)).await {
        Ok(_) => Ok(Deletion::Deleted),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(Deletion::NotTheSame),
        Err(error) => Err(error),
    }
}

/// Deletes the object of that name, whichever it is: for what only this process writes.
///
/// # Errors
/// The call fails for another reason than that there is none.
pub async fn delete_named<K>(
    ctx: &Context,
    namespace: Option<&str>,
    name: &str,
) -> Result<Deletion, CallError>
where
    K: Resource,
    K::DynamicType: Default,
{
    let resource = ApiResource::erase::<K>(&K::DynamicType::default());
    let api = ctx.api(&resource, namespace);
    let call = ctx.call(Verb::Delete, resource.plural.clone(), name);
    match call.run(api.delete(&segment(name), &DeleteParams::default())).await {
        Ok(_) => Ok(Deletion::Deleted),
        Err(error) if error.is_not_found() => Ok(Deletion::NotTheSame),
        Err(error) => Err(error),
    }
}

/// Changes parts of a status that other field managers own, which no apply can remove. `test`
/// operations in the patch make sure that it is as it was read.
///
/// # Errors
/// The call fails, or the status is not as the patch says (422).
pub async fn patch_status<K>(
    ctx: &Context,
    object: &K,
    patch: json_patch::Patch,
) -> Result<(), CallError>
where
    K: Resource,
    K::DynamicType: Default,
{
    let resource = ApiResource::erase::<K>(&K::DynamicType::default());
    let (name, api) = (object.name_any(), ctx.api(&resource, object.meta().namespace.as_deref()));
    let params = PatchParams::default();
    let call = ctx.call(Verb::Patch, format!("{}/status", resource.plural), &name);
    call.run(api.patch_status(&segment(&name), &params, &Patch::Json::<()>(patch))).await.map(drop)
}

/// Gives a CertificateSigningRequest these conditions, which approve or deny it, if it is as it was read.
///
/// # Errors
/// The call fails; where the rights to it are missing, those for the subresource and those for the signer.
pub async fn patch_approval(
    ctx: &Context,
    request: &CertificateSigningRequest,
    conditions: &[CertificateSigningRequestCondition],
) -> Result<(), CallError> {
    let (name, api) = (request.name_any(), Api::all(ctx.client.clone()));
    let api: Api<CertificateSigningRequest> = api;
    let patch = Patch::Merge(json!({
        "metadata": {"uid": request.uid(), "resourceVersion": request.resource_version()},
        "status": {"conditions": conditions},
    }));
    let field_manager = Some(ctx.field_manager.clone());
    let params = PatchParams { field_manager, ..PatchParams::default() };
    let call = ctx.call(Verb::Patch, "certificatesigningrequests/approval".to_owned(), &name);
    call.run(api.patch_approval(&segment(&name), &params, &patch)).await.map(drop)
}

/// Changes parts of an object that others write too, and no more. `test` operations in the patch make sure that they are as
/// they were read. The object as it is then; nothing, if it is not as the patch says.
///
/// # Errors
/// The call fails for another reason.
pub async fn patch_as(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
    patch: json_patch::Patch,
) -> Result<Option<DynamicObject>, CallError> {
    patch_or_try(ctx, resource, object, patch, false).await
}

/// What would become of the same patch: admission and validation are asked, and nothing is stored.
///
/// # Errors
/// It would be refused, or the call fails for another reason.
pub async fn try_patch_as(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
    patch: json_patch::Patch,
) -> Result<Option<DynamicObject>, CallError> {
    patch_or_try(ctx, resource, object, patch, true).await
}

async fn patch_or_try(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
    patch: json_patch::Patch,
    dry_run: bool,
) -> Result<Option<DynamicObject>, CallError> {
    let (name, api) = (object.name_any(), ctx.api(resource, object.metadata.namespace.as_deref()));
    let field_manager = Some(ctx.field_manager.clone());
    let params = PatchParams { field_manager, dry_run, ..PatchParams::default() };
    let call = ctx.call(Verb::Patch, resource.plural.clone(), &name);
    match call.run(api.patch(&segment(&name), &params, &Patch::Json::<()>(patch))).await {
        Ok(stored) => Ok(Some(stored)),
        Err(error) if error.is_failed_test() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_would_refuse_or_fold_is_sent_escaped_and_means_the_same() {
        let value = json!({"a\u{9b}": "\u{7f}\u{85}\u{2028}\u{2029}\u{feff}\u{ffff}", "plain": "ä\n\u{1f600}"});
        let escaped = escape_for_yaml(value.to_string().into_bytes());
        assert_eq!(serde_json::from_slice::<Value>(&escaped).unwrap(), value);
        let text = String::from_utf8(escaped).unwrap();
        assert!(
            text.contains(r"\u009b") && text.contains(r"\ufeff") && text.contains('ä'),
            "{text}"
        );
        assert!(!text.contains(['\u{7f}', '\u{85}', '\u{9b}', '\u{2028}', '\u{feff}', '\u{ffff}']));
        let plain = br#"{"a":"b"}"#.to_vec();
        assert_eq!(escape_for_yaml(plain.clone()), plain);
    }
}
