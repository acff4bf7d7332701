//! Pods that listen, and what others say of reaching them. Each is known by a line that no other run has.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use opensdn_node_probe::{
    FORMAT, Listen, Question, Reached, ServiceFinding, Wanted, WantedService,
};

use super::{Answer, Answers};
use crate::checks::probed::Said;
use crate::checks::report::Outcome;

/// Above 1024, so that no right is needed for it.
pub(crate) const PORT: u16 = 24_224;
/// What the answer of an image is that does not know the question.
pub(crate) const OLDER: &str = "its pod is of an older release, which asks no services: take the image of this one with --probe-image";

/// What pods do that listen.
pub(crate) fn listens(mark: &str) -> Wanted {
    let listen = Some(Listen { port: PORT, line: mark.to_owned() });
    Wanted { format: FORMAT, listen, ..Wanted::default() }
}

/// What each of these is asked by others.
pub(crate) fn questions(peers: &Answers) -> impl Iterator<Item = WantedService> {
    let listeners = peers.values().flatten().filter_map(listener);
    listeners.map(|at| WantedService { at, question: Question::Line })
}

/// Where a pod listens, if it does.
pub(crate) fn listener(answer: &Answer) -> Option<SocketAddr> {
    answer.findings.listens.as_ref()?.known()?;
    Some((address(answer)?, PORT).into())
}

/// Its address of IPv4.
pub(crate) fn address(answer: &Answer) -> Option<Ipv4Addr> {
    answer.findings.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    })
}

/// What the pod found there.
pub(crate) fn found(asker: &Answer, at: SocketAddr) -> Option<&ServiceFinding> {
    asker.findings.services.iter().find(|one| one.wanted.at == at)
}

/// Why the one that listens there is not reached; nothing where it is.
///
/// # Errors
/// The pod was not asked.
pub(crate) fn why_not_reached(
    asker: &Answer,
    at: SocketAddr,
    mark: &str,
) -> Result<Option<String>, &'static str> {
    Ok(match found(asker, at).map(|one| &one.reached) {
        None => return Err(OLDER),
        Some(Reached::Answered(reply)) if reply.begins == mark => None,
        Some(Reached::No(why) | Reached::Silent(why)) => Some(why.clone()),
        Some(_) => Some("something else answers".to_owned()),
    })
}

/// Whether all of these nodes' pods are reached.
pub(crate) fn all_reached(asker: &Answer, others: &[(&String, SocketAddr)], mark: &str) -> Said {
    let mut wrong = Vec::new();
    for (other, at) in others {
        match why_not_reached(asker, *at, mark) {
            Err(why) => return (Outcome::Uncertain, why.to_owned()),
            Ok(None) => {}
            Ok(Some(why)) => wrong.push(format!("{other} ({at}): {why}")),
        }
    }
    match wrong.is_empty() {
        true => (Outcome::Ok, format!("{} reached", others.len())),
        false => (
            Outcome::Fail,
            format!("{} of {} not reached: {}", wrong.len(), others.len(), wrong.join("; ")),
        ),
    }
}
