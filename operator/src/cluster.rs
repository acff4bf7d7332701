//! What the cluster says of itself (pure): where its API servers are, its name and its networks. It is read from
//! what those have left who made it: kubeadm, OpenShift's installer, the API servers themselves.
//!
//! Later sources win, as in tf-operator (`pkg/apis/tf/v1alpha1/cluster_info.go:217`): defaults, kubeadm, OpenShift. Different
//! here: API servers are all that there are and not one at random, none has a name that no server resolves, and the
//! domain of names is `cluster.local` unless another is said.

use std::net::Ipv4Addr;

use kube::api::DynamicObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cache::Cache;
use crate::kind::{Kind, Source};

const POD_SUBNET: &str = "10.32.0.0/12";
const SERVICE_SUBNET: &str = "10.96.0.0/12";
/// That kubeadm and OpenShift give an API server.
const PORT: u16 = 6443;

/// What is known of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The address that leads to any of its API servers.
    pub endpoint: Option<ApiServer>,
    /// Its API servers, in order.
    pub api_servers: Vec<ApiServer>,
    /// The IPv4 networks of pods.
    pub pod_subnets: Vec<String>,
    /// The IPv4 networks of Services.
    pub service_subnets: Vec<String>,
    /// The domain of the names of Services.
    pub dns_domain: String,
    /// Whether OpenShift's installer has made it.
    pub is_openshift: bool,
    /// What is there and cannot be read: where and why.
    pub unreadable: Option<String>,
}

/// An API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct ApiServer {
    /// Its name or IPv4 address.
    pub host: String,
    /// Its port for TLS.
    pub port: u16,
}

impl ApiServer {
    /// Of `host` or `host:port`; no IPv6, which daemons of OpenSDN do not speak with an API server.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)?),
            None => (text, PORT),
        };
        let is_host = |host: &str| {
            host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        (!host.is_empty() && is_host(host)).then(|| Self { host: host.to_owned(), port })
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            name: "k8s".to_owned(),
            endpoint: None,
            api_servers: Vec::new(),
            pod_subnets: vec![POD_SUBNET.to_owned()],
            service_subnets: vec![SERVICE_SUBNET.to_owned()],
            dns_domain: "cluster.local".to_owned(),
            is_openshift: false,
            unreadable: None,
        }
    }
}

impl Cluster {
    /// By what the caches have.
    #[must_use]
    pub fn read(cache: &Cache) -> Self {
        let mut cluster = Self::default();
        let get = |source: Source| cache.get(Kind::Fact(source), source.namespace(), source.name());
        if let Some(slice) = get(Source::ApiServers) {
            cluster.api_servers = api_servers(&slice);
        }
        if let Some(cidr) = get(Source::ServiceCidr) {
            let cidrs = list(&cidr.data, "/spec/cidrs").filter_map(Value::as_str);
            set(&mut cluster.service_subnets, networks(cidrs));
        }
        if let Some(map) = get(Source::Kubeadm) {
            cluster.kubeadm(&map);
        }
        if let Some(map) = get(Source::OpenShift) {
            cluster.openshift(&map);
        }
        cluster
    }

    fn kubeadm(&mut self, map: &DynamicObject) {
        let Some(said) = self.parsed::<Kubeadm>(map, "ClusterConfiguration") else { return };
        self.endpoint = ApiServer::of(&said.control_plane_endpoint);
        replace(&mut self.name, said.cluster_name);
        replace(&mut self.dns_domain, said.networking.dns_domain);
        set(&mut self.pod_subnets, networks([said.networking.pod_subnet.as_str()]));
        set(&mut self.service_subnets, networks([said.networking.service_subnet.as_str()]));
    }

    fn openshift(&mut self, map: &DynamicObject) {
        let Some(said) = self.parsed::<Install>(map, "install-config") else { return };
        self.is_openshift = true;
        self.pod_subnets = vec!["10.128.0.0/14".to_owned()];
        self.service_subnets = vec!["172.30.0.0/16".to_owned()];
        replace(&mut self.name, said.metadata.name);
        replace(&mut self.dns_domain, said.base_domain);
        let pods = said.networking.cluster_network.iter().map(|one| one.cidr.as_str());
        set(&mut self.pod_subnets, networks(pods));
        let services = said.networking.service_network.iter().map(String::as_str);
        set(&mut self.service_subnets, networks(services));
    }

    /// The YAML below a key of a ConfigMap.
    fn parsed<Said: DeserializeOwned>(&mut self, map: &DynamicObject, key: &str) -> Option<Said> {
        let text = map.data.get("data")?.get(key)?.as_str()?;
        match serde_saphyr::from_str(text) {
            Ok(said) => Some(said),
            Err(error) => {
                let name = map.metadata.name.as_deref().unwrap_or_default();
                // The error shows a part of the text; its first line says what is wrong.
                let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                self.unreadable = Some(format!("{key} of ConfigMap kube-system/{name}: {why}"));
                None
            }
        }
    }
}

/// What is needed of kubeadm's ClusterConfiguration.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kubeadm {
    cluster_name: String,
    control_plane_endpoint: String,
    networking: KubeadmNetworking,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KubeadmNetworking {
    dns_domain: String,
    pod_subnet: String,
    service_subnet: String,
}

/// What is needed of OpenShift's install-config.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Install {
    base_domain: String,
    metadata: InstallMetadata,
    networking: InstallNetworking,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstallMetadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InstallNetworking {
    cluster_network: Vec<InstallNetwork>,
    service_network: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstallNetwork {
    cidr: String,
}

fn api_servers(slice: &DynamicObject) -> Vec<ApiServer> {
    let ports = || list(&slice.data, "/ports");
    let is_https = |port: &&Value| port.get("name").is_some_and(|name| name == "https");
    let port = ports().find(is_https).or_else(|| ports().next());
    let port =
        port.and_then(|port| port.get("port")?.as_u64()).and_then(|port| u16::try_from(port).ok());
    let addresses = list(&slice.data, "/endpoints").flat_map(|one| list(one, "/addresses"));
    let addresses = addresses.filter_map(|address| address.as_str()?.parse::<Ipv4Addr>().ok());
    let port = port.unwrap_or(PORT);
    let mut all: Vec<_> =
        addresses.map(|address| ApiServer { host: address.to_string(), port }).collect();
    all.sort();
    all.dedup();
    all
}

/// The IPv4 networks in texts that have commas or spaces between them: of a cluster with both families the others
/// are left out, which OpenSDN does not make.
#[must_use]
pub fn networks<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let is_network = |text: &&str| {
        text.split_once('/').is_some_and(|(address, length)| {
            address.parse::<Ipv4Addr>().is_ok()
                && length.parse::<u8>().is_ok_and(|length| length <= 32)
        })
    };
    texts.into_iter().flat_map(words).filter(is_network).map(str::to_owned).collect()
}

/// The words of a list with commas, white space or both between.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| one == ',' || one.is_whitespace()).filter(|one| !one.is_empty())
}

fn set(known: &mut Vec<String>, said: Vec<String>) {
    if !said.is_empty() {
        *known = said;
    }
}

fn replace(known: &mut String, said: String) {
    if !said.is_empty() {
        *known = said;
    }
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::watch::Event;
    use serde_json::json;

    use super::*;
    use crate::cache::Feed;

    fn cluster(documents: &[Value]) -> Cluster {
        let cache = Cache::default();
        for document in documents {
            let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
            let (kind, name) = (text("/kind").unwrap(), text("/metadata/name").unwrap());
            let namespace = text("/metadata/namespace").unwrap_or_default();
            let source = Source::of(kind, namespace, name).unwrap();
            let mut feed = Feed::new(Kind::Fact(source), namespace);
            feed.take(&cache, Event::Apply(document.clone()));
        }
        Cluster::read(&cache)
    }

    fn slice(addresses: &[&str], port: u16) -> Value {
        let endpoints: Vec<_> = addresses.iter().map(|one| json!({"addresses": [one]})).collect();
        json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": {"name": "kubernetes",
            "namespace": "default"}, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}]})
    }

    fn map(name: &str, key: &str, text: &str) -> Value {
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "kube-system"},
            "data": {key: text}})
    }

    fn kubeadm(text: &str) -> Value {
        map("kubeadm-config", "ClusterConfiguration", text)
    }

    fn server(host: &str, port: u16) -> ApiServer {
        ApiServer { host: host.to_owned(), port }
    }

    #[test]
    fn without_any_source_it_is_the_defaults_and_no_api_server() {
        let cluster = cluster(&[]);
        assert_eq!((cluster.name.as_str(), cluster.api_servers.len()), ("k8s", 0));
        assert_eq!(cluster.pod_subnets, ["10.32.0.0/12"]);
        assert_eq!(cluster.service_subnets, ["10.96.0.0/12"]);
    }

    #[test]
    fn all_api_servers_are_known_in_order_and_none_of_ipv6() {
        let all =
            cluster(&[slice(&["192.0.2.12", "192.0.2.10", "192.0.2.12", "2001:db8::1"], 443)]);
        assert_eq!(all.api_servers, [server("192.0.2.10", 443), server("192.0.2.12", 443)]);
        assert_eq!(all.endpoint, None);
    }

    #[test]
    fn kubeadm_says_name_endpoint_and_networks_of_which_ipv4_counts() {
        let said = kubeadm(
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nclusterName: east\n\
             controlPlaneEndpoint: api.example.com:8443\nnetworking:\n  dnsDomain: east.local\n  \
             podSubnet: fd00:1::/56,10.244.0.0/16\n  serviceSubnet: 10.96.0.0/16\n",
        );
        let cluster = cluster(&[said, slice(&["192.0.2.10"], 6443)]);
        assert_eq!((cluster.name.as_str(), cluster.dns_domain.as_str()), ("east", "east.local"));
        assert_eq!(cluster.endpoint, Some(server("api.example.com", 8443)));
        assert_eq!(cluster.pod_subnets, ["10.244.0.0/16"]);
        assert_eq!(cluster.service_subnets, ["10.96.0.0/16"]);
        assert!(!cluster.is_openshift);
    }

    #[test]
    fn what_kubeadm_leaves_out_another_says_or_the_default_does() {
        let cidr = json!({"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["fd00::/108", "10.43.0.0/16"]}});
        let said = kubeadm("clusterName: kubernetes\ncontrolPlaneEndpoint: ''\n");
        let cluster = cluster(&[said, cidr]);
        assert_eq!((cluster.name.as_str(), &cluster.endpoint), ("kubernetes", &None));
        assert_eq!(cluster.pod_subnets, ["10.32.0.0/12"]);
        assert_eq!(cluster.service_subnets, ["10.43.0.0/16"]);
    }

    #[test]
    fn openshift_has_its_own_defaults() {
        let install = |text: &str| map("cluster-config-v1", "install-config", text);
        let bare = cluster(&[install("metadata: {name: shift}\n")]);
        assert_eq!(bare.pod_subnets, ["10.128.0.0/14"]);
        assert_eq!(bare.service_subnets, ["172.30.0.0/16"]);
        assert_eq!((bare.name.as_str(), bare.is_openshift), ("shift", true));
        let full = cluster(&[install(
            "baseDomain: example.com\nmetadata: {name: shift}\nnetworking:\n  clusterNetwork:\n  - {cidr: 10.1.0.0/16, \
             hostPrefix: 23}\n  - cidr: 10.2.0.0/16\n  serviceNetwork: [172.16.0.0/16]\n",
        )]);
        assert_eq!(full.pod_subnets, ["10.1.0.0/16", "10.2.0.0/16"]);
        assert_eq!(full.service_subnets, ["172.16.0.0/16"]);
        assert_eq!(full.dns_domain, "example.com");
    }

    #[test]
    fn what_cannot_be_read_is_said_and_is_no_error() {
        let cluster = cluster(&[kubeadm("clusterName: [east\n"), slice(&["192.0.2.10"], 6443)]);
        let why = cluster.unreadable.unwrap();
        assert!(
            why.starts_with("ClusterConfiguration of ConfigMap kube-system/kubeadm-config: "),
            "{why}"
        );
        assert_eq!(cluster.api_servers, [server("192.0.2.10", 6443)]);
    }

    #[test]
    fn an_api_server_is_a_host_with_a_port_or_none() {
        assert_eq!(ApiServer::of("api.example.com"), Some(server("api.example.com", 6443)));
        assert_eq!(ApiServer::of("192.0.2.1:443"), Some(server("192.0.2.1", 443)));
        for none in
            ["", ":6443", "host:", "host:0", "host:70000", "[2001:db8::1]:6443", "a b", "$(id)"]
        {
            assert_eq!(ApiServer::of(none), None, "{none}");
        }
    }
}
