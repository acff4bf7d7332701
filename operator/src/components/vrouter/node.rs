//! What is done on the node before the agent is started, and the folders of it that containers mount.

use opensdn_crds::vrouter::VrouterConfiguration;

use super::{dpdk, env, settings};
use crate::component::{Command, Container, Given, Mount, Source, Volume};
use crate::components::shared::logs;

/// As tf-operator has it (`pkg/controller/vrouter/vrouter_controller.go:348-363`).
const INSTALL_CNI: &str = "mkdir -p /host/etc_cni/net.d /var/lib/contrail/ports/vm /var/run/multus/cni/net.d \
     && cp -f /usr/bin/contrail-k8s-cni /host/opt_cni_bin && chmod 0755 /host/opt_cni_bin/contrail-k8s-cni \
     && tar -C /host/opt_cni_bin -xzf /opt/cni-v0.3.0.tgz \
     && cp -f /etc/contrailconfigmaps/10-tf-cni.conf /host/etc_cni/net.d/10-tf-cni.conf \
     && cp -f /etc/contrailconfigmaps/10-tf-cni.conf /var/run/multus/cni/net.d/80-openshift-network.conf";
const STATUS: &str = "nodeinit-status-prefetch";
const BUILD: &str = "vrouterkernelbuildinit";

/// Each runs if it has an image: that of a sibling is never guessed.
pub(super) fn init_containers(
    given: &Given<'_>,
    settings: &VrouterConfiguration,
) -> Vec<Container> {
    let prefetch = |name| Container { command: Command::Shell("exit 0"), ..step(name) };
    let mut containers = vec![
        if settings::is_dpdk(settings) {
            dpdk::init_container(settings)
        } else {
            kernel_module(given, settings)
        },
        Container {
            command: Command::Shell(INSTALL_CNI),
            mounts: vec![
                Mount::at("var-lib-contrail", "/var/lib/contrail"),
                Mount::at("cni-config-files", "/host/etc_cni"),
                Mount::at("cni-bin", "/host/opt_cni_bin"),
                Mount::at("multus-cni", "/var/run/multus"),
            ],
            ..step("vroutercni")
        },
    ];
    let mut mounts = vec![
        Mount::at("host-usr-bin", "/host/usr/bin"),
        Mount::at("var-run", "/var/run"),
        Mount::at("dev", "/dev"),
    ];
    if !settings::is_openshift(settings) {
        mounts.push(Mount::at("host-sysctl", "/etc/sysctl.d"));
    }
    let mut of_init = env(settings);
    of_init.push(("SERVER_CA_CERTFILE", "/etc/ssl/certs/kubernetes/ca-bundle.crt".to_owned()));
    of_init.extend(server_files());
    of_init.extend(image(settings, STATUS).map(|image| ("CONTRAIL_STATUS_IMAGE", image)));
    containers.extend([
        Container {
            command: Command::OfImage,
            env: of_init,
            mounts,
            is_privileged: true,
            ..step("nodeinit")
        },
        prefetch(STATUS),
        prefetch("nodeinit-tools-prefetch"),
    ]);
    containers
}

/// Runs if it has an image.
pub(super) fn step(name: &'static str) -> Container {
    Container { name, is_optional: true, ..Container::default() }
}

/// Whose files an image waits for where a variable switches TLS on.
pub(super) fn server_files() -> [(&'static str, String); 2] {
    [
        ("SERVER_CERTFILE", "/etc/certificates/server-$(POD_IP).crt".to_owned()),
        ("SERVER_KEYFILE", "/etc/certificates/server-key-$(POD_IP).pem".to_owned()),
    ]
}

/// Brings the module and loads it.
fn kernel_module(given: &Given<'_>, settings: &VrouterConfiguration) -> Container {
    let builds = given.common.distribution.as_deref() == Some("ubuntu");
    Container {
        entry: builds.then_some(BUILD),
        command: Command::OfImage,
        env: env(settings),
        mounts: vec![
            Mount::at("network-scripts", "/etc/sysconfig/network-scripts"),
            Mount::at("host-usr-bin", "/host/bin"),
            Mount::at("usr-src", "/usr/src"),
            Mount::at("lib-modules", "/lib/modules"),
        ],
        is_privileged: true,
        ..step("vrouterkernelinit")
    }
}

fn image(settings: &VrouterConfiguration, name: &str) -> Option<String> {
    let mut all = settings.containers.iter().flatten();
    all.find(|one| one.name.as_deref() == Some(name))?.image.clone()
}

/// What the agent works on.
pub(super) fn agent_mounts() -> Vec<Mount> {
    vec![
        Mount::at("dev", "/dev"),
        Mount::at("network-scripts", "/etc/sysconfig/network-scripts"),
        Mount::at("host-usr-bin", "/host/bin"),
        Mount::at("usr-src", "/usr/src"),
        Mount::at("lib-modules", "/lib/modules"),
        Mount::at("var-run", "/var/run"),
        Mount::at("var-lib-contrail", "/var/lib/contrail"),
    ]
}

/// Besides those of the node manager.
pub(super) fn volumes(settings: &VrouterConfiguration) -> Vec<Volume> {
    // Where OpenShift has its CNI (tf-operator, `pkg/apis/tf/v1alpha1/cluster_info.go`).
    let (configuration, programs) = if settings::is_openshift(settings) {
        ("/etc/kubernetes/cni", "/var/lib/cni/bin")
    } else {
        ("/etc/cni", "/opt/cni/bin")
    };
    let existing = |name, path| Volume { name, source: Source::Existing(path) };
    let mut volumes = vec![
        logs("/var/log/contrail/vrouter-agent"),
        existing("host-usr-bin", "/usr/bin"),
        Volume::folder("var-lib-contrail", "/var/lib/contrail"),
        existing("lib-modules", "/lib/modules"),
        Volume::folder("usr-src", "/usr/src"),
        Volume::folder("network-scripts", "/etc/sysconfig/network-scripts"),
        existing("dev", "/dev"),
        Volume::folder("cni-config-files", configuration),
        Volume::folder("cni-bin", programs),
        Volume::folder("multus-cni", "/var/run/multus"),
    ];
    if !settings::is_openshift(settings) {
        volumes.push(existing("host-sysctl", "/etc/sysctl.d"));
    }
    // Where the node's own `vif` reads of which kind the data plane is.
    let of_dpdk = Volume::folder("host-etc-contrail", "/etc/contrail");
    volumes.extend(settings::is_dpdk(settings).then_some(of_dpdk));
    volumes
}
