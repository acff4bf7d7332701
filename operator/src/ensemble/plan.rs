//! What is done next with the members of an ensemble (pure): one thing, after which it is looked at again.
//!
//! - One member comes before another goes, unless that is gone for good and keeps it from coming; one that comes runs and has
//!   caught up before it is counted.
//! - A member that stays has to serve before anything is changed, so that at most one is missing by our doing.
//! - The leader goes last, and is started again last.
//! - A pod that cannot start, and is of an earlier template, is made again before all else: it may be that template
//!   that keeps it, and no member is missed for it.

use std::collections::BTreeSet;

use super::{Change, Joins, Leaves, Member, View};
use crate::ensemble::record::Record;

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The addresses of the nodes on which members are to run.
    pub wanted: &'a [String],
    /// The service.
    pub view: &'a View,
    /// The pods.
    pub pods: &'a [Seat],
    /// Numbers, and how many pods there are to be.
    pub record: &'a Record,
    /// How a member comes.
    pub joins: Joins,
    /// How a member goes.
    pub leaves: Leaves,
    /// Where one runs that has left, and comes again only when it is started again.
    pub left: &'a BTreeSet<String>,
}

/// What matters of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its name.
    pub pod: String,
    /// The address of its node; empty before it has one.
    pub address: String,
    /// Whether its template has changed since.
    pub is_outdated: bool,
    /// Whether it has found that what was stored is gone.
    pub has_lost_data: bool,
    /// Whether it is terminating.
    pub is_going: bool,
    /// Whether it does not run, and Kubernetes says why.
    pub is_stuck: bool,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: all is as it shall be.
    Settled,
    /// Something has to happen first.
    Wait(String),
    /// So many pods.
    Scale(i32),
    /// The service is notified.
    Change(Change),
    /// A pod at this address, where each node has a volume of its own.
    Settle(String),
    /// No pod at this address any more, in the same case.
    Vacate {
        /// Which.
        address: String,
        /// Why.
        why: &'static str,
    },
    /// A pod is deleted, and made again by its StatefulSet.
    Restart {
        /// Which.
        pod: String,
        /// Why.
        why: &'static str,
    },
}

/// What is done next.
#[must_use]
pub fn next(now: &Situation<'_>) -> Step {
    let Situation { wanted, view, pods, .. } = now;
    if wanted.is_empty() {
        return Step::Settled;
    }
    if let Some(step) = take_out_who_has_lost_data(now) {
        return step;
    }
    if let Some(pod) = pods.iter().find(|pod| pod.is_going) {
        return Step::Wait(format!(
            "waits for pod {} to end; if its node is lost for good, delete the node; where that is gone, Kubernetes takes the pod away in a minute",
            pod.pod
        ));
    }
    if let Some(step) = make_stuck_again(pods, &view.serving) {
        return step;
    }
    if let Some(step) = leave_where_none_is_to_run(now) {
        return step;
    }
    let is_missing =
        |member: &&Member| wanted.contains(&member.host) && !view.serving.contains(&member.host);
    if let Some(member) = view.members.iter().find(is_missing) {
        // Fewer pods than members: a user has taken one away, or one that comes again has the pod of one that was to go.
        let is_other = |pod: &&Seat| !pod.address.is_empty() && !view.has(&pod.address);
        let others = pods.iter().filter(is_other).count();
        return more_pods(now, count(view.members.len() + others), &member.host).unwrap_or_else(
            || Step::Wait(format!("waits for the member on {} to serve", member.host)),
        );
    }
    if let Some(step) = pursue_who_leaves(now) {
        return step;
    }
    if let Some(missing) = wanted.iter().find(|address| !view.has(address)) {
        return gone_for_good(now).unwrap_or_else(|| join(now, missing));
    }
    let leaving = leaves_next(now);
    // More pods than members: one is of a member that has left. It goes before the next leaves, or both would come at
    // once when they are wanted again; but as the pod of one that stays may go in its place, not while another is down.
    let all_serve = view.members.iter().all(|member| view.serving.contains(&member.host));
    if now.record.homes.is_none()
        && now.record.replicas > count(view.members.len())
        && (all_serve || leaving.is_none())
    {
        return Step::Scale(now.record.replicas - 1);
    }
    if let Some(leaving) = leaving {
        return leave(now, leaving);
    }
    if pods.len() != wanted.len() {
        return Step::Wait(format!("{} of {} pods are there", pods.len(), wanted.len()));
    }
    restart(now)
}

/// One pod that cannot start, and whose template has changed since: with that it never may. So what a user has put
/// right takes effect, whether the members have a quorum or not.
#[must_use]
pub fn make_stuck_again(pods: &[Seat], serving: &BTreeSet<String>) -> Option<Step> {
    if pods.iter().any(|pod| pod.is_going) {
        return None;
    }
    let is_it = |pod: &&Seat| pod.is_outdated && pod.is_stuck && !serving.contains(&pod.address);
    let pod = pods.iter().find(is_it)?;
    let why = "it cannot start, and is not of the last template";
    Some(Step::Restart { pod: pod.pod.clone(), why })
}

/// The member is made again as one that has nothing yet, so that it votes only when it has caught up: with one
/// that had lagged behind it could outvote who knows more.
fn take_out_who_has_lost_data(now: &Situation<'_>) -> Option<Step> {
    let view = now.view;
    let lost = |member: &&Member| {
        !view.serving.contains(&member.host)
            && now.pods.iter().any(|pod| pod.address == member.host && pod.has_lost_data)
    };
    let member = view.members.iter().find(lost)?;
    let others_serve =
        view.members.iter().all(|other| other == member || view.serving.contains(&other.host));
    Some(if others_serve {
        Step::Change(Change::Remove(member.clone()))
    } else {
        Step::Wait(format!(
            "what the member on {} had stored is lost; waits for all others to serve, to take it out and in again",
            member.host
        ))
    })
}

/// Where one that comes needs all others, none can while one leaves: that comes to its end first. One that is wanted again is
/// looked after as a member.
fn pursue_who_leaves(now: &Situation<'_>) -> Option<Step> {
    let view = now.view;
    let leaves = |member: &&Member| view.leaving.contains(&member.host);
    let member = view.members.iter().find(leaves).filter(|_| now.joins == Joins::ByStreaming)?;
    Some(if now.wanted.contains(&member.host) { Step::Settled } else { leave(now, member.clone()) })
}

/// One member comes.
fn join(now: &Situation<'_>, missing: &str) -> Step {
    let Situation { wanted, view, pods, record, joins, .. } = now;
    let is_new = |address: &str| wanted.iter().any(|one| one == address) && !view.has(address);
    let mut new = pods.iter().filter(|pod| is_new(&pod.address));
    let ready = new.clone().find(|pod| view.serving.contains(&pod.address));
    if let Some(pod) = ready.filter(|_| *joins == Joins::WhenAdded) {
        return match record.ids.get(&pod.address) {
            Some(id) => Step::Change(Change::Add(Member { id: *id, host: pod.address.clone() })),
            None => Step::Wait(format!("waits for files for {}", pod.address)),
        };
    }
    if let Some(pod) = new.clone().find(|pod| now.left.contains(&pod.address)) {
        let why = "its member has left, and is to come again";
        return Step::Restart { pod: pod.pod.clone(), why };
    }
    if let Some(pod) = new.next() {
        return Step::Wait(format!("waits for {} to catch up with the others", pod.address));
    }
    more_pods(now, count(view.members.len()) + 1, missing)
        .unwrap_or_else(|| Step::Wait(format!("waits for a pod on {missing}")))
}

/// As many pods as there are to be, if they are fewer; where each node has a volume, one at this address.
fn more_pods(now: &Situation<'_>, replicas: i32, address: &str) -> Option<Step> {
    match &now.record.homes {
        Some(homes) => (!homes.contains_key(address)).then(|| Step::Settle(address.to_owned())),
        None => (now.record.replicas < replicas).then_some(Step::Scale(replicas)),
    }
}

/// A pod that is neither a member nor wanted. Where it is made again nothing is free yet, unless a member is missing.
fn leave_where_none_is_to_run(now: &Situation<'_>) -> Option<Step> {
    let is_left = |address: &String| !now.view.has(address) && !now.wanted.contains(address);
    let why = "it is where none is to run any more";
    if let Some(homes) = &now.record.homes {
        let address = homes.keys().find(|address| is_left(address))?.clone();
        return Some(Step::Vacate { address, why });
    }
    let is_misplaced = |pod: &&Seat| !pod.address.is_empty() && is_left(&pod.address);
    let pod = now.pods.iter().find(is_misplaced)?;
    Some(Step::Restart { pod: pod.pod.clone(), why })
}

/// The pod of a member ends, and does not come back where it is.
fn end_pod(now: &Situation<'_>, pod: &Seat, why: &'static str) -> Step {
    match &now.record.homes {
        Some(homes) if homes.contains_key(&pod.address) => {
            Step::Vacate { address: pod.address.clone(), why }
        }
        // Its node has another address by now.
        _ => Step::Restart { pod: pod.pod.clone(), why },
    }
}

/// Where one that comes needs all others: first the member goes that does not serve and is to leave anyway.
fn gone_for_good(now: &Situation<'_>) -> Option<Step> {
    let Situation { wanted, view, joins, .. } = now;
    let is_gone =
        |member: &&Member| !wanted.contains(&member.host) && !view.serving.contains(&member.host);
    let gone = view.members.iter().find(is_gone).filter(|_| *joins == Joins::ByStreaming)?;
    Some(leave(now, gone.clone()))
}

/// The member that leaves next: first one that does not serve, as it only counts against the quorum, and the leader last.
fn leaves_next(now: &Situation<'_>) -> Option<Member> {
    let view = now.view;
    let leaving = view.members.iter().filter(|member| !now.wanted.contains(&member.host));
    leaving
        .min_by_key(|member| (view.serving.contains(&member.host), member.host == view.leader))
        .cloned()
}

/// One member goes. Where its pod has to end first that is made again, and waits for a node.
fn leave(now: &Situation<'_>, leaving: Member) -> Step {
    let pod = now.pods.iter().find(|pod| pod.address == leaving.host);
    let hands_nothing_over =
        now.joins == Joins::ByStreaming && !now.view.serving.contains(&leaving.host);
    match pod {
        Some(pod) if now.leaves == Leaves::AfterItsPod => end_pod(now, pod, "its member leaves"),
        Some(pod) if hands_nothing_over && pod.is_stuck => {
            end_pod(now, pod, "its member is to leave, and does not run")
        }
        // It is only being started again, or its node is away. Were it forgotten, others would have what it has from members that
        // may lack the last writes.
        Some(_) if hands_nothing_over => Step::Wait(format!(
            "waits for the member on {}, which is to leave, to hand over what it has; if its node is lost for good, delete the node",
            leaving.host
        )),
        _ => Step::Change(Change::Remove(leaving)),
    }
}

/// One pod whose template has changed: that of the leader last.
fn restart(now: &Situation<'_>) -> Step {
    let mut outdated: Vec<&Seat> = now.pods.iter().filter(|pod| pod.is_outdated).collect();
    outdated.sort_by_key(|pod| pod.address == now.view.leader);
    outdated.first().map_or(Step::Settled, |pod| Step::Restart {
        pod: pod.pod.clone(),
        why: "it is not of the last template",
    })
}

fn count(members: usize) -> i32 {
    i32::try_from(members).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
