//! What the workloads of a nested cluster are made of beside its plan: images, names of Secrets, and how the API server
//! is reached. No password is an argument: Secrets are named, and nothing here reads one.

use clap::{Args, ValueEnum};
use opensdn_crds::nested::Cni;
use opensdn_crds::pod::LogLevel;
use opensdn_nested::{Driver, Fact};
use opensdn_nested_workloads::{
    ApiServer, Fabric, FloatingIpPool, HostAlias, Images, Inputs, Keystone, Plugins, Protocol,
    SecretKey,
};

use super::surroundings::driver_of;

/// Of the API server, where none is given.
const TLS_PORT: i64 = 6443;

/// What the workloads are made of.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workloads")]
pub(crate) struct WorkloadFlags {
    /// Where kube-manager reaches the API server of this cluster [default port: 6443]. It knows one address: of
    /// several give a virtual one, or a name.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = api_server)]
    api_server: ApiServer,
    /// Namespace of the objects.
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    target_namespace: String,
    /// The registry, with folders, from which the images come.
    #[arg(long, value_name = "REGISTRY", required_unless_present_all = ["image_kube_manager", "image_cni"])]
    registry: Option<String>,
    /// The tag of the images, that of the release of the cloud's OpenSDN.
    #[arg(long, value_name = "TAG", required_unless_present_all = ["image_kube_manager", "image_cni"])]
    tag: Option<String>,
    /// The image of kube-manager [default: opensdn-kubernetes-kube-manager of --registry and --tag,
    /// contrail-... before R25.1].
    #[arg(long, value_name = "IMAGE")]
    image_kube_manager: Option<String>,
    /// The image that installs the CNI plugin [default: opensdn-kubernetes-cni-init of --registry and --tag,
    /// contrail-... before R25.1].
    #[arg(long, value_name = "IMAGE")]
    image_cni: Option<String>,
    /// Name of the Secret with the login to the registry [default: none].
    #[arg(long, value_name = "NAME")]
    registry_secret: Option<String>,
    /// Name of the Secret with the keys user, password and vhost of the message bus [default: RabbitMQ's own guest].
    #[arg(long, value_name = "NAME")]
    rabbitmq_secret: Option<String>,
    /// Key of that Secret that has the password with each % doubled, where it has a %.
    #[arg(long, value_name = "KEY", requires = "rabbitmq_secret")]
    rabbitmq_escaped_key: Option<String>,
    /// Services that speak TLS [default: none].
    #[arg(long, value_enum, value_name = "SERVICE", value_delimiter = ',')]
    tls: Vec<TlsService>,
    /// Name of the Secret with the key ca-bundle.crt, by which certificates of the cloud's services are checked.
    #[arg(long, value_name = "NAME")]
    ca_secret: Option<String>,
    /// Name of a Secret with tls.crt and tls.key, by which kube-manager proves who it is.
    #[arg(long, value_name = "NAME")]
    client_certificate_secret: Option<String>,
    /// MTU of the interfaces of pods, not above that of the nodes' own [default: 1500].
    #[arg(long, value_name = "BYTES")]
    mtu: Option<i64>,
    /// The interface of the nodes that is in the cluster's network [default: the one with the node's address].
    #[arg(long, value_name = "INTERFACE")]
    parent_interface: Option<String>,
    /// How much kube-manager logs [default: notices].
    #[arg(long, value_enum, value_name = "LEVEL")]
    log_level: Option<Level>,
    /// Leave the CNI plugins on the nodes as they are; else the image replaces bridge, loopback and others at each
    /// start by those of version 0.3.0.
    #[arg(long)]
    keep_cni_plugins: bool,
    /// The pool of the addresses of Services of type LoadBalancer and of Ingresses [default: none].
    #[arg(long, value_name = "DOMAIN:PROJECT:NETWORK:NAME", value_parser = pool)]
    public_fip_pool: Option<FloatingIpPool>,
    /// Have all pods use the network of the fabric itself.
    #[arg(long)]
    fabric_forwarding: bool,
    /// Have pods reach the fabric through the address of their compute node.
    #[arg(long)]
    fabric_snat_of_pods: bool,
    /// Let Services lead to pods on the network of their node.
    #[arg(long)]
    host_network_services: bool,
    /// A name for kube-manager's own /etc/hosts (repeatable), such as 10.0.0.9=master1.
    #[arg(long, value_name = "IP=NAME", value_parser = host_alias)]
    host_alias: Vec<HostAlias>,
    /// A label that the node of kube-manager has to have (repeatable) [default: the control plane is preferred].
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    node_selector: Vec<(String, String)>,
    #[command(flatten)]
    keystone: KeystoneFlags,
}

/// As whom kube-manager logs in.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Keystone")]
struct KeystoneFlags {
    /// Name of the Secret with the password of kube-manager's user; needed where the cluster has Keystone.
    #[arg(long, value_name = "NAME")]
    keystone_secret: Option<String>,
    /// Key of that Secret that has the password.
    #[arg(long, value_name = "KEY", default_value = "password", requires = "keystone_secret")]
    keystone_password_key: String,
    /// Key of that Secret that has the password with each % doubled, where it has a %.
    #[arg(long, value_name = "KEY", requires = "keystone_secret")]
    keystone_escaped_key: Option<String>,
    /// The user.
    #[arg(long, value_name = "NAME", default_value = "admin", requires = "keystone_secret")]
    keystone_user: String,
    /// The user's project.
    #[arg(long, value_name = "NAME", default_value = "admin", requires = "keystone_secret")]
    keystone_project: String,
    /// Domain of the user and of the project: kube-manager knows one for both.
    #[arg(long, value_name = "NAME", default_value = "Default", requires = "keystone_secret")]
    keystone_domain: String,
    /// How it is reached.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "PROTOCOL",
        requires = "keystone_secret"
    )]
    keystone_protocol: KeystoneProtocol,
}

/// A service that may speak TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsService {
    /// The Config API.
    Config,
    /// The collectors.
    Analytics,
    /// The message bus.
    Rabbitmq,
    /// The config database.
    ConfigDatabase,
}

/// How Keystone is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum KeystoneProtocol {
    /// Without TLS.
    #[default]
    Http,
    /// By TLS.
    Https,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Everything.
    Debug,
    /// What an administrator wants to know.
    Info,
    /// What may become a problem.
    Warning,
    /// What is one.
    Error,
    /// What ends the daemon.
    Critical,
    /// Nothing.
    None,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warning => Self::Warning,
            Level::Error => Self::Error,
            Level::Critical => Self::Critical,
            Level::None => Self::None,
        }
    }
}

fn api_server(text: &str) -> Result<ApiServer, String> {
    let wrong = || "must be HOST or HOST:PORT, such as 10.0.0.10:6443, without https://".to_owned();
    let (host, port) = match text.split_once(':') {
        None => (text, TLS_PORT),
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
    };
    if host.is_empty() {
        return Err(wrong());
    }
    Ok(ApiServer { host: host.to_owned(), port })
}

fn pool(text: &str) -> Result<FloatingIpPool, String> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [domain, project, network, name] if parts.iter().all(|part| !part.is_empty()) => {
            let [domain, project, network, name] =
                [domain, project, network, name].map(|one| (*one).to_owned());
            Ok(FloatingIpPool { domain, project, network, name })
        }
        _ => Err("must be DOMAIN:PROJECT:NETWORK:NAME, such as default-domain:admin:public:pool"
            .to_owned()),
    }
}

fn host_alias(text: &str) -> Result<HostAlias, String> {
    let (ip, name) = text.split_once('=').ok_or("must be IP=NAME, such as 10.0.0.9=master1")?;
    Ok(HostAlias { ip: ip.to_owned(), names: vec![name.to_owned()] })
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE; VALUE may be empty")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl WorkloadFlags {
    /// The inputs with all that flags say; what a plan says is not in them.
    pub(crate) fn inputs(&self) -> Inputs {
        let mut inputs = Inputs {
            namespace: self.target_namespace.clone(),
            images: self.images(),
            registry_secret: self.registry_secret.clone(),
            api_server: self.api_server.clone(),
            client_certificate_secret: self.client_certificate_secret.clone(),
            parent_interface: self.parent_interface.clone(),
            log_level: self.log_level.map(LogLevel::from),
            plugins: if self.keep_cni_plugins { Plugins::Kept } else { Plugins::Replaced },
            floating_ip_pool: self.public_fip_pool.clone(),
            fabric: Fabric {
                forwarding: self.fabric_forwarding,
                snat: self.fabric_snat_of_pods,
                host_network_service: self.host_network_services,
            },
            host_aliases: self.host_alias.clone(),
            node_selector: self.node_selector.iter().cloned().collect(),
            ..Inputs::default()
        };
        let escaped = self.rabbitmq_secret.clone().zip(self.rabbitmq_escaped_key.clone());
        inputs.escaped_rabbitmq_password = escaped.map(|(secret, key)| SecretKey { secret, key });
        inputs.nested.underlay.rabbitmq_secret_name.clone_from(&self.rabbitmq_secret);
        inputs.nested.underlay.ca_secret_name.clone_from(&self.ca_secret);
        inputs.nested.cni = self.mtu.map(|mtu| Cni { image: None, mtu: Some(mtu) });
        inputs
    }

    fn images(&self) -> Images {
        let tag = self.tag.as_deref().unwrap_or_default();
        let Images { kube_manager, cni } =
            Images::of_release(self.registry.as_deref().unwrap_or_default(), tag);
        Images {
            kube_manager: self.image_kube_manager.clone().unwrap_or(kube_manager),
            cni: self.image_cni.clone().unwrap_or(cni),
        }
    }

    /// The tag of a kube-manager that speaks Thrift to the config database, as those before R24.1 do.
    pub(crate) fn tag_of_thrift(&self) -> Option<&str> {
        let tag = self.tag.as_deref().filter(|_| self.image_kube_manager.is_none())?;
        (driver_of(tag) == Fact::Known(Driver::Thrift)).then_some(tag)
    }

    /// Whether a service speaks TLS.
    pub(crate) fn speaks_tls(&self, service: TlsService) -> bool {
        self.tls.contains(&service)
    }

    /// As whom kube-manager logs in at this address; nothing where no Secret is named.
    pub(crate) fn keystone(&self, host: &str, port: i64) -> Option<Keystone> {
        let flags = &self.keystone;
        let secret = flags.keystone_secret.as_ref()?;
        let key = |key: &str| SecretKey { secret: secret.clone(), key: key.to_owned() };
        Some(Keystone {
            host: host.to_owned(),
            port,
            protocol: match flags.keystone_protocol {
                KeystoneProtocol::Http => Protocol::Http,
                KeystoneProtocol::Https => Protocol::Https,
            },
            domain: flags.keystone_domain.clone(),
            user: flags.keystone_user.clone(),
            project: flags.keystone_project.clone(),
            password: key(&flags.keystone_password_key),
            escaped_password: flags.keystone_escaped_key.as_deref().map(key),
        })
    }

    /// The Secret with the password of Keystone's user.
    pub(crate) fn keystone_secret(&self) -> Option<&str> {
        self.keystone.keystone_secret.as_deref()
    }
}
