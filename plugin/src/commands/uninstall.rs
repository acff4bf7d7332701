//! `uninstall`: what goes and what stays is shown and confirmed, then removed, the webhook configurations first. What the
//! steps are is in `crate::install`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::install::{ControlNamespace, DryRun};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::install::network_loss::NetworkLoss;
use crate::install::object::ObjectKey;
use crate::install::removal::{Data, Kept, OF_CLOUD, is_held_by_others};
use crate::install::removal_mark::RemovalMark;
use crate::install::removing::Removal;
use crate::install::requests::Requests;
use crate::install::survey::{inventory, namespaces_of_inventories};
use crate::install::target::Target;
use crate::install::waiting::Deadline;
use crate::output::{Answer, ObjectsOutput};
use crate::runtime::Runtime;
use crate::snapshot::list;
use crate::ui::{Ui, wrap};

const EXAMPLES: &str = "\
Examples:
  # Webhook, operator and policies; CRDs, custom resources and their namespaces stay
  kubectl opensdn uninstall

  # What would it remove?
  kubectl opensdn uninstall --dry-run=server

  # Everything, with all custom resources: what OpenSDN runs ends, and pods lose their network
  kubectl opensdn uninstall --purge

Only objects are deleted that the inventory names and that have our label. It works while the
webhook is dead, and the same command continues a removal that was interrupted.

Exit codes: 0 removed, or there was nothing, 4 not gone within --timeout, 5 not confirmed.";

/// Arguments of `uninstall`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Uninstall {
    /// Delete the CRDs, and with them every custom resource of OpenSDN, and the namespaces of components.
    #[arg(long)]
    purge: bool,
    /// Leave what runs, with its custom resources. Without --purge it is so in any case.
    #[arg(long, conflicts_with = "purge")]
    orphan: bool,
    /// Keep the CRDs. Without --purge it is so in any case.
    #[arg(
        long,
        value_name = "YES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        conflicts_with = "purge"
    )]
    keep_crds: Option<bool>,
    /// The name of the cluster, which --purge asks for.
    #[arg(long, value_name = "NAME", requires = "purge")]
    confirm: Option<String>,
    /// How long to wait until all of it is gone.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = opensdn_duration::parse)]
    timeout: Duration,
    /// Only show what would be done.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    dry_run: DryRun,
    /// Do not ask; --purge asks for a name all the same.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: ControlNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: ObjectsOutput,
}

/// What `uninstall` and `prune` answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Uninstallation {
    /// The API server.
    pub(crate) server: String,
    /// The namespace of the webhook.
    pub(crate) namespace: String,
    /// Whether it was only shown.
    pub(crate) dry_run: bool,
    /// What was deleted, or would be.
    pub(crate) removed: Vec<ObjectKey>,
    /// What stays, and why.
    pub(crate) kept: Vec<KeptObject>,
    /// How many custom resources of our kinds stay.
    pub(crate) kept_custom_resources: usize,
    /// What loses its network with them; null where that could not be asked.
    pub(crate) network_loss: Option<NetworkLoss>,
}

/// An object that stays.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeptObject {
    #[serde(flatten)]
    pub(crate) key: ObjectKey,
    /// Why.
    pub(crate) reason: &'static str,
}

impl Answer for Uninstallation {
    const KIND: &'static str = "Uninstallation";
}

/// Why an object stays, for people.
pub(crate) fn reason(kept: Kept) -> &'static str {
    match kept {
        Kept::Data => "has data, which --purge deletes",
        Kept::Existed => "was there before",
        Kept::Others => "has objects of others",
        Kept::Unknown => "may have been there before: there is no inventory",
    }
}

impl Uninstall {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        ControlNamespace::check(global)?;
        if self.dry_run == DryRun::Client {
            let message = "--dry-run=client: what is removed is known by the cluster alone";
            return Err(Failure::usage(message, "use --dry-run=server"));
        }
        if self.keep_crds == Some(false) {
            let message =
                "--keep-crds=false: with the CRDs every custom resource goes, and what runs by it";
            return Err(Failure::usage(message, "if that is meant: --purge"));
        }
        Runtime::start(global)?.block_on(self.uninstall(global, ui))
    }

    async fn uninstall(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let (target, requests) = Target::of(global).await?;
        let namespace = &self.place.control_namespace;
        let data = if self.purge { Data::Purge } else { Data::Keep };
        ui.progress("asking the cluster what there is");
        let inventory = inventory(&requests, namespace).await?;
        if inventory.is_none()
            && let Some(other) = namespaces_of_inventories(&requests).await.first()
        {
            let message = format!("OpenSDN is not installed in the namespace {namespace}");
            let hint = format!("it is in {other}: --control-namespace {other}");
            return Err(Failure::new(Exit::Usage, "another-namespace", message, hint));
        }
        let removal = Removal::of(&requests, namespace, inventory.as_ref(), data).await?;
        let mut answer = Uninstallation::of(&target, namespace, &removal);
        if removal.is_done() {
            removal.foreign.iter().for_each(|key| {
                ui.warn(&format!("{key} is not of this installation, and stays: remove it with the tool that made it"));
            });
            self.answer(&answer, ui)?;
            return Ok(Exit::Done);
        }
        show(&target, &removal, data, ui);
        answer.network_loss = network_loss(&requests, &removal, ui).await;
        removal.refuse_missing_rights(&requests).await?;
        if self.dry_run == DryRun::Server {
            answer.dry_run = true;
            self.answer(&answer, ui)?;
            return Ok(Exit::Done);
        }
        self.confirm(&target, ui)?;
        let mark = RemovalMark::new(&requests, namespace);
        let is_said = inventory.is_some() && mark.set(ui).await;
        let done = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            taken_back = mark.keep(), if is_said => Some(Err(taken_back)),
            done = removal.run(&requests, Deadline::after(self.timeout), ui) => Some(done),
        };
        let Some(done) = done else {
            let message = "interrupted: what is deleted is gone";
            let hint = "the same command continues";
            return Err(Failure::new(Exit::Interrupted, "interrupted", message, hint));
        };
        let next = "what is deleted is gone, and the same command continues";
        done.map_err(|failure| failure.half_way(next))?;
        self.answer(&answer, ui)?;
        let released = removal.kept.iter().filter(|(_, kept)| *kept == Kept::Others);
        let names: Vec<&str> = released.map(|(key, _)| key.name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(" ");
            ui.hint(&format!(
                "when what others have there is gone: kubectl delete namespace {names}"
            ));
        }
        Ok(Exit::Done)
    }

    fn answer(&self, answer: &Uninstallation, ui: &mut Ui) -> Result<(), Failure> {
        let names = answer.removed.iter().map(ObjectKey::kubectl_name);
        ui.answer_objects(self.output.output, answer, names, |out| answer.write(out))
    }

    fn confirm(&self, target: &Target, ui: &mut Ui) -> Result<(), Failure> {
        match &self.confirm {
            Some(name) if name == target.name() => Ok(()),
            Some(name) => {
                let message = format!("--confirm {name}: this cluster is {}", target.name());
                Err(Failure::new(
                    Exit::Refused,
                    "not-confirmed",
                    message,
                    "is it the right --context?",
                ))
            }
            None if self.purge => ui.confirm_by_name(target.name(), "--purge"),
            None if self.yes => Ok(()),
            None => ui.confirm(&format!("uninstall from {}", target.name())),
        }
    }
}

/// So many objects of others are named.
const MOST_OTHERS: usize = 10;

fn show(target: &Target, removal: &Removal, data: Data, ui: &mut Ui) {
    ui.note(&format!("this removes OpenSDN from {}", target.described()));
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for key in removal.removed() {
        *kinds.entry(key.kind).or_default() += 1;
    }
    let kinds: Vec<String> =
        kinds.into_iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    let text = format!("{} objects: {}", removal.removed().len(), kinds.join(", "));
    let mut lead = "  removes  ".to_owned();
    for line in wrap(&text, ui.layout().width.saturating_sub(lead.len())) {
        ui.note(&format!("{lead}{line}"));
        lead = " ".repeat(lead.len());
    }
    if data == Data::Keep {
        let definitions =
            removal.kept.iter().filter(|(key, _)| key.kind == "CustomResourceDefinition").count();
        ui.note(&format!("  keeps    {definitions} CRDs and {} custom resources (--purge deletes them: data loss)", removal.custom_resources.len()));
    }
    for (key, kept) in removal.kept.iter().filter(|(key, _)| key.kind != "CustomResourceDefinition")
    {
        ui.note(&format!("  keeps    {key}: {}", reason(*kept)));
    }
    for key in &removal.foreign {
        ui.warn(&format!("{key} is not of this installation, and stays"));
    }
    for key in removal.of_others.iter().take(MOST_OTHERS) {
        ui.warn(&format!("{key} is not of this installation, and stays with its namespace"));
    }
    if let Some(more) = removal.of_others.len().checked_sub(MOST_OTHERS).filter(|more| *more > 0) {
        ui.warn(&format!("and {more} more that are not of this installation"));
    }
    if let Some(text) = of_clouds(removal, data) {
        ui.warn(&text);
    }
    if data == Data::Purge {
        held_by_others(removal).iter().for_each(|text| ui.warn(text));
    }
    let custom = removal.custom_resources.len();
    match data {
        Data::Keep if custom > 0 => {
            ui.warn("without the operator no component is repaired, and without the webhook nothing is judged");
        }
        Data::Purge if custom > 0 => {
            ui.warn(&format!("{custom} custom resources are deleted: what they run ends"));
        }
        Data::Keep | Data::Purge => {}
    }
}

/// What of a cloud is behind custom resources: only the operator takes it away.
fn of_clouds(removal: &Removal, data: Data) -> Option<String> {
    let has = |object: &&Value| {
        list(object, "/metadata/finalizers").any(|one| one.as_str() == Some(OF_CLOUD))
    };
    let number = removal.custom_resources.iter().filter(has).count();
    if number == 0 {
        return None;
    }
    let is_operator = |key: &ObjectKey| {
        key.kind == "Deployment" && key.name == opensdn_deploy::names::operator::NAME
    };
    let goes_now = removal.removed().iter().any(is_operator);
    match (data, goes_now) {
        // They go first, while it runs.
        (Data::Purge, true) => None,
        (Data::Keep, true) => Some(format!(
            "{number} custom resources have something in a cloud, which only the operator takes away: delete them first, while it \
             runs; a later --purge waits for it in vain"
        )),
        (_, false) => Some(format!(
            "{number} custom resources have something in a cloud, which only the operator takes away, and it does not run: \
             kubectl opensdn install, then delete them; or leave it there, and take the finalizer {OF_CLOUD} from each"
        )),
    }
}

/// The custom resources that are gone only when a controller of others releases them. One that does not run holds their CRDs.
fn held_by_others(removal: &Removal) -> Vec<String> {
    let held: Vec<&Value> =
        removal.custom_resources.iter().filter(|one| is_held_by_others(one)).collect();
    let one = |object: &&Value| {
        let finalizers = list(object, "/metadata/finalizers").filter_map(Value::as_str);
        let finalizers: Vec<&str> = finalizers.collect();
        format!(
            "{} has finalizers of others, which may hold its CRD to the end: {}",
            ObjectKey::of(object),
            finalizers.join(", ")
        )
    };
    let mut lines: Vec<String> = held.iter().take(MOST_OTHERS).map(one).collect();
    if held.len() > MOST_OTHERS {
        lines.push(format!("and {} more with finalizers of others", held.len() - MOST_OTHERS));
    }
    lines
}

/// What loses its network, which is said; nothing where it could not be asked, which is said as well.
async fn network_loss(requests: &Requests, removal: &Removal, ui: &mut Ui) -> Option<NetworkLoss> {
    if removal.data != Some(Data::Purge) || removal.custom_resources.is_empty() {
        return Some(NetworkLoss::default());
    }
    match NetworkLoss::of(&requests.asker()).await {
        Ok(loss) => {
            loss.text().iter().for_each(|text| ui.warn(text));
            Some(loss)
        }
        Err(why) => {
            ui.warn(&format!(
                "pods whose network is of a vRouter lose it; how many is not known: {why}"
            ));
            None
        }
    }
}

impl Uninstallation {
    fn of(target: &Target, namespace: &str, removal: &Removal) -> Self {
        let kept = removal
            .kept
            .iter()
            .map(|(key, kept)| KeptObject { key: key.clone(), reason: reason(*kept) });
        let custom = removal.custom_resources.len();
        Self {
            server: target.server.clone(),
            namespace: namespace.to_owned(),
            dry_run: false,
            removed: removal.removed(),
            kept: kept.collect(),
            kept_custom_resources: if removal.data == Some(Data::Purge) { 0 } else { custom },
            network_loss: Some(NetworkLoss::default()),
        }
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { removed, kept, kept_custom_resources, .. } = self;
        let stays =
            format!("{} objects and {kept_custom_resources} custom resources stay", kept.len());
        match (removed.len(), self.dry_run) {
            // Of what is installed `prune` says nothing.
            (0, _) if kept.is_empty() && *kept_custom_resources == 0 => {
                writeln!(out, "nothing to remove")
            }
            (0, _) => writeln!(out, "nothing to remove; {stays}"),
            (number, true) => {
                writeln!(out, "nothing was deleted: {number} objects would be; {stays}")
            }
            (number, false) => writeln!(out, "{number} objects deleted; {stays}"),
        }
    }
}
