//! All objects of a component of a nested cluster (pure): those of the renderer, as the operator's own.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use opensdn_nested_workloads::{InvalidInputs, SecretKey, Workloads, render};

use super::Described;
use crate::build::certificates::Data;
use crate::build::{Intent, intent, owner, pull_secrets, tolerations};
use crate::kind::Kind;
use crate::names::{self, STOPPED};
use crate::reconcile::Error;
use crate::reconcile::validate::Invalid;

/// By which a token is that of an account.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// All objects, in the order in which they are applied.
pub struct Built {
    /// What containers need before they start.
    pub settings: Vec<Intent>,
    /// The CNI agent.
    pub cni_agent: Intent,
    /// kube-manager.
    pub kube_manager: Intent,
}

/// All that is wrong with the settings.
pub(super) fn check(described: &Described) -> Result<(), Invalid> {
    rendered(described, &Data::new(), None).map(drop)
}

/// The objects. `own` is what the operator's own Secret has, `digest` changes with what is in Secrets.
///
/// # Errors
/// A value is not as it must be.
pub fn build(
    object: &DynamicObject,
    described: &Described,
    own: &Data,
    digest: Option<String>,
) -> Result<Built, Error> {
    let mut all = rendered(described, own, digest).map_err(Error::Refused)?;
    account(described, &mut all);
    agent(described, &mut all.cni_agent);
    kube_manager(described, &mut all.kube_manager);
    let mut token = all.token_secret.unwrap_or_default();
    let mut passwords = Secret {
        metadata: ObjectMeta {
            name: Some(described.own_secret()),
            namespace: token.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        data: Some(own.clone()),
        ..Secret::default()
    };
    for metadata in [
        &mut all.service_account.metadata,
        &mut token.metadata,
        &mut passwords.metadata,
        &mut all.kube_manager_environment.metadata,
        &mut all.cni_agent_environment.metadata,
        &mut all.cni_agent.metadata,
        &mut all.kube_manager.metadata,
    ] {
        let labels = names::managed(described.instance.labels());
        metadata.labels.get_or_insert_default().extend(labels);
        metadata.owner_references = Some(vec![owner(object)]);
    }
    Ok(Built {
        settings: vec![
            intent(Kind::ServiceAccount, &all.service_account)?,
            intent(Kind::Secret, &token)?,
            intent(Kind::Secret, &passwords)?,
            intent(Kind::ConfigMap, &all.kube_manager_environment)?,
            intent(Kind::ConfigMap, &all.cni_agent_environment)?,
        ],
        cni_agent: intent(Kind::DaemonSet, &all.cni_agent)?,
        kube_manager: intent(Kind::Deployment, &all.kube_manager)?,
    })
}

/// As the renderer has them. All that is wrong is said by the fields that a user writes.
fn rendered(
    described: &Described,
    own: &Data,
    digest: Option<String>,
) -> Result<Workloads, Invalid> {
    let nested = &described.nested;
    let mut inputs = nested.inputs.clone();
    for (key, name) in nested.escaped.iter().filter(|(key, _)| own.contains_key(*key)) {
        let secret = described.own_secret();
        name(&mut inputs, SecretKey { secret, key: (*key).to_owned() });
    }
    inputs.secrets_digest = digest;
    let (workloads, InvalidInputs(refused)) = match render(&inputs) {
        Ok(workloads) => (Some(workloads), InvalidInputs(Vec::new())),
        Err(invalid) => (None, invalid),
    };
    let is_said = |field: &str| nested.wrong.iter().any(|(known, _)| field.starts_with(known));
    let mut texts: Vec<String> = nested.wrong.iter().map(|(_, text)| text.clone()).collect();
    for mut one in refused.into_iter().filter(|one| !is_said(&one.field)) {
        one.field = (nested.field)(&one.field);
        texts.push(one.to_string());
    }
    match workloads.filter(|_| texts.is_empty()) {
        Some(workloads) => Ok(workloads),
        None => Err(Invalid { reason: "InvalidSettings", message: texts.join("; ") }),
    }
}

/// The account is that of the other mode, too: whoever installs the operator binds it once.
fn account(described: &Described, all: &mut Workloads) {
    let account = described.instance.service_account();
    let token = all.token_secret.as_mut();
    let annotations = token.map(|token| token.metadata.annotations.get_or_insert_default());
    if let Some(annotations) = annotations {
        annotations.insert(ACCOUNT.to_owned(), account.clone());
    }
    if let Some(pod) = pod_of(all.kube_manager.spec.as_mut().map(|spec| &mut spec.template)) {
        pod.service_account_name = Some(account.clone());
    }
    all.service_account.metadata.name = Some(account);
}

/// It tolerates every taint whatever is given, and is on every node: a node without it has no network for pods.
fn agent(described: &Described, agent: &mut DaemonSet) {
    let template = agent.spec.as_mut().map(|spec| &mut spec.template);
    let Some(pod) = pod_of(shared(described, template)) else { return };
    if described.stopped.is_some() {
        // It has no number of pods that could be none.
        pod.node_selector.get_or_insert_default().insert(STOPPED.to_owned(), "true".to_owned());
    }
}

fn kube_manager(described: &Described, deployment: &mut Deployment) {
    let Some(spec) = deployment.spec.as_mut() else { return };
    if described.stopped.is_some() {
        spec.replicas = Some(0);
    }
    let Some(pod) = pod_of(shared(described, Some(&mut spec.template))) else { return };
    if described.common.tolerations.as_ref().is_some_and(|given| !given.is_empty()) {
        pod.tolerations = Some(tolerations(&described.common));
    }
    if let (Some(command), Some(container)) =
        (&described.nested.command, pod.containers.first_mut())
    {
        container.command = Some(command.clone());
    }
}

/// What both have: labels, by which their pods are found, and the login to registries.
fn shared<'t>(
    described: &Described,
    template: Option<&'t mut PodTemplateSpec>,
) -> Option<&'t mut PodTemplateSpec> {
    let template = template?;
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.extend(described.instance.labels());
    if let Some(pod) = template.spec.as_mut() {
        pod.image_pull_secrets = pull_secrets(&described.common);
    }
    Some(template)
}

fn pod_of(
    template: Option<&mut PodTemplateSpec>,
) -> Option<&mut k8s_openapi::api::core::v1::PodSpec> {
    template?.spec.as_mut()
}
