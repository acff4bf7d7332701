//! The objects of a component (pure): one file for each kind that is made. What differs between
//! components comes from their descriptions; no line here names one.

pub mod certificates;
mod claim;
mod config_map;
mod container;
mod daemon_set;
mod disruption_budget;
pub mod passwords;
mod pod;
mod service;
mod service_account;
mod stateful_set;
mod token;
pub(crate) mod valid;
mod volumes;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::kind::{Kind, Workload};
use crate::names::{self, APPLIED};
use crate::object::field_with;
use crate::template::{LINE_BREAKS, TemplateError, Templates};
pub(crate) use pod::{pull_secrets, tolerations};
pub use valid::{Claim, Home, Image, Members, Valid};

/// Why the objects could not be made. All of it are errors of ours.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BuildError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("spec{field} has a line break, which no file takes: take it out")]
    LineBreak { field: String, source: TemplateError },
    #[error("write {kind} as JSON")]
    Json { kind: &'static str, source: serde_json::Error },
}

/// An object as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// All that the operator wants of it, with the digest of that in [`APPLIED`].
    pub object: DynamicObject,
}

/// What is secret of a component.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// The certificates of its pods, for each Secret of them.
    pub certificates: Vec<certificates::Data>,
    /// Its passwords.
    pub passwords: certificates::Data,
}

/// All objects of a component, in the order in which they are applied.
///
/// # Errors
/// A template is wrong.
pub fn build(
    templates: &Templates,
    object: &DynamicObject,
    valid: &Valid,
    secrets: Secrets,
) -> Result<Vec<Intent>, BuildError> {
    let owner = Owner { object, valid };
    // Without a node it would be made with nothing to do, and an old one keeps its size.
    let is_started = !valid.nodes.is_empty() && valid.waits_for.is_none();
    let files = config_map::files(templates, valid).map_err(|error| named(error, object))?;
    let mut intents = vec![
        intent(Kind::ServiceAccount, &service_account::build(&owner))?,
        intent(Kind::ConfigMap, &config_map::build(&owner, files.all, is_started))?,
    ];
    for secret in certificates::build(&owner, secrets.certificates) {
        intents.push(intent(Kind::Secret, &secret)?);
    }
    if let Some(secret) = passwords::build(&owner, secrets.passwords) {
        intents.push(intent(Kind::Secret, &secret)?);
    }
    if let Some(secret) = token::build(&owner) {
        intents.push(intent(Kind::Secret, &secret)?);
    }
    if let Some(service) = service::build(&owner) {
        intents.push(intent(Kind::Service, &service)?);
    }
    if let Some(budget) = disruption_budget::build(&owner) {
        intents.push(intent(Kind::PodDisruptionBudget, &budget)?);
    }
    if is_started && valid.refused_tolerations.is_none() {
        intents.extend(keepers(&owner, &files.digest)?);
    }
    Ok(intents)
}

/// With the field, where it is a value of the object that cannot be written.
fn named(error: BuildError, object: &DynamicObject) -> BuildError {
    let has_line_break = |text: &str| text.contains(LINE_BREAKS);
    let field = object.data.get("spec").and_then(|spec| field_with(spec, &has_line_break));
    match (error, field) {
        (BuildError::Template(source), Some(field)) if source.is_line_break() => {
            BuildError::LineBreak { field, source }
        }
        (error, _) => error,
    }
}

/// What keeps the pods, and before it the volumes, where each node has one.
fn keepers(owner: &Owner<'_>, configuration: &str) -> Result<Vec<Intent>, BuildError> {
    let valid = owner.valid;
    let Some(homes) = &valid.homes else {
        return Ok(vec![match valid.workload {
            Workload::StatefulSet => {
                intent(Kind::StatefulSet, &stateful_set::build(owner, configuration))?
            }
            Workload::DaemonSet => {
                intent(Kind::DaemonSet, &daemon_set::build(owner, configuration))?
            }
        }]);
    };
    let mut intents = Vec::new();
    for home in homes.iter().filter(|home| !home.ends) {
        intents.push(claim_of(owner.object, valid, &home.node, &home.claim)?);
    }
    for home in homes {
        let set = stateful_set::build_at(owner, configuration, home);
        intents.push(intent(Kind::StatefulSet, &set)?);
    }
    Ok(intents)
}

/// The volume of a node.
///
/// # Errors
/// It is an error of ours.
pub(crate) fn claim_of(
    object: &DynamicObject,
    valid: &Valid,
    node: &str,
    claim: &Claim,
) -> Result<Intent, BuildError> {
    intent(Kind::PersistentVolumeClaim, &claim::build(&Owner { object, valid }, node, claim))
}

/// Whom the objects belong to.
struct Owner<'a> {
    object: &'a DynamicObject,
    valid: &'a Valid,
}

impl Owner<'_> {
    fn metadata(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: self.object.namespace(),
            labels: Some(names::managed(self.valid.instance.labels())),
            owner_references: Some(vec![owner(self.object)]),
            ..ObjectMeta::default()
        }
    }
}

/// That everything that is made for the object goes with it.
#[must_use]
pub fn owner(object: &DynamicObject) -> OwnerReference {
    let types = object.types.clone().unwrap_or_default();
    OwnerReference {
        api_version: types.api_version,
        kind: types.kind,
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// An object with the digest of all that is wanted of it.
///
/// # Errors
/// It is no object.
pub fn intent(kind: Kind, object: &impl Serialize) -> Result<Intent, BuildError> {
    let json = |source| BuildError::Json { kind: kind.name(), source };
    let value = serde_json::to_value(object).map_err(json)?;
    let digest = digest([value.to_string().as_bytes()]);
    let mut object: DynamicObject = serde_json::from_value(value).map_err(json)?;
    object.annotations_mut().insert(APPLIED.to_owned(), digest);
    Ok(Intent { kind, name: object.name_any(), object })
}

/// A digest for comparing, not for keeping secrets: 128 bits in hexadecimal.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    use std::fmt::Write as _;
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
