//! The kinds of objects that the operator reads or makes: Kubernetes' own and ours, and where each is served.

use kube::api::ApiResource;
use opensdn_crds::component::Component;

const OURS: &str = "/apis/tf.tungsten.io/v1alpha1";
const OF_OPENSDN: &str = "/apis/opensdn.io/v1alpha1";

/// A kind that is kept: Kubernetes' own, and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "they are Kubernetes' own")]
pub enum Kind {
    Node,
    Pod,
    PersistentVolumeClaim,
    ServiceAccount,
    ConfigMap,
    Secret,
    Service,
    PodDisruptionBudget,
    StatefulSet,
    DaemonSet,
    Deployment,
    /// The Secret with the CA that a user gives.
    GivenCa,
    /// What the cluster says of itself, by the one object that does.
    Fact(Source),
    /// Ours: a whole cluster.
    Manager,
    /// Ours: a component, by its kind.
    Component(&'static str),
    /// Ours: settings that several components share.
    Profile(Profiles),
    /// Ours: what a nested cluster needs of its cloud.
    NestedCluster,
    /// Ours: a link-local service.
    LinkLocalService,
    /// Ours: other images for a Manager's services.
    Upgrade,
}

impl Kind {
    /// What the operator makes, in the order in which it is applied: what pods need before they start.
    pub const OWNED: [Self; 8] = [
        Self::ServiceAccount,
        Self::ConfigMap,
        Self::Secret,
        Self::Service,
        Self::PodDisruptionBudget,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Deployment,
    ];

    /// Kubernetes' own.
    pub fn kubernetes() -> impl Iterator<Item = Self> {
        [Self::Node, Self::Pod, Self::PersistentVolumeClaim].into_iter().chain(Self::OWNED)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::ServiceAccount => "ServiceAccount",
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Deployment => "Deployment",
            Self::GivenCa => Self::Secret.name(),
            Self::Fact(source) => source.kind(),
            Self::Manager => "Manager",
            Self::Component(kind) => kind,
            Self::Profile(profiles) => profiles.kind,
            Self::NestedCluster => "NestedCluster",
            Self::LinkLocalService => "LinkLocalService",
            Self::Upgrade => "Upgrade",
        }
    }

    /// Kubernetes' kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::kubernetes().find(|kind| kind.name() == name)
    }

    /// Where it is served, and its plural.
    #[must_use]
    pub fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("/api/v1", "nodes"),
            Self::Pod => ("/api/v1", "pods"),
            Self::PersistentVolumeClaim => ("/api/v1", "persistentvolumeclaims"),
            Self::ServiceAccount => ("/api/v1", "serviceaccounts"),
            Self::ConfigMap => ("/api/v1", "configmaps"),
            Self::Secret => ("/api/v1", "secrets"),
            Self::Service => ("/api/v1", "services"),
            Self::PodDisruptionBudget => ("/apis/policy/v1", "poddisruptionbudgets"),
            Self::StatefulSet => ("/apis/apps/v1", "statefulsets"),
            Self::DaemonSet => ("/apis/apps/v1", "daemonsets"),
            Self::Deployment => ("/apis/apps/v1", "deployments"),
            Self::GivenCa => Self::Secret.path(),
            Self::Fact(source) => source.path(),
            Self::Manager => (OURS, "managers"),
            Self::Component(kind) => {
                (OURS, Component::of_kind(kind).map_or("", |component| component.plural))
            }
            Self::Profile(profiles) => (profiles.path, profiles.plural),
            Self::NestedCluster => (OF_OPENSDN, "nestedclusters"),
            Self::LinkLocalService => (OF_OPENSDN, "linklocalservices"),
            Self::Upgrade => (OF_OPENSDN, "upgrades"),
        }
    }

    /// Where it is served, as kube has it.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        let (path, plural) = self.path();
        let api_version = path.trim_start_matches("/apis/").trim_start_matches("/api/");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: self.name().to_owned(),
            plural: plural.to_owned(),
        }
    }
}

/// A kind of objects with settings that several components share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Profiles {
    /// The kind.
    pub kind: &'static str,
    /// Where it is served: `/apis/GROUP/VERSION`.
    pub path: &'static str,
    /// As the API server serves it.
    pub plural: &'static str,
}

/// What keeps the pods of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// A StatefulSet, with as many pods as there are nodes for it: those of the control plane, unless a selector says others.
    #[default]
    StatefulSet,
    /// A DaemonSet, with a pod on each node, unless a selector says on which.
    DaemonSet,
}

impl Workload {
    /// The kind of the object.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::StatefulSet => Kind::StatefulSet,
            Self::DaemonSet => Kind::DaemonSet,
        }
    }
}

/// Who says something of the cluster: one object, which is not there in every cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The API servers, of themselves.
    ApiServers,
    /// kubeadm.
    Kubeadm,
    /// The installer of OpenShift.
    OpenShift,
    /// The network of Services, from Kubernetes 1.33 on.
    ServiceCidr,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ApiServers, Self::Kubeadm, Self::OpenShift, Self::ServiceCidr];

    /// The kind of the object.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::ApiServers => "EndpointSlice",
            Self::Kubeadm | Self::OpenShift => "ConfigMap",
            Self::ServiceCidr => "ServiceCIDR",
        }
    }

    /// Where the kind is served, and its plural.
    #[must_use]
    pub const fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::ApiServers => ("/apis/discovery.k8s.io/v1", "endpointslices"),
            Self::Kubeadm | Self::OpenShift => ("/api/v1", "configmaps"),
            Self::ServiceCidr => ("/apis/networking.k8s.io/v1", "servicecidrs"),
        }
    }

    /// The namespace of the object, if it has one.
    #[must_use]
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::ApiServers => "default",
            Self::Kubeadm | Self::OpenShift => "kube-system",
            Self::ServiceCidr => "",
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiServers | Self::ServiceCidr => "kubernetes",
            Self::Kubeadm => "kubeadm-config",
            Self::OpenShift => "cluster-config-v1",
        }
    }

    /// The source with that object.
    #[must_use]
    pub fn of(kind: &str, namespace: &str, name: &str) -> Option<Self> {
        let is = |one: &Self| (one.kind(), one.namespace(), one.name()) == (kind, namespace, name);
        Self::ALL.into_iter().find(is)
    }
}
