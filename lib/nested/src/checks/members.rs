//! Whether services fit the release of the images, and whether their clients can use them under service addresses.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::World;
use crate::allocate::Allocation;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::input::{Driver, Service};
use crate::live::Fact;
use crate::roles::{Profile, Role};

/// Ports on which Cassandra speaks Thrift.
const THRIFT: [u16; 2] = [9160, 9161];

pub(super) fn check(world: &World, report: &mut Report) {
    even(world, report);
    peers(world, report);
    release(world, report);
    certificates(world, report);
}

fn even(world: &World, report: &mut Report) {
    for role in [Role::ConfigDatabase, Role::Zookeeper] {
        let Some(service) = world.input.services.get(&role) else { continue };
        let count = service.nodes.len();
        if count > 0 && count % 2 == 0 {
            report.find(
                Code::EvenMembers,
                Subject::Role(role),
                format!(
                    "{} has {count} nodes, and loses its quorum as early as with {}",
                    role.label(),
                    count - 1
                ),
                "name all nodes of the service; if these are all, give it an odd number",
            );
        }
    }
}

fn is_own(node: &Ipv4Addr, allocation: &Allocation) -> bool {
    allocation.addresses.get(node).is_some_and(|assigned| assigned.address == *node)
}

/// Cassandra's driver asks the first database for the others, and drops those that it was given.
fn peers(world: &World, report: &mut Report) {
    let input = world.input;
    let Some(service) = input.services.get(&Role::ConfigDatabase) else { return };
    let is_own = service.nodes.iter().all(|node| is_own(node, world.allocation));
    let speaks_cql = input.choices.profile == Profile::Cql;
    if input.is_link_local() && speaks_cql && service.nodes.len() > 1 && !is_own {
        report.find(
            Code::FabricPeers,
            Subject::Role(Role::ConfigDatabase),
            format!(
                "kube-manager connects to one of {} databases, learns the fabric addresses of the others, and does \
                 not reach them: it works without redundancy",
                service.nodes.len()
            ),
            "use connectivity FabricSNAT, by which fabric addresses are reached, or the nodes' own addresses as \
             service addresses",
        );
    }
}

fn release(world: &World, report: &mut Report) {
    let choices = &world.input.choices;
    let known =
        choices.driver.as_ref().and_then(|driver| report.known(driver, &[Code::PortsOfRelease]));
    let driver = match (known, choices.profile) {
        (Some(driver), _) => *driver,
        // The profile says what the images are meant to be.
        (None, Profile::Cql) => Driver::Cql,
        (None, Profile::Doc | Profile::Thrift) => Driver::Thrift,
    };
    database(world, driver, report);
    if driver == Driver::Cql {
        zookeeper(world.input.services.get(&Role::Zookeeper), report);
    }
}

fn database(world: &World, driver: Driver, report: &mut Report) {
    let Some(service) = world.input.services.get(&Role::ConfigDatabase) else { return };
    let port = service.fabric_port;
    let is_thrift = THRIFT.contains(&port);
    let speaks_cql = world.input.choices.profile == Profile::Cql;
    let (message, hint) = match driver {
        Driver::Cql if is_thrift => (
            format!("the database is on port {port} of Thrift, and the images speak CQL"),
            "give the port of CQL, such as 9041, and profile cql",
        ),
        Driver::Thrift if speaks_cql && !is_thrift => (
            format!("the database is on port {port} of CQL, and the images speak Thrift"),
            "plan with profile thrift, or use newer images",
        ),
        Driver::Cql | Driver::Thrift => return,
    };
    report.find(Code::PortsOfRelease, Subject::Role(Role::ConfigDatabase), message, hint);
}

fn zookeeper(service: Option<&Service>, report: &mut Report) {
    if service.is_none() {
        report.find(
            Code::PortsOfRelease,
            Subject::Role(Role::Zookeeper),
            "ZooKeeper is missing, and images that speak CQL wait for it without limit".to_owned(),
            "plan with profile cql",
        );
    }
}

/// Only clients of these two compare the name in a certificate with the address that they connect to.
fn certificates(world: &World, report: &mut Report) {
    for role in [Role::Config, Role::Keystone].into_iter().filter(|_| world.input.is_link_local()) {
        let certificate = world.input.choices.certificates.get(&role);
        let (Some(service), Some(names)) = (world.input.services.get(&role), certificate) else {
            continue;
        };
        let Some(names) = known(role, names, report) else { continue };
        let reached = service.nodes.iter().filter_map(|node| world.allocation.addresses.get(node));
        let missing: Vec<String> = reached
            .map(|assigned| assigned.address.to_string())
            .filter(|address| !names.contains(address))
            .collect();
        if !missing.is_empty() {
            report.find(
                Code::CertificateNames,
                Subject::Role(role),
                format!("the certificate of {} is not for {}", role.label(), missing.join(", ")),
                "issue it for the service addresses too, use the nodes' own addresses as service addresses, or \
                 connectivity FabricSNAT",
            );
        }
    }
}

fn known<'f>(
    role: Role,
    names: &'f Fact<BTreeSet<String>>,
    report: &mut Report,
) -> Option<&'f BTreeSet<String>> {
    if let Fact::Unknown(why) = names {
        report.unknown(Code::CertificateNames, format!("{}: {why}", role.label()));
    }
    names.known()
}
