//! Changes that cross one that is at work.
//!
//! ```yaml
//! kind: Manager                   # while an Upgrade of it is Running
//! spec:
//!   services:
//!     config:
//!       spec: {serviceConfiguration: {containers: [{name: api, image: "…:R24.2"}]}}    # neither the earlier nor the new one
//! ```
//!
//! An Upgrade replaces pods one after the other, behind gates. What replaces pods beside it, has members come and go, or
//! takes the Manager away is refused until it is over; all else of the Manager may change. Members of a data store come
//! and go one at a time: while they do, no others are asked for.
//!
//! What the operator itself sets is known by the images: those of the Upgrade. Only before the turn of a service its new
//! images are the operator's alone. Deliberately not judged: labels of nodes, and objects that a Manager owns, since what
//! is changed there is undone.

mod deletion;
mod images;
mod members;
mod second;
mod upgrades;

use std::collections::BTreeMap;

use opensdn_policy_components::{
    ComponentView, Field, Owners, Services, effective, nodes::NODES, nodes::Selector,
    null_as_default,
};
use opensdn_policy_sdk::{Outcome, Pointer, Reads, Request, Verdict, policy};
use schemars::JsonSchema;
use serde::Deserialize;

use members::{CASSANDRAS, RABBITMQS, ServiceStatus, ZOOKEEPERS};
use upgrades::{MANAGER_UPGRADES, UPGRADES, Upgrade};

/// Settings of the policy `crossing-change`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Users who carry Upgrades out: they alone set new images before their turn.
    pub operators: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            operators: vec!["system:serviceaccount:opensdn-operator:opensdn-operator".to_owned()],
        }
    }
}

/// Who asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// Who carries Upgrades out.
    Operator,
    Other,
}

impl Settings {
    fn asker(&self, user: &str) -> Asker {
        let is_operator = self.operators.iter().any(|operator| operator == user);
        if is_operator { Asker::Operator } else { Asker::Other }
    }
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager", operations(Update))]
struct Manager {
    #[read("/metadata/deletionTimestamp")]
    deleted: Option<String>,
    #[read("/spec/commonConfiguration/nodeSelector")]
    selector: Option<Selector>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

/// What is read of the spec of a component.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Placement,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Configuration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Placement {
    node_selector: Option<Selector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Configuration {
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    image: String,
}

/// A service before the change and after it; of one that comes or goes there is one of them.
struct Change<'a> {
    before: Option<ComponentView<'a, Spec>>,
    after: Option<ComponentView<'a, Spec>>,
}

impl<'a> Change<'a> {
    /// What is there of it, after the change where it is there then.
    fn component(&self) -> Option<&ComponentView<'a, Spec>> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// As steps of an Upgrade name it.
    fn id(&self) -> String {
        self.component().map_or_else(String::new, |one| format!("{}/{}", one.kind, one.name))
    }
}

/// The services of both, each once.
fn changes<'a>(old: &'a Manager, new: &'a Manager, nothing: &'a Spec) -> Vec<Change<'a>> {
    let walk = |manager: &'a Manager| -> BTreeMap<(&'a str, &'a str), ComponentView<'a, Spec>> {
        let all = manager.services.iter().flat_map(|services| services.walk_all(nothing));
        all.filter(|one| !one.name.is_empty()).map(|one| ((one.kind, one.name), one)).collect()
    };
    let (mut before, after) = (walk(old), walk(new));
    let mut all: Vec<_> = after
        .into_iter()
        .map(|(key, after)| Change { before: before.remove(&key), after: Some(after) })
        .collect();
    all.extend(before.into_values().map(|before| Change { before: Some(before), after: None }));
    all
}

/// The node selector that counts for a service, and where it is.
fn selector<'a>(
    component: &ComponentView<'a, Spec>,
    manager: &'a Manager,
) -> Field<Option<&'a Selector>> {
    let own = component.spec.common_configuration.node_selector.as_ref();
    effective(
        (own, component.shared("/nodeSelector")),
        Some((manager.selector.as_ref(), "/spec/commonConfiguration/nodeSelector".into())),
    )
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return Ok(()) };
    if old.deleted.is_some() {
        return Ok(());
    }
    let nothing = Spec::default();
    let changes = changes(old, new, &nothing);
    let upgrades = Upgrade::at_work(&request.namespace, &request.name)?;
    let asker = settings.asker(&request.user);
    for change in &changes {
        images::judge(change, &upgrades, asker, verdict);
    }
    let mut moved: BTreeMap<Pointer, Vec<&ComponentView<'_, Spec>>> = BTreeMap::new();
    for change in &changes {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
        let (was, is) = (selector(before, old), selector(after, new));
        if was.value == is.value {
            continue;
        }
        match upgrades.iter().any(|upgrade| !upgrade.leaves_out(&change.id())) {
            true => moved.entry(is.at).or_default().push(after),
            false => {
                let status = ServiceStatus::read(after.kind, &request.namespace, after.name)?;
                members::judge(after, &status, (was.value, &is), verdict)?;
            }
        }
    }
    if let Some(upgrade) = upgrades.first() {
        moved.iter().for_each(|(at, all)| members::judge_move(upgrade, at, all, verdict));
    }
    Ok(())
}

macro_rules! stand_alone {
    ($($function:ident: $kind:ident = $name:literal),+ $(,)?) => {$(
        #[derive(Reads)]
        #[reads(group = "tf.tungsten.io", kind = $name, operations(Update))]
        struct $kind {
            #[read("/metadata/ownerReferences")]
            owners: Option<Owners>,
            #[read("/spec/commonConfiguration/nodeSelector")]
            selector: Option<Selector>,
            #[read("/status")]
            status: Option<ServiceStatus>,
        }

        fn $function(request: &Request<$kind>, _: &Settings, verdict: &mut Verdict) -> Outcome {
            let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return Ok(()) };
            if new.owners.as_ref().and_then(Owners::manager).is_some() {
                return Ok(());
            }
            let status = old.status.clone().unwrap_or_default();
            let own = |selector| (selector, Pointer::from("/spec/commonConfiguration/nodeSelector"));
            let was = effective(own(old.selector.as_ref()), None);
            let is = effective(own(new.selector.as_ref()), None);
            let nothing = Spec::default();
            let component = ComponentView::standalone($name, &request.name, &nothing);
            members::judge(&component, &status, (was.value, &is), verdict)
        }
    )+};
}

stand_alone! {
    cassandra: Cassandra = "Cassandra",
    rabbitmq: Rabbitmq = "Rabbitmq",
    zookeeper: Zookeeper = "Zookeeper",
}

policy! {
    name: "crossing-change",
    summary: "no change crosses one that is at work",
    settings: Settings,
    messages: [
        images::IMAGE,
        images::SERVICE,
        members::MOVED,
        deletion::DELETED,
        second::SECOND,
        members::IN_FLIGHT,
    ],
    // They are about the change itself.
    never_ratchets: [
        images::IMAGE,
        images::SERVICE,
        members::MOVED,
        deletion::DELETED,
        members::IN_FLIGHT,
    ],
    indexes: [CASSANDRAS, NODES, RABBITMQS, UPGRADES, MANAGER_UPGRADES, ZOOKEEPERS],
    validate: [manager, deletion::manager, second::upgrade, cassandra, rabbitmq, zookeeper],
}
