//! The objects that hold claims, and whether they exist, by a live read. Deliberately not here: what
//! follows from that (`decide.rs`).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use kube::api::{GetParams, ObjectMeta};
use kube::core::{GroupVersionKind, Request};
use kube::discovery::{ApiCapabilities, ApiResource, Scope};
use kube::error::DiscoveryError;
use kube::{Api, Client, api::DynamicObject, discovery};
use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::levels::Lean;
use opensdn_runtime::list::read_object;
use opensdn_runtime::path::segment;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::decide::Presence;
use super::name;
use super::owner::controller_uid;

/// Bytes of the field that a claim keeps, as many as its schema allows.
const LONGEST_POINTER: usize = 1024;

/// The object that a claim would belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name. In the validating step it is there also where a generateName was given.
    pub name: String,
    /// UID, which the API server makes before the validating step.
    pub uid: String,
}

impl Holder {
    /// Whether the claim's holder is this object, or one of the same name.
    pub(crate) fn is_same_object(&self, held: &StoredHolder) -> bool {
        self.group == held.group
            && self.kind == held.kind
            && self.namespace == held.namespace.as_deref().unwrap_or_default()
            && self.name == held.name
    }

    /// As it is written in a claim.
    pub(crate) fn with_pointer(&self, pointer: &str) -> StoredHolder {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        StoredHolder {
            group: self.group.clone(),
            version: some(&self.version),
            kind: self.kind.clone(),
            namespace: some(&self.namespace),
            name: self.name.clone(),
            uid: some(&self.uid),
            pointer: some(shown(pointer)),
        }
    }
}

/// The field is for people: keys of the object may be in it, of any length.
fn shown(pointer: &str) -> &str {
    pointer.get(..pointer.floor_char_boundary(LONGEST_POINTER)).unwrap_or_default()
}

/// Reads holders of any kind.
pub(crate) struct Holders {
    client: Client,
    kinds: RwLock<HashMap<GroupVersionKind, (ApiResource, Scope)>>,
}

impl Holders {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kinds: RwLock::default() }
    }

    /// Whether the holder of a claim is stored now.
    pub(crate) async fn presence(&self, held: &StoredHolder) -> Result<Presence, CallError> {
        // Else no call about it would ever be answered, and its claim never released.
        if !name::is_addressable(held) {
            return Ok(Presence::Absent);
        }
        read(held).run(self.read_presence(held)).await
    }

    async fn read_presence(&self, held: &StoredHolder) -> Result<Presence, kube::Error> {
        let Some(api) = self.find_api(held).await? else { return Ok(Presence::NotServed) };
        Ok(match self.metadata(held, &api).await? {
            Some(metadata) => Presence::Stored {
                controller: controller_uid(&metadata).map(str::to_owned),
                uid: metadata.uid.unwrap_or_default(),
            },
            None => self.absent(held).await?,
        })
    }

    /// The UID of the object of that name that is stored now. Why there is none it does not look into, so that most
    /// creates cost one call.
    pub(crate) async fn stored_uid(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<String>, CallError> {
        if !name::is_addressable(held) {
            return Ok(None);
        }
        let uid = async {
            let Some(api) = self.find_api(held).await? else { return Ok(None) };
            let found = self.metadata(held, &api).await?;
            Ok(found.map(|metadata| metadata.uid.unwrap_or_default()))
        };
        read(held).run(uid).await
    }

    /// The holder as it is stored now, and how its kind is served; `None` if either is not.
    pub(crate) async fn get(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<(ApiResource, Value)>, CallError> {
        if !name::is_addressable(held) {
            return Ok(None);
        }
        read(held).run(self.read_object(held)).await
    }

    async fn read_object(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<(ApiResource, Value)>, kube::Error> {
        let Some(api) = self.find_api(held).await? else { return Ok(None) };
        let Some((resource, _)) = self.resource(held).await? else { return Ok(None) };
        let request = Request::new(api.resource_url());
        let request = request.get(&segment(&held.name), &GetParams::default());
        let found = self.stored::<Lean>(request).await?;
        Ok(found.map(|object| (resource, object.into())))
    }

    async fn metadata(
        &self,
        held: &StoredHolder,
        api: &Api<DynamicObject>,
    ) -> Result<Option<ObjectMeta>, kube::Error> {
        let request = Request::new(api.resource_url());
        let request = request.get_metadata(&segment(&held.name), &GetParams::default());
        let Some(found) = self.stored::<Lean>(request).await? else { return Ok(None) };
        let metadata = Value::from(found).get_mut("metadata").map(Value::take).unwrap_or_default();
        serde_json::from_value(metadata).map(Some).map_err(kube::Error::SerdeError)
    }

    /// What a tenant may have written, and as deep as he likes.
    async fn stored<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Option<T>, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        or_missing(read_object(&self.client, request).await)
    }

    /// A 404 for an object is a 404 for a kind that is no longer served as well.
    async fn absent(&self, held: &StoredHolder) -> Result<Presence, kube::Error> {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).remove(&kind_of(held));
        let served = self.find_api(held).await?.is_some();
        Ok(if served { Presence::Absent } else { Presence::NotServed })
    }

    /// How objects like the holder are served; `None` if they are not.
    pub(crate) async fn served(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<ApiResource>, CallError> {
        let found = read(held).run(self.resource(held)).await?;
        Ok(found.map(|(resource, _)| resource))
    }

    async fn find_api(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<Api<DynamicObject>>, kube::Error> {
        let Some((resource, scope)) = self.resource(held).await? else { return Ok(None) };
        let client = self.client.clone();
        Ok(Some(match (scope, held.namespace.as_deref()) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client, namespace, &resource)
            }
            _ => Api::all_with(client, &resource),
        }))
    }

    async fn resource(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<(ApiResource, Scope)>, kube::Error> {
        let kind = kind_of(held);
        let known = self.kinds.read().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let Some((resource, capabilities)) = self.discover(held).await? else { return Ok(None) };
        let found = (resource, capabilities.scope);
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).insert(kind, found.clone());
        Ok(Some(found))
    }

    /// By the version in the claim, or, where that is not served any more, by any.
    async fn discover(
        &self,
        held: &StoredHolder,
    ) -> Result<Option<(ApiResource, ApiCapabilities)>, kube::Error> {
        if held.version.is_some()
            && let Some(found) =
                or_missing(discovery::pinned_kind(&self.client, &kind_of(held)).await)?
        {
            return Ok(Some(found));
        }
        let group = or_missing(discovery::group(&self.client, &held.group).await)?;
        Ok(group.and_then(|group| group.recommended_kind(&held.kind)))
    }
}

/// A read with everything that has to be discovered for it, within one time limit.
fn read(held: &StoredHolder) -> Call {
    Call::new(Verb::Get, held.kind.clone()).name(held.name.clone())
}

fn kind_of(held: &StoredHolder) -> GroupVersionKind {
    GroupVersionKind::gvk(&held.group, held.version.as_deref().unwrap_or_default(), &held.kind)
}

fn or_missing<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(
            DiscoveryError::MissingKind(_)
            | DiscoveryError::MissingApiGroup(_)
            | DiscoveryError::MissingResource(_)
            | DiscoveryError::EmptyApiGroup(_),
        )) => Ok(None),
        Err(error) => Err(error),
    }
}
