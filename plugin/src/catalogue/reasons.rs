//! Why the rules in the schemas are there. Their texts and fields are in `crds/RULES.md`; a schema
//! has no room for reasons.

/// Why a rule is there.
pub(super) struct Reason {
    code: &'static str,
    /// What is wrong.
    pub(super) title: &'static str,
    /// Why it is wrong.
    pub(super) why: &'static str,
    /// What to do.
    pub(super) remedy: &'static str,
}

/// The reason of a code.
pub(super) fn of(code: &str) -> Option<&'static Reason> {
    REASONS.iter().find(|reason| reason.code == code)
}

const fn reason(
    code: &'static str,
    title: &'static str,
    why: &'static str,
    remedy: &'static str,
) -> Reason {
    Reason { code, title, why, remedy }
}

const REASONS: &[Reason] = &[
    reason(
        "OSDN1106",
        "a service has no name of its own, or one that nothing can be made of",
        "Each item of a list becomes an object with its metadata.name. Without a name none \
         is made; with the same name twice two specifications change one object in turns, \
         and its pods are restarted without end. Volumes of the pods are named after it, and \
         the name of a volume has no dots.",
        "give each service a different metadata.name of lower-case letters, digits and -",
    ),
    reason(
        "OSDN1107",
        "the name of a service is too long",
        "The names of StatefulSet or DaemonSet and pods are made from it, and a pod's name is also \
         a label of at most 63 characters. A longer one gives a workload whose pods are all refused.",
        "choose a shorter metadata.name; the message says how long it may be",
    ),
    reason(
        "OSDN1213",
        "a toleration that Kubernetes does not take",
        "The tolerations are copied into the pods as they are. A wrong effect or operator is found \
         only when the StatefulSet is created, which then fails again and again. A list that you \
         give replaces the default, which tolerates every taint.",
        "use effect NoSchedule, PreferNoSchedule or NoExecute (or none), operator Exists without a \
         value or Equal with one, and tolerationSeconds with NoExecute only",
    ),
    reason(
        "OSDN1215",
        "ubuntu is written in another way",
        "The word ubuntu selects the image that builds the kernel module and which host \
         folders are mounted. tf-operator takes everything else for RHEL, Ubuntu with a \
         capital letter too.",
        "write ubuntu; for all other systems any other word will do",
    ),
    reason(
        "OSDN1405",
        "the protocol of Keystone is neither http nor https",
        "It becomes a part of the address of Keystone, and the TLS options are written for https \
         only: with another word no service can log in.",
        "write https (or http, which sends passwords in the clear)",
    ),
    reason(
        "OSDN1410",
        "a mode of access that the daemons do not know",
        "The Config API takes cloud-admin for a word that it does not know, whatever was \
         meant.",
        "write no-auth, rbac or cloud-admin",
    ),
    reason(
        "OSDN1502",
        "Cassandra's heap is not given as the JVM reads it",
        "The two sizes go to the JVM as -Xms and -Xmx. Where one is malformed, or the \
         smallest is above the largest, the JVM does not start, and no status says why.",
        "give both minHeapSize and maxHeapSize, such as 2g and 4g, or neither",
    ),
    reason(
        "OSDN1507",
        "a number for Cassandra is negative",
        "It goes into cassandra.yaml as it is, and Cassandra does not start with it.",
        "use 0 for Cassandra's own default, or a positive number",
    ),
    reason(
        "OSDN1511",
        "ports of ZooKeeper are out of range or the same",
        "ZooKeeper listens on each of them on the host's network. It cannot listen twice on one, \
         and ends.",
        "use four different ports from 1 to 65535, or leave them out",
    ),
    reason(
        "OSDN1512",
        "ports of RabbitMQ are out of range or the same",
        "RabbitMQ also listens on port + 10000 and port + 20000 (management, distribution between \
         its nodes). Above 65535 there are none, and two listeners cannot share one.",
        "use a port up to 45535 and an erlEpmdPort that differs from all three",
    ),
    reason(
        "OSDN1513",
        "a mode of mirroring that cannot be carried out",
        "The modes exactly and nodes need parameters for which the resource has no field. RabbitMQ \
         then refuses its definitions, and with them its users.",
        "write all, or leave it out",
    ),
    reason(
        "OSDN1514",
        "RabbitMQ does not know this handling of partitions",
        "It goes into rabbitmq.conf as it is. With any other word RabbitMQ does not boot.",
        "write autoheal, pause_minority or ignore",
    ),
    reason(
        "OSDN1515",
        "the erlang cookie has characters that do not survive",
        "The cookie is written into a shell script without quotes. What the shell reads \
         otherwise (blanks, quotes, $, &, ; and the like) breaks it, and the nodes of \
         RabbitMQ refuse each other.",
        "use letters, digits, and _ - + / = only, made for instance by: openssl rand -hex 20",
    ),
    reason(
        "OSDN1519",
        "a port is out of range",
        "The daemon that should listen on it ends at once and is restarted without end.",
        "use a port from 1 to 65535 that is free on the nodes, or leave it out",
    ),
    reason(
        "OSDN1602",
        "the Config API has no worker",
        "One configuration file is written per worker. With none the API waits for its file \
         without limit.",
        "use 1 or more, at most the number of the node's cores",
    ),
    reason(
        "OSDN1603",
        "workers of the Config API get ports that do not exist",
        "The first worker has the ports of the service, the second those 10000 and 20000 \
         above, each further one the next. There is none above 65535.",
        "lower apiWorkerCount, or the port that the message names",
    ),
    reason(
        "OSDN1604",
        "a part of a link-local service is malformed",
        "The workloads reach ip:port, and the vrouter forwards to the service in the fabric. \
         A part that is malformed reaches the provisioner as it is, and the service is \
         not there.",
        "give name, ip, port, ipFabricServiceHost and ipFabricServicePort in the form that the message says",
    ),
    reason(
        "OSDN1605",
        "the management address is no IP address",
        "The device managers give it to the devices as their own address.",
        "write an IPv4 or IPv6 address, or leave it out",
    ),
    reason(
        "OSDN1606",
        "an autonomous system number that the Config API refuses",
        "It takes 1 to 65535, and numbers of four bytes only where these are switched on; the provisioner ends \
         with an error otherwise. 23456, 65535 and 4294967295 are reserved in BGP, though, and neighbours may \
         refuse them.",
        "use a private number from 64512 to 65534, or set bgpEnable4Byte: true for larger ones",
    ),
    reason(
        "OSDN1609",
        "the data network of the control nodes is no network",
        "The control node listens on its own address within this network. Where it cannot be \
         read, the pods are not configured.",
        "write the network with its prefix length, such as 10.1.0.0/24",
    ),
    reason(
        "OSDN1615",
        "a time to live that is no number of hours",
        "A number of hours below 0 means nothing to the collector, but for -1, which is its own default.",
        "use a number of hours from 1, or -1 for the collector's default",
    ),
    reason(
        "OSDN1702",
        "the networks of the fabric are no networks",
        "kube-manager splits the text at blanks and ends with an error on whatever is no \
         network: two with a comma between them are none.",
        "write IPv4 networks separated by spaces, such as 10.64.0.0/12",
    ),
    reason(
        "OSDN1704",
        "the pool of floating IP addresses cannot be read",
        "kube-manager reads the text as a Python dict with four keys; without them it ends with an \
         error for each Service and each Ingress that should get an address from outside.",
        "write {} for none, or the dict that the message shows",
    ),
    reason(
        "OSDN1802",
        "the gateway is no address",
        "The vrouter reaches other nodes through it, and with L3 multihoming through several. Of what is no address there is \
         no route, and the agent does not reach its control nodes.",
        "set vrouterGateway to an address, or to several separated by commas",
    ),
    reason(
        "OSDN1803",
        "the data network of the vrouter is no network",
        "tf-operator's process ends when it reads such a value, and with it the management of the \
         whole cluster; there is no node that it could fit.",
        "write the network with its prefix length, such as 10.0.0.0/24",
    ),
    reason(
        "OSDN1804",
        "the physical interface has no name that Linux takes",
        "The agent looks for the interface on the node and ends if it is not there. Names \
         have at most 15 characters, without blank or slash.",
        "write the name that ip link shows, or, for L3 multihoming, several separated by \
         commas or spaces",
    ),
    reason(
        "OSDN1805",
        "the network for multi-homing is no network",
        "The addresses of the nodes' loopback interfaces are taken from it.",
        "write an IPv4 network with its prefix length, such as 100.1.1.0/24",
    ),
    reason(
        "OSDN1806",
        "a number of huge pages below 0",
        "The kernel's module is given the number as it is.",
        "write the number of pages, or leave it out",
    ),
    reason(
        "OSDN1808",
        "the MTU of the pods is out of range",
        "The kernel gives no interface of a pod less than 68 or more than 65535. Below 1280 IPv6 does not work, and \
         what is larger than the MTU of the network card less 50 is lost.",
        "use at most the MTU of the network card less 50, or leave it out (0 is the same)",
    ),
    reason(
        "OSDN1810",
        "the name cannot be given to an environment variable of the vrouter",
        "A name that the shell does not accept ends the script that reads it. POD_IP and \
         NODE_TYPE the container has from the operator: they take effect in one place and \
         not in the other.",
        "use letters, digits and _, not a digit first, and neither POD_IP nor NODE_TYPE",
    ),
    reason(
        "OSDN1814",
        "DPDK is switched on in one place only",
        "AGENT_MODE dpdk alone starts no forwarder: the pods have no DPDK container, and the \
         agent waits for one. Our operator makes one of the field dpdk or of a profile that has it; tf-operator drops both.",
        "remove AGENT_MODE, and give dpdk",
    ),
    reason(
        "OSDN1901",
        "no signer signs the certificates",
        "A signer's name of Kubernetes has a domain and a slash. With any other word the requests \
         for certificates are refused, and no service starts.",
        "write SelfSignedCA or External, or the name of a signer that exists in the cluster",
    ),
    reason(
        "OSDN3001",
        "a link-local service of a nested cluster would have an address that cannot be one",
        "Every vrouter takes the traffic to the address: one of 0.0.0.0/8, 127.0.0.0/8 or above 223 is \
         none that a workload can send to, and an agent reads IPv4 alone. A range that ends before it starts \
         has no address.",
        "give addresses that nothing else in the cloud has, such as 10.10.10.1-10.10.10.9",
    ),
    reason(
        "OSDN3006",
        "a port of the underlay is none",
        "TCP has the ports from 1 to 65535; with 0 the row of the vrouters never matches.",
        "give the port of the service, or remove the field for the usual one",
    ),
    reason(
        "OSDN3007",
        "a service of the underlay has no IPv4 address of another machine",
        "The vrouters send what comes for the service to this address, by IPv4 alone. 127.0.0.1 would be \
         the compute node of each workload, or the machine that asks.",
        "give the addresses of the nodes in the fabric",
    ),
    reason(
        "OSDN3031",
        "the network of the nodes has no name that OpenSDN can have",
        "kube-manager reads it as a literal of Python and joins it by colons; what has quotes, braces or \
         colons in it ends kube-manager or names another network.",
        "give domain, project and name as OpenStack shows them",
    ),
    reason(
        "OSDN3036",
        "a port does not fit what kube-manager speaks",
        "From R24.1 on kube-manager reads the database by CQL, on 9041 by default; on the port of Thrift it never gets \
         as far as pods. Neither a NestedCluster nor a nested Kubemanager is for older images.",
        "give the port of CQL; for images up to R21.4 kubectl opensdn nested plan has --profile thrift",
    ),
    reason(
        "OSDN3088",
        "the vrouter below the nodes has several addresses",
        "The CNI plugin asks the vrouter of the compute node below by one URL, which is made of what stands here: \
         with two addresses it is none, and no pod gets an interface. On every node it is the same address, \
         that of the link-local service for port 9091.",
        "leave one address in vrouter.addresses: that of the link-local service CLUSTER-vrouter, which kubectl opensdn \
         nested plan shows",
    ),
];

#[cfg(test)]
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    REASONS.iter().map(|reason| reason.code)
}
