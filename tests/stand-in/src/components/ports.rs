//! Ports as several components have them.

use crate::component::{
    Answers, Endpoint, Key, Pair, Port, Secured, ServerTls, Transport, key, pair,
};

pub(super) const fn or(port: Key, otherwise: u16) -> Endpoint {
    Endpoint::Keys { address: None, port, otherwise: Some(otherwise) }
}

pub(super) const fn at(
    section: &'static str,
    address: &'static str,
    port: &'static str,
) -> Endpoint {
    Endpoint::Keys {
        address: Some(key(section, address)),
        port: key(section, port),
        otherwise: None,
    }
}

pub(super) const fn plain(name: &'static str, endpoint: Endpoint) -> Port {
    Port { name, endpoint, transport: Transport::Tcp, answers: Answers::Nothing, tls: None }
}

pub(super) const fn datagrams(name: &'static str, port: Key) -> Port {
    let endpoint = Endpoint::Keys { address: None, port, otherwise: None };
    Port { name, endpoint, transport: Transport::TcpAndUdp, answers: Answers::Nothing, tls: None }
}

pub(super) const fn page(name: &'static str, port: Key, tls: Option<ServerTls>) -> Port {
    let endpoint = Endpoint::Keys { address: None, port, otherwise: None };
    Port { name, endpoint, transport: Transport::Tcp, answers: Answers::Page, tls }
}

const SANDESH_PAIRS: &[Pair] = &[
    pair("SANDESH", "sandesh_server_certfile", "sandesh_server_keyfile"),
    pair("SANDESH", "sandesh_certfile", "sandesh_keyfile"),
];

pub(super) const SANDESH_SERVER: ServerTls = ServerTls {
    secured: Secured::When(key("SANDESH", "sandesh_ssl_enable")),
    pairs: SANDESH_PAIRS,
};

/// Who asks need not show a certificate, as with upstream's `introspect_ssl_insecure=True`.
pub(super) const fn introspect(section: &'static str, otherwise: u16) -> Port {
    Port {
        name: "introspect",
        endpoint: Endpoint::Keys {
            address: Some(key(section, "http_server_ip")),
            port: key(section, "http_server_port"),
            otherwise: Some(otherwise),
        },
        transport: Transport::Tcp,
        answers: Answers::Introspect,
        tls: Some(ServerTls {
            secured: Secured::When(key("SANDESH", "introspect_ssl_enable")),
            pairs: SANDESH_PAIRS,
        }),
    }
}
