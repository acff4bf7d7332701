//! `diff`: what `install` would change, field by field. Nothing is written.

use std::io::{self, Write};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::install::{ControlNamespace, ObjectAction, chosen};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::plan::{Action, Adopt, Counts, FieldConflict};
use crate::install::survey::{Survey, Takeover};
use crate::install::target::Target;
use crate::install::values::ValuesArgs;
use crate::output::{Answer, ObjectsOutput};
use crate::runtime::Runtime;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Has anyone changed what is installed?
  kubectl opensdn diff

  # What would these values change?
  kubectl opensdn diff -f prod.yaml

Exit codes: 0 nothing differs, 1 something does, 2 and more: it could not be found out.";

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Diff {
    #[command(flatten)]
    values: ValuesArgs,
    /// Show only how many objects differ.
    #[arg(long)]
    summary: bool,
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
        ControlNamespace::check(global)?;
        let answer = Runtime::start(global)?.block_on(self.ask(global, ui))?;
        let summary = self.summary;
        let names = answer.objects.iter().map(|one| one.key().kubectl_name());
        ui.answer_objects(self.output.output, &answer, names, |out| answer.write(summary, out))?;
        let Counts { create, change, refused, same: _ } = answer.counts;
        let differs = create + change + refused + answer.obsolete.len() > 0;
        Ok(if differs { Exit::Findings } else { Exit::Done })
    }

    async fn ask(&self, global: &Global, ui: &mut Ui) -> Result<InstallationDiff, Failure> {
        let (target, requests) = Target::of(global).await?;
        let (values, before) =
            chosen(&requests, &self.values, &self.place.control_namespace, ui).await?;
        ui.progress("asking the cluster what would change");
        let takeover = Takeover { adopt: Adopt::No, force: Vec::new() };
        let survey = Survey::of(&requests, values, before, &takeover).await?;
        let differing: Vec<_> =
            survey.plan.iter().filter(|one| one.action != Action::Same).cloned().collect();
        Ok(InstallationDiff {
            server: target.server,
            namespace: survey.values.namespace.clone(),
            counts: survey.counts(),
            objects: ObjectAction::all(&differing),
            obsolete: survey.obsolete(),
        })
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
