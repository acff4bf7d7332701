//! `diff`: what `install` would change, or an apply of manifests, field by field. Nothing is written. How manifests are
//! compared is in `manifest_diff.rs`.

use std::io::{self, Write};

use clap::{Args, ValueHint};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::install::{ControlNamespace, ObjectAction, chosen};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::plan::{Action, Adopt, Counts, FieldConflict, Planned};
use crate::install::survey::{Survey, Takeover};
use crate::install::target::Target;
use crate::install::values::ValuesArgs;
use crate::manifest_diff::{By, Given, ask, given};
use crate::output::{Answer, ObjectsOutput};
use crate::runtime::Runtime;
use crate::secret_mask::{Secrets, masked};
use crate::ui::Ui;
use manifests::ManifestDiff;

pub(crate) mod manifests;

const EXAMPLES: &str = "\
Examples:
  # Has anyone changed what is installed?
  kubectl opensdn diff

  # What would these values change?
  kubectl opensdn diff -f prod.yaml

  # What would an apply of these manifests change? Files, folders, - for standard input
  kubectl opensdn diff -f manager.yaml -f manifests/

Exit codes: 0 nothing differs, 1 something does, 2 and more: it could not be found out.";

/// What `-f` takes.
const FILES: &str = "Manifests to compare with the cluster: files, folders, globs, or - for standard input; or files with \
     values of an installation (later ones win). What is in them says which: manifests have apiVersion and kind each";
/// As whom `kubectl apply --server-side` applies.
const KUBECTL: &str = "kubectl";

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(
    after_long_help = EXAMPLES,
    mut_arg("files", |files| files.visible_alias("filename").value_name("FILE|DIR").help(FILES).long_help(None).value_hint(ValueHint::AnyPath))
)]
pub(crate) struct Diff {
    #[command(flatten)]
    values: ValuesArgs,
    /// Show only how many objects differ.
    #[arg(long)]
    summary: bool,
    /// Show secrets as they are; without it a hash stands for each, in every format.
    #[arg(long)]
    show_secrets: bool,
    /// Who would apply the manifests: fields that only others have set are conflicts.
    #[arg(long, value_name = "NAME", default_value = KUBECTL)]
    field_manager: String,
    #[command(flatten)]
    place: ControlNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: ObjectsOutput,
}

/// What `diff` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstallationDiff {
    /// The API server.
    server: String,
    /// The namespace of the webhook.
    namespace: String,
    /// How many objects differ.
    counts: Counts,
    /// Those that do, with the fields.
    objects: Vec<ObjectAction>,
    /// What an earlier run has installed and these values do not have.
    obsolete: Vec<ObjectKey>,
}

impl Answer for InstallationDiff {
    const KIND: &'static str = "InstallationDiff";
}

impl Diff {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match given(self.values.files())? {
            Given::Manifests(objects) => self.of_manifests(objects, global, ui),
            Given::Values(read) => self.of_values(&self.values.knowing(read), global, ui),
        }
    }

    fn secrets(&self) -> Secrets {
        if self.show_secrets { Secrets::Shown } else { Secrets::Hidden }
    }

    fn of_manifests(
        &self,
        objects: Vec<Value>,
        global: &Global,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        if self.values.are_set() {
            let message = "--set and --profile are of values, and -f names manifests";
            return Err(Failure::usage(message, "leave them out, or give a file with values"));
        }
        let by = By {
            manager: self.field_manager.clone(),
            namespace: global.cluster.namespace.clone(),
            secrets: self.secrets(),
        };
        let answer = Runtime::start(global)?.block_on(async {
            let (client, server) = global.client_and_server().await?;
            ui.progress("asking the cluster what would change");
            let all = ask(&client, objects, &by).await?;
            Ok::<_, Failure>(ManifestDiff::of(server, all))
        })?;
        let (summary, differ) = (self.summary, answer.differ());
        let names = answer.names();
        ui.answer_objects(self.output.output, &answer, names, |out| answer.write(summary, out))?;
        Ok(if differ > 0 { Exit::Findings } else { Exit::Done })
    }

    fn of_values(
        &self,
        values: &ValuesArgs,
        global: &Global,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        ControlNamespace::check(global)?;
        let answer = Runtime::start(global)?.block_on(self.ask(values, global, ui))?;
        let summary = self.summary;
        let names = answer.objects.iter().map(|one| one.key().kubectl_name());
        ui.answer_objects(self.output.output, &answer, names, |out| answer.write(summary, out))?;
        let Counts { create, change, refused, same: _ } = answer.counts;
        let differs = create + change + refused + answer.obsolete.len() > 0;
        Ok(if differs { Exit::Findings } else { Exit::Done })
    }

    async fn ask(
        &self,
        values: &ValuesArgs,
        global: &Global,
        ui: &mut Ui,
    ) -> Result<InstallationDiff, Failure> {
        let (target, requests) = Target::of(global).await?;
        let (values, before) = chosen(&requests, values, &self.place.control_namespace, ui).await?;
        ui.progress("asking the cluster what would change");
        let takeover = Takeover { adopt: Adopt::No, force: Vec::new() };
        let survey = Survey::of(&requests, values, before, &takeover).await?;
        let mut differing: Vec<_> =
            survey.plan.iter().filter(|one| one.action != Action::Same).cloned().collect();
        differing.iter_mut().for_each(|one| masked_action(one, self.secrets()));
        Ok(InstallationDiff {
            server: target.server,
            namespace: survey.values.namespace.clone(),
            counts: survey.counts(),
            objects: ObjectAction::all(&differing),
            obsolete: survey.obsolete(),
        })
    }
}

/// Of secrets a hash.
fn masked_action(planned: &mut Planned, secrets: Secrets) {
    let key = &planned.key;
    let hide = |field: &str, value: &mut Option<Value>| {
        *value = masked(key, field, value.take(), secrets);
    };
    match &mut planned.action {
        Action::Change { fields } => fields.iter_mut().for_each(|one| {
            hide(&one.field, &mut one.from);
            hide(&one.field, &mut one.to);
        }),
        Action::Conflict { conflicts } => conflicts.iter_mut().for_each(|one| {
            hide(&one.field, &mut one.theirs);
            hide(&one.field, &mut one.ours);
        }),
        Action::Create
        | Action::Same
        | Action::Ending { .. }
        | Action::Foreign { .. }
        | Action::Refused { .. }
        | Action::Unknown { .. } => {}
    }
}

/// A value in one line; a long one is cut.
pub(crate) fn short(value: Option<&Value>) -> String {
    const MOST: usize = 60;
    let Some(value) = value else { return "nothing".to_owned() };
    let text = match value {
        Value::String(text) if !text.contains(char::is_control) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

impl std::fmt::Display for FieldConflict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { field, manager, theirs, ours } = self;
        let (theirs, ours) = (short(theirs.as_ref()), short(ours.as_ref()));
        write!(formatter, "{field} is {theirs} by {manager}, and would be {ours}")
    }
}

impl InstallationDiff {
    fn write(&self, summary: bool, out: &mut dyn Write) -> io::Result<()> {
        if !summary {
            for object in &self.objects {
                object.write(out)?;
            }
            for key in &self.obsolete {
                writeln!(out, "- {key}  (kubectl opensdn prune)")?;
            }
        }
        let Counts { create, change, same, refused } = self.counts;
        let differ = create + change + refused + self.obsolete.len();
        let refused = if refused > 0 { format!(" ({refused} of others)") } else { String::new() };
        let differ = match differ {
            1 => "1 object differs".to_owned(),
            number => format!("{number} objects differ"),
        };
        writeln!(out, "{differ}{refused}, {same} equal")
    }
}

impl ObjectAction {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let key = self.key();
        match self.action() {
            Action::Create => writeln!(out, "+ {key}"),
            Action::Same => Ok(()),
            Action::Refused { reason } => {
                writeln!(out, "! {key}\n    the API server would refuse it: {reason}")
            }
            Action::Ending { reason } => writeln!(out, "! {key}\n    {reason}"),
            Action::Unknown { reason } => writeln!(out, "? {key}\n    {reason}"),
            Action::Foreign { managers } => {
                writeln!(out, "! {key}\n    is not of this installation: {}", managers.join(", "))
            }
            Action::Change { fields } => {
                writeln!(out, "~ {key}")?;
                fields.iter().try_for_each(|one| {
                    let (from, to) = (short(one.from.as_ref()), short(one.to.as_ref()));
                    writeln!(out, "    {}  {from} -> {to}", one.field)
                })
            }
            Action::Conflict { conflicts } => {
                writeln!(out, "! {key}")?;
                conflicts.iter().try_for_each(|one| {
                    let (theirs, ours) = (short(one.theirs.as_ref()), short(one.ours.as_ref()));
                    writeln!(
                        out,
                        "    {}  {theirs} -> {ours}  (owned by {}: conflict)",
                        one.field, one.manager
                    )
                })
            }
        }
    }
}
