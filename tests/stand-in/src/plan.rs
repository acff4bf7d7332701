//! What one component is to do with one configuration: where to listen and what to connect to,
//! everything looked up and every file read. With a plan, only the environment can fail.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, ServerConfig};

use crate::certificates::{self, Files};
use crate::component::{
    Answers, ClientTls, Component, Endpoint, Key, Need, Pair, Port, Presence, Secured, ServerTls,
    Service, Transport, key,
};
use crate::configuration::{self, Configuration, Problem};

/// All that is to be done.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Who it is.
    pub(crate) component: &'static Component,
    /// As which of several workers: the Config API's have a number each.
    pub(crate) worker: u16,
    /// Where to listen.
    pub(crate) listeners: Vec<Listener>,
    /// What to connect to.
    pub(crate) connections: Vec<Connection>,
}

/// A port to open.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The address to listen on.
    pub(crate) address: SocketAddr,
    /// TCP, or UDP as well.
    pub(crate) transport: Transport,
    /// What a peer gets.
    pub(crate) reply: Reply,
    /// With TLS, if there is one.
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

/// What a peer gets on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Introspect's pages.
    Introspect,
    /// A page that says who it is.
    Page,
    /// Nothing.
    Nothing,
    /// What another server says.
    From(Server),
}

/// A service to connect to.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Which service.
    pub(crate) service: Service,
    /// One of them is enough.
    pub(crate) servers: Vec<Server>,
    /// With TLS, if there is one.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
}

impl std::fmt::Display for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

impl Plan {
    /// Looks everything up.
    ///
    /// # Errors
    /// The first value that is missing or invalid.
    pub(crate) fn of(
        component: &'static Component,
        configuration: &Configuration,
    ) -> Result<Self, Problem> {
        for key in component.required {
            configuration.require(*key)?;
        }
        let listeners = component.ports.iter().map(|port| listener(port, configuration));
        let connections = component.needs.iter().map(|need| connection(need, configuration));
        let worker = configuration.get(key("DEFAULTS", "worker_id"));
        Ok(Self {
            component,
            worker: worker.and_then(|text| text.parse().ok()).unwrap_or_default(),
            listeners: listeners.collect::<Result<_, _>>()?,
            connections: connections.filter_map(Result::transpose).collect::<Result<_, _>>()?,
        })
    }
}

fn listener(port: &Port, configuration: &Configuration) -> Result<Listener, Problem> {
    let from = |key, text| {
        let server = server(text, None).map_err(|what| address_problem(configuration, key, what));
        server.map(Reply::From)
    };
    let reply = match port.answers {
        Answers::Introspect => Reply::Introspect,
        Answers::Page => Reply::Page,
        Answers::PageOrForwards(key) => match configuration.get(key) {
            Some(text) => from(key, text)?,
            None => Reply::Page,
        },
        Answers::Nothing => Reply::Nothing,
        Answers::Forwards(key) => from(key, configuration.require(key)?)?,
    };
    Ok(Listener {
        name: port.name,
        address: address(port.endpoint, configuration)?,
        transport: port.transport,
        reply,
        tls: port.tls.map(|tls| server_tls(tls, configuration)).transpose()?.flatten(),
    })
}

fn address(endpoint: Endpoint, configuration: &Configuration) -> Result<SocketAddr, Problem> {
    let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    match endpoint {
        Endpoint::Fixed(port) => Ok((everywhere, port).into()),
        Endpoint::Keys { address, port, otherwise } => {
            let named = address.and_then(|key| Some((key, configuration.get(key)?)));
            let address = named.map_or(Ok(everywhere), |(key, text)| {
                let what = format!("{text:?} is no IP address");
                text.parse()
                    .map_err(|_| configuration.problem(key, what, "give one of this host's"))
            })?;
            if otherwise.is_none() {
                configuration.require(port)?;
            }
            let port = configuration.port(port)?.or(otherwise).unwrap_or_default();
            Ok((address, port).into())
        }
        Endpoint::Joined(key) => {
            let text = configuration.require(key)?;
            // Kafka's has `SSL://` before it.
            let address = text.rsplit_once("://").map_or(text, |(_, address)| address);
            address.parse().map_err(|_| address_problem(configuration, key, text.to_owned()))
        }
        Endpoint::Worded(key) => {
            let text = configuration.require(key)?;
            let mut words = text.split_whitespace();
            let address = words.next().and_then(|word| word.parse().ok()).unwrap_or(everywhere);
            let words = text.split_whitespace().skip_while(|word| *word != "port");
            let port = words.skip(1).find_map(configuration::number);
            let port = port.ok_or_else(|| {
                configuration.problem(key, "there is no port", "write `port` and its number")
            })?;
            Ok((address, port).into())
        }
    }
}

fn address_problem(configuration: &Configuration, key: Key, what: String) -> Problem {
    configuration.problem(key, format!("{what:?} is no address with a port"), "write host:port")
}

fn server_tls(
    tls: ServerTls,
    configuration: &Configuration,
) -> Result<Option<Arc<ServerConfig>>, Problem> {
    if !is_secured(tls.secured, configuration) {
        return Ok(None);
    }
    let Some(pair) = configured(tls.pairs, configuration).or(tls.pairs.first()) else {
        return Ok(None);
    };
    let files = files(pair, configuration)?;
    certificates::server(files)
        .map(Some)
        .map_err(|error| unusable(&error, pair.certificate, configuration))
}

fn client_tls(
    tls: ClientTls,
    configuration: &Configuration,
) -> Result<Option<Arc<ClientConfig>>, Problem> {
    if !is_secured(tls.secured, configuration) {
        return Ok(None);
    }
    let pair = configured(tls.pairs, configuration);
    let own = pair.map(|pair| files(pair, configuration)).transpose()?;
    let authority = tls.authorities.iter().find(|key| configuration.get(**key).is_some());
    let authority = authority.or(tls.authorities.first());
    let trusted = authority.and_then(|key| configuration.get(*key)).map(Path::new);
    let blamed = |error: &certificates::Error| match (error, pair, authority) {
        (certificates::Error::Refused { .. }, Some(pair), _) => Some(pair.certificate),
        (_, Some(pair), _) if concerns(error, own) => Some(pair.certificate),
        (_, _, Some(key)) => Some(*key),
        (_, Some(pair), None) => Some(pair.certificate),
        (_, None, None) => None,
    };
    certificates::client(trusted, own)
        .map(Some)
        .map_err(|error| unusable(&error, blamed(&error).unwrap_or(key("", "")), configuration))
}

/// Whether a file that could not be read is one of our own, not the authorities'.
fn concerns(error: &certificates::Error, own: Option<Files<'_>>) -> bool {
    let certificates::Error::Read { path, .. } = error else { return false };
    own.is_some_and(|own| own.certificate == path || own.key == path)
}

fn is_secured(secured: Secured, configuration: &Configuration) -> bool {
    match secured {
        Secured::Always => true,
        Secured::When(key) => configuration.is_on(key),
    }
}

/// The first pair of which both files are named.
fn configured<'a>(pairs: &'a [Pair], configuration: &Configuration) -> Option<&'a Pair> {
    let has = |key| configuration.get(key).is_some();
    pairs.iter().find(|pair| has(pair.certificate) && has(pair.key))
}

fn files<'a>(pair: &Pair, configuration: &'a Configuration) -> Result<Files<'a>, Problem> {
    Ok(Files {
        certificate: Path::new(configuration.require(pair.certificate)?),
        key: Path::new(configuration.require(pair.key)?),
    })
}

fn unusable(error: &certificates::Error, key: Key, configuration: &Configuration) -> Problem {
    let remedy = "mount the Secret with this component's certificates, and name its files";
    configuration.problem(key, crate::chain(error), remedy)
}

fn connection(need: &Need, configuration: &Configuration) -> Result<Option<Connection>, Problem> {
    let text = match (configuration.get(need.servers), need.presence) {
        (None, Presence::Optional) => return Ok(None),
        (Some(text), _) => text,
        (None, Presence::Required) => configuration.require(need.servers)?,
    };
    for name in need.with {
        configuration.require(key(need.servers.section, name))?;
    }
    let port = need.port.map(|key| configuration.port(key)).transpose()?.flatten();
    let port = port.or(need.otherwise);
    let listed = text.split([' ', ',', '\t']).filter(|text| !text.is_empty());
    let servers = listed.map(|text| {
        server(text, port).map_err(|what| address_problem(configuration, need.servers, what))
    });
    Ok(Some(Connection {
        service: need.service,
        servers: servers.collect::<Result<_, _>>()?,
        tls: need.tls.map(|tls| client_tls(tls, configuration)).transpose()?.flatten(),
    }))
}

/// `host:port`, `[address]:port`, or `host` if a port is known otherwise; else the text again.
fn server(text: &str, otherwise: Option<u16>) -> Result<Server, String> {
    let refused = || text.to_owned();
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_address = text.parse::<IpAddr>().is_ok() || text.ends_with(']');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !is_address => {
            (host, configuration::number(port).ok_or_else(refused)?)
        }
        _ => (text, otherwise.ok_or_else(refused)?),
    };
    let host = bare(host);
    if host.is_empty() { Err(refused()) } else { Ok(Server { host, port }) }
}
