//! Kubemanager: Kubernetes seen from OpenSDN. Spec, status and the rules of one object. Whether the
//! networks overlap with those of the cluster needs the cluster and is a policy.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::nested::Nested;
use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What kube-manager shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Kubemanager",
        plural = "kubemanagers",
        shortname = "tfkm",
        namespaced,
        status = "KubemanagerStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Kubemanager turns what Kubernetes wants (pods, services, network policies) into OpenSDN configuration: one pod on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct KubemanagerSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only Kubemanager has.
    pub service_configuration: KubemanagerConfiguration,
}

/// The settings of kube-manager.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct KubemanagerConfiguration {
    /// The image of container kubemanager.
    pub containers: Option<Vec<Container>>,
    /// kubernetes (default), openshift, openstack, vcenter or none.
    pub cloud_orchestrator: Option<String>,
    /// IPv4 networks, separated by spaces, for pods whose traffic uses the fabric directly. Default
    /// 10.64.0.0/12.
    pub ip_fabric_subnets: Option<String>,
    /// Whether all pods use the fabric directly. Default false.
    pub ip_fabric_forwarding: Option<bool>,
    /// Whether pods reach the fabric through the address of their node. Default true.
    pub ip_fabric_snat: Option<bool>,
    /// Whether Services may lead to pods on the host network. Default false.
    pub host_network_service: Option<bool>,
    /// Pool of floating addresses for Ingress and LoadBalancer, as a dict with project, domain,
    /// name and network, or {} for none. Default: project `<cluster>-default`, network __public__.
    #[serde(rename = "publicFIPPool")]
    pub public_fip_pool: Option<String>,
    /// No effect in tf-operator: taken from the cluster.
    #[serde(rename = "kubernetesAPIServer")]
    pub kubernetes_api_server: Option<String>,
    /// No effect in tf-operator: always 8080.
    #[serde(rename = "kubernetesAPIPort")]
    pub kubernetes_api_port: Option<i64>,
    /// No effect in tf-operator: taken from the cluster.
    #[serde(rename = "kubernetesAPISSLPort")]
    pub kubernetes_apissl_port: Option<i64>,
    /// No effect in tf-operator: taken from the cluster.
    pub pod_subnet: Option<String>,
    /// No effect in tf-operator: taken from the cluster.
    pub service_subnet: Option<String>,
    /// No effect in tf-operator: the token of the service account is used.
    pub kubernetes_token_file: Option<String>,
    /// Nested mode: the nodes are virtual machines of a cloud whose OpenSDN is used. Not in
    /// tf-operator. Within a Manager it wins over the Manager's.
    pub nested: Option<Nested>,
}

/// What became of kube-manager.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KubemanagerStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
}

/// kube-manager splits each at white space, splits what it gets at the slash for an IPAM, and ends with an error on
/// anything else (tf-controller, src/container/kube-manager/kube_manager/common/args.py:192-197, vnc/vnc_kubernetes.py:498-546).
/// A line break within one would end the value in the file. The other two tf-operator does not read, and our operator
/// separates with spaces what commas do.
#[cfg(feature = "kube")]
const NETWORKS: [&str; 3] = ["ipFabricSubnets", "podSubnet", "serviceSubnet"];
#[cfg(feature = "kube")]
const OF_NETWORKS: &str = "self.trim().replace('\\t', ' ').split(' ').all(subnet, subnet == '' || (isCIDR(subnet) && \
     cidr(subnet).ip().family() == 4))";
#[cfg(feature = "kube")]
const OF_NETWORKS_TEXT: &str =
    "must be IPv4 networks separated by spaces, without commas, such as 10.64.0.0/12";

#[cfg(feature = "kube")]
const OF_ANY_FAMILY: &str = "self.trim().replace('\\t', ' ').replace(',', ' ').split(' ').all(subnet, subnet == '' || isCIDR(subnet))";
#[cfg(feature = "kube")]
const OF_ANY_FAMILY_TEXT: &str =
    "must be networks separated by spaces or commas, such as 10.32.0.0/12";

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .ports("OSDN1519", &["kubernetesAPIPort", "kubernetesAPISSLPort"])
        .longest(&["cloudOrchestrator"], 64)
        .longest(&NETWORKS, crate::schema::TEXT)
        .field("OSDN1702", "ipFabricSubnets", OF_NETWORKS, OF_NETWORKS_TEXT)
        .field("OSDN1702", "podSubnet", OF_ANY_FAMILY, OF_ANY_FAMILY_TEXT)
        .field("OSDN1702", "serviceSubnet", OF_ANY_FAMILY, OF_ANY_FAMILY_TEXT)
        .longest(&["publicFIPPool"], crate::schema::TEXT)
        .field(
            "OSDN1704",
            "publicFIPPool",
            "self.trim() in ['', '{}'] || (self.trim().startsWith('{') && \
             self.trim().endsWith('}') && ['project', 'domain', 'name', 'network'].all(key, \
             self.matches('[\"\\\']' + key + '[\"\\\'] *:')))",
            "must be a dict with the keys project, domain, name and network, such as \
             {'domain': 'default-domain', 'project': 'k8s-default', 'network': '__public__', \
             'name': '__fip_pool_public__'}, or {} for none",
        );
}
