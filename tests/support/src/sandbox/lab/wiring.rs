//! The shell lines that wire a lab: a bridge in a network of its own, a cable from it to each
//! machine, addresses and routes. Pure text. No machine gets a default route, so no packet can
//! leave. Deliberately not here: who runs the lines (`machine`).

use std::fmt::Write as _;

use super::addresses::{CONTROL, NodePlan, PREFIX};
use crate::sandbox::control_plane::SERVICE_RANGE;

/// Where a node finds its own folder.
pub(super) const NODE_FOLDER: &str = "/mnt/node";
/// Where it finds kubelet and kube-proxy.
pub(super) const PROGRAMS: &str = "/mnt/programs";

/// Of a node.
const PROCESSORS: u8 = 8;

/// For the switch: the bridge.
pub(super) const SWITCH: &str = "\
ip link set lo up
ip link add bridge type bridge
ip link set bridge up
";

/// For the switch: a cable to the machine whose first process is `process`. Its end there is
/// `eth0`, the end here is called after the machine. A cable of the machine's last life may
/// still be about to go with it.
pub(super) fn cable(name: &str, process: u32) -> String {
    format!(
        "ip link delete {name} 2>/dev/null || true\n\
         ip link add {name} type veth peer name eth0 netns {process}\n\
         ip link set {name} master bridge up\n"
    )
}

/// For the control plane: its address, and the way to every pod.
pub(super) fn control(nodes: &[NodePlan]) -> String {
    let mut text = address(&CONTROL.to_string());
    text.push_str(&routes(nodes.iter()));
    text
}

/// For a node: its address, the way to other nodes' pods, and to services.
pub(super) fn node(node: &NodePlan, all: &[NodePlan]) -> String {
    let mut text = address(&node.address.to_string());
    text.push_str(&routes(all.iter().filter(|other| *other != node)));
    // Without a route a process of the node would get "network unreachable" before
    // kube-proxy's rule can turn the address into a pod's.
    let _ = writeln!(text, "ip route add {SERVICE_RANGE} dev eth0");
    text.push_str("echo 1 >/proc/sys/net/ipv4/ip_forward\n");
    text
}

fn address(address: &str) -> String {
    format!("ip link set lo up\nip address add {address}/{PREFIX} dev eth0\nip link set eth0 up\n")
}

fn routes<'a>(nodes: impl Iterator<Item = &'a NodePlan>) -> String {
    let lines = nodes.map(|node| format!("ip route add {} via {}\n", node.pods, node.address));
    lines.collect()
}

/// For a node: files of its own. It shares the machine's programs and libraries, but keeps
/// `/etc`, `/opt`, `/var` and `/run` for itself, so that no two nodes meet there, not even in the
/// `hostPath` of a pod. Its `/sys` shows the interfaces of its own network; control groups are those of this machine, as
/// kubelet and containerd need them. It shows as many processors as the nodes have that OpenSDN asks for, whatever this
/// machine has, of which those are online that it has: kubelet counts all, and pods may use those that are online. Pods for
/// whose requests two are not enough run well on two.
pub(super) fn files(name: &str, folder: &str, programs: &str) -> String {
    let last = PROCESSORS - 1;
    format!(
        "\
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/node /mnt/programs /mnt/sys
mount -t sysfs sysfs /mnt/sys
mount --rbind /sys/fs/cgroup /mnt/sys/fs/cgroup
umount --recursive --lazy /sys
online=$(cat /mnt/sys/devices/system/cpu/online)
mount -t tmpfs -o mode=755 tmpfs /mnt/sys/devices/system/cpu
if [ -d /mnt/sys/devices/system/node ]; then mount -t tmpfs tmpfs /mnt/sys/devices/system/node; fi
for number in $(seq 0 {last}); do
  mkdir -p /mnt/sys/devices/system/cpu/cpu$number/topology
  echo $number >/mnt/sys/devices/system/cpu/cpu$number/topology/core_id
  echo 0 >/mnt/sys/devices/system/cpu/cpu$number/topology/physical_package_id
done
echo $online >/mnt/sys/devices/system/cpu/online
mount --move /mnt/sys /sys
rmdir /mnt/sys
mount --make-rshared /
mount -t proc proc /proc
mount --bind '{folder}' {NODE_FOLDER}
mount --bind '{programs}' {PROGRAMS}
cd {NODE_FOLDER}
mkdir -p etc/cni opt var/lib/kubelet var/lib/containerd var/lib/cni var/log/pods var/log/containers \
 var/tmp var/cache volumes
ln -sfn /run var/run
for file in alternatives group iproute2 ld.so.cache ld.so.conf ld.so.conf.d mke2fs.conf \
 nsswitch.conf passwd protocols services; do
  if [ -e /etc/$file ]; then cp -a /etc/$file etc/; fi
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/lock
mount --bind {NODE_FOLDER}/var /var
if [ -d /opt ]; then mount --bind {NODE_FOLDER}/opt /opt; fi
echo {name} >etc/hostname
echo '127.0.0.1 localhost {name}' >etc/hosts
: >etc/resolv.conf
mount --bind {NODE_FOLDER}/etc /etc
hostname {name}
"
    )
}

#[cfg(test)]
mod tests {
    use super::super::addresses::nodes;
    use super::*;

    #[test]
    fn node_reaches_the_pods_of_others_and_services_and_nothing_else() {
        let all = nodes(3);
        let expected = "\
ip link set lo up
ip address add 10.90.0.12/24 dev eth0
ip link set eth0 up
ip route add 10.244.1.0/24 via 10.90.0.11
ip route add 10.244.3.0/24 via 10.90.0.13
ip route add 10.96.0.0/12 dev eth0
echo 1 >/proc/sys/net/ipv4/ip_forward
";
        assert_eq!(node(&all[1], &all), expected);
    }

    #[test]
    fn no_machine_has_a_default_route() {
        let all = nodes(2);
        let text = [control(&all), node(&all[0], &all), SWITCH.into(), cable("a", 1)].concat();
        assert!(!text.contains("default"), "{text}");
    }
}
