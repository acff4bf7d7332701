//! What accounts may do, and by which tokens.

use serde_json::Value;

use super::documents::{Documents, list, text};
use super::{Rule, warning};
use crate::finding::Finding;

const EVERYTHING: Rule = warning(
    "OSDN3047",
    "grant what kube-manager needs: to read what it watches, to patch pods, services and ingresses/status, and \
     to create customresourcedefinitions",
);
const TOKEN: Rule = warning(
    "OSDN3049",
    "narrow the role; the missing check of the certificate is in kube-manager's image and no setting changes it",
);
const WIDEST: &str = "cluster-admin";

pub(super) fn lint(documents: &Documents<'_>, found: &mut Vec<Finding>) {
    for (at, role) in documents.of_kind("ClusterRole").filter(|(_, role)| grants_all(role)) {
        let message = format!("ClusterRole {} may do everything", text(role, "/metadata/name"));
        found.push(EVERYTHING.at(at, "/rules", message));
    }
    for (at, binding) in documents.of_kind("ClusterRoleBinding") {
        if text(binding, "/roleRef/name") == WIDEST {
            let message =
                format!("ClusterRoleBinding {} grants {WIDEST}", text(binding, "/metadata/name"));
            found.push(EVERYTHING.at(at, "/roleRef/name", message));
        }
    }
    for (at, secret) in documents.of_kind("Secret") {
        found.extend(token(documents, at, secret));
    }
}

fn grants_all(role: &Value) -> bool {
    let has = |rule: &Value, field: &str| list(rule, field).any(|one| one == "*");
    list(role, "/rules")
        .any(|rule| ["/apiGroups", "/resources", "/verbs"].iter().all(|field| has(rule, field)))
}

/// One that never ends, of an account that may do everything.
fn token(documents: &Documents<'_>, at: usize, secret: &Value) -> Option<Finding> {
    if text(secret, "/type") != "kubernetes.io/service-account-token" {
        return None;
    }
    let pointer = "/metadata/annotations/kubernetes.io~1service-account.name";
    let account = text(secret, pointer);
    let namespace = text(secret, "/metadata/namespace");
    may_do_everything(documents, account, namespace).then(|| {
        let message = format!(
            "Secret {} has a token without an end of account {account}, which may do everything; kube-manager \
             sends it without checking the certificate of the API server",
            text(secret, "/metadata/name")
        );
        TOKEN.at(at, pointer, message)
    })
}

fn may_do_everything(documents: &Documents<'_>, account: &str, namespace: &str) -> bool {
    let is_wide = |name: &str| {
        let mut roles = documents.of_kind("ClusterRole");
        name == WIDEST
            || roles.any(|(_, role)| text(role, "/metadata/name") == name && grants_all(role))
    };
    let is_account = |subject: &Value| {
        text(subject, "/kind") == "ServiceAccount"
            && text(subject, "/name") == account
            && text(subject, "/namespace") == namespace
    };
    let mut bindings = documents.of_kind("ClusterRoleBinding");
    bindings.any(|(_, binding)| {
        list(binding, "/subjects").any(is_account) && is_wide(text(binding, "/roleRef/name"))
    })
}
