//! The kinds of a cluster, each found once: by which paths objects of it are asked for.

use std::collections::HashMap;

use kube::api::{DynamicObject, GroupVersionKind};
use kube::discovery::{self, ApiResource, Scope};
use kube::{Api, Client, ResourceExt};

use super::Failed;

pub(crate) struct Kinds {
    client: Client,
    found: HashMap<GroupVersionKind, (ApiResource, Scope)>,
}

impl Kinds {
    /// As whom the client is.
    pub(crate) fn of(client: Client) -> Self {
        Self { client, found: HashMap::new() }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Where the object belongs.
    pub(crate) async fn api(
        &mut self,
        object: &DynamicObject,
    ) -> Result<Api<DynamicObject>, Failed> {
        let types = object.types.as_ref().ok_or("an object without a kind")?;
        let kind = GroupVersionKind::try_from(types)?;
        if !self.found.contains_key(&kind) {
            let (resource, capabilities) = discovery::pinned_kind(&self.client, &kind).await?;
            self.found.insert(kind.clone(), (resource, capabilities.scope));
        }
        let (resource, scope) = self.found.get(&kind).ok_or("a kind that was just found")?;
        let client = self.client.clone();
        Ok(match scope {
            Scope::Cluster => Api::all_with(client, resource),
            Scope::Namespaced => {
                let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
                Api::namespaced_with(client, &namespace, resource)
            }
        })
    }
}
