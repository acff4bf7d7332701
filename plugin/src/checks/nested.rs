//! What has to be so on the nodes and in the API of a nested cluster: a cluster on virtual machines, with kube-manager and
//! a CNI plugin and nothing else of OpenSDN's. What its cloud has to have is in `nested plan`, and whether it works in the
//! end in `nested verify`.

use opensdn_node_probe::{ModuleState, NameFinding, NodeFindings, Seen};
use serde_json::Value;

use super::fabric::fabric;
use super::few;
use super::probed::{Said, each, unseen, worst};
use super::report::{Outcome, Verdict};
use super::subnets::networks;
use super::world::World;
use crate::nested::cni_files;
use crate::snapshot::{Read, name, text};

/// What the plugin makes interfaces of pods with.
pub(crate) const MODULES: [&str; 2] = ["macvlan", "8021q"];
/// So many names of nodes are looked for: kube-manager needs that of its own node alone.
pub(crate) const MOST_NAMES: usize = 32;
/// What kube-manager watches by the name of its kind, whatever the group.
const WATCHED: [&str; 6] = ["Endpoints", "Ingress", "Namespace", "NetworkPolicy", "Pod", "Service"];
/// How Kubernetes' own definitions begin: the last of a kind by name is taken.
const OWN: &str = "io.k8s.api.";
/// What the CNI agent's image takes where nothing is said.
const DEFAULT_MTU: u32 = 1500;

/// What is read of the cluster for these checks alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    /// CustomResourceDefinitions of anyone.
    pub(crate) definitions: Read<Vec<Value>>,
    /// The ConfigMap with the environment of the CNI agent: ours, or upstream's.
    pub(crate) environment: Read<Value>,
    /// The configuration of kube-proxy.
    pub(crate) kube_proxy: Read<Value>,
}

fn of_nested(world: &World) -> Result<&Nested, Verdict> {
    world.nested.as_ref().ok_or_else(|| Verdict::skipped("needs --nested"))
}

/// kube-manager resolves the name of its own node at its start, and ends if it cannot.
pub(super) fn names(world: &World) -> Verdict {
    each(world, "names of nodes lead to their addresses", |_, findings| {
        let Some(own) = &findings.names.own else {
            return (
                Outcome::Uncertain,
                "its pod is of a release that looks for no names".to_owned(),
            );
        };
        let mut said = vec![name_of(own, Outcome::Fail)];
        said.extend(findings.names.wanted.iter().map(|one| name_of(one, Outcome::Warn)));
        worst(said, "all of them")
    })
}

pub(super) fn name_of(one: &NameFinding, bad: Outcome) -> Said {
    let what = format!("the name {}", one.name);
    match &one.addresses {
        Seen::Unknown(_) => unseen(&what, &one.addresses).unwrap_or((Outcome::Ok, what)),
        Seen::Is(addresses) if addresses.is_empty() => (bad, format!("{what} leads nowhere")),
        Seen::Is(_) => (Outcome::Ok, what),
    }
}

pub(super) fn modules(world: &World) -> Verdict {
    each(world, "macvlan and 8021q are there, or loaded when they are needed", |_, findings| {
        let of = |wanted: &str| {
            let Some(found) = findings.modules.iter().find(|one| one.name == wanted) else {
                let why = format!("its pod is of a release that does not look for {wanted}");
                return (Outcome::Uncertain, why);
            };
            match &found.state {
                Seen::Is(ModuleState::Missing) => (
                    Outcome::Fail,
                    format!("{wanted} is neither built in, nor loaded, nor loadable"),
                ),
                Seen::Is(_) => (Outcome::Ok, wanted.to_owned()),
                Seen::Unknown(why) => (Outcome::Uncertain, format!("{wanted} is not known: {why}")),
            }
        };
        worst(MODULES.map(of).into(), "both")
    })
}

pub(super) fn other_cni(world: &World) -> Verdict {
    each(world, "no other network of pods is taken before OpenSDN's", |_, findings| {
        cni_files::is_first(&findings.cni)
    })
}

/// Linux refuses an interface of a VLAN whose MTU is above that of its parent: no pod gets a network then.
pub(super) fn mtu(world: &World) -> Verdict {
    let nested = match of_nested(world) {
        Ok(nested) => nested,
        Err(verdict) => return verdict,
    };
    let (stated, is_default) = match &nested.environment {
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("the MTU of pods may not be read: {why}"));
        }
        Read::Absent => (String::new(), true),
        Read::Known(map) => (text(map, "/data/VROUTER_MTU").to_owned(), false),
    };
    let of_pods = match stated.as_str() {
        "" => DEFAULT_MTU,
        text => match text.parse() {
            Ok(mtu) => mtu,
            Err(_) => return Verdict::fail(format!("VROUTER_MTU is {text:?}, which is no number")),
        },
    };
    let from = if is_default || stated.is_empty() { "the default" } else { "VROUTER_MTU" };
    each(world, &format!("the MTU of pods, {from} {of_pods}, fits"), |node, findings| {
        mtu_of(world, node, findings, of_pods)
    })
    .fix("kubectl opensdn nested manifest --mtu BYTES ...")
}

fn mtu_of(world: &World, node: &Value, findings: &NodeFindings, of_pods: u32) -> Said {
    let one = match fabric(world, node, findings) {
        Ok(one) => one,
        Err(said) => return said,
    };
    match &one.mtu {
        Seen::Unknown(why) => {
            (Outcome::Uncertain, format!("the MTU of {} is not known: {why}", one.name))
        }
        Seen::Is(mtu) if *mtu < of_pods => (
            Outcome::Fail,
            format!("{} has {mtu}, and pods are to have {of_pods}: none gets a network", one.name),
        ),
        Seen::Is(mtu) => (Outcome::Ok, format!("{} has {mtu}", one.name)),
    }
}

pub(super) fn hijacked(world: &World) -> Verdict {
    let nested = match of_nested(world) {
        Ok(nested) => nested,
        Err(verdict) => return verdict,
    };
    let all = match &nested.definitions {
        Read::Known(all) => all,
        Read::Absent => {
            return Verdict::uncertain("the API server has no CustomResourceDefinitions");
        }
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("CustomResourceDefinitions may not be read: {why}"));
        }
    };
    let hijacks = |one: &&Value| {
        // It compares without regard to capitals.
        let kind = text(one, "/spec/names/kind");
        WATCHED.iter().any(|watched| watched.eq_ignore_ascii_case(kind))
            && definition(text(one, "/spec/group")).as_str() > OWN
    };
    let found: Vec<&Value> = all.iter().filter(hijacks).collect();
    let Some(first) = found.first() else {
        return Verdict::ok("no CRD has the name of a kind that kube-manager watches");
    };
    let names: Vec<String> = found.iter().map(|one| name(one).to_owned()).collect();
    let message =
        format!("kube-manager may watch these instead of Kubernetes' own: {}", few(&names));
    Verdict::warn(message).fix(format!("kubectl delete crd {} # if nothing uses it", name(first)))
}

/// How names of definitions of a group begin in `/openapi/v2`: `crd.projectcalico.org` backwards.
fn definition(group: &str) -> String {
    let parts: Vec<&str> = group.rsplit('.').collect();
    parts.join(".")
}

/// A NodePort is let through by what kube-proxy takes for addresses of pods.
pub(super) fn node_ports(world: &World) -> Verdict {
    let nested = match of_nested(world) {
        Ok(nested) => nested,
        Err(verdict) => return verdict,
    };
    let config = match &nested.kube_proxy {
        Read::Known(config) => config,
        Read::Absent => {
            return Verdict::uncertain(
                "kube-system has no ConfigMap kube-proxy: it is set up otherwise",
            )
            .fix("how is kube-proxy started? --cluster-cidr has to be the network of pods");
        }
        Read::Unknown(why) => {
            return Verdict::uncertain(format!(
                "the configuration of kube-proxy may not be read: {why}"
            ));
        }
    };
    let networks = networks(world);
    let pods =
        networks.iter().find(|(what, _)| *what == "pods").map_or("", |(_, text)| text.as_str());
    match text(config, "/clusterCIDR") {
        cidr if cidr.split(',').any(|one| one.trim() == pods) => {
            Verdict::ok(format!("clusterCIDR is {cidr}"))
        }
        "" => Verdict::warn(format!("kube-proxy has no clusterCIDR, and pods have {pods}")),
        cidr => Verdict::warn(format!("clusterCIDR of kube-proxy is {cidr}, and pods have {pods}")),
    }
}

/// Only the cloud has them.
pub(super) fn security_groups(_: &World) -> Verdict {
    Verdict::uncertain(
        "security groups are in the cloud, and not seen from here: that of the nodes has to let in the networks of pods \
         and Services; none of them narrows port 9091 of the compute nodes, which every virtual machine reaches",
    )
}
