//! Taking over what tf-operator runs: what that is, what speaks against it, and the end of tf-operator, by which ours can
//! begin. Deliberately not here: what becomes of the objects (the operator, `reconcile/take_over.rs`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use kube::api::{ApiResource, GroupVersionKind};
use opensdn_crds::{TUNGSTEN_GROUP, VERSION};
use opensdn_deploy::{Values, names};
use opensdn_validate::report::one_line;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use super::applying::Stage;
use super::left_rights;
use super::object::ObjectKey;
use super::release_2011;
use super::requests::Requests;
use super::waiting::{Deadline, POLL_INTERVAL};
use super::waits::State;
use crate::exit::{Exit, Failure};
use crate::shell::quoted;
use crate::snapshot::ask::Asker;
use crate::snapshot::tf_operator::{TfOperator, component_of, tf_operators, watching_all};
use crate::snapshot::{namespace, number, text, title};
use crate::ui::Ui;

/// So often it is asked once more whether tf-operator runs, where that is not answered.
const TRIES: u32 = 5;
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
    /// Whether ours was there before: then there is no way back to tf-operator.
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

/// The tf-operators that would look after the same Managers as ours, also those that are scaled to 0. One that may change Managers
/// only where ours does not watch is a tenant's, who may have made that Manager too.
///
/// # Errors
/// It cannot be told which there are.
pub(crate) async fn operators(
    requests: &Requests,
    values: &Values,
) -> Result<Vec<TfOperator>, Failure> {
    let namespaces: BTreeSet<String> = values.operator.watched_namespaces.iter().cloned().collect();
    tf_operators(&requests.asker(), &namespaces).await.map_err(|why| {
        let message = "failed to find out whether tf-operator runs beside what is installed";
        let hint = "the same command again, as someone who may list Deployments and create SubjectAccessReviews";
        let mut failure = Failure::new(Exit::Unreachable, "unknown-operator", message, hint);
        failure.causes = vec![why];
        failure
    })
}

/// All Managers.
///
/// # Errors
/// The cluster does not answer, or not this user.
pub(crate) async fn managers(requests: &Requests) -> Result<Vec<Value>, Failure> {
    let managers = GroupVersionKind::gvk(TUNGSTEN_GROUP, VERSION, "Manager");
    let managers = ApiResource::from_gvk_with_plural(&managers, "managers");
    requests.list(&managers, None, "").await
}

/// What these run and is taken over. Nothing, if none of them runs, and ours looks after all or there is nothing to look after:
/// a take-over that was interrupted continues.
///
/// # Errors
/// The cluster cannot be asked, or something has to be put right before.
pub(crate) async fn take_over(
    requests: &Requests,
    (operators, managers): (Vec<TfOperator>, &[Value]),
    values: &Values,
) -> Result<Option<TakeOver>, Failure> {
    let place = &values.operator.namespace;
    let ours = ObjectKey::within(place, "apps/v1", "Deployment", names::operator::NAME);
    let mut world = World {
        operators,
        has_ours: requests.get(&ours).await?.is_some(),
        managers: managers.to_vec(),
        ..World::default()
    };
    let runs = world.operators.iter().any(TfOperator::runs);
    if !runs && world.has_ours {
        return Ok(None);
    }
    for namespace in world.managers.iter().map(namespace) {
        let ca = names::operator::GIVEN_CA_SECRET;
        let ca = ObjectKey::within(namespace, "v1", "Secret", ca);
        if requests.get(&ca).await?.is_some() {
            world.with_ca.insert(namespace.to_owned());
        }
    }
    for kind in ["StatefulSet", "DaemonSet"] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind));
        world.workloads.extend(requests.list(&resource, None, LABEL).await?);
    }
    let mut found = of(&world);
    if !runs && found.services.is_empty() {
        return Ok(None);
    }
    refuse(&world, &values.operator.watched_namespaces)?;
    found.remarks.extend(left_rights::remark(requests, &found.services).await);
    Ok(Some(found))
}

/// What would make it fail half-way.
fn refuse(world: &World, watched: &[String]) -> Result<(), Failure> {
    for operator in world.operators.iter().filter(|one| one.runs()) {
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
    release_2011::refuse(&world.managers, &world.workloads)?;
    let Some((outside, hint)) = outside(&world.managers, watched) else { return Ok(()) };
    let message = "the operator would not watch a namespace with a Manager of tf-operator: no operator would look after it";
    let hint = format!(
        "watch it, where you know whose that Manager is, or have its owner delete it: {hint}"
    );
    let mut failure = Failure::new(Exit::Refused, "unwatched-manager", message, hint);
    failure.causes = outside;
    Err(failure)
}

/// The Managers in namespaces that the operator would not watch, and by what it would watch all.
fn outside(managers: &[Value], watched: &[String]) -> Option<(Vec<String>, String)> {
    let set = watching_all(managers, watched)?;
    let is_outside = |manager: &&Value| !watched.iter().any(|one| one == namespace(manager));
    let outside = managers.iter().filter(is_outside);
    Some((outside.map(|manager| format!("Manager {}", title(manager))).collect(), set))
}

/// What is to be known of Managers that the operator would not watch.
pub(crate) fn unwatched(managers: &[Value], values: &Values) -> Option<String> {
    if !values.operator.enabled {
        return None;
    }
    let (outside, set) = outside(managers, &values.operator.watched_namespaces)?;
    Some(format!(
        "no operator looks after {}: if that is to be so no longer, {set}",
        outside.join(", ")
    ))
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
    let owner = component_of(workload)?;
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
        let operators = operators.join(", ");
        let runs = self.running.iter().any(TfOperator::runs);
        let mut lines = vec![if runs {
            format!(
                "takes over what tf-operator runs: {operators} is scaled to 0, and stays otherwise"
            )
        } else {
            format!(
                "takes over what tf-operator ran: {operators} is scaled to 0, and no operator is in its place"
            )
        }];
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
        stage: &Cell<Stage>,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        for operator in &self.running {
            if operator.replicas > 0 {
                let doing = format!("scale {} to 0", operator.key);
                ui.progress(&format!("scaling {} to 0", operator.key));
                deadline.within(&doing, requests.scale_to_zero(&operator.key)).await??;
            }
            stage.set(Stage::TfOperatorEnded);
        }
        let (keys, asker) = (self.operators.clone(), requests.asker());
        let state = async |key: &ObjectKey| Ok(self.state(&asker, key).await);
        let ended = deadline.wait_for("tf-operator to end", keys, ui, state).await;
        ended.map_err(|failure| match failure.code {
            "not-ready" => Failure {
                code: STARTED_AGAIN,
                message: "tf-operator was started again".to_owned(),
                hint: "find out who starts it, a person or a tool such as Argo CD; then the same command again".to_owned(),
                ..failure
            },
            _ => failure,
        })
    }

    async fn state(&self, asker: &Asker, key: &ObjectKey) -> State {
        let Some(operator) = self.running.iter().find(|one| one.key == *key) else {
            return State::Ready;
        };
        match operator.now(asker).await {
            // It answered before, and does again.
            Err(why) => State::Waiting(why),
            Ok((0, None)) => State::Ready,
            Ok((0, Some(pod))) => State::Waiting(format!("its pod {pod} is still there")),
            Ok((replicas, _)) => {
                State::Hopeless(format!("{key} was scaled to 0, and is scaled to {replicas} again"))
            }
        }
    }

    /// With how to continue, and how to go back as long as ours is not there.
    pub(crate) fn explain(&self, stage: Stage, failure: Failure) -> Failure {
        if [SECOND, STARTED_AGAIN].contains(&failure.code) {
            return failure;
        }
        let hints = [failure.hint.clone(), self.way_on(stage)];
        let hints: Vec<String> = hints.into_iter().filter(|hint| !hint.is_empty()).collect();
        Failure { hint: hints.join("; "), ..failure }
    }

    /// What is so where the installation is not done.
    pub(crate) fn way_on(&self, stage: Stage) -> String {
        match stage {
            Stage::Starting => "tf-operator is as it was; the same command tries again".to_owned(),
            Stage::TfOperatorEnded if !self.has_ours => {
                let back: Vec<String> = self.running.iter().map(TfOperator::back).collect();
                format!(
                    "tf-operator is scaled to 0, and no operator looks after what it ran until the same command has \
                     continued; to go back instead: {}",
                    back.join("; ")
                )
            }
            Stage::TfOperatorEnded | Stage::Programs | Stage::Waiting => {
                "the operator of this installation looks after what tf-operator ran: leave that scaled to 0; the same \
                 command continues"
                    .to_owned()
            }
        }
    }
}

/// The code of a failure by which two operators run.
pub(crate) const SECOND: &str = "second-operator";
/// That of one by which tf-operator does not end.
const STARTED_AGAIN: &str = "started-again";

/// Looks once more that no tf-operator runs, as ours begins.
///
/// # Errors
/// One does, or it cannot be told.
pub(crate) async fn is_alone(requests: &Requests, values: &Values) -> Result<(), Failure> {
    let look = async || operators(requests, values).await;
    let mut found = look().await;
    for _ in 1..TRIES {
        if found.is_ok() {
            break;
        }
        sleep(POLL_INTERVAL).await;
        found = look().await;
    }
    let found = found?;
    let Some(other) = found.iter().find(|one| one.runs()) else { return Ok(()) };
    let what = match other.replicas {
        0 => format!("its pod {} is still there", other.pods.join(", ")),
        replicas => format!("it is scaled to {replicas} again"),
    };
    let message = format!("{} would run beside our operator: {what}", other.key);
    let hint = format!(
        "two operators change the same objects: find out who starts it; then: {}, and the same command again",
        other.end()
    );
    Err(Failure::new(Exit::Refused, SECOND, message, hint))
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
        let deployment = json!({"metadata": {"name": "tf-operator", "namespace": "tf"}, "spec": {"replicas": 1}});
        let mut operator = TfOperator::of(&deployment);
        operator.version_of_olm = version_of_olm.map(str::to_owned);
        operator
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
    fn the_way_back_is_said_only_while_no_operator_of_ours_has_begun() {
        let found = of(&World { operators: vec![operator(None)], ..World::default() });
        let back = "kubectl scale deployment tf-operator -n tf --replicas=1";
        let says = |found: &TakeOver, stage| found.way_on(stage).contains(back);
        assert!(!says(&found, Stage::Starting), "it runs");
        assert!(says(&found, Stage::TfOperatorEnded));
        assert!(!says(&found, Stage::Programs) && !says(&found, Stage::Waiting));
        let before = TakeOver { has_ours: true, ..found.clone() };
        assert!(!says(&before, Stage::TfOperatorEnded), "two would run");
        let second = Failure::new(Exit::Refused, SECOND, "two run", "end one");
        assert_eq!(found.explain(Stage::Programs, second).hint, "end one");
        let other = Failure::new(Exit::TimedOut, "late", "it is late", "wait");
        let hint = found.explain(Stage::Programs, other).hint;
        assert!(hint.starts_with("wait; ") && hint.contains("leave that scaled to 0"), "{hint}");
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
        let hint = &refused.hint;
        assert!(hint.ends_with("delete it: --set operator.watchedNamespaces=lab,tf"), "{hint}");
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
