//! What the workloads are made of, as a user or the operator gives it. Nothing here is checked yet.
//!
//! No password is among it: passwords are keys of Secrets. Before it names such a key, the caller looks at the
//! password with [`crate::password::in_configuration`], as this crate never sees it.

use std::collections::BTreeMap;

use opensdn_crds::nested::Nested;
use opensdn_crds::pod::LogLevel;

use crate::names::{NAMESPACE, PREFIX};
use crate::release::Release;

/// All that the workloads are made of.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The cluster, its network, and where the services of the underlay are.
    pub nested: Nested,
    /// Namespace of the objects. Default kube-system.
    pub namespace: String,
    /// What all names begin with. Default `opensdn-`.
    pub names_prefix: String,
    /// Value of the label `app.kubernetes.io/managed-by` of all objects.
    pub managed_by: Option<String>,
    /// The images. `nested.cni.image` wins over the one here.
    pub images: Images,
    /// Name of the Secret with the login to the registry; without it there are no imagePullSecrets.
    pub registry_secret: Option<String>,
    /// Digest of the Secrets' content: when it changes, kube-manager is restarted, which reads
    /// passwords at its start only.
    pub secrets_digest: Option<String>,
    /// Where kube-manager reaches Kubernetes.
    pub api_server: ApiServer,
    /// The networks of pods and Services.
    pub subnets: Subnets,
    /// Keystone; without it the Config API is asked without a login.
    pub keystone: Option<Keystone>,
    /// A key with RabbitMQ's password and each `%` in it doubled: only where `password` says so.
    pub escaped_rabbitmq_password: Option<SecretKey>,
    /// Name of a Secret with the keys tls.crt and tls.key, by which kube-manager proves who it is.
    /// Collectors with TLS ask for it, as does RabbitMQ unless it is set otherwise.
    pub client_certificate_secret: Option<String>,
    /// The interface of the nodes that is in the cluster's network. Default: the one with the node's address.
    pub parent_interface: Option<String>,
    /// How much is logged. Default: what upstream has, notices.
    pub log_level: Option<LogLevel>,
    /// The token by which kube-manager asks Kubernetes.
    pub token: Token,
    /// What becomes of the reference plugins that are on the nodes.
    pub plugins: Plugins,
    /// Lines of /etc/hosts in kube-manager's pod, which must resolve its own name.
    pub host_aliases: Vec<HostAlias>,
    /// What pods may do with the fabric.
    pub fabric: Fabric,
    /// Pool of floating addresses for Ingress and LoadBalancer.
    pub floating_ip_pool: Option<FloatingIpPool>,
    /// Labels of the nodes on which kube-manager must run. Default: it prefers those of the control plane.
    pub node_selector: BTreeMap<String, String>,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            nested: Nested::default(),
            namespace: NAMESPACE.to_owned(),
            names_prefix: PREFIX.to_owned(),
            managed_by: None,
            images: Images::default(),
            registry_secret: None,
            secrets_digest: None,
            api_server: ApiServer::default(),
            subnets: Subnets::default(),
            keystone: None,
            escaped_rabbitmq_password: None,
            client_certificate_secret: None,
            parent_interface: None,
            log_level: None,
            token: Token::default(),
            plugins: Plugins::default(),
            host_aliases: Vec::new(),
            fabric: Fabric::default(),
            floating_ip_pool: None,
            node_selector: BTreeMap::new(),
        }
    }
}

/// The full names of the images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// kube-manager.
    pub kube_manager: String,
    /// What installs the CNI plugin.
    pub cni: String,
}

impl Images {
    /// Upstream's images of a release.
    #[must_use]
    pub fn of_release(registry: &str, tag: &str) -> Self {
        let (registry, prefix) = (registry.trim_end_matches('/'), Release::image_prefix(tag));
        Self {
            kube_manager: format!("{registry}/{prefix}kubernetes-kube-manager:{tag}"),
            cni: format!("{registry}/{prefix}kubernetes-cni-init:{tag}"),
        }
    }
}

/// The API server of Kubernetes. kube-manager knows one address: with several give a virtual one, or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// IPv4 address or name.
    pub host: String,
    /// Port of TLS. Default 6443.
    pub port: i64,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self { host: String::new(), port: 6443 }
    }
}

/// Networks in IPv4, as `10.32.0.0/12`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subnets {
    /// Of pods.
    pub pod: Vec<String>,
    /// Of Services; the address of the Service `kubernetes` must be in it.
    pub service: Vec<String>,
    /// Of pods whose traffic uses the fabric directly. Default 10.64.0.0/12.
    pub ip_fabric: Vec<String>,
}

/// Keystone as the nodes reach it.
#[derive(Clone, Debug)]
pub struct Keystone {
    /// IPv4 address or name; of the link-local service where there is one.
    pub host: String,
    /// Port for tokens: 5000, or 35357 of old.
    pub port: i64,
    /// How it is reached.
    pub protocol: Protocol,
    /// Domain of the user and of the project: kube-manager's client takes one for both (tf-api-client
    /// api-lib/vnc_api/vnc_api.py, `_authenticate`).
    pub domain: String,
    /// The user.
    pub user: String,
    /// The project, or tenant, of the user.
    pub project: String,
    /// The password.
    pub password: SecretKey,
    /// A key with the password and each `%` in it doubled: only where `password` says so.
    pub escaped_password: Option<SecretKey>,
}

/// How Keystone is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Without TLS.
    Http,
    /// By TLS. Its certificate is checked by `nested.underlay.caSecretName`, else by the image's authorities.
    Https,
}

/// A key of a Secret in the namespace of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// The Secret.
    pub secret: String,
    /// Its key.
    pub key: String,
}

/// The token by which kube-manager asks Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Token {
    /// Its Secret is among the objects.
    #[default]
    Made,
    /// It is in a Secret that is made elsewhere, by this name.
    InSecret(String),
}

/// The reference plugins (bridge, loopback and others) in `/opt/cni/bin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plugins {
    /// As the image does it: at each start it replaces them by those of version 0.3.0 of 2016.
    #[default]
    Replaced,
    /// They stay as they are; only OpenSDN's own plugin is installed.
    Kept,
}

/// A line of /etc/hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAlias {
    /// Address.
    pub ip: String,
    /// Its names.
    pub names: Vec<String>,
}

/// What pods may do with the fabric of the underlay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// Whether all pods use it directly.
    pub forwarding: bool,
    /// Whether pods reach it through the address of their compute node.
    pub snat: bool,
    /// Whether Services may lead to pods on the host network.
    pub host_network_service: bool,
}

/// A pool of floating addresses by its fully qualified name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIpPool {
    /// The domain.
    pub domain: String,
    /// The project.
    pub project: String,
    /// The network.
    pub network: String,
    /// The pool.
    pub name: String,
}
