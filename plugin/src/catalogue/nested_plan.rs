//! What can speak against the plan of a nested cluster, explained. Codes, titles and severities are those of
//! `opensdn-nested`; here is what happens otherwise, and what to do.

use opensdn_nested::Code;

use super::{Finder, Meaning, Severity};

/// Code, what happens otherwise, what to do.
const FINDINGS: [(Code, &str, &str); 48] = [
    (
        Code::AddressUnusable,
        "Vrouter agents take a service address that they cannot read for 0.0.0.0, and no virtual machine \
         can send to one of 0.0.0.0/8, 127.0.0.0/8 or from 224.0.0.0 on. The first and the last address of \
         a network of serviceAddresses are refused where they are chosen by hand.",
        "correct serviceAddresses (--service-addresses), --node-address or --vrouter-address",
    ),
    (
        Code::AddressOfUnderlay,
        "Every vrouter takes all traffic to the address, from every virtual network of the cloud and on all \
         ports: no virtual machine reaches that machine any more but by the link-local services.",
        "choose service addresses that nothing else in the cloud has; a node's own address is possible too, \
         by --node-address NODE=NODE and --allow-own-address, which leaves a warning",
    ),
    (
        Code::AddressInSubnet,
        "Every vrouter takes all traffic to the address, from every virtual network of the cloud and on all \
         ports: an interface that has it, or gets it later, is not reached.",
        "choose service addresses outside of all virtual networks; or reserve the address in that network, \
         and give --allow-subnet-overlap, which leaves a warning",
    ),
    (
        Code::AddressOfCluster,
        "Every vrouter takes all traffic to the address, from every virtual network of the cloud and on all \
         ports: the pod, Service or node that has it is not reached any more.",
        "choose other service addresses; where the cluster has other networks than those of the image, give \
         them by --pod-subnets, --service-subnets and --fabric-subnets",
    ),
    (
        Code::AddressInUse,
        "Every vrouter takes all traffic to the address, and neither NAT nor floating addresses are looked at \
         for it: what has the address is not reached from any virtual network any more.",
        "choose service addresses that nothing else has; networks that are only routed to the cloud cannot be \
         seen in it, so make sure that none of them has the address",
    ),
    (
        Code::PortOutOfRange,
        "The Config API stores any number, and vrouter agents keep its lowest 16 bits: 70000 becomes 4464. \
         With port 0 the service never takes TCP.",
        "give a port from 1 to 65535: port of the service in spec.services, or services.vrouterPort",
    ),
    (
        Code::TargetNotIpv4,
        "Vrouter agents leave out each fabric address that is not IPv4, so that the service leads nowhere.",
        "give the IPv4 addresses of the nodes in the fabric: addresses of the service in spec.services, or its \
         flag such as --config-nodes",
    ),
    (
        Code::LoopbackTarget,
        "Each vrouter agent takes 127.0.0.1 for its own compute node. Only the agent is on all of them; what \
         runs on nodes of the control plane is not found there.",
        "give the node's real address in the fabric: on the node itself it takes the same path",
    ),
    (
        Code::DuplicateKey,
        "Vrouter agents keep one row for an address and port, and do not overwrite it: the first wins on each \
         compute node, and the other is dead without a message.",
        "give each node of the underlay a service address of its own: --node-address NODE=IP, or leave it to \
         the plan",
    ),
    (
        Code::KeyTaken,
        "The row that is there wins in all vrouter agents, and a second one would be dead. To replace it cuts \
         off those that use it.",
        "choose another service address by --node-address or --vrouter-address; or replace the row by \
         --take-over, if no user needs it. One that another nested cluster uses, or Nova's, is never replaced",
    ),
    (
        Code::NameTaken,
        "A query of DNS for the name gets the service addresses of all rows that have it. kube-manager and \
         provision_linklocal.py find their rows by name and replace them, so a name such as theirs is an error.",
        "leave --naming at scoped, or choose another clusterName (--cluster-name); where both rows lead to the \
         same service, nothing has to be done",
    ),
    (
        Code::NameUnusable,
        "Vrouter agents take each row with metadata in its name, in small letters or large, for Nova's metadata \
         service, and replace its fabric address and port. With a name that is empty or too long, no virtual \
         machine finds the row by DNS; in a row of another owner that is only a warning.",
        "choose a clusterName (--cluster-name) without metadata in it, or another name for the row",
    ),
    (
        Code::PoolTooSmall,
        "Of two rows with one service address and port only the first works. So each node of the control plane \
         gets an address of its own with LinkLocal, and the vrouters one in any case.",
        "add addresses to serviceAddresses (--service-addresses)",
    ),
    (
        Code::Shadowed,
        "Of rows with one address and port the first in the list wins in all vrouter agents. Ours, or one that \
         does the same, is behind a row of another owner and dead.",
        "have the owner remove that row, choose another service address by --node-address or \
         --vrouter-address, or replace the row by --take-over",
    ),
    (
        Code::TargetUnclear,
        "With both, vrouter agents use the addresses and ignore the name, so the row does not do what it says; \
         in a row of another owner that is only a warning. With neither it leads nowhere.",
        "give the row either fabric addresses or a DNS name; ask its owner where it is not yours",
    ),
    (
        Code::DuplicateInList,
        "Vrouter agents keep one row for an address and port, and do not overwrite it: the later one has no \
         effect, and takes one when the first is removed.",
        "ask the owner of the row to correct or remove it; the plan leaves it as it is",
    ),
    (
        Code::AddressUnparsable,
        "The Config API stores any text. Vrouter agents take such a service address for 0.0.0.0, and leave such \
         a fabric address out: the row does not work.",
        "ask the owner of the row to correct or remove it; the plan leaves it as it is",
    ),
    (
        Code::PortInListOutOfRange,
        "The Config API stores any number, and vrouter agents keep its lowest 16 bits: 70000 becomes 4464. The \
         row works on another port than it says, or not at all.",
        "ask the owner of the row to correct or remove it; the plan leaves it as it is",
    ),
    (
        Code::ServedElsewhere,
        "Both rows work. The second service address is taken from the whole cloud without need.",
        "use the service address of the other row for this node, by --node-address or --vrouter-address, if \
         nothing else is on the ports that the node needs there",
    ),
    (
        Code::FabricPeers,
        "The driver of Cassandra asks the first database for its peers, learns their fabric addresses, and \
         drops the service addresses that it was given. Without SNAT the fabric is not reached: kube-manager \
         works with one database, without redundancy.",
        "use connectivity FabricSNAT (--connectivity fabric-snat), or the nodes' own addresses as service \
         addresses: --node-address NODE=NODE and --allow-own-address",
    ),
    (
        Code::EvenMembers,
        "Cassandra and ZooKeeper need more than half of their nodes. With an even number no more of them may \
         fail than with one less; often it is a sign that a node was left out.",
        "name all nodes of the service (--config-database-nodes, --zookeeper-nodes); if these are all, give it \
         an odd number",
    ),
    (
        Code::SnatWillBeOn,
        "With FabricSNAT the nodes reach the control plane by the address of their compute node, which needs \
         fabric_snat on their network. All other virtual machines of the network get it too.",
        "nothing has to be done: nested apply turns it on, and nested remove restores what was before",
    ),
    (
        Code::SnatUnasked,
        "All virtual machines of the network reach the fabric by it, so that the link-local services of the \
         control plane open it to the rest of the cloud without need.",
        "use connectivity FabricSNAT (--connectivity fabric-snat), or turn fabric_snat of the network off if no \
         workload needs it",
    ),
    (
        Code::SnatIsolates,
        "A network with fabric SNAT gets rules behind those of its policies: to the fabric all is allowed, to \
         other networks nothing. Traffic that needed no policy stops, such as that of logical routers and \
         shared route targets; what an attached policy allows stays.",
        "attach a policy that allows the traffic that is needed before nested apply, or move the nodes to a \
         network of their own",
    ),
    (
        Code::SeveralMetadata,
        "Vrouter agents take each row with metadata in its name for Nova's metadata service, and replace its \
         fabric address and port: a row that is meant otherwise does not work.",
        "leave only Nova's, and ask the owners of the others to rename them; the plan leaves them as they are",
    ),
    (
        Code::NetworkMissing,
        "kube-manager takes exactly one network, and finds the interface of each node by the node's address in \
         it. Without the network no pod gets one.",
        "give clusterNetwork (--cluster-network DOMAIN:PROJECT:NAME) as OpenSDN has it",
    ),
    (
        Code::NodeOutside,
        "kube-manager finds the interface below a pod by the InternalIP of its node in clusterNetwork, and the \
         compute node by the host_id of that interface. Where one is missing it leaves the node's pods without \
         network, and at most its debug log says so.",
        "name the network of the nodes in clusterNetwork (--cluster-network), or give kubelet the address in it \
         by --node-ip; where the interface has no host_id, start the virtual machine",
    ),
    (
        Code::ClusterNameTaken,
        "kube-manager deletes every virtual machine and load balancer of the whole cloud that carries the name \
         of its cluster and is not its own: two clusters with one name, nested or not, delete each other's pods.",
        "choose a clusterName (--cluster-name) that no cluster of the whole cloud has; if what has the name is \
         left from this cluster, give --adopt-name",
    ),
    (
        Code::ApiServiceOutside,
        "kube-manager makes the load balancer of each Service in these networks: one whose ClusterIP is in none \
         of them, that of the Kubernetes API above all, is not reached by pods.",
        "give the networks of kubectl get servicecidrs by --service-subnets",
    ),
    (
        Code::PortsOfRelease,
        "Images since 24.1 read the database by CQL, on 9041 by default, and need ZooKeeper; older ones speak \
         Thrift on 9161. A kube-manager that does not find them never gets as far as pods.",
        "plan with --profile cql for images since 24.1, --profile thrift up to 21.x, and correct \
         services.configDatabase.port",
    ),
    (
        Code::PoolsWillBeMade,
        "Without pools vrouter agents drop what goes to the fabric by SNAT over TCP and UDP. kube-manager makes \
         them at each start, but reaches the Config API by SNAT only.",
        "nothing has to be done: nested apply adds the pools of kube-manager before SNAT; every compute node \
         opens their ports",
    ),
    (
        Code::CertificateNames,
        "Clients of the Config API and of Keystone compare the certificate with the address that they connect \
         to, which is a service address with LinkLocal: they refuse the connection.",
        "issue the certificate for the service addresses too, use the nodes' own addresses (--node-address \
         NODE=NODE and --allow-own-address), or connectivity FabricSNAT (--connectivity fabric-snat)",
    ),
    (
        Code::CloudWideExposure,
        "Link-local services are in every virtual network of the cloud, and their flows skip security groups, \
         network policies and application policies. By default the Config API, Cassandra and ZooKeeper ask for \
         no password and RabbitMQ takes guest/guest: any tenant can rewrite or erase the whole cloud.",
        "use connectivity FabricSNAT (--connectivity fabric-snat), which opens the fabric to one network; else \
         set aaa_mode to rbac or cloud-admin, and in RabbitMQ a password and TLS with client certificates; Cassandra and ZooKeeper \
         stay open, as kube-manager is given no login for them",
    ),
    (
        Code::AgentExposed,
        "The CNI plugin on each node needs the agent, and the link-local service for it is in every virtual network \
         of the cloud. The agent asks for no password and adds and deletes ports and virtual machines; no \
         security group or policy can narrow it.",
        "do not run nested clusters on compute nodes with virtual machines that you do not trust",
    ),
    (
        Code::FabricOpened,
        "fabric_snat is set for a network, not for a service: each of its virtual machines opens connections to \
         the whole fabric, behind the address of its compute node.",
        "keep the network for nodes of this cluster, and narrow the way out by its security groups and by \
         firewalls in the fabric",
    ),
    (
        Code::DefaultClusterName,
        "Each cluster for which no name was chosen is called k8s, also those that are not nested. kube-managers \
         of one name delete each other's virtual machines and load balancers in the whole cloud.",
        "choose a clusterName (--cluster-name) of its own; it cannot be changed later",
    ),
    (
        Code::SubnetOfNodes,
        "Pods look for an address of the nodes' network among pods or Services, and do not reach the node that \
         has it.",
        "give the cluster networks (--pod-subnets, --service-subnets, --fabric-subnets) that are not in the \
         cloud",
    ),
    (
        Code::SubnetOfFabric,
        "The network hides the node of the control plane from pods, and no service address may be from it.",
        "choose another network for the cluster: --pod-subnets, --service-subnets or --fabric-subnets",
    ),
    (
        Code::SubnetsEmpty,
        "The image of kube-manager fills in 10.32.0.0/12 for pods, 10.96.0.0/12 for Services and 10.64.0.0/12 \
         for pods in the fabric. Where the Services have another network, pods do not reach them, and \
         the networks of pods may be in use in the cloud already.",
        "give --pod-subnets, --service-subnets and --fabric-subnets, unless the cluster has these",
    ),
    (
        Code::PercentInPassword,
        "kube-manager reads its configuration by Python's ConfigParser with interpolation, for which % has a \
         meaning: the pod ends at each start.",
        "choose a password without %, or give it as KUBERNETES__AUTH__auth_password or \
         KUBERNETES__VNC__rabbit_password with %% for each %",
    ),
    (
        Code::NoAuthentication,
        "no-auth is the default of the containers. Each client that reaches the Config API can change the whole \
         cloud, the nodes of this cluster included, and the link-local services too.",
        "set aaa_mode to rbac or cloud-admin (AAA_MODE of the containers) and use Keystone",
    ),
    (
        Code::VirtualRouterMissing,
        "kube-manager looks for a virtual-router named as the host_id of the node's interface, or equal to it up \
         to the first dot. Without one the pods of the node get no addresses.",
        "provision the compute node under the name that Nova has for it",
    ),
    (
        Code::SeveralNetworks,
        "kube-manager takes exactly one network. Pods of nodes elsewhere get no network, and if nodes of the \
         control plane are elsewhere, pods do not reach the Kubernetes API.",
        "have all nodes, those of the control plane too, in the network that clusterNetwork \
         (--cluster-network) names",
    ),
    (
        Code::BgpPort,
        "Vrouter agents never treat traffic from or to port 179 as that of a link-local service: it is BGP's.",
        "have the service listen on another port, and give that one",
    ),
    (
        Code::SubnetOfOtherCluster,
        "The networks of pods are apart from each other until a policy connects them. Then an address can be \
         that of a pod in either cluster, and one of the two is not reached.",
        "choose other networks (--pod-subnets, --service-subnets, --fabric-subnets) if pods of both clusters \
         are ever to reach each other",
    ),
    (
        Code::PasswordUnusable,
        "kube-manager reads a password from a line of a file, without blanks at its ends, and writes that of Keystone \
         into JSON as it is: a line break, and in Keystone's password a quotation mark or a backslash, keep it from \
         getting a token. It ends at each start.",
        "change the password in the service and in the Secret; give the Secret to nested plan by --keystone-secret or \
         --rabbitmq-secret, and it is looked at",
    ),
    (
        Code::PoolsOverwritten,
        "kube-manager replaces the port translation pools of the whole cloud by its own at each start, with fabric SNAT and \
         without: what another has set there for his networks is gone then.",
        "those who have set them have to know it: nothing keeps kube-manager from it",
    ),
    (
        Code::MayNotWrite,
        "The Config API says of an object whether a login may write it (/obj-perms). Without the right nothing of it can be \
         written; where the login is refused as a whole, nothing can be read either. Where aaa_mode is cloud-admin the user \
         needs a role of the name admin. Rules of rbac about a kind of object are not asked: they show at the write.",
        "correct user, password, project and domains in the login's Secret or the variables OS_..., and give the user \
         the role",
    ),
];

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    FINDINGS.iter().map(|(code, why, remedy)| {
        let meaning = Meaning {
            found_by: Finder::NestedPlan,
            policy: None,
            severity: match code.severity() {
                opensdn_nested::Severity::Error => Severity::Deny,
                opensdn_nested::Severity::Warning => Severity::Warn,
            },
            title: code.title().to_owned(),
            why: (*why).to_owned(),
            remedy: (*remedy).to_owned(),
            rules: Vec::new(),
            sources: Vec::new(),
        };
        (code.as_str(), meaning)
    })
}
