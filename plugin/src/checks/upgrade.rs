//! Checks before an upgrade: whether it can begin, and what speaks against it. What that is, is decided in
//! `opensdn-upgrade`; here are the plans of all Managers as `upgrade plan` makes them, each remark a check of its own, and
//! what a plan does not look at: other upgrades, the operator, nodes, certificates.

use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Phase, Upgrade as Object};
use opensdn_deploy::names::operator::NAME as OPERATOR;
use opensdn_upgrade::images::{parts, tag};
use opensdn_upgrade::plan::{Plan, REFUSED, SKIPPABLE};
use serde_json::Value;

use super::report::{NodeResult, Outcome, Verdict};
use super::world::World;
use super::{few, nodes as of_nodes};
use crate::certificates::{CertificatesReport, State};
use crate::install::inventory::VERSION;
use crate::snapshot::{Read, condition_is, list, name, number, text};
use crate::upgrade::attach::comes_first;
use crate::upgrade::plan::passes_over;
use crate::upgrade::stage;

/// What is read before an upgrade alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upgrade {
    /// The release that services shall have.
    pub(crate) version: String,
    /// The namespace of the Managers that are meant, where one was named.
    pub(crate) namespace: Option<String>,
    /// The Managers that are meant.
    pub(crate) managers: Read<Vec<Planned>>,
    /// The Upgrades of their namespaces; absent where the kind is not served.
    pub(crate) upgrades: Read<Vec<Object>>,
    /// Their certificates.
    pub(crate) certificates: CertificatesReport,
}

/// A Manager, and what would be done.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The plan.
    pub(crate) plan: Read<Plan>,
    /// The pods of its services.
    pub(crate) pods: Vec<Value>,
}

impl Planned {
    fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Upgrade {
    /// Whether vrouters get other images; so where that is not known.
    pub(super) fn exchanges_vrouters(&self) -> bool {
        let is_of_vrouters = |planned: &Planned| match &planned.plan {
            Read::Known(plan) => plan.steps.iter().any(|step| step.id.starts_with("Vrouter/")),
            _ => true,
        };
        self.managers.known().is_none_or(|all| all.iter().any(is_of_vrouters))
    }

    /// `upgrade plan` of the first Manager of which `is_meant`, with the flags that it needs.
    pub(crate) fn plan_command(&self, is_meant: impl Fn(&Planned) -> bool) -> Option<String> {
        let all = self.managers.known()?;
        let one = all.iter().find(|one| is_meant(one))?;
        let several = all.iter().filter(|other| other.namespace == one.namespace).count() > 1;
        let manager = if several { format!(" --manager {}", one.name) } else { String::new() };
        let (version, namespace) = (&self.version, &one.namespace);
        Some(format!("kubectl opensdn upgrade plan {version}{manager} -n {namespace}"))
    }

    /// Another Upgrade of the Manager that is not over.
    fn unfinished(&self, manager: &Planned) -> Option<&Object> {
        let all = self.upgrades.known()?.iter();
        let of_namespace = |one: &&Object| one.namespace().as_deref() == Some(&manager.namespace);
        comes_first(all.filter(of_namespace), &manager.name)
    }
}

fn of(world: &World) -> Result<&Upgrade, Verdict> {
    world.upgrade.as_ref().ok_or_else(|| Verdict::skipped("needs --upgrade VERSION"))
}

/// The Managers of which something is to be said.
fn managers(upgrade: &Upgrade) -> Result<&[Planned], Verdict> {
    match &upgrade.managers {
        Read::Unknown(why) => {
            Err(Verdict::uncertain(format!("the Managers may not be read: {why}")))
        }
        Read::Known(all) if !all.is_empty() => Ok(all),
        Read::Known(_) | Read::Absent => Err(Verdict::skipped("there is no Manager")),
    }
}

/// Several parts of a verdict as one.
fn together(parts: Vec<(Outcome, String)>, good: &str) -> Verdict {
    let outcome = Outcome::worst(parts.iter().map(|one| one.0));
    let all: Vec<String> =
        parts.into_iter().filter(|one| one.0 == outcome).map(|one| one.1).collect();
    match all.is_empty() {
        true => Verdict::ok(good),
        false => Verdict::new(outcome, few(&all)),
    }
}

/// What plans say by this code.
pub(super) fn remarks(world: &World, code: &str, good: &str) -> Verdict {
    let managers = match of(world).and_then(managers) {
        Ok(managers) => managers,
        Err(verdict) => return verdict,
    };
    let of_manager = |one: &Planned| -> Vec<(Outcome, String)> {
        let title = one.title();
        match &one.plan {
            Read::Known(plan) => plan
                .remarks
                .iter()
                .filter(|remark| remark.code == code)
                .map(|remark| {
                    let refuses = [REFUSED, SKIPPABLE].contains(&remark.severity.as_str());
                    let outcome = if refuses { Outcome::Fail } else { Outcome::Warn };
                    (outcome, format!("{title}: {}{}", remark.message, passes_over(remark)))
                })
                .collect(),
            Read::Unknown(why) => vec![(Outcome::Uncertain, format!("{title}: {why}"))],
            Read::Absent => vec![(Outcome::Uncertain, format!("{title}: it is not planned"))],
        }
    };
    together(managers.iter().flat_map(of_manager).collect(), good)
}

pub(super) fn can_begin(world: &World) -> Verdict {
    let upgrade = match of(world) {
        Ok(upgrade) => upgrade,
        Err(verdict) => return verdict,
    };
    if upgrade.managers.known().is_none_or(Vec::is_empty)
        && upgrade.managers.why_unknown().is_none()
    {
        let place = upgrade.namespace.as_ref();
        let place = place.map_or("the cluster".to_owned(), |name| format!("the namespace {name}"));
        let message = format!("there is no Manager in {place}: nothing can be upgraded");
        return Verdict::fail(message).fix("kubectl get managers.tf.tungsten.io -A");
    }
    let managers = match managers(upgrade) {
        Ok(managers) => managers,
        Err(verdict) => return verdict,
    };
    let all: Vec<(Outcome, String)> = managers.iter().map(|one| begins(upgrade, one)).collect();
    let is_bad = |one: &Planned| begins(upgrade, one).0 != Outcome::Ok;
    let verdict = together(all.iter().filter(|one| one.0 != Outcome::Ok).cloned().collect(), "");
    match verdict.outcome {
        Outcome::Ok => {
            let all: Vec<String> = all.into_iter().map(|one| one.1).collect();
            Verdict::ok(few(&all))
        }
        _ => verdict.fix(upgrade.plan_command(is_bad).unwrap_or_default()),
    }
}

/// Whether the upgrade of a Manager can begin, and what it would be.
fn begins(upgrade: &Upgrade, one: &Planned) -> (Outcome, String) {
    let title = one.title();
    let plan = match &one.plan {
        Read::Known(plan) => plan,
        Read::Unknown(why) => return (Outcome::Uncertain, format!("{title}: {why}")),
        Read::Absent => return (Outcome::Uncertain, format!("{title}: it is not planned")),
    };
    let Plan { from, to, steps, .. } = plan;
    if steps.is_empty() && plan.may_begin() {
        return (Outcome::Ok, format!("{title} is up to date: {from}"));
    }
    let refusals = plan.remarks.iter();
    let refusals =
        refusals.filter(|remark| [REFUSED, SKIPPABLE].contains(&remark.severity.as_str()));
    let mut why: Vec<String> = refusals.map(|remark| remark.code.clone()).collect();
    why.dedup();
    why.extend(upgrade.unfinished(one).map(|other| format!("the Upgrade {}", other.name_any())));
    if !why.is_empty() {
        let why = why.join(", ");
        return (Outcome::Fail, format!("{title}: {from} -> {to} cannot begin: {why}"));
    }
    let (services, pods, hash) = (steps.len(), plan.pods(), plan.hash());
    let text = format!(
        "{title}: {from} -> {to}: services that get other images: {services}, pods that are replaced: {pods}, plan {hash}"
    );
    (Outcome::Ok, text)
}

pub(super) fn unfinished(world: &World) -> Verdict {
    let upgrade = match of(world) {
        Ok(upgrade) => upgrade,
        Err(verdict) => return verdict,
    };
    let managers = match managers(upgrade) {
        Ok(managers) => managers,
        Err(verdict) => return verdict,
    };
    if let Some(why) = upgrade.upgrades.why_unknown() {
        return Verdict::uncertain(format!("Upgrades may not be read: {why}"));
    }
    let all = managers.iter().filter_map(|one| Some((one, upgrade.unfinished(one)?)));
    let found: Vec<(&Planned, &Object)> = all.collect();
    let Some((_, first)) = found.first() else {
        return Verdict::ok("none is unfinished");
    };
    let (name, namespace) = (first.name_any(), first.namespace().unwrap_or_default());
    let fix = format!("kubectl opensdn upgrade status {name} -n {namespace}");
    let texts: Vec<String> = found.iter().map(|(one, other)| standing(one, other)).collect();
    Verdict::fail(few(&texts)).fix(fix)
}

/// How far the other one is, and what to do.
fn standing(one: &Planned, other: &Object) -> String {
    let (title, name) = (one.title(), other.name_any());
    match stage::phase(other) {
        Some(Phase::Stopped) => format!(
            "{title}: the Upgrade {name} has stopped, and comes first: try it again (upgrade retry), go back (upgrade \
             rollback), or delete it"
        ),
        phase => {
            let phase = phase.map_or("not seen by the operator yet", Phase::as_str);
            format!(
                "{title}: the Upgrade {name} is {phase}, and comes first: wait until it is over"
            )
        }
    }
}

pub(super) fn operator(world: &World) -> Verdict {
    let upgrade = match of(world) {
        Ok(upgrade) => upgrade,
        Err(verdict) => return verdict,
    };
    if upgrade.upgrades == Read::Absent {
        return Verdict::fail(
            "the cluster does not serve the kind Upgrade: the CRDs of OpenSDN are missing or older",
        );
    }
    let place = &world.places.operator;
    let deployment = match world.deployments.get(OPERATOR) {
        Some(Read::Known(deployment)) => deployment,
        Some(Read::Unknown(why)) => {
            return Verdict::uncertain(format!("the Deployment {OPERATOR} may not be read: {why}"));
        }
        Some(Read::Absent) | None => {
            let message = format!(
                "there is no Deployment {OPERATOR} in the namespace {place}: nothing carries an upgrade out"
            );
            return Verdict::fail(message);
        }
    };
    if number(deployment, "/status/readyReplicas").unwrap_or(0) == 0 {
        return Verdict::fail(format!("no pod of the operator is ready in the namespace {place}"))
            .fix(format!("kubectl describe deployment {OPERATOR} -n {place}"));
    }
    of_version(text(deployment, "/spec/template/spec/containers/0/image"))
}

/// What the operator's image says of its version.
fn of_version(image: &str) -> Verdict {
    let numbers = |version: &str| -> Option<Vec<u32>> {
        let version = version.trim_start_matches('v');
        let version = version.split(['-', '+']).next()?;
        version.split('.').map(|number| number.parse().ok()).collect()
    };
    let is_tagged = !image.contains('@');
    let found = tag(image).filter(|_| is_tagged).and_then(numbers);
    let said = parts(image).2.unwrap_or_default();
    match (found, numbers(VERSION)) {
        (Some(found), Some(own)) if found < own => Verdict::fail(format!(
            "the operator is {said}, older than this plugin ({VERSION}): it may decide otherwise than the plan that is shown"
        )),
        (Some(found), Some(own)) if found > own => Verdict::warn(format!(
            "the operator is {said}, newer than this plugin ({VERSION}): it may decide otherwise than the plan that is shown"
        ))
        .fix("kubectl opensdn version"),
        (Some(_), Some(_)) => Verdict::ok(format!("the operator {said} is ready, and the kind Upgrade is served")),
        _ => Verdict::uncertain(format!(
            "the operator is ready; its image {image} does not say whether it is of this plugin's version ({VERSION})"
        )),
    }
}

pub(super) fn nodes(world: &World) -> Verdict {
    let all = match of_nodes::nodes(world) {
        Ok(all) => all,
        Err(verdict) => return verdict,
    };
    let managers = match of(world).and_then(managers) {
        Ok(managers) => managers,
        Err(verdict) => return verdict,
    };
    let pods: Vec<&Value> = managers.iter().flat_map(|one| &one.pods).collect();
    let on = |node: &Value| {
        let here = pods.iter().filter(|pod| text(pod, "/spec/nodeName") == name(node));
        here.copied().collect::<Vec<_>>()
    };
    let used: Vec<(&Value, Vec<&Value>)> = all.iter().map(|node| (node, on(node))).collect();
    let used: Vec<_> = used.into_iter().filter(|(_, pods)| !pods.is_empty()).collect();
    let bad = used.iter().filter_map(|(node, pods)| trouble(node, pods)).collect();
    of_nodes::rolled(used.len(), bad, "ready, and without pressure")
}

/// Why pods that are replaced on a node may not come back there.
fn trouble(node: &Value, pods: &[&Value]) -> Option<NodeResult> {
    let result = |outcome, message: &str| Some(of_nodes::result(node, outcome, message));
    if !condition_is(node, "Ready", "True") {
        return result(Outcome::Fail, "not ready: a pod that is replaced there does not start");
    }
    if condition_is(node, "DiskPressure", "True") {
        return result(
            Outcome::Fail,
            "DiskPressure: no image is pulled there, and pods are evicted",
        );
    }
    let pressures = ["MemoryPressure", "PIDPressure"];
    if let Some(pressure) = pressures.iter().find(|one| condition_is(node, one, "True")) {
        return result(Outcome::Warn, pressure);
    }
    let is_cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    let held = pods.iter().find(|pod| !tolerates_cordon(pod)).filter(|_| is_cordoned)?;
    let message = format!("cordoned: {} may not come back there when it is replaced", name(held));
    result(Outcome::Warn, &message)
}

/// Whether the scheduler gives it to a node that is cordoned, by the taint that such a node has; pods of a DaemonSet always.
fn tolerates_cordon(pod: &Value) -> bool {
    list(pod, "/spec/tolerations").any(|one| {
        let is_of_taint = text(one, "/key") == "node.kubernetes.io/unschedulable";
        let matches = match text(one, "/operator") {
            "Exists" => is_of_taint || text(one, "/key").is_empty(),
            _ => is_of_taint && text(one, "/value").is_empty(),
        };
        matches && ["", "NoSchedule"].contains(&text(one, "/effect"))
    })
}

pub(super) fn certificates(world: &World) -> Verdict {
    let upgrade = match of(world) {
        Ok(upgrade) => upgrade,
        Err(verdict) => return verdict,
    };
    let CertificatesReport { certificates, not_read } = &upgrade.certificates;
    let bad = certificates.iter().filter_map(|one| {
        let (outcome, what) = match one.state {
            State::Expired => (Outcome::Fail, "it has ended".to_owned()),
            State::Untrusted => (Outcome::Fail, "pods do not trust who issued it".to_owned()),
            State::Unreadable => (Outcome::Fail, "it cannot be read".to_owned()),
            State::Urgent => {
                let days = one.days.unwrap_or_default();
                (Outcome::Warn, format!("it ends in {days} days"))
            }
            State::Late | State::Ok => return None,
        };
        Some((outcome, format!("{}/{} {}: {what}", one.namespace, one.secret, one.key)))
    });
    let unread = not_read
        .iter()
        .map(|one| (Outcome::Uncertain, format!("{} may not be read: {}", one.what, one.why)));
    let good = match certificates.len() {
        0 => "the operator has made none".to_owned(),
        all => format!("{}: none ends within two weeks", super::number_of(all, "certificate")),
    };
    together(bad.chain(unread).collect(), &good)
}
