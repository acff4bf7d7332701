//! What works in OpenSDN and not where tf-operator runs the cluster.
//!
//! ```yaml
//! kind: Manager
//! metadata: {name: production}          # tf-operator looks for cluster1 and for nothing else
//! spec:
//!   services:
//!     zookeeper: {metadata: {name: zk}} # … and for zookeeper1
//! ```
//!
//! tf-operator has names in its code, applies some fields in half of the places, and stops in the middle
//! of an upgrade without a word. None of this is a fault of the manifest, and with our operator none of
//! it matters: so this policy is not in force by default. Put it in force where tf-operator runs:
//! `kubectl apply -f deploy/webhook/tf-operator.yaml`; `kubectl opensdn validate --operator tf-operator`
//! says the same offline.
//!
//! What tf-operator makes of a Manager is not judged: the Manager has been.

mod entities;
mod fields;
mod first_container;
mod gateway;
mod names;
mod nodes;
mod restarts;
mod secrets;
mod upgrade;

use opensdn_policy_components::{
    ComponentView, Owners, Services,
    nodes::{NODES, Selector},
    null_as_default,
};
use opensdn_policy_sdk::{NoSettings, Outcome, Pointer, Reads, Request, Verdict, policy};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use upgrade::Status;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration")]
    common: Option<Common>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
    #[read("/spec/nested")]
    nested: Option<IgnoredAny>,
    #[read("/status")]
    status: Option<Status>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec")]
    spec: Option<Spec>,
}

/// What is read of the spec of any component.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
struct Common {
    #[serde(deserialize_with = "null_as_default")]
    node_selector: Selector,
    #[serde(deserialize_with = "null_as_default")]
    log_level: String,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<Value>,
    #[serde(deserialize_with = "null_as_default")]
    auth_parameters: Map<String, Value>,
    cert_signer: Option<String>,
    cert_key_length: Option<i64>,
}

impl Common {
    fn has_keystone(&self) -> bool {
        self.auth_parameters.get("authMode").and_then(Value::as_str) == Some("keystone")
    }
}

impl Spec {
    /// A field that is given: neither null nor an empty text.
    fn given(&self, field: &str) -> Option<&Value> {
        self.service_configuration.get(field).filter(|value| !value.is_null() && **value != "")
    }
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    let (no_common, no_services, nothing) =
        (Common::default(), Services::default(), Spec::default());
    let common = manager.common.as_ref().unwrap_or(&no_common);
    let components: Vec<_> =
        manager.services.as_ref().unwrap_or(&no_services).walk_all(&nothing).collect();
    names::judge_manager(request, verdict);
    let is_nested = manager.nested.is_some() || components.iter().any(fields::is_nested);
    names::judge(&components, verdict);
    if !is_nested {
        names::judge_analytics(&components, verdict);
    }
    fields::judge_common(common, &Pointer::from("/spec/commonConfiguration"), verdict);
    if manager.nested.is_some() {
        let text = "a limit of tf-operator: the Manager is nested, and it does not know that";
        verdict.add(fields::NESTED.at("/spec/nested").says(text));
    }
    for component in &components {
        judge(component, is_nested, verdict);
    }
    first_container::judge_leader(&components, verdict);
    entities::judge_queue(&components, verdict);
    fields::judge_keystone(common, &components, verdict);
    // It does not run a nested cluster, on whichever nodes.
    if !is_nested {
        nodes::judge(common, &components, verdict)?;
    }
    let Some(old) = &request.old_object else { return Ok(()) };
    let before = old.services.as_ref().unwrap_or(&no_services);
    let before: Vec<_> = before.walk_all(&nothing).collect();
    let old_common = old.common.as_ref().unwrap_or(&no_common);
    restarts::judge_common(old_common, common, verdict);
    // While it upgrades it does nothing else at once: of such a change OSDN2004 says what it does.
    if !old.status.as_ref().is_some_and(upgrade::Status::is_of_an_upgrade) {
        restarts::judge_level(old_common, common, verdict);
        restarts::judge_images(&before, &components, verdict);
    }
    restarts::judge_vrouters(&before, &components, verdict);
    let change = upgrade::Change {
        common,
        before: &before,
        after: &components,
        status: old.status.as_ref(),
        edits: upgrade::Edits::of((old_common, &before), (common, &components)),
    };
    upgrade::judge(&change, verdict);
    Ok(())
}

fn standalone(request: &Request<Standalone>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Standalone { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
    if owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    let component = ComponentView::standalone(&request.kind, &request.name, spec);
    names::judge_standalone(&component, verdict);
    fields::judge_common(&spec.common_configuration, &component.shared(""), verdict);
    judge(&component, fields::is_nested(&component), verdict);
    Ok(())
}

/// `nested`: whether the cluster is, by the component or by its Manager.
fn judge(component: &ComponentView<'_, Spec>, nested: bool, verdict: &mut Verdict) {
    first_container::judge(component, verdict);
    gateway::judge(component, verdict);
    fields::judge(component, nested, verdict);
    entities::judge(component, verdict);
    // A nested cluster it does not run.
    if !nested {
        secrets::judge(component, verdict);
    }
}

policy! {
    name: "tf-operator-limits",
    summary: "what tf-operator cannot do with manifests that are right",
    settings: NoSettings,
    messages: [
        names::MANAGER,
        names::NAMESPACE,
        names::SERVICE,
        names::ANALYTICS,
        nodes::EMPTY_SELECTOR,
        nodes::NO_MASTER,
        nodes::TOO_MANY,
        nodes::KAFKA,
        nodes::FIRST_GROUP,
        nodes::LEAVES_OUT,
        first_container::FIRST_CONTAINER,
        fields::AGENTS_KEYSTONE,
        fields::ZOOKEEPER_PORT,
        fields::API_PORT,
        fields::REVERSE_NAMES,
        fields::LOG_LEVEL,
        fields::OF_THE_CLUSTER,
        fields::NESTED,
        fields::UNKNOWN,
        gateway::GATEWAY,
        entities::ENTITIES,
        secrets::PUBLIC,
        restarts::NOT_STAGED,
        restarts::NOT_APPLIED,
        restarts::NO_NEW_KEYS,
        upgrade::ABSENT,
        upgrade::KEYSTONE,
        upgrade::LOG_LEVEL,
        upgrade::RUNNING,
        upgrade::INACTIVE,
    ],
    // They are about the change itself.
    never_ratchets: [
        restarts::NOT_STAGED,
        restarts::NOT_APPLIED,
        restarts::NO_NEW_KEYS,
        upgrade::ABSENT,
        upgrade::KEYSTONE,
        upgrade::LOG_LEVEL,
        upgrade::RUNNING,
        upgrade::INACTIVE,
    ],
    indexes: [NODES],
    validate: [manager, standalone],
}
