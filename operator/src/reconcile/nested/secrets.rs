//! The Secrets that the settings of a nested cluster name: what of them kube-manager's configuration file cannot take
//! as it is becomes a key of a Secret of the operator's own, and what changes in them restarts kube-manager, which
//! reads them only at its start.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_nested_workloads::password::{InFile, in_configuration};
use opensdn_runtime::apply::read as read_object;
use sha2::{Digest as _, Sha256};

use super::Described;
use crate::build::certificates::Data;
use crate::component::{Form, NamedSecret};
use crate::reconcile::fetch::Fetched;
use crate::reconcile::validate::Invalid;
use crate::reconcile::{Context, Error};

/// Keys of the operator's own Secret.
pub(super) const KEYSTONE_PASSWORD: &str = "keystone-password";
const ESCAPED_KEYSTONE_PASSWORD: &str = "escaped-keystone-password";

/// The Secrets as they are stored, by name.
#[derive(Default)]
pub struct Stored(BTreeMap<String, Secret>);

impl Stored {
    /// These.
    #[must_use]
    pub fn of(all: impl IntoIterator<Item = Secret>) -> Self {
        Self(all.into_iter().map(|secret| (secret.name_any(), secret)).collect())
    }

    /// Changes with what kube-manager reads at its start. Who may read a Deployment, but no Secrets, cannot try
    /// passwords by it: the UIDs, which are random, are part of what it is made of.
    pub(super) fn digest<'a>(&self, made: impl Iterator<Item = &'a DynamicObject>) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        for secret in self.0.values() {
            add(secret.metadata.uid.as_deref().unwrap_or_default().as_bytes());
            for (key, value) in secret.data.iter().flatten() {
                add(key.as_bytes());
                add(&value.0);
            }
        }
        for secret in made {
            add(secret.metadata.uid.as_deref().unwrap_or_default().as_bytes());
            // Of a token the content comes a moment later, and changes only with the Secret.
            if secret.data.get("type").and_then(|type_| type_.as_str()) == Some("Opaque") {
                add(secret
                    .data
                    .get("data")
                    .map(ToString::to_string)
                    .unwrap_or_default()
                    .as_bytes());
            }
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Reads those that the settings name.
///
/// # Errors
/// A call fails, or a Secret is not there.
pub(super) async fn read(
    ctx: &Context,
    fetched: &Fetched,
    described: &Described,
) -> Result<Stored, Error> {
    let namespace = fetched.object.namespace();
    let mut all = BTreeMap::new();
    for NamedSecret { secret, field, key, .. } in &described.nested.secrets {
        if all.contains_key(secret) {
            continue;
        }
        let Some(found) = read_object::<Secret>(&ctx.writer, namespace.as_deref(), secret).await?
        else {
            let message = format!(
                "there is no Secret {secret}, which {field} names: create it with the key {key}"
            );
            return Err(Error::Refused(Invalid { reason: "SecretMissing", message }));
        };
        all.insert(secret.clone(), found);
    }
    Ok(Stored(all))
}

/// What the operator's own Secret has to have.
///
/// # Errors
/// A key is missing, or has what kube-manager cannot be given.
pub fn own(described: &Described, stored: &Stored) -> Result<Data, Error> {
    let mut own = Data::new();
    if let Some(password) = &described.nested.keystone_password {
        let place = "spec.commonConfiguration.authParameters.keystoneAuthParameters.adminPassword";
        if let Some(escaped) = escaped(password, place).map_err(Error::Refused)? {
            own.insert(ESCAPED_KEYSTONE_PASSWORD.to_owned(), escaped);
        }
        own.insert(KEYSTONE_PASSWORD.to_owned(), ByteString(password.clone().into_bytes()));
    }
    for NamedSecret { field, secret, key, form } in &described.nested.secrets {
        let place = format!("key {key} of Secret {secret}, which {field} names,");
        let data = stored.0.get(secret).and_then(|secret| secret.data.as_ref());
        let value = data.and_then(|data| data.get(*key)).filter(|value| !value.0.is_empty());
        let Some(value) = value else {
            let message = format!("{place} is missing: add it");
            return Err(Error::Refused(Invalid { reason: "SecretMissing", message }));
        };
        if *form == Form::File {
            continue;
        }
        let text = std::str::from_utf8(&value.0);
        let text = text.map_err(|_| Error::Refused(unusable(&place, "it is no UTF-8")))?;
        match (form, escaped(text, &place).map_err(Error::Refused)?) {
            (Form::Password(own_key), Some(escaped)) => {
                own.insert((*own_key).to_owned(), escaped);
            }
            (Form::Plain, Some(_)) => {
                return Err(Error::Refused(unusable(&place, "it has a % in it")));
            }
            _ => {}
        }
    }
    Ok(own)
}

/// The form that the configuration file needs, where it is another.
fn escaped(text: &str, place: &str) -> Result<Option<ByteString>, Invalid> {
    match in_configuration(text) {
        InFile::Plain => Ok(None),
        InFile::Escaped(text) => Ok(Some(ByteString(text.into_bytes()))),
        InFile::Impossible(why) => Err(unusable(place, why)),
    }
}

fn unusable(place: &str, why: &str) -> Invalid {
    let message = format!("{place} cannot be given to kube-manager: {why}; change it");
    Invalid { reason: "UnusablePassword", message }
}
