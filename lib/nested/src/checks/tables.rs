//! What is wrong with a table of link-local services by itself, be it planned or made by hand: addresses, ports, names
//! and duplicates. Deliberately not here: what the cloud says of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use opensdn_config_api::link_local::is_metadata;
use opensdn_config_api::link_local::{Hosts, Key, Row};

use super::World;
use crate::allocate::VROUTERS;
use crate::catalogue::Code;
use crate::finding::{Finding, Report, Severity, Subject};
use crate::input::{LOOPBACK_HINT, is_host};
use crate::list::shortened;
use crate::roles::{Role, VROUTER_PORT};
use crate::rows::Change;

const LONGEST_NAME: usize = 253;
/// Agents never take this port for a link-local service, on either side.
const BGP: i64 = 179;

/// A row, and how bad it is if something is wrong that costs no more than DNS.
struct Entry<'a> {
    row: &'a Row,
    if_cosmetic: Severity,
}

/// Checks a table that was made by hand.
#[must_use]
pub fn check_table(rows: &[Row]) -> Vec<Finding> {
    let mut report = Report::default();
    for row in rows {
        let entry = Entry { row, if_cosmetic: Severity::Error };
        service_address(row, &mut report);
        target_addresses(row, &mut report);
        ports(row, &mut report);
        hosts(&entry, &mut report);
        name(&entry, &mut report);
        if leads_to_loopback(row) && row.fabric_port() != Some(VROUTER_PORT.into()) {
            loopback(row, &mut report);
        }
    }
    duplicates(rows, &mut report);
    report.sorted().findings
}

/// Of a planned row addresses and ports are what their types say.
pub(super) fn check(world: &World, report: &mut Report) {
    let rows: Vec<Row> = world.rows.iter().map(|row| row.row()).collect();
    for (planned, row) in world.rows.iter().zip(&rows) {
        let adopted = world.list.first(planned.key()).filter(|_| planned.change == Change::None);
        let entry = match adopted {
            Some(seen) => Entry { row: seen.row, if_cosmetic: Severity::Warning },
            None => Entry { row, if_cosmetic: Severity::Error },
        };
        ports(row, report);
        hosts(&entry, report);
        name(&entry, report);
        if planned.role != Role::Vrouter && planned.target.address == VROUTERS {
            loopback(row, report);
        }
    }
    duplicates(&rows, report);
}

fn about(row: &Row) -> Subject {
    Subject::Row(format!("{} ({})", shortened(row.name()), written_key(row)))
}

fn written_key(row: &Row) -> String {
    let port = row.service_port().map_or_else(|| "no port".to_owned(), |port| port.to_string());
    format!("{}:{port}", shortened(row.service_ip()))
}

fn service_address(row: &Row, report: &mut Report) {
    let text = row.service_ip();
    if !text.parse::<Ipv4Addr>().is_ok_and(is_host) {
        report.find(
            Code::AddressUnusable,
            about(row),
            format!(
                "the service address {:?} is no IPv4 address that a host can have",
                shortened(text)
            ),
            "give an unused IPv4 address outside of 0.0.0.0/8 and 127.0.0.0/8, and below 224.0.0.0",
        );
    }
}

fn target_addresses(row: &Row, report: &mut Report) {
    for text in row.fabric_ips() {
        let is_good = |address: Ipv4Addr| is_host(address) || address == VROUTERS;
        if !text.parse::<Ipv4Addr>().is_ok_and(is_good) {
            report.find(
                Code::TargetNotIpv4,
                about(row),
                format!(
                    "the fabric address {:?} is no IPv4 address that a host can have",
                    shortened(text)
                ),
                "give the IPv4 address of the node in the fabric",
            );
        }
    }
}

fn ports(row: &Row, report: &mut Report) {
    for (what, port) in [("service", row.service_port()), ("fabric", row.fabric_port())] {
        let text = port.map_or_else(|| "missing".to_owned(), |port| port.to_string());
        match port {
            Some(BGP) => report.find(
                Code::BgpPort,
                about(row),
                format!(
                    "the {what} port is {BGP}, which agents never take for a link-local service"
                ),
                "have the service listen on another port",
            ),
            Some(1..=65535) => {}
            _ => report.find(
                Code::PortOutOfRange,
                about(row),
                format!("the {what} port is {text}"),
                "give a port from 1 to 65535",
            ),
        }
    }
}

fn hosts(entry: &Entry, report: &mut Report) {
    let (severity, message) = match entry.row.target().hosts {
        Hosts::Addresses(_) | Hosts::Name(_) => return,
        Hosts::Both { addresses, name } => (
            entry.if_cosmetic,
            format!(
                "it leads to {} addresses and to the name {:?}: agents ignore the name",
                addresses.len(),
                shortened(&name)
            ),
        ),
        // Addresses that cannot be read are a finding already.
        Hosts::Neither if !entry.row.fabric_ips().is_empty() => return,
        Hosts::Neither => (Severity::Error, "it leads to neither an address nor a name".to_owned()),
    };
    let hint = "give either fabric addresses or a DNS name";
    report.find_as(severity, Code::TargetUnclear, about(entry.row), message, hint);
}

fn name(entry: &Entry, report: &mut Report) {
    let name = entry.row.name();
    let (severity, message) = match name.chars().count() {
        _ if is_metadata(name) => (
            Severity::Error,
            "agents take each row with metadata in its name for Nova's metadata service, and lead it there".to_owned(),
        ),
        0 => (entry.if_cosmetic, "the name is empty: no virtual machine finds it by DNS".to_owned()),
        length if length > LONGEST_NAME => (
            entry.if_cosmetic,
            format!("the name has {length} characters, more than {LONGEST_NAME}: DNS cannot have it"),
        ),
        _ => return,
    };
    let hint = "choose another name, or another name of the cluster where that is in it";
    report.find_as(severity, Code::NameUnusable, about(entry.row), message, hint);
}

fn leads_to_loopback(row: &Row) -> bool {
    row.target().hosts.addresses().is_some_and(|all| all.iter().any(Ipv4Addr::is_loopback))
}

fn loopback(row: &Row, report: &mut Report) {
    let message = "it leads to the compute node of each virtual machine, and only the vrouter agent is on all of them";
    report.find(Code::LoopbackTarget, about(row), message.to_owned(), LOOPBACK_HINT);
}

fn duplicates(rows: &[Row], report: &mut Report) {
    let mut first: BTreeMap<Key, &Row> = BTreeMap::new();
    for row in rows {
        let key = row.key();
        match first.get(&key) {
            // One that is no address is a finding already.
            _ if key.ip == IpAddr::V4(Ipv4Addr::UNSPECIFIED) => {}
            Some(before) => report.find(
                Code::DuplicateKey,
                about(row),
                format!(
                    "{key} is already that of {:?}, which wins in agents",
                    shortened(before.name())
                ),
                "give each node of the underlay a service address of its own",
            ),
            None => drop(first.insert(key, row)),
        }
    }
}
