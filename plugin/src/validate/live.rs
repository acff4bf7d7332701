//! What the living cluster knows, read only: answers to look-ups, the stored version of an object,
//! claims that are taken. Nothing is ever written.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiResource, Scope};
use kube::error::DiscoveryError;
use opensdn_crds::unique_claim::UniqueClaim;
use opensdn_policy_host::Claim;
use serde_json::Value;

use super::claims::{Claimant, Claims};
use super::table::{GroupKind, Table};
use crate::clients::unanswered;
use crate::exit::Failure;
use crate::report::{ObjectId, Origin, Place};

/// Objects a page: what kubectl asks for.
const PAGE: u32 = 500;

/// The living cluster.
pub(crate) struct Live {
    client: Client,
    /// How kinds are asked for; none: not served.
    kinds: Mutex<HashMap<GroupKind, Option<(ApiResource, Scope)>>>,
}

impl Live {
    /// Asks with this client.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kinds: Mutex::default() }
    }

    /// Adds what look-ups may want of the cluster; files that are in the table already win.
    ///
    /// # Errors
    /// The cluster does not answer at all. A kind that it does not tell is noted in the table.
    pub(crate) async fn fill(&self, table: &mut Table) -> Result<(), Failure> {
        let mut untold = HashMap::new();
        let kinds: BTreeSet<GroupKind> = table.kinds();
        for kind in kinds {
            let Some((resource, _)) = self.resource(&kind.0, &kind.1).await? else { continue };
            match self.list(&resource).await {
                Ok(objects) => {
                    for object in objects {
                        table.add(&kind.0, &kind.1, &object);
                    }
                }
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    untold.insert(kind, status.message.clone());
                }
                Err(error) => return Err(unanswered(&format!("list {}", kind.1), &error)),
            }
        }
        table.asked(untold);
        Ok(())
    }

    /// The object as it is stored, if it is.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn read(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Failure> {
        let Some((resource, scope)) =
            self.resource(group, kind).await?.filter(|_| !name.is_empty())
        else {
            return Ok(None);
        };
        let client = self.client.clone();
        let api: Api<DynamicObject> = match (scope, namespace) {
            (Scope::Namespaced, "") => Api::default_namespaced_with(client, &resource),
            (Scope::Namespaced, namespace) => Api::namespaced_with(client, namespace, &resource),
            (Scope::Cluster, _) => Api::all_with(client, &resource),
        };
        let doing = format!("read {kind} {name}");
        let found = api.get_opt(name).await.map_err(|error| unanswered(&doing, &error))?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    /// Adds the claims that are taken by objects which are not among the documents.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn add_claims(&self, claims: &mut Claims) -> Result<(), Failure> {
        if self.resource(opensdn_crds::OPENSDN_GROUP, "UniqueClaim").await?.is_none() {
            return Ok(());
        }
        let api: Api<UniqueClaim> = Api::all(self.client.clone());
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| unanswered("list UniqueClaims", &error))?;
        for stored in listed {
            let holder = stored.spec.holder;
            let namespace = holder.namespace.unwrap_or_default();
            let identity =
                (holder.group.clone(), holder.kind.clone(), namespace.clone(), holder.name.clone());
            if claims.defines(&identity) {
                continue;
            }
            let version = holder.version.unwrap_or_default();
            let api_version = match holder.group.as_str() {
                "" => version,
                group => format!("{group}/{version}"),
            };
            let object = ObjectId { api_version, kind: holder.kind, namespace, name: holder.name };
            let place = Place::of_file(Origin::Cluster, format!("cluster: {object}"), 0);
            claims.add(Claimant {
                object,
                place,
                claim: Claim {
                    scope: stored.spec.scope,
                    key: stored.spec.key,
                    pointer: holder.pointer.unwrap_or_default(),
                    policy: String::new(),
                    code: String::new(),
                },
                title: String::new(),
                policy: None,
                granted: None,
            });
        }
        Ok(())
    }

    async fn list(&self, resource: &ApiResource) -> Result<Vec<Value>, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let mut params = ListParams::default().limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let page = api.list(&params).await?;
            let next = page.metadata.continue_.clone().filter(|token| !token.is_empty());
            objects.extend(page.items.into_iter().filter_map(|mut object| {
                // The items of a list do not repeat what they are.
                object.types.get_or_insert_with(|| kube::core::TypeMeta {
                    api_version: resource.api_version.clone(),
                    kind: resource.kind.clone(),
                });
                serde_json::to_value(object).ok()
            }));
            match next {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    async fn resource(
        &self,
        group: &str,
        kind: &str,
    ) -> Result<Option<(ApiResource, Scope)>, Failure> {
        let key = (group.to_owned(), kind.to_owned());
        let known = self.known().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.discover(group, kind).await;
        let found = found.map_err(|error| unanswered(&format!("find out about {kind}"), &error))?;
        self.known().insert(key, found.clone());
        Ok(found)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<GroupKind, Option<(ApiResource, Scope)>>> {
        self.kinds.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn discover(
        &self,
        group: &str,
        kind: &str,
    ) -> Result<Option<(ApiResource, Scope)>, kube::Error> {
        // The core group has no list of versions of its own kind.
        let found = if group.is_empty() {
            let kind = GroupVersionKind::gvk("", "v1", kind);
            discovery::pinned_kind(&self.client, &kind).await.map(Some)
        } else {
            discovery::group(&self.client, group).await.map(|group| group.recommended_kind(kind))
        };
        match found {
            Ok(found) => Ok(found.map(|(resource, capabilities)| (resource, capabilities.scope))),
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
}
