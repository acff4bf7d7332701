//! The cluster as a plan needs it: a Manager, the objects of its services, and their pods. Whether an object is the
//! Manager's says its owner; which pods belong to which service say labels, of those that a workload keeps.

use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_crds::upgrade::UpgradeSpec;
use opensdn_upgrade::health::Service;
use opensdn_upgrade::plan::{Input, Plan, plan, ziu_state};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::snapshot::{annotation, has_ended, list, name, text};
use crate::status::owner;

/// The annotation by which the operator leaves the services of a Manager as they are.
const PAUSED: &str = "opensdn.io/paused";
/// The annotation that says the release of images, where tags do not.
pub(crate) const RELEASE: &str = "opensdn.io/release";

/// What a plan is made of.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The Manager.
    pub(crate) manager: Value,
    /// How its services are.
    pub(crate) services: Vec<Service>,
}

impl World {
    /// By the objects of the services and the pods of the namespace.
    pub(crate) fn of(
        manager: Value,
        objects: &[(&'static Component, Vec<Value>)],
        pods: &[Value],
    ) -> Self {
        let uid = text(&manager, "/metadata/uid");
        let is_ours = |object: &&Value| {
            let mut owners = list(object, "/metadata/ownerReferences");
            owners.any(|one| {
                one.get("controller").and_then(Value::as_bool) == Some(true)
                    && text(one, "/uid") == uid
            })
        };
        let all = objects.iter().flat_map(|(facts, all)| all.iter().map(move |one| (facts, one)));
        let services = all.filter(|(_, object)| is_ours(object)).map(|(facts, object)| {
            let of_service = |pod: &&Value| {
                !has_ended(pod)
                    && is_kept(pod)
                    && owner(pod)
                        .is_some_and(|(kind, of)| kind.kind == facts.kind && of == name(object))
            };
            Service::of_objects(facts.kind, object, pods.iter().filter(of_service))
        });
        let services = services.collect();
        Self { manager, services }
    }

    /// The plan of what is wanted.
    pub(crate) fn plan(&self, spec: &UpgradeSpec) -> Plan {
        let paused = self.paused();
        plan(&Input {
            spec,
            manager: self.manager.get("spec").unwrap_or(&Value::Null),
            paused: paused.as_deref(),
            release: annotation(&self.manager, RELEASE),
            ziu_state: ziu_state(&self.manager),
            services: &self.services,
        })
    }

    /// Why the operator leaves the services as they are, if it does; in its words.
    fn paused(&self) -> Option<String> {
        let is_set = annotation(&self.manager, PAUSED).is_some_and(|value| value != "false");
        is_set.then(|| {
            format!("the annotation {PAUSED} is set: nothing is changed until it is removed")
        })
    }
}

/// Whether a workload keeps it: a pod that a user has made has labels as he likes.
fn is_kept(pod: &Value) -> bool {
    list(pod, "/metadata/ownerReferences").any(|owner| {
        owner.get("controller").and_then(Value::as_bool) == Some(true)
            && text(owner, "/apiVersion").starts_with("apps/")
    })
}

/// The kinds of which a Manager has services.
pub(crate) fn kinds(manager: &Value) -> Vec<&'static Component> {
    let spec = manager.get("spec").unwrap_or(&Value::Null);
    let services = opensdn_upgrade::images::services(spec);
    let has = |facts: &&Component| services.iter().any(|one| one.facts.kind == facts.kind);
    COMPONENTS.iter().filter(has).collect()
}

/// The Manager that is meant.
///
/// # Errors
/// There is none of the name, or several and no name.
pub(crate) fn pick(
    managers: Vec<Value>,
    wanted: Option<&str>,
    namespace: &str,
) -> Result<Value, Failure> {
    let names: Vec<String> = managers.iter().map(|one| name(one).to_owned()).collect();
    let mut fitting =
        managers.into_iter().filter(|one| wanted.is_none_or(|wanted| name(one) == wanted));
    let (first, second) = (fitting.next(), fitting.next());
    let fail =
        |message: String, hint: String| Err(Failure::new(Exit::Usage, "no-manager", message, hint));
    match (first, second, wanted) {
        (Some(one), None, _) => Ok(one),
        (Some(_), Some(_), _) => fail(
            format!("the namespace {namespace} has several Managers: {}", names.join(", ")),
            "name one of them: --manager NAME".to_owned(),
        ),
        (None, _, Some(wanted)) if !names.is_empty() => fail(
            format!("there is no Manager {wanted} in the namespace {namespace}"),
            format!("there are: {}", names.join(", ")),
        ),
        (None, ..) => fail(
            format!("there is no Manager in the namespace {namespace}"),
            "name its namespace: -n NAMESPACE".to_owned(),
        ),
    }
}
