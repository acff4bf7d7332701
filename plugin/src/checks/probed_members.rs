//! What a cluster of tf-operator needs of its nodes: names by which its databases know each other, and files of the signer
//! External.

use std::net::IpAddr;

use opensdn_node_probe::{
    Directory, DirectoryState, MOST_ENTRIES, NameFinding, NodeFindings, Seen,
};
use serde_json::Value;

use super::nested::{MOST_NAMES, name_of};
use super::probed::{Said, each, worst};
use super::report::{Outcome, Verdict};
use super::world::{World, addresses, runs_on};
use super::{few, owners, roles};
use crate::snapshot::{Read, list, name, text};

/// Those by whose names members find each other; tf-operator names all others so too (`pkg/apis/tf/v1alpha1/base_types.go:953-973`).
const NAMED: [&str; 3] = ["Cassandra", "Rabbitmq", "Zookeeper"];
/// Where pods look for what the signer External has made (`pkg/certificates/certificate.go:53-70`).
const CERTIFICATES: &str = "/etc/contrail/ssl/certs";
const AUTHORITIES: &str = "/etc/contrail/ssl/ca-certs";
const BUNDLE: &str = "ca-bundle.crt";

/// A member by the name that tf-operator gives it, with the addresses of its node.
struct Member<'a> {
    name: String,
    node: &'a Value,
}

/// The domain of the names (`pkg/apis/tf/v1alpha1/cluster_info.go:205-232`): what OpenShift's installer or kubeadm says, else
/// a default.
fn domain(world: &World) -> Result<String, String> {
    let said = |of: &Read<Value>, at: &str, default: &str| match of {
        Read::Known(of) => {
            let said = text(of, at);
            Ok(Some(if said.is_empty() { default } else { said }.to_owned()))
        }
        Read::Absent => Ok(None),
        Read::Unknown(why) => Err(why.clone()),
    };
    if let Some(domain) = said(&world.openshift, "/baseDomain", "example.com")? {
        return Ok(domain);
    }
    Ok(said(&world.kubeadm, "/networking/dnsDomain", "k8s")?.unwrap_or_else(|| "k8s".to_owned()))
}

/// Those of which tf-operator knows members by names. On OpenShift it takes addresses, but for the seeds of Cassandra
/// (`pkg/apis/tf/v1alpha1/base_types.go:1209-1214`).
fn kinds(world: &World) -> &'static [&'static str] {
    if world.openshift.known().is_some() { &["Cassandra"] } else { &NAMED }
}

/// The host names of their nodes in the domain of the cluster.
fn members(world: &World) -> Result<Vec<Member<'_>>, String> {
    let domain = domain(world)?;
    let members = world.nodes.items().iter().filter(|node| has_members(world, node));
    let named = members.map(|node| {
        let host = list(node, "/status/addresses").find(|one| text(one, "/type") == "Hostname");
        let host = host.map_or(name(node), |one| text(one, "/address"));
        let name = match host.ends_with(&domain) {
            true => host.to_owned(),
            false => format!("{host}.{domain}"),
        };
        Member { name, node }
    });
    Ok(named.collect())
}

/// Names that nodes are to look for.
pub(crate) fn names_of_members(world: &World) -> Vec<String> {
    if world.nested.is_some() || owners::tf_operator(world).is_none() {
        return Vec::new();
    }
    let members = members(world).unwrap_or_default();
    members.into_iter().map(|one| one.name).take(MOST_NAMES).collect()
}

fn has_members(world: &World, node: &Value) -> bool {
    kinds(world).iter().any(|kind| runs_on(world, kind, node))
}

pub(super) fn names(world: &World) -> Verdict {
    if let Some(why) = world.tf_operators.why_unknown() {
        return Verdict::uncertain(format!("whether tf-operator runs is not known: {why}"));
    }
    if owners::tf_operator(world).is_none() {
        return Verdict::skipped("no tf-operator runs here, and ours knows members by addresses");
    }
    let members = match members(world) {
        Ok(members) if members.is_empty() => {
            return Verdict::uncertain("no node is known on which databases run");
        }
        Ok(members) => members,
        Err(why) => {
            return Verdict::uncertain(format!("the domain of the names is not known: {why}"));
        }
    };
    let good = match members.len().checked_sub(MOST_NAMES) {
        Some(more) if more > 0 => {
            format!(
                "the first {MOST_NAMES} names of databases lead to their nodes, {more} more were not looked for"
            )
        }
        _ => "the names of databases lead to their nodes".to_owned(),
    };
    each(world, &good, |node, findings| match findings.names.wanted.as_slice() {
        _ if !has_members(world, node) => (Outcome::Ok, "no database is to run here".to_owned()),
        [] => (Outcome::Uncertain, "its pod looked for no names".to_owned()),
        wanted => worst(wanted.iter().map(|one| leads_to(one, &members)).collect(), "all of them"),
    })
}

/// A name that leads to the node itself alone, as 127.0.1.1, is none by which others find it.
fn leads_to(one: &NameFinding, members: &[Member<'_>]) -> Said {
    let found = match &one.addresses {
        Seen::Is(found) if !found.is_empty() => found,
        Seen::Is(_) | Seen::Unknown(_) => return name_of(one, Outcome::Warn),
    };
    let own = members.iter().find(|member| member.name == one.name);
    let own: Vec<IpAddr> = own
        .into_iter()
        .flat_map(|member| addresses(member.node))
        .filter_map(|address| address.parse().ok())
        .collect();
    if own.is_empty() || found.iter().any(|address| own.contains(address)) {
        return (Outcome::Ok, one.name.clone());
    }
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    (Outcome::Warn, format!("the name {} leads to {}, and not to its node", one.name, few(&found)))
}

/// Folders that are to be looked at.
pub(crate) fn folders(world: &World) -> Vec<String> {
    let is_external =
        owners::tf_operator(world).is_some() && !managers_with_external(world).is_empty();
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
    if let Some(why) = world.tf_operators.why_unknown() {
        return Verdict::uncertain(format!("whether tf-operator runs is not known: {why}"));
    }
    if owners::tf_operator(world).is_none() {
        return Verdict::skipped(
            "no tf-operator runs here, and ours takes no files of nodes: see the conditions of the Manager",
        );
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
        Ok(entries) if entries.len() < MOST_ENTRIES => {
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
    let Some(address) = findings.addresses.first() else {
        return (Outcome::Uncertain, "the address of the node is not known".to_owned());
    };
    let wanted = [
        format!("server-{address}.crt"),
        format!("client-{address}.crt"),
        format!("server-key-{address}.pem"),
        format!("client-key-{address}.pem"),
    ];
    let missing: Vec<String> = wanted.into_iter().filter(|file| !entries.contains(file)).collect();
    match (missing.as_slice(), entries.len() < MOST_ENTRIES) {
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
