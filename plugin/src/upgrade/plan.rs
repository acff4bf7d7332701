//! A plan, for people and as a document. What it says is decided in `opensdn-upgrade`.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use opensdn_crds::upgrade::{ImageChange, Step, UpgradeRemark, UpgradeSpec};
use opensdn_upgrade::estimate;
use opensdn_upgrade::health::Service;
use opensdn_upgrade::images::release;
use opensdn_upgrade::order::{IMAGES, has_canary};
use opensdn_upgrade::plan::{FORCED, Plan, REFUSED, SKIPPABLE, pod_count};
use schemars::JsonSchema;
use serde::Serialize;

use super::disruption::{Disruption, disruption};
use super::restarts::{PlannedRestart, restarts};
use super::table::{self, Row};
use crate::output::Answer;
use crate::snapshot::duration;
use crate::ui::{Layout, one_line, style, wrap};

/// Whose members elect one that leads: the operator replaces it last (`operator/src/ensembles`).
const HAS_LEADER: &str = "Zookeeper";

/// What `upgrade plan` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpgradePlan {
    /// The namespace.
    pub(crate) namespace: String,
    /// The Manager.
    pub(crate) manager: String,
    /// The releases that run.
    pub(crate) from: String,
    /// The releases that shall run.
    pub(crate) to: String,
    /// By what it is known: upgrade apply --plan HASH.
    pub(crate) hash: String,
    /// Whether nothing speaks against it.
    pub(crate) may_begin: bool,
    /// Whether there is nothing to do.
    pub(crate) up_to_date: bool,
    /// How many pods are replaced.
    pub(crate) pods: usize,
    /// For how many seconds it will be at work: estimated, see the services; images that are pulled are not in it.
    estimated_seconds: u64,
    /// The waves, in their order.
    waves: Vec<PlannedWave>,
    /// The services that get other images, in the order of the waves.
    services: Vec<PlannedService>,
    /// What a person does before, as no program does it.
    by_hand: Vec<String>,
    /// What speaks against it, and what is to be known of it. Only a severity of Skippable can be passed over by --force.
    pub(crate) remarks: Vec<UpgradeRemark>,
    /// The command that carries it out.
    pub(crate) next: String,
}

/// A wave that has something to do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlannedWave {
    /// Its name.
    name: String,
    /// For how many seconds it will be at work, its gate included; none where that is not known, as of images that are pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_seconds: Option<u64>,
    /// Why there is no way back behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_way_back: Option<String>,
}

/// A service that gets other images.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlannedService {
    /// Its wave.
    wave: String,
    /// Kind and name.
    service: String,
    /// Its pods, if its object is there; of many some are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<Vec<String>>,
    /// How many pods it has, if its object is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_count: Option<usize>,
    /// The release, or else the tags, of the images that are replaced.
    from: String,
    /// Those that replace them.
    to: String,
    /// The images.
    images: Vec<ImageChange>,
    /// How its pods are replaced.
    method: String,
    /// What users notice meanwhile.
    disruption: Disruption,
    /// For how many seconds it will be at work: by what its pods took to be ready when they were made last, and what is
    /// waited for on purpose.
    estimated_seconds: u64,
    /// The pods that are replaced, each with the reason; of many some are named.
    restarts: Vec<PlannedRestart>,
}

impl Answer for UpgradePlan {
    const KIND: &'static str = "UpgradePlan";
}

impl UpgradePlan {
    /// Of the plan of what is wanted, of services as they are; `next` makes the command that carries it out, of its hash.
    pub(crate) fn of(
        plan: Plan,
        spec: &UpgradeSpec,
        services: &[Service],
        namespace: &str,
        next: impl FnOnce(&str) -> String,
    ) -> Self {
        let (hash, may_begin, pods) = (plan.hash(), plan.may_begin(), plan.pods());
        let by_hand = by_hand(&plan, spec);
        let steps = plan.steps.into_iter();
        let planned: Vec<_> = steps.map(|step| service(step, spec, services)).collect();
        let waves = plan.waves.into_iter().map(|wave| {
            let of_wave = planned.iter().filter(|one| one.wave == wave.name);
            let all = of_wave.map(|one| Duration::from_secs(one.estimated_seconds));
            let estimated = (wave.name != IMAGES).then(|| estimate::of_wave(all, spec).as_secs());
            let (name, no_way_back) = (wave.name, wave.no_way_back);
            PlannedWave { name, estimated_seconds: estimated, no_way_back }
        });
        let waves: Vec<_> = waves.collect();
        let estimated = waves.iter().filter_map(|wave| wave.estimated_seconds);
        Self {
            estimated_seconds: estimated.fold(0, u64::saturating_add),
            by_hand,
            namespace: namespace.to_owned(),
            manager: spec.manager.clone(),
            from: plan.from,
            to: plan.to,
            may_begin,
            up_to_date: planned.is_empty() && may_begin,
            pods,
            waves,
            services: planned,
            remarks: plan.remarks,
            next: next(&hash),
            hash,
        }
    }

    /// Whether it has a wave of the name.
    pub(crate) fn has_wave(&self, name: &str) -> bool {
        self.waves.iter().any(|wave| wave.name == name)
    }

    /// Writes it; each pod that is replaced, too, if that is asked for.
    pub(crate) fn write(
        &self,
        is_wide: bool,
        layout: Layout,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Self { namespace, manager, from, to, hash, .. } = self;
        if self.up_to_date {
            let text = format!("Manager {namespace}/{manager} is up to date: {from}");
            return writeln!(out, "{}", one_line(&text));
        }
        let text = format!("Manager {namespace}/{manager}: {from} -> {to}, plan {hash}");
        writeln!(out, "{}", one_line(&text))?;
        if !self.services.is_empty() {
            writeln!(out)?;
            let heads = ["WAVE", "SERVICE", "PODS", "FROM", "TO", "METHOD"];
            table::write(&heads, &self.rows(), layout, out)?;
            self.totals(layout, out)?;
            table::write(&["SERVICE", "ABOUT", "MEANWHILE"], &self.meanwhile(), layout, out)?;
        }
        if is_wide {
            writeln!(out)?;
            let restarts = self.services.iter().flat_map(|one| &one.restarts);
            let rows: Vec<Row> = restarts.map(PlannedRestart::row).collect();
            table::write(&["POD", "NODE", "REPLACED FOR"], &rows, layout, out)?;
        }
        if !self.by_hand.is_empty() {
            let strong = style::STRONG;
            writeln!(out, "\n{strong}BY HAND, BEFORE{strong:#}")?;
        }
        for text in &self.by_hand {
            for line in wrap(&one_line(text), layout.width) {
                writeln!(out, "{line}")?;
            }
        }
        self.points_of_no_return(layout, out)?;
        if !self.remarks.is_empty() {
            writeln!(out)?;
        }
        self.remarks.iter().try_for_each(|one| remark(one, layout, out))
    }

    fn rows(&self) -> Vec<Row> {
        let mut before = "";
        let mut rows = Vec::new();
        if self.has_wave(IMAGES) {
            let all = self.services.iter().flat_map(|one| &one.images);
            let method = match all.map(|change| &change.to).collect::<BTreeSet<_>>().len() {
                1 => "nodes pull the new image in advance".to_owned(),
                count => format!("nodes pull {count} new images in advance"),
            };
            let cells = [IMAGES, "-", "-", "-", "-", &method].map(str::to_owned).to_vec();
            rows.push(Row { cells, ..Row::default() });
        }
        for one in &self.services {
            // The name of a wave is in its first row.
            let wave = if one.wave == before { "" } else { &one.wave };
            before = &one.wave;
            let pods = one.pod_count.map_or("-".to_owned(), |count| count.to_string());
            let to =
                if one.from == one.to { format!("{} (elsewhere)", one.to) } else { one.to.clone() };
            let (service, from) = (one.service.clone(), one.from.clone());
            let cells = vec![wave.to_owned(), service, pods, from, to, one.method.clone()];
            rows.push(Row { cells, ..Row::default() });
        }
        rows
    }

    fn totals(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let (services, pods) = (self.services.len(), self.pods);
        let about = duration(Duration::from_secs(self.estimated_seconds));
        writeln!(
            out,
            "\nservices that get other images: {services}; pods that are replaced: {pods}"
        )?;
        let pulling = if self.has_wave(IMAGES) { "; pulling images comes to it" } else { "" };
        let text = format!(
            "it takes about {about}, gates included, if pods start as quickly as those that there are{pulling}"
        );
        wrap(&text, layout.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out)
    }

    /// For how long each service is at work, and what users notice of it.
    fn meanwhile(&self) -> Vec<Row> {
        let row = |one: &PlannedService| Row {
            cells: vec![one.service.clone(), duration(Duration::from_secs(one.estimated_seconds))],
            note: one.disruption.text.clone(),
            ..Row::default()
        };
        self.services.iter().map(row).collect()
    }

    fn points_of_no_return(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        if self.waves.iter().any(|wave| wave.no_way_back.is_some()) {
            writeln!(out)?;
        }
        for wave in &self.waves {
            let Some(why) = &wave.no_way_back else { continue };
            let text = format!("point of no return: the wave {}: {why}", wave.name);
            for line in wrap(&one_line(&text), layout.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// The same without colours, a line each.
    pub(crate) fn lines(&self, layout: Layout) -> Vec<String> {
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.write(false, layout, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        anstream::adapter::strip_str(&text).to_string().lines().map(str::to_owned).collect()
    }
}

/// What a person does before, by what the plan says of itself.
fn by_hand(plan: &Plan, spec: &UpgradeSpec) -> Vec<String> {
    let says = |code: &str| plan.remarks.iter().any(|one| one.code == code);
    let mut all = Vec::new();
    if says("OSDN5018") || plan.waves.iter().any(|wave| wave.no_way_back.is_some()) {
        all.push(
            "back up Cassandra and ZooKeeper together, without changes in between (upstream's db_json_exim.py)",
        );
    }
    if says("OSDN5018") {
        all.push("see to it that nothing is configured in the wave config; --pause-before config chooses its time");
    }
    if says("OSDN5014") {
        all.push("look which RabbitMQ runs, and prepare it: kubectl opensdn explain OSDN5014");
    }
    if plan.waves.iter().any(|wave| wave.name == "vrouters") {
        all.push(match spec.wait_for_drain {
            Some(true) => "in the wave vrouters drain each node that upgrade status asks for",
            _ => {
                "move what must not be interrupted away from the nodes, before the wave vrouters (--pause-before vrouters), or node \
                 by node (--wait-for-drain)"
            }
        });
    }
    all.into_iter().map(str::to_owned).collect()
}

fn service(step: Step, spec: &UpgradeSpec, services: &[Service]) -> PlannedService {
    let kind = step.id.split('/').next().unwrap_or_default();
    let pod_count = pod_count(&step);
    let pods = pod_count.unwrap_or_default();
    let (method, disruption) = (method(kind, pods, spec), disruption(kind, pods));
    let of = |side: fn(&ImageChange) -> &str| release(step.images.iter().map(side));
    PlannedService {
        estimated_seconds: estimate::of_step(&step, services, spec).as_secs(),
        restarts: restarts(&step, services),
        from: of(|change| &change.from),
        to: of(|change| &change.to),
        method,
        disruption,
        wave: step.wave,
        service: step.id,
        pods: step.pods,
        pod_count,
        images: step.images,
    }
}

/// How the pods of a service are replaced.
fn method(kind: &str, pods: usize, spec: &UpgradeSpec) -> String {
    let at_once = spec.vrouters_at_once.unwrap_or(1);
    let when_drained =
        if spec.wait_for_drain == Some(true) { ", each when it is drained" } else { "" };
    let text = match kind {
        "Vrouter" if at_once > 1 => {
            return format!("first node looked at, then {at_once} at a time{when_drained}");
        }
        "Vrouter" => return format!("node by node{when_drained}"),
        _ if pods <= 1 => "its one pod",
        HAS_LEADER => "first pod looked at, then one at a time, leader last",
        kind if has_canary(kind) => "first pod looked at, then one at a time",
        _ => "one at a time",
    };
    text.to_owned()
}

/// What is said behind a remark: whether something passes over it.
pub(crate) fn passes_over(remark: &UpgradeRemark) -> String {
    let code = &remark.code;
    match remark.severity.as_str() {
        REFUSED => " (nothing passes over it)".to_owned(),
        SKIPPABLE => format!(" (--force {code} passes over it)"),
        FORCED => format!(" (passed over by --force {code})"),
        _ => String::new(),
    }
}

/// Writes what speaks against it, or is to be known of it.
pub(super) fn remark(
    remark: &UpgradeRemark,
    layout: Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (word, style) = match remark.severity.as_str() {
        REFUSED | SKIPPABLE => ("refused", style::ERROR),
        FORCED => ("forced", style::WARNING),
        "Failed" => ("failed", style::ERROR),
        _ => ("warning", style::WARNING),
    };
    let code = one_line(&remark.code);
    let text = one_line(&format!("{}{}", remark.message, passes_over(remark)));
    write!(out, "{style}{word:<7}{style:#}  [{code}] ")?;
    let mut lines = wrap(&text, layout.width.saturating_sub(4)).into_iter();
    writeln!(out, "{}", lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| writeln!(out, "    {line}"))
}
