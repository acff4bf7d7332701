//! A Secret that is there, without the keys that are read of it.
//!
//! ```yaml
//! kind: Manager
//! spec:
//!   commonConfiguration:
//!     authParameters: {keystoneSecretName: keystone}   # it has the key admin-password, not password
//! ```
//!
//! The services then log in with an empty password (tf-operator) or do not start (our operator). Everything is a
//! warning, as the Secret may be put right later; that one is not there at all says `missing-reference`.
//!
//! Kubernetes gives the names of keys only together with the values. So the webhook reads every Secret of the
//! cluster whole for this policy, and skips the values as they come in; without it metadata and types are
//! enough. That is why it is not in force by default: `kubectl apply -f deploy/webhook/secret-keys.yaml`.

use std::collections::BTreeMap;

use opensdn_policy_components::{ComponentView, KeystoneSecret, Owners, Services, null_as_default};
use opensdn_policy_sdk::{
    Failure, Index, Message, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

const KEYSTONE: Message = Message {
    code: "OSDN1413",
    severity: Severity::Warn,
    title: "the Secret with Keystone's password has no key `password`",
    explanation: "The password is read of that key alone. Without it the services of tf-operator log in with an empty one, \
        and Keystone refuses them; those of our operator end with an error before they have a configuration. tf-operator \
        reads it for a Manager, in noauth too, but not beside adminPassword; our operator with Keystone alone, and in noauth \
        for the web UI.",
    hint: "add the key, of a file without a line break at its end (printf %s): kubectl create secret generic NAME --from-file=password=FILE --dry-run=client -o yaml \
        | kubectl apply --server-side -f -",
};

const RABBITMQ: Message = Message {
    code: "OSDN1521",
    severity: Severity::Warn,
    title: "the Secret with RabbitMQ's credentials lacks keys",
    explanation: "RabbitMQ's user and its virtual host are made of the keys user, password and vhost; one \
        that is missing is empty with tf-operator, and no client can log in; with our operator RabbitMQ and its clients \
        end with an error that names it.",
    hint: "add the keys that are missing, or remove secret to have one made",
};

const CA: Message = Message {
    code: "OSDN1906",
    severity: Severity::Warn,
    title: "the Secret contrail-ca-certificate lacks keys of a CA",
    explanation: "A Secret of this name has the CA that signs the certificates of OpenSDN: its certificate in \
        ca-bundle.crt, its key in ca-priv-key.pem; our operator reads tls.crt and tls.key of a TLS Secret as well, as \
        cert-manager writes it. tf-operator makes a CA of its own, and writes it over what is there, \
        where the certificate is missing; without the key it signs nothing, and no service gets a certificate.",
    hint: "give it both, or delete it to have a CA made: kubectl -n NAMESPACE create secret generic \
        contrail-ca-certificate --from-file=ca-bundle.crt=FILE --from-file=ca-priv-key.pem=FILE --dry-run=client -o \
        yaml | kubectl apply --server-side -f -",
};

/// The signer that an operator takes where none is named.
const SELF_SIGNED: &str = "SelfSignedCA";
const CA_SECRET: &str = "contrail-ca-certificate";

const SECRETS: Index =
    Index { name: "keys-of-secrets", group: "", kind: "Secret", key: "", reads: &["/data"] };

/// Settings of the policy `missing-secret-key`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Whether RabbitMQ's Secret needs the key `salted_password`, too: tf-operator makes RabbitMQ's user of
    /// it, our operator computes it.
    pub salted_password: bool,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/authParameters")]
    authentication: Option<KeystoneSecret>,
    #[read("/spec/commonConfiguration/certSigner")]
    signer: Option<String>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: ServiceConfiguration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Common {
    #[serde(deserialize_with = "null_as_default")]
    auth_parameters: KeystoneSecret,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceConfiguration {
    secret: Option<String>,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    if let Some(authentication) = &manager.authentication {
        let at = Pointer::from("/spec/commonConfiguration/authParameters");
        let kinds = manager.services.iter().flat_map(Services::walk).map(|one| one.kind);
        judge_keystone(authentication.read_for(kinds, true), &at, &request.namespace, verdict)?;
    }
    judge_ca(manager.signer.as_deref(), &request.namespace, settings, verdict)?;
    let none = Services::default();
    for component in manager.services.as_ref().unwrap_or(&none).walk() {
        if component.kind == "Rabbitmq" {
            judge_rabbitmq(&component, &request.namespace, settings, verdict)?;
        }
    }
    Ok(())
}

fn standalone(
    request: &Request<Standalone>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(Standalone { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
    if owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    let component = ComponentView::standalone(&request.kind, &request.name, spec);
    let at = component.shared("/authParameters");
    let kinds = std::iter::once(component.kind);
    let name = spec.common_configuration.auth_parameters.read_for(kinds, false);
    judge_keystone(name, &at, &request.namespace, verdict)?;
    if component.kind == "Rabbitmq" {
        judge_rabbitmq(&component, &request.namespace, settings, verdict)?;
    }
    Ok(())
}

/// `name` is that of the Secret, if it is read.
fn judge_keystone(
    name: Option<&str>,
    at: &Pointer,
    namespace: &str,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(name) = name else { return Ok(()) };
    if lacks(name, namespace, &["password"])?.is_some() {
        let text = format!("Secret {name} in namespace {namespace} has no key password");
        verdict.add(KEYSTONE.at(at.join("/keystoneSecretName")).says(text));
    }
    Ok(())
}

/// Another signer takes no CA of a Secret.
fn judge_ca(
    signer: Option<&str>,
    namespace: &str,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    if signer.is_some_and(|signer| signer != SELF_SIGNED) {
        return Ok(());
    }
    let missing = lacks(CA_SECRET, namespace, &["ca-bundle.crt", "ca-priv-key.pem"])?;
    // All of them are missing in one of cert-manager, which our operator reads. The setting says that it is tf-operator.
    let is_tls = !settings.salted_password
        && lacks(CA_SECRET, namespace, &["tls.crt", "tls.key"])?.is_none();
    if let Some(missing) = missing.filter(|missing| missing.len() == 1 || !is_tls) {
        let missing = missing.join(", ");
        let text = format!("Secret {CA_SECRET} in namespace {namespace} lacks {missing}");
        verdict.add(CA.at("/spec/commonConfiguration/certSigner").says(text));
    }
    Ok(())
}

fn judge_rabbitmq(
    component: &ComponentView<'_, Spec>,
    namespace: &str,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let name = component.spec.service_configuration.secret.as_deref().unwrap_or_default();
    // The operator fills its own.
    if name.is_empty() || name == format!("{}-secret", component.name) {
        return Ok(());
    }
    let mut needed = vec!["user", "password", "vhost"];
    needed.extend(settings.salted_password.then_some("salted_password"));
    if let Some(missing) = lacks(name, namespace, &needed)? {
        let text = format!("Secret {name} in namespace {namespace} lacks {}", missing.join(", "));
        verdict.add(RABBITMQ.at(component.setting("/secret")).says(text));
    }
    Ok(())
}

/// The keys that a Secret lacks, if it is there and lacks any.
fn lacks<'k>(
    name: &str,
    namespace: &str,
    needed: &[&'k str],
) -> Result<Option<Vec<&'k str>>, Failure> {
    let Some(secret) = SECRETS.get(namespace, name)? else { return Ok(None) };
    let keys = secret.part::<BTreeMap<String, IgnoredAny>>(0)?.unwrap_or_default();
    let missing = needed.iter().filter(|key| !keys.contains_key(**key)).copied();
    let missing: Vec<&str> = missing.collect();
    Ok((!missing.is_empty()).then_some(missing))
}

policy! {
    name: "missing-secret-key",
    summary: "a Secret that is named has the keys that are read of it",
    settings: Settings,
    messages: [KEYSTONE, RABBITMQ, CA],
    indexes: [SECRETS],
    validate: [manager, standalone],
}
