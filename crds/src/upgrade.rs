//! Upgrade: a Manager's services get other images, wave by wave. What is to be done is in the status as data,
//! written before and after each act, so that whoever continues knows where it stood. How it is planned and decided is in
//! `opensdn-upgrade`; the operator carries it out, and `kubectl opensdn upgrade` shows it.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::status::{Condition, SessionCounts};

enumeration! {
    /// Where an Upgrade goes to.
    pub enum Goal {
        /// To the new images.
        Upgrade = "Upgrade",
        /// Back to those that ran before, as far as there is a way back.
        RollBack = "RollBack",
    }
}

enumeration! {
    /// What becomes of a wave that fails.
    pub enum OnFailure {
        /// Its services, and those of the waves before it, get the images that they had before, as far as there is a way back.
        RollBack = "RollBack",
        /// Nothing more is changed until a person decides.
        Stop = "Stop",
    }
}

enumeration! {
    /// How far an Upgrade has come.
    pub enum Phase {
        /// It is not planned yet, or waits for another one.
        Pending = "Pending",
        /// A wave is at work.
        Running = "Running",
        /// As a user wants it, before something more is changed.
        Paused = "Paused",
        /// A wave has failed, and a person has to decide.
        Stopped = "Stopped",
        /// Services get their earlier images.
        RollingBack = "RollingBack",
        /// All services run the new images.
        Succeeded = "Succeeded",
        /// What had been changed runs the earlier images again.
        RolledBack = "RolledBack",
        /// It cannot be carried out, and nothing of it was changed.
        Refused = "Refused",
    }
}

enumeration! {
    /// How far a step or a wave has come.
    pub enum State {
        /// Nothing of it is done.
        Pending = "Pending",
        /// One pod of the service has the new images, and is looked at for a while.
        Canary = "Canary",
        /// It is at work.
        Running = "Running",
        /// All that belongs to it is in place.
        Succeeded = "Succeeded",
        /// It was not in place in time.
        Failed = "Failed",
        /// It is left out, as a user wants it.
        Skipped = "Skipped",
        /// It gets the earlier images.
        RollingBack = "RollingBack",
        /// It has the earlier images again.
        RolledBack = "RolledBack",
    }
}

/// Other images for the services of a Manager.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "opensdn.io",
        version = "v1alpha1",
        kind = "Upgrade",
        plural = "upgrades",
        namespaced,
        status = "UpgradeStatus",
        derive = "PartialEq",
        doc = "Upgrade gives the services of a Manager other images, wave by wave, each behind a gate, with a way back.",
        printcolumn(name = "Manager", type_ = "string", json_path = ".spec.manager"),
        printcolumn(name = "From", type_ = "string", json_path = ".status.from"),
        printcolumn(name = "To", type_ = "string", json_path = ".status.to"),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Wave", type_ = "string", json_path = ".status.wave"),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    ),
    schemars(transform = constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeSpec {
    /// Name of the Manager, in the namespace of the Upgrade.
    pub manager: String,
    /// The release that OpenSDN's own images get as their tag, such as R25.1: those named contrail-… or opensdn-….
    pub version: Option<String>,
    /// Where OpenSDN's own images come from then, such as registry.example.com/opensdn. Default: from where they come now.
    pub registry: Option<String>,
    /// Images of single containers, which win over the release.
    pub images: Option<Vec<Image>>,
    /// Where to: Upgrade or RollBack. Default Upgrade.
    pub goal: Option<Goal>,
    /// Whether nothing more is changed. What is at work is finished: no pod is left without its successor.
    pub paused: Option<bool>,
    /// Waves before which it is paused, by their names.
    pub pause_before: Option<Vec<String>>,
    /// Whether nodes pull the new images before anything is changed. Default true.
    pub pre_pull: Option<bool>,
    /// On how many nodes vrouters are replaced at a time, all of one zone, when the first has been well for a while. Default 1.
    pub vrouters_at_once: Option<i64>,
    /// Whether a vrouter is replaced only when its node is drained: cordoned, and with the annotation
    /// opensdn.io/drained-for, whose value is namespace/name of this Upgrade. On the way back none is waited for. Default false.
    pub wait_for_drain: Option<bool>,
    /// What becomes of a wave that fails: RollBack or Stop. Default RollBack; with waitForDrain, where only pods with their
    /// earlier images are not ready, and where a vrouter has worked with its new images, it is Stop.
    pub on_failure: Option<OnFailure>,
    /// How long a wave may be without progress, such as 30m: no pod more that is well with its images. Default 15m.
    pub wave_timeout: Option<String>,
    /// How long all has to be well after the first pod of a service, and after each wave, such as 2m. Default 30s.
    pub soak: Option<String>,
    /// Refusals that are passed over, by their codes; only those that a plan calls skippable can be.
    pub force: Option<Vec<String>>,
    /// The plan that was looked at, by its hash: with another one nothing is changed.
    pub plan: Option<String>,
    /// How often it was asked for another try after it had stopped; each greater number is one.
    pub retries: Option<i64>,
    /// Steps that are left out, with the reason.
    pub skip: Option<Vec<Skip>>,
    /// Who asked for it, for the report.
    pub requested_by: Option<String>,
}

/// The image of a container.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = image_constraints))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The kind of the services that it is for. Default: all that have a container of the name.
    pub kind: Option<String>,
    /// Name of the container.
    pub container: String,
    /// The image.
    pub image: String,
}

/// A step that is left out.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = skip_constraints))]
#[serde(rename_all = "camelCase")]
pub struct Skip {
    /// The step: Webui/webui1.
    pub step: String,
    /// Why, for the report.
    pub reason: String,
    /// Who wants it, for the report.
    pub requested_by: Option<String>,
}

/// How far it has come. It is the report, too.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = crate::status::conditions)
)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStatus {
    /// Whether it is done; see the conditions Ready, Reconciling and Stalled.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// How far it has come.
    pub phase: Option<Phase>,
    /// What it waits for, or what is wrong and what to do.
    pub message: Option<String>,
    /// The wave at work, and of how many: 2/6 config.
    pub wave: Option<String>,
    /// The releases that ran when it was planned.
    pub from: Option<String>,
    /// The releases that shall run.
    pub to: Option<String>,
    /// The hash of the plan.
    pub plan: Option<String>,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub finished_at: Option<String>,
    /// When the operator looked at it last while it was at work, RFC 3339, noted every ten seconds: it does not run where
    /// this is old.
    pub looked_at: Option<String>,
    /// What speaks against it, and what is to be known of it.
    pub remarks: Option<Vec<UpgradeRemark>>,
    /// How the services were when it was planned: what was bad before is not blamed on it.
    pub snapshot: Option<Vec<ServiceHealth>>,
    /// Its waves, in their order.
    pub waves: Option<Vec<Wave>>,
    /// Its steps, in their order: one for each service that gets other images.
    pub steps: Option<Vec<Step>>,
    /// The tries that were asked for and started.
    pub retries: Option<i64>,
}

/// What speaks against an Upgrade, or is to be known of it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpgradeRemark {
    /// By what kubectl opensdn explain knows it.
    pub code: String,
    /// Refused; Skippable, if force can pass over it; Forced, if it does; or Warning.
    pub severity: String,
    /// What is wrong, where, and what to do.
    pub message: String,
}

/// How a service was.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceHealth {
    /// Kind and name: Zookeeper/zookeeper1.
    pub service: String,
    /// Whether it was ready.
    pub ready: bool,
    /// What it waited for, where it was not.
    pub message: Option<String>,
    /// How many pods were ready.
    pub pods: i64,
    /// How often containers of its pods had been restarted.
    pub restarts: i64,
    /// How many of its daemons were functional, by their introspect, of how many.
    pub daemons: Option<SessionCounts>,
    /// Of Vrouter: how many agents had a session with a control node.
    pub xmpp: Option<SessionCounts>,
    /// Of Vrouter: how many sessions agents had with control nodes.
    pub xmpp_sessions: Option<SessionCounts>,
    /// Of Control: how many BGP sessions were up.
    pub bgp: Option<SessionCounts>,
}

/// A wave.
#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Wave {
    /// Its name.
    pub name: String,
    /// How far it has come.
    pub state: State,
    /// When it started, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub finished_at: Option<String>,
    /// Until when it has to be well or further, RFC 3339.
    pub deadline: Option<String>,
    /// How many pods were well with their images, or images pulled, when it was furthest.
    pub progress: Option<i64>,
    /// Since when its gate is open, RFC 3339; it has to stay so for a while.
    pub healthy_since: Option<String>,
    /// How often containers of all services had been restarted by then.
    pub restarts: Option<i64>,
    /// What its gate asks, and what was found last.
    pub gate: Option<Vec<GateCheck>>,
    /// Why there is no way back behind it.
    pub no_way_back: Option<String>,
}

/// What a gate asks.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GateCheck {
    /// What is asked: images-on-nodes, services-ready, pods-as-before, daemons-functional, xmpp-as-before, bgp-as-before.
    pub name: String,
    /// Whether it is well.
    pub passed: bool,
    /// What was found, where it is not; of daemons in any case.
    pub message: Option<String>,
}

/// A service that gets other images.
#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Kind and name of the service: Zookeeper/zookeeper1.
    pub id: String,
    /// The wave that it belongs to.
    pub wave: String,
    /// How far it has come.
    pub state: State,
    /// Its images.
    pub images: Vec<ImageChange>,
    /// Its pods when it was planned; each is to be replaced once. Of many some are named.
    pub pods: Option<Vec<String>>,
    /// How many pods it had when it was planned.
    pub pod_count: Option<i64>,
    /// When it started, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub finished_at: Option<String>,
    /// Since when its first pod is well, RFC 3339.
    pub canary_since: Option<String>,
    /// How often its first pod was well, and then was not.
    pub canary_losses: Option<i64>,
    /// The UID of that pod: one that is made again is looked at from the beginning.
    pub canary_pod: Option<String>,
    /// Whether its first pod has been well for a while, in any try.
    pub first_worked: Option<bool>,
    /// Whether no more than one of its pods is replaced, until a person decides or that one has been well for a while.
    pub held: Option<bool>,
    /// Whether the Manager has had the new images: one that is others later was edited.
    pub set: Option<bool>,
    /// Whether a container with a new image has run.
    pub ran: Option<bool>,
    /// Whether it had been left out before its wave failed, or before all went back: that answers neither.
    pub left_out_before: Option<bool>,
    /// Why there is no way back once one has.
    pub no_way_back: Option<String>,
    /// How often it was started.
    pub attempts: Option<i64>,
    /// How often containers of its pods were restarted, which no one had planned.
    pub restarts: Option<i64>,
    /// Of Vrouter: for how long nodes were without one, each in the order in which they were.
    pub interruptions: Option<Vec<NodeInterruption>>,
    /// What it waits for, or why it failed or was left out.
    pub message: Option<String>,
}

/// For how long a node was without its vrouter.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeInterruption {
    /// The node.
    pub node: String,
    /// Since when, RFC 3339: its pod was asked to end, or the next one was made.
    pub since: String,
    /// How many seconds, until its next pod was ready, and its agent had a control node, where agents are asked. Unset: it
    /// lasts, or nothing is known of the end.
    pub seconds: Option<i64>,
    /// Whether the next pod was ready before its agent had a control node: the end is then when that was heard.
    pub without_control_node: Option<bool>,
}

impl Step {
    /// One of which nothing is done.
    #[must_use]
    pub fn new(id: String, wave: String, images: Vec<ImageChange>) -> Self {
        Self {
            id,
            wave,
            state: State::Pending,
            images,
            pods: None,
            pod_count: None,
            started_at: None,
            finished_at: None,
            canary_since: None,
            canary_losses: None,
            canary_pod: None,
            first_worked: None,
            held: None,
            set: None,
            ran: None,
            left_out_before: None,
            no_way_back: None,
            attempts: None,
            restarts: None,
            interruptions: None,
            message: None,
        }
    }
}

/// Another image for a container.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageChange {
    /// Name of the container.
    pub container: String,
    /// The image that it had.
    pub from: String,
    /// The image that it gets.
    pub to: String,
}

/// What a duration looks like, with no number that would be too long for one.
#[cfg(feature = "kube")]
const DURATION: &str = "self.matches('^([0-9]{1,6}(ms|s|m|h))+$')";
/// And one in which something can happen.
#[cfg(feature = "kube")]
const TIMEOUT: &str = "self.matches('^([0-9]{1,6}(ms|s|m|h))+$') && self.matches('[1-9]')";

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    let fixed = "cannot be changed once it is made: make another Upgrade";
    let _ = crate::schema::Fields::of(schema)
        .longest(&["manager", "registry"], crate::schema::HOST)
        .set("manager", "minLength", json!(1))
        .field("", "manager", "self == oldSelf", fixed)
        .longest(&["version"], 128)
        .field(
            "",
            "version",
            "self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",
            "must be a tag of images, such as R25.1",
        )
        .most_items(&["images"], 128)
        .most_items(&["pauseBefore", "force"], 32)
        .longest_item("pauseBefore", 64)
        .longest_item("force", 64)
        .most_items(&["skip"], 64)
        .longest(&["waveTimeout", "soak"], 32)
        .field("", "waveTimeout", TIMEOUT, "must be a duration such as 15m")
        .field("", "soak", DURATION, "must be a duration such as 30s")
        .set("vroutersAtOnce", "minimum", json!(1))
        .set("vroutersAtOnce", "maximum", json!(1000))
        .longest(&["plan"], 64)
        .longest(&["requestedBy"], 256)
        .set("retries", "minimum", json!(0))
        .set("retries", "maximum", json!(1_000_000))
        .field(
            "",
            "manager",
            "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
            "must be the name of a Manager",
        )
        .field(
            "",
            "plan",
            "self.matches('^[0-9a-f]+$')",
            "must be the hash that upgrade plan shows",
        )
        .field(
            "",
            "registry",
            "self.matches('^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$') && !self.contains('://')",
            "must be a place of images, such as registry.example.com/opensdn",
        )
        .rule(
            "",
            "has(self.version) || (has(self.images) && self.images.size() > 0)",
            "say which images: version, images, or both",
        );
    what_stays(schema);
}

/// What cannot be changed once it is made.
#[cfg(feature = "kube")]
fn what_stays(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .rule(
            "",
            "has(self.requestedBy) == has(oldSelf.requestedBy) && (!has(self.requestedBy) || self.requestedBy == oldSelf.requestedBy) \
             && has(self.version) == has(oldSelf.version) && (!has(self.version) || self.version == oldSelf.version) \
             && has(self.registry) == has(oldSelf.registry) && (!has(self.registry) || self.registry == oldSelf.registry) \
             && has(self.images) == has(oldSelf.images) && (!has(self.images) || self.images == oldSelf.images)",
            "version, registry, images and requestedBy cannot be changed once it is made: make another Upgrade",
        )
        // What it was made with, by whom the report says.
        .rule(
            "",
            "has(self.plan) == has(oldSelf.plan) && (!has(self.plan) || self.plan == oldSelf.plan) \
             && has(self.force) == has(oldSelf.force) && (!has(self.force) || self.force == oldSelf.force) \
             && has(self.prePull) == has(oldSelf.prePull) && (!has(self.prePull) || self.prePull == oldSelf.prePull) \
             && has(self.waitForDrain) == has(oldSelf.waitForDrain) && (!has(self.waitForDrain) || self.waitForDrain == oldSelf.waitForDrain)",
            "plan, force, prePull and waitForDrain cannot be changed once it is made: make another Upgrade",
        )
        // The report says by whom a step was left out, and why.
        .rule(
            "",
            "!has(oldSelf.skip) || (has(self.skip) && oldSelf.skip.all(old, self.skip.exists(new, new == old)))",
            "what is in skip stays in it as it is: more can be added",
        );
}

#[cfg(feature = "kube")]
fn image_constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    let _ = crate::schema::Fields::of(schema)
        .longest(&["kind"], 64)
        .longest(&["container"], 63)
        .set("container", "minLength", json!(1))
        .longest(&["image"], 512)
        .field("", "kind", "self.matches('^[A-Za-z]+$')", "must be a kind, such as Webui")
        .field("", "container", "self.matches('^[!-~]+$')", "must be the name of a container")
        .field("", "image", "self.matches('^[!-~]+$')", "must be an image, without spaces")
        .set("image", "minLength", json!(1));
}

#[cfg(feature = "kube")]
fn skip_constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    let _ = crate::schema::Fields::of(schema)
        .longest(&["step"], 128)
        .longest(&["reason", "requestedBy"], 256)
        .set("reason", "minLength", json!(1));
}
