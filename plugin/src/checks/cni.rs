//! Other networks of pods, by the DaemonSets that bring them. Which one a node uses only its files say.

use serde_json::Value;

use super::few;
use super::report::Verdict;
use super::world::{World, title};
use crate::snapshot::{Read, label, list, text};

/// Parts of images, and what they bring.
const KNOWN: [(&str, &str); 12] = [
    ("calico/node", "Calico"),
    ("cilium/cilium", "Cilium"),
    ("flannel", "flannel"),
    ("weave-kube", "Weave Net"),
    ("kube-router", "kube-router"),
    ("antrea", "Antrea"),
    ("kube-ovn", "Kube-OVN"),
    ("ovn-kubernetes", "OVN-Kubernetes"),
    ("ovn-kube", "OVN-Kubernetes"),
    ("kindnetd", "kindnet"),
    ("amazon-k8s-cni", "the VPC CNI of AWS"),
    ("azure-cni", "the CNI of Azure"),
];
const MULTUS: &str = "multus";
const META_PLUGIN: &str = "KUBERNETES_CNI_META_PLUGIN";

fn images(daemon_set: &Value) -> impl Iterator<Item = &str> {
    list(daemon_set, "/spec/template/spec/containers").map(|one| text(one, "/image"))
}

/// Those that are there: what, and its DaemonSet.
fn found(world: &World) -> Vec<(&'static str, String)> {
    let others = world.daemon_sets.items().iter().filter(|one| label(one, "tf_manager").is_none());
    let of = |one: &Value| {
        let mut known = KNOWN.iter();
        let known = known.find(|(part, _)| images(one).any(|image| image.contains(part)));
        known.map(|(_, what)| (*what, title(one)))
    };
    others.filter_map(of).collect()
}

fn multus(world: &World) -> Option<&Value> {
    let mut all = world.daemon_sets.items().iter();
    all.find(|one| images(one).any(|image| image.contains(MULTUS)))
}

/// Whether a vrouter is set to be behind a meta plugin.
fn is_behind(world: &World) -> bool {
    world.services().iter().filter(|service| service.facts.kind == "Vrouter").any(|service| {
        let at = format!("/serviceConfiguration/envVariablesConfig/{META_PLUGIN}");
        !text(service.spec, &at).is_empty()
    })
}

fn is_nested(world: &World) -> bool {
    world.managers.items().iter().any(|manager| manager.pointer("/spec/nested").is_some())
}

pub(super) fn others(world: &World) -> Verdict {
    match &world.daemon_sets {
        Read::Known(_) => {}
        Read::Absent => return Verdict::uncertain("the API server has no DaemonSets"),
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("DaemonSets may not be read: {why}"));
        }
    }
    let found = found(world);
    // k3s and RKE2 bring a network of their own in the kubelet's process, where nothing shows it.
    let mut nodes = world.nodes.items().iter();
    let embedded =
        nodes.find(|node| text(node, "/status/nodeInfo/kubeletVersion").contains("+k3s"));
    if found.is_empty() && embedded.is_none() {
        return Verdict::ok(
            "no DaemonSet here brings another network of pods; files on nodes are not looked at",
        );
    }
    let names: Vec<String> =
        found.iter().map(|(what, place)| format!("{what} ({place})")).collect();
    let names = if names.is_empty() { vec!["the network of k3s".to_owned()] } else { names };
    if is_nested(world) || (is_behind(world) && multus(world).is_some()) {
        return Verdict::ok(format!("beside OpenSDN, by intent: {}", few(&names)));
    }
    Verdict::uncertain(format!(
        "{} is here too: which one the container runtime takes only the files on nodes say. Below OpenSDN, as the \
         network of the nodes, it does no harm",
        few(&names)
    ))
}

pub(super) fn meta_plugin(world: &World) -> Verdict {
    if world.daemon_sets.known().is_none() || world.managers.why_unknown().is_some() {
        return Verdict::uncertain("DaemonSets or Managers may not be read");
    }
    match (multus(world), is_behind(world)) {
        (None, false) => {
            Verdict::ok("there is no meta plugin, and no vrouter is set to be behind one")
        }
        (Some(one), true) => Verdict::ok(format!("vrouters are behind Multus ({})", title(one))),
        (Some(one), false) => Verdict::warn(format!(
            "Multus runs ({}), and no Vrouter has {META_PLUGIN} in its envVariablesConfig",
            title(one)
        )),
        (None, true) => Verdict::warn(format!(
            "a Vrouter has {META_PLUGIN} in its envVariablesConfig, and no DaemonSet of Multus is here"
        )),
    }
}
