//! All objects of nested mode, and the order in which they are applied.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use serde::Serialize;

use crate::inputs::{Inputs, Token};
use crate::invalid::InvalidInputs;
use crate::{checked, cni_agent, environment, kube_manager, rbac};

/// The objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Workloads {
    /// kube-manager's account.
    pub service_account: ServiceAccount,
    /// What it may do.
    pub cluster_role: ClusterRole,
    /// That it may.
    pub cluster_role_binding: ClusterRoleBinding,
    /// Its token, unless that is made elsewhere.
    pub token_secret: Option<Secret>,
    /// Its environment without what is secret.
    pub kube_manager_environment: ConfigMap,
    /// The environment of the CNI agent.
    pub cni_agent_environment: ConfigMap,
    /// The CNI agent.
    pub cni_agent: DaemonSet,
    /// kube-manager.
    pub kube_manager: Deployment,
}

/// Makes the objects.
///
/// # Errors
/// Every value that is not as it must be, with its field.
pub fn render(inputs: &Inputs) -> Result<Workloads, InvalidInputs> {
    let checked = checked::check(inputs)?;
    let kube_manager_environment = environment::of_kube_manager(&checked);
    let cni_agent_environment = environment::of_cni_agent(&checked);
    let of_cni = environment::digest(&cni_agent_environment);
    let of_manager = environment::digest(&kube_manager_environment);
    let makes_token = inputs.token == Token::Made;
    Ok(Workloads {
        service_account: rbac::service_account(&checked),
        cluster_role: rbac::cluster_role(&checked),
        cluster_role_binding: rbac::cluster_role_binding(&checked),
        token_secret: makes_token.then(|| rbac::token_secret(&checked)),
        cni_agent: cni_agent::daemon_set(&checked, &of_cni),
        kube_manager: kube_manager::deployment(&checked, &of_manager),
        kube_manager_environment,
        cni_agent_environment,
    })
}

impl Workloads {
    /// All of them in the order in which they are applied.
    #[must_use]
    pub fn objects(&self) -> Vec<Object<'_>> {
        let mut all = vec![
            Object::ServiceAccount(&self.service_account),
            Object::ClusterRole(&self.cluster_role),
            Object::ClusterRoleBinding(&self.cluster_role_binding),
        ];
        all.extend(self.token_secret.as_ref().map(Object::Secret));
        all.extend([
            Object::ConfigMap(&self.kube_manager_environment),
            Object::ConfigMap(&self.cni_agent_environment),
            Object::DaemonSet(&self.cni_agent),
            Object::Deployment(&self.kube_manager),
        ]);
        all
    }
}

/// One of the objects; serialised it has its apiVersion and kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each is named after its kind")]
pub enum Object<'w> {
    ServiceAccount(&'w ServiceAccount),
    ClusterRole(&'w ClusterRole),
    ClusterRoleBinding(&'w ClusterRoleBinding),
    Secret(&'w Secret),
    ConfigMap(&'w ConfigMap),
    DaemonSet(&'w DaemonSet),
    Deployment(&'w Deployment),
}

/// When an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Accounts and what they may do.
    Access,
    /// Secrets and ConfigMaps.
    Settings,
    /// The CNI agent; the next phase begins when it is ready on every node.
    CniAgent,
    /// kube-manager.
    KubeManager,
}

impl Object<'_> {
    /// When it is applied.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::ServiceAccount(_) | Self::ClusterRole(_) | Self::ClusterRoleBinding(_) => {
                Phase::Access
            }
            Self::Secret(_) | Self::ConfigMap(_) => Phase::Settings,
            Self::DaemonSet(_) => Phase::CniAgent,
            Self::Deployment(_) => Phase::KubeManager,
        }
    }
}
