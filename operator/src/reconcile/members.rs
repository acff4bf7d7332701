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
use super::{Context, Error, delete_pod, live, volumes};
use crate::build::{Members, Valid};
use crate::canary::{HELD, ON_HOLD, Pace};
use crate::ensemble::plan::{Seat, Situation, Step, make_stuck_again, next};
use crate::ensemble::record::Record;
use crate::ensemble::{Access, Change, Ensemble, Joins, Leaves, Tended, View};
use crate::ensembles::simulated::Pods;
use crate::exec::InPods;
use crate::kind::Workload;
use crate::node::{Node, addresses_of};
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
    trusted: &str,
) -> Result<Option<Plan>, Error> {
    let (Some(ensemble), Some(mut members)) =
        (valid.description.ensemble.clone(), valid.members.clone())
    else {
        return Ok(None);
    };
    let runs = fetched.keepers(Workload::StatefulSet).next().is_some();
    if !runs || valid.stopped.is_some() || valid.nodes.is_empty() {
        return Ok(None);
    }
    let (uid, seats) = (fetched.object.uid().unwrap_or_default(), seats(fetched, valid));
    let wanted = addresses_of(&valid.nodes);
    let ensemble = simulated(ctx, fetched, &members, &ensemble).unwrap_or(ensemble);
    // Who uses it makes what it is to keep copies of, and is active then.
    let users = (ensemble.joins() == Joins::ByStreaming).then(|| fetched.peers.active());
    let seen =
        |record: &Record| format!("{wanted:?} {seats:?} {record:?} {:?} {users:?}", valid.pace);
    if ctx.settled.is(&uid, &seen(&members.record)) {
        return Ok(None);
    }
    let exec = Arc::new(InPods::new(ctx.client.clone(), &fetched.namespace(), pods(fetched)));
    let access = Access::new(authorities, trusted, OffsetDateTime::now_utc(), exec)
        .map_err(Error::Access)?;
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
            // Before anything is changed it is on record that the service is not to be started from nothing.
            let step = Step::Wait("the members serve for the first time".to_owned());
            let mut plan = Plan { ensemble, access, view, step };
            if members.had_quorum {
                let next = decide(ctx, fetched, valid, &plan, &members.record, &seats).await;
                plan.step = next.step;
                members.record.spare = next.spare.or(members.record.spare);
            }
            members.had_quorum = true;
            say(&mut members, &valid.nodes, &plan.step);
            let is_settled = plan.step == Step::Settled;
            // As it will be with what was just recorded.
            ctx.settled.set(&uid, is_settled.then(|| seen(&members.record)));
            Some(plan)
        }
    };
    valid.members = Some(members);
    Ok(plan)
}

/// What is done next, and how many members may be away, where that has been asked.
struct Next {
    step: Step,
    spare: Option<i32>,
}

/// What is done next, by what the service says.
async fn decide(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    Plan { ensemble, access, view, .. }: &Plan,
    record: &Record,
    seats: &[Seat],
) -> Next {
    let wanted = &addresses_of(&valid.nodes)[..];
    let left = &left(&**ensemble, access, view, wanted, seats).await;
    let (joins, leaves) = (ensemble.joins(), ensemble.leaves());
    let step = next(&Situation { wanted, view, pods: seats, record, joins, leaves, left });
    let step = held(step, seats, &valid.pace);
    let step = when_others_are_ready(step, seats, &fetched.pods);
    match when_its_volume_stays(step, fetched, valid) {
        Step::Settled => tend(ctx, &**ensemble, access, view).await,
        step => {
            let step = if_spared(&**ensemble, access, view, seats, step).await;
            let spare = spare_during(&step, view, record);
            Next { step, spare }
        }
    }
}

/// How many may be away besides while one hands over what it has: none, where that depends on copies. What is stored is kept less
/// often before it leaves.
fn spare_during(step: &Step, view: &View, record: &Record) -> Option<i32> {
    let Step::Change(Change::Remove(member)) = step else { return None };
    record.spare.filter(|_| view.serving.contains(&member.host)).map(|_| 0)
}

/// Where one runs that is to be a member, and has left.
async fn left(
    ensemble: &dyn Ensemble,
    access: &Access,
    view: &View,
    wanted: &[String],
    seats: &[Seat],
) -> BTreeSet<String> {
    let mut left = BTreeSet::new();
    let is_asked =
        |seat: &&Seat| wanted.contains(&seat.address) && !view.has(&seat.address) && !seat.is_going;
    for seat in seats.iter().filter(is_asked) {
        // One that does not answer is on its way, as far as is known, and is asked again.
        if ensemble.has_left(access, &seat.address).await.unwrap_or(false) {
            left.insert(seat.address.clone());
        }
    }
    left
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

/// A volume that is being deleted is there until its pod ends.
fn when_its_volume_stays(step: Step, fetched: &Fetched, valid: &Valid) -> Step {
    let Step::Restart { pod: name, .. } = &step else { return step };
    let pod = fetched.pods.iter().find(|pod| pod.name == *name);
    match pod.and_then(|pod| volumes::going(fetched, valid, pod)) {
        Some(_) => Step::Wait(volumes::leaving(fetched, valid).unwrap_or_default()),
        None => step,
    }
}

/// When all members are as they shall be: what is left to do for them.
async fn tend(ctx: &Context, ensemble: &dyn Ensemble, access: &Access, view: &View) -> Next {
    if !ctx.leadership.may_write() {
        return Next { step: Step::Settled, spare: None };
    }
    match ensemble.tend(access, view).await {
        Ok(Tended { does, spare }) => Next { step: does.map_or(Step::Settled, Step::Wait), spare },
        Err(error) => {
            let why = format!("failed to look after the members: {error}; will try again");
            Next { step: Step::Wait(why), spare: None }
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
fn say(members: &mut Members, nodes: &[Node], step: &Step) {
    let mut homes = members.record.homes.clone().unwrap_or_default();
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
        Step::Settle(address) => {
            let is_it = |node: &&Node| node.address.as_ref() == Some(address);
            let node = nodes.iter().find(is_it).map_or(address, |node| &node.name);
            homes.insert(address.clone(), node.clone());
            members.record = members.record.clone().at_home(homes);
            format!("is given a pod on {node}")
        }
        Step::Vacate { address, why } => {
            let node = homes.remove(address);
            members.record = members.record.clone().at_home(homes);
            format!("the pod on {} ends: {why}", node.as_ref().unwrap_or(address))
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
        Step::Settled | Step::Wait(_) | Step::Scale(_) | Step::Settle(_) | Step::Vacate { .. } => {}
        Step::Restart { pod, .. } => {
            delete_pod(ctx, fetched, pod).await?;
        }
        Step::Change(change) => {
            if !ctx.leadership.may_write() {
                return Ok(());
            }
            if matches!(change, Change::Remove(_)) {
                live::may_shrink(&ctx.writer, fetched).await?;
            }
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
    let now = OffsetDateTime::now_utc();
    let is_of_before = |pod: &Pod| {
        let set = pod.keeper.as_ref().and_then(|keeper| fetched.owned.get(keeper));
        let last = set.and_then(|set| last_revision(set));
        last.is_some_and(|last| pod.revision.as_deref() != Some(last))
    };
    let seat = |pod: &Pod| Seat {
        pod: pod.name.clone(),
        address: pod.address.clone().unwrap_or_default(),
        is_outdated: is_of_before(pod) || has_old_certificates(pod, valid, now),
        has_lost_data: pod.has_lost_data,
        is_going: pod.is_going,
        is_stuck: pod.trouble.is_some(),
    };
    fetched.pods.iter().map(seat).collect()
}

/// Whether it was started before what it reads only then.
fn has_old_certificates(pod: &Pod, valid: &Valid, now: OffsetDateTime) -> bool {
    let since = read_since(pod, valid);
    since.is_some_and(|since| is_older(pod.created, since, now))
}

/// Since when there is what it reads only when it starts.
fn read_since(pod: &Pod, valid: &Valid) -> Option<OffsetDateTime> {
    valid.certificates_since.get(pod.address.as_ref()?).copied()
}

/// Whether what was made then is older. Clocks may differ: what is a little older counts as such when what is made in its place is
/// newer by any clock.
fn is_older(created: Option<OffsetDateTime>, since: OffsetDateTime, now: OffsetDateTime) -> bool {
    created.is_some_and(|created| {
        since - created > CLOCKS_DIFFER || (created < since && now - since > CLOCKS_DIFFER)
    })
}

/// How long until a pod is started again that is a little older than what it reads only when it starts.
pub(super) fn until_old(fetched: &Fetched, valid: &Valid, now: OffsetDateTime) -> Option<Duration> {
    let until = fetched.pods.iter().filter_map(|pod| {
        let since = read_since(pod, valid)?;
        let then = since + CLOCKS_DIFFER + time::Duration::seconds(1);
        (then > now && is_older(pod.created, since, then)).then_some(then - now)
    });
    Duration::try_from(until.min()?).ok()
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
mod tests;
