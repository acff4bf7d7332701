//! What the accounts of the workloads may do, and by which tokens.

use std::collections::BTreeSet;

use serde_json::Value;

use super::documents::{Documents, list, text};
use super::{Kept, warning};
use crate::finding::{DocumentId, Finding, Rule};

pub(super) static EVERYTHING: Rule = warning(
    "OSDN3047",
    "kube-manager's account may do everything",
    "grant what kube-manager needs: to read what it watches, to patch pods, services and ingresses/status, and \
     to create customresourcedefinitions",
);
pub(super) static TOKEN: Rule = warning(
    "OSDN3049",
    "a token without an end is of an account that may do everything",
    "narrow the role; the missing check of the certificate is in kube-manager's image and no setting changes it",
);
const WIDEST: &str = "cluster-admin";
/// The annotation that says whose token it is.
pub(super) const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_POINTER: &str = "/metadata/annotations/kubernetes.io~1service-account.name";

/// Namespace and name.
type Account<'d> = (&'d str, &'d str);

/// The documents that say what the workloads may do are of nested mode as well.
pub(super) fn lint(documents: &Documents<'_>, found: &mut Vec<Finding>) -> BTreeSet<DocumentId> {
    let tokens = tokens(documents);
    let own = documents.workloads().iter().map(|workload| {
        let pod = |field: &str| text(workload.document(), &format!("/spec/template/spec/{field}"));
        (text(workload.document(), "/metadata/namespace"), pod("serviceAccountName"))
    });
    let of_tokens = tokens.iter().map(|secret| account(secret));
    let accounts: BTreeSet<Account<'_>> =
        own.chain(of_tokens).filter(|(_, name)| !name.is_empty()).collect();
    let mut wide: BTreeSet<Account<'_>> = BTreeSet::new();
    let mut concerned: BTreeSet<DocumentId> = tokens.iter().map(|secret| secret.id).collect();
    let mut roles: Vec<&Kept> = Vec::new();
    for binding in documents.of_kind("ClusterRoleBinding") {
        let of_ours: Vec<_> =
            subjects(binding).filter(|account| accounts.contains(account)).collect();
        if of_ours.is_empty() {
            continue;
        }
        concerned.insert(binding.id);
        let granted = granting(documents, binding, found);
        if granted.is_some() {
            wide.extend(of_ours);
        }
        roles.extend(granted.into_iter().flatten());
    }
    for role in roles.into_iter().filter(|role| concerned.insert(role.id)) {
        let message =
            format!("ClusterRole {} may do everything", text(&role.value, "/metadata/name"));
        found.push(EVERYTHING.at(role.id, "/rules", message));
    }
    found.extend(tokens.into_iter().filter(|secret| wide.contains(&account(secret))).map(endless));
    concerned
}

/// The roles by which a binding grants everything, which may be one that every cluster has; nothing where it does
/// not.
fn granting<'d>(
    documents: &Documents<'d>,
    binding: &Kept,
    found: &mut Vec<Finding>,
) -> Option<Vec<&'d Kept>> {
    let wanted = text(&binding.value, "/roleRef/name");
    if wanted == WIDEST {
        let name = text(&binding.value, "/metadata/name");
        let message = format!("ClusterRoleBinding {name} grants {WIDEST}");
        found.push(EVERYTHING.at(binding.id, "/roleRef/name", message));
        return Some(Vec::new());
    }
    let roles = documents.of_kind("ClusterRole");
    let roles: Vec<_> =
        roles.filter(|role| text(&role.value, "/metadata/name") == wanted).collect();
    (!roles.is_empty()).then_some(roles)
}

fn subjects(binding: &Kept) -> impl Iterator<Item = Account<'_>> {
    list(&binding.value, "/subjects").map(|one| (text(one, "/namespace"), text(one, "/name")))
}

/// The tokens that workloads mount.
fn tokens<'d>(documents: &Documents<'d>) -> Vec<&'d Kept> {
    let is_mounted = |secret: &&Kept| {
        documents.workloads().iter().any(|workload| {
            let place = |value| (text(value, "/metadata/namespace"), text(value, "/metadata/name"));
            let (namespace, name) = place(&secret.value);
            let mut volumes = list(workload.document(), "/spec/template/spec/volumes");
            place(workload.document()).0 == namespace
                && volumes.any(|volume| text(volume, "/secret/secretName") == name)
        })
    };
    documents.of_kind("Secret").filter(is_mounted).collect()
}

fn account(secret: &Kept) -> Account<'_> {
    (text(&secret.value, "/metadata/namespace"), text(&secret.value, ACCOUNT_POINTER))
}

fn endless(secret: &Kept) -> Finding {
    let message = format!(
        "Secret {} has a token without an end of account {}, which may do everything; kube-manager sends it \
         without checking the certificate of the API server",
        text(&secret.value, "/metadata/name"),
        account(secret).1
    );
    TOKEN.at(secret.id, ACCOUNT_POINTER, message)
}

/// Whether a role may do everything.
pub(super) fn grants_all(role: &Value) -> bool {
    let has = |rule: &Value, field: &str| list(rule, field).any(|one| one == "*");
    list(role, "/rules")
        .any(|rule| ["/apiGroups", "/resources", "/verbs"].iter().all(|field| has(rule, field)))
}

/// Whether a Secret has the token of an account.
pub(super) fn is_token(secret: &Value) -> bool {
    text(secret, "/type") == "kubernetes.io/service-account-token"
}
