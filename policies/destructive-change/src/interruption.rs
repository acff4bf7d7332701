//! Changes that take nothing away for good, but interrupt.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_policy_components::{ComponentView, null_as_default};
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde::Deserialize;

pub(crate) const CREDENTIALS: Message = Message {
    code: "OSDN1517",
    severity: Severity::Warn,
    title: "the user or password of RabbitMQ changes",
    explanation: "RabbitMQ reads them when it starts, its clients when they do. Until both have \
        restarted they do not get in.",
    hint: "change it when Config and the services that use it may reconnect, and see that the pods \
        of RabbitMQ are restarted",
};

pub(crate) const VROUTERS: Message = Message {
    code: "OSDN1819",
    severity: Severity::Warn,
    title: "the vrouters restart",
    explanation: "While its vrouter restarts, the pods of a node have no network. tf-operator \
        leaves it to the administrator: nothing changes on a node until its vrouter pod is deleted \
        by hand.",
    hint: "make the change when that is acceptable; with tf-operator, delete the pods one node after \
        the other: kubectl -n NAMESPACE get pods -o wide -l tf_manager=vrouter, then kubectl -n \
        NAMESPACE delete pod POD",
};

/// What is read of the spec of a component.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Configuration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Configuration {
    // Rabbitmq
    user: Option<String>,
    password: Option<String>,
    // Vrouter
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    env_variables_config: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    image: Option<String>,
}

/// Judges a component as it will be, beside its spec as it is.
pub(crate) fn judge(old: &Spec, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let old = &old.service_configuration;
    match new.kind {
        "Rabbitmq" => judge_credentials(old, new, verdict),
        "Vrouter" => judge_vrouter(old, new, verdict),
        _ => {}
    }
}

/// An empty value is none: then they are random.
fn judge_credentials(old: &Configuration, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let is = &new.spec.service_configuration;
    let fields = [("user", &old.user, &is.user), ("password", &old.password, &is.password)];
    for (field, was, is) in fields {
        if was.as_deref().unwrap_or_default() != is.as_deref().unwrap_or_default() {
            let text = format!("{}: the {field} changes, and clients lose it", new.title());
            verdict.add(CREDENTIALS.at(new.setting("").key(field)).says(text));
        }
    }
}

fn judge_vrouter(old: &Configuration, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let is = &new.spec.service_configuration;
    let (old_images, new_images) = (images(old), images(is));
    let images = changed(&old_images, &new_images);
    let variables = changed(&old.env_variables_config, &is.env_variables_config);
    for (field, what, names) in
        [("containers", "image of", images), ("envVariablesConfig", "variable", variables)]
    {
        if !names.is_empty() {
            let text = format!(
                "{}: pods on its nodes lose their network while it restarts ({what} {})",
                new.title(),
                names.join(", ")
            );
            verdict.add(VROUTERS.at(new.setting("").key(field)).says(text));
        }
    }
}

fn images(configuration: &Configuration) -> BTreeMap<String, String> {
    let containers = configuration.containers.iter();
    containers.map(|one| (one.name.clone(), one.image.clone().unwrap_or_default())).collect()
}

/// The keys whose values are not the same in both, in order.
fn changed<'a>(
    old: &'a BTreeMap<String, String>,
    new: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).map(String::as_str).collect()
}
