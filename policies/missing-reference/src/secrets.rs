//! The Secrets that are named: whether they are there, and of the right type. Never their data:
//! no index reads it.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Index, Message, Outcome, Pointer, Severity, Verdict};

use crate::{Common, Settings, Spec};

pub(crate) const KEYSTONE: Message = Message {
    code: "OSDN1404",
    severity: Severity::Warn,
    title: "the Secret with Keystone's password is not there",
    explanation: "With authMode keystone the services of our operator that log in do not start without it, and the web UI \
        does not in noauth either, whatever adminPassword says, which our operator ignores beside a Secret. tf-operator \
        takes adminPassword where it is set; where it is not it reads the Secret for a Manager, in noauth too, and makes no \
        service while it is missing.",
    hint: "create it, of a file without a line break at its end (printf %s): kubectl create secret generic NAME \
        --from-file=password=FILE",
};

pub(crate) const IMAGE_PULL: Message = Message {
    code: "OSDN1214",
    severity: Severity::Warn,
    title: "a Secret for pulling images is not there, or is none",
    explanation: "The nodes cannot pull the images, and the pods stay in ImagePullBackOff.",
    hint: "create it: kubectl create secret docker-registry NAME --docker-server=… \
        --docker-username=… --docker-password=…",
};

pub(crate) const RABBITMQ: Message = Message {
    code: "OSDN1516",
    severity: Severity::Warn,
    title: "the Secret with RabbitMQ's credentials is not there",
    explanation: "Only the default Secret, NAME-secret, is made by the operator. Without the \
        Secret that is named RabbitMQ has no user that its clients know, and pods of our operator do not start.",
    hint: "remove secret to have one made, or create it with the keys user, password, vhost and \
        salted_password (4 random bytes, then the SHA-256 of these and the password), of which \
        tf-operator makes RabbitMQ's user",
};

pub(crate) const SECRETS: Index =
    Index { name: "secrets", group: "", kind: "Secret", key: "", reads: &["/type"] };

const PULL_TYPES: [&str; 2] = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];

/// The Secrets of a commonConfiguration at `at`, where `keystone` is the one that is read for Keystone. `place` is the
/// namespace, with the settings.
pub(crate) fn judge_common(
    common: &Common,
    keystone: Option<&str>,
    at: &Pointer,
    place: (&str, &Settings),
    verdict: &mut Verdict,
) -> Outcome {
    if let Some(name) = keystone {
        let at = at.join("/authParameters/keystoneSecretName");
        let create = "create secret generic";
        let hint = |namespace: &str| {
            format!(
                "kubectl -n {namespace} {create} {name} --from-file=password=FILE, of a file without a line \
                 break at its end (printf %s)"
            )
        };
        judge_existence(&KEYSTONE, name, &at, hint, place, verdict)?;
    }
    judge_pull_secrets(&common.image_pull_secrets, &at.key("imagePullSecrets"), place, verdict)
}

/// `names` are at `at`.
pub(crate) fn judge_pull_secrets(
    names: &[String],
    at: &Pointer,
    place: (&str, &Settings),
    verdict: &mut Verdict,
) -> Outcome {
    let (namespace, settings) = place;
    let Some(severity) = settings.secrets.severity() else { return Ok(()) };
    for (number, name) in names.iter().enumerate() {
        let here = at.index(number);
        let text = match SECRETS.get(namespace, name)? {
            None => format!("there is no Secret {name:?} in namespace {namespace}"),
            Some(secret) => match secret.part::<String>(0)?.as_deref() {
                Some(kind) if PULL_TYPES.contains(&kind) => continue,
                kind => format!(
                    "Secret {name} in namespace {namespace} has type {:?}; for pulling images it \
                     must be {}",
                    kind.unwrap_or("Opaque"),
                    PULL_TYPES[0]
                ),
            },
        };
        verdict.add(IMAGE_PULL.at(here).severity(severity).says(text));
    }
    Ok(())
}

pub(crate) fn judge_rabbitmq(
    component: &ComponentView<'_, Spec>,
    place: (&str, &Settings),
    verdict: &mut Verdict,
) -> Outcome {
    let name = component.spec.service_configuration.secret.as_deref().unwrap_or_default();
    let made_by_the_operator = format!("{}-secret", component.name);
    if name.is_empty() || name == made_by_the_operator {
        return Ok(());
    }
    let hint = |namespace: &str| {
        format!(
            "remove secret to have {made_by_the_operator} made; or make it with all four keys (of \
             salted_password RabbitMQ's user is made), of files without a line break at their ends (printf \
             %s): head -c 4 /dev/urandom > salt; (cat salt; cat \
             salt password | openssl dgst -sha256 -binary) > salted_password; kubectl -n {namespace} \
             create secret generic {name} --from-file=user --from-file=password --from-file=vhost \
             --from-file=salted_password"
        )
    };
    judge_existence(&RABBITMQ, name, &component.setting("/secret"), hint, place, verdict)
}

fn judge_existence(
    message: &Message,
    name: &str,
    at: &Pointer,
    hint: impl Fn(&str) -> String,
    (namespace, settings): (&str, &Settings),
    verdict: &mut Verdict,
) -> Outcome {
    let Some(severity) = settings.secrets.severity() else { return Ok(()) };
    if SECRETS.get(namespace, name)?.is_none() {
        let text = format!("there is no Secret {name:?} in namespace {namespace}");
        verdict.add(message.at(at).severity(severity).says(text).hint(hint(namespace)));
    }
    Ok(())
}
