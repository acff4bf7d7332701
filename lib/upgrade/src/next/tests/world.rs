//! Services that exist in these tests only: what is written is applied, pods are replaced one by one, and images that have
//! `bad` in their names never get ready.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use opensdn_crds::component::{COMPONENTS, Component, Count};
use opensdn_crds::status::{DaemonState, DaemonWord, IntrospectStatus, SessionCounts};
use opensdn_crds::upgrade::{Phase, State, Step, UpgradeSpec, UpgradeStatus};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::daemons::Daemons;
use crate::health::{Pod, Service};
use crate::images;
use crate::next::{Decision, SetImages, Situation, next, parse};
use crate::pull::{Pull, Puller, container_name};

pub(super) const NEW: &str = "R24.1.1";

pub(super) struct World {
    pub(super) spec: UpgradeSpec,
    pub(super) status: UpgradeStatus,
    pub(super) manager: Value,
    pub(super) services: Vec<Service>,
    pub(super) now: OffsetDateTime,
    pub(super) looking_since: OffsetDateTime,
    pub(super) paused: Option<&'static str>,
    pub(super) refusals: BTreeMap<String, String>,
    pub(super) other: Option<&'static str>,
    pub(super) drained: BTreeSet<String>,
    /// A service of which a container is started again all the time.
    pub(super) restless: Option<&'static str>,
    /// A pod on a node that is lost: not ready, and none is in its place.
    pub(super) lost: Option<&'static str>,
    /// How often the agents are asked, if they are.
    pub(super) asks: Option<Duration>,
    /// What nodes pull: an image that has `bad` in its name never comes.
    pub(super) pullers: Vec<Puller>,
    /// Each image that was set, as `Webui/a webuiweb:NEW`.
    pub(super) set: Vec<String>,
    pub(super) decisions: usize,
}

/// At a decision the operator is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    /// Before the status is written.
    Before(usize),
    /// When it is written, and nothing is done of it.
    After(usize),
    Never,
}

/// A service: its key in the Manager, whether that is a list, its kind and a container.
pub(super) type Kind = (&'static str, bool, &'static str, &'static str);

/// One of each way of being upgraded.
pub(super) const ALL: [Kind; 4] = [
    ("zookeeper", false, "Zookeeper", "zookeeper"),
    ("config", false, "Config", "api"),
    ("webui", false, "Webui", "webuiweb"),
    ("vrouters", true, "Vrouter", "vrouteragent"),
];

/// All thirteen.
pub(super) fn every_kind() -> Vec<Kind> {
    let kind =
        |one: &Component| (one.key, one.count == Count::Many, one.kind, one.containers.main[0]);
    COMPONENTS.iter().map(kind).collect()
}

fn puller(pull: &Pull) -> Puller {
    let is_there = |image: &&String| !image.contains("bad");
    let there = pull.images.iter().filter(is_there);
    let pulled: std::collections::BTreeSet<String> =
        there.map(|image| container_name(image)).collect();
    Puller {
        node: pull.node.clone(),
        trouble: (pulled.len() < pull.images.len())
            .then(|| "ImagePullBackOff not found".to_owned()),
        pulled,
        ..Puller::default()
    }
}

/// What services go by (`operator/src/canary.rs`).
fn paces(status: &UpgradeStatus) -> Vec<(Option<Phase>, String, State, bool, bool)> {
    let steps = status.steps.iter().flatten();
    let pace = |step: &Step| {
        let has_begun = step.attempts.unwrap_or_default() > 0;
        (status.phase, step.id.clone(), step.state, step.held == Some(true), has_begun)
    };
    steps.map(pace).collect()
}

impl World {
    pub(super) fn new() -> Self {
        Self::of(&ALL)
    }

    pub(super) fn of(kinds: &[Kind]) -> Self {
        let mut services = serde_json::Map::new();
        for &(key, is_list, _, container) in kinds {
            let containers =
                json!([{"name": container, "image": format!("contrail-{container}:R24.1")}]);
            let item = json!({"metadata": {"name": "a"}, "spec": {"serviceConfiguration": {"containers": containers}}});
            services.insert(key.to_owned(), if is_list { json!([item]) } else { item });
        }
        let mut world = Self {
            spec: UpgradeSpec {
                manager: "m".to_owned(),
                version: Some(NEW.to_owned()),
                ..UpgradeSpec::default()
            },
            status: UpgradeStatus::default(),
            manager: json!({ "services": services }),
            services: Vec::new(),
            now: parse("2026-01-01T00:00:00Z").unwrap(),
            looking_since: parse("2025-12-31T00:00:00Z").unwrap(),
            paused: None,
            refusals: BTreeMap::new(),
            other: None,
            drained: BTreeSet::new(),
            restless: None,
            lost: None,
            asks: None,
            pullers: Vec::new(),
            set: Vec::new(),
            decisions: 0,
        };
        for &(_, _, kind, container) in kinds {
            let images: BTreeMap<_, _> =
                [(container.to_owned(), format!("contrail-{container}:R24.1"))].into();
            let pod = |number: usize| Pod {
                name: format!("{kind}-{number}"),
                images: images.clone(),
                is_ready: true,
                ..Pod::default()
            };
            let pods = (0..3).map(pod).collect();
            world.services.push(Service {
                id: format!("{kind}/a"),
                is_ready: true,
                message: "3 of 3 pods ready".to_owned(),
                images,
                pods,
                daemons: None,
            });
        }
        world
    }

    /// Whose agents are asked so often.
    pub(super) fn asking(mut self, interval: Duration) -> Self {
        self.asks = Some(interval);
        self.ask();
        self
    }

    /// An image that has `deaf` in its name finds no control node, one that has `partly` finds it on the first node alone, and
    /// `mute` in that of another service means that no agent does.
    fn ask(&mut self) {
        let Some(interval) = self.asks else { return };
        let is_mute = self
            .services
            .iter()
            .flat_map(|one| &one.pods)
            .any(|pod| pod.images.values().any(|image| image.contains("mute")));
        let now = self.now;
        let Some(vrouter) = self.services.iter_mut().find(|one| one.id == "Vrouter/a") else {
            return;
        };
        let before = vrouter.daemons.as_ref().and_then(|daemons| daemons.asked_at);
        if before.is_some_and(|before| now - before < interval) {
            return;
        }
        let is_up = |pod: &&Pod| {
            let has = |part: &str| pod.images.values().any(|image| image.contains(part));
            let is_deaf = has("deaf") || (has("partly") && !pod.name.ends_with("-0"));
            !is_mute && pod.is_ready && !is_deaf
        };
        let state = |pod: &Pod| DaemonState {
            pod: pod.name.clone(),
            node: "w1".to_owned(),
            container: "vrouteragent".to_owned(),
            state: DaemonWord::Initializing,
            message: None,
        };
        let wrong = vrouter.pods.iter().filter(|pod| !is_up(pod)).map(state).collect();
        let up = i32::try_from(vrouter.pods.iter().filter(is_up).count()).unwrap();
        let all = i32::try_from(vrouter.pods.len()).unwrap();
        let said = IntrospectStatus {
            functional: Some(up),
            daemons: Some(all),
            not_active: Some(wrong),
            xmpp: Some(SessionCounts { up: Some(up), all: Some(all) }),
            ..IntrospectStatus::default()
        };
        vrouter.daemons = Some(Daemons { said, asked_at: Some(now) });
    }

    /// One that takes fewer passes.
    pub(super) fn brisk() -> Self {
        let mut world = Self::new();
        world.spec.soak = Some("4s".to_owned());
        world.spec.wave_timeout = Some("30s".to_owned());
        world
    }

    /// On three nodes, which pull the new images first.
    pub(super) fn on_nodes(mut self) -> Self {
        for service in &mut self.services {
            for (number, pod) in service.pods.iter_mut().enumerate() {
                pod.node = Some(format!("node-{number}"));
            }
        }
        self
    }

    /// On nodes that are to be drained before their vrouters are replaced.
    pub(super) fn waiting_for_drain(self) -> Self {
        let mut world = self.on_nodes();
        (world.spec.wait_for_drain, world.spec.pre_pull) = (Some(true), Some(false));
        world
    }

    /// With images of this service that do not work.
    pub(super) fn with_bad(kind: &str) -> Self {
        Self::with_tag(kind, "bad")
    }

    /// With images of this service that have another tag.
    pub(super) fn with_tag(kind: &str, tag: &str) -> Self {
        let kind = ALL.iter().find(|one| one.2 == kind).unwrap();
        Self::new().giving(kind, tag)
    }

    /// With images of this service that have another tag.
    pub(super) fn giving(mut self, (_, _, kind, container): &Kind, tag: &str) -> Self {
        let image = opensdn_crds::upgrade::Image {
            kind: Some((*kind).to_owned()),
            container: (*container).to_owned(),
            image: format!("contrail-{container}:{tag}"),
        };
        self.spec.images = Some(vec![image]);
        self
    }

    pub(super) fn decide(&self) -> Decision {
        next(&Situation {
            upgrade: "tf/up",
            drained: &self.drained,
            spec: &self.spec,
            status: &self.status,
            generation: Some(1),
            manager: Some(&self.manager),
            paused: self.paused,
            release: None,
            ziu_state: None,
            refusals: &self.refusals,
            services: &self.services,
            pullers: &self.pullers,
            other: self.other,
            looking_since: self.looking_since,
            now: self.now,
        })
    }

    /// One pass of the operator, which may be killed in it.
    pub(super) fn pass(&mut self, killed: Killed) {
        let decision = self.decide();
        self.decisions += 1;
        if killed == Killed::Before(self.decisions) {
            return;
        }
        // Services hear of it only where it is looked at again at once (`operator/src/upgrade.rs`).
        if paces(&decision.status) != paces(&self.status) {
            assert_eq!(decision.look_again, Some(Duration::ZERO), "{:?}", decision.status);
        }
        if decision.status != self.status {
            self.status = decision.status;
        }
        if killed == Killed::After(self.decisions) {
            return;
        }
        self.pullers = decision.pulls.iter().map(puller).collect();
        for set in decision.images {
            self.apply(&set);
        }
    }

    pub(super) fn apply(&mut self, set: &SetImages) {
        assert!(self.manager.pointer(&set.pointer).is_some(), "{}", set.pointer);
        for one in &set.images {
            let entry = self.manager.pointer_mut(&one.pointer).unwrap();
            assert_eq!(entry["name"], one.container);
            assert_eq!(entry["image"], one.from, "what is replaced is what was there");
            entry["image"] = one.to.clone().into();
            self.set.push(format!("{} {}", set.service, one.to));
        }
    }

    /// What the controllers of the services do in two seconds: one pod of each is replaced.
    pub(super) fn controllers(&mut self) {
        self.now += Duration::from_secs(2);
        let declared = images::services(&self.manager);
        let steps = self.status.steps.clone().unwrap_or_default();
        for service in &mut self.services {
            let Some(said) = declared.iter().find(|one| one.id() == service.id) else { continue };
            let images: BTreeMap<_, _> =
                said.images.iter().map(|one| (one.container.clone(), one.image.clone())).collect();
            service.images = images.clone();
            for pod in &mut service.pods {
                pod.is_ready = !pod.images.values().any(|image| image.contains("bad"));
                if pod.is_ready {
                    pod.ready_since.get_or_insert(self.now);
                    pod.ran = pod.images.keys().cloned().collect();
                }
                pod.trouble = (!pod.is_ready).then(|| "ImagePullBackOff".to_owned());
                if self.lost == Some(pod.name.as_str()) {
                    (pod.is_ready, pod.trouble, pod.node) = (false, None, Some("w9".to_owned()));
                }
            }
            let has_one = service.pods.iter().any(|pod| pod.images == images);
            let is_canary =
                steps.iter().any(|step| step.id == service.id && step.held == Some(true));
            let drained = &self.drained;
            let goes_back =
                steps.iter().any(|step| step.id == service.id && step.state == State::RollingBack);
            let waits = self.spec.wait_for_drain == Some(true)
                && service.id.starts_with("Vrouter/")
                && !goes_back;
            let is_held =
                |pod: &Pod| waits && !pod.node.as_ref().is_some_and(|node| drained.contains(node));
            // One that is not ready is the one that is replaced.
            let is_broken = service.pods.iter().any(|pod| !pod.is_ready);
            let outdated = |pod: &&mut Pod| {
                pod.images != images
                    && (!is_broken || !pod.is_ready)
                    && !is_held(pod)
                    && self.lost != Some(pod.name.as_str())
            };
            if (!is_canary || !has_one)
                && let Some(pod) = service.pods.iter_mut().find(outdated)
            {
                (pod.images, pod.is_ready) = (images.clone(), false);
                pod.ready_since = None;
                pod.ran.clear();
            }
            service.is_ready = service.pods.iter().all(|pod| pod.is_ready && pod.images == images);
            if self.restless == Some(service.id.as_str()) {
                service.pods[0].restarts += 1;
            }
        }
        self.ask();
    }

    pub(super) fn phase(&self) -> Phase {
        self.status.phase.unwrap_or(Phase::Pending)
    }

    /// Until nothing is decided any more, or for as long as an hour.
    pub(super) fn run(&mut self, killed: Killed) -> Phase {
        for _ in 0..1800 {
            self.pass(killed);
            self.controllers();
            if matches!(
                self.phase(),
                Phase::Succeeded | Phase::RolledBack | Phase::Stopped | Phase::Refused
            ) {
                break;
            }
        }
        self.phase()
    }

    pub(super) fn until(&mut self, is: impl Fn(&Self) -> bool) {
        for _ in 0..1800 {
            if is(self) {
                return;
            }
            self.pass(Killed::Never);
            self.controllers();
        }
        panic!("it never came to that: {:?}", self.status);
    }

    pub(super) fn state(&self, kind: &str) -> State {
        let steps = self.status.steps.as_ref().unwrap();
        steps.iter().find(|step| step.id == format!("{kind}/a")).unwrap().state
    }

    /// The tags that the pods of each service run.
    pub(super) fn tags(&self) -> Vec<String> {
        let of = |service: &Service| {
            let tags = service.pods.iter().flat_map(|pod| pod.images.values());
            let tags: std::collections::BTreeSet<_> =
                tags.map(|image| images::tag(image).unwrap()).collect();
            tags.into_iter().collect::<Vec<_>>().join("+")
        };
        self.services.iter().map(of).collect()
    }

    pub(super) fn message(&self) -> &str {
        self.status.message.as_deref().unwrap_or_default()
    }

    pub(super) fn state_is(&self, kind: &str, state: State) -> bool {
        self.status.steps.is_some() && self.state(kind) == state
    }
}
