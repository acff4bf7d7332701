//! Manager: the whole cluster in one object. Each service here becomes an object of its own kind.
//! Rules over several services are here where one Manager is enough to judge them; rules about a
//! single service are with its kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::analytics::AnalyticsSpec;
use crate::analytics_alarm::AnalyticsAlarmSpec;
use crate::analytics_snmp::AnalyticsSnmpSpec;
use crate::cassandra::CassandraSpec;
use crate::config::ConfigSpec;
use crate::control::ControlSpec;
use crate::kubemanager::KubemanagerSpec;
use crate::nested::Nested;
use crate::pod::{AuthParameters, LogLevel, Toleration};
use crate::query_engine::QueryEngineSpec;
use crate::rabbitmq::RabbitmqSpec;
use crate::redis::RedisSpec;
use crate::status::{Condition, IntrospectStatus};
use crate::vrouter::VrouterSpec;
use crate::webui::WebuiSpec;
use crate::zookeeper::ZookeeperSpec;

/// What the cluster shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Manager",
        plural = "managers",
        shortname = "tfmgr",
        namespaced,
        status = "ManagerStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Manager describes a whole OpenSDN cluster; the operator makes one object of each service in it.",
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    ),
    schemars(transform = constraints::manager)
)]
#[serde(rename_all = "camelCase")]
pub struct ManagerSpec {
    /// What all services share. A service's own value comes first, except for authParameters,
    /// certKeyLength and certSigner.
    pub common_configuration: Option<ManagerConfiguration>,
    /// The services of the cluster. Taking one away deletes it.
    pub services: Option<Services>,
    /// Nested mode: the nodes are virtual machines of a cloud whose OpenSDN is used, so that
    /// kubemanager is the only service here. Not in tf-operator.
    pub nested: Option<Nested>,
}

/// What all services share.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::common)
)]
#[serde(rename_all = "camelCase")]
pub struct ManagerConfiguration {
    /// Labels of the nodes that services run on: one pod of each on every node. Default: the
    /// control plane's.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Names of Secrets with the credentials of image registries.
    pub image_pull_secrets: Option<Vec<String>>,
    /// Taints that the pods tolerate. A list replaces the default, which is to tolerate all.
    pub tolerations: Option<Vec<Toleration>>,
    /// Who may use the OpenSDN API, and how that is checked.
    pub auth_parameters: Option<AuthParameters>,
    /// How much the daemons log. tf-operator's default is debug, ours info.
    pub log_level: Option<LogLevel>,
    /// Operating system of the nodes. With ubuntu, in lower case, the kernel module is built on the
    /// node; whatever else stands here (rhel, centos, openshift) counts as rhel.
    pub distribution: Option<String>,
    /// Bits of the RSA keys of all certificates. tf-operator: 0 and unset mean 4096. Ours has RSA with images up to
    /// R24.1, of 2048, 3072 or 4096 bits; 0 and unset mean 2048.
    pub cert_key_length: Option<i64>,
    /// Who signs certificates: SelfSignedCA (default), External (files on the nodes), or the name
    /// of a Kubernetes signer, such as example.com/opensdn.
    pub cert_signer: Option<String>,
}

/// The services of a cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::services)
)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    /// The collector and its API.
    pub analytics: Option<Service<AnalyticsSpec>>,
    /// The alarm generator.
    pub analytics_alarm: Option<Service<AnalyticsAlarmSpec>>,
    /// The SNMP collector.
    pub analytics_snmp: Option<Service<AnalyticsSnmpSpec>>,
    /// The databases: configdb1, and optionally analyticsdb1.
    pub cassandras: Option<Vec<Service<CassandraSpec>>>,
    /// The Config API and its daemons.
    pub config: Option<Service<ConfigSpec>>,
    /// The groups of control nodes.
    pub controls: Option<Vec<Service<ControlSpec>>>,
    /// Kubernetes seen from OpenSDN.
    pub kubemanager: Option<Service<KubemanagerSpec>>,
    /// Queries over the analytics database.
    pub queryengine: Option<Service<QueryEngineSpec>>,
    /// The message bus.
    pub rabbitmq: Option<Service<RabbitmqSpec>>,
    /// The cache: a list of one.
    pub redis: Option<Vec<Service<RedisSpec>>>,
    /// The groups of vrouters.
    pub vrouters: Option<Vec<Service<VrouterSpec>>>,
    /// The web interface.
    pub webui: Option<Service<WebuiSpec>>,
    /// Coordination of the config services.
    pub zookeeper: Option<Service<ZookeeperSpec>>,
}

/// A service within a Manager: name and labels of the object that is made of it, and its spec.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Service<S> {
    /// Name and labels of the object.
    pub metadata: Option<ServiceMetadata>,
    /// The spec of the object.
    pub spec: Option<S>,
}

/// Name and labels of the object that is made of a service.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::metadata)
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMetadata {
    /// Name of the object. Unique among the services of its kind.
    pub name: Option<String>,
    /// Labels of the object.
    pub labels: Option<BTreeMap<String, String>>,
}

/// What became of the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = crate::status::conditions)
)]
#[serde(rename_all = "camelCase")]
pub struct ManagerStatus {
    /// State of Analytics.
    pub analytics: Option<ServiceStatus>,
    /// State of AnalyticsAlarm.
    pub analytics_alarm: Option<ServiceStatus>,
    /// State of AnalyticsSnmp.
    pub analytics_snmp: Option<ServiceStatus>,
    /// State of the databases.
    pub cassandras: Option<Vec<ServiceStatus>>,
    /// State of Config.
    pub config: Option<ServiceStatus>,
    /// State of the groups of control nodes.
    pub controls: Option<Vec<ServiceStatus>>,
    /// State of kube-manager.
    pub kubemanager: Option<ServiceStatus>,
    /// State of QueryEngine.
    pub queryengine: Option<ServiceStatus>,
    /// State of RabbitMQ.
    pub rabbitmq: Option<ServiceStatus>,
    /// State of Redis.
    pub redis: Option<Vec<ServiceStatus>>,
    /// State of the groups of vrouters.
    pub vrouters: Option<Vec<ServiceStatus>>,
    /// State of the web UI.
    pub webui: Option<ServiceStatus>,
    /// State of ZooKeeper.
    pub zookeeper: Option<ServiceStatus>,
    /// How each service is, and what it waits for. Not in tf-operator.
    pub services: Option<Vec<ServiceState>>,
    /// The certificate of the services that expires first. Not in tf-operator.
    pub first_certificate_to_expire: Option<FirstExpiry>,
    /// Never set.
    pub crd_status: Option<Vec<CrdStatus>>,
    /// Stage of tf-operator's upgrade: -1 none, 0 requested, n stage n.
    pub ziu_state: Option<i32>,
    /// The state in detail; see the condition Ready first.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}

/// State of one service.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Name of the object.
    pub name: Option<String>,
    /// Whether the service can do its work.
    pub active: Option<bool>,
    /// Never set.
    pub created: Option<bool>,
}

/// How a service is. Not in tf-operator.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceState {
    /// Kind of its object.
    pub kind: String,
    /// Name of its object.
    pub name: String,
    /// Whether it is as its object says.
    pub ready: Option<bool>,
    /// One word that says why, for programs.
    pub reason: Option<String>,
    /// How it is, what it waits for, or what to do.
    pub message: Option<String>,
    /// The nodes on which it runs.
    pub nodes: Option<Vec<String>>,
    /// The tags, or digests, of its images.
    pub versions: Option<Vec<String>>,
    /// What its daemons say of themselves.
    pub introspect: Option<IntrospectStatus>,
    /// When the first of its certificates expires, RFC 3339.
    pub certificates_expire: Option<String>,
}

/// The certificate of a service that expires before all others.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FirstExpiry {
    /// When, RFC 3339. It is renewed long before; one that is near says that renewal fails.
    pub time: Option<String>,
    /// Kind of the service that has it.
    pub kind: Option<String>,
    /// Name of the service.
    pub name: Option<String>,
}

/// State of a CustomResourceDefinition. Never set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CrdStatus {
    /// Name of the definition.
    pub name: Option<String>,
    /// Whether it is active.
    pub active: Option<bool>,
}

#[cfg(feature = "kube")]
mod constraints {
    use schemars::Schema;

    use crate::definition::{longest_name, name_text};
    use crate::schema::{Fields, HOST};

    /// Services of which there is one, with their kinds.
    const SINGLE: &[(&str, &str)] = &[
        ("analytics", "Analytics"),
        ("analyticsAlarm", "AnalyticsAlarm"),
        ("analyticsSnmp", "AnalyticsSnmp"),
        ("config", "Config"),
        ("kubemanager", "Kubemanager"),
        ("queryengine", "QueryEngine"),
        ("rabbitmq", "Rabbitmq"),
        ("webui", "Webui"),
        ("zookeeper", "Zookeeper"),
    ];
    /// Lists, with the kinds of their items and the most items.
    const LISTS: &[(&str, &str, u64)] = &[
        ("cassandras", "Cassandra", 32),
        ("controls", "Control", 32),
        ("redis", "Redis", 32),
        ("vrouters", "Vrouter", 64),
    ];

    pub(super) fn manager(schema: &mut Schema) {
        let _ = Fields::of(schema).rule(
            "OSDN1606",
            "!has(self.services) || !has(self.services.controls) || \
             self.?services.?config.?spec.?serviceConfiguration.?bgpEnable4Byte.orValue(false) || \
             self.services.controls.all(control, !has(control.spec) || \
             !has(control.spec.serviceConfiguration.asnNumber) || \
             control.spec.serviceConfiguration.asnNumber <= 65535)",
            "services.controls[].spec.serviceConfiguration.asnNumber above 65535 needs \
             services.config.spec.serviceConfiguration.bgpEnable4Byte: true",
        );
    }

    pub(super) fn common(schema: &mut Schema) {
        crate::pod::common(schema);
        let _ = Fields::of(schema).matches(
            "OSDN1901",
            &["certSigner"],
            "^(SelfSignedCA|External|[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[^ /]+)$",
            571,
            "SelfSignedCA, External, or the name of a Kubernetes signer such as \
                 example.com/opensdn",
        );
    }

    pub(super) fn services(schema: &mut Schema) {
        let mut fields = Fields::of(schema);
        for (name, kind) in SINGLE {
            let Some(longest) = longest_name(kind) else { continue };
            fields = fields.field(
                "OSDN1107",
                name,
                &format!("size(self.?metadata.?name.orValue('')) <= {longest}"),
                &name_text(longest),
            );
        }
        for (name, kind, items) in LISTS {
            let Some(longest) = longest_name(kind) else { continue };
            fields = fields
                .most_items(&[name], *items)
                .items(
                    "OSDN1107",
                    name,
                    &format!("size(self.?metadata.?name.orValue('')) <= {longest}"),
                    &format!("{name} {}", name_text(longest)),
                )
                .field(
                    "OSDN1106",
                    name,
                    "self.all(item, has(item.metadata) && has(item.metadata.name) && \
                     item.metadata.name != '')",
                    "needs metadata.name on each item",
                )
                .field(
                    "OSDN1106",
                    name,
                    "self.all(item, !has(item.metadata) || !has(item.metadata.name) || \
                     self.exists_one(other, has(other.metadata) && has(other.metadata.name) && \
                     other.metadata.name == item.metadata.name))",
                    "must have different names: two items with one metadata.name would be one \
                     object",
                );
        }
        let _ = fields;
    }

    pub(super) fn metadata(schema: &mut Schema) {
        let _ = Fields::of(schema).matches(
            "OSDN1106",
            &["name"],
            // Of the name a volume is made, NAME-KIND-volume, which may have no dots (tf-operator,
            // pkg/controller/control/control_controller.go:253 and the like).
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            HOST,
            "a DNS label: lower-case letters, digits and -, without dots",
        );
    }
}
