//! Where names of hosts lead to, by what this process resolves them with: on the network of the node with DNS policy
//! Default these are the node's `/etc/hosts` and servers, as for kube-manager.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use opensdn_node_probe::{NameFinding, Names, Seen};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::host::Host;

const LIMIT: Duration = Duration::from_secs(10);

/// Looks for the names, and for that of the node itself; for none where none is wanted.
pub(super) async fn look(host: &Host, wanted: &[String]) -> Names {
    if wanted.is_empty() {
        return Names::default();
    }
    let own = match host.needed("/proc/sys/kernel/hostname") {
        Ok(name) => resolved(name.trim()).await,
        Err(why) => NameFinding { name: String::new(), addresses: Seen::Unknown(why) },
    };
    let wanted = join_all(wanted.iter().map(|name| resolved(name))).await;
    Names { own: Some(own), wanted }
}

/// Every error of the resolver is a name that leads nowhere: kube-manager ends at each of them.
async fn resolved(name: &str) -> NameFinding {
    let addresses = match timeout(LIMIT, lookup_host((name, 0))).await {
        Ok(Ok(found)) => {
            let all: BTreeSet<IpAddr> = found.map(|one| one.ip()).collect();
            Seen::Is(all.into_iter().collect())
        }
        Ok(Err(_)) => Seen::Is(Vec::new()),
        Err(_) => Seen::Unknown(format!("no answer within {} s", LIMIT.as_secs())),
    };
    NameFinding { name: name.to_owned(), addresses }
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_nowhere_is_known_to_and_that_of_the_node_is_looked_for_too() {
        let (_folder, host) = node(&[("proc/sys/kernel/hostname", "localhost\n")]);
        let names = look(&host, &["no-such-host.invalid".to_owned()]).await;
        let own = names.own.unwrap();
        let addresses = own.addresses.known().unwrap();
        assert!(own.name == "localhost" && addresses.iter().all(IpAddr::is_loopback));
        assert!(!addresses.is_empty());
        let [other] = &*names.wanted else { panic!("{:?}", names.wanted) };
        assert!(other.addresses.known().is_none_or(Vec::is_empty), "{other:?}");
        assert_eq!(look(&host, &[]).await, Names::default(), "nothing was asked");
    }
}
