//! What is to be done to have other images: steps in waves, and what speaks against it.

mod data_stores;

use std::collections::BTreeSet;

use opensdn_crds::upgrade::{
    ImageChange, ServiceHealth, State, Step, UpgradeRemark, UpgradeSpec, Wave,
};
use serde_json::{Value, json};

pub use self::data_stores::rewrites;
use self::data_stores::{Way, no_way_back, other_line, rabbitmq_over};
use crate::digest::digest;
use crate::health;
use crate::images::{self, Service};
use crate::order::{self, WAVES};
use crate::version::{RELEASES, Version};

/// The codes that `force` can pass over: those of [`SKIPPABLE`].
pub const FORCEABLE: [&str; 7] =
    ["OSDN5004", "OSDN5005", "OSDN5006", "OSDN5008", "OSDN5009", "OSDN5014", "OSDN5019"];
/// The severity of a remark that cannot be passed over.
pub const REFUSED: &str = "Refused";
/// Of one that `force` can pass over.
pub const SKIPPABLE: &str = "Skippable";
/// Of one that `force` passes over.
pub const FORCED: &str = "Forced";
/// Of one that refuses nothing.
pub const WARNING: &str = "Warning";

/// Longest message of a service in a snapshot, in characters: anyone who may write its status can write much.
const MOST_MESSAGE: usize = 256;
/// As many pods of a step are named.
pub const MOST_PODS: usize = 256;

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The releases that run.
    pub from: String,
    /// The releases that shall run.
    pub to: String,
    /// The waves that have steps, in their order.
    pub waves: Vec<Wave>,
    /// The steps, in the order of the waves.
    pub steps: Vec<Step>,
    /// What speaks against it, and what is to be known of it.
    pub remarks: Vec<UpgradeRemark>,
    /// How all services are.
    pub snapshot: Vec<ServiceHealth>,
}

/// What it is made of.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What is wanted.
    pub spec: &'a UpgradeSpec,
    /// The spec of the Manager.
    pub manager: &'a Value,
    /// Why its services are left as they are, if they are.
    pub paused: Option<&'a str>,
    /// The release that its annotation `opensdn.io/release` says, which wins over tags.
    pub release: Option<&'a str>,
    /// The stage of an upgrade of tf-operator, by its `status.ziuState`.
    pub ziu_state: Option<i64>,
    /// How they are.
    pub services: &'a [health::Service],
}

/// The stage of an upgrade of tf-operator, as a Manager says it.
#[must_use]
pub fn ziu_state(manager: &Value) -> Option<i64> {
    manager.pointer("/status/ziuState")?.as_i64()
}

impl Plan {
    /// Whether nothing speaks against it that is not passed over.
    #[must_use]
    pub fn may_begin(&self) -> bool {
        !self.remarks.iter().any(|one| [REFUSED, SKIPPABLE].contains(&one.severity.as_str()))
    }

    /// By what a plan is known that was looked at: what would be done, not how the cluster is.
    #[must_use]
    pub fn hash(&self) -> String {
        let steps: Vec<_> =
            self.steps.iter().map(|step| json!([step.id, step.wave, step.images])).collect();
        digest(&json!(steps).to_string(), 5)
    }

    /// How many pods are replaced.
    #[must_use]
    pub fn pods(&self) -> usize {
        pods(&self.steps)
    }
}

/// How many pods these steps replace.
#[must_use]
pub fn pods(steps: &[Step]) -> usize {
    steps.iter().filter_map(pod_count).sum()
}

/// How many pods a step replaces, if its object is there. An Upgrade of before they were counted has their names alone.
#[must_use]
pub fn pod_count(step: &Step) -> Option<usize> {
    let count = step.pod_count.and_then(|count| usize::try_from(count).ok());
    count.or_else(|| step.pods.as_ref().map(Vec::len))
}

/// The plan.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    let services = images::services(input.manager);
    let mut remarks = Remarks { spec: input.spec, all: Vec::new() };
    let mut steps = Vec::new();
    for service in &services {
        let (changes, unknown) = images::changes(service, input.spec);
        for why in unknown {
            remarks.refuse("OSDN5003", &why.to_string());
        }
        if !changes.is_empty() {
            steps.push(step(service, changes, input.services));
        }
    }
    for why in images::unused(&services, input.spec) {
        remarks.refuse("OSDN5003", &why.to_string());
    }
    let place = |step: &Step| WAVES.iter().position(|wave| wave.name == step.wave);
    steps.sort_by_key(place);
    let pulls = !steps.is_empty() && input.spec.pre_pull != Some(false);
    let has_work = |wave: &&order::Wave| {
        (wave.name == order::IMAGES && pulls) || steps.iter().any(|step| step.wave == wave.name)
    };
    let waves = WAVES.iter().filter(has_work);
    let waves: Vec<Wave> = waves.map(|wave| self::wave(wave, &steps)).collect();
    let old = services.iter().flat_map(|service| &service.images).map(|one| one.image.as_str());
    let plan = Plan {
        from: images::release(old),
        to: to(&services, &steps),
        snapshot: input.services.iter().map(snapshot).collect(),
        remarks: Vec::new(),
        waves,
        steps,
    };
    remarks.of_spec();
    remarks.of_versions(input, &plan);
    remarks.of_data_stores(&plan);
    remarks.of_health(input, &plan);
    remarks.of_tf_operator(input);
    remarks.of_steps(&plan);
    Plan { remarks: remarks.all, ..plan }
}

fn step(service: &Service, images: Vec<ImageChange>, all: &[health::Service]) -> Step {
    let id = service.id();
    let all = all.iter().find(|one| one.id == id).map(|one| &one.pods);
    let pods = all.map(|pods| pods.iter().take(MOST_PODS).map(|pod| pod.name.clone()).collect());
    let pod_count = all.and_then(|pods| i64::try_from(pods.len()).ok());
    let wave = order::wave_of(service.facts.kind).map_or("", |wave| wave.name);
    let no_way_back = no_way_back(&id, &images);
    Step { pods, pod_count, no_way_back, ..Step::new(id, wave.to_owned(), images) }
}

fn wave(wave: &order::Wave, steps: &[Step]) -> Wave {
    let steps = steps.iter().filter(|step| step.wave == wave.name);
    Wave {
        name: wave.name.to_owned(),
        state: State::Pending,
        started_at: None,
        finished_at: None,
        deadline: None,
        progress: None,
        healthy_since: None,
        restarts: None,
        gate: None,
        no_way_back: steps.filter_map(|step| step.no_way_back.clone()).next(),
    }
}

/// The releases of the images as they shall be.
fn to(services: &[Service], steps: &[Step]) -> String {
    let images = services.iter().flat_map(|service| {
        let id = service.id();
        let step = steps.iter().find(move |step| step.id == id);
        service.images.iter().map(move |entry| {
            let change = step.and_then(|step| {
                step.images.iter().find(|change| change.container == entry.container)
            });
            change.map_or(entry.image.as_str(), |change| change.to.as_str())
        })
    });
    images::release(images.collect::<Vec<_>>().into_iter())
}

fn snapshot(service: &health::Service) -> ServiceHealth {
    let mut health = service.health();
    health.message = health.message.map(|text| text.chars().take(MOST_MESSAGE).collect());
    health
}

/// The release that the tag of an image names.
fn release(image: &str) -> Option<Version> {
    images::tag(image).and_then(Version::of_tag)
}

/// What speaks against it.
struct Remarks<'a> {
    spec: &'a UpgradeSpec,
    all: Vec<UpgradeRemark>,
}

impl Remarks<'_> {
    fn add(&mut self, code: &str, severity: &str, message: &str) {
        let (code, severity) = (code.to_owned(), severity.to_owned());
        self.all.push(UpgradeRemark { code, severity, message: message.to_owned() });
    }

    fn refuse(&mut self, code: &str, message: &str) {
        self.add(code, REFUSED, message);
    }

    /// Refuses it, unless that is passed over.
    fn unless_forced(&mut self, code: &str, message: &str) {
        let is_forced = self.spec.force.iter().flatten().any(|one| one == code);
        self.add(code, if is_forced { FORCED } else { SKIPPABLE }, message);
    }

    /// What no schema finds.
    fn of_spec(&mut self) {
        let is_no_place = |text: &str| text.contains("://") || text.contains(char::is_whitespace);
        if let Some(registry) = self.spec.registry.as_deref().filter(|text| is_no_place(text)) {
            let message = format!(
                "registry: {registry:?} is no place of images, such as registry.example.com/opensdn"
            );
            self.refuse("OSDN5002", &message);
        }
        for image in self.spec.images.iter().flatten().filter(|one| is_no_place(&one.image)) {
            let message = format!(
                "images: {:?} of container {} is no image, such as registry.example.com/opensdn/opensdn-nodemgr:R25.1",
                image.image, image.container
            );
            self.refuse("OSDN5002", &message);
        }
        let is_wave = |name: &String| WAVES.iter().any(|wave| wave.name == name.as_str());
        for name in self.spec.pause_before.iter().flatten().filter(|name| !is_wave(name)) {
            let waves: Vec<_> = WAVES.iter().map(|wave| wave.name).collect();
            let message =
                format!("pauseBefore: {name:?} is no wave: the waves are {}", waves.join(", "));
            self.refuse("OSDN5002", &message);
        }
    }

    /// Tags that name no release.
    fn of_tags(&mut self, ours: &[&ImageChange]) {
        if let Some(tag) = self.spec.version.as_deref().filter(|tag| Version::of_tag(tag).is_none())
        {
            let message = format!(
                "version: {tag} is no release such as R25.1, so it is not known whether there is a way to it"
            );
            self.unless_forced("OSDN5004", &message);
        }
        let is_unknown =
            |one: &&&ImageChange| release(&one.to).is_some() && release(&one.from).is_none();
        if let Some(change) = ours.iter().find(is_unknown) {
            let message = format!(
                "the tag of {} names no release, so it is not known whether there is a way from it to {}",
                change.from, change.to
            );
            self.unless_forced("OSDN5004", &message);
        }
    }

    /// The way from one release to the other, of OpenSDN's own images.
    fn of_versions(&mut self, input: &Input<'_>, plan: &Plan) {
        let changes = plan.steps.iter().flat_map(|step| &step.images);
        let ours: Vec<&ImageChange> = changes.filter(|one| images::is_own(&one.to)).collect();
        self.of_tags(&ours);
        let ways: BTreeSet<(Version, Version)> =
            ours.iter().filter_map(|one| release(&one.from).zip(release(&one.to))).collect();
        if let Some((from, to)) = ways.iter().find(|(from, to)| to < from) {
            let message = format!(
                "{to} is older than {from}, which runs: what {from} has written, {to} may not read"
            );
            if to.place() == from.place() {
                self.unless_forced("OSDN5005", &message);
            } else {
                self.refuse("OSDN5005", &message);
            }
        }
        if let Some((from, to)) = ways.iter().find(|(from, to)| to.place() > from.place() + 1) {
            let between = RELEASES.get(from.place()).copied().unwrap_or_default();
            let between = Version { year: between.0, number: between.1, patch: 0 };
            let message = format!(
                "{to} is more than one release after {from}: upstream validates the way from one release to the next only; \
                 the next is {between}"
            );
            self.unless_forced("OSDN5006", &message);
        }
        let targets: BTreeSet<Version> = ours.iter().filter_map(|one| release(&one.to)).collect();
        let is_new =
            |to: &&Version| RELEASES.last().is_some_and(|last| (to.year, to.number) > *last);
        if let Some(to) = targets.iter().find(is_new) {
            let message = format!(
                "{to} is newer than all releases that this program knows, so that it may configure it as it is no more: \
                 take a newer one"
            );
            self.unless_forced("OSDN5009", &message);
        }
        let is_crossed =
            |one: &&&ImageChange| images::is_opensdn(&one.to) && !images::is_opensdn(&one.from);
        if let Some(change) = ours.iter().find(is_crossed) {
            let message = format!(
                "from {} to {} daemons are configured otherwise and have other certificates: each pod is replaced with another \
                 configuration, and daemons of both sides talk to each other meanwhile",
                change.from, change.to
            );
            self.add("OSDN5011", WARNING, &message);
        }
        self.of_annotation(input, &targets);
    }

    /// The way from one data store to the other, where tags say both.
    fn of_data_stores(&mut self, plan: &Plan) {
        for step in &plan.steps {
            if let Some((change, why)) = data_stores::not_configured(&step.id, &step.images) {
                let message = format!("{}: {} ends at its start: {why}", step.id, change.to);
                self.unless_forced("OSDN5019", &message);
            }
            if let Some(change) = data_stores::older(&step.id, &step.images) {
                let message = format!(
                    "{}: {} is older than {}, which runs: it may not read what that has written",
                    step.id, change.to, change.from
                );
                self.unless_forced("OSDN5005", &message);
            }
            let Some((way, change)) = data_stores::way_of_cassandra(&step.id, &step.images) else {
                continue;
            };
            let (id, from, to) = (&step.id, &change.from, &change.to);
            match way {
                Way::Back | Way::PatchBack | Way::BackFromUnconfigured => {
                    let message = format!(
                        "{id}: {to} is an older Cassandra than {from}, which runs: it may not read what that has written"
                    );
                    match way {
                        Way::Back => self.refuse("OSDN5005", &message),
                        _ => self.unless_forced("OSDN5005", &message),
                    }
                }
                Way::OverAMajor => {
                    let message = format!(
                        "{id}: between {from} and {to} a major version of Cassandra is skipped: it is upgraded to the next one first, and \
                         nodetool upgradesstables is run on each member then"
                    );
                    self.unless_forced("OSDN5006", &message);
                }
                Way::On => {}
            }
        }
    }

    /// -1 where there is none, and 0 where one was asked for; as 0 and nothing are the same there, 0 says nothing
    /// (tf-operator `pkg/apis/tf/v1alpha1/base_types.go`).
    fn of_tf_operator(&mut self, input: &Input<'_>) {
        let Some(stage) = input.ziu_state.filter(|stage| *stage > 0) else { return };
        let message = format!(
            "status.ziuState of the Manager is {stage}: an upgrade of tf-operator has not ended, and services may run images of \
             two releases; where it is long over: kubectl patch managers.tf.tungsten.io {} -n NAMESPACE --subresource=status --type=merge \
             -p '{{\"status\":{{\"ziuState\":-1}}}}'",
            self.spec.manager
        );
        self.add("OSDN5016", WARNING, &message);
    }

    fn of_annotation(&mut self, input: &Input<'_>, targets: &BTreeSet<Version>) {
        let Some(said) = input.release else { return };
        let release = Version::of_tag(said);
        let is_other = |to: &&Version| release.is_none_or(|said| said.place() != to.place());
        if let Some(to) = targets.iter().find(is_other) {
            let message = format!(
                "the annotation opensdn.io/release of the Manager says {said}, which wins over tags: services of {to} would \
                 be configured as that; remove it, or have it say {to}"
            );
            self.refuse("OSDN5015", &message);
        }
    }

    fn of_health(&mut self, input: &Input<'_>, plan: &Plan) {
        if let Some(why) = input.paused {
            let message =
                format!("the Manager is paused ({why}): end that first, nothing would change");
            self.refuse("OSDN5007", &message);
        }
        let bad =
            |step: &&Step| !input.services.iter().any(|one| one.id == step.id && one.is_ready);
        for step in plan.steps.iter().filter(bad) {
            let found = input.services.iter().find(|one| one.id == step.id);
            let why =
                found.map_or_else(|| "it does not run yet".to_owned(), health::Service::trouble);
            let why: String = why.chars().take(MOST_MESSAGE).collect();
            let message = format!("{} is not ready: {why}; have it ready before", step.id);
            self.unless_forced("OSDN5008", &message);
        }
    }

    fn of_steps(&mut self, plan: &Plan) {
        for step in &plan.steps {
            if let Some(("rabbitmq", change)) = other_line(&step.id, &step.images) {
                let message = match rabbitmq_over(&change.from, &change.to) {
                    Some(why) => format!("{}: {why}", step.id),
                    None => format!(
                        "{}: between {} and {} versions of RabbitMQ may differ by more than one member can have beside the \
                         others (3.7 and 3.10): with rabbitmqctl version look at what runs",
                        step.id, change.from, change.to
                    ),
                };
                self.unless_forced("OSDN5014", &message);
            }
        }
        for wave in &plan.waves {
            if let Some(why) = &wave.no_way_back {
                let message = format!(
                    "there is no way back behind the wave {}: {why}; take a backup",
                    wave.name
                );
                self.add("OSDN5012", WARNING, &message);
            }
        }
        for why in plan.steps.iter().filter_map(rewrites) {
            self.add("OSDN5018", WARNING, &why);
        }
        if plan.waves.iter().any(|wave| wave.name == "vrouters") {
            let at_once = self.spec.vrouters_at_once.unwrap_or(1);
            let then = match at_once {
                ..=1 => "one node after the other".to_owned(),
                _ => format!("{at_once} nodes at a time"),
            };
            let then = match self.spec.wait_for_drain {
                Some(true) => format!("{then}, each when it is drained"),
                _ => then,
            };
            let message = format!(
                "each vrouter that is replaced interrupts the workloads of its node for some minutes: the first node is looked \
                 at, then {then}, and the next when those before have been ready for 30 s"
            );
            self.add("OSDN5013", WARNING, &message);
        }
    }
}

#[cfg(test)]
mod tests;
