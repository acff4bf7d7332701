//! The custom resources of OpenSDN: one module per kind, each with its spec and status types.
//!
//! With feature `kube` (the default) the types also carry their schemas, and [`all`] lists every
//! CustomResourceDefinition. With `types` alone they are plain serde types. Without either there are
//! only [`component`], the table of facts, and a few rules of values, which policies compile to WebAssembly.
//!
//! Three groups of decisions hold for every kind:
//! - *Drop-in.* Group `tf.tungsten.io` has the fields, JSON names and types of tf-operator, its
//!   misspelt names included (the right spelling is accepted beside each). What is optional there
//!   is `Option` here. An empty string counts as unset, for templates render it so. An object
//!   without a spec is read as one with an empty spec (the `serde(default)` of each kind; it
//!   is in a `cfg_attr` because kube's derive takes no serde attribute for the object).
//! - *Unknown fields* are pruned by the API server, as with tf-operator; kubectl warns of them.
//! - *No defaults* are in the schemas of `tf.tungsten.io`: the policy `explicit-defaults` writes
//!   them, where an administrator sees who did it. Our own kinds have theirs in the schema.
//!
//! Short names begin with `tf`, so that they clash neither with core kinds nor with the operators
//! of ZooKeeper, RabbitMQ or Cassandra. Category `opensdn` lists all kinds of both groups.
//!
//! Rules that one object can break by itself are in the schemas, with their codes in the messages:
//! see `RULES.md`, which is generated. Deliberately not here: anything that needs a second object,
//! the old object or a judgement (insecure yet legal settings); those are policies. No I/O either.

#![warn(missing_docs)]
#![allow(
    clippy::duplicated_attributes,
    reason = "it takes the arguments of several printcolumn(...) within one cfg_attr for one list"
)]

#[cfg(feature = "types")]
#[macro_use]
mod enumeration;
#[cfg(feature = "kube")]
mod definition;
#[cfg(feature = "kube")]
mod schema;

#[cfg(feature = "types")]
pub mod admission_policy;
#[cfg(feature = "types")]
pub mod analytics;
#[cfg(feature = "types")]
pub mod analytics_alarm;
#[cfg(feature = "types")]
pub mod analytics_snmp;
#[cfg(feature = "types")]
pub mod cassandra;
pub mod component;
#[cfg(feature = "types")]
pub mod config;
#[cfg(feature = "types")]
pub mod control;
pub mod dpdk;
#[cfg(feature = "types")]
pub mod kubemanager;
#[cfg(feature = "types")]
pub mod link_local_service;
#[cfg(feature = "types")]
pub mod manager;
#[cfg(feature = "types")]
pub mod nested;
#[cfg(feature = "types")]
pub mod nested_cluster;
#[cfg(feature = "types")]
pub mod pod;
#[cfg(feature = "types")]
pub mod query_engine;
#[cfg(feature = "types")]
pub mod rabbitmq;
#[cfg(feature = "types")]
pub mod redis;
#[cfg(feature = "types")]
pub mod status;
#[cfg(feature = "types")]
pub mod storage;
#[cfg(feature = "types")]
pub mod unique_claim;
#[cfg(feature = "types")]
pub mod upgrade;
pub mod virtual_functions;
#[cfg(feature = "types")]
pub mod vrouter;
#[cfg(feature = "types")]
pub mod vrouter_profile;
#[cfg(feature = "types")]
pub mod webui;
#[cfg(feature = "types")]
pub mod zookeeper;

/// The group of tf-operator's kinds.
pub const TUNGSTEN_GROUP: &str = "tf.tungsten.io";
/// The group of our own kinds.
pub const OPENSDN_GROUP: &str = "opensdn.io";
/// The one version of both groups.
pub const VERSION: &str = "v1alpha1";

/// Every CustomResourceDefinition, in the order in which to install them: what others refer to
/// comes first, the Manager last.
#[cfg(feature = "kube")]
pub fn all()
-> Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>
{
    // In a development build it takes most of a second to make them.
    static ALL: std::sync::LazyLock<
        Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>,
    > = std::sync::LazyLock::new(made);
    ALL.clone()
}

#[cfg(feature = "kube")]
fn made()
-> Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>
{
    use kube::CustomResourceExt;
    vec![
        unique_claim::UniqueClaim::crd(),
        admission_policy::AdmissionPolicy::crd(),
        vrouter_profile::VrouterProfile::crd(),
        link_local_service::LinkLocalService::crd(),
        nested_cluster::NestedCluster::crd(),
        upgrade::Upgrade::crd(),
        zookeeper::Zookeeper::crd(),
        rabbitmq::Rabbitmq::crd(),
        cassandra::Cassandra::crd(),
        redis::Redis::crd(),
        config::Config::crd(),
        analytics::Analytics::crd(),
        query_engine::QueryEngine::crd(),
        analytics_snmp::AnalyticsSnmp::crd(),
        analytics_alarm::AnalyticsAlarm::crd(),
        control::Control::crd(),
        kubemanager::Kubemanager::crd(),
        webui::Webui::crd(),
        vrouter::Vrouter::crd(),
        manager::Manager::crd(),
    ]
    .into_iter()
    .map(definition::finish)
    .collect()
}
