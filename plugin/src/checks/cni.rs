//! Other networks of pods, by the DaemonSets that bring them, and by the files of nodes that were looked at, which alone
//! say which one a node uses.

use opensdn_node_probe::{Cni, Seen};
use serde_json::Value;

use super::few;
use super::probed::{Said, each};
use super::report::{Outcome, Verdict};
use super::roles;
use super::world::{Service, World};
use crate::snapshot::{Read, label, list, name, text, title};

/// Parts of images and of names of DaemonSets, and what they bring. Images by digest, as those of OpenShift, say nothing.
const KNOWN: [(&str, &str); 15] = [
    ("calico/node", "Calico"),
    ("calico-node", "Calico"),
    ("canal", "Canal"),
    ("cilium", "Cilium"),
    ("ovnkube-node", "OVN-Kubernetes"),
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
/// Our configuration in the folder, as the init container of vrouters writes it (`operator/src/components/vrouter/node.rs`), and
/// the plugin in it.
const FILE: &str = "10-tf-cni.conf";
const PLUGIN: &str = "contrail-k8s-cni";

fn images(daemon_set: &Value) -> impl Iterator<Item = &str> {
    list(daemon_set, "/spec/template/spec/containers").map(|one| text(one, "/image"))
}

/// Those that are there: what, and its DaemonSet.
fn found(world: &World) -> Vec<(&'static str, String)> {
    let others = world.daemon_sets.items().iter().filter(|one| label(one, "tf_manager").is_none());
    let of = |one: &Value| {
        let mut known = KNOWN.iter();
        let known = known.find(|(part, _)| {
            name(one).contains(part) || images(one).any(|image| image.contains(part))
        });
        known.map(|(_, what)| (*what, title(one)))
    };
    others.filter_map(of).collect()
}

/// The DaemonSet of Multus. A name is not enough: who may make DaemonSets in one namespace would turn findings off for
/// all. What has pods that write to the folder of networks of their nodes decides there anyway.
fn multus(world: &World) -> Option<&Value> {
    let mut all = world.daemon_sets.items().iter();
    all.find(|one| {
        let is_called =
            name(one).contains(MULTUS) || images(one).any(|image| image.contains(MULTUS));
        let has_pods = one.pointer("/status/numberAvailable").and_then(Value::as_u64) > Some(0);
        let mut volumes = list(one, "/spec/template/spec/volumes");
        is_called && has_pods && volumes.any(|one| text(one, "/hostPath/path").contains("cni"))
    })
}

fn is_nested(world: &World) -> bool {
    world.managers.items().iter().any(|manager| manager.pointer("/spec/nested").is_some())
}

/// Whether another network beside is what somebody wants.
pub(super) fn is_intended(world: &World) -> bool {
    is_nested(world) || multus(world).is_some()
}

/// Whose network the pods of a node are to have.
enum Meant {
    /// That of OpenSDN.
    OpenSdn,
    /// Another one, or OpenSDN's behind a meta plugin.
    Another,
    /// Not that of OpenSDN as far as is known, and why.
    Unsaid(Outcome, String),
}

impl Meant {
    fn on(world: &World, node: &Value) -> Self {
        if is_intended(world) {
            return Self::Another;
        }
        let unread = [
            ("Managers", world.managers.why_unknown()),
            ("DaemonSets", world.daemon_sets.why_unknown()),
        ];
        for (what, why) in unread {
            if let Some(why) = why {
                let why =
                    format!("whether it is by intent is not known: {what} may not be read: {why}");
                return Self::Unsaid(Outcome::Uncertain, why);
            }
        }
        let services = world.services();
        let unsaid = |why: &str| Self::Unsaid(Outcome::Warn, why.to_owned());
        if services.is_empty() {
            return unsaid("no Manager says where vrouters run");
        }
        let of_kind = |kind| services.iter().filter(move |one| one.facts.kind == kind);
        let mut here = of_kind("Vrouter").filter(|one| roles::is_selected(one, node)).peekable();
        if here.peek().is_none() {
            return unsaid("no vrouter is to run here");
        }
        if here.all(has_no_pods) {
            return Self::Another;
        }
        match of_kind("Kubemanager").next() {
            Some(_) => Self::OpenSdn,
            None => unsaid("no Manager has a kubemanager"),
        }
    }

    /// What is said where another configuration is taken than OpenSDN's.
    fn not_ours(&self, what: String, harmless: String) -> Said {
        match self {
            Self::Another => (Outcome::Ok, harmless),
            Self::OpenSdn => (Outcome::Fail, what),
            Self::Unsaid(outcome, why) => (*outcome, format!("{what}; {why}")),
        }
    }
}

/// Vrouters that give a network to machines of another orchestrator.
fn has_no_pods(vrouter: &Service<'_>) -> bool {
    let orchestrator = text(vrouter.spec, "/serviceConfiguration/cloudOrchestrator");
    ["openstack", "vcenter", "none"].contains(&orchestrator)
}

pub(super) fn others(world: &World) -> Verdict {
    if world.probed.is_none() {
        return by_daemon_sets(world);
    }
    each(world, "no other network of pods is taken before OpenSDN's", |node, findings| {
        match &findings.cni {
            Seen::Is(cni) => winner(cni, &Meant::on(world, node)),
            Seen::Unknown(why) => {
                (Outcome::Uncertain, format!("the files of networks are not known: {why}"))
            }
        }
    })
}

/// Which configuration the container runtime takes, and whether that is as it is meant.
fn winner(cni: &Cni, meant: &Meant) -> Said {
    let folder = &cni.folder;
    if let Some(network) = &cni.default_network {
        let is_ours = cni.files.iter().any(|one| one.network == *network && is_of(&one.plugins));
        if is_ours {
            return (Outcome::Ok, format!("CRI-O is set to {network}, which is ours"));
        }
        let what =
            format!("CRI-O is set to {network} by cni_default_network, whatever files there are");
        return meant.not_ours(what, format!("CRI-O is set to {network}, by intent"));
    }
    let Some(first) = cni.files.first() else {
        return (Outcome::Ok, format!("{folder} has no network of pods yet"));
    };
    let file = &first.file;
    if let Some(error) = &first.error {
        let what = format!("{file}, the first of {folder}, cannot be read: {error}");
        return match meant {
            Meant::Another => (Outcome::Warn, what),
            _ => meant.not_ours(what, String::new()),
        };
    }
    if is_of(&first.plugins) {
        return (Outcome::Ok, format!("{file} is the first"));
    }
    let plugin = first.plugins.first().map_or("none", String::as_str);
    if plugin.contains(MULTUS) {
        return (Outcome::Ok, format!("{file} is the first, of the meta plugin {plugin}"));
    }
    let ours = cni.files.iter().find(|one| is_of(&one.plugins));
    // Before an installation its name says whether it will be the first.
    if ours.is_none() && file.as_str() > FILE {
        return (Outcome::Ok, format!("{file} ({plugin}) sorts after {FILE}"));
    }
    let ours = ours.map_or(FILE, |one| one.file.as_str());
    let what = format!("{file} ({plugin}) sorts before {ours}, and is taken");
    meant.not_ours(what, format!("{file} ({plugin}) is the first, by intent"))
}

fn is_of(plugins: &[String]) -> bool {
    plugins.iter().any(|plugin| plugin == PLUGIN)
}

fn by_daemon_sets(world: &World) -> Verdict {
    match &world.daemon_sets {
        Read::Known(_) => {}
        Read::Absent => return Verdict::uncertain("the API server has no DaemonSets"),
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("DaemonSets may not be read: {why}"));
        }
    }
    let found = found(world);
    // That of k3s runs within its own process, where nothing shows it.
    let mut nodes = world.nodes.items().iter();
    let embedded =
        nodes.find(|node| text(node, "/status/nodeInfo/kubeletVersion").contains("+k3s"));
    if found.is_empty() && embedded.is_none() {
        return Verdict::uncertain(
            "no DaemonSet here is known to bring another network of pods; what the files on nodes say needs --probe",
        );
    }
    let names: Vec<String> =
        found.iter().map(|(what, place)| format!("{what} ({place})")).collect();
    let names = if names.is_empty() { vec!["the network of k3s".to_owned()] } else { names };
    if is_intended(world) {
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
    match multus(world) {
        None => Verdict::ok("there is no meta plugin"),
        // The operator's configuration of the CNI names it always (tf-operator `vrouter_config.go:398`).
        Some(one) => Verdict::ok(format!(
            "Multus runs ({}), which the configuration of the vrouters' CNI has as its meta plugin",
            title(one)
        )),
    }
}
