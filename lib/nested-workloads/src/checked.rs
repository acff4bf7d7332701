//! From what is given to what is checked: the only way to a value that goes into an object. All that is wrong
//! is found at once.

mod fields;

use opensdn_crds::nested::{Endpoint, Underlay, VirtualNetwork};

use self::fields::Fields;
use crate::inputs::{Images, Inputs, Protocol, SecretKey, Token};
use crate::invalid::InvalidInputs;
use crate::names::Names;
use crate::shape;

/// What OpenSDN calls the domain that is always there.
const DEFAULT_DOMAIN: &str = "default-domain";
const ZOOKEEPER_PORT: u16 = 2181;
/// Thrift's, as releases up to R21 have it for both databases.
const THRIFT_PORTS: [u16; 2] = [9160, 9161];
const MTU: u16 = 1500;
const MTUS: std::ops::RangeInclusive<i64> = 68..=65535;
/// What kube-manager's image takes by itself.
pub(crate) const IP_FABRIC_SUBNET: &str = "10.64.0.0/12";

/// Inputs that have been checked, and what is derived of them.
pub(crate) struct Checked<'i> {
    pub(crate) given: &'i Inputs,
    pub(crate) names: Names,
    pub(crate) images: Images,
    pub(crate) network: Network<'i>,
    pub(crate) services: Services,
    pub(crate) api_port: u16,
    pub(crate) keystone_port: u16,
    pub(crate) mtu: u16,
}

/// A virtual network by its fully qualified name.
pub(crate) struct Network<'i> {
    pub(crate) domain: &'i str,
    pub(crate) project: &'i str,
    pub(crate) name: &'i str,
}

/// The services of the underlay.
pub(crate) struct Services {
    pub(crate) config: Service,
    pub(crate) analytics: Service,
    pub(crate) config_database: Service,
    pub(crate) rabbitmq: Service,
    pub(crate) zookeeper: Service,
    pub(crate) vrouter: Service,
}

/// A service of the underlay.
#[derive(Clone)]
pub(crate) struct Service {
    /// With commas between, as all variables of nodes have them.
    pub(crate) addresses: String,
    pub(crate) port: u16,
    pub(crate) transport: Transport,
}

/// How a service is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

impl Checked<'_> {
    /// The Secret with the token, made here or elsewhere.
    pub(crate) fn token_secret(&self) -> String {
        match &self.given.token {
            Token::Made => self.names.token(),
            Token::InSecret(name) => name.clone(),
        }
    }
}

/// # Errors
/// All values that are not as they must be.
pub(crate) fn check(given: &Inputs) -> Result<Checked<'_>, InvalidInputs> {
    let mut fields = Fields::default();
    let network = network(&mut fields, &given.nested.cluster_network);
    let services = services(&mut fields, &given.nested.underlay);
    let images = images(&mut fields, given);
    let api_port = fields.port("api_server.port", Some(given.api_server.port), 6443);
    let mtu = mtu(&mut fields, given);
    let keystone_port = keystone(&mut fields, given);
    objects(&mut fields, given);
    cluster(&mut fields, given);
    secrets(&mut fields, given, &services);
    fields.end()?;
    let names = Names::new(&given.names_prefix);
    Ok(Checked { given, names, images, network, services, api_port, keystone_port, mtu })
}

fn network<'i>(fields: &mut Fields, given: &'i VirtualNetwork) -> Network<'i> {
    let domain = given.domain.as_deref().unwrap_or(DEFAULT_DOMAIN);
    let network = Network { domain, project: &given.project, name: &given.name };
    let parts = [("domain", network.domain), ("project", network.project), ("name", network.name)];
    for (part, value) in parts {
        fields.shape(&format!("nested.clusterNetwork.{part}"), value, &shape::PLAIN);
    }
    network
}

fn services(fields: &mut Fields, given: &Underlay) -> Services {
    let none = Endpoint::default();
    let config = service(fields, "config", &given.config, 8082, None);
    let mut at = |name: &str, endpoint: &Option<Endpoint>, port, or| {
        service(fields, name, endpoint.as_ref().unwrap_or(&none), port, Some(or))
    };
    let analytics = at("analytics", &given.analytics, 8086, &config);
    let config_database = at("configDatabase", &given.config_database, 9041, &config);
    // As upstream's containers derive these lists (base/common.sh).
    let rabbitmq = at("rabbitmq", &given.rabbitmq, 5673, &config_database);
    let zookeeper = at("zookeeper", &given.zookeeper, ZOOKEEPER_PORT, &config_database);
    let vrouter = service(fields, "vrouter", &given.vrouter, 9091, None);
    for (name, one) in [("vrouter", &vrouter), ("zookeeper", &zookeeper)] {
        if one.transport == Transport::Tls {
            let field = format!("nested.underlay.{name}.tls");
            fields.refuse(
                &field,
                "true",
                "must be false: kube-manager and the CNI use no TLS there",
            );
        }
    }
    if THRIFT_PORTS.contains(&config_database.port) {
        let rule =
            "must be the port of CQL, such as 9041: images from R24.1 on do not speak Thrift";
        fields.refuse(
            "nested.underlay.configDatabase.port",
            &config_database.port.to_string(),
            rule,
        );
    }
    if vrouter.addresses.contains(',') {
        let rule = "must be one address, that of the link-local service";
        fields.refuse("nested.underlay.vrouter.addresses", &vrouter.addresses, rule);
    }
    Services { config, analytics, config_database, rabbitmq, zookeeper, vrouter }
}

/// A service; its addresses are those of another where it has none of its own.
fn service(
    fields: &mut Fields,
    name: &str,
    given: &Endpoint,
    port: u16,
    or: Option<&Service>,
) -> Service {
    let field = format!("nested.underlay.{name}");
    let transport = if given.tls == Some(true) { Transport::Tls } else { Transport::Plain };
    let port = fields.port(&format!("{field}.port"), given.port, port);
    let addresses = match or {
        Some(other) if given.addresses.is_empty() => other.addresses.clone(),
        _ => {
            let field = format!("{field}.addresses");
            fields.list(&field, &given.addresses, &shape::UNICAST);
            given.addresses.join(",")
        }
    };
    Service { addresses, port, transport }
}

fn images(fields: &mut Fields, given: &Inputs) -> Images {
    let kube_manager = given.images.kube_manager.clone();
    let own = given.nested.cni.as_ref().and_then(|cni| cni.image.clone());
    let (field, cni) = match own.filter(|image| !image.is_empty()) {
        Some(image) => ("nested.cni.image", image),
        None => ("images.cni", given.images.cni.clone()),
    };
    fields.shape("images.kube_manager", &kube_manager, &shape::IMAGE);
    fields.shape(field, &cni, &shape::IMAGE);
    Images { kube_manager, cni }
}

fn mtu(fields: &mut Fields, given: &Inputs) -> u16 {
    let Some(mtu) = given.nested.cni.as_ref().and_then(|cni| cni.mtu) else { return MTU };
    match u16::try_from(mtu) {
        Ok(right) if MTUS.contains(&mtu) => right,
        _ => {
            let rule = "must be from 68 to 65535, and not above the MTU of the nodes' interface";
            fields.refuse("nested.cni.mtu", &mtu.to_string(), rule);
            MTU
        }
    }
}

fn keystone(fields: &mut Fields, given: &Inputs) -> u16 {
    let Some(keystone) = &given.keystone else { return 0 };
    let names = [
        ("keystone.domain", &keystone.domain),
        ("keystone.user", &keystone.user),
        ("keystone.project", &keystone.project),
    ];
    for (field, value) in names {
        fields.shape(field, value, &shape::PLAIN);
    }
    fields.shape("keystone.host", &keystone.host, &shape::HOST);
    secret_key(fields, "keystone.password", &keystone.password);
    if let Some(escaped) = &keystone.escaped_password {
        secret_key(fields, "keystone.escaped_password", escaped);
    }
    fields.port("keystone.port", Some(keystone.port), 5000)
}

fn secret_key(fields: &mut Fields, field: &str, given: &SecretKey) {
    fields.shape(&format!("{field}.secret"), &given.secret, &shape::NAME);
    fields.shape(&format!("{field}.key"), &given.key, &shape::SECRET_KEY);
}

/// What the objects are called, and where their pods are.
fn objects(fields: &mut Fields, given: &Inputs) {
    fields.shape("namespace", &given.namespace, &shape::LABEL);
    fields.shape("names_prefix", &given.names_prefix, &shape::PREFIX);
    fields.optional("managed_by", given.managed_by.as_deref(), &shape::LABEL_VALUE);
    fields.optional("secrets_digest", given.secrets_digest.as_deref(), &shape::DIGEST);
    for (key, value) in &given.node_selector {
        fields.shape("node_selector", key, &shape::LABEL_KEY);
        let value = Some(value.as_str()).filter(|value| !value.is_empty());
        fields.optional(&format!("node_selector[{key:?}]"), value, &shape::LABEL_VALUE);
    }
    for alias in &given.host_aliases {
        fields.shape("host_aliases.ip", &alias.ip, &shape::ADDRESS);
        fields.list("host_aliases.names", &alias.names, &shape::NAME);
    }
}

/// What kube-manager and the CNI say of this cluster.
fn cluster(fields: &mut Fields, given: &Inputs) {
    fields.shape("nested.clusterName", &given.nested.cluster_name, &shape::LABEL);
    fields.shape("api_server.host", &given.api_server.host, &shape::HOST);
    fields.list("subnets.pod", &given.subnets.pod, &shape::SUBNET);
    fields.list("subnets.service", &given.subnets.service, &shape::SUBNET);
    if !given.subnets.ip_fabric.is_empty() {
        fields.list("subnets.ip_fabric", &given.subnets.ip_fabric, &shape::SUBNET);
    }
    fields.optional("parent_interface", given.parent_interface.as_deref(), &shape::INTERFACE);
    if let Some(pool) = &given.floating_ip_pool {
        let parts = [
            ("floating_ip_pool.domain", &pool.domain),
            ("floating_ip_pool.project", &pool.project),
            ("floating_ip_pool.network", &pool.network),
            ("floating_ip_pool.name", &pool.name),
        ];
        for (field, value) in parts {
            fields.shape(field, value, &shape::PLAIN);
        }
    }
}

fn secrets(fields: &mut Fields, given: &Inputs, services: &Services) {
    let underlay = &given.nested.underlay;
    let authority = underlay.ca_secret_name.as_deref();
    let certificate = given.client_certificate_secret.as_deref();
    let bus = underlay.rabbitmq_secret_name.as_deref();
    let names = [
        ("nested.underlay.caSecretName", authority),
        ("nested.underlay.rabbitmqSecretName", bus),
        ("client_certificate_secret", certificate),
        ("registry_secret", given.registry_secret.as_deref()),
    ];
    for (field, name) in names {
        fields.optional(field, name, &shape::NAME);
    }
    if let Token::InSecret(name) = &given.token {
        fields.shape("token", name, &shape::NAME);
    }
    if let Some(escaped) = &given.escaped_rabbitmq_password {
        secret_key(fields, "escaped_rabbitmq_password", escaped);
    }
    let Services { config, analytics, config_database, rabbitmq, .. } = services;
    let is_tls = |one: &&Service| one.transport == Transport::Tls;
    let any_tls = [config, analytics, config_database, rabbitmq].iter().any(is_tls);
    if any_tls && authority.is_none() {
        let rule = "must name the Secret with the authorities of the underlay, for a service has tls: true";
        fields.refuse("nested.underlay.caSecretName", "", rule);
    }
    if is_tls(&analytics) && certificate.is_none() {
        let rule = "must name a Secret with tls.crt and tls.key: kube-manager reaches collectors with \
                    TLS by a certificate of its own only";
        fields.refuse("client_certificate_secret", "", rule);
    }
}

impl Inputs {
    /// Whether Keystone's certificate is checked by the authorities of the underlay.
    pub(crate) fn checks_keystone(&self) -> bool {
        let is_https = |one: &crate::inputs::Keystone| one.protocol == Protocol::Https;
        self.keystone.as_ref().is_some_and(is_https)
            && self.nested.underlay.ca_secret_name.is_some()
    }
}
