//! Vrouter: the data plane of a group of nodes. Its image makes the agent's configuration, of parameters and of its node.

mod dpdk;
mod files;
mod introspect;
mod node;
mod parameters;
mod profile;
mod settings;
mod update;

use opensdn_crds::component::{self, Component};
use opensdn_crds::vrouter::VrouterConfiguration;
use serde_json::json;

use super::shared::around::{around, credentials, passwords};
use super::shared::{node_manager, provisioner};
use crate::component::{
    Check, ComponentKind, Container, Description, Given, Introspect, Password, Quorum,
    SettingsError, Template,
};
use crate::kind::{Profiles, Workload};

/// The kind Vrouter.
pub(super) struct Vrouter;

const NODE_TYPE: &str = "vrouter";
const NODE_MANAGER: u16 = component::row("Vrouter").fixed_port("nodemanager");

impl ComponentKind for Vrouter {
    fn facts(&self) -> &'static Component {
        const { component::row("Vrouter") }
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("vrouter/run-vrouteragent.sh"),
            template!("vrouter/run-vrouteragentdpdk.sh"),
            template!("vrouter/start-vrouteragent.sh"),
            template!("vrouter/settings.sh"),
            template!("vrouter/params.sh"),
            template!("vrouter/provisioner.sh"),
            template!("vrouter/nodemgr.ini"),
            template!("vrouter/10-tf-cni.json"),
        ]
    }

    fn workload(&self) -> Workload {
        Workload::DaemonSet
    }

    fn profiles(&self) -> Option<Profiles> {
        let path = "/apis/opensdn.io/v1alpha1";
        Some(Profiles { kind: "VrouterProfile", path, plural: "vrouterprofiles" })
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let mut settings: VrouterConfiguration = given.settings()?;
        let more = profile::merge(&mut settings, given.profiles)?;
        settings.kubernetes_pod_subnet =
            settings::pod_network(&settings, &given.cluster.pod_subnets);
        let control = settings::control(given, &settings);
        let variables = settings::variables(&settings, more);
        dpdk::check(&settings, &variables)?;
        let around = around(given);
        let mut secrets = passwords(given);
        let secret = settings.metadata_proxy_secret.clone().filter(|secret| !secret.is_empty());
        let has_secret = secret.is_some();
        let password =
            |secret| Password { key: "metadata-proxy-secret", given: Some(secret), letters: 0 };
        secrets.extend(secret.map(password));
        // The network does not wait for the message bus, which it does not use.
        let own = credentials(given).into_iter().filter(|one| one.folder != "rabbitmq").collect();
        Ok(Description {
            init_containers: node::init_containers(given, &settings),
            containers: containers(&settings, introspect::introspect(&settings, &variables)),
            files: files::files(&settings),
            values: json!({
                "settings": parameters::parameters(&settings),
                "has_metadata_secret": has_secret,
                "control_nodes": control.nodes,
                "collector_port": control.collector_port,
                "provisioner": settings::of_provisioner(&settings, &variables, &around, &control.nodes),
                "cluster_name": given.cluster.name,
                "mtu": settings.cni_mtu.filter(|mtu| *mtu > 0).unwrap_or_default(),
                "around": around,
            }),
            volumes: [&node_manager::VOLUMES[..], &node::volumes(&settings)].concat(),
            passwords: secrets,
            credentials: own,
            quorum: Quorum::All,
            update: update::update(&settings),
            depends_on_release: true,
            variables,
            waits_for: control.missing,
            // The agent ends, vhost0 goes, and the node has its network back.
            grace: Some(90),
            ..Description::default()
        })
    }
}

/// What several containers get to know of the kind of node.
fn env(settings: &VrouterConfiguration) -> Vec<(&'static str, String)> {
    let subcluster = settings.subcluster.clone().filter(|name| !name.is_empty());
    let mut env = vec![
        ("NODE_TYPE", NODE_TYPE.to_owned()),
        ("CLOUD_ORCHESTRATOR", settings::orchestrator(settings)),
        ("INTROSPECT_SSL_ENABLE", "True".to_owned()),
        ("SSL_ENABLE", "True".to_owned()),
    ];
    env.extend(subcluster.map(|name| ("SUBCLUSTER", name)));
    env.extend(settings::data_plane(settings));
    env
}

fn containers(settings: &VrouterConfiguration, introspect: Introspect) -> Vec<Container> {
    let agent = Container {
        name: "vrouteragent",
        env: settings::of_interface(settings),
        mounts: node::agent_mounts(),
        // The kubelet would run what is run before it ends, too, when it starts it again: the node would lose its
        // network for an agent that is slow. So nothing but the agent's own end starts it again.
        check: Check::Nothing,
        readiness: introspect.ports.first().map(|port| Check::Port(*port)),
        introspect: Some(introspect),
        requests: ("100m", "256Mi"),
        huge_pages: of_agent(settings),
        is_privileged: true,
        pre_stop: Some("/clean-up.sh".to_owned()),
        ..Container::default()
    };
    let mut containers = vec![
        Container { env: env(settings), ..provisioner::container(NODE_TYPE) },
        Container { env: env(settings), ..node_manager::container(NODE_TYPE, NODE_MANAGER) },
        agent,
    ];
    containers.extend(settings::is_dpdk(settings).then(|| dpdk::container(settings)));
    containers
}

/// Huge pages of the tables of the kernel module. Those of a DPDK process it makes itself, and the agent maps their files
/// (tf-controller, `src/vnsw/agent/vrouter/ksync/ksync_init.cc:574-606`).
fn of_agent(settings: &VrouterConfiguration) -> Vec<(&'static str, u64)> {
    let pages = settings::huge_pages(settings).into_iter();
    pages.take(usize::from(!settings::is_dpdk(settings))).collect()
}
