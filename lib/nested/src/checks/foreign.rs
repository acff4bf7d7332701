//! What is odd in the rows that the cloud has, ours and those of others. Nothing of it is changed.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use opensdn_config_api::link_local::Key;

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::list::{Seen, shortened};
use crate::rows::Change;

const ASK: &str = "ask the owner of the row to correct or remove it; it is left as it is";

pub(super) fn check(world: &World, report: &mut Report) {
    let codes = [
        Code::DuplicateInList,
        Code::AddressUnparsable,
        Code::PortInListOutOfRange,
        Code::ServedElsewhere,
        Code::SeveralMetadata,
    ];
    if report.known(&world.live.rows, &codes).is_none() {
        return;
    }
    duplicates(world, report);
    for seen in &world.list.rows {
        addresses(seen, report);
        ports(seen, report);
    }
    served_elsewhere(world, report);
    metadata(world, report);
}

fn about(seen: &Seen) -> Subject {
    Subject::Row(seen.title())
}

fn duplicates(world: &World, report: &mut Report) {
    for key in world.list.duplicates() {
        let mut rows = world.list.at(key);
        let Some(first) = rows.next() else { continue };
        for dead in rows {
            report.find(
                Code::DuplicateInList,
                about(dead),
                format!(
                    "row {} has {key} too and is before it: agents never see this one",
                    first.title()
                ),
                ASK,
            );
        }
    }
}

/// IPv6 is known to agents, and an empty text in the list of addresses is what kube-manager writes beside a name.
fn addresses(seen: &Seen, report: &mut Report) {
    let service = seen.row.service_ip();
    if service.parse::<IpAddr>().is_err() {
        let message =
            format!("its service address is {:?}: agents take it for 0.0.0.0", shortened(service));
        report.find(Code::AddressUnparsable, about(seen), message, ASK);
    }
    for text in seen.row.fabric_ips() {
        if text.parse::<Ipv4Addr>().is_err() {
            let message = format!(
                "its fabric address {:?} is not IPv4: agents leave it out",
                shortened(text)
            );
            report.find(Code::AddressUnparsable, about(seen), message, ASK);
        }
    }
}

fn ports(seen: &Seen, report: &mut Report) {
    let ports = [("service", seen.row.service_port()), ("fabric", seen.row.fabric_port())];
    for (what, port) in ports {
        let written = match port {
            Some(1..=65535) => continue,
            Some(port) => port.to_string(),
            None => "missing".to_owned(),
        };
        let taken = port.unwrap_or_default() as u16;
        let message = format!("its {what} port is {written}: agents take it for {taken}");
        report.find(Code::PortInListOutOfRange, about(seen), message, ASK);
    }
}

/// Where a row is added although others lead to the same: with an address that was given or recorded, or where not all
/// rows of the node fit onto the other address.
fn served_elsewhere(world: &World, report: &mut Report) {
    let ours: BTreeSet<Key> = world.rows.iter().map(|row| row.key()).collect();
    for row in world.rows.iter().filter(|row| row.change == Change::Add) {
        let target = row.leads_to();
        let other = world.list.serving(&target).find(|seen| !ours.contains(&seen.key));
        if let Some(other) = other {
            report.find(
                Code::ServedElsewhere,
                Subject::Row(row.title()),
                format!("row {} leads to {target} already", other.title()),
                "use its service address for this node, if nothing else is on the ports that the node needs there",
            );
        }
    }
}

fn metadata(world: &World, report: &mut Report) {
    let all: Vec<String> =
        world.list.rows.iter().filter(|seen| seen.is_metadata()).map(Seen::title).collect();
    if all.len() > 1 {
        let shown = all.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        report.find(
            Code::SeveralMetadata,
            Subject::Cloud,
            format!("{} rows have metadata in their names, among them {shown}", all.len()),
            "leave only Nova's: agents lead all of them to the metadata service",
        );
    }
}
