//! The facts of the thirteen components, in one table: what each is called, what it consists of,
//! where it listens, what it needs. Policies, schemas and the operator read it; a fact that stands
//! here stands nowhere else.
//!
//! Data only, and of no dependency: policies compile it to WebAssembly. Deliberately not here: what
//! becomes of a fact (messages, defaults to write, rules), and what depends on the cluster. The
//! table of `tests/stand-in` is apart on purpose: it was made from the images and the templates,
//! and a test holds the two to each other.

/// One kind of component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// Kind: `Zookeeper`.
    pub kind: &'static str,
    /// As the API server serves it: `zookeepers`.
    pub plural: &'static str,
    /// Key under `spec.services` of a Manager: `zookeeper`.
    pub key: &'static str,
    /// How many a Manager has under the key.
    pub count: Count,
    /// The most characters of its name. What is made of it must fit into the 63 of a label: for most kinds the
    /// name and suffix of the StatefulSet with the hash of its revision, for Vrouter a volume,
    /// `NAME-cni-config-cni-volume` (tf-operator, `pkg/controller/vrouter/vrouter_controller.go:279`).
    pub longest_name: u8,
    /// The containers of its pods.
    pub containers: Containers,
    /// The ports that its containers open on the node.
    pub ports: &'static [Port],
    /// The kinds that it waits for.
    pub needs: &'static [Need],
}

/// How many components a Manager has under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One item.
    One,
    /// A list of items.
    Many,
}

/// Containers by their names in `spec.serviceConfiguration.containers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Containers {
    /// Those that do the work.
    pub main: &'static [&'static str],
    /// Those that do it where the settings ask for it.
    pub asked: &'static [&'static str],
    /// Init containers, which prepare the node.
    pub init: &'static [&'static str],
    /// Init containers that not every node needs.
    pub conditional: &'static [&'static str],
}

/// A port on the network of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The container that listens.
    pub container: &'static str,
    /// The number, unless a field says another.
    pub number: u16,
    /// What changes the number.
    pub setting: Setting,
    /// The protocol.
    pub transport: Transport,
    /// When it is open.
    pub open: Open,
}

/// What changes a port. Fields are those of `spec.serviceConfiguration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nothing does.
    Fixed,
    /// The field has the number.
    Field(&'static str),
    /// The number is so much above that of the field.
    Above(&'static str, u16),
    /// Nothing does in tf-operator, although there is a field: others are told its value, which is where they
    /// look for it.
    ShownAs(&'static str),
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Both, on the same number.
    TcpAndUdp,
}

/// When a port is open. Fields are those of `spec.serviceConfiguration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Always.
    Always,
    /// When the field is true.
    WhenTrue(&'static str),
    /// Unless the field is false.
    UnlessFalse(&'static str),
    /// When the field is greater than 1: one port less than it says, each one above the one before; the
    /// first worker has the port itself (tf-operator, `pkg/apis/tf/v1alpha1/config_types.go:190`).
    PerWorker(&'static str),
    /// Never: the field is there, and nothing listens.
    Never,
}

/// A kind that a component waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The kind.
    pub kind: &'static str,
    /// Where it must run.
    pub place: Place,
}

/// Where a needed component runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On any node.
    Anywhere,
    /// On the same node: it is reached at 127.0.0.1.
    SameNode,
}

/// What the ports of a Cassandra for analytics are in upstream's template: on the network of the
/// node it cannot have those of the first.
pub const ANALYTICS_DATABASE_PORTS: &[(&str, u16)] = &[
    ("port", 9160),
    ("cqlPort", 9042),
    ("storagePort", 7010),
    ("sslStoragePort", 7011),
    ("jmxLocalPort", 7200),
];

/// Where the node manager of a Cassandra for configuration listens, beside another for analytics. Which of the two a
/// Cassandra is, no field says.
pub const CONFIG_DATABASE_NODE_MANAGER: u16 = 8112;
/// The same of one for analytics, or for both.
pub const DATABASE_NODE_MANAGER: u16 = 8103;

/// Every component, in the order of the kinds.
pub static COMPONENTS: &[Component] = &[
    Component {
        kind: "Analytics",
        plural: "analytics",
        key: "analytics",
        count: Count::One,
        longest_name: 30,
        containers: main(&["analyticsapi", "collector", "nodemanager", "provisioner"]),
        ports: &[
            // Hard-coded in pkg/apis/tf/v1alpha1/templates/analytics_config.go:10 and :81.
            shown_as("analyticsPort", 8081, "analyticsapi"),
            set_by("analyticsIntrospectPort", 8090, "analyticsapi"),
            shown_as("collectorPort", 8086, "collector"),
            set_by("collectorIntrospectPort", 8089, "collector"),
            // Syslog, structured syslog, sFlow, IPFIX, protobuf.
            Port { transport: Transport::TcpAndUdp, ..fixed(514, "collector") },
            Port { transport: Transport::TcpAndUdp, ..fixed(3514, "collector") },
            Port { transport: Transport::Udp, ..fixed(6343, "collector") },
            Port { transport: Transport::Udp, ..fixed(4739, "collector") },
            Port { transport: Transport::Udp, ..fixed(3333, "collector") },
            fixed(8104, "nodemanager"),
        ],
        needs: &[
            anywhere("Cassandra"),
            anywhere("Zookeeper"),
            anywhere("Rabbitmq"),
            same_node("Redis"),
        ],
    },
    Component {
        kind: "AnalyticsAlarm",
        plural: "analyticsalarm",
        key: "analyticsAlarm",
        count: Count::One,
        longest_name: 25,
        containers: main(&["analytics-alarm-gen", "kafka", "nodemanager", "provisioner"]),
        ports: &[
            fixed(5995, "analytics-alarm-gen"),
            fixed(9092, "kafka"),
            fixed(8113, "nodemanager"),
        ],
        needs: &[
            anywhere("Cassandra"),
            anywhere("Zookeeper"),
            anywhere("Rabbitmq"),
            anywhere("Config"),
            anywhere("Analytics"),
            anywhere("Redis"),
        ],
    },
    Component {
        kind: "AnalyticsSnmp",
        plural: "analyticssnmp",
        key: "analyticsSnmp",
        count: Count::One,
        longest_name: 26,
        containers: main(&[
            "analytics-snmp-collector",
            "analytics-snmp-topology",
            "nodemanager",
            "provisioner",
        ]),
        ports: &[
            fixed(5920, "analytics-snmp-collector"),
            fixed(5921, "analytics-snmp-topology"),
            fixed(8114, "nodemanager"),
        ],
        needs: &[
            anywhere("Cassandra"),
            anywhere("Zookeeper"),
            anywhere("Rabbitmq"),
            anywhere("Config"),
            anywhere("Analytics"),
        ],
    },
    Component {
        kind: "Cassandra",
        plural: "cassandras",
        key: "cassandras",
        count: Count::Many,
        longest_name: 30,
        containers: main(&["cassandra", "nodemanager", "provisioner"]),
        // The node manager listens on 8103, or, of the config database beside an analytics
        // database, on 8112.
        ports: &[
            set_by("port", 9161, "cassandra"),
            set_by("cqlPort", 9041, "cassandra"),
            // Members encrypt all that they say to each other, so it is not bound
            // (pkg/apis/tf/v1alpha1/templates/cassandra_config.go:93).
            Port { open: Open::Never, ..set_by("storagePort", 7012, "cassandra") },
            set_by("sslStoragePort", 7013, "cassandra"),
            set_by("jmxLocalPort", 7201, "cassandra"),
            Port {
                open: Open::WhenTrue("reaperEnabled"),
                ..set_by("reaperAppPort", 8071, "cassandra")
            },
            Port {
                open: Open::WhenTrue("reaperEnabled"),
                ..set_by("reaperAdmPort", 8072, "cassandra")
            },
        ],
        needs: &[],
    },
    Component {
        kind: "Config",
        plural: "configs",
        key: "config",
        count: Count::One,
        longest_name: 33,
        containers: Containers {
            main: &[
                "api",
                "devicemanager",
                "dnsmasq",
                "schematransformer",
                "servicemonitor",
                "nodemanager",
                "provisioner",
            ],
            asked: &[],
            init: &["nodeinit", "nodeinit-status-prefetch", "nodeinit-tools-prefetch"],
            conditional: &[],
        },
        ports: &[
            set_by("apiPort", 8082, "api"),
            set_by("apiIntrospectPort", 8084, "api"),
            set_by("apiAdminPort", 8095, "api"),
            set_by("schemaIntrospectPort", 8087, "schematransformer"),
            set_by("svcMonitorIntrospectPort", 8088, "servicemonitor"),
            set_by("deviceManagerIntrospectPort", 8096, "devicemanager"),
            Port {
                open: Open::PerWorker("apiWorkerCount"),
                ..above("apiIntrospectPort", 8084, 10_000, "api")
            },
            Port {
                open: Open::PerWorker("apiWorkerCount"),
                ..above("apiAdminPort", 8095, 20_000, "api")
            },
            // Its part for Ansible.
            fixed(8111, "devicemanager"),
            fixed(8100, "nodemanager"),
        ],
        needs: &[anywhere("Cassandra"), anywhere("Zookeeper"), anywhere("Rabbitmq")],
    },
    Component {
        kind: "Control",
        plural: "controls",
        key: "controls",
        count: Count::Many,
        longest_name: 32,
        containers: main(&["control", "dns", "named", "nodemanager", "provisioner"]),
        ports: &[
            shown_as("bgpPort", 179, "control"),
            shown_as("xmppPort", 5269, "control"),
            Port { transport: Transport::TcpAndUdp, ..shown_as("dnsPort", 53, "named") },
            shown_as("dnsIntrospectPort", 8092, "dns"),
            fixed(8083, "control"),
            // XMPP of the agents' DNS.
            fixed(8093, "dns"),
            // rndc, on 127.0.0.1.
            fixed(8094, "named"),
            fixed(8101, "nodemanager"),
        ],
        needs: &[anywhere("Cassandra"), anywhere("Rabbitmq"), anywhere("Config")],
    },
    Component {
        kind: "Kubemanager",
        plural: "kubemanagers",
        key: "kubemanager",
        count: Count::One,
        longest_name: 28,
        containers: main(&["kubemanager"]),
        ports: &[fixed(8108, "kubemanager")],
        needs: &[
            anywhere("Cassandra"),
            anywhere("Zookeeper"),
            anywhere("Rabbitmq"),
            anywhere("Config"),
        ],
    },
    Component {
        kind: "QueryEngine",
        plural: "queryengine",
        key: "queryengine",
        count: Count::One,
        longest_name: 28,
        containers: main(&["queryengine"]),
        ports: &[fixed(8091, "queryengine")],
        needs: &[
            anywhere("Cassandra"),
            anywhere("Zookeeper"),
            anywhere("Rabbitmq"),
            anywhere("Redis"),
            anywhere("Config"),
            anywhere("Analytics"),
        ],
    },
    Component {
        kind: "Rabbitmq",
        plural: "rabbitmqs",
        key: "rabbitmq",
        count: Count::One,
        longest_name: 31,
        containers: main(&["rabbitmq"]),
        ports: &[
            set_by("port", 5673, "rabbitmq"),
            set_by("erlEpmdPort", 4371, "rabbitmq"),
            // Management and distribution.
            above("port", 5673, 10_000, "rabbitmq"),
            above("port", 5673, 20_000, "rabbitmq"),
        ],
        needs: &[],
    },
    Component {
        kind: "Redis",
        plural: "redis",
        // A list in spite of its name.
        key: "redis",
        count: Count::Many,
        longest_name: 34,
        containers: main(&["redis", "stunnel"]),
        // Redis itself has the same number on 127.0.0.1.
        ports: &[set_by("redisPort", 6389, "stunnel")],
        needs: &[],
    },
    Component {
        kind: "Vrouter",
        plural: "vrouters",
        key: "vrouters",
        count: Count::Many,
        longest_name: 41,
        containers: Containers {
            main: &["provisioner", "nodemanager", "vrouteragent"],
            asked: &["vrouteragentdpdk"],
            init: &[
                "vroutercni",
                "nodeinit",
                "nodeinit-status-prefetch",
                "nodeinit-tools-prefetch",
            ],
            conditional: &["vrouterkernelinit", "vrouterkernelbuildinit", "vrouterkernelinitdpdk"],
        },
        // VXLAN and MPLS over UDP are the data plane's.
        ports: &[
            fixed(9091, "vrouteragent"),
            fixed(8085, "vrouteragent"),
            // The proxy of the metadata service.
            fixed(8097, "vrouteragent"),
            fixed(8102, "nodemanager"),
            Port { transport: Transport::Udp, ..fixed(4789, "vrouteragent") },
            Port { transport: Transport::Udp, ..fixed(6635, "vrouteragent") },
        ],
        needs: &[],
    },
    Component {
        kind: "Webui",
        plural: "webuis",
        key: "webui",
        count: Count::One,
        longest_name: 34,
        containers: main(&["webuiweb", "webuijob"]),
        ports: &[
            fixed(8143, "webuiweb"),
            fixed(8180, "webuiweb"),
            fixed(3000, "webuijob"),
            fixed(3002, "webuijob"),
        ],
        needs: &[
            anywhere("Cassandra"),
            anywhere("Config"),
            same_node("Redis"),
            anywhere("Control"),
        ],
    },
    Component {
        kind: "Zookeeper",
        plural: "zookeepers",
        key: "zookeeper",
        count: Count::One,
        longest_name: 30,
        containers: main(&["zookeeper"]),
        ports: &[
            set_by("clientPort", 2181, "zookeeper"),
            set_by("electionPort", 2888, "zookeeper"),
            set_by("serverPort", 3888, "zookeeper"),
            Port {
                open: Open::UnlessFalse("adminEnabled"),
                ..set_by("adminPort", 2182, "zookeeper")
            },
        ],
        needs: &[],
    },
];

impl Component {
    /// The component of that kind.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<&'static Self> {
        COMPONENTS.iter().find(|component| component.kind == kind)
    }

    /// The port that the field changes. In a constant, a field that changes none ends the build.
    #[must_use]
    #[allow(clippy::panic, reason = "it is for constants, where it is an error of the compiler")]
    pub const fn port_of_field(&self, field: &str) -> u16 {
        let mut rest = self.ports;
        while let [port, others @ ..] = rest {
            if let Setting::Field(name) | Setting::ShownAs(name) = port.setting
                && same(name.as_bytes(), field.as_bytes())
            {
                return port.number;
            }
            rest = others;
        }
        panic!("no port is changed by such a field");
    }

    /// The first port of the container that nothing changes. In a constant, a container without one ends the build.
    #[must_use]
    #[allow(clippy::panic, reason = "it is for constants, where it is an error of the compiler")]
    pub const fn fixed_port(&self, container: &str) -> u16 {
        let mut rest = self.ports;
        while let [port, others @ ..] = rest {
            if matches!(port.setting, Setting::Fixed)
                && same(port.container.as_bytes(), container.as_bytes())
            {
                return port.number;
            }
            rest = others;
        }
        panic!("the container has no port that nothing changes");
    }
}

impl Containers {
    /// Every name that the component has.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        let work = self.main.iter().chain(self.asked);
        work.chain(self.init).chain(self.conditional).copied()
    }
}

/// The row of a kind. In a constant, a kind that there is not ends the build.
#[must_use]
#[allow(clippy::panic, reason = "it is for constants, where it is an error of the compiler")]
pub const fn row(kind: &str) -> &'static Component {
    let mut rest = COMPONENTS;
    while let [first, others @ ..] = rest {
        if same(first.kind.as_bytes(), kind.as_bytes()) {
            return first;
        }
        rest = others;
    }
    panic!("no such kind of component");
}

/// Texts cannot be compared in a constant yet.
const fn same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([one, ones @ ..], [other, others @ ..]) => *one == *other && same(ones, others),
        _ => false,
    }
}

const fn main(main: &'static [&'static str]) -> Containers {
    Containers { main, asked: &[], init: &[], conditional: &[] }
}

const fn fixed(number: u16, container: &'static str) -> Port {
    let (transport, open) = (Transport::Tcp, Open::Always);
    Port { container, number, setting: Setting::Fixed, transport, open }
}

const fn set_by(field: &'static str, number: u16, container: &'static str) -> Port {
    Port { setting: Setting::Field(field), ..fixed(number, container) }
}

const fn above(field: &'static str, default: u16, more: u16, container: &'static str) -> Port {
    Port { setting: Setting::Above(field, more), ..fixed(default + more, container) }
}

const fn shown_as(field: &'static str, number: u16, container: &'static str) -> Port {
    Port { setting: Setting::ShownAs(field), ..fixed(number, container) }
}

const fn anywhere(kind: &'static str) -> Need {
    Need { kind, place: Place::Anywhere }
}

const fn same_node(kind: &'static str) -> Need {
    Need { kind, place: Place::SameNode }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COMPONENTS, Component, Place};

    #[test]
    fn kinds_and_keys_are_unique_and_in_order() {
        assert_eq!(COMPONENTS.len(), 13);
        assert!(COMPONENTS.is_sorted_by_key(|component| component.kind));
        let keys: BTreeSet<_> = COMPONENTS.iter().map(|component| component.key).collect();
        assert_eq!(keys.len(), COMPONENTS.len());
    }

    #[test]
    fn the_containers_that_listen_exist() {
        for component in COMPONENTS {
            let names: BTreeSet<_> = component.containers.all().collect();
            assert_eq!(names.len(), component.containers.all().count(), "{}", component.kind);
            for port in component.ports {
                assert!(component.containers.main.contains(&port.container), "{port:?}");
            }
        }
    }

    #[cfg(feature = "kube")]
    #[test]
    fn plurals_are_those_of_the_definitions() {
        let all = crate::all();
        for component in COMPONENTS {
            let mut names = all.iter().map(|one| &one.spec.names);
            let names = names.find(|names| names.kind == component.kind).unwrap();
            assert_eq!(component.plural, names.plural);
        }
    }

    /// As every service is on the network of its node.
    #[test]
    fn no_number_is_given_twice() {
        let mut seen = BTreeSet::new();
        for port in COMPONENTS.iter().flat_map(|component| component.ports) {
            assert!(seen.insert(port.number), "{port:?}");
        }
    }

    #[test]
    fn nothing_waits_for_itself() {
        fn reaches(from: &Component, kind: &str) -> bool {
            from.needs.iter().any(|need| {
                need.kind == kind
                    || Component::of_kind(need.kind).is_none_or(|needed| reaches(needed, kind))
            })
        }
        for component in COMPONENTS {
            assert!(!reaches(component, component.kind), "{}", component.kind);
        }
        let needs = COMPONENTS.iter().flat_map(|component| component.needs);
        let beside: Vec<_> = needs.filter(|need| need.place == Place::SameNode).collect();
        assert!(beside.iter().all(|need| need.kind == "Redis"), "{beside:?}");
    }
}
