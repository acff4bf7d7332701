//! Asks the API server what an apply of each object would do.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Discovery, Scope};
use kube::{Api, Client, Error};
use serde_json::{Value, json};

use super::compare::{Effect, ManifestChange, compared};
use crate::clients::{is_absent, unanswered, why};
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::plan::DryRun;
use crate::install::requests::{conflicts, tried};
use crate::secret_mask::Secrets;

/// Requests at once.
const CONCURRENT: usize = 16;

/// Who applies, and to which namespace what names none.
#[derive(Clone, Debug)]
pub(crate) struct By {
    /// The field manager.
    pub(crate) manager: String,
    /// The namespace that the command line names.
    pub(crate) namespace: Option<String>,
    /// Whether secrets are shown.
    pub(crate) secrets: Secrets,
}

/// What an apply of each object would do, in their order.
///
/// # Errors
/// The cluster does not answer, or not this user; or the command line and an object name different namespaces.
pub(crate) async fn ask(
    client: &Client,
    objects: Vec<Value>,
    by: &By,
) -> Result<Vec<ManifestChange>, Failure> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await;
    let discovery =
        discovery.map_err(|error| unanswered("ask the cluster which kinds it serves", &error))?;
    let defined: Vec<Value> = objects.iter().filter_map(defined_kind).collect();
    let asked = objects.into_iter().map(|object| {
        let (discovery, defined) = (&discovery, &defined);
        async move { one(client, discovery, object, defined, by).await }
    });
    stream::iter(asked).buffered(CONCURRENT).try_collect().await
}

/// Group and kind that a CustomResourceDefinition defines.
fn defined_kind(object: &Value) -> Option<Value> {
    let is_definition = object.get("kind")?.as_str()? == "CustomResourceDefinition";
    let names =
        || Some(json!([object.pointer("/spec/group")?, object.pointer("/spec/names/kind")?]));
    names().filter(|_| is_definition)
}

async fn one(
    client: &Client,
    discovery: &Discovery,
    mut object: Value,
    defined: &[Value],
    by: &By,
) -> Result<ManifestChange, Failure> {
    let key = ObjectKey::of(&object);
    let version = key.api_version.rsplit('/').next().unwrap_or_default();
    let gvk = GroupVersionKind::gvk(key.group(), version, &key.kind);
    let refused = |reason: String| {
        Ok(ManifestChange { key: key.clone(), effect: Effect::Refused { reason } })
    };
    let Some((resource, capabilities)) = discovery.resolve_gvk(&gvk) else {
        if defined.contains(&json!([key.group(), key.kind])) {
            return Ok(ManifestChange { key, effect: Effect::Create });
        }
        return refused(format!(
            "the cluster does not serve {} of {}: its CRD is missing, or another version is served",
            key.kind, key.api_version
        ));
    };
    if key.name.is_empty() {
        return refused(
            "it has no metadata.name, so there is nothing to compare it with".to_owned(),
        );
    }
    let api = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = namespace(&key, client, by)?;
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.insert("namespace".to_owned(), json!(namespace));
            }
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    let key = ObjectKey::of(&object);
    let live = stored(&api, &key, &resource).await?;
    let dry = dry_run(&api, &object, &key, &by.manager).await?;
    match dry {
        Some(dry) => Ok(compared(key, live.as_ref(), &dry, by.secrets)),
        // Its namespace is to be made first.
        None => Ok(ManifestChange { key, effect: Effect::Create }),
    }
}

/// As kubectl has it: what the command line names must not be another than what the object does.
fn namespace(key: &ObjectKey, client: &Client, by: &By) -> Result<String, Failure> {
    match (&key.namespace, &by.namespace) {
        (Some(own), Some(given)) if own != given => {
            let message = format!("{key} is of the namespace {own}, and --namespace is {given}");
            Err(Failure::new(Exit::Usage, "another-namespace", message, "leave --namespace out"))
        }
        (Some(namespace), _) | (None, Some(namespace)) => Ok(namespace.clone()),
        (None, None) => Ok(client.default_namespace().to_owned()),
    }
}

async fn stored(
    api: &Api<DynamicObject>,
    key: &ObjectKey,
    resource: &ApiResource,
) -> Result<Option<Value>, Failure> {
    match api.get(&key.name).await {
        Ok(object) => Ok(Some(value(object, resource))),
        Err(Error::Api(status)) if is_absent(&status) => Ok(None),
        Err(error) => Err(unanswered(&format!("read {key}"), &error)),
    }
}

fn value(object: DynamicObject, resource: &ApiResource) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), json!(resource.api_version));
        fields.insert("kind".to_owned(), json!(resource.kind));
    }
    value
}

/// None where its namespace is not there.
async fn dry_run(
    api: &Api<DynamicObject>,
    object: &Value,
    key: &ObjectKey,
    manager: &str,
) -> Result<Option<DryRun>, Failure> {
    let answer = match tried(api, object, manager, false).await {
        Ok(stored) => DryRun::Stored(stored),
        Err(Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(Error::Api(status)) if status.code == 409 && !conflicts(&status).is_empty() => {
            let fields = conflicts(&status);
            match tried(api, object, manager, true).await {
                Ok(forced) => DryRun::Conflicts { fields, forced },
                Err(error @ Error::Api(_)) => DryRun::Refused(why(&error)),
                Err(error) => return Err(unanswered(&format!("apply {key}"), &error)),
            }
        }
        Err(error @ Error::Api(_)) => {
            let failure = unanswered(&format!("apply {key}"), &error);
            match failure.code {
                "unauthenticated" | "forbidden" => return Err(failure),
                _ => DryRun::Refused(failure.causes.join(": ")),
            }
        }
        Err(error) => return Err(unanswered(&format!("apply {key}"), &error)),
    };
    Ok(Some(answer))
}
