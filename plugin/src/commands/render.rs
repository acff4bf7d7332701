//! `render`: the objects of an installation as YAML, without a cluster: for a GitOps repository, or to be read. They have
//! no labels of ours: who applies them himself manages them himself.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde_json::Value;

use super::install::ControlNamespace;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::values::{ValuesArgs, steps};
use crate::output::DocumentFormat;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Everything, to be applied by kubectl: twice, as policies need their CRD to be served
  kubectl opensdn render -f prod.yaml | kubectl apply --server-side -f -

  # A file for each object, in the order in which they are applied
  kubectl opensdn render -f prod.yaml --split manifests/

  # What the values come to, with all defaults
  kubectl opensdn render -f prod.yaml --effective-values";

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Render {
    #[command(flatten)]
    values: ValuesArgs,
    /// Write a file for each object into this folder, which is made; files of the same names are replaced.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    split: Option<PathBuf>,
    /// Print the values instead, with all defaults.
    #[arg(long, conflicts_with = "split")]
    effective_values: bool,
    #[command(flatten)]
    place: ControlNamespace,
}

impl Render {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let values = self.values.read(&self.place.control_namespace)?;
        if self.effective_values {
            ui.write(|out| DocumentFormat::Yaml.write(&values, out))?;
            return Ok(Exit::Done);
        }
        let objects: Vec<Value> =
            steps(&values)?.into_iter().flat_map(|step| step.objects).collect();
        match &self.split {
            Some(folder) => {
                split(folder, &objects).map_err(|error| unwritable(folder, &error))?;
                ui.note(&format!("{} files in {}", objects.len(), folder.display()));
            }
            None => ui.write(|out| {
                for object in &objects {
                    write!(out, "---\n{}", yaml(object)?)?;
                }
                Ok(())
            })?,
        }
        Ok(Exit::Done)
    }
}

fn yaml(object: &Value) -> io::Result<String> {
    serde_saphyr::to_string(object).map_err(io::Error::other)
}

fn split(folder: &Path, objects: &[Value]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (at, object) in objects.iter().enumerate() {
        std::fs::write(folder.join(file_name(at, &ObjectKey::of(object))), yaml(object)?)?;
    }
    Ok(())
}

/// `012-clusterrole-opensdn-webhook.yaml`.
fn file_name(at: usize, key: &ObjectKey) -> String {
    let namespace = key.namespace.iter().map(|namespace| format!("-{namespace}"));
    let namespace: String = namespace.collect();
    format!("{:03}-{}{namespace}-{}.yaml", at + 1, key.kind.to_lowercase(), key.name)
}

fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    let message = format!("the files cannot be written to {}", folder.display());
    let hint = "name another folder, or correct its permissions";
    Failure::new(Exit::Usage, "unwritable-output", message, hint).because(error)
}
