//! The configuration files of a node's programs. Pure: from plan to text. Deliberately not
//! here: where the files are written and who reads them (`node`).

use serde_json::{Value, json};

use super::addresses::{NAME_SERVER, NODE_RANGE, NodePlan, POD_RANGE};
use super::wiring::NODE_FOLDER;
use crate::sandbox::control_plane::SERVICE_RANGE;

/// What containerd and kubelet meet at.
pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";
/// The image of a pod's first process.
pub(super) const PAUSE_IMAGE: &str = "opensdn.lab/pause:1";

/// containerd's, in its own format.
pub(super) fn containerd() -> String {
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]

[grpc]
  address = "{SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"
"#
    )
}

/// The pods' network of a node: a bridge of its own. Pods keep their addresses on the way to
/// other nodes. They know the way to pods, nodes and services, and no other.
pub(super) fn pod_network(node: &NodePlan) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "pods",
                "isGateway": true,
                "hairpinMode": true,
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni",
                    "ranges": [[{"subnet": node.pods}]],
                    "routes": [{"dst": POD_RANGE}, {"dst": NODE_RANGE}, {"dst": SERVICE_RANGE}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// kubelet's.
pub(super) fn kubelet(cgroup: &str) -> Value {
    let file = |name: &str| format!("{NODE_FOLDER}/{name}");
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": file("kubelet.crt"),
        "tlsPrivateKeyFile": file("kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "clusterDNS": [NAME_SERVER],
        "clusterDomain": "cluster.local",
        // The machine's name servers are none of the lab's business.
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        // Kubelets of one kernel that shared a root would remove each other's pods.
        "cgroupRoot": format!("/{cgroup}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        // The disk is the machine's: that others fill it must neither evict pods nor remove
        // images, which no registry could bring back.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageMaximumGCAge": "0s",
        "readOnlyPort": 0,
        "serializeImagePulls": false,
        "nodeStatusUpdateFrequency": "3s",
        "nodeLeaseDurationSeconds": 12,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    })
}

/// kube-proxy's. What a network namespace does not let it set it leaves alone.
pub(super) fn kube_proxy(node: &NodePlan) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": format!("{NODE_FOLDER}/kube-proxy.kubeconfig")},
        "hostnameOverride": node.name,
        "clusterCIDR": POD_RANGE,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
        "nodePortAddresses": ["primary"],
    })
}

#[cfg(test)]
mod tests {
    use super::super::addresses::nodes;
    use super::*;

    #[test]
    fn nothing_of_a_node_is_anothers() {
        let all = nodes(2);
        assert_ne!(pod_network(&all[0]), pod_network(&all[1]));
        assert_ne!(kubelet("opensdn-lab-a-node-1"), kubelet("opensdn-lab-a-node-2"));
        assert_ne!(kube_proxy(&all[0]), kube_proxy(&all[1]));
    }

    #[test]
    fn kubelet_keeps_to_its_own_cgroup_and_asks_no_foreign_name_server() {
        let config = kubelet("opensdn-lab-a-node-1");
        assert_eq!(config["cgroupRoot"], "/opensdn-lab-a-node-1");
        assert_eq!(config["resolvConf"], "");
    }
}
