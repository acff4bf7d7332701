//! What is around the components: nodes, the operator, the webhook, policies, certificates.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::jiff::Timestamp;
use opensdn_crds::status::{READY, STALLED};
use opensdn_deploy::names::operator::NAMESPACES;
use opensdn_upgrade::images;
use serde_json::Value;

use super::denied::Denied;
use super::report::{Counts, Part, Word, is_current};
use super::tf_operator;
use super::world::World;
use crate::snapshot::{
    Read, age, condition, condition_is, list, name, number, text, time, waits_for_network,
};

/// With less left than this nothing renews a certificate any more: the operator does it at two thirds of a year.
const URGENT_DAYS: i64 = 14;
const LATE_DAYS: i64 = 60;
const DAY: i64 = 86_400;
/// The condition of policies that claim, and its reason where no claim can be written.
const UNIQUENESS: &str = "UniquenessHolds";
const NOT_WRITTEN: &str = "ClaimsNotWritten";
/// The clock of who asks may differ, and a Lease is renewed every few seconds.
const STALE_SECONDS: i64 = 120;
/// What removes the webhook configurations (`docs/src/operations.md`, Switch it off).
const SWITCH_OFF: &str =
    "`kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration opensdn-webhook`";

/// The nodes of the cluster, by name.
pub(super) struct Nodes {
    all: Option<BTreeMap<String, Node>>,
}

pub(super) struct Node {
    pub(super) name: String,
    is_ready: bool,
    /// Nobody has heard of its kubelet for a while: `Ready` is Unknown. With False the kubelet answers.
    is_lost: bool,
    /// All that is missing is a network of pods, which its vrouter brings.
    waits_for_network: bool,
    pub(super) message: String,
    pub(super) since: Option<String>,
}

impl Node {
    fn is_bad(&self) -> bool {
        !self.is_ready && !self.waits_for_network
    }
}

pub(super) fn nodes(world: &World) -> Nodes {
    let of = |node: &Value| {
        let ready = condition(node, "Ready");
        let since = ready.map(|one| text(one, "/lastTransitionTime").to_owned());
        let message = ready.map_or("reports nothing", |one| text(one, "/message"));
        let status = ready.map_or("Unknown", |one| text(one, "/status"));
        let node = Node {
            name: name(node).to_owned(),
            is_ready: status == "True",
            is_lost: !["True", "False"].contains(&status),
            waits_for_network: waits_for_network(node),
            message: format!("not ready: {message}"),
            since: since.filter(|since| !since.is_empty()),
        };
        (node.name.clone(), node)
    };
    Nodes { all: world.nodes.known().map(|nodes| nodes.iter().map(of).collect()) }
}

impl Nodes {
    /// Whether nobody has heard of its kubelet.
    pub(super) fn is_lost(&self, name: &str) -> bool {
        self.of(name).is_some_and(|node| node.is_lost)
    }

    /// Whether it may be why a pod on it is not ready: it has a trouble other than that there is no network of pods.
    pub(super) fn is_bad(&self, name: &str) -> bool {
        self.of(name).is_some_and(Node::is_bad)
    }

    fn of(&self, name: &str) -> Option<&Node> {
        self.all.as_ref()?.get(name)
    }

    pub(super) fn bad(&self) -> impl Iterator<Item = &Node> {
        self.all.iter().flat_map(BTreeMap::values).filter(|node| node.is_bad())
    }

    /// Those that miss a network of pods and nothing else.
    pub(super) fn without_network(&self) -> impl Iterator<Item = &Node> {
        self.all.iter().flat_map(BTreeMap::values).filter(|node| node.waits_for_network)
    }

    pub(super) fn counts(&self) -> Counts {
        let Some(all) = &self.all else { return Counts::default() };
        let ready = all.values().filter(|node| node.is_ready).count();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Counts::new(number(ready), number(all.len()))
    }
}

/// Our own programs, the policies, the certificates, in this order.
pub(super) fn parts(world: &World, now: Timestamp) -> Vec<Part> {
    let webhook = webhook(world, now);
    let configuration = program("webhook configuration", &world.configuration);
    let policies = policies(&world.policies, &webhook).map(|part| with_denied(part, world, now));
    let parts = [operator(world, now), tf_operator::part(world), Some(webhook)];
    // Where there is no webhook there is nothing to configure.
    let configuration =
        Some(configuration).filter(|one| one.state.is_some_and(|state| state != Word::Unknown));
    let rest = [configuration, policies, certificates(&world.secrets, now)];
    parts.into_iter().chain(rest).flatten().collect()
}

fn empty(name: &str) -> Part {
    Part {
        name: name.to_owned(),
        state: None,
        ready: Counts::default(),
        version: String::new(),
        created: None,
        message: String::new(),
        degrades: false,
        look: None,
    }
}

fn unknown(name: &str) -> Part {
    Part { state: Some(Word::Unknown), message: "may not be read".to_owned(), ..empty(name) }
}

pub(super) fn program(name: &str, deployment: &Read<Value>) -> Part {
    let deployment = match deployment {
        Read::Known(deployment) => deployment,
        Read::Absent => return Part { message: "not installed".to_owned(), ..empty(name) },
        Read::Unknown(_) => return unknown(name),
    };
    let wanted = number(deployment, "/spec/replicas").unwrap_or(1);
    let ready = number(deployment, "/status/readyReplicas").unwrap_or_default();
    let image = list(deployment, "/spec/template/spec/containers").next();
    let version =
        image.and_then(|one| images::digest_or_tag(text(one, "/image"))).unwrap_or_default();
    let (state, message, degrades) = match ready {
        _ if wanted == 0 => (Word::Inactive, "scaled to 0".to_owned(), true),
        0 => (Word::Inactive, format!("none of {wanted} replicas is ready"), true),
        ready if ready < wanted => {
            (Word::Active, format!("{ready} of {wanted} replicas are ready"), false)
        }
        _ => (Word::Active, String::new(), false),
    };
    Part {
        state: Some(state),
        ready: Counts::new(ready, wanted),
        version: version.to_owned(),
        created: Some(text(deployment, "/metadata/creationTimestamp").to_owned()),
        message,
        degrades,
        ..empty(name)
    }
}

/// By its Deployment, and by the Lease of the replica that acts: without one what the status says may be old.
fn operator(world: &World, now: Timestamp) -> Option<Part> {
    let part = program("operator", &world.operator);
    let silent = world.lease.known().and_then(|lease| silence_of(lease, now));
    let Some(silent) = silent else { return Some(part) };
    if silent > STALE_SECONDS {
        let message = format!(
            "no operator has acted for {}: what is said of components may be old",
            age(silent)
        );
        return Some(Part { state: Some(Word::Timeout), message, degrades: true, ..part });
    }
    Some(runs(part))
}

/// What is wrong with a Manager in a namespace that the operator does not watch, by its Deployment.
pub(super) fn unwatched(world: &World, namespace: &str) -> Option<String> {
    let deployment = world.operator.known()?;
    let variables = list(deployment, "/spec/template/spec/containers/0/env");
    let watched = variables.into_iter().find(|one| text(one, "/name") == NAMESPACES)?;
    let watched: Vec<&str> =
        text(watched, "/value").split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
    if watched.is_empty() || watched.contains(&namespace) {
        return None;
    }
    Some(format!(
        "no operator watches the namespace {namespace}: it watches {}; create the Manager there, or have it watched, as by: \
         kubectl opensdn install --set operator.watchedNamespaces={} with the other values of the installation",
        watched.join(", "),
        watched.iter().copied().chain([namespace]).collect::<Vec<_>>().join(","),
    ))
}

/// By its Deployment, and by the Lease of the replica that leads.
fn webhook(world: &World, now: Timestamp) -> Part {
    let part = program("webhook", &world.webhook);
    let is_held = |lease: &&Value| !text(lease, "/spec/holderIdentity").is_empty();
    let lease = world.webhook_lease.known().filter(is_held);
    let Some(silent) = lease.and_then(|lease| silence_of(lease, now)) else {
        return missing(part, world);
    };
    match part.state {
        _ if silent <= STALE_SECONDS => runs(part),
        // That none is ready says more.
        Some(Word::Inactive) => part,
        // Each replica judges, whether one leads or not.
        Some(Word::Active) => {
            let message = format!(
                "no replica leads for {}: what policies say of themselves may be old",
                age(silent)
            );
            Part { message, ..part }
        }
        // It was removed by hand, and the Lease has stayed.
        _ if matches!(world.reviews, Read::Absent) => part,
        _ => {
            let message = format!(
                "no replica has acted for {}: what it judges is refused, or passes unjudged, as its webhook \
                 configurations say",
                age(silent)
            );
            Part { state: Some(Word::Timeout), message, degrades: true, ..part }
        }
    }
}

/// It, where nothing of it is there but what has API servers call it: its namespace was deleted, say. One that is called
/// elsewhere may run there.
fn missing(part: Part, world: &World) -> Part {
    let (Some(reviews), None) = (world.reviews.known(), part.state) else { return part };
    let is_called_here =
        |entry: &&Value| text(entry, "/clientConfig/service/namespace") == world.places.webhook;
    let is_fatal = |entry: &Value| text(entry, "/failurePolicy") == "Fail";
    let called: Vec<&Value> = list(reviews, "/webhooks").filter(is_called_here).collect();
    if called.is_empty() {
        return part;
    }
    let is_refused = called.into_iter().any(is_fatal);
    let outcome = if is_refused { "is refused" } else { "passes unjudged" };
    let message = format!(
        "not installed, but its webhook configurations are, so that what it judges {outcome}: install it again, or \
         switch it off with {SWITCH_OFF}"
    );
    Part { state: Some(Word::Inactive), message, degrades: true, ..part }
}

/// For how many seconds nothing has been heard of who holds the Lease.
fn silence_of(lease: &Value, now: Timestamp) -> Option<i64> {
    Some(now.as_second() - time(text(lease, "/spec/renewTime"))?.as_second())
}

/// It does, if not from a Deployment of this name.
fn runs(part: Part) -> Part {
    match part.state {
        None => Part { state: Some(Word::Active), message: String::new(), ..part },
        Some(_) => part,
    }
}

/// What replicas of the webhook have written of them, if there are any that may have changed it since.
fn policies(read: &Read<Vec<Value>>, webhook: &Part) -> Option<Part> {
    let policies = match read {
        Read::Known(policies) if !policies.is_empty() => policies,
        Read::Absent if webhook.state == Some(Word::Active) => {
            let message = "the CRD admissionpolicies.opensdn.io is not there, and nothing is judged: kubectl opensdn install \
                           makes it again, with the policies of your values";
            return Some(Part {
                state: Some(Word::Inactive),
                message: message.to_owned(),
                degrades: true,
                ..empty("policies")
            });
        }
        Read::Known(_) | Read::Absent => return None,
        Read::Unknown(_) => return Some(unknown("policies")),
    };
    if matches!(webhook.state, Some(Word::Timeout | Word::Inactive)) {
        let message = "no replica of the webhook runs them, whatever they say of themselves";
        return Some(Part {
            state: Some(Word::Inactive),
            message: message.to_owned(),
            ..empty("policies")
        });
    }
    let troubles = policies.iter().filter_map(|policy| Some((Trouble::of(policy)?, policy)));
    let mut troubles: Vec<_> = troubles.collect();
    troubles.sort_by_key(|(trouble, policy)| (*trouble, name(policy)));
    let is_ready = |policy: &&Value| is_current(policy) && condition_is(policy, READY, "True");
    let ready = policies.iter().filter(is_ready).count();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let ready = Counts::new(number(ready), number(policies.len()));
    let (state, message) = match troubles.first() {
        None => (Word::Active, String::new()),
        Some((trouble, worst)) => {
            (Word::Initializing, format!("{}: {}", name(worst), trouble.why(worst)))
        }
    };
    let degrades = !troubles.is_empty();
    Some(Part { state: Some(state), ready, message, degrades, ..empty("policies") })
}

/// What was denied by them, where nothing else is to be said of them.
fn with_denied(part: Part, world: &World, now: Timestamp) -> Part {
    if part.state != Some(Word::Active) {
        return part;
    }
    let message = match &world.denied {
        Denied::Nothing => return part,
        Denied::Unknown(_) => "denied ?".to_owned(),
        Denied::Known { reviews, since } => match time(since) {
            Some(since) => {
                format!("denied {reviews} in {}", age(now.as_second() - since.as_second()))
            }
            None => format!("denied {reviews}"),
        },
    };
    Part { message, ..part }
}

/// What is wrong with a policy; what is worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    /// It does not run, and waiting alone does not help.
    Lost,
    /// It runs, and what it makes unique cannot be claimed.
    NotUnique,
    /// It does not run everywhere yet.
    NotReady,
    /// The webhook has not said anything of its present specification.
    NotObserved,
}

impl Trouble {
    fn of(policy: &Value) -> Option<Self> {
        let is = |type_: &str, status: &str| condition_is(policy, type_, status);
        let claims = condition(policy, UNIQUENESS);
        match () {
            () if !is_current(policy) => Some(Self::NotObserved),
            // Unknown: the webhook cannot read the policies.
            () if is(STALLED, "True") || is(READY, "Unknown") => Some(Self::Lost),
            () if claims.is_some_and(|one| text(one, "/reason") == NOT_WRITTEN) => {
                Some(Self::NotUnique)
            }
            () if !is(READY, "True") => Some(Self::NotReady),
            () => None,
        }
    }

    /// What the webhook says of it.
    fn why(self, policy: &Value) -> &str {
        let type_ = match self {
            Self::NotUnique => UNIQUENESS,
            Self::Lost | Self::NotReady | Self::NotObserved => READY,
        };
        match condition(policy, type_) {
            None => "the webhook has not reported",
            // What it says is about an earlier one.
            Some(_) if self == Self::NotObserved => {
                "the webhook has not reported of its present specification"
            }
            Some(condition) => text(condition, "/message"),
        }
    }
}

/// The first that expires, of those of pods and of CAs.
fn certificates(read: &Read<Vec<Value>>, now: Timestamp) -> Option<Part> {
    let secrets = match read {
        Read::Known(secrets) => secrets,
        Read::Absent => return None,
        Read::Unknown(_) => return Some(unknown("certificates")),
    };
    let ends = secrets.iter().flat_map(|secret| {
        let data = secret.pointer("/data").and_then(Value::as_object).into_iter().flatten();
        let certificates = data.filter(|(key, _)| key.ends_with(".crt"));
        certificates.filter_map(move |(key, value)| {
            let pem = BASE64_STANDARD.decode(value.as_str()?).ok()?;
            Some((
                expiry(&pem)?,
                format!(
                    "{} in Secret {}/{}",
                    key,
                    crate::snapshot::namespace(secret),
                    name(secret)
                ),
            ))
        })
    });
    let (end, which) = ends.min()?;
    let days = (end - now.as_second()).div_euclid(DAY);
    let (state, message, degrades) = match days {
        ..0 => (Word::Inactive, format!("expired: {which}"), true),
        0..URGENT_DAYS => (Word::Active, format!("expires in {days}d: {which}"), true),
        URGENT_DAYS..LATE_DAYS => (
            Word::Active,
            format!("expires in {days}d, though it is renewed earlier: {which}"),
            false,
        ),
        _ => (Word::Active, format!("first expiry in {days}d: {which}"), false),
    };
    Some(Part { state: Some(state), message, degrades, ..empty("certificates") })
}

/// The end of the first certificate, in seconds.
fn expiry(pem: &[u8]) -> Option<i64> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
    Some(pem.parse_x509().ok()?.validity().not_after.timestamp())
}
