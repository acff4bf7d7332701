//! Config: the API that the whole network is configured by, and the daemons behind it. Spec,
//! status and the rules of one object. That link-local services are unique in the cluster is a
//! policy.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{AaaMode, Container, PodConfiguration};
use crate::status::CommonStatus;

/// What Config shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Config",
        plural = "configs",
        shortname = "tfcfg",
        namespaced,
        status = "ConfigStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Config is the Config API, schema transformer, service monitor and device manager: one pod on each node that matches the node selector.",
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only Config has.
    pub service_configuration: ConfigConfiguration,
}

/// The settings of Config.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct ConfigConfiguration {
    /// The images of containers api, devicemanager, dnsmasq, schematransformer, servicemonitor,
    /// nodemanager and provisioner, and of the init containers nodeinit, nodeinit-status-prefetch
    /// and nodeinit-tools-prefetch.
    pub containers: Option<Vec<Container>>,
    /// Port of the Config API. Default 8082; tf-operator works with no other.
    pub api_port: Option<i64>,
    /// Port of the API's administration, on 127.0.0.1. Default 8095.
    pub api_admin_port: Option<i64>,
    /// Introspection of the API. Default 8084.
    pub api_introspect_port: Option<i64>,
    /// Processes of the Config API on each node. Default 1; more run under uwsgi, the second on ports
    /// 10000 + apiIntrospectPort and 20000 + apiAdminPort, each further one on the ports after these.
    pub api_worker_count: Option<i64>,
    /// Introspection of the schema transformer. Default 8087.
    pub schema_introspect_port: Option<i64>,
    /// Introspection of the service monitor. Default 8088.
    pub svc_monitor_introspect_port: Option<i64>,
    /// Introspection of the device manager. Default 8096.
    pub device_manager_introspect_port: Option<i64>,
    /// What the API checks about a request: no-auth, rbac or cloud-admin; the last two check nothing
    /// without authMode keystone. Default rbac with keystone, else no-auth.
    pub aaa_mode: Option<AaaMode>,
    /// Address under which devices reach the device manager, the same on all replicas. Default: the
    /// address of each pod.
    #[serde(rename = "fabricMgmtIP")]
    pub fabric_mgmt_ip: Option<String>,
    /// One link-local service, usually the metadata service of an underlying OpenStack.
    pub linklocal_service_config: Option<LinklocalServiceConfig>,
    /// More link-local services of the same shape. tf-operator drops this field; objects of kind
    /// LinkLocalService do the same.
    pub linklocal_services: Option<Vec<LinklocalServiceConfig>>,
    /// Whether devices are served by another TFTP server. Default false.
    #[serde(rename = "useExternalTFTP")]
    pub use_external_tftp: Option<bool>,
    /// Whether all control nodes peer with each other by themselves. Default true.
    pub bgp_auto_mesh: Option<bool>,
    /// Whether AS numbers above 65535 may be used. Default false.
    #[serde(rename = "bgpEnable4Byte")]
    pub bgp_enable_4byte: Option<bool>,
    /// AS number of the whole network: 1 to 65535, or up to 4294967295 with bgpEnable4Byte. Default
    /// 64512.
    #[serde(rename = "globalASNNumber")]
    pub global_asn_number: Option<i64>,
}

/// A service of the fabric that workloads reach under a link-local address.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = linklocal_constraints))]
#[serde(rename_all = "camelCase")]
pub struct LinklocalServiceConfig {
    /// IPv4 address or name of the service in the fabric. Required.
    pub ip_fabric_service_host: Option<String>,
    /// Port of the service in the fabric. Default 8775.
    pub ip_fabric_service_port: Option<i64>,
    /// Name of the link-local service. Default metadata, a name that vrouters serve on their own:
    /// choose another unless you mean the metadata service.
    pub name: Option<String>,
    /// Address under which workloads reach it, an IPv4 address, normally in 169.254.0.0/16; with the
    /// name metadata6 it may be an IPv6 address. Default 169.254.169.254.
    pub ip: Option<String>,
    /// Port under which workloads reach it. Default 80.
    pub port: Option<i64>,
}

/// What became of Config.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Cluster address of the Config API's Service.
    pub endpoint: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    const WORKERS: &str = "OSDN1603";
    crate::pod::aaa_mode(schema);
    let _ = crate::schema::Fields::of(schema)
        .most_items(&["linklocalServices"], 256)
        .ports(
            "OSDN1519",
            &[
                "apiPort",
                "apiAdminPort",
                "apiIntrospectPort",
                "schemaIntrospectPort",
                "svcMonitorIntrospectPort",
                "deviceManagerIntrospectPort",
            ],
        )
        .at_least("OSDN1602", &["apiWorkerCount"], 1, "1 or more, at most the node's cores")
        // The first worker has the port itself, the second 10000 more (tf-operator,
        // pkg/apis/tf/v1alpha1/config_types.go:190-193).
        .rule_at(
            "apiWorkerCount",
            WORKERS,
            "self.?apiWorkerCount.orValue(1) <= 1 || \
             (9998 + self.?apiIntrospectPort.orValue(8084) + self.apiWorkerCount <= 65535 && \
             19998 + self.?apiAdminPort.orValue(8095) + self.apiWorkerCount <= 65535)",
            "with apiWorkerCount n, the ports 9998 + apiIntrospectPort (default 8084) + n and \
             19998 + apiAdminPort (default 8095) + n must not be above 65535: lower a port or \
             the count",
        )
        .longest(&["fabricMgmtIP"], 64)
        .field("OSDN1605", "fabricMgmtIP", "self == '' || isIP(self)", "must be an IP address")
        .set("globalASNNumber", "minimum", serde_json::json!(1))
        .set("globalASNNumber", "maximum", serde_json::json!(4_294_967_295_i64))
        .rule_at(
            "globalASNNumber",
            "OSDN1606",
            "!has(self.globalASNNumber) || \
             (self.globalASNNumber >= 1 && self.globalASNNumber <= 4294967295 && \
             (self.globalASNNumber <= 65535 || self.?bgpEnable4Byte.orValue(false)))",
            "globalASNNumber must be 1 to 65535, or up to 4294967295 with bgpEnable4Byte: true",
        );
}

#[cfg(feature = "kube")]
fn linklocal_constraints(schema: &mut schemars::Schema) {
    const CODE: &str = "OSDN1604";
    const LABEL: &str = "[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?";
    let _ = crate::schema::Fields::of(schema)
        .longest(&["ipFabricServiceHost"], crate::schema::HOST)
        .field(
            CODE,
            "ipFabricServiceHost",
            &format!(
                "self == '' || (isIP(self) ? ip(self).family() == 4 : \
                 self.matches(r'^{LABEL}([.]{LABEL})*[.]?$') && !self.matches('^[0-9.]+$'))"
            ),
            "must be an IPv4 address or a DNS name, without port or scheme",
        )
        .longest(&["ip"], 64)
        .rule_at(
            "ip",
            CODE,
            "!has(self.ip) || self.ip == '' || (isIP(self.ip) && (ip(self.ip).family() == 4 || \
             (has(self.name) && self.name == 'metadata6')))",
            "ip must be an IPv4 address, normally in 169.254.0.0/16 (IPv6 only with the name \
             metadata6)",
        )
        .ports(CODE, &["ipFabricServicePort", "port"])
        .matches(
            CODE,
            &["name"],
            &format!("^{LABEL}([.]{LABEL})*$"),
            crate::schema::HOST,
            "a DNS name, such as metadata or nova_api.example.com",
        );
}
