//! The state of the services that a component needs, and of the component because of them.

use std::sync::{Mutex, PoisonError};

use crate::component::Service;
use crate::plan::Plan;

/// A service's state, in introspect's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not tried yet.
    Begun,
    /// Answered.
    Up,
    /// With the reason.
    Down(String),
}

/// Of one service.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    pub(crate) service: Service,
    /// The servers, each with its state.
    pub(crate) servers: Vec<(String, Link)>,
}

impl Connected {
    /// One server is enough.
    pub(crate) fn is_up(&self) -> bool {
        self.servers.iter().any(|(_, link)| *link == Link::Up)
    }

    /// The state of the whole: up if one is; else why the first is not.
    pub(crate) fn link(&self) -> Link {
        let first = self.servers.first().map_or(Link::Begun, |(_, link)| link.clone());
        if self.is_up() { Link::Up } else { first }
    }
}

/// Of a whole component, shared.
#[derive(Debug)]
pub(crate) struct State {
    connections: Mutex<Vec<Connected>>,
}

impl State {
    pub(crate) fn of(plan: &Plan) -> Self {
        let begun = plan.connections.iter().map(|connection| Connected {
            service: connection.service,
            servers: connection.servers.iter().map(|it| (it.to_string(), Link::Begun)).collect(),
        });
        Self { connections: Mutex::new(begun.collect()) }
    }

    pub(crate) fn connections(&self) -> Vec<Connected> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the state of a server; returns whether that is new.
    pub(crate) fn note(&self, connection: usize, server: usize, link: Link) -> Change {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let before = down(&connections);
        let known = connections.get_mut(connection).and_then(|it| it.servers.get_mut(server));
        let Some((_, known)) = known else { return Change::default() };
        let is_new = *known != link;
        *known = link;
        let after = down(&connections);
        Change { is_new, process: (before != after).then_some(after) }
    }
}

/// What is new after a note.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The server's state.
    pub(crate) is_new: bool,
    /// The component's: the services that are now down, if they are others than before.
    pub(crate) process: Option<Vec<&'static str>>,
}

/// The services of which no server answers, as `contrail-status` shows them.
pub(crate) fn down(connections: &[Connected]) -> Vec<&'static str> {
    let down = connections.iter().filter(|connected| !connected.is_up());
    let mut names: Vec<_> = down.map(|connected| names(connected.service).2).collect();
    names.dedup();
    names
}

/// Type and name of a connection, and both together: `Database:Cassandra`.
pub(crate) fn names(service: Service) -> (&'static str, &'static str, &'static str) {
    match service {
        Service::Cassandra => ("Database", "Cassandra", "Database:Cassandra"),
        Service::RabbitMq => ("Database", "RabbitMQ", "Database:RabbitMQ"),
        Service::Zookeeper => ("Zookeeper", "Zookeeper", "Zookeeper:Zookeeper"),
        Service::Redis => ("Redis-UVE", "Redis", "Redis-UVE:Redis"),
        Service::ConfigApi => ("ApiServer", "ApiServer", "ApiServer:ApiServer"),
        Service::AnalyticsApi => ("OpServer", "OpServer", "OpServer:OpServer"),
        Service::Collector => ("Collector", "Collector", "Collector:Collector"),
        Service::Kafka => ("KafkaPub", "Kafka", "KafkaPub:Kafka"),
        Service::ControlNode => ("XMPP", "control-node", "XMPP:control-node"),
    }
}
