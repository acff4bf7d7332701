//! What a cluster of tf-operator needs of its nodes: names by which its databases know each other, and files of the signer
//! External.

use opensdn_node_probe::{Directory, DirectoryState, NodeFindings, Seen};
use serde_json::Value;

use super::nested::{MOST_NAMES, name_of};
use super::probed::{Said, each, worst};
use super::report::{Outcome, Verdict};
use super::world::{World, runs_on};
use super::{owners, roles};
use crate::snapshot::{list, name, text};

/// Those whose members tf-operator names (`pkg/apis/tf/v1alpha1/base_types.go:953-973`).
const NAMED: [&str; 3] = ["Cassandra", "Rabbitmq", "Zookeeper"];
/// Where pods look for what the signer External has made (`pkg/certificates/certificate.go:53-70`).
const CERTIFICATES: &str = "/etc/contrail/ssl/certs";
const AUTHORITIES: &str = "/etc/contrail/ssl/ca-certs";
const BUNDLE: &str = "ca-bundle.crt";
/// So many names are shown of a folder: with as many there may be more.
const SHOWN: usize = 5;

/// How tf-operator names the members: the host names of their nodes in the domain that kubeadm says.
pub(crate) fn names_of_members(world: &World) -> Vec<String> {
    if world.nested.is_some() || owners::tf_operator(world).is_none() {
        return Vec::new();
    }
    let domain = world.kubeadm.known().map(|said| text(said, "/networking/dnsDomain"));
    let domain = domain.unwrap_or_default();
    let members = world.nodes.items().iter().filter(|node| has_members(world, node));
    let named = members.take(MOST_NAMES).map(|node| {
        let host = list(node, "/status/addresses").find(|one| text(one, "/type") == "Hostname");
        let host = host.map_or(name(node), |one| text(one, "/address"));
        if domain.is_empty() || host.ends_with(domain) {
            host.to_owned()
        } else {
            format!("{host}.{domain}")
        }
    });
    named.collect()
}

fn has_members(world: &World, node: &Value) -> bool {
    NAMED.iter().any(|kind| runs_on(world, kind, node))
}

pub(super) fn names(world: &World) -> Verdict {
    if let Some(why) = world.tf_operators.why_unknown() {
        return Verdict::uncertain(format!("whether tf-operator runs is not known: {why}"));
    }
    if owners::tf_operator(world).is_none() {
        return Verdict::skipped("no tf-operator runs here, and ours knows members by addresses");
    }
    if names_of_members(world).is_empty() {
        return Verdict::uncertain("no node is known on which databases run");
    }
    let good = "the names of databases lead to addresses";
    each(world, good, |node, findings| match findings.names.wanted.as_slice() {
        _ if !has_members(world, node) => (Outcome::Ok, "no database is to run here".to_owned()),
        [] => (Outcome::Uncertain, "its pod looked for no names".to_owned()),
        wanted => {
            worst(wanted.iter().map(|one| name_of(one, Outcome::Warn)).collect(), "all of them")
        }
    })
}

/// Folders that are to be looked at.
pub(crate) fn folders(world: &World) -> Vec<String> {
    let is_external = !managers_with_external(world).is_empty();
    let folders = [CERTIFICATES, AUTHORITIES].into_iter().filter(|_| is_external);
    folders.map(str::to_owned).collect()
}

fn managers_with_external(world: &World) -> Vec<&Value> {
    let of = |one: &&Value| text(one, "/spec/commonConfiguration/certSigner") == "External";
    world.managers.items().iter().filter(of).collect()
}

pub(super) fn files_of_signer(world: &World) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!("Managers may not be read: {why}"));
    }
    let managers = managers_with_external(world);
    if managers.is_empty() {
        return Verdict::skipped("no Manager has certSigner External");
    }
    let services = world.services();
    let own: Vec<_> = services.iter().filter(|one| managers.contains(&one.manager)).collect();
    each(world, "the files of the signer External are there", |node, findings| {
        if !own.iter().any(|service| roles::is_selected(service, node)) {
            return (Outcome::Ok, "no component is to run here".to_owned());
        }
        worst(vec![certificates(findings), authorities(findings)], "they are there")
    })
}

fn folder<'a>(findings: &'a NodeFindings, path: &str) -> Result<&'a [String], Said> {
    let of = |one: &&Directory| one.path == path;
    let found = findings.directories.iter().find(of).map(|one| &one.state);
    match found {
        Some(Seen::Is(DirectoryState::Present { entries, .. })) => Ok(entries),
        Some(Seen::Is(DirectoryState::Absent(_))) => {
            Err((Outcome::Fail, format!("{path} is missing: no pod of OpenSDN starts here")))
        }
        Some(Seen::Is(DirectoryState::NoFolder)) => {
            Err((Outcome::Fail, format!("{path} is no folder")))
        }
        Some(Seen::Unknown(why)) => {
            Err((Outcome::Uncertain, format!("{path} is not known: {why}")))
        }
        None => Err((Outcome::Uncertain, format!("its pod did not look at {path}"))),
    }
}

fn authorities(findings: &NodeFindings) -> Said {
    match folder(findings, AUTHORITIES) {
        Ok(entries) if entries.iter().any(|one| one == BUNDLE) => (Outcome::Ok, String::new()),
        Ok(entries) if entries.len() < SHOWN => {
            (Outcome::Fail, format!("{AUTHORITIES} has no {BUNDLE}"))
        }
        Ok(_) => (
            Outcome::Uncertain,
            format!("whether {AUTHORITIES} has {BUNDLE} is not known: it has more than is shown"),
        ),
        Err(said) => said,
    }
}

/// The files are named after the addresses of pods, which are those of the node.
fn certificates(findings: &NodeFindings) -> Said {
    let entries = match folder(findings, CERTIFICATES) {
        Ok(entries) => entries,
        Err(said) => return said,
    };
    let wanted = findings.addresses.first().map(|address| {
        [
            format!("server-{address}.crt"),
            format!("client-{address}.crt"),
            format!("server-key-{address}.pem"),
            format!("client-key-{address}.pem"),
        ]
    });
    let missing: Vec<String> =
        wanted.into_iter().flatten().filter(|file| !entries.contains(file)).collect();
    match (missing.as_slice(), entries.len() < SHOWN) {
        ([], _) => (Outcome::Ok, String::new()),
        (missing, true) => {
            (Outcome::Fail, format!("{CERTIFICATES} has no {}", missing.join(", no ")))
        }
        (missing, false) => (
            Outcome::Uncertain,
            format!(
                "whether {CERTIFICATES} has {} is not known: it has more than is shown",
                missing.join(", ")
            ),
        ),
    }
}
