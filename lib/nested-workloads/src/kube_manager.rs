//! The Deployment of kube-manager. In nested mode nothing chooses one of several, so there is one replica,
//! and the old pod ends before the new one starts.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, HTTPGetAction, HostAlias, KeyToPath, NodeAffinity,
    NodeSelectorRequirement, NodeSelectorTerm, PodSecurityContext, PodSpec, PodTemplateSpec,
    PreferredSchedulingTerm, Probe, ProjectedVolumeSource, SecretProjection, SecretVolumeSource,
    Toleration, Volume, VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::checked::Checked;
use crate::environment;
use crate::names::KUBE_MANAGER_CONTAINER;
use crate::pod;

/// Introspect, which no field changes.
const INTROSPECT: i32 = 8108;
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// What it was called before 1.24.
const MASTER: &str = "node-role.kubernetes.io/master";
const LOGS: &str = "logs";
const TOKEN: &str = "token";
const CERTIFICATES: &str = "certificates";
const CERTIFICATE_FOLDER: &str = "/etc/contrail/ssl";

/// What its entrypoint needs: it gives folders and files to the user of OpenSDN's images, and then becomes that user
/// (tf-container-builder, `containers/general-base/functions.sh`, `run_service`).
const RIGHTS: [&str; 5] = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"];
/// The group of that user (`containers/general-base/Dockerfile`), which has to read the key of a certificate.
const GROUP: i64 = 1999;

pub(crate) fn deployment(checked: &Checked<'_>, configuration: &str) -> Deployment {
    let name = checked.names.kube_manager();
    let labels = pod::labels(&name, "kube-manager");
    let secrets = checked.given.secrets_digest.as_deref();
    let template = PodTemplateSpec {
        metadata: Some(pod::template_metadata(&labels, configuration, secrets)),
        spec: Some(pod_spec(checked, &name)),
    };
    Deployment {
        metadata: pod::metadata(checked, &name),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: pod::selector(&labels),
            strategy: Some(DeploymentStrategy {
                type_: Some("Recreate".to_owned()),
                rolling_update: None,
            }),
            template,
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn pod_spec(checked: &Checked<'_>, name: &str) -> PodSpec {
    let selector = &checked.given.node_selector;
    PodSpec {
        service_account_name: Some(name.to_owned()),
        automount_service_account_token: Some(false),
        // A Service called, say, zookeeper would else set ZOOKEEPER_PORT.
        enable_service_links: Some(false),
        host_network: Some(true),
        // It runs before the DNS of the cluster, whose pods need it.
        dns_policy: Some("Default".to_owned()),
        host_aliases: host_aliases(checked),
        priority_class_name: Some("system-cluster-critical".to_owned()),
        affinity: selector.is_empty().then(prefers_control_plane),
        node_selector: (!selector.is_empty()).then(|| selector.clone()),
        tolerations: Some(tolerations()),
        image_pull_secrets: pod::pull_secrets(checked),
        security_context: Some(PodSecurityContext {
            fs_group: Some(GROUP),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(checked)],
        volumes: Some(volumes(checked)),
        ..PodSpec::default()
    }
}

fn host_aliases(checked: &Checked<'_>) -> Option<Vec<HostAlias>> {
    let aliases = checked.given.host_aliases.iter();
    let aliases = aliases
        .map(|alias| HostAlias { ip: alias.ip.clone(), hostnames: Some(alias.names.clone()) });
    Some(aliases.collect::<Vec<_>>()).filter(|all| !all.is_empty())
}

/// Where the control plane is no node of the cluster, any node will do.
fn prefers_control_plane() -> Affinity {
    let prefers = |key: &str| PreferredSchedulingTerm {
        weight: 100,
        preference: NodeSelectorTerm {
            match_expressions: Some(vec![NodeSelectorRequirement {
                key: key.to_owned(),
                operator: "Exists".to_owned(),
                values: None,
            }]),
            match_fields: None,
        },
    };
    let preferred = vec![prefers(CONTROL_PLANE)];
    Affinity {
        node_affinity: Some(NodeAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(preferred),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// Those that a DaemonSet would get by itself: until the CNI has its file, every node has some of these
/// taints. Unreachable nodes are not tolerated, so that it moves from one that is lost.
fn tolerations() -> Vec<Toleration> {
    [
        (CONTROL_PLANE, "NoSchedule"),
        (MASTER, "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/network-unavailable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ]
    .map(|(key, effect)| pod::toleration(key, effect))
    .into()
}

fn container(checked: &Checked<'_>) -> Container {
    let port = ContainerPort {
        name: Some("introspect".to_owned()),
        container_port: INTROSPECT,
        ..ContainerPort::default()
    };
    Container {
        name: KUBE_MANAGER_CONTAINER.to_owned(),
        image: Some(checked.images.kube_manager.clone()),
        env: Some(environment::references(checked)),
        env_from: pod::environment_of(&checked.names.kube_manager_environment()),
        ports: Some(vec![port]),
        // Before there is introspect the entrypoint tries the first database thirty times: five minutes where it
        // refuses, ten and more where packets to it are dropped.
        startup_probe: Some(probe(10, 180)),
        readiness_probe: Some(probe(10, 3)),
        // Reading a large cluster takes the only thread for a while.
        liveness_probe: Some(probe(30, 10)),
        resources: Some(pod::requests("50m", "192Mi")),
        security_context: Some(pod::writes_to_node(&RIGHTS)),
        volume_mounts: Some(mounts(checked)),
        ..Container::default()
    }
}

fn probe(period: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/".to_owned()),
            port: IntOrString::Int(INTROSPECT),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(5),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn mounts(checked: &Checked<'_>) -> Vec<VolumeMount> {
    let mut all =
        vec![pod::mount(LOGS, "/var/log/contrail"), pod::read_only(TOKEN, pod::TOKEN_FOLDER)];
    if certificates(checked).is_some() {
        all.push(pod::read_only(CERTIFICATES, CERTIFICATE_FOLDER));
    }
    all
}

fn volumes(checked: &Checked<'_>) -> Vec<Volume> {
    let token = SecretVolumeSource {
        secret_name: Some(checked.token_secret()),
        // The pod waits for this key, which comes a moment after the Secret.
        items: Some(vec![item("token", "token")]),
        ..SecretVolumeSource::default()
    };
    let mut all = vec![
        pod::folder_of_node(LOGS, "/var/log/contrail"),
        Volume { name: TOKEN.to_owned(), secret: Some(token), ..Volume::default() },
    ];
    all.extend(certificates(checked));
    all
}

/// The files where upstream's programs look for them, so that no variable has to name them.
fn certificates(checked: &Checked<'_>) -> Option<Volume> {
    let authority = checked.given.nested.underlay.ca_secret_name.as_deref();
    let authority = authority.map(|name| (name, vec![item("ca-bundle.crt", "certs/ca-cert.pem")]));
    let own = checked.given.client_certificate_secret.as_deref().map(|name| {
        let key = KeyToPath { mode: Some(0o440), ..item("tls.key", "private/server-privkey.pem") };
        (name, vec![item("tls.crt", "certs/server.pem"), key])
    });
    let projection = |(name, items): (&str, Vec<KeyToPath>)| VolumeProjection {
        secret: Some(SecretProjection {
            name: name.to_owned(),
            items: Some(items),
            optional: None,
        }),
        ..VolumeProjection::default()
    };
    let sources: Vec<_> = authority.into_iter().chain(own).map(projection).collect();
    let is_any = !sources.is_empty();
    is_any.then(|| Volume {
        name: CERTIFICATES.to_owned(),
        projected: Some(ProjectedVolumeSource {
            sources: Some(sources),
            ..ProjectedVolumeSource::default()
        }),
        ..Volume::default()
    })
}

fn item(key: &str, path: &str) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path: path.to_owned(), mode: None }
}
