//! The members of a service that counts them itself: looked at before anything of them is changed, and then one
//! thing is. What is next is decided in [`crate::ensemble::plan`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::ResourceExt as _;
use opensdn_pki::Authorities;
use time::OffsetDateTime;

use super::fetch::{CLOCKS_DIFFER, Fetched};
use super::next_pod::last_revision;
use super::{Context, Error, delete_pod};
use crate::build::{Members, Valid};
use crate::canary::{HELD, ON_HOLD, Pace};
use crate::ensemble::plan::{Seat, Situation, Step, make_stuck_again, next};
use crate::ensemble::{Access, Change, Ensemble, Leaves, View};
use crate::ensembles::simulated::Pods;
use crate::exec::InPods;
use crate::kind::Kind;
use crate::node::addresses_of;
use crate::pod::Pod;

/// Until it is looked at again, while something is left to do.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// What was the last to be looked at and found as it shall be, by the UID of the object: while nothing of it
/// changes no member is asked.
#[derive(Debug, Default)]
pub struct Settled(Mutex<HashMap<String, String>>);

impl Settled {
    fn is(&self, uid: &str, seen: &str) -> bool {
        self.lock().get(uid).is_some_and(|before| before == seen)
    }

    fn set(&self, uid: &str, seen: Option<String>) {
        match seen {
            Some(seen) => self.lock().insert(uid.to_owned(), seen),
            None => self.lock().remove(uid),
        };
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.set(uid, None);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        // A map of texts cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be done after the objects are applied.
#[derive(Debug)]
pub(super) struct Plan {
    ensemble: Arc<dyn Ensemble>,
    access: Access,
    view: View,
    step: Step,
}

/// Looks at the service, if anything around it has changed, and has the objects be as the next step needs them.
/// Nothing is to be done where there is no plan.
pub(super) async fn plan(
    ctx: &Context,
    fetched: &Fetched,
    valid: &mut Valid,
    authorities: &Authorities,
) -> Result<Option<Plan>, Error> {
    let (Some(ensemble), Some(mut members)) =
        (valid.description.ensemble.clone(), valid.members.clone())
    else {
        return Ok(None);
    };
    let runs = fetched.owned.contains_key(&(Kind::StatefulSet, valid.instance.stateful_set()));
    if !runs || valid.stopped.is_some() || valid.nodes.is_empty() {
        return Ok(None);
    }
    let (uid, seats) = (fetched.object.uid().unwrap_or_default(), seats(fetched, valid));
    let wanted = addresses_of(&valid.nodes);
    let seen = format!("{wanted:?} {seats:?} {:?} {:?}", members.record, valid.pace);
    if ctx.settled.is(&uid, &seen) {
        return Ok(None);
    }
    let ensemble = simulated(ctx, fetched, &members, &ensemble).unwrap_or(ensemble);
    let exec = Arc::new(InPods::new(ctx.client.clone(), &fetched.namespace(), pods(fetched)));
    let access =
        Access::new(authorities, OffsetDateTime::now_utc(), exec).map_err(Error::Access)?;
    let answers = ensemble.look(&access, &valid.addresses).await;
    let has_left = |host: &str| {
        ensemble.leaves() == Leaves::AfterItsPod
            && !wanted.iter().any(|address| address == host)
            && seats.iter().all(|seat| seat.address != host)
    };
    let plan = match View::of(&answers, |host| address_of(fetched, host), has_left) {
        Err(why) => {
            members.waits = Some(("NoQuorum", no_quorum(&why.0, members.had_quorum)));
            let step = make_stuck_again(&seats, &BTreeSet::new());
            step.map(|step| Plan { ensemble, access, view: View::default(), step })
        }
        Ok(view) => {
            members.record = members.record.as_seen(&view).with(&valid.addresses);
            let step = if members.had_quorum {
                let record = &members.record;
                let (joins, leaves) = (ensemble.joins(), ensemble.leaves());
                let situation =
                    Situation { wanted: &wanted, view: &view, pods: &seats, record, joins, leaves };
                let step = held(next(&situation), &seats, &valid.pace);
                match when_others_are_ready(step, &seats, &fetched.pods) {
                    Step::Settled => tend(&*ensemble, &access, &view).await,
                    step => if_spared(&*ensemble, &access, &view, &seats, step).await,
                }
            } else {
                // Before anything is changed it is on record that the service is not to be started from nothing.
                Step::Wait("the members serve for the first time".to_owned())
            };
            members.had_quorum = true;
            say(&mut members, &step);
            let is_settled = step == Step::Settled;
            // As it will be with what was just recorded.
            let seen = format!("{wanted:?} {seats:?} {:?} {:?}", members.record, valid.pace);
            ctx.settled.set(&uid, is_settled.then_some(seen));
            Some(Plan { ensemble, access, view, step })
        }
    };
    valid.members = Some(members);
    Ok(plan)
}

/// An Upgrade has one pod replaced first: the others wait while it looks at that. After a stop they wait as well.
fn held(step: Step, seats: &[Seat], pace: &Pace) -> Step {
    let is_of_upgrade =
        |pod: &str| seats.iter().any(|seat| seat.pod == pod && seat.is_outdated && !seat.is_stuck);
    match &step {
        Step::Restart { pod, .. } if pace.on_hold && is_of_upgrade(pod) => {
            Step::Wait(ON_HOLD.to_owned())
        }
        Step::Restart { pod, .. }
            if pace.canary && is_of_upgrade(pod) && seats.iter().any(|seat| !seat.is_outdated) =>
        {
            Step::Wait(HELD.to_owned())
        }
        _ => step,
    }
}

/// A member may serve before the kubelet has its pod be ready. Until then the next one that is ready stays: who asks pods, as an
/// Upgrade does, would see two away.
fn when_others_are_ready(step: Step, seats: &[Seat], pods: &[Pod]) -> Step {
    let Step::Restart { pod: name, .. } = &step else { return step };
    let is_outdated = seats.iter().any(|seat| seat.pod == *name && seat.is_outdated);
    let is_ready = pods.iter().any(|pod| pod.name == *name && pod.is_ready);
    let other = pods.iter().find(|pod| pod.name != *name && !pod.is_ready);
    match other.filter(|_| is_outdated && is_ready) {
        Some(other) => Step::Wait(format!("waits for pod {} to be ready", other.name)),
        None => step,
    }
}

/// When all members are as they shall be: what is left to do for them.
async fn tend(ensemble: &dyn Ensemble, access: &Access, view: &View) -> Step {
    match ensemble.tend(access, view).await {
        Ok(None) => Step::Settled,
        Ok(Some(what)) => Step::Wait(what),
        Err(error) => {
            Step::Wait(format!("failed to look after the members: {error}; will try again"))
        }
    }
}

/// Where no container runs there is no member to ask.
fn simulated(
    ctx: &Context,
    fetched: &Fetched,
    members: &Members,
    real: &Arc<dyn Ensemble>,
) -> Option<Arc<dyn Ensemble>> {
    let addresses = |pod: &Pod| pod.address.clone();
    let first = if members.had_quorum {
        fetched.pods.iter().filter_map(addresses).collect()
    } else {
        members.record.first.clone()
    };
    let ready = fetched.pods.iter().filter(|pod| pod.is_ready).filter_map(addresses).collect();
    let pods = Pods { first, ready, ids: members.record.ids.clone() };
    let uid = fetched.object.uid().unwrap_or_default();
    Some(ctx.simulated.as_ref()?.of(&uid, &**real, pods))
}

/// A member that serves is started again only when the service itself says that it can be spared.
async fn if_spared(
    ensemble: &dyn Ensemble,
    access: &Access,
    view: &View,
    seats: &[Seat],
    step: Step,
) -> Step {
    let Step::Restart { pod, .. } = &step else { return step };
    let serves = |address: &str| view.has(address) && view.serving.contains(address);
    let is_it = |seat: &&Seat| seat.pod == *pod && serves(&seat.address);
    let Some(seat) = seats.iter().find(is_it) else { return step };
    match ensemble.may_spare(access, &seat.address).await {
        Ok(None) => step,
        Ok(Some(why)) => {
            Step::Wait(format!("pod {pod} is to be started again and cannot be spared yet: {why}"))
        }
        Err(error) => Step::Wait(format!(
            "pod {pod} is to be started again, and it is not known whether it can be spared: {error}"
        )),
    }
}

/// What is awaited, and how many pods there are to be.
fn say(members: &mut Members, step: &Step) {
    let message = match step {
        Step::Settled => return,
        Step::Wait(why) => why.clone(),
        Step::Scale(replicas) => {
            members.record.replicas = *replicas;
            format!("is given {replicas} pods")
        }
        Step::Change(Change::Add(member)) => {
            format!("server {} on {} becomes a member", member.id, member.host)
        }
        Step::Change(Change::Remove(member)) => {
            format!("server {} on {} leaves", member.id, member.host)
        }
        Step::Restart { pod, why } => format!("pod {pod} is started again: {why}"),
    };
    members.waits = Some(("MembersChange", message));
}

fn no_quorum(why: &str, had_quorum: bool) -> String {
    if !had_quorum {
        return format!("waits for the members to find each other: {why}");
    }
    format!(
        "most of the members have to serve, and do not: {why}; nothing is changed until they do. Look at their pods \
         and nodes"
    )
}

/// Does what is left to do of the plan. What fails is reported, and looked at again.
pub(super) async fn act(
    ctx: &Context,
    fetched: &Fetched,
    valid: &mut Valid,
    plan: &Plan,
) -> Result<(), Error> {
    let namespace = fetched.namespace();
    match &plan.step {
        Step::Settled | Step::Wait(_) | Step::Scale(_) => {}
        Step::Restart { pod, .. } => {
            delete_pod(ctx, fetched, pod).await?;
        }
        Step::Change(change) => {
            let made = plan.ensemble.make(&plan.access, &plan.view, change).await;
            let (Change::Add(member) | Change::Remove(member)) = change;
            let (name, id, host) = (fetched.name(), member.id, &member.host);
            match made {
                Ok(()) if matches!(change, Change::Add(_)) => {
                    tracing::info!(namespace, name, id, host, "added a member");
                }
                Ok(()) => tracing::info!(namespace, name, id, host, "removed a member"),
                Err(error) => {
                    tracing::warn!(namespace, name, id, host, %error, "failed to change the members; will look again");
                    if let Some((_, message)) =
                        valid.members.as_mut().and_then(|members| members.waits.as_mut())
                    {
                        message.push_str(&format!(" ({error})"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The names of the pods by their addresses.
fn pods(fetched: &Fetched) -> BTreeMap<String, String> {
    let pods = fetched.pods.iter().filter(|pod| !pod.is_going);
    pods.filter_map(|pod| Some((pod.address.clone()?, pod.name.clone()))).collect()
}

fn seats(fetched: &Fetched, valid: &Valid) -> Vec<Seat> {
    let stateful_set = fetched.owned.get(&(Kind::StatefulSet, valid.instance.stateful_set()));
    let last = stateful_set.and_then(|set| last_revision(set));
    let seat = |pod: &Pod| Seat {
        pod: pod.name.clone(),
        address: pod.address.clone().unwrap_or_default(),
        is_outdated: last.is_some_and(|last| pod.revision.as_deref() != Some(last))
            || has_old_certificates(pod, valid),
        has_lost_data: pod.has_lost_data,
        is_going: pod.is_going,
        is_stuck: pod.trouble.is_some(),
    };
    fetched.pods.iter().map(seat).collect()
}

/// Whether it was started before what it reads only then.
fn has_old_certificates(pod: &Pod, valid: &Valid) -> bool {
    let since = pod.address.as_ref().and_then(|address| valid.certificates_since.get(address));
    pod.created.zip(since).is_some_and(|(created, since)| *since - created > CLOCKS_DIFFER)
}

/// tf-operator lists names of nodes, with the domain of the cluster.
fn address_of(fetched: &Fetched, host: &str) -> String {
    let is = |name: &str| {
        host.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let node = fetched.nodes.iter().find(|node| is(&node.name));
    node.and_then(|node| node.address.clone()).unwrap_or_else(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::{BoxFuture, ready};
    use opensdn_pki::CaProfile;

    use super::*;
    use crate::ensemble::{Answers, ChangeError, Member};
    use crate::exec::Nowhere;

    /// A service that says that of each of its members; `!` of it is what it failed with.
    #[derive(Debug)]
    struct Says(Option<&'static str>);

    impl Ensemble for Says {
        fn may_spare<'a>(
            &'a self,
            _: &'a Access,
            address: &'a str,
        ) -> BoxFuture<'a, Result<Option<String>, ChangeError>> {
            let said = match self.0 {
                Some("!") => Err(ChangeError("no answer".to_owned())),
                said => Ok(said.map(|said| format!("{address} {said}"))),
            };
            ready(said).boxed()
        }

        fn look<'a>(&'a self, _: &'a Access, _: &'a [String]) -> BoxFuture<'a, Answers> {
            ready(Answers::new()).boxed()
        }

        fn make<'a>(
            &'a self,
            _: &'a Access,
            _: &'a View,
            _: &'a Change,
        ) -> BoxFuture<'a, Result<(), ChangeError>> {
            ready(Ok(())).boxed()
        }
    }

    /// What becomes of a restart of the pod on `a`, which is a member, or of that on `z`, which is none.
    async fn after(says: Option<&'static str>, pod: &str) -> Step {
        let now = OffsetDateTime::now_utc();
        let authorities = Authorities::first(&CaProfile::new("test CA"), now).unwrap();
        let access = Access::new(&authorities, now, Arc::new(Nowhere)).unwrap();
        let members = vec![Member { id: 1, host: "a".to_owned() }];
        let serving = ["a".to_owned()].into();
        let view = View { members, serving, ..View::default() };
        let seats = ["a", "z"].map(|address| Seat {
            pod: format!("on-{address}"),
            address: address.to_owned(),
            is_outdated: true,
            has_lost_data: false,
            is_going: false,
            is_stuck: false,
        });
        let step = Step::Restart { pod: pod.to_owned(), why: "it is not of the last template" };
        if_spared(&Says(says), &access, &view, &seats, step).await
    }

    #[tokio::test]
    async fn a_member_that_the_service_cannot_spare_is_not_started_again() {
        let Step::Wait(why) = after(Some("has what no other has"), "on-a").await else {
            panic!("it is started again")
        };
        assert!(why.contains("pod on-a") && why.contains("a has what no other has"), "{why}");
        assert!(matches!(after(None, "on-a").await, Step::Restart { .. }));
        let Step::Wait(why) = after(Some("!"), "on-a").await else {
            panic!("it is started again though nobody knows")
        };
        assert!(why.contains("no answer"), "{why}");
    }

    #[tokio::test]
    async fn who_is_no_member_is_not_asked_about() {
        assert!(matches!(after(Some("is needed"), "on-z").await, Step::Restart { .. }));
    }

    #[test]
    fn a_pod_that_is_ready_is_not_started_again_before_all_others_are() {
        let waits = |pods: &[(&str, bool)], is_outdated: bool| {
            let pod = |(name, is_ready): &(&str, bool)| {
                let status = if *is_ready { "True" } else { "False" };
                let object = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                    "status": {"conditions": [{"type": "Ready", "status": status}]}});
                Pod::of(&serde_json::from_value(object).unwrap())
            };
            let seat = Seat {
                pod: "a".to_owned(),
                address: String::new(),
                is_outdated,
                has_lost_data: false,
                is_going: false,
                is_stuck: false,
            };
            let step = Step::Restart { pod: "a".to_owned(), why: "w" };
            let pods: Vec<Pod> = pods.iter().map(pod).collect();
            matches!(when_others_are_ready(step, &[seat], &pods), Step::Wait(_))
        };
        assert!(waits(&[("a", true), ("b", false)], true));
        assert!(!waits(&[("a", true), ("b", true)], true));
        assert!(!waits(&[("a", false), ("b", false)], true), "nothing is lost by it");
        assert!(!waits(&[("a", true), ("b", false)], false), "its member leaves");
    }

    #[test]
    fn while_an_upgrade_looks_at_one_pod_the_others_wait_but_for_one_that_cannot_start() {
        let seat = |pod: &str, is_outdated: bool, is_stuck: bool| Seat {
            pod: pod.to_owned(),
            address: String::new(),
            is_outdated,
            has_lost_data: false,
            is_going: false,
            is_stuck,
        };
        let step = Step::Restart { pod: "a".to_owned(), why: "it is not of the last template" };
        let waits = |seats: &[Seat], canary: bool| {
            let pace = Pace { canary, ..Pace::default() };
            matches!(held(step.clone(), seats, &pace), Step::Wait(_))
        };
        let stopped = Pace { on_hold: true, ..Pace::default() };
        let of_stopped =
            |seats: &[Seat]| matches!(held(step.clone(), seats, &stopped), Step::Wait(_));
        assert!(of_stopped(&[seat("a", true, false), seat("b", true, false)]));
        assert!(!of_stopped(&[seat("a", true, true), seat("b", true, false)]), "it serves nothing");
        let one_is_new = [seat("a", true, false), seat("b", false, false)];
        assert!(waits(&one_is_new, true));
        assert!(!waits(&one_is_new, false));
        assert!(!waits(&[seat("a", true, false), seat("b", true, false)], true), "the first");
        assert!(
            !waits(&[seat("a", true, true), seat("b", false, false)], true),
            "it serves nothing"
        );
    }
}
