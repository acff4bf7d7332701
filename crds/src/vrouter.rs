//! Vrouter: the data plane of a group of nodes. Spec and status; the rules of one object are in
//! `vrouter/constraints.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::{Condition, IntrospectStatus, NodeInfo, TakenOver};
use crate::vrouter_profile::{Dpdk, Sriov};

#[cfg(feature = "kube")]
mod constraints;

enumeration! {
    /// How a packet of the overlay is wrapped.
    pub enum Encapsulation {
        /// In VXLAN.
        Vxlan = "VXLAN",
        /// In MPLS over UDP.
        MplsOverUdp = "MPLSoUDP",
        /// In MPLS over GRE.
        MplsOverGre = "MPLSoGRE",
    }
}

enumeration! {
    /// Who replaces the pods of a group.
    pub enum UpgradeType {
        /// Kubernetes, so many nodes at a time, the next when the ones before have been ready for 30 s.
        RollingUpdate = "RollingUpdate",
        /// A user deletes them, as with tf-operator.
        OnDelete = "OnDelete",
    }
}

/// What a group of vrouters shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Vrouter",
        plural = "vrouters",
        shortname = "tfvr",
        namespaced,
        status = "VrouterStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Vrouter is the data plane of a group of nodes: agent, kernel module or DPDK process, and CNI plug-in, on every node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(
            name = "On controllers",
            type_ = "boolean",
            json_path = ".status.activeOnControllers",
            priority = 1
        ),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct VrouterSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only the vrouter has.
    pub service_configuration: VrouterConfiguration,
}

/// The settings of a group of vrouters.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints::configuration))]
#[serde(rename_all = "camelCase")]
pub struct VrouterConfiguration {
    /// The images of containers vrouteragent, nodemanager and provisioner, with dpdk also of
    /// vrouteragentdpdk, and of the init containers vrouterkernelinit (vrouterkernelbuildinit with
    /// distribution ubuntu, vrouterkernelinitdpdk with dpdk), vroutercni, nodeinit,
    /// nodeinit-status-prefetch and nodeinit-tools-prefetch.
    pub containers: Option<Vec<Container>>,
    /// Names of VrouterProfiles in the same namespace whose settings this group uses; later ones
    /// win. tf-operator drops this field.
    pub profiles: Option<Vec<String>>,
    /// How the pods of this group are replaced when something of it changes. An Upgrade has a pace of its own.
    /// tf-operator drops this field.
    pub upgrade_strategy: Option<UpgradeStrategy>,
    /// Encapsulations of overlay traffic, the preferred one first. Default: what the network has.
    /// tf-operator drops this field.
    pub encapsulation_priorities: Option<Vec<Encapsulation>>,
    /// Run the data plane as a DPDK process, of the container vrouteragentdpdk. It needs huge pages
    /// and two cores. Unset: the kernel module. tf-operator drops this field.
    pub dpdk: Option<Dpdk>,
    /// Virtual functions of a network interface for workloads. tf-operator drops this field.
    pub sriov: Option<Sriov>,
    /// Name of the Control whose nodes the agents connect to. Must exist.
    pub control_instance: Option<String>,
    /// Interface of the node that carries the overlay; several, separated by commas, only with l3mhCidr.
    /// Default: that of the default route.
    pub physical_interface: Option<String>,
    /// Gateway of the overlay's network, or several for L3 multihoming, separated by commas. tf-operator takes one, within
    /// dataSubnet.
    pub vrouter_gateway: Option<String>,
    /// IPv4 network, such as 10.1.0.0/24, that the overlay uses. The agents take those addresses of
    /// the control nodes that lie in it. Default: all of them.
    pub data_subnet: Option<String>,
    /// IPv4 network of the loopback addresses for layer 3 multi-homing.
    pub l3mh_cidr: Option<String>,
    /// MTU of the pods' interfaces, at least 1280 for IPv6 and at most 50 less than that of the physical
    /// interface. Unset or 0: computed by the agent.
    #[serde(rename = "cniMTU")]
    pub cni_mtu: Option<i64>,
    /// Number of 2 MiB huge pages, not bytes. Either this or hugePages1G.
    #[serde(rename = "hugePages2M")]
    pub huge_pages_2m: Option<i64>,
    /// Number of 1 GiB huge pages, not bytes. Either this or hugePages2M.
    #[serde(rename = "hugePages1G")]
    pub huge_pages_1g: Option<i64>,
    /// More environment variables of the agent. They are written last, so they win over every
    /// field.
    pub env_variables_config: Option<BTreeMap<String, String>>,
    /// kubernetes (default), openshift, openstack, vcenter or none.
    pub cloud_orchestrator: Option<String>,
    /// Default kvm.
    pub hypervisor_type: Option<String>,
    /// Kernel driver that a DPDK interface is bound to.
    pub dpdk_uio_driver: Option<String>,
    /// Interfaces with virtual functions, separated by commas; SRIOV_VF in envVariablesConfig has a
    /// number for each.
    pub sriov_physical_interface: Option<String>,
    /// Physical networks that the interfaces lead to, separated by commas.
    pub sriov_physical_network: Option<String>,
    /// No effect in tf-operator; set SRIOV_VF in envVariablesConfig instead. Number of virtual
    /// functions.
    pub sriov_vf: Option<String>,
    /// File with the CA of the Config API. Default: the cluster's.
    pub config_api_server_ca_certfile: Option<String>,
    /// Whether the agent speaks TLS with the Config API, which accepts nothing else. Default true.
    pub config_api_ssl_enable: Option<bool>,
    /// Whether introspection of the agent uses TLS.
    pub introspect_ssl_enable: Option<bool>,
    /// Network of the pods. Default: taken from the cluster.
    pub kubernetes_pod_subnet: Option<String>,
    /// 1 (default): log to a file too.
    pub log_local: Option<i64>,
    /// Secret shared with the metadata service of an OpenStack.
    pub metadata_proxy_secret: Option<String>,
    /// Whether the metadata service is reached by TLS: true or false.
    pub metadata_ssl_enable: Option<String>,
    /// File with the CA of the metadata service.
    pub metadata_ssl_ca_certfile: Option<String>,
    /// File with the certificate for the metadata service.
    pub metadata_ssl_certfile: Option<String>,
    /// Type of the certificate, such as pem.
    pub metadata_ssl_cert_type: Option<String>,
    /// File with the key for the metadata service.
    pub metadata_ssl_keyfile: Option<String>,
    /// Whether the agent speaks TLS with the collector, which accepts nothing else. Default true.
    pub sandesh_ssl_enable: Option<bool>,
    /// File with the CA of the collector.
    pub sandesh_ca_certfile: Option<String>,
    /// File with the certificate for the collector.
    pub sandesh_certfile: Option<String>,
    /// File with the key for the collector.
    pub sandesh_keyfile: Option<String>,
    /// File with the certificate of the agent's own Sandesh server.
    pub sandesh_server_certfile: Option<String>,
    /// File with the key of the agent's own Sandesh server.
    pub sandesh_server_keyfile: Option<String>,
    /// File with the CA. Default: the cluster's.
    pub server_ca_certfile: Option<String>,
    /// File with the certificate of the node.
    pub server_certfile: Option<String>,
    /// File with the key of the node.
    pub server_keyfile: Option<String>,
    /// Whether TLS is used at all; every server requires it. Default true.
    pub ssl_enable: Option<bool>,
    /// Name of the subcluster that the vrouters are registered in. A Control, of this Kubernetes
    /// cluster or of another with the same Config API, makes it.
    pub subcluster: Option<String>,
    /// Whether the agent speaks TLS with the control nodes, which accept nothing else. Default
    /// true. tf-operator knows only the misspelt xmmpSslEnable.
    pub xmpp_ssl_enable: Option<bool>,
    /// Deprecated, misspelt: use xmppSslEnable, unless tf-operator shall read it too.
    pub xmmp_ssl_enable: Option<bool>,
    /// File with the CA of the control nodes.
    pub xmpp_server_ca_certfile: Option<String>,
    /// File with the certificate for the control nodes.
    pub xmpp_server_certfile: Option<String>,
    /// File with the key for the control nodes.
    pub xmpp_server_keyfile: Option<String>,
    /// No effect in tf-operator; set XMPP_SERVER_PORT in envVariablesConfig instead.
    pub xmpp_server_port: Option<String>,
    /// No effect in tf-operator; set AGENT_MODE in envVariablesConfig instead. No operator runs
    /// vrouters on DPDK so far.
    pub agent_mode: Option<String>,
    /// No effect in tf-operator; set COLLECTOR_PORT in envVariablesConfig instead.
    pub collector_port: Option<String>,
    /// No effect in tf-operator; set STATS_COLLECTOR_DESTINATION_PATH in envVariablesConfig
    /// instead.
    pub stats_collector_destination_path: Option<String>,
    /// No effect in tf-operator; set CONFIG_API_PORT in envVariablesConfig instead.
    pub config_api_port: Option<String>,
    /// No effect in tf-operator; set DNS_SERVER_PORT in envVariablesConfig instead.
    pub dns_server_port: Option<String>,
    /// Size of the hash table of source NAT. tf-operator knows only the misspelt
    /// fabricSntHashTableSize, and ignores it.
    pub fabric_snat_hash_table_size: Option<String>,
    /// Deprecated, misspelt: use fabricSnatHashTableSize. No effect in tf-operator; set
    /// FABRIC_SNAT_HASH_TABLE_SIZE in envVariablesConfig instead.
    pub fabric_snt_hash_table_size: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_ADMIN_PASSWORD in envVariablesConfig instead.
    pub keystone_auth_admin_password: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_ADMIN_PORT in envVariablesConfig instead.
    pub keystone_auth_admin_port: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_CA_CERTFILE in envVariablesConfig instead.
    pub keystone_auth_ca_certfile: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_CERTFILE in envVariablesConfig instead.
    pub keystone_auth_certfile: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_HOST in envVariablesConfig instead.
    pub keystone_auth_host: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_INSECURE in envVariablesConfig instead.
    pub keystone_auth_insecure: Option<bool>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_KEYFILE in envVariablesConfig instead.
    pub keystone_auth_keyfile: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_PROJECT_DOMAIN_NAME in envVariablesConfig
    /// instead.
    pub keystone_auth_project_domain_name: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_PROTO in envVariablesConfig instead.
    pub keystone_auth_proto: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_REGION_NAME in envVariablesConfig instead.
    pub keystone_auth_region_name: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_URL_TOKENS in envVariablesConfig instead.
    pub keystone_auth_url_tokens: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_URL_VERSION in envVariablesConfig instead.
    pub keystone_auth_url_version: Option<String>,
    /// No effect in tf-operator; set KEYSTONE_AUTH_USER_DOMAIN_NAME in envVariablesConfig instead.
    pub keystone_auth_user_domain_name: Option<String>,
    /// No effect in tf-operator; set K8S_TOKEN in envVariablesConfig instead.
    pub k8s_token: Option<String>,
    /// No effect in tf-operator; set K8S_TOKEN_FILE in envVariablesConfig instead.
    pub k8s_token_file: Option<String>,
    /// No effect in tf-operator; set KUBERNETES_API_PORT in envVariablesConfig instead.
    pub kubernetes_api_port: Option<String>,
    /// No effect in tf-operator; set KUBERNETES_API_SECURE_PORT in envVariablesConfig instead.
    pub kubernetes_api_secure_port: Option<String>,
    /// No effect in tf-operator; set LOG_DIR in envVariablesConfig instead.
    pub log_dir: Option<String>,
    /// No effect in tf-operator; set BARBICAN_TENANT_NAME in envVariablesConfig instead.
    pub barbican_tenant_name: Option<String>,
    /// No effect in tf-operator; set BARBICAN_PASSWORD in envVariablesConfig instead.
    pub barbican_password: Option<String>,
    /// No effect in tf-operator; set BARBICAN_USER in envVariablesConfig instead.
    pub barbican_user: Option<String>,
    /// No effect in tf-operator; set SSL_INSECURE in envVariablesConfig instead.
    pub ssl_insecure: Option<bool>,
    /// No effect in tf-operator; set TSN_AGENT_MODE in envVariablesConfig instead.
    pub tsn_agent_mode: Option<String>,
    /// No effect in tf-operator; set PRIORITY_BANDWIDTH in envVariablesConfig instead.
    pub priority_bandwidth: Option<String>,
    /// No effect in tf-operator; set PRIORITY_ID in envVariablesConfig instead.
    pub priority_id: Option<String>,
    /// No effect in tf-operator; set PRIORITY_SCHEDULING in envVariablesConfig instead.
    pub priority_scheduling: Option<String>,
    /// No effect in tf-operator; set PRIORITY_TAGGING in envVariablesConfig instead.
    pub priority_tagging: Option<bool>,
    /// No effect in tf-operator; set QOS_DEF_HW_QUEUE in envVariablesConfig instead.
    pub qos_def_hw_queue: Option<bool>,
    /// No effect in tf-operator; set QOS_LOGICAL_QUEUES in envVariablesConfig instead.
    pub qos_logical_queues: Option<String>,
    /// No effect in tf-operator; set QOS_QUEUE_ID in envVariablesConfig instead.
    pub qos_queue_id: Option<String>,
    /// No effect in tf-operator; set REQUIRED_KERNEL_VROUTER_ENCRYPTION in envVariablesConfig
    /// instead.
    pub required_kernel_vrouter_encryption: Option<String>,
    /// No effect in tf-operator; set SAMPLE_DESTINATION in envVariablesConfig instead.
    pub sample_destination: Option<String>,
    /// No effect in tf-operator; set SLO_DESTINATION in envVariablesConfig instead.
    pub slo_destination: Option<String>,
    /// No effect in tf-operator; set VROUTER_CRYPT_INTERFACE in envVariablesConfig instead.
    pub vrouter_crypt_interface: Option<String>,
    /// No effect in tf-operator; set VROUTER_DECRYPT_INTERFACE in envVariablesConfig instead.
    pub vrouter_decrypt_interface: Option<String>,
    /// No effect in tf-operator; set VROUTER_DECRYPT_KEY in envVariablesConfig instead.
    pub vrouter_decrypt_key: Option<String>,
    /// No effect in tf-operator; set VROUTER_ENCRYPTION in envVariablesConfig instead.
    pub vrouter_encryption: Option<bool>,
}

/// How the pods of a group of vrouters are replaced: the workloads of a node are cut off for some minutes with each.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints::upgrade_strategy))]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStrategy {
    /// RollingUpdate, which is the default, or OnDelete.
    #[serde(rename = "type")]
    pub type_: Option<UpgradeType>,
    /// Of RollingUpdate: of how many nodes the pods are replaced at a time. Default: 1.
    pub max_unavailable: Option<i64>,
}

/// What became of a group of vrouters.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = crate::status::conditions))]
#[serde(rename_all = "camelCase")]
pub struct VrouterStatus {
    /// The pods of the group by name.
    pub nodes: Option<BTreeMap<String, NodeInfo>>,
    /// Whether every agent is ready.
    pub active: Option<bool>,
    /// Whether every agent on a control plane node is ready.
    pub active_on_controllers: Option<bool>,
    /// State of each agent.
    pub agents: Option<Vec<AgentStatus>>,
    /// The state in detail; see the condition Ready first.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// What the agents say of themselves.
    pub introspect: Option<IntrospectStatus>,
    /// When the first certificate of the group expires, RFC 3339. They are renewed long before. Not in tf-operator.
    pub certificates_expire: Option<String>,
    /// The DaemonSet of tf-operator that stays as it is.
    pub taken_over: Option<TakenOver>,
}

/// State of the agent of one node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Name of the node.
    pub name: Option<String>,
    /// What the agent is doing.
    pub status: Option<AgentState>,
    /// Control nodes that the agent was given, separated by commas.
    pub control_nodes: Option<String>,
    /// Config nodes that the agent was given, separated by commas.
    pub config_nodes: Option<String>,
    /// Analytics nodes that the agent was given, separated by commas.
    pub analytics_nodes: Option<String>,
    /// Hash of the parameters that the agent was given.
    pub encrypted_params: Option<String>,
}

enumeration! {
    /// What an agent is doing.
    pub enum AgentState {
        /// Its pod is there, its configuration is not.
        Starting = "Starting",
        /// It is being given a new configuration.
        Updating = "Updating",
        /// It runs with the current configuration.
        Ready = "Ready",
        /// It runs an older image and waits for its pod to be replaced.
        Upgrading = "Upgrading",
    }
}
