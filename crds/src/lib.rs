//! The custom resources of OpenSDN: one module per kind, each with its spec and status types.
//!
//! With feature `kube` (the default) the types also carry their schemas, and [`all`] lists every
//! CustomResourceDefinition. Without it they are plain serde types, which policies compile to
//! WebAssembly.
//!
//! Three groups of decisions hold for every kind:
//! - *Drop-in.* Group `tf.tungsten.io` has the fields, JSON names and types of tf-operator, its
//!   misspelt names included (the right spelling is accepted beside each). What is optional there
//!   is `Option` here. An empty string counts as unset, for templates render it so. An object
//!   without a spec is read as one with an empty spec (the `serde(default)` of each kind; it
//!   stands in a `cfg_attr` because kube's derive takes no serde attribute for the object).
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

#[macro_use]
mod enumeration;
#[cfg(feature = "kube")]
mod definition;
#[cfg(feature = "kube")]
mod schema;

pub mod admission_policy;
pub mod analytics;
pub mod analytics_alarm;
pub mod analytics_snmp;
pub mod cassandra;
pub mod config;
pub mod control;
pub mod kubemanager;
pub mod link_local_service;
pub mod manager;
pub mod pod;
pub mod query_engine;
pub mod rabbitmq;
pub mod redis;
pub mod status;
pub mod unique_claim;
pub mod vrouter;
pub mod vrouter_profile;
pub mod webui;
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
    use kube::CustomResourceExt;
    vec![
        unique_claim::UniqueClaim::crd(),
        admission_policy::AdmissionPolicy::crd(),
        vrouter_profile::VrouterProfile::crd(),
        link_local_service::LinkLocalService::crd(),
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
