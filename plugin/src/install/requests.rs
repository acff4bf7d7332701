//! The requests of an installation: reads, server-side applies that force only what a user named, and deletions of
//! exactly the object that was read. The only file below `install` that reads or writes a cluster.

use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions,
    ValidationDirective,
};
use kube::core::TypeMeta;
use kube::discovery::{ApiGroup, Discovery, Scope, verbs};
use kube::{Api, Client};
use opensdn_deploy::names::MANAGED_BY_LABEL;
use serde_json::{Value, json};

use super::applying::is_passing;
use super::object::{MANAGER, ObjectKey};
use super::plan::DryRun;
use crate::clients::{is_absent, unanswered, why};
use crate::exit::Failure;
use crate::snapshot::ask::Asker;

/// A cluster.
pub(crate) struct Requests {
    client: Client,
}

/// What of an apply is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apply {
    /// It is stored.
    Store,
    /// Nothing is stored.
    DryRun,
}

/// What became of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// It is gone, or will be when its finalizers are done.
    Deleted,
    /// It was gone, or is another one by now.
    Gone,
}

/// Nothing is written by it, and who reads of a failure wants to know that.
fn trying(object: &Value) -> String {
    format!("dry-run the apply of {}", ObjectKey::of(object))
}

impl Requests {
    /// By this client.
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// What asks the same cluster for parts of a snapshot.
    pub(crate) fn asker(&self) -> Asker {
        Asker::new(self.client.clone())
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// The object as it is stored, if it is, and if its kind is served.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn get(&self, key: &ObjectKey) -> Result<Option<Value>, Failure> {
        let api = self.api(&key.resource(), key.namespace.as_deref());
        match api.get(&key.name).await {
            Ok(object) => Ok(Some(value(object, &key.resource()))),
            // Also what the API server says of a path that it does not serve.
            Err(kube::Error::Api(status)) if is_absent(&status) => Ok(None),
            Err(error) => Err(unanswered(&format!("read {key}"), &error)),
        }
    }

    /// Every kind that is in namespaces and can be listed, each in its most stable version.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn kinds_in_namespaces(&self) -> Result<Vec<ApiResource>, Failure> {
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await;
        let discovery = discovery
            .map_err(|error| unanswered("ask the cluster which kinds it serves", &error))?;
        let all = discovery.groups().flat_map(ApiGroup::resources_by_stability);
        let listed = all
            .filter(|(_, of)| of.scope == Scope::Namespaced && of.supports_operation(verbs::LIST));
        Ok(listed.map(|(kind, _)| kind).collect())
    }

    /// The objects of a kind with these labels; none where the kind is not served.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn list(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, Failure> {
        match self.api(resource, namespace).list(&ListParams::default().labels(labels)).await {
            Ok(list) => Ok(list.items.into_iter().map(|object| value(object, resource)).collect()),
            Err(kube::Error::Api(status)) if is_absent(&status) => Ok(Vec::new()),
            Err(error) => Err(unanswered(&format!("list {}", resource.plural), &error)),
        }
    }

    /// Applies the object; fields of others are taken over with `force` alone.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn apply(
        &self,
        object: &Value,
        force: bool,
        apply: Apply,
    ) -> kube::Result<Value> {
        let key = ObjectKey::of(object);
        let params = PatchParams {
            dry_run: apply == Apply::DryRun,
            force,
            field_manager: Some(MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let api = self.api(&key.resource(), key.namespace.as_deref());
        api.patch(&key.name, &params, &Patch::Apply(object))
            .await
            .map(|stored| value(stored, &key.resource()))
    }

    /// What an apply would do.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn dry_run(&self, object: &Value, force: bool) -> Result<DryRun, Failure> {
        let doing = trying(object);
        match self.apply(object, force, Apply::DryRun).await {
            Ok(stored) => Ok(DryRun::Stored(stored)),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let fields = conflicts(&status);
                match self.apply(object, true, Apply::DryRun).await {
                    Ok(forced) => Ok(DryRun::Conflicts { fields, forced }),
                    Err(error @ kube::Error::Api(_)) => Ok(DryRun::Refused(why(&error))),
                    Err(error) => Err(unanswered(&doing, &error)),
                }
            }
            Err(error @ kube::Error::Api(_)) => {
                let failure = unanswered(&doing, &error);
                match failure.code {
                    "unauthenticated" | "forbidden" => Err(failure),
                    _ => Ok(DryRun::Refused(failure.causes.join(": "))),
                }
            }
            Err(error) => Err(unanswered(&doing, &error)),
        }
    }

    /// Why the API server would refuse to create an object; nothing where it would not, or it cannot be known before: its kind
    /// or its namespace are to be there first.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn dry_create(&self, object: &Value) -> Result<Option<DryRun>, Failure> {
        let error = match self.apply(object, false, Apply::DryRun).await {
            Ok(_) => return Ok(None),
            Err(error) => error,
        };
        match &error {
            kube::Error::Api(status) if status.code != 404 && is_passing(&error) => {
                Ok(Some(DryRun::Untried(why(&error))))
            }
            kube::Error::Api(status)
                if status.code == 404 || status.message.contains("does not support dry run") =>
            {
                Ok(None)
            }
            kube::Error::Api(status) if status.code != 401 => {
                Ok(Some(DryRun::Refused(why(&error))))
            }
            _ => Err(unanswered(&trying(object), &error)),
        }
    }

    /// Makes us the manager of an object that another tool installed. Its annotations of Helm go, by which Helm would
    /// take it for its own.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn adopt(&self, key: &ObjectKey) -> Result<(), Failure> {
        let patch = json!({"metadata": {
            "labels": {MANAGED_BY_LABEL: MANAGER},
            "annotations": {"meta.helm.sh/release-name": null, "meta.helm.sh/release-namespace": null},
        }});
        self.merge(key, &patch, &format!("take over {key}")).await
    }

    /// Has a Deployment run no pod.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn scale_to_zero(&self, key: &ObjectKey) -> Result<(), Failure> {
        let patch = json!({"spec": {"replicas": 0}});
        self.merge(key, &patch, &format!("scale {key} to 0")).await
    }

    /// Changes fields of an object, whoever has set them; `doing` says what for.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn merge(
        &self,
        key: &ObjectKey,
        patch: &Value,
        doing: &str,
    ) -> Result<(), Failure> {
        let params =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let api = self.api(&key.resource(), key.namespace.as_deref());
        let patched = api.patch(&key.name, &params, &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| unanswered(doing, &error))
    }

    /// Gives back all fields of an object that are ours; the object stays.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn release(&self, key: &ObjectKey) -> Result<(), Failure> {
        let mut object = json!({"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}});
        if let (Some(namespace), Some(metadata)) = (&key.namespace, object.get_mut("metadata")) {
            metadata["namespace"] = json!(namespace);
        }
        let applied = self.apply(&object, true, Apply::Store).await;
        applied.map(drop).map_err(|error| unanswered(&format!("release {key}"), &error))
    }

    /// Why this user may not delete the object; nothing is deleted.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn may_not_delete(&self, stored: &Value) -> Result<Option<String>, Failure> {
        let key = ObjectKey::of(stored);
        let params = DeleteParams { dry_run: true, ..DeleteParams::background() };
        match self.api(&key.resource(), key.namespace.as_deref()).delete(&key.name, &params).await {
            Err(error @ kube::Error::Api(_)) => {
                let failure = unanswered(&format!("delete {key}"), &error);
                // What a webhook says counts when it is asked for good: by then it may be gone.
                Ok((failure.code == "forbidden").then(|| format!("{key}: {}", why(&error))))
            }
            Err(error) => Err(unanswered(&format!("delete {key}"), &error)),
            Ok(_) => Ok(None),
        }
    }

    /// Deletes the object if it is still the one that was read.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn delete(&self, stored: &Value) -> kube::Result<Deletion> {
        let key = ObjectKey::of(stored);
        let uid = stored.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        let preconditions = Preconditions { uid, resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        match self.api(&key.resource(), key.namespace.as_deref()).delete(&key.name, &params).await {
            Ok(_) => Ok(Deletion::Deleted),
            // Another one has the name.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {
                Ok(Deletion::Gone)
            }
            Err(error) => Err(error),
        }
    }
}

/// What an apply by that field manager would store; nothing is stored.
///
/// # Errors
/// The cluster refuses it or does not answer.
pub(crate) async fn tried(
    api: &Api<DynamicObject>,
    object: &Value,
    manager: &str,
    force: bool,
) -> kube::Result<Value> {
    let params = PatchParams {
        dry_run: true,
        force,
        field_manager: Some(manager.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
    };
    let name = ObjectKey::of(object).name;
    let stored = api.patch(&name, &params, &Patch::Apply(object)).await?;
    Ok(serde_json::to_value(stored).unwrap_or_default())
}

/// The items of a list do not repeat what they are.
fn value(mut object: DynamicObject, resource: &ApiResource) -> Value {
    object.types.get_or_insert_with(|| TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    serde_json::to_value(object).unwrap_or_default()
}

/// Fields that belong to others, each with its manager. The API server names the manager in quotes.
pub(crate) fn conflicts(status: &kube::core::Status) -> Vec<(String, String)> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    conflicts
        .map(|cause| {
            let manager = cause.message.split('"').nth(1).unwrap_or(&cause.message);
            (cause.field.clone(), manager.to_owned())
        })
        .collect()
}
