//! How the cluster is: what was read of it (`world`), how each pod is (`pods`), which components there are
//! (`components`), which of them is the cause of what the others wait for (`causes`), what is around them
//! (`surroundings`), what daemons say of themselves (`introspect`), what was denied (`denied`), and the answer (`report`) as
//! text (`text`). All of it is pure but `ask` and `denied`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use opensdn_crds::component::Component;

pub(crate) mod ask;
mod causes;
mod components;
pub(crate) mod denied;
mod introspect;
mod legacy;
mod pods;
pub(crate) mod report;
mod surroundings;
#[cfg(test)]
mod tests;
mod text;
mod tf_operator;
pub(crate) mod world;

use report::{Counts, Manager, NotRead, State, StatusReport, Word};
use world::World;

pub(crate) use components::{TYPE, owner};
pub(crate) use text::Detail;

/// What a cluster's status is. `now` is the time of whoever asks.
pub(crate) fn assess(world: &World, now: Timestamp) -> StatusReport {
    let nodes = surroundings::nodes(world);
    let components = components::components(world, &nodes);
    let around = surroundings::parts(world, now);
    let (mut components, mut causes) = causes::find(components, &nodes, &around, &world.places);
    components.sort_by_key(|one| {
        let kind = Component::of_kind(&one.kind);
        (one.manager.is_none(), kind.map_or(usize::MAX, depth), one.kind.clone(), one.name.clone())
    });
    let managers = managers(world);
    // Else its own spec, or what no component shows, where nothing else is said.
    let is_one = |(one, is_watched): &(Manager, bool)| {
        !is_watched || (causes.is_empty() && one.ready == Some(false))
    };
    let of_managers = managers.iter().filter(|one| is_one(one)).map(|(one, _)| one.cause());
    let of_managers: Vec<_> = of_managers.collect();
    let managers: Vec<Manager> = managers.into_iter().map(|(one, _)| one).collect();
    causes.extend(of_managers);
    let mut not_read = world.not_read();
    not_read.sort();
    let bad = |state: Word| !matches!(state, Word::Active | Word::Backup | Word::Unknown);
    let is_degraded = components.iter().any(|one| bad(one.state))
        || around.iter().any(|part| part.degrades)
        || managers.iter().any(|one| one.ready == Some(false));
    let is_unknown = world.managers.why_unknown().is_some()
        || components.iter().any(|one| one.state == Word::Unknown);
    let is_absent = components.is_empty() && managers.is_empty() && !is_unknown;
    let state = match () {
        () if is_degraded => State::Degraded,
        () if is_unknown => State::Unknown,
        () if is_absent => State::Absent,
        () => State::Active,
    };
    let since = (state == State::Degraded).then(|| since(&managers, &causes)).flatten();
    let vrouters = components.iter().filter(|one| one.kind == "Vrouter");
    let vrouters = Counts::sum(vrouters.map(|one| one.pods_ready));
    StatusReport {
        cluster: None,
        server: None,
        state,
        since,
        nodes: nodes.counts(),
        vrouters,
        xmpp: sessions(&components, |one| one.xmpp),
        bgp: sessions(&components, |one| one.bgp),
        managers,
        causes,
        components,
        around,
        connectivity: None,
        not_read,
    }
}

/// How many kinds stand below it, one upon the other.
fn depth(facts: &Component) -> usize {
    let needs = facts.needs.iter().filter_map(|need| Component::of_kind(need.kind));
    needs.map(|need| depth(need) + 1).max().unwrap_or(0)
}

/// Each, and whether the operator watches its namespace: else nothing is said of it, or what was so once.
fn managers(world: &World) -> Vec<(Manager, bool)> {
    let of = |manager| {
        let said = Manager::of(manager);
        match surroundings::unwatched(world, &said.namespace) {
            Some(message) => {
                (Manager { ready: Some(false), stalled: true, message, ..said }, false)
            }
            None => (said, true),
        }
    };
    world.managers.items().iter().map(of).collect()
}

/// Those of all components that have any; nothing where none has.
fn sessions(
    components: &[report::ComponentStatus],
    of: impl Fn(&report::ComponentStatus) -> Option<Counts>,
) -> Option<Counts> {
    let mut found = components.iter().filter_map(of).peekable();
    found.peek().is_some().then(|| Counts::sum(found))
}

/// Since when it is not as it should be: as long as the Manager says, else as the oldest cause.
fn since(managers: &[Manager], causes: &[report::Cause]) -> Option<String> {
    let of_managers = managers.iter().filter(|one| one.ready == Some(false));
    let of_managers = of_managers.filter_map(|one| one.since.clone());
    let of_causes = causes.iter().filter_map(|one| one.since.clone());
    of_managers.chain(of_causes).max_by_key(|since| Reverse(since.clone()))
}

impl StatusReport {
    /// Leaves only what is of that kind, or runs on that node, with the causes of it.
    pub(crate) fn narrow(&mut self, kind: Option<&str>, node: Option<&str>) {
        if kind.is_none() && node.is_none() {
            return;
        }
        if let Some(node) = node {
            for one in &mut self.components {
                one.pods.retain(|pod| pod.node == node);
            }
            self.components.retain(|one| !one.pods.is_empty());
        }
        self.components.retain(|one| kind.is_none_or(|kind| one.kind == kind));
        let titles: Vec<String> =
            self.components.iter().map(report::ComponentStatus::title).collect();
        let is_left = |title: &String| titles.contains(title);
        self.causes.retain(|cause| {
            is_left(&format!("{} {}", cause.kind, cause.name)) || cause.affects.iter().any(is_left)
        });
        self.around.clear();
        // Of a node its pods count, and not those of others.
        let states = self.components.iter().flat_map(|one| {
            let pods = one.pods.iter().map(|pod| pod.state);
            let whole = std::iter::once(one.state).filter(|_| node.is_none());
            pods.filter(|_| node.is_some()).chain(whole)
        });
        let worst = states.filter(|state| !matches!(state, Word::Active | Word::Backup)).max();
        self.state = match worst {
            None if self.components.is_empty() && self.state == State::Unknown => State::Unknown,
            None if self.components.is_empty() => State::Absent,
            None => State::Active,
            Some(Word::Unknown) => State::Unknown,
            Some(_) => State::Degraded,
        };
        if self.state != State::Degraded {
            self.since = None;
        }
    }

    /// A line for each part, by its name: what `--watch` compares.
    pub(crate) fn lines(&self) -> BTreeMap<String, String> {
        let parts = self.components.iter().map(|one| {
            let line =
                format!("{} {} {}", one.pods_ready.text(), one.state.text(), text::note(one));
            (format!("{} {}/{}", one.kind, one.namespace, one.name), line)
        });
        let around = self.around.iter().map(|part| {
            let word = part.state.map_or("-", Word::text);
            let ready = part.ready.ready.map(|_| part.ready.text() + " ").unwrap_or_default();
            (part.name.clone(), format!("{ready}{word} {}", part.message))
        });
        let all = [("OpenSDN".to_owned(), self.state.word().to_owned())];
        let lines = all.into_iter().chain(parts).chain(around);
        lines.map(|(key, line)| (text::cell(&key), text::cell(line.trim_end()))).collect()
    }
}

/// Why objects of some kinds were not read that nothing shows to be there.
pub(crate) const NOT_ASKED_FOR: &str =
    "no more lists are asked for; name the component: kubectl opensdn status KIND";

impl World {
    /// What could not be read.
    fn not_read(&self) -> Vec<NotRead> {
        let lists = [
            ("Managers", self.managers.why_unknown()),
            ("pods", self.pods.why_unknown()),
            ("StatefulSets", self.stateful_sets.why_unknown()),
            ("DaemonSets", self.daemon_sets.why_unknown()),
            ("nodes", self.nodes.why_unknown()),
            ("AdmissionPolicies", self.policies.why_unknown()),
            ("Secrets with certificates", self.secrets.why_unknown()),
            ("the operator's Deployment", self.operator.why_unknown()),
            ("the operator's Lease", self.lease.why_unknown()),
            ("the webhook's Deployment", self.webhook.why_unknown()),
            ("the Deployment of who writes its configurations", self.configuration.why_unknown()),
            ("how many reviews the webhook has denied", self.denied.why_unknown()),
        ];
        let lists = lists.into_iter().map(|(what, why)| (what.to_owned(), why));
        let alone =
            self.alone.iter().map(|(kind, read)| (format!("{kind} objects"), read.why_unknown()));
        let unread = lists
            .chain(alone)
            .filter_map(|(what, why)| Some(NotRead { what, why: why?.to_owned() }));
        let mut unread: Vec<NotRead> = unread.collect();
        if !self.not_listed.is_empty() {
            let kinds = self.not_listed.join(", ");
            let what = format!("objects without a Manager of {kinds}");
            unread.push(NotRead { what, why: NOT_ASKED_FOR.to_owned() });
        }
        unread
    }
}
