//! `convert`: manifests of earlier operators as ours, on standard output; what is lost on the way on standard error.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use opensdn_manifests::{Schemas, Severity, Source, read};
use opensdn_validate::report::in_line;
use serde_json::{Value, json};

use crate::convert::{Note, Shapes, convert};
use crate::exit::{Exit, Failure};
use crate::output::DocumentFormat;
use crate::policy::objects;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # What contrail-operator or release 2011 runs, as OpenSDN takes it
  kubectl opensdn convert -f manager.yaml > opensdn.yaml

  # From a live cluster, and what the webhook would say of the result
  kubectl get managers.contrail.juniper.net -A -o yaml | kubectl opensdn convert -f - |
    kubectl opensdn validate -

Exit codes: 0 converted, 1 converted, and something in it is not as its schema has it, 2
unreadable input.";

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Convert {
    /// A file with manifests (YAML or JSON, several documents and lists too), or - for standard input.
    #[arg(short, long, value_name = "FILE|-", required = true, value_hint = ValueHint::FilePath)]
    filename: Vec<PathBuf>,
    /// How the objects are written; several as JSON are one List.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How the objects are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// YAML, with a document for each.
    #[default]
    Yaml,
    /// JSON.
    Json,
}

impl Convert {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let shapes = Shapes::new().map_err(|error| {
            let hint = "this is a defect of kubectl-opensdn: report it";
            Failure::new(Exit::Usage, "render", "the schemas cannot be read", hint).because(&error)
        })?;
        let (mut converted, mut notes, mut comments) = (Vec::new(), Vec::new(), 0);
        for file in &self.filename {
            for document in objects::all_documents(file)? {
                comments += document.comments().len();
                let object = convert(document.value, &shapes, &mut notes)
                    .map_err(|error| unknown(file, &error))?;
                converted.extend(object);
            }
        }
        if comments > 0 {
            ui.note(&format!("comments: dropped: only objects are converted ({comments} there)"));
        }
        notes.iter().for_each(|note| ui.note(&shown(note)));
        ui.write(|out| match (self.output, converted.as_slice()) {
            (Format::Yaml, objects) => objects.iter().try_for_each(|object| {
                writeln!(out, "---")?;
                DocumentFormat::Yaml.write_value(object, out)
            }),
            (Format::Json, [object]) => DocumentFormat::Json.write_value(object, out),
            (Format::Json, objects) => {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
                DocumentFormat::Json.write_value(&list, out)
            }
        })?;
        Ok(check(&converted, ui))
    }
}

fn shown(Note { object, field, what }: &Note) -> String {
    let field = if field.is_empty() { String::new() } else { format!(" {field}") };
    // Names and fields of a file: none begins a line, which CI may take for a command.
    in_line(&format!("{object}{field}: {what}"))
}

fn unknown(file: &Path, error: &crate::convert::Unknown) -> Failure {
    let message = format!("{}: {error}", file.display());
    let hint = "converted are contrail.juniper.net/v1alpha1 and tf.tungsten.io/v1alpha1";
    Failure::new(Exit::Usage, "unknown-kind", message, hint)
}

/// Whether the API server would take it. Of values nothing is said: they may be secrets.
fn check(objects: &[Value], ui: &mut Ui) -> Exit {
    let schemas = Schemas::new(opensdn_crds::all());
    let mut exit = Exit::Done;
    for object in objects {
        let parsed = read(&Source::new("converted", object.to_string()));
        for document in &parsed.documents {
            let name = document.name().unwrap_or_default();
            let found = schemas.check(document, None);
            for problem in found.iter().filter(|one| one.severity == Severity::Error) {
                exit = Exit::Findings;
                let field = problem.pointer.as_deref().unwrap_or_default();
                let field = field.trim_start_matches('/').replace('/', ".");
                let kind = document.kind().unwrap_or_default();
                ui.warn(&format!(
                    "{kind}/{name} {field}: not as its schema has it ({})",
                    problem.code
                ));
            }
        }
    }
    if exit == Exit::Findings {
        ui.hint("what is wrong, with values: kubectl opensdn validate on what was converted");
    }
    exit
}
