//! What is outside of the cluster: whether a connection of TCP can be made from this node. Nothing is sent; it is closed at
//! once.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use opensdn_node_probe::{Contact, MOST_TARGETS, Target, TargetFinding};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// For one connection.
const CONNECT: Duration = Duration::from_secs(2);
/// For a name: a resolver asks its next server after 5 s.
const LOOKUP: Duration = Duration::from_secs(10);
/// So many addresses of a name are tried.
const ADDRESSES: usize = 4;

/// Tries the first [`MOST_TARGETS`], at the same time.
pub(super) async fn look(wanted: &[Target]) -> Vec<TargetFinding> {
    let tried = wanted.iter().take(MOST_TARGETS).map(async |target| TargetFinding {
        target: target.clone(),
        contact: contact(target).await.into(),
    });
    join_all(tried).await
}

/// # Errors
/// It is not known: the name leads nowhere from here, or this pod could not try.
async fn contact(target: &Target) -> Result<Contact, String> {
    let Target { host, port } = target;
    let found = match timeout(LOOKUP, lookup_host((host.as_str(), *port))).await {
        Ok(Ok(found)) => found.collect::<BTreeSet<SocketAddr>>(),
        Ok(Err(error)) => return Err(format!("the node finds no address of {host}: {error}")),
        Err(_) => {
            return Err(format!("no address of {host} was found within {} s", LOOKUP.as_secs()));
        }
    };
    if found.is_empty() {
        return Err(format!("the node finds no address of {host}"));
    }
    let left_out = found.len().saturating_sub(ADDRESSES);
    let mut failed = Vec::new();
    for address in found.into_iter().take(ADDRESSES) {
        match connect(address).await {
            Ok(None) => return Ok(Contact::Made(address.ip())),
            Ok(Some(why)) => failed.push(of(host, address.ip(), &why)),
            Err(why) => return Err(of(host, address.ip(), &why)),
        }
    }
    if left_out > 0 {
        return Err(format!("{}; {left_out} more addresses were not tried", failed.join(", ")));
    }
    Ok(Contact::Failed(failed.join(", ")))
}

fn of(host: &str, address: IpAddr, why: &str) -> String {
    let address = address.to_string();
    if address == host { why.to_owned() } else { format!("{address}: {why}") }
}

/// Nothing where there is a connection, else why there is none.
///
/// # Errors
/// This pod could not try, and why.
async fn connect(address: SocketAddr) -> Result<Option<String>, String> {
    match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(None),
        Err(_) => Ok(Some(format!("no answer within {} s", CONNECT.as_secs()))),
        Ok(Err(error)) => match error.kind() {
            ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::TimedOut => Ok(Some(error.to_string())),
            _ => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use opensdn_node_probe::Seen;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    fn target(host: &str, port: u16) -> Target {
        Target { host: host.to_owned(), port }
    }

    #[tokio::test]
    async fn a_server_is_reached_and_hears_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            bytes
        });
        let found = look(&[target("127.0.0.1", port)]).await;
        let made = Seen::Is(Contact::Made(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(found.iter().map(|one| &one.contact).collect::<Vec<_>>(), [&made]);
        assert_eq!(heard.await.unwrap(), Vec::<u8>::new());
    }

    #[tokio::test]
    async fn a_closed_port_fails_and_a_name_that_leads_nowhere_is_not_known() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        // No label of a name is so long, so that no server is asked for it.
        let nowhere = "a".repeat(64);
        let wanted = [target("127.0.0.1", closed.port()), target(&nowhere, 5000)];
        let found = look(&wanted).await;
        let [closed, nowhere] = &*found else { panic!("{found:#?}") };
        assert!(
            matches!(&closed.contact, Seen::Is(Contact::Failed(why)) if why.contains("refused"))
        );
        assert!(nowhere.contact.known().is_none(), "{nowhere:#?}");
    }

    #[tokio::test]
    async fn no_more_than_eight_are_tried() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let wanted = vec![target("127.0.0.1", closed.port()); MOST_TARGETS + 1];
        assert_eq!(look(&wanted).await.len(), MOST_TARGETS);
    }
}
