//! Why what earlier operators had has no place in ours.

/// Of an object's metadata.
pub(super) const WRITTEN_BY_THE_SERVER: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

const CNI: &str = "vrouters install the CNI: their container vroutercni";
const OPENSTACK: &str = "OpenStack's own installer brings it";

const KINDS: &[(&str, &str)] = &[
    ("Command", "there is no Contrail Command; webui is the user interface"),
    ("ContrailCNI", CNI),
    ("Contrailmonitor", "`kubectl opensdn status` says it"),
    ("Contrailstatusmonitor", "`kubectl opensdn status` says it"),
    ("FernetKeyManager", OPENSTACK),
    ("Keystone", OPENSTACK),
    ("Memcached", OPENSTACK),
    ("Postgres", "only Contrail Command and its Keystone used it"),
    (
        "ProvisionManager",
        "each component has a container provisioner; settings of all vrouters are converted within a Manager",
    ),
    ("Swift", OPENSTACK),
    ("SwiftProxy", OPENSTACK),
    ("SwiftStorage", OPENSTACK),
];

/// Why the kind has no place, if it was one.
pub(super) fn of_kind(kind: &str) -> Option<&'static str> {
    found(KINDS, kind)
}

const SERVICES: &[(&str, &str)] = &[
    ("command", "Command"),
    ("contrailCNIs", "ContrailCNI"),
    ("contrailmonitor", "Contrailmonitor"),
    ("keystone", "Keystone"),
    ("memcached", "Memcached"),
    ("postgres", "Postgres"),
    ("provisionManager", "ProvisionManager"),
    ("swift", "Swift"),
];

/// Why the service of a Manager has no place, if it was one.
pub(super) fn of_service(name: &str) -> Option<&'static str> {
    found(SERVICES, name).and_then(of_kind)
}

const ACCOUNT: &str = "the operator makes accounts and rights of each component";
const FOUND: &str = "instances of one namespace find each other";
const NODES: &str = "the operator finds the members of other components";
const RABBITMQ: &str = "the account is the one of the Rabbitmq";
const FOLDERS: &str = "data are in folders of the nodes, in the places of tf-operator";
const CLUSTER: &str = "the operator reads it from the cluster";
const ANALYTICS: &str =
    "it is a field of the kind Analytics: convert it within a Manager, or set it there";

const FIELDS: &[(&str, &str)] = &[
    ("analyticsConfigAuditTTL", ANALYTICS),
    ("analyticsDataTTL", ANALYTICS),
    ("analyticsFlowTTL", ANALYTICS),
    ("analyticsIntrospectPort", ANALYTICS),
    ("analyticsMonitorIntrospectPort", ANALYTICS),
    ("analyticsPort", ANALYTICS),
    ("analyticsStatisticsTTL", ANALYTICS),
    ("cassandraInstance", FOUND),
    ("cassandraNodesConfiguration", NODES),
    ("clusterConfig", CLUSTER),
    (
        "clusterName",
        "a ring is always called ContrailConfigDB: a Cassandra does not start with data of another",
    ),
    ("clusterRole", ACCOUNT),
    ("clusterRoleBinding", ACCOUNT),
    ("collectorIntrospectPort", ANALYTICS),
    ("collectorMonitorIntrospectPort", ANALYTICS),
    ("collectorPort", ANALYTICS),
    ("configInstance", FOUND),
    ("configNodesConfiguration", NODES),
    ("controlNodesConfiguration", NODES),
    ("hostAliases", "give the nodes those names, by DNS or /etc/hosts"),
    ("hostNetwork", "components always have the network of their node"),
    (
        "keystoneInstance",
        "name the Keystone of your OpenStack in authParameters.keystoneAuthParameters",
    ),
    ("keystoneNodesConfiguration", "name it in authParameters.keystoneAuthParameters"),
    ("kubernetesClusterName", CLUSTER),
    ("nodeManager", "there is a node manager with each component: its container nodemanager"),
    ("rabbitmqInstance", FOUND),
    ("rabbitmqNodesConfiguration", NODES),
    ("rabbitmqPassword", RABBITMQ),
    ("rabbitmqUser", RABBITMQ),
    ("rabbitmqVhost", RABBITMQ),
    ("redisPort", "it is a field of the kind Redis: convert it within a Manager, or set it there"),
    ("replicas", "there is a member on each node that nodeSelector fits"),
    ("secretName", "the token is that of the account of the pod"),
    ("serviceAccount", ACCOUNT),
    ("sslPort", "the port of RabbitMQ is port, with TLS"),
    ("storage", FOLDERS),
    ("tuneSysctl", "the container nodeinit sets what the kernel needs"),
    ("useKubeadmConfig", CLUSTER),
    ("zookeeperInstance", FOUND),
    ("zookeeperNodesConfiguration", NODES),
];

/// Why the field has no place, by its name.
pub(super) fn of_field(name: &str) -> Option<&'static str> {
    found(FIELDS, name)
}

const CONTAINERS: &[(&str, &str)] = &[
    ("conf-init", "no container has to wait for its configuration"),
    ("init", "no container has to wait for its configuration"),
    ("init2", "the operator needs no container to prepare the node"),
    ("multusconfig", CNI),
    ("statusmonitor", "`kubectl opensdn status` says it"),
];

/// Why the container has no place, by its name.
pub(super) fn of_container(name: &str) -> &'static str {
    found(CONTAINERS, name).unwrap_or("the component has no container of this name")
}

fn found(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(one, _)| *one == name).map(|(_, reason)| *reason)
}
