//! The workloads of nested mode: kube-manager and the CNI agent as Kubernetes objects, made of typed and
//! checked values. What is not right is refused with the field and the value; nothing is put into a shell
//! or a template.
//!
//! - [`render`] makes [`Workloads`] of [`Inputs`].
//! - [`Lint`] finds in manifests of others what upstream's has wrong.
//! - [`registry`], [`insecure_registry`] and [`hosts`] are what registries and nodes need beside them.
//! - [`password`] says which passwords kube-manager's configuration file cannot take as they are.
//!
//! Deliberately not here: a client, reading of files, the link-local services of the underlay, and the
//! CustomResourceDefinition of networks, which kube-manager makes itself.

#![warn(missing_docs)]

mod checked;
mod cni_agent;
mod environment;
mod finding;
pub mod hosts;
mod inputs;
pub mod insecure_registry;
mod invalid;
mod kube_manager;
mod lint;
mod names;
pub mod password;
mod pod;
mod rbac;
pub mod registry;
mod release;
mod shape;
mod workloads;

pub use finding::{DocumentId, Finding, Rule, Severity};
pub use inputs::{
    ApiServer, Fabric, FloatingIpPool, HostAlias, Images, Inputs, Keystone, Plugins, Protocol,
    SecretKey, Subnets, Token,
};
pub use invalid::{InvalidInputs, InvalidValue};
pub use lint::{Lint, Linted, RULES, is_workload};
pub use names::Names;
pub use release::Release;
pub use workloads::{Object, Phase, Workloads, render};
