//! Whether nodes reach each other on the ports that they need, by what they tried. A port of UDP that nothing answered on
//! is known to be dropped only where the peer was there to answer. Of TCP a node that is up refuses what nothing listens
//! on, so that silence is enough.

use std::collections::BTreeMap;
use std::net::IpAddr;

use opensdn_node_probe::{
    Extent, MatrixFindings, Miss, Missed, PeerGroup, Seen, Transport, WantedPort,
};
use serde_json::Value;

use super::few;
use super::probed::{Said, each, worst};
use super::probed_devices::uncertain;
use super::report::{Outcome, Verdict};
use super::vrouter_settings::encapsulations;
use super::world::World;
use crate::probe::Answer;
use crate::probe::matrix::{Peer, Plan, Tried};
use crate::snapshot::name;

/// Clocks of nodes are known to so many microseconds.
const SLACK: i64 = 1_000_000;
/// A round of tries takes so many.
const ROUND: i64 = 10_000_000;
const GRE: &str = "MPLSoGRE";
const OLDER: &str =
    "the image of its probe does not know how: take the image of this release with --probe-image";

pub(super) fn reachable(world: &World) -> Verdict {
    let Some(tried) = &world.matrix else {
        return Verdict::skipped("nodes tried nothing of each other");
    };
    if world.probed.as_ref().is_some_and(|answers| answers.len() == 1) {
        return Verdict::skipped("one node was asked, and it has no other to reach");
    }
    let good = match tried.plan.matrix.extent {
        Extent::Full => "they reach each other on the ports that they need",
        Extent::Sample => {
            "they reach some others on the ports that they need, as a sample (--matrix full: all)"
        }
    };
    each(world, good, |node, _| of_node(world, tried, node))
}

fn of_node(world: &World, tried: &Tried, node: &Value) -> Said {
    let plan = &tried.plan;
    let name = name(node);
    let Some((address, _)) = plan.peers.iter().find(|(_, peer)| peer.node == name) else {
        return match plan.left_out.get(name) {
            Some(why) => uncertain(format!("it tried no other: {why}")),
            None => (Outcome::Ok, "nothing of OpenSDN is to run there".to_owned()),
        };
    };
    if plan.peers.len() < 2 {
        return uncertain("no other node answered that it could try".to_owned());
    }
    let (answer, found) = match answer_of(tried, name) {
        Ok(found) => found,
        Err(why) => return uncertain(format!("it tried no other: {why}")),
    };
    let nodes = plan.matrix.nodes();
    let Some(place) = plan.matrix.place(&[*address]) else {
        return uncertain("it has no place among those that were tried".to_owned());
    };
    let Some((_, own)) = nodes.get(place) else {
        return uncertain("it has no place among those that were tried".to_owned());
    };
    let mut gathered = Gathered::default();
    for missed in &found.missed {
        let Some(peer) = plan.peers.get(&missed.peer) else { continue };
        let of = nodes.iter().find(|(address, _)| *address == missed.peer).map(|(_, group)| *group);
        let state = of.map_or(State::unknown("it has no place"), |group| {
            state(tried, peer, group, missed.port, (answer, found))
        });
        if let Some((outcome, why)) = said(missed, of, &state) {
            gathered.add(outcome, why, peer, missed.port);
        }
    }
    for peer in plan.matrix.peers(place).into_iter().filter_map(|peer| nodes.get(peer)) {
        gathered.held(plan, peer.0, own);
    }
    let mut all = gathered.texts();
    all.extend(of_the_rest(found));
    let names_gre = encapsulations(world, node).is_some_and(|stated| stated.contains(GRE));
    if own.has_vrouter && names_gre {
        let text = "GRE (IP protocol 47) was not tried: that needs more rights";
        all.push(uncertain(text.to_owned()));
    }
    worst(all, "it reaches the others")
}

/// What the node answered of trying others; else why it did not.
pub(super) fn answer_of<'a>(
    tried: &'a Tried,
    node: &str,
) -> Result<(&'a Answer, &'a MatrixFindings), String> {
    let answer = match tried.answers.get(node) {
        Some(Ok(answer)) => answer,
        Some(Err(why)) => return Err(why.clone()),
        None => return Err("it was not asked".to_owned()),
    };
    match &answer.findings.matrix {
        Some(Seen::Is(found)) => Ok((answer, found)),
        Some(Seen::Unknown(why)) => Err(why.clone()),
        None => Err(OLDER.to_owned()),
    }
}

/// What a peer had on a port when it was tried.
enum State {
    /// Its probe answered there.
    Answers,
    /// Its probe found that something else has it.
    Held,
    /// That is not known.
    Unknown(String),
}

impl State {
    fn unknown(why: &str) -> Self {
        Self::Unknown(why.to_owned())
    }
}

fn state(
    tried: &Tried,
    peer: &Peer,
    of: &PeerGroup,
    port: WantedPort,
    by: (&Answer, &MatrixFindings),
) -> State {
    let (answer, found) = match answer_of(tried, &peer.node) {
        Ok(found) => found,
        Err(why) => return State::Unknown(format!("its probe did not answer ({why})")),
    };
    if !of.answered().contains(&port) || found.silent.iter().any(|one| one.port == port) {
        return State::Held;
    }
    match (by.1.tried, by.0.ahead.known(), answer.ahead.known()) {
        (Some(tried), Some(ahead), Some(ahead_there)) => {
            let tried = tried - ahead;
            let (since, until) = (found.since - ahead_there, found.until - ahead_there);
            if since + SLACK <= tried && tried + ROUND <= until {
                State::Answers
            } else {
                State::unknown("its probe was not there at that time: have them try again")
            }
        }
        _ => State::unknown("whether its probe was there at that time is not known"),
    }
}

/// What is to be said of a port that was not reached; nothing where packets came through.
fn said(missed: &Missed, of: Option<&PeerGroup>, state: &State) -> Option<(Outcome, String)> {
    let is_answered = of.is_some_and(|group| group.answered().contains(&missed.port));
    let (outcome, why) = match (&missed.miss, state) {
        (Miss::NoAnswer(seconds), State::Answers) => (Outcome::Fail, dropped(*seconds)),
        (Miss::NoAnswer(seconds), _) if missed.port.transport == Transport::Tcp => {
            (Outcome::Fail, dropped(*seconds))
        }
        (Miss::NoAnswer(seconds), State::Held) => (
            Outcome::Uncertain,
            format!("no answer in {seconds} s, and something else has the port there"),
        ),
        (Miss::NoAnswer(seconds), State::Unknown(why)) => {
            (Outcome::Uncertain, format!("no answer in {seconds} s, and {why}"))
        }
        (Miss::Refused, State::Answers) => (
            Outcome::Fail,
            "refused, although its probe listens there (does a firewall reject it?)".to_owned(),
        ),
        (Miss::Refused, State::Unknown(why)) if is_answered => {
            (Outcome::Uncertain, format!("refused, and {why}"))
        }
        (Miss::Another, State::Answers) => (
            Outcome::Fail,
            format!("not its probe answers (does another machine have {}?)", missed.peer),
        ),
        (Miss::Refused | Miss::Another, _) => return None,
        (Miss::Rejected(why), _) => {
            (Outcome::Fail, format!("{why} (does a firewall reject it, or is no route there?)"))
        }
        (Miss::Untried(why), _) => {
            (Outcome::Uncertain, format!("this node could not try it: {why}"))
        }
    };
    Some((outcome, why))
}

fn dropped(seconds: u16) -> String {
    format!("no answer in {seconds} s (does a firewall drop it?)")
}

fn of_the_rest(found: &MatrixFindings) -> Vec<Said> {
    let mut rest = Vec::new();
    if found.left_out > 0 {
        rest.push(uncertain(format!("and {} more that it did not reach", found.left_out)));
    }
    if found.untried > 0 {
        rest.push(uncertain(format!(
            "{} ports of others were not tried in time: --matrix sample tries less, a longer --probe-timeout tries longer",
            found.untried
        )));
    }
    rest
}

/// Why something is said; what fails comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Reason {
    is_uncertain: bool,
    why: String,
}

/// What is said of several ports and peers, the same of many together.
#[derive(Default)]
struct Gathered<'a> {
    /// By the reason and the peer.
    ports: BTreeMap<(Reason, &'a str), Vec<String>>,
}

impl<'a> Gathered<'a> {
    fn add(&mut self, outcome: Outcome, why: String, peer: &'a Peer, port: WantedPort) {
        let kind = peer.ports.get(&port).copied().unwrap_or_default();
        let text = format!("{}/{} of {kind}", port.number, port.transport.word());
        let reason = Reason { is_uncertain: outcome != Outcome::Fail, why };
        self.ports.entry((reason, peer.node.as_str())).or_default().push(text);
    }

    /// What of the peer was not tried, and is needed on a node such as this.
    fn held(&mut self, plan: &'a Plan, peer: IpAddr, own: &PeerGroup) {
        let Some(peer) = plan.peers.get(&peer) else { return };
        for (port, audience) in &peer.held {
            if (audience.vrouters && own.has_vrouter) || (audience.members && own.is_member) {
                let why = "not tried, as it belongs to what runs there";
                self.add(Outcome::Uncertain, why.to_owned(), peer, *port);
            }
        }
    }

    fn texts(self) -> Vec<Said> {
        let mut same: BTreeMap<(Reason, Vec<String>), Vec<String>> = BTreeMap::new();
        for ((reason, peer), ports) in self.ports {
            same.entry((reason, ports)).or_default().push(peer.to_owned());
        }
        let mut texts = Vec::new();
        for ((reason, ports), peers) in same {
            let outcome = if reason.is_uncertain { Outcome::Uncertain } else { Outcome::Fail };
            let word = if ports.len() == 1 { "port" } else { "ports" };
            let why = reason.why;
            texts.push((outcome, format!("to {}, {word} {}: {why}", few(&peers), few(&ports))));
        }
        texts
    }
}
