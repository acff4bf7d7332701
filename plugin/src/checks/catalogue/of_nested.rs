//! The checks of nested mode.

use super::Category::Nested;
use super::Mode::{self, Api, Probe};
use super::Severity::{Fatal, Warning};
use super::{Check, check};
use crate::checks::nested;

/// In the order in which they are reported.
pub(super) const CHECKS: [Check; 8] = [
    check(
        "Q001",
        (Nested, Mode::Nested, Fatal),
        "the underlay of a nested cluster can be reached",
        "The plugin in a virtual machine asks the agent of its host by a link-local address.",
        "kubectl opensdn nested verify",
        None,
    ),
    check(
        "Q101",
        (Nested, Probe, Fatal),
        "names of nodes resolve on the nodes [OSDN3060]",
        "kube-manager resolves the name of its own node when it starts, and ends if that leads nowhere. Nothing needs the \
         names of other nodes: of these it is a warning.",
        "kubectl opensdn nested hosts",
        Some(nested::names),
    ),
    check(
        "Q102",
        (Nested, Probe, Fatal),
        "the kernels of nodes have macvlan and 8021q [OSDN3068]",
        "The plugin makes an interface of a VLAN and one of macvlan for each pod. The kernel loads their modules when they \
         are needed; kernels that are cut down for clouds do not always have them.",
        "apt-get install linux-modules-extra-$(uname -r) || dnf install kernel-modules-extra",
        Some(nested::modules),
    ),
    check(
        "Q103",
        (Nested, Probe, Fatal),
        "no other CNI configuration is taken before 10-contrail.conf [OSDN3067]",
        "The container runtime takes the first by name: 10-calico.conflist sorts before it, 10-flannel.conflist after. \
         Multus, which calls the plugin itself, may be before it.",
        "ls /etc/cni/net.d",
        Some(nested::other_cni),
    ),
    check(
        "Q104",
        (Nested, Probe, Fatal),
        "the MTU of pods is not above that of the nodes' interface [OSDN3069]",
        "Linux refuses an interface of a VLAN whose MTU is above that of its parent: no pod gets a network, and the log \
         shows another error.",
        "ip link show",
        Some(nested::mtu),
    ),
    check(
        "Q105",
        (Nested, Api, Warning),
        "no CustomResourceDefinition has the name of a kind that kube-manager watches",
        "kube-manager looks for kinds by name alone and takes the last definition of the API server's: \
         NetworkPolicy of crd.projectcalico.org, which Calico leaves behind, comes after Kubernetes' own.",
        "kubectl get crd",
        Some(nested::hijacked),
    ),
    check(
        "Q106",
        (Nested, Api, Warning),
        "the security group of the nodes lets in the networks of pods and Services [OSDN3070]",
        "Packets of pods leave and reach the nodes' interfaces under their own addresses. Neither this group nor any policy \
         narrows what virtual machines reach by link-local services.",
        "openstack security group rule list",
        Some(nested::security_groups),
    ),
    check(
        "Q107",
        (Nested, Api, Warning),
        "kube-proxy knows the network of pods [OSDN3071]",
        "Connections to a ClusterIP that do not come from that network are masqueraded, and with externalTrafficPolicy Local \
         kube-proxy knows by it which come from pods.",
        "kubectl -n kube-system edit configmap kube-proxy",
        Some(nested::node_ports),
    ),
];
