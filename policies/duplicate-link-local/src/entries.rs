//! The link-local services of one object, with their defaults filled in, and what each shows
//! by itself.

use std::net::{Ipv4Addr, Ipv6Addr};

use opensdn_policy_sdk::{Failure, Finding, Pointer, Severity, Verdict};
use serde::Deserialize;

use crate::{
    ADDRESS, ADDRESS_TAKEN, METADATA, NAME_TAKEN, NO_EFFECT,
    networks::{Networks, Owner},
};

/// An entry as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: Option<String>,
    pub(crate) ip: Option<String>,
    pub(crate) port: Option<i64>,
    #[serde(rename = "ipFabricServiceHost")]
    pub(crate) fabric_host: Option<String>,
    #[serde(rename = "ipFabricServicePort")]
    pub(crate) fabric_port: Option<i64>,
    /// Of an object of its own, which may name several.
    #[serde(skip)]
    pub(crate) fabric_hosts: Vec<String>,
}

/// What kind of object an entry comes from.
pub(crate) enum Source {
    /// An object of its own, whose name may be elsewhere.
    Object { name_at: Pointer },
    /// Config: its entries are the metadata service unless they say otherwise.
    Config,
}

/// A link-local service with its defaults.
pub(crate) struct Service {
    /// In lower case, as vrouters compare it.
    pub(crate) name: String,
    pub(crate) written_name: String,
    pub(crate) name_at: Pointer,
    ip: Result<Ipv4Addr, String>,
    port: i64,
    pub(crate) address_at: Pointer,
    port_at: Pointer,
    /// Where vrouters send what comes for it: hosts in order, and a port.
    target: (Vec<String>, i64),
    of_config: bool,
}

/// The services of one object.
pub(crate) struct Table {
    namespace: String,
    owner: String,
    services: Vec<Service>,
    without_host: Vec<Pointer>,
}

const METADATA_NAME: &str = "metadata";
/// The same with an IPv6 address, from R24.1 on (tf-controller,
/// `src/vnsw/agent/oper/global_vrouter.cc:40`).
const METADATA_BY_IPV6: &str = "metadata6";
const METADATA_ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
const METADATA_PORT: i64 = 80;
const BGP_PORT: i64 = 179;
/// Of an entry of Config that names none.
const FABRIC_PORT: i64 = 8775;

impl Table {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        let owner = format!("{namespace}/{name}");
        Self {
            namespace: namespace.to_owned(),
            owner,
            services: Vec::new(),
            without_host: Vec::new(),
        }
    }

    /// The namespace of the object.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty() && self.without_host.is_empty()
    }

    /// Entries of a Config that the provisioner leaves out, so that they take nothing.
    pub(crate) fn judge_those_without_host(&self, verdict: &mut Verdict) {
        for at in &self.without_host {
            let text = "without ipFabricServiceHost the provisioner leaves the service out";
            let finding = NO_EFFECT.at(at.key("ipFabricServiceHost")).says(text);
            verdict.add(finding);
        }
    }

    /// Whether an entry that means the same is among them.
    pub(crate) fn has(&self, service: &Service) -> bool {
        self.services.iter().any(|own| own.means_the_same(service))
    }

    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.iter()
    }

    /// Adds the entry at `at`.
    pub(crate) fn add(&mut self, entry: &Entry, at: &Pointer, source: &Source) {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if matches!(source, Source::Config) && given(&entry.fabric_host).is_none() {
            self.without_host.push(at.clone());
            return;
        }
        let mut hosts: Vec<String> = entry.fabric_host.iter().cloned().collect();
        hosts.extend(entry.fabric_hosts.iter().cloned());
        hosts.sort();
        let name = given(&entry.name).unwrap_or_else(|| METADATA_NAME.to_owned());
        let ip = given(&entry.ip).unwrap_or_else(|| METADATA_ADDRESS.to_string());
        self.services.push(Service {
            name: name.to_lowercase(),
            written_name: name,
            name_at: match source {
                Source::Object { name_at } => name_at.clone(),
                Source::Config => at.key("name"),
            },
            ip: ip.parse().map_err(|_| ip),
            port: entry.port.unwrap_or(METADATA_PORT),
            address_at: at.key("ip"),
            port_at: at.key("port"),
            target: (hosts, entry.fabric_port.unwrap_or(FABRIC_PORT)),
            of_config: matches!(source, Source::Config),
        });
    }

    /// Adds the entries of a Config; `at` is where its serviceConfiguration is.
    pub(crate) fn add_config(
        &mut self,
        first: Option<&Entry>,
        more: Option<&[Entry]>,
        at: &Pointer,
    ) {
        if let Some(entry) = first {
            self.add(entry, &at.key("linklocalServiceConfig"), &Source::Config);
        }
        for (number, entry) in more.unwrap_or_default().iter().enumerate() {
            let at = at.key("linklocalServices").index(number);
            self.add(entry, &at, &Source::Config);
        }
    }

    /// A claim is the object's, so one object can claim a key twice: that is found here.
    pub(crate) fn find_duplicates(&self, verdict: &mut Verdict) {
        for (number, service) in self.services.iter().enumerate() {
            let before = || self.services.iter().take(number);
            let owner = &self.owner;
            let key = service.key();
            if let Some(key) = &key
                && let Some(other) = before().find(|other| other.key().as_ref() == Some(key))
            {
                let text =
                    format!("{key} is given twice in {owner}, first at {}", other.address_at);
                let finding = ADDRESS_TAKEN.at(&service.address_at).says(text);
                // To vrouters that is one.
                let is_same = other.row() == service.row();
                verdict.add(if is_same {
                    finding.severity(Severity::Warn).hint("once is enough: remove one of them")
                } else {
                    finding
                });
            }
            // Of one name vrouters answer all addresses: on two ports of one address that is one.
            let shares_its_name =
                |other: &&Service| other.name == service.name && other.ip != service.ip;
            if let Some(other) = before().find(shares_its_name) {
                let name = &service.name;
                let text =
                    format!("{name:?} is given twice in {owner}, first at {}", other.name_at);
                verdict.add(service.shares_its_name(text));
            }
        }
    }
}

impl Service {
    /// The key of the vrouters' table; none for an address that cannot be.
    pub(crate) fn key(&self) -> Option<String> {
        self.ip.as_ref().ok().map(|ip| format!("{ip}:{}", self.port))
    }

    /// What the row says besides its key: objects that agree on it may share it, for to vrouters they are one.
    pub(crate) fn row(&self) -> String {
        let (hosts, port) = &self.target;
        format!("{} to {}:{port}", self.name, hosts.join(","))
    }

    /// Whether kube-manager writes rows of such names, and finds them by it: another of the name would be changed or
    /// deleted by it (`kube_manager/vnc/link_local_manager.py`).
    fn has_a_name_of_kube_manager(&self) -> bool {
        let port = self.name.rsplit_once("-kubernetes-").map(|(_, port)| port);
        port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// The finding that another row has the name.
    pub(crate) fn shares_its_name(&self, text: String) -> Finding {
        let finding = NAME_TAKEN.at(&self.name_at).says(text);
        if self.has_a_name_of_kube_manager() { finding.severity(Severity::Deny) } else { finding }
    }

    /// Whether it has this address, as far as it has one.
    pub(crate) fn has_address(&self, ip: &str) -> bool {
        match &self.ip {
            Ok(own) => ip.parse() == Ok(*own),
            Err(own) => own == ip,
        }
    }

    fn means_the_same(&self, other: &Self) -> bool {
        (&self.name, &self.ip, self.port) == (&other.name, &other.ip, other.port)
            && self.target == other.target
    }

    pub(crate) fn judge_name(&self, verdict: &mut Verdict) {
        let name = &self.name;
        let is_metadata = [METADATA_NAME, METADATA_BY_IPV6].contains(&name.as_str());
        if !name.contains(METADATA_NAME) || (self.of_config && is_metadata) {
            return;
        }
        let text = format!("{name:?}: every vrouter takes a name with metadata in it for Nova's");
        let finding = METADATA.at(&self.name_at).says(text);
        verdict.add(if self.of_config {
            finding
                .hint("name it metadata if it is Nova's metadata service, else without that word")
        } else {
            finding
        });
    }

    /// Of what goes to it vrouters ask no table (tf-controller, `src/vnsw/agent/pkt/pkt_flow_info.cc:491-503`).
    pub(crate) fn judge_port(&self, verdict: &mut Verdict) {
        if self.port == BGP_PORT {
            let text = format!(
                "{}: vrouters lead nothing to the fabric that is for port 179",
                self.written_name
            );
            verdict.add(NO_EFFECT.at(&self.port_at).says(text).hint("choose another port"));
        }
    }

    pub(crate) fn judge_address(
        &self,
        networks: &Networks<'_>,
        verdict: &mut Verdict,
    ) -> Result<(), Failure> {
        let ip = match &self.ip {
            Ok(ip) => *ip,
            Err(text) if self.name == METADATA_BY_IPV6 && text.parse::<Ipv6Addr>().is_ok() => {
                return Ok(());
            }
            Err(text) => {
                verdict
                    .add(ADDRESS.at(&self.address_at).says(format!("{text:?} is no IPv4 address")));
                return Ok(());
            }
        };
        let finding = ADDRESS.at(&self.address_at);
        if let Some(what) = never_a_service(ip) {
            verdict.add(
                finding.says(format!("{ip} is {what}; no workload can reach a service there")),
            );
        } else if let Some(owner) = networks.owner_of(ip)? {
            verdict.add(match owner {
                Owner::Certain(owner) => finding.says(format!("{ip} belongs to {owner}")),
                Owner::Possible(owner) => finding.severity(Severity::Warn).says(format!(
                    "{ip} is in {owner}: ipFabricForwarding is not true, and pods get such addresses only in isolated \
                     namespaces that switch it on"
                )),
            });
        } else if !ip.is_link_local() {
            verdict.add(finding.severity(Severity::Warn).says(format!(
                "{ip} is not in 169.254.0.0/16: make sure that no workload uses the address, for \
                 every vrouter takes it away"
            )));
        } else if ip == METADATA_ADDRESS && self.name != METADATA_NAME {
            verdict.add(finding.severity(Severity::Warn).says(format!(
                "{ip} is where workloads look for metadata: with the name {:?} they find this \
                 service instead",
                self.name
            )));
        }
        Ok(())
    }
}

fn never_a_service(ip: Ipv4Addr) -> Option<&'static str> {
    if ip.octets().first() == Some(&0) {
        Some("of the network 0.0.0.0/8, which stands for no machine")
    } else if ip.is_loopback() {
        Some("a loopback address")
    } else if ip.is_multicast() {
        Some("a multicast address")
    } else if ip.is_broadcast() {
        Some("the broadcast address")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Source, Table};

    #[test]
    fn unset_means_the_metadata_service() {
        let mut table = Table::new("tf", "config1");
        let fabric_host = Some("192.0.2.1".to_owned());
        let entry = Entry { name: Some(String::new()), fabric_host, ..Entry::default() };
        table.add(&entry, &"/spec".into(), &Source::Config);
        let service = table.services().next().unwrap();
        assert_eq!(service.name, "metadata");
        assert_eq!(service.key().as_deref(), Some("169.254.169.254:80"));
    }

    #[test]
    fn addresses_are_compared_as_addresses() {
        let mut table = Table::new("tf", "a");
        let at = |ip: &str| Entry {
            ip: Some(ip.into()),
            port: Some(443),
            fabric_host: Some("192.0.2.1".to_owned()),
            ..Entry::default()
        };
        table.add(&at("169.254.1.1"), &"/spec".into(), &Source::Config);
        table.add(&at("169.254.1"), &"/spec".into(), &Source::Config);
        let keys: Vec<_> = table.services().map(super::Service::key).collect();
        assert_eq!(keys, [Some("169.254.1.1:443".to_owned()), None]);
    }
}
