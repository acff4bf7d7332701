//! Who stores what a case finds in its cluster: a user that no policy judges. By the API itself,
//! for with a kubectl each they would take most of the test's time.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use opensdn_testing::eventually::eventually;
use opensdn_testing::sandbox::{Sandbox, User};
use serde_json::{Value, json};

use super::kinds::Kinds;
use super::{Failed, Outcome};

/// No policy judges this user.
pub(crate) const NAME: &str = "builder";

/// The user, the namespaces that are there, and what the cluster itself made: kind and name.
pub(crate) struct Builder {
    kinds: Kinds,
    namespaces: HashSet<String>,
    of_cluster: HashSet<(String, String)>,
}

impl Builder {
    pub(crate) fn of(sandbox: &Sandbox) -> Result<Self, Failed> {
        let client = sandbox.client_for(&User::new(NAME).in_group("system:masters"))?;
        Ok(Self {
            kinds: Kinds::of(client),
            namespaces: HashSet::new(),
            of_cluster: HashSet::new(),
        })
    }

    /// Stores the object; what the API server says against it otherwise. What the cluster made just so,
    /// such as the `ServiceCIDR` `kubernetes`, is as good.
    pub(crate) async fn create(&mut self, object: &Value) -> Result<Result<Value, String>, Failed> {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let api = self.kinds.api(&object).await?;
        match api.create(&PostParams::default(), &object).await {
            Ok(stored) => Ok(Ok(serde_json::to_value(stored)?)),
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => {
                let stored = api.get(&object.name_any()).await?;
                if stored.data["spec"] != object.data["spec"] {
                    return Ok(Err(refusal.message));
                }
                self.of_cluster.insert(key(&object));
                Ok(Ok(serde_json::to_value(stored)?))
            }
            Err(kube::Error::Api(refusal)) => Ok(Err(refusal.message)),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the stored object say the status that it has in the case, which a creation leaves out.
    pub(crate) async fn set_status(&mut self, object: &Value) -> Outcome {
        let Some(status) = object.get("status") else { return Ok(()) };
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let (api, name) = (self.kinds.api(&object).await?, object.name_any());
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes the object and waits until it is gone.
    pub(crate) async fn delete(&mut self, object: &Value) -> Outcome {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        if self.of_cluster.contains(&key(&object)) {
            return Ok(());
        }
        let (api, name) = (self.kinds.api(&object).await?, object.name_any());
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let is_gone = async || matches!(api.get_opt(&name).await, Ok(None));
        eventually(&format!("{name} is gone"), is_gone).await;
        Ok(())
    }

    /// Makes the namespace, unless it is there.
    pub(crate) async fn namespace(&mut self, name: &str) -> Outcome {
        if name.is_empty() || self.namespaces.contains(name) {
            return Ok(());
        }
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let api: Api<Namespace> = Api::all(self.kinds.client().clone());
        match api.create(&PostParams::default(), &namespace).await {
            Ok(_) => {}
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        self.namespaces.insert(name.to_owned());
        Ok(())
    }
}

fn key(object: &DynamicObject) -> (String, String) {
    let kind = object.types.as_ref().map(|types| types.kind.clone());
    (kind.unwrap_or_default(), object.name_any())
}
