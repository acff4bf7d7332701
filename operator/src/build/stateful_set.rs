//! The StatefulSet: a pod on each node of the component, on the network of the node. Names of volumes and
//! paths are those of tf-operator.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ConfigMapVolumeSource, Container, EnvVar, EnvVarSource, ExecAction,
    HostPathVolumeSource, LocalObjectReference, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, ObjectFieldSelector, PodAffinityTerm,
    PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements,
    SecretVolumeSource, SecurityContext, TCPSocketAction, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use serde_json::json;

use super::Owner;
use crate::component::{Check, Container as Described};
use crate::ensemble::record::ANNOTATION;
use crate::names::{CONFIGURATION, TRUST};
use crate::reconcile::fetch::CONTROL_PLANE;
use crate::reconcile::validate::Valid;

/// The group of OpenSDN's users in its images.
const GROUP: i64 = 1999;
const CONFIGURATION_FOLDER: &str = "/etc/contrailconfigmaps";
const CERTIFICATES_FOLDER: &str = "/etc/certificates";
const TRUST_FOLDER: &str = "/etc/ssl/certs/kubernetes";
const TRUST_VOLUME: &str = "ca-certs";
const LOGS: (&str, &str) = ("contrail-logs", "/var/log/contrail");
/// Volume, path, and whether it may be written.
const OF_EVERY_NODE: [(&str, &str, bool); 4] = [
    ("etc-hosts", "/etc/hosts", false),
    ("etc-resolv", "/etc/resolv.conf", false),
    ("etc-localtime", "/etc/localtime", false),
    ("var-crashes", "/var/crashes", true),
];

pub(super) fn build(owner: &Owner<'_>, configuration: &str) -> StatefulSet {
    let valid = owner.valid;
    let labels = valid.instance.labels();
    let mut metadata = owner.metadata(valid.instance.stateful_set());
    let record = valid.members.as_ref().map(|members| json!(members.record).to_string());
    metadata.annotations = record.map(|record| [(ANNOTATION.to_owned(), record)].into());
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            // Members do not wait for each other: one that cannot start keeps none of the others down.
            pod_management_policy: Some("Parallel".to_owned()),
            replicas: Some(valid.replicas_now()),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    annotations: Some(
                        [(CONFIGURATION.to_owned(), configuration.to_owned())].into(),
                    ),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(valid)),
            },
            update_strategy: Some(update_strategy(valid)),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// Of a service that counts its members the operator starts one after the other, after it has looked at the service.
fn update_strategy(valid: &Valid) -> StatefulSetUpdateStrategy {
    if valid.members.is_some() {
        let type_ = Some("OnDelete".to_owned());
        return StatefulSetUpdateStrategy { type_, ..StatefulSetUpdateStrategy::default() };
    }
    StatefulSetUpdateStrategy {
        type_: Some("RollingUpdate".to_owned()),
        rolling_update: Some(RollingUpdateStatefulSetStrategy {
            partition: Some(0),
            ..RollingUpdateStatefulSetStrategy::default()
        }),
    }
}

fn pod(valid: &Valid) -> PodSpec {
    let common = &valid.common;
    let selector = common.node_selector.clone().filter(|selector| !selector.is_empty());
    let secrets = common.image_pull_secrets.iter().flatten();
    let secrets: Vec<_> = secrets.map(|name| LocalObjectReference { name: name.clone() }).collect();
    PodSpec {
        affinity: Some(Affinity {
            node_affinity: selector.is_none().then(on_control_plane),
            pod_anti_affinity: Some(one_on_a_node(valid)),
            ..Affinity::default()
        }),
        automount_service_account_token: Some(false),
        containers: valid
            .description
            .containers
            .iter()
            .map(|container| self::container(valid, container))
            .collect(),
        dns_policy: Some("ClusterFirstWithHostNet".to_owned()),
        host_network: Some(true),
        image_pull_secrets: Some(secrets).filter(|secrets| !secrets.is_empty()),
        node_selector: selector,
        priority_class_name: Some("system-node-critical".to_owned()),
        security_context: Some(PodSecurityContext {
            fs_group: Some(GROUP),
            supplemental_groups: Some(vec![GROUP]),
            ..PodSecurityContext::default()
        }),
        service_account_name: Some(valid.instance.service_account()),
        tolerations: Some(tolerations(valid)),
        volumes: Some(volumes(valid)),
        ..PodSpec::default()
    }
}

/// By either label: what a selector cannot say.
fn on_control_plane() -> NodeAffinity {
    let term = |label: &str| NodeSelectorTerm {
        match_expressions: Some(vec![NodeSelectorRequirement {
            key: label.to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        }]),
        ..NodeSelectorTerm::default()
    };
    NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(NodeSelector {
            node_selector_terms: CONTROL_PLANE.iter().map(|label| term(label)).collect(),
        }),
        ..NodeAffinity::default()
    }
}

/// They have the ports of the node.
fn one_on_a_node(valid: &Valid) -> PodAntiAffinity {
    let instance = &valid.instance;
    PodAntiAffinity {
        required_during_scheduling_ignored_during_execution: Some(vec![PodAffinityTerm {
            label_selector: Some(LabelSelector {
                match_expressions: Some(vec![LabelSelectorRequirement {
                    key: instance.word.clone(),
                    operator: "In".to_owned(),
                    values: Some(vec![instance.name.clone()]),
                }]),
                ..LabelSelector::default()
            }),
            topology_key: "kubernetes.io/hostname".to_owned(),
            ..PodAffinityTerm::default()
        }]),
        ..PodAntiAffinity::default()
    }
}

/// Those that are given; else everything, as the network must be there before a node is ready.
fn tolerations(valid: &Valid) -> Vec<Toleration> {
    let everything = |effect: &str| Toleration {
        effect: Some(effect.to_owned()),
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    };
    let given = valid.common.tolerations.as_ref().filter(|given| !given.is_empty());
    let Some(given) = given else {
        return vec![everything("NoSchedule"), everything("NoExecute")];
    };
    let given = given.iter().cloned();
    given
        .map(|one| Toleration {
            effect: one.effect,
            key: one.key,
            operator: one.operator,
            toleration_seconds: one.toleration_seconds,
            value: one.value,
        })
        .collect()
}

fn volumes(valid: &Valid) -> Vec<Volume> {
    let instance = &valid.instance;
    let mut volumes = vec![
        config_map(&instance.config_volume(), &instance.config_map()),
        config_map(TRUST_VOLUME, TRUST),
        Volume {
            name: instance.certificates(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(instance.certificates()),
                default_mode: Some(0o440),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        },
    ];
    let own = valid.description.host_paths.iter();
    let own = own.map(|path| host_path(path.volume, path.path, Some("DirectoryOrCreate")));
    volumes.extend(own);
    let all = OF_EVERY_NODE.iter().map(|(name, path, is_folder)| {
        host_path(name, path, is_folder.then_some("DirectoryOrCreate"))
    });
    volumes.extend(all);
    volumes
}

fn config_map(volume: &str, name: &str) -> Volume {
    Volume {
        name: volume.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: name.to_owned(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn host_path(volume: &str, path: &str, type_: Option<&str>) -> Volume {
    Volume {
        name: volume.to_owned(),
        host_path: Some(HostPathVolumeSource {
            path: path.to_owned(),
            type_: type_.map(str::to_owned),
        }),
        ..Volume::default()
    }
}

fn container(valid: &Valid, described: &Described) -> Container {
    let image = valid.images.get(described.name);
    let script = || {
        let path = format!("{CONFIGURATION_FOLDER}/run-{}.sh", described.name);
        vec!["bash".to_owned(), path]
    };
    let (cpu, memory) = described.requests;
    let requests = [("cpu", cpu), ("memory", memory)];
    let requests: BTreeMap<_, _> =
        requests.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into();
    Container {
        command: Some(image.and_then(|image| image.command.clone()).unwrap_or_else(script)),
        env: Some(vec![
            EnvVar {
                name: "POD_IP".to_owned(),
                value_from: Some(EnvVarSource {
                    field_ref: Some(ObjectFieldSelector {
                        field_path: "status.podIP".to_owned(),
                        ..ObjectFieldSelector::default()
                    }),
                    ..EnvVarSource::default()
                }),
                ..EnvVar::default()
            },
            EnvVar {
                name: "LOG_LEVEL".to_owned(),
                value: Some(valid.log_level().to_owned()),
                ..EnvVar::default()
            },
        ]),
        image: image.map(|image| image.image.clone()),
        liveness_probe: Some(probe(&described.check, 10, 6)),
        name: described.name.to_owned(),
        readiness_probe: Some(probe(
            described.readiness.as_ref().unwrap_or(&described.check),
            3,
            3,
        )),
        resources: Some(ResourceRequirements {
            requests: Some(requests),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            capabilities: capabilities(described),
            privileged: Some(false),
            run_as_group: Some(0),
            run_as_user: Some(0),
            ..SecurityContext::default()
        }),
        // Images may have to warm up, and files to come.
        startup_probe: Some(probe(&described.check, 3, 60)),
        volume_mounts: Some(mounts(valid, described)),
        ..Container::default()
    }
}

fn capabilities(described: &Described) -> Option<Capabilities> {
    let add: Vec<_> = described.capabilities.iter().map(|&one| one.to_owned()).collect();
    (!add.is_empty()).then(|| Capabilities { add: Some(add), ..Capabilities::default() })
}

/// It judges its own pod alone.
fn probe(check: &Check, period: i32, failures: i32) -> Probe {
    let probe = Probe {
        failure_threshold: Some(failures),
        period_seconds: Some(period),
        timeout_seconds: Some(3),
        ..Probe::default()
    };
    match check {
        Check::Command(command) => {
            let command = ["sh", "-c", command].map(str::to_owned).to_vec();
            Probe { exec: Some(ExecAction { command: Some(command) }), ..probe }
        }
        Check::Port(port) => {
            let port = IntOrString::Int(i32::from(*port));
            Probe { tcp_socket: Some(TCPSocketAction { port, host: None }), ..probe }
        }
    }
}

fn mounts(valid: &Valid, described: &Described) -> Vec<VolumeMount> {
    let mount = |name: &str, path: &str, read_only: bool| VolumeMount {
        mount_path: path.to_owned(),
        name: name.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    };
    let instance = &valid.instance;
    let own = described.mounts.iter().map(|(name, path)| mount(name, path, false));
    let mut mounts: Vec<_> = own.collect();
    mounts.push(mount(&instance.config_volume(), CONFIGURATION_FOLDER, true));
    mounts.push(mount(TRUST_VOLUME, TRUST_FOLDER, true));
    mounts.push(mount(&instance.certificates(), CERTIFICATES_FOLDER, true));
    if valid.description.host_paths.iter().any(|path| path.volume == LOGS.0) {
        mounts.push(mount(LOGS.0, LOGS.1, false));
    }
    let of_node = OF_EVERY_NODE.iter();
    mounts.extend(of_node.map(|(name, path, is_written)| mount(name, path, !is_written)));
    mounts
}
