//! Names of the objects: upstream's, where these say what they are. Its ConfigMaps `env` and
//! `kube-manager-config` are not taken, for others in kube-system may be called so.

/// What upstream's names begin with.
pub(crate) const PREFIX: &str = "opensdn-";
pub(crate) const NAMESPACE: &str = "kube-system";
/// The container of kube-manager, whatever its object is called.
pub(crate) const KUBE_MANAGER_CONTAINER: &str = "opensdn-kube-manager";
/// The container of the CNI agent.
pub(crate) const CNI_CONTAINER: &str = "opensdn-kubernetes-cni-init";
/// The container that only installs the plugin.
pub(crate) const PLUGIN_CONTAINER: &str = "opensdn-kubernetes-cni-plugin";

/// The names of all objects by what they begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

impl Names {
    /// Names that begin so, such as `opensdn-`.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The Deployment, ServiceAccount, ClusterRole and ClusterRoleBinding of kube-manager.
    #[must_use]
    pub fn kube_manager(&self) -> String {
        format!("{}kube-manager", self.prefix)
    }

    /// The ConfigMap with kube-manager's environment.
    #[must_use]
    pub fn kube_manager_environment(&self) -> String {
        format!("{}kube-manager-env", self.prefix)
    }

    /// The Secret with the token of kube-manager's ServiceAccount, unless another is given.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{}kube-manager-token", self.prefix)
    }

    /// The DaemonSet of the CNI agent.
    #[must_use]
    pub fn cni_agent(&self) -> String {
        format!("{}kubernetes-cni-agent", self.prefix)
    }

    /// The ConfigMap with the CNI agent's environment.
    #[must_use]
    pub fn cni_agent_environment(&self) -> String {
        format!("{}kubernetes-cni-agent-env", self.prefix)
    }
}
