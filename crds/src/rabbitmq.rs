//! Rabbitmq: the message bus of the config services. Spec, status and the rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;
use crate::storage::Storage;

enumeration! {
    /// On how many members a queue is mirrored.
    pub enum MirroredQueueMode {
        /// On a number of them; refused, for the API has no field for the number.
        Exactly = "exactly",
        /// On all.
        All = "all",
        /// On named ones; refused, for the API has no field for the names.
        Nodes = "nodes",
    }
}

/// What RabbitMQ shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Rabbitmq",
        plural = "rabbitmqs",
        shortname = "tfrmq",
        namespaced,
        status = "RabbitmqStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Rabbitmq is the RabbitMQ cluster that carries the messages of the config services: one member on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RabbitmqSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only RabbitMQ has.
    pub service_configuration: RabbitmqConfiguration,
}

/// The settings of RabbitMQ.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct RabbitmqConfiguration {
    /// The image of container rabbitmq.
    pub containers: Option<Vec<Container>>,
    /// Port of the clients, TLS only. Default 5673. The management port is this + 10000, the
    /// distribution port this + 20000, so it must not be above 45535.
    pub port: Option<i64>,
    /// Port of the Erlang port mapper. Default 4371.
    pub erl_epmd_port: Option<i64>,
    /// Shared secret of the members. tf-operator's default is a public constant: set your own
    /// before the first start; a change later splits the cluster.
    pub erlang_cookie: Option<String>,
    /// Virtual host. Default: six random letters.
    pub vhost: Option<String>,
    /// User of the clients. Default: eight random letters.
    pub user: Option<String>,
    /// Password of the clients in clear text. Default: 32 random letters in the Secret.
    pub password: Option<String>,
    /// Secret with user, password and vhost. Default `<name>-secret`.
    pub secret: Option<String>,
    /// On how many members a queue is mirrored. Default and only working value: all.
    pub mirrored_queue_mode: Option<MirroredQueueMode>,
    /// What the members do when the network parts them: ignore, autoheal (default) or
    /// pause_minority.
    pub cluster_partition_handling: Option<String>,
    /// Options of the client sockets.
    pub tcp_listen_options: Option<TcpListenOptions>,
    /// Volumes for what the members store. Default: a folder of each node below
    /// /var/lib/contrail.
    pub storage: Option<Storage>,
}

/// Options of the client sockets, as RabbitMQ names them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TcpListenOptions {
    /// Length of the queue of connections not yet accepted.
    pub backlog: Option<i64>,
    /// Whether small packets are sent at once (TCP_NODELAY).
    pub nodelay: Option<bool>,
    /// Whether closing waits for unsent data.
    pub linger_on: Option<bool>,
    /// Seconds for which closing waits.
    pub linger_timeout: Option<i64>,
    /// Whether a socket ends when the peer closes its half.
    pub exit_on_close: Option<bool>,
}

/// What became of RabbitMQ.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RabbitmqStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Secret with user, password and vhost that is in use.
    pub secret: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    const PORTS: &str = "OSDN1512";
    let _ = crate::schema::Fields::of(schema)
        .range(PORTS, &["port"], 1, 45535, "a port from 1 to 45535: port + 20000 is used too")
        .ports("OSDN1519", &["erlEpmdPort"])
        .rule_at(
            "erlEpmdPort",
            PORTS,
            "!(self.?erlEpmdPort.orValue(4371) - self.?port.orValue(5673) in [0, 10000, 20000])",
            "erlEpmdPort (default 4371) must differ from port (5673), port + 10000 and \
             port + 20000",
        )
        // A rule instead of the enumeration: see aaaMode of Config.
        .remove("mirroredQueueMode", "enum")
        .longest(&["mirroredQueueMode"], 64)
        .field(
            "OSDN1513",
            "mirroredQueueMode",
            "self == 'all'",
            "must be all, or be left out: the other modes need parameters that the API cannot \
             carry, and RabbitMQ then refuses its definitions",
        )
        .matches(
            "OSDN1514",
            &["clusterPartitionHandling"],
            "^(ignore|autoheal|pause_minority)$",
            64,
            "ignore, autoheal or pause_minority",
        )
        .matches(
            "OSDN1515",
            &["erlangCookie"],
            // A tilde is a home directory to the shell at the start, and behind a colon. A brace that opens makes words
            // where a comma or two dots follow; the second form has neither anywhere.
            "^((:|[A-Za-z0-9_+/=.,@%!#^\\]}-]~*)+|(\\.?(:|[A-Za-z0-9_+/=@%!#^\\]{}-]~*)|\\.~+)+\\.?)$",
            255,
            "made of the characters A-Z, a-z, 0-9, _ - + / = . : , @ % ! # ^ ] and } only, of { where it has neither \
             a comma nor two dots in a row, and of ~ that neither begins it nor follows a colon",
        )
        // Of these echo writes nothing, or another line end.
        .field(
            "OSDN1515",
            "erlangCookie",
            "!self.matches('^-[neE]+$')",
            "must not be an option of echo, which writes it into its file: -n, -e, -E",
        );
}
