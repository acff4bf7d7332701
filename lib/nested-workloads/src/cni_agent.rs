//! The DaemonSet of the CNI agent, on every node: it installs the CNI plugin and its configuration, and then
//! only waits.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, ExecAction, PodSpec, PodTemplateSpec, Probe, Volume,
};

use crate::checked::Checked;
use crate::environment;
use crate::inputs::Plugins;
use crate::names::{CNI_CONTAINER, PLUGIN_CONTAINER};
use crate::pod;

const RIGHTS: [&str; 3] = ["CHOWN", "DAC_OVERRIDE", "FOWNER"];
const CONFIGURATIONS: &str = "etc-cni";
const BINARIES: &str = "opt-cni-bin";
const STATE: &str = "var-lib-contrail";
/// Where the entrypoint unpacks the reference plugins if those of the node stay.
const UNUSED: &str = "unused-plugins";
const BINARY_FOLDER: &str = "/host/opt_cni_bin";
const PLUGIN: &str = "/host/opt_cni_bin/contrail-k8s-cni";
const CONFIGURATION: &str = "/host/etc_cni/net.d/10-contrail.conf";

pub(crate) fn daemon_set(checked: &Checked<'_>, configuration: &str) -> DaemonSet {
    let name = checked.names.cni_agent();
    let labels = pod::labels(&name, "cni-agent");
    let template = PodTemplateSpec {
        metadata: Some(pod::template_metadata(&labels, configuration, None)),
        spec: Some(pod_spec(checked)),
    };
    DaemonSet {
        metadata: pod::metadata(checked, &name),
        spec: Some(DaemonSetSpec {
            selector: pod::selector(&labels),
            template,
            ..DaemonSetSpec::default()
        }),
        ..DaemonSet::default()
    }
}

fn pod_spec(checked: &Checked<'_>) -> PodSpec {
    PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        host_network: Some(true),
        dns_policy: Some("Default".to_owned()),
        priority_class_name: Some("system-node-critical".to_owned()),
        // A node without it stays not ready, whatever taints it has.
        tolerations: Some(vec![pod::tolerates_everything()]),
        image_pull_secrets: pod::pull_secrets(checked),
        init_containers: match checked.given.plugins {
            Plugins::Replaced => None,
            Plugins::Kept => Some(vec![plugin_only(checked)]),
        },
        containers: vec![container(checked)],
        volumes: Some(volumes(checked.given.plugins)),
        ..PodSpec::default()
    }
}

fn container(checked: &Checked<'_>) -> Container {
    let binaries = match checked.given.plugins {
        Plugins::Replaced => BINARIES,
        Plugins::Kept => UNUSED,
    };
    // Its NIC is the one with the node's address, by which kube-manager finds the machine's own interface.
    let address = checked.given.parent_interface.is_none();
    Container {
        name: CNI_CONTAINER.to_owned(),
        image: Some(checked.images.cni.clone()),
        env: address.then(|| vec![environment::of_node("CONTROL_NODES")]),
        env_from: pod::environment_of(&checked.names.cni_agent_environment()),
        readiness_probe: Some(probe(10, 3)),
        // The entrypoint writes the file once; a restart writes it again if it is gone.
        liveness_probe: Some(probe(30, 3)),
        resources: Some(pod::requests("10m", "32Mi")),
        security_context: Some(pod::writes_to_node(&RIGHTS)),
        volume_mounts: Some(vec![
            pod::mount(CONFIGURATIONS, "/host/etc_cni"),
            pod::mount(binaries, BINARY_FOLDER),
            pod::mount(STATE, "/var/lib/contrail"),
        ]),
        ..Container::default()
    }
}

/// `install` replaces a plugin that runs, which `cp` cannot.
fn plugin_only(checked: &Checked<'_>) -> Container {
    let command = ["install", "-m", "0755", "/usr/bin/contrail-k8s-cni", PLUGIN];
    Container {
        name: PLUGIN_CONTAINER.to_owned(),
        image: Some(checked.images.cni.clone()),
        command: Some(command.map(str::to_owned).into()),
        resources: Some(pod::requests("10m", "32Mi")),
        security_context: Some(pod::writes_to_node(&RIGHTS)),
        volume_mounts: Some(vec![pod::mount(BINARIES, BINARY_FOLDER)]),
        ..Container::default()
    }
}

/// Whether the files are there.
fn probe(period: i32, failures: i32) -> Probe {
    let command = ["test", "-s", CONFIGURATION, "-a", "-x", PLUGIN];
    Probe {
        exec: Some(ExecAction { command: Some(command.map(str::to_owned).into()) }),
        period_seconds: Some(period),
        timeout_seconds: Some(5),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn volumes(plugins: Plugins) -> Vec<Volume> {
    let mut all = vec![
        pod::folder_of_node(CONFIGURATIONS, "/etc/cni"),
        pod::folder_of_node(BINARIES, "/opt/cni/bin"),
        pod::folder_of_node(STATE, "/var/lib/contrail"),
    ];
    if plugins == Plugins::Kept {
        let source = EmptyDirVolumeSource::default();
        all.push(Volume { name: UNUSED.to_owned(), empty_dir: Some(source), ..Volume::default() });
    }
    all
}
