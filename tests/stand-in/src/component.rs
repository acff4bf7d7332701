//! What can be said of a component in the table of `components.rs`: where its configuration says
//! what. Deliberately not here: any value; `plan.rs` looks those up.

/// The format of a component's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Sections and `key=value`, as Python's ConfigParser and Boost's program options read it.
    Ini,
    /// BIND's: `statement words { … };`.
    Named,
    /// The web UI's: assignments of literals to members of `config`.
    JavaScript,
    /// A shell's assignments, which a run script sources.
    Environment,
}

/// Where a value stands: the section is empty if the format has none, or before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// `DEFAULTS`; of JavaScript the object, `config.cnfg`.
    pub(crate) section: &'static str,
    /// `listen_port`.
    pub(crate) name: &'static str,
}

/// In short.
pub(crate) const fn key(section: &'static str, name: &'static str) -> Key {
    Key { section, name }
}

/// A certificate and its private key, as files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    /// The chain, PEM.
    pub(crate) certificate: Key,
    /// The private key, PEM.
    pub(crate) key: Key,
}

/// In short, for keys of one section.
pub(crate) const fn pair(
    section: &'static str,
    certificate: &'static str,
    name: &'static str,
) -> Pair {
    Pair { certificate: key(section, certificate), key: key(section, name) }
}

/// Where a component says at which address and port it listens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Endpoint {
    /// Not configurable, on all addresses.
    Fixed(u16),
    /// A key each; the address is that of every interface if there is no such key.
    Keys {
        /// An IP address.
        address: Option<Key>,
        /// A number.
        port: Key,
        /// The daemon's own, if the configuration need not say it.
        otherwise: Option<u16>,
    },
    /// `address:port` in one value, with or without a word and `://` before it.
    Joined(Key),
    /// BIND's: the number after the word `port`, the address before it, if there is one.
    Worded(Key),
}

/// The transport of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A stream.
    Tcp,
    /// Both with the same number.
    TcpAndUdp,
}

/// What a peer gets on a port.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answers {
    /// Introspect's pages.
    Introspect,
    /// A page that says who it is, to a probe over HTTP.
    Page,
    /// What another server says, where its `address:port` is there; else that page.
    PageOrForwards(Key),
    /// Nothing: the connection stays open until the peer ends it.
    Nothing,
    /// What another server says, whose `address:port` is there.
    Forwards(Key),
}

/// When a port or a connection has TLS.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Secured {
    /// In any case.
    Always,
    /// If the key there says so.
    When(Key),
}

/// TLS of a port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerTls {
    /// Whether at all.
    pub(crate) secured: Secured,
    /// The first that is configured.
    pub(crate) pairs: &'static [Pair],
}

/// A port that a component opens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port {
    /// In messages.
    pub(crate) name: &'static str,
    /// Its address and number.
    pub(crate) endpoint: Endpoint,
    /// TCP, or UDP as well.
    pub(crate) transport: Transport,
    /// What it does.
    pub(crate) answers: Answers,
    /// Whether it has TLS.
    pub(crate) tls: Option<ServerTls>,
}

/// What can be needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// By CQL: Cassandra since 4.0 has no Thrift, whatever the port is called.
    Cassandra,
    /// AMQP 0-9-1.
    RabbitMq,
    /// Its four letter words.
    Zookeeper,
    /// Its own protocol.
    Redis,
    /// The Config API.
    ConfigApi,
    /// The analytics API.
    AnalyticsApi,
    /// An analytics collector.
    Collector,
    /// A Kafka broker.
    Kafka,
    /// A control node's XMPP.
    ControlNode,
}

/// Whether a component can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The configuration has to name servers.
    Required,
    /// There may be none.
    Optional,
}

/// TLS towards a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientTls {
    /// Whether at all.
    pub(crate) secured: Secured,
    /// The file of authorities, the first that is configured; if none is, anyone is trusted.
    pub(crate) authorities: &'static [Key],
    /// What we show, the first that is configured.
    pub(crate) pairs: &'static [Pair],
}

/// A service that a component connects to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    /// Which.
    pub(crate) service: Service,
    /// Whether it may be missing.
    pub(crate) presence: Presence,
    /// `host`, `host:port`, several with spaces or commas between.
    pub(crate) servers: Key,
    /// The port of servers that have none.
    pub(crate) port: Option<Key>,
    /// The port if the configuration says none.
    pub(crate) otherwise: Option<u16>,
    /// Keys of the same section without which one cannot log in.
    pub(crate) with: &'static [&'static str],
    /// Whether it has TLS.
    pub(crate) tls: Option<ClientTls>,
}

/// A component of OpenSDN for which no real service is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Component {
    /// Its container's, by which it is started.
    pub(crate) name: &'static str,
    /// Its module's, in introspect; the process' own where it has no introspect.
    pub(crate) module: &'static str,
    /// Of each of its files.
    pub(crate) format: Format,
    /// Keys that have to be there besides those of its ports and needs.
    pub(crate) required: &'static [Key],
    /// What it opens.
    pub(crate) ports: &'static [Port],
    /// What it connects to.
    pub(crate) needs: &'static [Need],
}
