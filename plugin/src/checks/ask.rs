//! Reads the world of the checks. Nothing is written: a review is stored nowhere, and neither is what is tried.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::jiff::Timestamp;
use opensdn_deploy::{Values, names};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::nested::Nested;
use super::planned::Planned;
use super::rights::{self, Right};
use super::world::{Registries, World};
use crate::exit::Failure;
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::snapshot::tf_operator::{TfOperator, tf_operators};
use crate::snapshot::{Read, name, namespace, text};

mod let_in;
pub(super) mod pods;
mod registry;
mod tried;
mod upgrade;

pub(crate) use let_in::let_in;
pub(crate) use registry::registry;
pub(crate) use tried::applied;
pub(crate) use upgrade::upgrade;

/// Questions at once: a check is not to be felt by the API server.
const AT_ONCE: usize = 8;

/// Reads it, with what is planned in the place of what is stored. What may not be read is unknown in it.
///
/// # Errors
/// The API server does not answer at all.
pub(crate) async fn world(
    asker: &Asker,
    server: &str,
    planned: &Planned,
) -> Result<World, Failure> {
    let began = std::time::Instant::now();
    let answered = asker.version(server).await?;
    let latency = began.elapsed().as_millis();
    let now = Some(Timestamp::now());
    let mut world =
        World { version: answered.body, latency, date: answered.date, now, ..World::default() };
    world.values = planned.values().cloned();
    world.places = match &world.values {
        Some(values) => Places::by(values.namespace.clone(), values.clone()),
        None => Places::of(asker, names::NAMESPACE).await,
    };
    Box::pin(lists(asker, &mut world)).await;
    planned.put_managers(&mut world.managers);
    Box::pin(objects(asker, &mut world)).await;
    planned.put_profiles(&mut world.profiles);
    Box::pin(reviews(asker, &mut world)).await;
    world.took = began.elapsed();
    Ok(world)
}

/// Reads what only the checks of nested mode need.
pub(crate) async fn nested(asker: &Asker) -> Nested {
    const MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
    let paths = ["opensdn-kubernetes-cni-agent-env", "env", "kube-proxy"];
    let [ours, upstream, kube_proxy] = paths.map(|name| format!("{MAPS}/{name}"));
    let (definitions, ours, upstream, kube_proxy) = tokio::join!(
        asker.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        asker.get(&ours),
        asker.get(&upstream),
        asker.get(&kube_proxy),
    );
    let environment = if ours == Read::Absent { upstream } else { ours };
    Nested { definitions, environment, kube_proxy: within(kube_proxy, "config.conf") }
}

/// Bytes of an object beyond which only its name is kept: nothing of ours, and of no network of pods, is so large.
const LARGE: usize = 64 << 10;

/// Objects that tenants make, too: as many and as large as they like.
async fn of_tenants(asker: &Asker, path: &str) -> Read<Vec<Value>> {
    asker.picked(path, |object| Some(slim(object))).await
}

fn slim(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    if object.to_string().len() > LARGE {
        return json!({"metadata": {"name": name(&object), "namespace": namespace(&object)}});
    }
    object
}

async fn lists(asker: &Asker, world: &mut World) {
    const TF: &str = "/apis/tf.tungsten.io/v1alpha1";
    const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1";
    let (validating, mutating) = (
        format!("{WEBHOOKS}/validatingwebhookconfigurations"),
        format!("{WEBHOOKS}/mutatingwebhookconfigurations"),
    );
    let managers = format!("{TF}/managers");
    let (
        nodes,
        leases,
        namespaces,
        pods,
        daemon_sets,
        managers,
        quotas,
        limits,
        networks,
        validating,
        mutating,
    ) = tokio::join!(
        asker.list("/api/v1/nodes"),
        asker.list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
        asker.list("/api/v1/namespaces"),
        pods::pods(asker),
        of_tenants(asker, "/apis/apps/v1/daemonsets"),
        asker.list(&managers),
        of_tenants(asker, "/api/v1/resourcequotas"),
        of_tenants(asker, "/api/v1/limitranges"),
        asker.list("/apis/networking.k8s.io/v1/servicecidrs"),
        asker.list(&validating),
        asker.list(&mutating),
    );
    world.nodes = nodes;
    world.leases = leases;
    world.namespaces = namespaces;
    world.pods = pods;
    world.daemon_sets = daemon_sets;
    world.managers = managers;
    world.quotas = quotas;
    world.limits = limits;
    world.service_networks = networks;
    world.webhooks = match (validating, mutating) {
        (Read::Known(mut one), Read::Known(other)) => {
            one.extend(other);
            Read::Known(one)
        }
        (Read::Known(_) | Read::Absent, unknown) | (unknown, _) => unknown,
    };
}

/// Those that look after Managers that there are, or that would be where Managers are by default.
async fn known_tf_operators(asker: &Asker, world: &World) -> Read<Vec<TfOperator>> {
    let mut namespaces: BTreeSet<String> =
        world.managers.items().iter().map(|manager| namespace(manager).to_owned()).collect();
    namespaces.extend(Values::default().operator.watched_namespaces);
    tf_operators(asker, &namespaces).await.map_or_else(Read::Unknown, Read::Known)
}

/// What keeps pods of components, by the label that both operators give it.
async fn workloads(asker: &Asker) -> Read<Vec<Value>> {
    let mut all = Vec::new();
    for plural in ["statefulsets", "daemonsets"] {
        let path = format!("/apis/apps/v1/{plural}?labelSelector=tf_manager");
        match asker.list(&path).await.or(Vec::new()) {
            Ok(found) => all.extend(found),
            Err(why) => return Read::Unknown(why),
        }
    }
    Read::Known(all)
}

async fn objects(asker: &Asker, world: &mut World) {
    world.groups = asker.get("/apis").await;
    world.kubernetes = asker.get("/api/v1/namespaces/default/services/kubernetes").await;
    let kubeadm = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";
    world.kubeadm = within(asker.get(kubeadm).await, "ClusterConfiguration");
    let openshift = "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1";
    world.openshift = within(asker.get(openshift).await, "install-config");
    world.tf_operators = known_tf_operators(asker, world).await;
    if !world.tf_operators.items().is_empty() {
        world.workloads = workloads(asker).await;
    }
    world.profiles = asker.list("/apis/opensdn.io/v1alpha1/vrouterprofiles").await;
    world.policies = asker.list("/apis/opensdn.io/v1alpha1/admissionpolicies").await;
    addresses(asker, world).await;
    let crds = opensdn_crds::all().into_iter().filter_map(|crd| crd.metadata.name).map(|name| {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        (name, path)
    });
    world.definitions = by_key(asker, crds.collect(), Asker::get_owned).await;
    let deployments = [
        (&world.places.operator, names::operator::NAME),
        (&world.places.webhook, names::webhook::NAME),
        (&world.places.webhook, names::configuration::NAME),
    ];
    let deployments = deployments.into_iter().map(|(namespace, name)| {
        (name.to_owned(), format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"))
    });
    world.deployments = by_key(asker, deployments.collect(), Asker::get_owned).await;
    let services = super::cluster_api::services_of_webhooks(world).into_iter().map(|key| {
        let (namespace, name) = &key;
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=\
             kubernetes.io%2Fservice-name%3D{name}"
        );
        (key, path)
    });
    world.endpoints = by_key(asker, services.collect(), Asker::list_owned).await;
    let secrets = world.pull_secrets().into_iter().map(|(namespace, name)| {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        ((namespace, name), path)
    });
    let secrets = by_key(asker, secrets.collect(), Asker::get_owned).await;
    let secrets = secrets.into_iter().map(|(key, read)| (key, registries(read)));
    world.registries = secrets.collect();
}

/// Addresses that something has, or is to have.
async fn addresses(asker: &Asker, world: &mut World) {
    const OURS: &str = "/apis/opensdn.io/v1alpha1";
    let (link_local, nested) =
        (format!("{OURS}/linklocalservices"), format!("{OURS}/nestedclusters"));
    let address = |service: &Value| {
        let of = |pointer| service.pointer(pointer).cloned().unwrap_or_default();
        Some(json!({"metadata": {"name": name(service), "namespace": namespace(service)},
            "spec": {"clusterIP": of("/spec/clusterIP"), "clusterIPs": of("/spec/clusterIPs")}}))
    };
    let (services, link_local, nested) = tokio::join!(
        asker.picked("/api/v1/services", address),
        of_tenants(asker, &link_local),
        of_tenants(asker, &nested),
    );
    (world.cluster_addresses, world.link_local, world.nested_clusters) =
        (services, link_local, nested);
}

/// The YAML below a key of a ConfigMap. What is wrong with it is said without its text, which may have a password in it.
fn within(map: Read<Value>, key: &str) -> Read<Value> {
    match map {
        Read::Known(map) => match serde_saphyr::from_str(text(&map, &format!("/data/{key}"))) {
            Ok(said) => Read::Known(said),
            Err(_) => Read::Unknown(format!("{key} of ConfigMap {} is no YAML", name(&map))),
        },
        Read::Absent => Read::Absent,
        Read::Unknown(why) => Read::Unknown(why),
    }
}

/// Asks for each path, some at a time.
async fn by_key<K, T, F>(
    asker: &Asker,
    paths: Vec<(K, String)>,
    ask: fn(Asker, String) -> F,
) -> BTreeMap<K, T>
where
    K: Ord + Clone + Send + 'static,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut found = BTreeMap::new();
    for some in paths.chunks(AT_ONCE) {
        let mut running = JoinSet::new();
        for (key, path) in some.iter().cloned() {
            let answer = ask(asker.clone(), path);
            running.spawn(async move { (key, answer.await) });
        }
        found.extend(running.join_all().await);
    }
    found
}

/// Type and hosts; the rest of the Secret is dropped here.
fn registries(secret: Read<Value>) -> Read<Registries> {
    let secret = match secret {
        Read::Known(secret) => secret,
        Read::Absent => return Read::Absent,
        Read::Unknown(why) => return Read::Unknown(why),
    };
    let data = secret.pointer("/data/.dockerconfigjson").and_then(Value::as_str);
    let bytes = data.and_then(|data| BASE64_STANDARD.decode(data).ok()).unwrap_or_default();
    let config: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let hosts = config.pointer("/auths").and_then(Value::as_object).into_iter().flatten();
    let hosts = hosts.map(|(host, _)| host.clone()).collect();
    Read::Known(Registries { type_: text(&secret, "/type").to_owned(), hosts })
}

async fn reviews(asker: &Asker, world: &mut World) {
    const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    world.user = asker.review("/apis/authentication.k8s.io/v1/selfsubjectreviews", &who).await;
    let asked = async |right: Right| {
        let review = right.review();
        match asker.review(REVIEW, &review).await {
            Read::Known(answer) => Read::Known(
                answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default(),
            ),
            Read::Absent => Read::Absent,
            Read::Unknown(why) => Read::Unknown(why),
        }
    };
    let everything = asked(Right::everything()).await;
    let needed = match rights::needed(world.values.as_ref()) {
        Ok(needed) => needed,
        Err(error) => {
            world.rights = Read::Unknown(error.to_string());
            return;
        }
    };
    if everything == Read::Known(true) {
        world.rights = Read::Known(needed.iter().map(|right| (right.text(), true)).collect());
        world.may_grant = Read::Known(true);
        return;
    }
    let mut granted = Vec::new();
    for right in needed {
        match asked(right.clone()).await {
            Read::Known(allowed) => granted.push((right.text(), allowed)),
            Read::Absent => return,
            Read::Unknown(why) => {
                world.rights = Read::Unknown(why);
                return;
            }
        }
    }
    world.rights = Read::Known(granted);
    let mut may = true;
    for verb in ["escalate", "bind"] {
        may &= asked(Right::on_roles(verb)).await == Read::Known(true);
    }
    world.may_grant = Read::Known(may);
}

impl Asker {
    async fn get_owned(self, path: String) -> Read<Value> {
        self.get(&path).await
    }

    async fn list_owned(self, path: String) -> Read<Vec<Value>> {
        self.list(&path).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_object_that_is_too_large_only_the_name_is_kept() {
        let of = |letters: usize| {
            json!({"metadata": {"name": "n", "namespace": "t", "managedFields": [{}]},
                "spec": {"env": "x".repeat(letters)}})
        };
        let small = slim(&of(100));
        assert!(small.pointer("/metadata/managedFields").is_none());
        assert_eq!(small.pointer("/spec/env"), of(100).pointer("/spec/env"));
        assert_eq!(slim(&of(LARGE)), json!({"metadata": {"name": "n", "namespace": "t"}}));
    }
}
