//! What the pods of both workloads share: labels, tolerations, folders, and what they may do.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapEnvSource, EnvFromSource, HostPathVolumeSource, LocalObjectReference,
    ResourceRequirements, SELinuxOptions, SeccompProfile, SecurityContext, Toleration, Volume,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::checked::Checked;

/// Where upstream's programs look for the authorities, unless they are given another file.
pub(crate) const AUTHORITIES: &str = "/etc/contrail/ssl/certs/ca-cert.pem";
/// Where upstream's manifest has the token.
pub(crate) const TOKEN_FOLDER: &str = "/tmp/serviceaccount";
pub(crate) const TOKEN_FILE: &str = "/tmp/serviceaccount/token";
/// Annotation of a pod template with a digest of what its containers read only once.
const CONFIGURATION: &str = "opensdn.io/configuration";
/// The same of Secrets, where the caller has read them.
const SECRETS: &str = "opensdn.io/secrets";
const NAME_LABEL: &str = "app.kubernetes.io/name";
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

type Labels = BTreeMap<String, String>;

fn part_of() -> (String, String) {
    (PART_OF_LABEL.to_owned(), "opensdn".to_owned())
}

/// Labels of pods, and all of what selects them.
pub(crate) fn labels(name: &str, component: &str) -> Labels {
    [
        (NAME_LABEL.to_owned(), name.to_owned()),
        (COMPONENT_LABEL.to_owned(), component.to_owned()),
        part_of(),
    ]
    .into()
}

pub(crate) fn selector(labels: &Labels) -> LabelSelector {
    LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() }
}

/// Name, namespace and labels of an object.
pub(crate) fn metadata(checked: &Checked<'_>, name: &str) -> ObjectMeta {
    let mut labels: Labels = [(NAME_LABEL.to_owned(), name.to_owned()), part_of()].into();
    if let Some(manager) = &checked.given.managed_by {
        labels.insert(MANAGED_BY_LABEL.to_owned(), manager.clone());
    }
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(checked.given.namespace.clone()),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

/// Name and labels of an object of the whole cluster.
pub(crate) fn cluster_metadata(checked: &Checked<'_>, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: None, ..metadata(checked, name) }
}

/// Of a pod template, with the digests that restart its pods when they change.
pub(crate) fn template_metadata(
    labels: &Labels,
    configuration: &str,
    secrets: Option<&str>,
) -> ObjectMeta {
    let mut annotations = Labels::from([(CONFIGURATION.to_owned(), configuration.to_owned())]);
    if let Some(digest) = secrets {
        annotations.insert(SECRETS.to_owned(), digest.to_owned());
    }
    ObjectMeta {
        labels: Some(labels.clone()),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    }
}

/// None without a name: an entry without one is an error of every second apply.
pub(crate) fn pull_secrets(checked: &Checked<'_>) -> Option<Vec<LocalObjectReference>> {
    let name = checked.given.registry_secret.clone()?;
    Some(vec![LocalObjectReference { name }])
}

pub(crate) fn environment_of(config_map: &str) -> Option<Vec<EnvFromSource>> {
    let source = ConfigMapEnvSource { name: config_map.to_owned(), optional: None };
    Some(vec![EnvFromSource { config_map_ref: Some(source), ..EnvFromSource::default() }])
}

pub(crate) fn folder_of_node(name: &str, path: &str) -> Volume {
    let source =
        HostPathVolumeSource { path: path.to_owned(), type_: Some("DirectoryOrCreate".to_owned()) };
    Volume { name: name.to_owned(), host_path: Some(source), ..Volume::default() }
}

pub(crate) fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

pub(crate) fn read_only(name: &str, path: &str) -> VolumeMount {
    VolumeMount { read_only: Some(true), ..mount(name, path) }
}

/// Tolerates a taint of any value.
pub(crate) fn toleration(key: &str, effect: &str) -> Toleration {
    Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    }
}

pub(crate) fn tolerates_everything() -> Toleration {
    Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() }
}

pub(crate) fn requests(cpu: &str, memory: &str) -> ResourceRequirements {
    let quantities = [("cpu", cpu), ("memory", memory)];
    let all = quantities.map(|(name, text)| (name.to_owned(), Quantity(text.to_owned())));
    ResourceRequirements { requests: Some(all.into()), ..ResourceRequirements::default() }
}

/// The images run as root and write into folders of root, which needs these few of root's rights.
fn confined(capabilities: &[&str]) -> SecurityContext {
    SecurityContext {
        privileged: Some(false),
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            add: Some(capabilities.iter().map(|&one| one.to_owned()).collect()),
            drop: Some(vec!["ALL".to_owned()]),
        }),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        }),
        ..SecurityContext::default()
    }
}

/// Without being privileged, a container writes to folders of a node with SELinux only by this type.
pub(crate) fn writes_to_node(capabilities: &[&str]) -> SecurityContext {
    SecurityContext {
        se_linux_options: Some(SELinuxOptions {
            type_: Some("spc_t".to_owned()),
            ..SELinuxOptions::default()
        }),
        ..confined(capabilities)
    }
}
