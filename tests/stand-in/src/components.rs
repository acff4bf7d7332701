//! The one table of components: their configuration, ports, and the services that they need.
//!
//! Sources. Containers, files, ports: tf-operator's controllers and contrail-status (node managers,
//! 8093, 8097, 8108). Names of sections and keys: the templates of tf-operator,
//! `pkg/apis/tf/v1alpha1/templates/*.go`. Names of modules: the map in tf-container-builder's
//! `containers/status/contrail-status.py`. A key that none of them has is not required here, and
//! what they leave open is said where it is.
//!
//! Deliberately not here: components for which a real program runs (ZooKeeper, RabbitMQ,
//! Redis, Cassandra), and dnsmasq, which opens no port before it has a network to serve.

mod needs;
mod ports;

use self::needs::{
    ANALYTICS_API, API_OF_PYTHON, API_SECTION, CASSANDRA_OF_CONFIGDB, CASSANDRA_OF_PYTHON,
    CASSANDRA_OF_VNC, CASSANDRA_SECTION, COLLECTORS, CONTROL_NODES, KAFKA, RABBIT_OF_CONFIGDB,
    RABBIT_OF_PYTHON, RABBIT_OF_VNC, WEB_UI_NEEDS, api, cassandra, collectors, redis, zookeeper,
};
use self::ports::{SANDESH_SERVER, at, datagrams, introspect, or, page, plain};
use crate::component::{
    Answers, ClientTls, Component, Endpoint, Format, Key, Need, Port, Presence, Secured, ServerTls,
    Service, Transport, key, pair,
};

/// The component whose container is called so.
pub(crate) fn named(name: &str) -> Option<&'static Component> {
    COMPONENTS.iter().find(|component| component.name == name)
}

/// The Python daemons' section; the C++ ones' is `DEFAULT`.
const PYTHON: &str = "DEFAULTS";
const CPLUSPLUS: &str = "DEFAULT";

/// All of them.
pub(crate) static COMPONENTS: &[Component] = &[
    Component {
        name: "api",
        module: "contrail-api",
        format: Format::Ini,
        required: &[key(PYTHON, "aaa_mode")],
        ports: &[
            introspect(PYTHON, 8084),
            Port {
                name: "Config API",
                endpoint: at(PYTHON, "listen_ip_addr", "listen_port"),
                transport: Transport::Tcp,
                // All of a cluster have one database: a fake may be behind them.
                answers: Answers::PageOrForwards(key("STAND-IN", "config_api")),
                tls: Some(ServerTls {
                    secured: Secured::When(key(PYTHON, "config_api_ssl_enable")),
                    pairs: &[pair(PYTHON, "config_api_ssl_certfile", "config_api_ssl_keyfile")],
                }),
            },
            // The template that was read has no key of it; newer ones have.
            plain("Config API, administration", or(key(PYTHON, "admin_port"), 8095)),
        ],
        needs: &[
            CASSANDRA_OF_PYTHON,
            zookeeper(key(PYTHON, "zk_server_ip")),
            RABBIT_OF_PYTHON,
            COLLECTORS,
        ],
    },
    Component {
        name: "schematransformer",
        module: "contrail-schema",
        format: Format::Ini,
        required: &[],
        ports: &[introspect(PYTHON, 8087)],
        needs: CONFIG_DAEMON_NEEDS,
    },
    Component {
        name: "servicemonitor",
        module: "contrail-svc-monitor",
        format: Format::Ini,
        required: &[],
        ports: &[introspect(PYTHON, 8088)],
        needs: CONFIG_DAEMON_NEEDS,
    },
    Component {
        name: "devicemanager",
        module: "contrail-device-manager",
        format: Format::Ini,
        // Shared with dnsmasq, which serves what the device manager writes.
        required: &[key(PYTHON, "dnsmasq_conf_dir"), key(PYTHON, "tftp_dir")],
        ports: &[introspect(PYTHON, 8096)],
        needs: CONFIG_DAEMON_NEEDS,
    },
    Component {
        name: "analyticsapi",
        module: "contrail-analytics-api",
        format: Format::Ini,
        required: &[key(PYTHON, "aaa_mode")],
        ports: &[
            introspect(PYTHON, 8090),
            Port {
                name: "analytics API",
                endpoint: at(PYTHON, "rest_api_ip", "rest_api_port"),
                transport: Transport::Tcp,
                answers: Answers::Page,
                tls: Some(ServerTls {
                    secured: Secured::When(key(PYTHON, "analytics_api_ssl_enable")),
                    pairs: &[pair(
                        PYTHON,
                        "analytics_api_ssl_certfile",
                        "analytics_api_ssl_keyfile",
                    )],
                }),
            },
        ],
        needs: &[
            api(key(PYTHON, "api_server"), key(PYTHON, "api_server_use_ssl")),
            zookeeper(key(PYTHON, "zk_list")),
            redis("redis_uve_list", None, key("REDIS", "redis_use_ssl")),
            COLLECTORS,
        ],
    },
    Component {
        name: "collector",
        module: "contrail-collector",
        format: Format::Ini,
        required: &[key(CPLUSPLUS, "hostname"), key(CPLUSPLUS, "analytics_data_ttl")],
        ports: &[
            introspect(CPLUSPLUS, 8089),
            Port {
                name: "collector",
                endpoint: at("COLLECTOR", "server", "port"),
                transport: Transport::Tcp,
                answers: Answers::Nothing,
                tls: Some(SANDESH_SERVER),
            },
            // Which of the four take TCP as well is documented for the last only: both.
            datagrams("protobuf", key("COLLECTOR", "protobuf_port")),
            datagrams("syslog", key(CPLUSPLUS, "syslog_port")),
            datagrams("sFlow", key(CPLUSPLUS, "sflow_port")),
            datagrams("IPFIX", key(CPLUSPLUS, "ipfix_port")),
            datagrams("structured syslog", key("STRUCTURED_SYSLOG_COLLECTOR", "port")),
        ],
        needs: &[
            // Without a query engine nothing is stored there.
            Need {
                presence: Presence::Optional,
                ..cassandra(key(CPLUSPLUS, "cassandra_server_list"), &CASSANDRA_SECTION)
            },
            zookeeper(key(CPLUSPLUS, "zookeeper_server_list")),
            API_SECTION,
            redis("server", Some(key("REDIS", "port")), key("REDIS", "redis_ssl_enable")),
            CASSANDRA_OF_CONFIGDB,
            RABBIT_OF_CONFIGDB,
            KAFKA,
        ],
    },
    Component {
        name: "queryengine",
        module: "contrail-query-engine",
        format: Format::Ini,
        required: &[key(CPLUSPLUS, "hostname")],
        ports: &[introspect(CPLUSPLUS, 8091)],
        needs: &[
            cassandra(key(CPLUSPLUS, "cassandra_server_list"), &CASSANDRA_SECTION),
            redis("server_list", None, key("REDIS", "redis_ssl_enable")),
            collectors(key(CPLUSPLUS, "collectors")),
        ],
    },
    Component {
        name: "analytics-alarm-gen",
        module: "contrail-alarm-gen",
        format: Format::Ini,
        required: &[key(PYTHON, "partitions")],
        ports: &[introspect(PYTHON, 5995)],
        needs: &[
            zookeeper(key(PYTHON, "zk_list")),
            API_SECTION,
            CASSANDRA_OF_CONFIGDB,
            RABBIT_OF_CONFIGDB,
            redis("redis_uve_list", None, key("REDIS", "redis_use_ssl")),
            KAFKA,
            COLLECTORS,
        ],
    },
    Component {
        name: "analytics-snmp-collector",
        module: "contrail-snmp-collector",
        format: Format::Ini,
        required: &[key(PYTHON, "scan_frequency"), key(PYTHON, "fast_scan_frequency")],
        ports: &[introspect(PYTHON, 5920)],
        needs: &[
            zookeeper(key(PYTHON, "zookeeper")),
            API_SECTION,
            CASSANDRA_OF_CONFIGDB,
            RABBIT_OF_CONFIGDB,
            COLLECTORS,
        ],
    },
    Component {
        name: "analytics-snmp-topology",
        module: "contrail-topology",
        format: Format::Ini,
        required: &[key(PYTHON, "scan_frequency")],
        ports: &[introspect(PYTHON, 5921)],
        needs: &[
            ANALYTICS_API,
            zookeeper(key(PYTHON, "zookeeper")),
            API_SECTION,
            CASSANDRA_OF_CONFIGDB,
            RABBIT_OF_CONFIGDB,
            COLLECTORS,
        ],
    },
    Component {
        name: "control",
        module: "contrail-control",
        format: Format::Ini,
        required: &[key(CPLUSPLUS, "hostname"), key(CPLUSPLUS, "hostip")],
        ports: &[
            introspect(CPLUSPLUS, 8083),
            plain("BGP", or(key(CPLUSPLUS, "bgp_port"), 179)),
            // Its TLS begins inside the stream of XMPP, which nothing here speaks.
            plain("XMPP", or(key(CPLUSPLUS, "xmpp_server_port"), 5269)),
        ],
        needs: CONTROL_DAEMON_NEEDS,
    },
    Component {
        name: "dns",
        module: "contrail-dns",
        format: Format::Ini,
        // `dns_server_port` is the one that named listens on.
        required: &[
            key(CPLUSPLUS, "hostname"),
            key(CPLUSPLUS, "hostip"),
            key(CPLUSPLUS, "dns_server_port"),
            key(CPLUSPLUS, "rndc_config_file"),
        ],
        ports: &[introspect(CPLUSPLUS, 8092), plain("XMPP", Endpoint::Fixed(8093))],
        needs: CONTROL_DAEMON_NEEDS,
    },
    Component {
        name: "named",
        module: "contrail-named",
        format: Format::Named,
        required: &[key("options", "directory"), key("key rndc-key", "secret")],
        ports: &[
            Port {
                name: "DNS",
                endpoint: Endpoint::Worded(key("options", "listen-on")),
                transport: Transport::TcpAndUdp,
                answers: Answers::Nothing,
                tls: None,
            },
            plain("rndc", Endpoint::Worded(key("controls", "inet"))),
        ],
        needs: &[],
    },
    Component {
        name: "kubemanager",
        module: "contrail-kube-manager",
        format: Format::Ini,
        required: &[
            key(PYTHON, "token"),
            key("KUBERNETES", "kubernetes_api_server"),
            key("KUBERNETES", "kubernetes_api_secure_port"),
            key("KUBERNETES", "cluster_name"),
            key("KUBERNETES", "pod_subnets"),
            key("KUBERNETES", "service_subnets"),
            key("KUBERNETES", "ip_fabric_subnets"),
        ],
        ports: &[introspect(PYTHON, 8108)],
        needs: &[
            Need {
                port: Some(key("VNC", "vnc_endpoint_port")),
                ..api(key("VNC", "vnc_endpoint_ip"), key("global", "use_ssl"))
            },
            CASSANDRA_OF_VNC,
            zookeeper(key("VNC", "zk_server_ip")),
            RABBIT_OF_VNC,
            collectors(key("VNC", "collectors")),
        ],
    },
    Component {
        name: "webuiweb",
        module: "contrail-webui-web",
        format: Format::JavaScript,
        required: &[],
        ports: &[
            page("web UI, plain", key("config", "http_port"), None),
            page(
                "web UI",
                key("config", "https_port"),
                Some(ServerTls {
                    secured: Secured::Always,
                    pairs: &[pair("config.server_options", "cert_file", "key_file")],
                }),
            ),
        ],
        needs: WEB_UI_NEEDS,
    },
    Component {
        name: "webuijob",
        module: "contrail-webui-job",
        format: Format::JavaScript,
        required: &[],
        ports: &[
            page("jobs", key("config.jobServer", "server_port"), None),
            page("kue", key("config.kue", "ui_port"), None),
        ],
        needs: WEB_UI_NEEDS,
    },
    Component {
        name: "vrouteragent",
        module: "contrail-vrouter-agent",
        format: Format::Ini,
        required: &[
            key(CPLUSPLUS, "hostname"),
            key("NETWORKS", "control_network_ip"),
            key("VIRTUAL-HOST-INTERFACE", "name"),
            key("VIRTUAL-HOST-INTERFACE", "ip"),
            key("VIRTUAL-HOST-INTERFACE", "physical_interface"),
        ],
        // VXLAN and MPLS over UDP are the kernel module's.
        ports: &[
            introspect(CPLUSPLUS, 8085),
            Port {
                name: "port API",
                endpoint: Endpoint::Fixed(9091),
                transport: Transport::Tcp,
                answers: Answers::Page,
                tls: None,
            },
            plain("metadata proxy", Endpoint::Fixed(8097)),
        ],
        needs: &[CONTROL_NODES, collectors(key(CPLUSPLUS, "collectors"))],
    },
    node_manager("nodemanager-config", "contrail-config-nodemgr", CONFIG_NODE),
    node_manager("nodemanager-control", "contrail-control-nodemgr", CONTROL_NODE),
    node_manager("nodemanager-vrouter", "contrail-vrouter-nodemgr", VROUTER_NODE),
    node_manager("nodemanager-database", "contrail-database-nodemgr", DATABASE_NODE),
    node_manager("nodemanager-analytics", "contrail-analytics-nodemgr", ANALYTICS_NODE),
    node_manager(
        "nodemanager-config-database",
        "contrail-config-database-nodemgr",
        CONFIG_DATABASE_NODE,
    ),
    node_manager("nodemanager-analytics-alarm", "contrail-analytics-alarm-nodemgr", ALARM_NODE),
    node_manager("nodemanager-analytics-snmp", "contrail-analytics-snmp-nodemgr", SNMP_NODE),
    Component {
        name: "provisioner",
        module: "provisioner",
        format: Format::Environment,
        required: &[],
        ports: &[],
        needs: &[Need {
            service: Service::ConfigApi,
            presence: Presence::Required,
            servers: key("", "CONFIG_NODES"),
            port: Some(key("", "CONFIG_API_PORT")),
            otherwise: Some(8082),
            with: &["AUTH_MODE"],
            tls: Some(ClientTls {
                secured: Secured::When(key("", "SSL_ENABLE")),
                authorities: &[key("", "SERVER_CA_CERTFILE")],
                pairs: &[pair("", "SERVER_CERTFILE", "SERVER_KEYFILE")],
            }),
        }],
    },
    Component {
        name: "kafka",
        module: "kafka",
        format: Format::Ini,
        required: &[key("", "log.dirs"), key("", "num.partitions")],
        ports: &[Port {
            name: "broker",
            endpoint: Endpoint::Joined(key("", "listeners")),
            transport: Transport::Tcp,
            answers: Answers::Nothing,
            // A file that has both: who starts it makes one of the keystore, which is Java's.
            tls: Some(ServerTls {
                secured: Secured::Always,
                pairs: &[pair("", "ssl.keystore.location", "ssl.keystore.location")],
            }),
        }],
        needs: &[zookeeper(key("", "zookeeper.connect"))],
    },
    Component {
        name: "stunnel",
        module: "stunnel",
        format: Format::Ini,
        required: &[],
        ports: &[Port {
            name: "Redis behind TLS",
            endpoint: Endpoint::Joined(key("redis", "accept")),
            transport: Transport::Tcp,
            answers: Answers::Forwards(key("redis", "connect")),
            tls: Some(ServerTls {
                secured: Secured::Always,
                // Without a key of its own, it is in the certificate's file.
                pairs: &[pair("", "cert", "key"), pair("", "cert", "cert")],
            }),
        }],
        needs: &[],
    },
];

/// Of the daemons beside the Config API.
const CONFIG_DAEMON_NEEDS: &[Need] = &[
    API_OF_PYTHON,
    CASSANDRA_OF_PYTHON,
    zookeeper(key(PYTHON, "zk_server_ip")),
    RABBIT_OF_PYTHON,
    COLLECTORS,
];

/// Of control and DNS.
const CONTROL_DAEMON_NEEDS: &[Need] =
    &[CASSANDRA_OF_CONFIGDB, RABBIT_OF_CONFIGDB, collectors(key(CPLUSPLUS, "collectors"))];

const CONFIG_NODE: &[Port] = &[introspect(PYTHON, 8100)];
const CONTROL_NODE: &[Port] = &[introspect(PYTHON, 8101)];
const VROUTER_NODE: &[Port] = &[introspect(PYTHON, 8102)];
const DATABASE_NODE: &[Port] = &[introspect(PYTHON, 8103)];
const ANALYTICS_NODE: &[Port] = &[introspect(PYTHON, 8104)];
const CONFIG_DATABASE_NODE: &[Port] = &[introspect(PYTHON, 8112)];
const ALARM_NODE: &[Port] = &[introspect(PYTHON, 8113)];
const SNMP_NODE: &[Port] = &[introspect(PYTHON, 8114)];

const fn node_manager(
    name: &'static str,
    module: &'static str,
    ports: &'static [Port],
) -> Component {
    const REQUIRED: &[Key] = &[key(PYTHON, "hostname"), key(PYTHON, "hostip")];
    const NEEDS: &[Need] = &[collectors(key("COLLECTOR", "server_list"))];
    let format = Format::Ini;
    Component { name, module, format, required: REQUIRED, ports, needs: NEEDS }
}
