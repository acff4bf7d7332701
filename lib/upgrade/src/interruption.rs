//! For how long nodes were without their vrouter: from when its pod is asked to end until the next one is ready, and its agent
//! has a control node, where agents are asked.

use std::collections::BTreeSet;

use opensdn_crds::upgrade::{NodeInterruption, ServiceHealth};
use time::OffsetDateTime;

use crate::daemons::{self, Daemons};
use crate::health::{Pod, Service};
use crate::time::{parse, text};

/// So many are kept: of more nodes the later ones are not listed.
pub const MOST: usize = 1000;

/// How the interruptions of a service are, in words and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Those that are over.
    pub over: usize,
    /// On how many nodes these were: on the way back each has another one.
    pub nodes: usize,
    /// Seconds of all of them.
    pub seconds: i64,
    /// The longest: node and seconds.
    pub longest: Option<(String, i64)>,
    /// Those that last.
    pub open: usize,
}

/// Of the interruptions of a service.
#[must_use]
pub fn summary(all: &[NodeInterruption]) -> Summary {
    let over = all.iter().filter_map(|one| Some((one.node.clone(), one.seconds?)));
    Summary {
        over: over.clone().count(),
        nodes: over.clone().map(|(node, _)| node).collect::<BTreeSet<_>>().len(),
        seconds: over.clone().fold(0, |sum, (_, seconds)| sum.saturating_add(seconds)),
        longest: over.max_by_key(|(_, seconds)| *seconds),
        open: all.iter().filter(|one| one.seconds.is_none()).count(),
    }
}

/// Takes down what is seen now of a service with one pod on each node, whose pods are replaced since `started`. Agents of
/// which none answered before are not waited for.
pub(crate) fn note(
    known: &mut Vec<NodeInterruption>,
    service: &Service,
    before: Option<&ServiceHealth>,
    started: OffsetDateTime,
) {
    // The API server writes times of pods in whole seconds.
    let started = started.replace_nanosecond(0).unwrap_or(started);
    let daemons = service.daemons.as_ref().filter(|_| before.is_some_and(daemons::worked));
    for pod in &service.pods {
        let Some(node) = &pod.node else { continue };
        let last = known.iter().rfind(|one| one.node == *node);
        let is_new = |since: &OffsetDateTime| {
            last.is_none_or(|last| end(last).is_some_and(|end| *since > end))
        };
        if let Some(since) = since(pod, started).filter(is_new) {
            if known.len() >= MOST {
                continue;
            }
            known.push(NodeInterruption {
                node: node.clone(),
                since: text(since),
                ..NodeInterruption::default()
            });
        }
        let last = known.iter_mut().rfind(|one| one.node == *node && one.seconds.is_none());
        if let Some(last) = last {
            close(last, pod, daemons);
        }
    }
}

/// When the vrouter of its node went, if that was since then: the pod is asked to end, or follows one that has ended.
fn since(pod: &Pod, started: OffsetDateTime) -> Option<OffsetDateTime> {
    pod.asked_to_end.or(pod.created).filter(|since| *since >= started)
}

fn end(one: &NodeInterruption) -> Option<OffsetDateTime> {
    parse(&one.since)?.checked_add(time::Duration::seconds(one.seconds?))
}

fn close(one: &mut NodeInterruption, pod: &Pod, daemons: Option<&Daemons>) {
    let Some((since, ready)) = parse(&one.since).zip(pod.ready_since) else { return };
    // A pod that was ready before it was asked to end is not the next one.
    if !pod.is_ready || ready < since {
        return;
    }
    let end = match agent(pod, daemons, ready) {
        Agent::NotAsked => ready,
        Agent::Unheard => return,
        Agent::Lost => return one.without_control_node = Some(true),
        // When exactly it had one again is not known: it was asked then.
        Agent::Works(asked_at) if one.without_control_node == Some(true) => asked_at,
        Agent::Works(_) => ready,
    };
    one.seconds = Some((end - since).whole_seconds());
}

/// What the agent of a pod says.
enum Agent {
    /// Agents are not asked.
    NotAsked,
    /// It was not asked since it is ready, or what it said is not known.
    Unheard,
    /// It is not functional: it has no control node, for one.
    Lost,
    /// It is, and was asked then.
    Works(OffsetDateTime),
}

fn agent(pod: &Pod, daemons: Option<&Daemons>, ready: OffsetDateTime) -> Agent {
    let Some(daemons) = daemons else { return Agent::NotAsked };
    let Some(asked_at) = daemons.asked_at.filter(|asked_at| *asked_at >= ready) else {
        return Agent::Unheard;
    };
    let listed = daemons.said.not_active.as_deref().unwrap_or_default();
    if listed.iter().any(|one| one.pod == pod.name) {
        return Agent::Lost;
    }
    let (all, functional) = (daemons.said.daemons, daemons.said.functional);
    let wrong = all.unwrap_or_default().saturating_sub(functional.unwrap_or_default());
    // The list has the first alone.
    let are_all_listed = usize::try_from(wrong).unwrap_or_default() <= listed.len();
    if are_all_listed { Agent::Works(asked_at) } else { Agent::Unheard }
}

#[cfg(test)]
mod tests {
    use opensdn_crds::status::{DaemonState, DaemonWord, IntrospectStatus, SessionCounts};

    use super::*;

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(1000 + second)
    }

    fn pod(created: i64, ready: Option<i64>, asked_to_end: Option<i64>) -> Pod {
        Pod {
            name: format!("agent-{created}"),
            node: Some("w1".to_owned()),
            created: Some(at(created)),
            ready_since: ready.map(at),
            is_ready: ready.is_some() && asked_to_end.is_none(),
            asked_to_end: asked_to_end.map(at),
            ..Pod::default()
        }
    }

    fn service(pod: Pod, daemons: Option<Daemons>) -> Service {
        Service { id: "Vrouter/v".to_owned(), pods: vec![pod], daemons, ..Service::default() }
    }

    fn said(asked_at: i64, lost: Option<&str>) -> Option<Daemons> {
        let state = |pod: &str| DaemonState {
            pod: pod.to_owned(),
            node: "w1".to_owned(),
            container: "vrouteragent".to_owned(),
            state: DaemonWord::Initializing,
            message: None,
        };
        let said = IntrospectStatus {
            functional: Some(if lost.is_some() { 0 } else { 1 }),
            daemons: Some(1),
            not_active: lost.map(|pod| vec![state(pod)]),
            ..IntrospectStatus::default()
        };
        Some(Daemons { said, asked_at: Some(at(asked_at)) })
    }

    /// What is known after each of these looks, as node and seconds.
    fn after(looks: Vec<Service>) -> Vec<Option<i64>> {
        let mut known = Vec::new();
        let worked = SessionCounts { up: Some(1), all: Some(1) };
        let before = ServiceHealth { daemons: Some(worked), ..ServiceHealth::default() };
        looks.iter().for_each(|look| note(&mut known, look, Some(&before), at(0)));
        known.iter().map(|one| one.seconds).collect()
    }

    #[test]
    fn it_is_from_when_a_pod_is_asked_to_end_until_the_next_is_ready() {
        let old = || service(pod(-500, Some(-490), None), None);
        assert_eq!(after(vec![old()]), [], "one that was there before");
        let going = || service(pod(-500, Some(-490), Some(10)), None);
        let new = |ready| service(pod(25, ready, None), None);
        assert_eq!(after(vec![old(), going(), going(), new(None)]), [None]);
        assert_eq!(after(vec![going(), new(None), new(Some(52)), new(Some(52))]), [Some(42)]);
        // Not seen to go: since the next was made.
        assert_eq!(after(vec![old(), new(Some(52))]), [Some(27)]);
        let again = || service(pod(25, Some(52), Some(90)), None);
        let third = service(pod(95, Some(100), None), None);
        let seen = after(vec![going(), new(Some(52)), again(), third]);
        assert_eq!(seen, [Some(42), Some(10)], "of two that were replaced each counts");
    }

    #[test]
    fn an_agent_that_is_asked_has_to_have_a_control_node() {
        let going = || service(pod(-500, Some(-490), Some(10)), said(5, None));
        let new = |daemons| service(pod(25, Some(52), None), daemons);
        assert_eq!(after(vec![going(), new(said(5, None))]), [None], "not asked since");
        assert_eq!(after(vec![going(), new(said(60, None))]), [Some(42)]);
        let lost = || new(said(60, Some("agent-25")));
        assert_eq!(after(vec![going(), lost()]), [None]);
        assert_eq!(after(vec![going(), lost(), new(said(90, None))]), [Some(80)]);
        let mut unlisted = said(60, None);
        unlisted.as_mut().unwrap().said.daemons = Some(30);
        assert_eq!(after(vec![going(), new(unlisted)]), [None], "of thirty ten are listed");
    }

    #[test]
    fn no_more_are_kept_than_a_status_has_room_for() {
        let mut all = service(pod(1, Some(2), None), None);
        let one = all.pods.remove(0);
        let of = |number: usize| Pod { node: Some(format!("w{number}")), ..one.clone() };
        all.pods = (0..MOST + 5).map(of).collect();
        let mut known = Vec::new();
        note(&mut known, &all, None, at(0));
        assert_eq!(known.len(), MOST);
        let summary = summary(&known);
        assert_eq!((summary.over, summary.seconds, summary.open), (MOST, 1000, 0));
    }
}
