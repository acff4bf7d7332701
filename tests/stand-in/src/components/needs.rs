//! Services as several components name them in their configuration. Deliberately not here: which
//! component needs which; the table says it.

use super::PYTHON;
use crate::component::{ClientTls, Key, Need, Pair, Presence, Secured, Service, key, pair};

const fn needed(service: Service, servers: Key, tls: Option<ClientTls>) -> Need {
    let presence = Presence::Required;
    Need { service, presence, servers, port: None, otherwise: None, with: &[], tls }
}

pub(super) const fn zookeeper(servers: Key) -> Need {
    needed(Service::Zookeeper, servers, None)
}

pub(super) const fn cassandra(servers: Key, tls: &ClientTls) -> Need {
    needed(Service::Cassandra, servers, Some(*tls))
}

pub(super) const CASSANDRA_SECTION: ClientTls = ClientTls {
    secured: Secured::When(key("CASSANDRA", "cassandra_use_ssl")),
    authorities: &[key("CASSANDRA", "cassandra_ca_certs")],
    pairs: &[],
};

pub(super) const CASSANDRA_OF_PYTHON: Need = cassandra(
    key(PYTHON, "cassandra_server_list"),
    &ClientTls {
        secured: Secured::When(key(PYTHON, "cassandra_use_ssl")),
        authorities: &[key(PYTHON, "cassandra_ca_certs")],
        pairs: &[],
    },
);

pub(super) const CASSANDRA_OF_CONFIGDB: Need = cassandra(
    key("CONFIGDB", "config_db_server_list"),
    &ClientTls {
        secured: Secured::When(key("CONFIGDB", "config_db_use_ssl")),
        authorities: &[key("CONFIGDB", "config_db_ca_certs")],
        pairs: &[],
    },
);

pub(super) const CASSANDRA_OF_VNC: Need = cassandra(
    key("VNC", "cassandra_server_list"),
    &ClientTls {
        secured: Secured::When(key("VNC", "cassandra_use_ssl")),
        authorities: &[key("VNC", "cassandra_ca_certs")],
        pairs: &[],
    },
);

/// As Python's daemons have it, by kombu.
pub(super) const RABBIT_OF_PYTHON: Need = rabbit(
    PYTHON,
    &ClientTls {
        secured: Secured::When(key(PYTHON, "rabbit_use_ssl")),
        authorities: &[key(PYTHON, "kombu_ssl_ca_certs")],
        pairs: &[pair(PYTHON, "kombu_ssl_certfile", "kombu_ssl_keyfile")],
    },
);

pub(super) const RABBIT_OF_VNC: Need = rabbit(
    "VNC",
    &ClientTls {
        secured: Secured::When(key("VNC", "rabbit_use_ssl")),
        authorities: &[key("VNC", "kombu_ssl_ca_certs")],
        pairs: &[pair("VNC", "kombu_ssl_certfile", "kombu_ssl_keyfile")],
    },
);

const fn rabbit(section: &'static str, tls: &ClientTls) -> Need {
    Need {
        port: Some(key(section, "rabbit_port")),
        with: &["rabbit_user", "rabbit_password", "rabbit_vhost"],
        ..needed(Service::RabbitMq, key(section, "rabbit_server"), Some(*tls))
    }
}

pub(super) const CONTROL_NODES: Need = Need {
    otherwise: Some(5269),
    ..needed(Service::ControlNode, key("CONTROL-NODE", "servers"), None)
};

/// The alarm generator's files have kombu's names.
pub(super) const RABBIT_OF_CONFIGDB: Need = Need {
    service: Service::RabbitMq,
    presence: Presence::Required,
    servers: key("CONFIGDB", "rabbitmq_server_list"),
    port: None,
    otherwise: None,
    with: &["rabbitmq_user", "rabbitmq_password", "rabbitmq_vhost"],
    tls: Some(ClientTls {
        secured: Secured::When(key("CONFIGDB", "rabbitmq_use_ssl")),
        authorities: &[
            key("CONFIGDB", "rabbitmq_ssl_ca_certs"),
            key("CONFIGDB", "kombu_ssl_ca_certs"),
        ],
        pairs: &[
            pair("CONFIGDB", "rabbitmq_ssl_certfile", "rabbitmq_ssl_keyfile"),
            pair("CONFIGDB", "kombu_ssl_certfile", "kombu_ssl_keyfile"),
        ],
    }),
};

const REDIS_AUTHORITIES: &[Key] = &[key("REDIS", "redis_ca_cert")];
const REDIS_PAIRS: &[Pair] = &[pair("REDIS", "redis_certfile", "redis_keyfile")];

pub(super) const fn redis(servers: &'static str, port: Option<Key>, secured: Key) -> Need {
    let tls = ClientTls {
        secured: Secured::When(secured),
        authorities: REDIS_AUTHORITIES,
        pairs: REDIS_PAIRS,
    };
    Need { port, ..needed(Service::Redis, key("REDIS", servers), Some(tls)) }
}

const API_AUTHORITIES: &[Key] = &[key("global", "cafile")];

/// The authorities to trust are in `vnc_api_lib.ini`, if that is given.
pub(super) const fn api(servers: Key, secured: Key) -> Need {
    let tls =
        ClientTls { secured: Secured::When(secured), authorities: API_AUTHORITIES, pairs: &[] };
    needed(Service::ConfigApi, servers, Some(tls))
}

pub(super) const API_OF_PYTHON: Need = Need {
    port: Some(key(PYTHON, "api_server_port")),
    ..api(key(PYTHON, "api_server_ip"), key(PYTHON, "api_server_use_ssl"))
};

pub(super) const API_SECTION: Need =
    api(key("API_SERVER", "api_server_list"), key("API_SERVER", "api_server_use_ssl"));

const SANDESH_AUTHORITIES: &[Key] = &[key("SANDESH", "sandesh_ca_cert")];
const SANDESH_PAIRS: &[Pair] = &[pair("SANDESH", "sandesh_certfile", "sandesh_keyfile")];

/// A cluster may do without analytics.
pub(super) const fn collectors(servers: Key) -> Need {
    let tls = ClientTls {
        secured: Secured::When(key("SANDESH", "sandesh_ssl_enable")),
        authorities: SANDESH_AUTHORITIES,
        pairs: SANDESH_PAIRS,
    };
    Need { presence: Presence::Optional, ..needed(Service::Collector, servers, Some(tls)) }
}

pub(super) const COLLECTORS: Need = collectors(key(PYTHON, "collectors"));

/// Nothing says whether its TLS is on; a connection is all that is tried.
pub(super) const ANALYTICS_API: Need =
    needed(Service::AnalyticsApi, key(PYTHON, "analytics_api"), None);

pub(super) const KAFKA: Need = Need {
    presence: Presence::Optional,
    ..needed(
        Service::Kafka,
        key("KAFKA", "kafka_broker_list"),
        Some(ClientTls {
            secured: Secured::When(key("KAFKA", "kafka_ssl_enable")),
            authorities: &[key("KAFKA", "kafka_ca_cert")],
            pairs: &[pair("KAFKA", "kafka_certfile", "kafka_keyfile")],
        }),
    )
};

/// Redis is the one on the same node, whose TLS is elsewhere.
pub(super) const WEB_UI_NEEDS: &[Need] = &[
    web_ui_need(
        Service::ConfigApi,
        key("config.cnfg", "server_ip"),
        key("config.cnfg", "server_port"),
        Some(ClientTls {
            secured: Secured::When(key("config.cnfg", "authProtocol")),
            authorities: &[key("config.cnfg", "ca")],
            pairs: &[],
        }),
    ),
    Need {
        presence: Presence::Optional,
        ..web_ui_need(
            Service::AnalyticsApi,
            key("config.analytics", "server_ip"),
            key("config.analytics", "server_port"),
            Some(ClientTls {
                secured: Secured::When(key("config.analytics", "authProtocol")),
                authorities: &[key("config.analytics", "ca")],
                pairs: &[],
            }),
        )
    },
    web_ui_need(
        Service::Cassandra,
        key("config.cassandra", "server_ips"),
        key("config.cassandra", "server_port"),
        Some(ClientTls {
            secured: Secured::When(key("config.cassandra", "use_ssl")),
            authorities: &[key("config.cassandra", "ca_certs")],
            pairs: &[],
        }),
    ),
    web_ui_need(
        Service::Redis,
        key("config", "redis_server_ip"),
        key("config", "redis_server_port"),
        None,
    ),
];

const fn web_ui_need(service: Service, servers: Key, port: Key, tls: Option<ClientTls>) -> Need {
    Need { port: Some(port), ..needed(service, servers, tls) }
}
