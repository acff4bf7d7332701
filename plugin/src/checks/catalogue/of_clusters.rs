//! The checks of any cluster that OpenSDN is, or shall be, installed in.

use super::Category::{
    Cni, DataPlane, Images, KubernetesApi, NetworkPlan, Nodes, Ports, Storage, Surroundings, Time,
};
use super::Mode::{Api, ApiAndProbe, Client, Probe};
use super::Severity::{Fatal, Info, Warning};
use super::{Check, check};
use crate::checks::{
    cluster_api, cni, huge_pages, images, mtu, node_software, nodes, owners, ports, privileged,
    probed_control, probed_data_path, probed_devices, probed_dpdk, probed_functions, probed_matrix,
    probed_members, probed_node, probed_ports, probed_storage, quotas, registry, rights, roles,
    shared_nodes, sizes, subnets, surroundings,
};

/// In the order in which they are reported.
pub(super) const CHECKS: [Check; 42] = [
    check(
        "K001",
        (KubernetesApi, Client, Fatal),
        "the kubeconfig names a cluster that accepts its credentials",
        "Everything else is asked as this user. Expired credentials look like an empty cluster to some tools.",
        "kubectl auth whoami",
        Some(cluster_api::credentials),
    ),
    check(
        "K002",
        (KubernetesApi, Api, Fatal),
        "the versions of the API server and the kubelets are supported",
        "A release is tested with some minor versions of Kubernetes. Kubernetes itself supports kubelets that are up to \
         three minor versions older than the API server, and none that are newer.",
        "kubectl version; kubectl get nodes",
        Some(cluster_api::versions),
    ),
    check(
        "K003",
        (KubernetesApi, Api, Fatal),
        "you have the rights that an installation needs",
        "Half of an installation is worse than none. Who creates roles must have all rights that these grant, or the \
         verbs escalate and bind on them. With --pre every object is applied without being stored, so that webhooks, \
         quotas and policies of the cluster that would refuse one are known, too.",
        "kubectl auth can-i --list",
        Some(rights::rights),
    ),
    check(
        "K004",
        (KubernetesApi, Api, Fatal),
        "the APIs that OpenSDN uses are served, and CRDs store no version that is gone",
        "Webhook configurations, CRDs, Leases and EndpointSlices are used in their versions v1. An object that is stored in \
         a version which the new CRD does not have can never be read again.",
        "kubectl api-versions",
        Some(cluster_api::apis),
    ),
    check(
        "K005",
        (KubernetesApi, Api, Fatal),
        "no other tool manages an installation of OpenSDN here",
        "Two tools that manage one object change it in turns, and pods are restarted each time.",
        "kubectl opensdn install --adopt --dry-run=server",
        Some(owners::owners),
    ),
    check(
        "K006",
        (KubernetesApi, Api, Fatal),
        "the namespaces of components let privileged pods run",
        "Components use the network of their nodes, and vrouters load a kernel module. Pod Security refuses such pods \
         where the namespace enforces baseline or restricted, OpenShift without a SecurityContextConstraints, and so may \
         policies and webhooks of the cluster. In a namespace that is there a pod on the network of the node, privileged and \
         with a folder of it, is created by dry run, which stores nothing; if it is refused, one without these is tried, so that \
         quotas and their like do not count. Where you may not create pods the labels of the namespace say it, or nothing.",
        "kubectl label namespace tf pod-security.kubernetes.io/enforce=privileged --overwrite",
        Some(privileged::pod_security),
    ),
    check(
        "K007",
        (KubernetesApi, Api, Warning),
        "no webhook whose server is gone refuses our objects",
        "A webhook with failurePolicy Fail and without a ready endpoint refuses every object that it matches.",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        Some(cluster_api::webhooks),
    ),
    check(
        "K008",
        (KubernetesApi, Api, Warning),
        "quotas and limits leave room for the components and for our own programs",
        "A ResourceQuota that is used up refuses pods; one for limits refuses pods that have none. Databases do not start \
         with less memory than they are given.",
        "kubectl describe resourcequota,limitrange -A",
        Some(quotas::quotas),
    ),
    check(
        "N101",
        (Nodes, Api, Fatal),
        "each component has nodes to run on",
        "A selector that matches no ready, schedulable node leaves its component without a pod. kubeadm gives the label \
         control-plane with an empty value since 1.24, and not master; k3s and RKE2 give it the value true. Services that \
         vote have no more tolerance with four members than with three.",
        "kubectl get nodes --show-labels",
        Some(roles::roles),
    ),
    check(
        "N102",
        (Nodes, Api, Fatal),
        "the nodes that components run on are ready, without pressure, and of a known architecture",
        "What is on a lost node is lost with it; a node under pressure evicts pods. The images are built for amd64.",
        "kubectl describe nodes",
        Some(nodes::health),
    ),
    check(
        "N103",
        (Nodes, Api, Warning),
        "the nodes have Linux kernels for which there is a vrouter module, and software that upstream knows",
        "The module is built for the running kernel. Upstream's images from before February 2026 have modules for kernels of \
         RHEL and its kin; later ones build it on the node, as the one for Ubuntu does, which needs the kernel's headers there \
         (kernel-devel, linux-headers): a pod on the node shows whether it can be (D301). Node managers ask containerd, CRI-O \
         and Docker what runs, containerd at its usual socket. Other systems and runtimes are uncertain: upstream's list of \
         platforms is not public.",
        "kubectl get nodes -o wide",
        Some(node_software::software),
    ),
    check(
        "N104",
        (Nodes, Api, Warning),
        "nodes of the control plane have the processors, memory and disk that are documented",
        "Upstream documents 4 cores, 64 GB of memory and 300 GB of disk for a node with all controllers, and 32 GB of memory \
         and 64 GB of disk for a small one of tf-operator's. Less than the small one ends in databases that are killed. What \
         counts is what the machine has without huge pages and without the requests of other pods there, Kubernetes' own \
         (priority class system-…) left out. Heaps of Cassandra (maxHeapSize) and its disks (minimumDiskGB) count in sum.",
        "kubectl describe nodes -l node-role.kubernetes.io/control-plane",
        Some(sizes::sizes),
    ),
    check(
        "N105",
        (Nodes, Api, Fatal),
        "each node has an address of its own, of IPv4",
        "Members of databases are known by the addresses of their nodes. Two nodes with one address are one member that \
         changes. Whether names resolve only a pod on the node shows.",
        "kubectl get nodes -o wide",
        Some(nodes::addresses_verdict),
    ),
    check(
        "N106",
        (Nodes, Probe, Warning),
        "names of databases lead to their nodes, where tf-operator runs",
        "tf-operator names the members of Cassandra, RabbitMQ and ZooKeeper by the host names of their nodes in the domain of the \
         cluster, as m1.cluster.local; on OpenShift the seeds of Cassandra alone. The DNS of a cluster knows no nodes there, \
         unless it is configured to: the members find each other by /etc/hosts, or not at all. The pod that looks asks the DNS of \
         the node. Only nodes with these are looked at, though others are given such names too. Our operator knows members by \
         addresses.",
        "kubectl debug node/NODE -it --image=busybox -- sh -c 'echo ADDRESS MEMBER.DOMAIN >>/host/etc/hosts'",
        Some(probed_members::names),
    ),
    check(
        "N107",
        (Nodes, Api, Fatal),
        "no node has two groups of vrouters",
        "A node has one vhost0, one kernel module and one CNI configuration. Of two groups of one namespace the pod of the \
         second stays Pending there, as pods of vrouters keep apart; those of two namespaces take them from each other. \
         Admission compares node selectors, and refuses those of which one has all labels of the other; that others meet on \
         a node by its labels, or by taints that are gone, shows only here.",
        "kubectl patch managers.tf.tungsten.io NAME -n NAMESPACE --type=json -p \
         '[{\"op\":\"add\",\"path\":\"/spec/services/vrouters/1/spec/commonConfiguration/nodeSelector\",\"value\":{\"LABEL\":\"VALUE\"}}]'",
        Some(shared_nodes::data_planes),
    ),
    check(
        "P201",
        (Ports, Probe, Fatal),
        "the ports of the components are free on their nodes",
        "All components are on the network of their nodes. A port that another process has is no port for them. What our own \
         pods hold is theirs.",
        "ss -lntup",
        Some(probed_ports::free),
    ),
    check(
        "P202",
        (Ports, Api, Fatal),
        "no other pod claims a port of the components on their nodes",
        "hostPort, and ports of pods on the network of the node: Calico's Felix has 9091 for its metrics, which is the \
         agent's, BIRD 179, which is the control node's, Grafana often 3000, which is the web UI's. A port among those that Services are given \
         on every node (30000 to 32767, or what the API server has set) may be taken by one of these later.",
        "kubectl get pods -A -o wide",
        Some(ports::claimed),
    ),
    check(
        "P203",
        (Ports, Probe, Fatal),
        "the nodes reach each other on every port that is needed",
        "Firewalls and security groups between nodes drop what they do not know, GRE and UDP 6635 and 4789 among it. Components of the \
         control plane need all ports of each other; vrouters need those of control nodes (5269, 8093, 53), of the Config API \
         (8082) and of collectors (8086), and UDP of each other. GRE is not tried: that needs more rights.",
        "nc -zv NODE PORT",
        Some(probed_matrix::reachable),
    ),
    check(
        "P204",
        (Ports, Probe, Warning),
        "no firewall is active on the nodes",
        "firewalld and rules of their own on nodes drop ports that were not opened. Rules are not read: that needs more rights. \
         P203 tries the ports.",
        "nft list ruleset",
        Some(probed_ports::firewalls),
    ),
    check(
        "P205",
        (Ports, Api, Fatal),
        "no two services want one port of a node",
        "All components are on the network of their nodes, so that of two services with one port the second does not start: \
         two Controls, two Managers on the same nodes, a port that was set to that of another component. Admission compares \
         services of one object whose selectors show that they share nodes. Addresses are not compared: what listens on \
         127.0.0.1 alone counts too.",
        "kubectl patch managers.tf.tungsten.io NAME -n NAMESPACE --type=json -p \
         '[{\"op\":\"add\",\"path\":\"/spec/services/controls/1/spec/commonConfiguration/nodeSelector\",\"value\":{\"LABEL\":\"VALUE\"}}]'",
        Some(shared_nodes::ports_of_services),
    ),
    check(
        "D301",
        (DataPlane, Probe, Fatal),
        "a vrouter module for the running kernel is there, or can be built",
        "Without the module the vrouter does not start. Images since February 2026 build it on the node, with its kernel's headers. \
         With Secure Boot an unsigned module is not loaded. Before an upgrade of vrouters the module that is loaded \
         counts for nothing: it goes with the earlier pod. Vrouters on DPDK have none.",
        "uname -r; mokutil --sb-state",
        Some(probed_data_path::module),
    ),
    check(
        "D302",
        (DataPlane, Probe, Warning),
        "no other data path has the interface",
        "A bridge of Open vSwitch, or interfaces of another CNI, on the interface of the fabric take its packets.",
        "ip -d link",
        Some(probed_data_path::others),
    ),
    check(
        "D303",
        (DataPlane, Probe, Fatal),
        "the interface of the fabric is there, up, and has an address",
        "vhost0 takes the address of this interface over; with L3MH there are several, and each is looked at. Where \
         physicalInterface names none it is the one by which the node reaches vrouterGateway, else its control nodes. For DPDK, \
         upstream's is built with drivers for some devices only.",
        "ip address",
        Some(probed_data_path::interface),
    ),
    check(
        "D304",
        (DataPlane, ApiAndProbe, Fatal),
        "the MTUs fit together",
        "A packet of a pod grows by the encapsulation: VXLAN 50 bytes, MPLS over UDP 46, MPLS over GRE 42, with the frame of \
         Ethernet that is in it. What does not fit is dropped where fragments are not allowed. Counted are those that \
         encapsulationPriorities names; where none is named, the check says for which it is too much. With --probe nodes of \
         vrouters also send each other packets of that size by UDP, which may not be split on the way (DF): the path between \
         two nodes may carry less than their interfaces.",
        "kubectl get vrouters -A -o custom-columns=NAME:.metadata.name,MTU:.spec.serviceConfiguration.cniMTU",
        Some(mtu::mtu),
    ),
    check(
        "D305",
        (DataPlane, Probe, Info),
        "no offload of the fabric's interface is known to lose packets",
        "A vrouter leaves checksums of tunnelled packets to an interface that says that it computes any. vmxnet3 says so, and \
         on some hosts of VMware drops such packets unless its offload is off; upstream has a function that switches it \
         off, which nothing calls. Nothing is known here against other drivers.",
        "ethtool -K INTERFACE tx off",
        Some(probed_devices::offloads),
    ),
    check(
        "D306",
        (DataPlane, ApiAndProbe, Fatal),
        "nodes have the huge pages that vrouters ask for",
        "A pod that asks for huge pages is not scheduled where the kubelet has none. The kubelet counts them when it starts: \
         pages that are allocated later are seen after its restart. On the node they have to be free while no vrouter runs, \
         and mounted: upstream's agent ends where they are not. DPDK takes as much of each NUMA node.",
        "kubectl get nodes -o custom-columns='NAME:.metadata.name,2Mi:.status.allocatable.hugepages-2Mi,1Gi:.status.allocatable.hugepages-1Gi'",
        Some(huge_pages::huge_pages),
    ),
    check(
        "D307",
        (DataPlane, Probe, Fatal),
        "devices can be given to DPDK",
        "The kernel needs the module of dpdkUioDriver, or the vrouter ends when it binds the interface: vfio-pci, \
         uio_pci_generic, or mlnx, which binds nothing. vfio-pci takes a device of PCI with all of its group of the IOMMU, \
         or without an IOMMU if that was allowed; uio_pci_generic works neither in lockdown nor where an IOMMU translates. \
         Which cores are free is not looked at.",
        "lspci -k; ls /sys/kernel/iommu_groups/*/devices",
        Some(probed_dpdk::can_be_given),
    ),
    check(
        "D308",
        (DataPlane, Probe, Fatal),
        "interfaces have the virtual functions that are asked for",
        "The agent writes their number when it starts, and continues where there is no such interface, or where the kernel \
         refuses it: more than the device can have, or another number while there are some. With another count of numbers \
         than of interfaces it ends. Pods ask for functions as a resource of a device plugin, which the node then shows as \
         allocatable.",
        "cat /sys/class/net/INTERFACE/device/sriov_totalvfs /sys/class/net/INTERFACE/device/sriov_numvfs",
        Some(probed_functions::are_there),
    ),
    check(
        "D309",
        (DataPlane, Probe, Fatal),
        "nodes of Control have an address in its dataSubnet",
        "A Control with dataSubnet listens at the address that its node has there. While a node has none, Control does not \
         start there with our operator, and tf-operator configures none of the pods of this Control.",
        "kubectl explain control.spec.serviceConfiguration.dataSubnet; ip address",
        Some(probed_control::in_data_subnet),
    ),
    check(
        "C401",
        (Cni, ApiAndProbe, Fatal),
        "OpenSDN is the network of pods, or another is so by intent",
        "The container runtime takes the first configuration of its folder: containerd by name, CRI-O the one that is set. \
         Only files on nodes say which wins. Vrouters write 10-tf-cni.conf: 05-cilium.conflist, 10-calico.conflist and \
         10-flannel.conflist sort before it. It fails on nodes on which vrouters of a cluster with a kubemanager run; where none \
         runs, or no Manager says it, it warns. Another network below OpenSDN, as that of the nodes, or OpenSDN behind Multus, \
         is a way to run it; so are vrouters whose cloudOrchestrator is openstack, vcenter or none.",
        "kubectl debug node/NODE -it --image=busybox -- ls /host/etc/cni/net.d",
        Some(cni::others),
    ),
    check(
        "C402",
        (Cni, Api, Info),
        "a meta plugin and the vrouters know of each other",
        "Behind a meta plugin it is that which the container runtime calls. Multus is the one that the configuration of the \
         vrouters' CNI names; another needs OpenSDN in its own configuration.",
        "kubectl get daemonsets -A",
        Some(cni::meta_plugin),
    ),
    check(
        "S501",
        (NetworkPlan, ApiAndProbe, Fatal),
        "the networks of pods, Services, nodes and the fabric are apart where they have to be",
        "An address that is in two networks reaches one of them. The network of Services has to be that of the API server, \
         and has the address of the Service kubernetes and of every other in it. Addresses of nodes, link-local ones, those of \
         LinkLocalServices, NestedClusters and nested.vrouter, and docker0 where a node that was looked at has it, are to \
         be apart from all. Pods with addresses of another network of pods are no pods of OpenSDN: of these it warns.",
        "kubectl explain kubemanager.spec.serviceConfiguration",
        Some(subnets::plan),
    ),
    check(
        "S502",
        (NetworkPlan, Probe, Warning),
        "no route of a node leads elsewhere with what is ours",
        "A route that is more specific than ours takes the packets of pods.",
        "ip route",
        Some(probed_node::routes),
    ),
    check(
        "T601",
        (Time, Api, Warning),
        "the clocks of nodes, API server and your machine agree roughly",
        "Certificates are valid from a time on. What is seen here is as coarse as a Lease is renewed, about 10 seconds.",
        "timedatectl",
        Some(nodes::clocks),
    ),
    check(
        "T602",
        (Time, Probe, Fatal),
        "the clocks of nodes are synchronised",
        "Cassandra orders writes by the times that its clients give them, and the Config API takes those of its node: what \
         a node writes whose clock is behind is lost to what was written before.",
        "chronyc tracking",
        Some(probed_node::clocks),
    ),
    check(
        "V701",
        (Storage, Probe, Fatal),
        "there is room where databases write",
        "A full disk stops ZooKeeper and Cassandra. How fast it is is not measured, though they wait for it.",
        "df -h /var/lib/contrail",
        Some(probed_storage::room),
    ),
    check(
        "V702",
        (Storage, Probe, Fatal),
        "no data of an earlier installation is left on nodes",
        "A database that finds the data of another cluster does not start, or joins with what is old.",
        "ls /var/lib/contrail",
        Some(probed_storage::leftovers),
    ),
    check(
        "I801",
        (Images, ApiAndProbe, Fatal),
        "the Secrets for registries are there, and fit the images",
        "A Secret for a registry that is missing, of another type, or for another registry ends in ImagePullBackOff. With --probe \
         --pull nodes pull the images themselves: one of those that are alike, or with --pull=all each, up to 32. Nothing of an \
         image is run, and what was pulled stays on its node.",
        "kubectl get secrets -n tf",
        Some(images::images),
    ),
    check(
        "I802",
        (Images, Client, Info),
        "the registry has the images, as seen from here",
        "Each image that a Manager names is asked for by HEAD, with the logins of your machine, and none is pulled. It is a \
         hint only: nodes have other logins, and the way from them may be another.",
        "skopeo inspect docker://IMAGE",
        Some(registry::has_images),
    ),
    check(
        "X901",
        (Surroundings, Probe, Fatal),
        "Keystone can be reached from the nodes whose components ask it",
        "With authMode keystone components ask Keystone for tokens at its address and adminPort, the web UI at its port; where \
         authParameters say nothing at 127.0.0.1, 35357 and 5000. A connection of TCP is tried from each node with such a \
         component, and nothing is sent: whether it is Keystone that answers is not known. DNS and NTP are not asked.",
        "nc -zv HOST PORT",
        Some(surroundings::reached),
    ),
    check(
        "X902",
        (Surroundings, Probe, Warning),
        "nodes forward packets, do not swap, and do not filter reverse paths strictly",
        "Swap as the guide of Cassandra has it, net.ipv4.ip_forward as kubeadm wants it before it joins a node, and rp_filter as \
         Linux documents it: strict, it drops what comes by another interface than that of its way back. Other settings are made by \
         the init containers of vrouters (sysctl-init.sh); limits of processes, SELinux and what a single interface has set are not looked at.",
        "sysctl -a",
        Some(probed_node::settings),
    ),
    check(
        "X903",
        (Surroundings, Probe, Fatal),
        "the files of the signer External are on the nodes, where tf-operator runs",
        "With certSigner External tf-operator mounts /etc/contrail/ssl/certs and /etc/contrail/ssl/ca-certs of the node into each pod: \
         where a folder is missing, pods stay ContainerCreating. Whether certificates are valid is not looked at. Our operator \
         does not take files of nodes, and says so in the conditions of the Manager.",
        "ls /etc/contrail/ssl/certs /etc/contrail/ssl/ca-certs",
        Some(probed_members::files_of_signer),
    ),
];
