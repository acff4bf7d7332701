//! Connections to the services that a component needs: each server is asked repeatedly, so
//! that a process that hangs or is cut off is noticed as well as one that has ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::{InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;
use tokio::time;
use tokio_rustls::TlsConnector;

use crate::component::Service;
use crate::greetings::{self, greet};
use crate::plan::{Connection, Server};
use crate::say;
use crate::state::{Link, State, names};

/// For an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a server is down.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("connect")]
    Connect(#[source] std::io::Error),
    #[error("agree on TLS")]
    Tls(#[source] std::io::Error),
    #[error("agree on TLS")]
    Name(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Greeting(#[from] greetings::Error),
    #[error("no answer within {ANSWER_TIMEOUT:?}")]
    Silence(#[from] time::error::Elapsed),
}

/// Keeps asking all servers of all services, each again after the pause.
pub(crate) fn keep_asking(connections: Vec<Connection>, pause: Duration, state: &Arc<State>) {
    for (place, connection) in connections.into_iter().enumerate() {
        for (number, server) in connection.servers.into_iter().enumerate() {
            let (tls, state) = (connection.tls.clone(), Arc::clone(state));
            let watched = Watched { service: connection.service, server, tls };
            tokio::spawn(async move { watched.watch(&state, (place, number), pause).await });
        }
    }
}

/// Says how the component is, by the services that are down.
pub(crate) fn announce(down: &[&str]) {
    match down {
        [] => say("now Functional"),
        down => say(&format!("now Non-Functional: {} down", down.join(", "))),
    }
}

struct Watched {
    service: Service,
    server: Server,
    tls: Option<Arc<ClientConfig>>,
}

impl Watched {
    async fn watch(
        &self,
        state: &State,
        (place, number): (usize, usize),
        pause: Duration,
    ) -> Infallible {
        let mut pause = time::interval(pause);
        pause.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            pause.tick().await;
            let link = match self.ask().await {
                Ok(()) => Link::Up,
                Err(error) => Link::Down(crate::chain(&error)),
            };
            let (_, name, _) = names(self.service);
            let line = match &link {
                Link::Down(why) => format!("{name} {} is down: {why}", self.server),
                Link::Up | Link::Begun => format!("{name} {} is up", self.server),
            };
            let change = state.note(place, number, link);
            if change.is_new {
                say(&line);
            }
            if let Some(down) = change.process {
                announce(&down);
            }
        }
    }

    async fn ask(&self) -> Result<(), Error> {
        time::timeout(ANSWER_TIMEOUT, async {
            let to = (self.server.host.as_str(), self.server.port);
            let mut stream = TcpStream::connect(to).await.map_err(Error::Connect)?;
            let Some(tls) = &self.tls else {
                return Ok(greet(self.service, &mut stream).await?);
            };
            let name = ServerName::try_from(self.server.host.clone())?;
            let connector = TlsConnector::from(Arc::clone(tls));
            let mut stream = connector.connect(name, stream).await.map_err(Error::Tls)?;
            Ok(greet(self.service, &mut stream).await?)
        })
        .await?
    }
}
