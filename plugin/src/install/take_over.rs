//! Taking over what tf-operator runs: what that is, what speaks against it, and the end of tf-operator, by which ours can
//! begin. Deliberately not here: what becomes of the objects (the operator, `reconcile/take_over.rs`).

use std::collections::{BTreeMap, BTreeSet};

use kube::api::{ApiResource, GroupVersionKind};
use opensdn_crds::component::COMPONENTS;
use opensdn_crds::{TUNGSTEN_GROUP, VERSION};
use opensdn_deploy::{Values, names};
use opensdn_validate::report::one_line;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::object::ObjectKey;
use super::requests::Requests;
use super::tf_operator::{self, TfOperator};
use super::waiting::Deadline;
use super::waits::State;
use crate::exit::{Exit, Failure};
use crate::shell::quoted;
use crate::snapshot::{list, namespace, number, text, title};
use crate::ui::Ui;

/// By which both operators know what is of a component.
const LABEL: &str = "tf_manager";

/// What is taken over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TakeOver {
    /// The Deployments of tf-operator, which are scaled to 0.
    pub(crate) operators: Vec<ObjectKey>,
    /// The same, with what is needed to do it.
    #[serde(skip)]
    #[schemars(skip)]
    running: Vec<TfOperator>,
    /// Whether ours is there already: then there is no way back to tf-operator.
    #[serde(skip)]
    #[schemars(skip)]
    has_ours: bool,
    /// What they run, and ours will.
    pub(crate) services: Vec<TakenService>,
    /// What is to be put right before, or to be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
}

/// A workload of a component.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TakenService {
    /// Its StatefulSet or DaemonSet.
    pub(crate) workload: ObjectKey,
    /// The kind of the component.
    pub(crate) kind: String,
    /// The component.
    pub(crate) component: String,
    /// How many pods it has.
    pub(crate) pods: i64,
    /// How many of them are ready.
    pub(crate) ready: i64,
    /// Whether they are recreated at once, and not with the next change of the component: there is no CA of tf-operator that
    /// could issue their certificates.
    pub(crate) recreated: bool,
}

/// The cluster as far as it matters here.
#[derive(Clone, Debug, Default)]
struct World {
    operators: Vec<TfOperator>,
    has_ours: bool,
    managers: Vec<Value>,
    workloads: Vec<Value>,
    /// The namespaces with the CA of tf-operator.
    with_ca: BTreeSet<String>,
}

/// What would be taken over; nothing where no tf-operator runs.
///
/// # Errors
/// The cluster cannot be asked, or something has to be put right before.
pub(crate) async fn take_over(
    requests: &Requests,
    operators: Vec<TfOperator>,
    values: &Values,
) -> Result<TakeOver, Failure> {
    let managers = GroupVersionKind::gvk(TUNGSTEN_GROUP, VERSION, "Manager");
    let managers = ApiResource::from_gvk_with_plural(&managers, "managers");
    let ours = ObjectKey {
        namespace: Some(names::operator::NAMESPACE.to_owned()),
        ..ObjectKey::cluster("apps/v1", "Deployment", names::operator::NAME)
    };
    let mut world = World {
        operators,
        has_ours: requests.get(&ours).await?.is_some(),
        managers: requests.list(&managers, None, "").await?,
        workloads: Vec::new(),
        with_ca: BTreeSet::new(),
    };
    for namespace in world.managers.iter().map(namespace) {
        let ca = ObjectKey {
            namespace: Some(namespace.to_owned()),
            ..ObjectKey::cluster("v1", "Secret", names::operator::GIVEN_CA_SECRET)
        };
        if requests.get(&ca).await?.is_some() {
            world.with_ca.insert(namespace.to_owned());
        }
    }
    for kind in ["StatefulSet", "DaemonSet"] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind));
        world.workloads.extend(requests.list(&resource, None, LABEL).await?);
    }
    refuse(&world, &values.operator.watched_namespaces)?;
    Ok(of(&world))
}

/// What would make it fail half-way.
fn refuse(world: &World, watched: &[String]) -> Result<(), Failure> {
    for operator in &world.operators {
        if let Some(version) = &operator.version_of_olm {
            let key = &operator.key;
            let message = format!(
                "{key} is kept by the Operator Lifecycle Manager ({}), which would start it again",
                one_line(version)
            );
            let hint = format!(
                "delete its Subscription, and then: kubectl delete clusterserviceversion {} -n {}; what it runs stays",
                quoted(version),
                key.namespace.as_deref().unwrap_or_default()
            );
            return Err(Failure::new(Exit::Refused, "kept-by-olm", message, hint));
        }
    }
    let outside: Vec<String> = world
        .managers
        .iter()
        .filter(|manager| !watched.iter().any(|one| one == namespace(manager)))
        .map(|manager| format!("Manager {}", title(manager)))
        .collect();
    if outside.is_empty() {
        return Ok(());
    }
    let mut namespaces: Vec<&str> = world.managers.iter().map(namespace).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let message = "the operator would not watch a namespace with a Manager of tf-operator: no operator would look after it";
    let hint = format!("--set operator.watchedNamespaces={}", namespaces.join(","));
    let mut failure = Failure::new(Exit::Refused, "unwatched-manager", message, hint);
    failure.causes = outside;
    Err(failure)
}

fn of(world: &World) -> TakeOver {
    // Elsewhere anyone may make a workload that looks like one.
    let has_manager = |workload: &&Value| {
        world.managers.iter().any(|manager| namespace(manager) == namespace(workload))
    };
    let services: Vec<TakenService> =
        world.workloads.iter().filter(has_manager).filter_map(|one| service(world, one)).collect();
    let mut remarks = Vec::new();
    for service in &services {
        let TakenService { workload, kind, component, pods, ready, .. } = service;
        if ready < pods {
            remarks.push(format!(
                "{workload} has {ready} of {pods} pods ready: of a service in which something is wrong no other pod is \
                 recreated, so put that right first"
            ));
        } else if *pods == 1 && workload.kind == "StatefulSet" {
            remarks.push(format!(
                "{kind} {component} has one pod: it is away while that is recreated"
            ));
        }
    }
    for manager in &world.managers {
        let stage = number(manager, "/status/ziuState").filter(|stage| *stage >= 1);
        if let Some(stage) = stage {
            remarks.push(format!(
                "Manager {}: tf-operator has not finished an upgrade (ziuState {stage}): services run images of two releases, \
                 and an Upgrade has to finish it afterwards",
                title(manager)
            ));
        }
    }
    TakeOver {
        operators: world.operators.iter().map(|one| one.key.clone()).collect(),
        running: world.operators.clone(),
        has_ours: world.has_ours,
        services,
        remarks,
    }
}

/// A workload that a component of OpenSDN owns.
fn service(world: &World, workload: &Value) -> Option<TakenService> {
    let owner = list(workload, "/metadata/ownerReferences").find(|owner| {
        text(owner, "/apiVersion").starts_with(TUNGSTEN_GROUP)
            && COMPONENTS.iter().any(|facts| facts.kind == text(owner, "/kind"))
    })?;
    let (pods, ready) = match text(workload, "/kind") {
        "DaemonSet" => ("/status/desiredNumberScheduled", "/status/numberReady"),
        _ => ("/spec/replicas", "/status/readyReplicas"),
    };
    let count = |pointer| number(workload, pointer).unwrap_or_default();
    Some(TakenService {
        workload: ObjectKey::of(workload),
        kind: text(owner, "/kind").to_owned(),
        // The name of an owner may be anything.
        component: one_line(&format!("{}/{}", namespace(workload), text(owner, "/name"))),
        pods: count(pods),
        ready: count(ready),
        recreated: !world.with_ca.contains(namespace(workload)),
    })
}

impl TakeOver {
    /// What is said before it is confirmed.
    pub(crate) fn lines(&self) -> Vec<String> {
        let operators: Vec<String> = self.operators.iter().map(ToString::to_string).collect();
        let mut lines = vec![format!(
            "takes over what tf-operator runs: {} is scaled to 0, and stays otherwise",
            operators.join(", ")
        )];
        let mut of_kind: BTreeMap<(&str, &str, bool), (i64, Vec<&str>)> = BTreeMap::new();
        for service in &self.services {
            let key = (&*service.workload.kind, &*service.kind, service.recreated);
            let (pods, names) = of_kind.entry(key).or_default();
            *pods += service.pods;
            names.push(&service.component);
        }
        for ((workload, kind, recreated), (pods, names)) in &of_kind {
            let how = match *workload {
                "DaemonSet" => {
                    "recreated one node after the other, whose workloads have no network meanwhile"
                }
                _ => "recreated one after the other, each when the others are ready",
            };
            let when = if *recreated { "" } else { "stay, and with its next change " };
            lines.push(format!("{kind} {}: its {pods} pods {when}are {how}", names.join(", ")));
        }
        if self.services.is_empty() {
            lines.push(
                "it runs no service: there is no StatefulSet and no DaemonSet of a component"
                    .to_owned(),
            );
        }
        lines
    }

    /// Ends tf-operator, and waits until it is away: two operators would change the same objects.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer, a pod of it stays, or it is started again.
    pub(crate) async fn end_tf_operator(
        &self,
        requests: &Requests,
        deadline: Deadline,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        for key in self.running.iter().filter(|one| one.replicas > 0).map(|one| &one.key) {
            ui.progress(&format!("scaling {key} to 0"));
            let doing = format!("scale {key} to 0");
            deadline.within(&doing, requests.scale_to_zero(key)).await??;
        }
        let keys = self.operators.clone();
        deadline
            .wait_for("tf-operator to end", keys, ui, async |key| self.state(requests, key).await)
            .await
    }

    async fn state(&self, requests: &Requests, key: &ObjectKey) -> Result<State, Failure> {
        let Some(operator) = self.running.iter().find(|one| one.key == *key) else {
            return Ok(State::Ready);
        };
        Ok(match operator.now(requests).await? {
            (replicas, _) if replicas > 0 => State::Hopeless(format!(
                "it was scaled to 0, and is scaled to {replicas} again: who does that, a person or a tool such as Argo CD, \
                 has to leave it"
            )),
            (_, None) => State::Ready,
            (_, Some(pod)) => State::Waiting(format!("its pod {pod} is still there")),
        })
    }

    /// With how to continue, and how to go back as long as ours is not there.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let mut hints = Vec::from_iter(Some(failure.hint.clone()).filter(|hint| !hint.is_empty()));
        hints.push(self.way_on());
        Failure { hint: hints.join("; "), ..failure }
    }

    /// What is so where the installation is not done.
    pub(crate) fn way_on(&self) -> String {
        let on = "tf-operator is scaled to 0, and no operator looks after what it ran until the same command has continued";
        if self.has_ours {
            return on.replace(
                ", and no operator looks after what it ran until",
                ": ours has to look after what it ran, once",
            );
        }
        let back = self.running.iter().map(TfOperator::back).collect::<Vec<_>>().join("; ");
        format!("{on}; to go back instead: {back}")
    }
}

/// Looks once more that no tf-operator runs, as ours begins.
///
/// # Errors
/// One does, or it cannot be told.
pub(crate) async fn is_alone(requests: &Requests) -> Result<(), Failure> {
    let running = tf_operator::running(requests).await?;
    let Some(other) = running.first() else { return Ok(()) };
    let key = &other.key;
    let what = match other.replicas {
        0 => format!("its pod {} is still there", other.pods.join(", ")),
        replicas => format!("it is scaled to {replicas} again"),
    };
    let message = format!("{key} would run beside our operator: {what}");
    let hint = format!(
        "two operators change the same objects: find out who starts it, and then: kubectl scale deployment {} -n {} --replicas=0",
        key.name,
        key.namespace.as_deref().unwrap_or_default()
    );
    Err(Failure::new(Exit::Refused, "second-operator", message, hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(kind: &str, owner: &str, pods: i64, ready: i64) -> Value {
        let name = format!("{}1", owner.to_lowercase());
        let owner = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": owner, "name": name});
        json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": format!("{name}-set"), "namespace": "tf", "ownerReferences": [owner]},
            "spec": {"replicas": pods},
            "status": {"readyReplicas": ready, "desiredNumberScheduled": pods, "numberReady": ready}})
    }

    fn operator(version_of_olm: Option<&str>) -> TfOperator {
        TfOperator::of_tests("tf", version_of_olm)
    }

    fn manager(namespace: &str, stage: i64) -> Value {
        json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "cluster1", "namespace": namespace}, "status": {"ziuState": stage}})
    }

    #[test]
    fn what_is_taken_over_is_said_by_kind_with_what_becomes_of_its_pods() {
        let mut foreign = workload("StatefulSet", "Redis", 3, 3);
        foreign["metadata"]["ownerReferences"][0]["apiVersion"] = json!("example.io/v1");
        let world = World {
            operators: vec![operator(None)],
            has_ours: false,
            managers: vec![manager("tf", -1)],
            workloads: vec![
                workload("StatefulSet", "Zookeeper", 3, 3),
                workload("DaemonSet", "Vrouter", 12, 12),
                foreign,
            ],
            with_ca: BTreeSet::new(),
        };
        let found = of(&world);
        assert_eq!(found.remarks, Vec::<String>::new());
        let with_ca = World { with_ca: ["tf".to_owned()].into(), ..world };
        let line = "Zookeeper tf/zookeeper1: its 3 pods stay, and with its next change are recreated one after the other, \
            each when the others are ready";
        assert_eq!(of(&with_ca).lines().last().map(String::as_str), Some(line));
        assert_eq!(
            found.lines(),
            [
                "takes over what tf-operator runs: Deployment/tf/tf-operator is scaled to 0, and stays otherwise",
                "Vrouter tf/vrouter1: its 12 pods are recreated one node after the other, whose workloads have no network meanwhile",
                "Zookeeper tf/zookeeper1: its 3 pods are recreated one after the other, each when the others are ready",
            ]
        );
    }

    #[test]
    fn what_is_unsafe_is_said_before() {
        let world = World {
            operators: vec![operator(None)],
            has_ours: false,
            managers: vec![manager("tf", 3), manager("tf", 0)],
            workloads: vec![
                workload("StatefulSet", "Cassandra", 3, 2),
                workload("StatefulSet", "Redis", 1, 1),
                workload("DaemonSet", "Vrouter", 1, 1),
            ],
            ..World::default()
        };
        let remarks = of(&world).remarks;
        let [cassandra, redis, upgrade] = &*remarks else { panic!("{remarks:#?}") };
        assert!(cassandra.contains("cassandra1-set has 2 of 3 pods ready"), "{cassandra}");
        assert!(redis.contains("Redis tf/redis1 has one pod"), "{redis}");
        assert!(upgrade.contains("ziuState 3"), "{upgrade}");
    }

    #[test]
    fn a_manager_that_nobody_would_watch_and_an_operator_that_comes_back_are_refused() {
        let mut world = World {
            operators: vec![operator(None)],
            has_ours: false,
            managers: vec![manager("tf", -1), manager("lab", -1)],
            ..World::default()
        };
        let refused = refuse(&world, &["tf".to_owned()]).unwrap_err();
        assert_eq!(refused.causes, ["Manager lab/cluster1"]);
        assert_eq!(refused.hint, "--set operator.watchedNamespaces=lab,tf");
        refuse(&world, &["tf".to_owned(), "lab".to_owned()]).unwrap();
        world.operators = vec![operator(Some("tf-operator.v1"))];
        let refused = refuse(&world, &["tf".to_owned(), "lab".to_owned()]).unwrap_err();
        assert!(
            refused.hint.contains("clusterserviceversion tf-operator.v1 -n tf"),
            "{}",
            refused.hint
        );
    }
}
