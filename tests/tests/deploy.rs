//! `deploy/webhook` in a real API server: the base is taken, the rights in it are those in use,
//! and it can be taken out again when no webhook lives. Deliberately not here: whether the
//! Deployment's pods run, which needs nodes.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

mod apart;
mod helm;
mod kustomize;
mod openshift;
mod removal;
pub(crate) mod rights;

use serde_json::{Value, json};

/// The user that the webhook is to the API server.
const ACCOUNT: &str = opensdn_deploy::names::webhook::USER;
/// The user that writes the webhook configurations.
const WRITER: &str = opensdn_deploy::names::configuration::USER;

fn service(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"ip": ip, "port": 80, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
    })
}
