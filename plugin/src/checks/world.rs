//! What is read of a cluster for the checks, and what several checks make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_deploy::Values;
use serde_json::Value;

use super::nested::Nested;
use super::privileged::LetIn;
use super::registry::AtRegistry;
use super::upgrade::Upgrade;
use crate::probe::Answers;
use crate::probe::matrix::Tried;
use crate::probe::pull::AllPulled;
use crate::snapshot::places::Places;
use crate::snapshot::tf_operator::TfOperator;
use crate::snapshot::{Read, list, namespace, text, waits_for_network};

/// Either of them marks a node of the control plane; kubeadm sets only the first since 1.24.
pub(super) const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// The cluster as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    /// Where the installation is, or would be.
    pub(crate) places: Places,
    /// What the API server says of its version.
    pub(crate) version: Value,
    /// How long all of it took to read.
    pub(crate) took: Duration,
    /// Milliseconds until it said so.
    pub(crate) latency: u128,
    /// Its clock then.
    pub(crate) date: Option<Timestamp>,
    /// The clock of this machine then.
    pub(crate) now: Option<Timestamp>,
    /// Who asks, by the API server.
    pub(crate) user: Read<Value>,
    /// The groups of APIs.
    pub(crate) groups: Read<Value>,
    /// Nodes.
    pub(crate) nodes: Read<Vec<Value>>,
    /// Their Leases.
    pub(crate) leases: Read<Vec<Value>>,
    /// Namespaces.
    pub(crate) namespaces: Read<Vec<Value>>,
    /// All pods.
    pub(crate) pods: Read<Vec<Value>>,
    /// All DaemonSets.
    pub(crate) daemon_sets: Read<Vec<Value>>,
    /// Managers.
    pub(crate) managers: Read<Vec<Value>>,
    /// VrouterProfiles.
    pub(crate) profiles: Read<Vec<Value>>,
    /// Quotas.
    pub(crate) quotas: Read<Vec<Value>>,
    /// Limits.
    pub(crate) limits: Read<Vec<Value>>,
    /// Webhook configurations of both sorts.
    pub(crate) webhooks: Read<Vec<Value>>,
    /// EndpointSlices of Services that webhooks are behind, by namespace and name.
    pub(crate) endpoints: BTreeMap<(String, String), Read<Vec<Value>>>,
    /// Our CRDs by name.
    pub(crate) definitions: BTreeMap<String, Read<Value>>,
    /// Our Deployments by name.
    pub(crate) deployments: BTreeMap<String, Read<Value>>,
    /// Upstream's operators, also those that are scaled to 0.
    pub(crate) tf_operators: Read<Vec<TfOperator>>,
    /// What keeps pods of components, where there is a tf-operator.
    pub(crate) workloads: Read<Vec<Value>>,
    /// AdmissionPolicies.
    pub(crate) policies: Read<Vec<Value>>,
    /// ServiceCIDRs.
    pub(crate) service_networks: Read<Vec<Value>>,
    /// All Services, with their addresses alone.
    pub(crate) cluster_addresses: Read<Vec<Value>>,
    /// LinkLocalServices.
    pub(crate) link_local: Read<Vec<Value>>,
    /// NestedClusters.
    pub(crate) nested_clusters: Read<Vec<Value>>,
    /// The Service kubernetes.
    pub(crate) kubernetes: Read<Value>,
    /// What kubeadm has left: its ClusterConfiguration.
    pub(crate) kubeadm: Read<Value>,
    /// What the installer of OpenShift has left: its install-config.
    pub(crate) openshift: Read<Value>,
    /// Secrets for registries by namespace and name: of which type, for which registries. Never more of them.
    pub(crate) registries: BTreeMap<(String, String), Read<Registries>>,
    /// Rights that an installation needs, and whether the user has them.
    pub(crate) rights: Read<Vec<(String, bool)>>,
    /// What is read for nested mode alone.
    pub(crate) nested: Option<Nested>,
    /// What is read before an upgrade alone.
    pub(crate) upgrade: Option<Upgrade>,
    /// What nodes answered, by their names; nothing where none was to be asked.
    pub(crate) probed: Option<Answers>,
    /// What came of it where they tried to reach each other; nothing where they did not.
    pub(crate) matrix: Option<Tried>,
    /// What registries say of images, by their names; nothing where they were not asked.
    pub(crate) images: Option<BTreeMap<String, AtRegistry>>,
    /// What came of it where nodes pulled images; nothing where they did not.
    pub(crate) pulled: Option<AllPulled>,
    /// With which values `install` is to be run; nothing where none were given.
    pub(crate) values: Option<Values>,
    /// Whether the user may grant rights that it does not have.
    pub(crate) may_grant: Read<bool>,
    /// Whether a privileged pod would be created in a namespace of components; nothing where that was not tried.
    pub(crate) let_in: BTreeMap<String, LetIn>,
    /// What the API server would refuse of an installation, or why that is not known; nothing where it was not tried.
    pub(crate) applied: Option<Result<Applied, String>>,
}

/// An installation that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// How many objects it has.
    pub(crate) objects: usize,
    /// Those that would be refused, each with the reason.
    pub(crate) refused: Vec<String>,
    /// Those of which that is not known, each with the reason.
    pub(crate) untried: Vec<String>,
}

/// What a Secret for registries is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registries {
    /// Its type.
    pub(crate) type_: String,
    /// The registries that it is for.
    pub(crate) hosts: Vec<String>,
}

/// A service of a Manager with its spec.
pub(super) struct Service<'a> {
    pub(super) facts: &'static Component,
    pub(super) name: &'a str,
    pub(super) spec: &'a Value,
    pub(super) manager: &'a Value,
    /// Its place among the services of the Manager: `controls/0`.
    pub(super) at: Option<String>,
}

impl World {
    /// The namespaces in which components run or shall run.
    pub(crate) fn component_namespaces(&self) -> BTreeSet<String> {
        let managers = self.managers.items().iter().map(|one| namespace(one).to_owned());
        let found: BTreeSet<String> = managers.collect();
        if found.is_empty() { self.places.watched.iter().cloned().collect() } else { found }
    }

    /// The services of all Managers.
    pub(super) fn services(&self) -> Vec<Service<'_>> {
        let managers = self.managers.items().iter();
        managers
            .flat_map(|manager| COMPONENTS.iter().flat_map(move |facts| of(manager, facts)))
            .collect()
    }

    /// The image pull Secrets that are named: namespace and name.
    pub(crate) fn pull_secrets(&self) -> BTreeSet<(String, String)> {
        let mut found = BTreeSet::new();
        for service in self.services() {
            let own = list(service.spec, "/commonConfiguration/imagePullSecrets");
            let common = list(service.manager, "/spec/commonConfiguration/imagePullSecrets");
            let names = own.chain(common).filter_map(Value::as_str);
            let place = namespace(service.manager);
            found.extend(names.map(|name| (place.to_owned(), name.to_owned())));
        }
        found
    }

    /// The pods of components on a node, wherever they are: where there may be one, nothing is taken from it. Nothing where
    /// pods may not be read.
    pub(crate) fn ours_on(&self, node: &str) -> Option<Vec<&Value>> {
        let pods = self.pods.known()?.iter();
        let on = pods.filter(|pod| is_labelled(pod) && text(pod, "/spec/nodeName") == node);
        Some(on.collect())
    }

    /// Whether a pod of vrouters is on a node; nothing where pods may not be read.
    pub(super) fn has_vrouter(&self, node: &str) -> Option<bool> {
        let is_of_vrouter =
            |pod: &&Value| crate::snapshot::label(pod, "tf_manager") == Some("vrouter");
        Some(self.ours_on(node)?.iter().any(is_of_vrouter))
    }

    /// Whether the pod is one of a component: by its label, which any pod may have, and where components are.
    pub(super) fn is_ours(&self, pod: &Value) -> bool {
        is_labelled(pod) && self.places.may_have_components(&self.managers, namespace(pod))
    }
}

fn is_labelled(pod: &Value) -> bool {
    crate::snapshot::label(pod, "tf_manager").is_some()
}

/// The services of a kind: one item, or a list of them.
fn of<'a>(manager: &'a Value, facts: &'static Component) -> Vec<Service<'a>> {
    let value = manager.pointer("/spec/services").and_then(|services| services.get(facts.key));
    let single = value.filter(|value| value.is_object()).map(|item| (None, item));
    let items = value.and_then(Value::as_array).into_iter().flatten().enumerate();
    let items = items.map(|(number, item)| (Some(format!("{}/{number}", facts.key)), item));
    items
        .chain(single)
        .map(|(at, item)| Service {
            at,
            facts,
            name: text(item, "/metadata/name"),
            spec: item.pointer("/spec").unwrap_or(&Value::Null),
            manager,
        })
        .collect()
}

/// Whether a component of this kind is to run on the node; without a Manager each may.
pub(super) fn runs_on(world: &World, kind: &str, node: &Value) -> bool {
    let services = world.services();
    let mut of_kind = services.iter().filter(|service| service.facts.kind == kind);
    services.is_empty() || of_kind.any(|service| super::roles::is_selected(service, node))
}

/// Whether the node's kubelet reports that it is ready.
pub(super) fn is_ready(node: &Value) -> bool {
    crate::snapshot::condition_is(node, "Ready", "True")
}

/// Whether it can run what brings the network of pods: it is ready, or only that network is missing, as in a new cluster.
pub(super) fn is_up(node: &Value) -> bool {
    is_ready(node) || waits_for_network(node)
}

/// Whether it is of the control plane, by the presence of a label: its value differs between distributions.
pub(super) fn is_of_control_plane(node: &Value) -> bool {
    CONTROL_PLANE.iter().any(|label| crate::snapshot::label(node, label).is_some())
}

/// The addresses of a node on its network.
pub(super) fn addresses(node: &Value) -> impl Iterator<Item = &str> {
    list(node, "/status/addresses")
        .filter(|one| text(one, "/type") == "InternalIP")
        .map(|one| text(one, "/address"))
}
