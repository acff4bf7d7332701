//! `render`: the objects of an installation as YAML or JSON, without a cluster: for a GitOps repository, or to be read. They have
//! no labels of ours: who applies them himself manages them himself.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use opensdn_deploy::values::Platform;
use opensdn_deploy::{Phase, Step, Values, openshift_machines};
use serde_json::{Value, json};

use super::install::ControlNamespace;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::values::{ValuesArgs, broken, steps};
use crate::output::DocumentFormat;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Everything, to be applied by kubectl: twice, as policies need their CRD to be served
  kubectl opensdn render -f prod.yaml | kubectl apply --server-side -f -

  # A file for each object, in the order in which they are applied
  kubectl opensdn render -f prod.yaml --split manifests/

  # For a new cluster of OpenShift, after `openshift-install create manifests --dir INSTALL_DIR`
  kubectl opensdn render --set platform=openshift --for openshift-installer --split INSTALL_DIR

  # The policies alone, for a repository of those who decide about them
  kubectl opensdn render -f prod.yaml --for policies

  # As one JSON document
  kubectl opensdn render -f prod.yaml -o json | jq '.items[].metadata.name'

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
    /// For whom it is written.
    #[arg(long = "for", value_enum, value_name = "WHOM", default_value_t)]
    taker: Taker,
    /// Print the values instead, with all defaults.
    #[arg(long, conflicts_with_all = ["split", "taker"])]
    effective_values: bool,
    /// How it is written [default: yaml, a document for each object; json is one List].
    // Without a default of clap's, so that an error is a document only where one was asked for.
    #[arg(short, long, value_enum, value_name = "FORMAT", conflicts_with = "split")]
    output: Option<Format>,
    #[command(flatten)]
    place: ControlNamespace,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A YAML document for each object.
    Yaml,
    /// One JSON document: a List of the objects.
    Json,
}

/// For whom it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Taker {
    /// A cluster that is there: all objects of the installation.
    #[default]
    #[value(alias = "install")]
    Kubectl,
    /// A cluster whose webhook is there: the policies that are in force with these values, and nothing else.
    Policies,
    /// The installer of OpenShift, with what the machines and the network of the new cluster need: with --split the files
    /// are in the folders manifests/ and openshift/ of DIR.
    OpenshiftInstaller,
    /// Refused: it is of another command.
    #[value(hide = true)]
    Nested,
}

impl Render {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let values = self.values.read(&self.place.control_namespace)?;
        if self.effective_values {
            let format = match self.output {
                None | Some(Format::Yaml) => DocumentFormat::Yaml,
                Some(Format::Json) => DocumentFormat::Json,
            };
            ui.write(|out| format.write(&values, out))?;
            return Ok(Exit::Done);
        }
        let files = match self.taker {
            Taker::Kubectl => numbered(steps(&values)?),
            Taker::Policies => policies(&values)?,
            Taker::Nested => return Err(of_a_plan()),
            Taker::OpenshiftInstaller => for_installer(&values)?,
        };
        match &self.split {
            Some(folder) => {
                split(folder, &files).map_err(|error| unwritable(folder, &error))?;
                ui.note(&format!("{} files in {}", files.len(), folder.display()));
            }
            None => ui.write(|out| self.write(&files, out))?,
        }
        Ok(Exit::Done)
    }
}

impl Render {
    fn write(&self, files: &[(String, Value)], out: &mut dyn Write) -> io::Result<()> {
        if self.output == Some(Format::Json) {
            let objects: Vec<&Value> = files.iter().map(|(_, object)| object).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            return DocumentFormat::Json.write_value(&list, out);
        }
        files.iter().try_for_each(|(_, object)| write!(out, "---\n{}", yaml(object)?))
    }
}

fn yaml(object: &Value) -> io::Result<String> {
    serde_saphyr::to_string(object).map_err(io::Error::other)
}

fn split(folder: &Path, files: &[(String, Value)]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, object) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        // Not through a link that somebody else has put there, and into nothing that is read by somebody else.
        if parent != folder && parent.is_symlink() {
            let message = format!("{} is a link to elsewhere: remove it", parent.display());
            return Err(io::Error::other(message));
        }
        std::fs::create_dir_all(parent)?;
        if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            std::fs::remove_file(&path)?;
        }
        std::fs::write(path, yaml(object)?)?;
    }
    Ok(())
}

/// What is in force, without what brings it about.
fn policies(values: &Values) -> Result<Vec<(String, Value)>, Failure> {
    let steps = steps(values)?.into_iter().filter(|step| step.phase == Phase::Policies);
    Ok(numbered(steps.collect()))
}

fn of_a_plan() -> Failure {
    let message =
        "what a nested cluster runs comes from its plan, not from values of an installation";
    let hint =
        "kubectl opensdn nested plan --out PLAN, then: kubectl opensdn nested manifest --plan PLAN";
    Failure::usage(message, hint)
}

/// `012-clusterrole-opensdn-webhook.yaml`.
fn numbered(steps: Vec<Step>) -> Vec<(String, Value)> {
    let objects = steps.into_iter().flat_map(|step| step.objects);
    let named =
        |(at, object): (usize, Value)| (format!("{:03}-{}", at + 1, words(&object)), object);
    objects.enumerate().map(named).collect()
}

/// `clusterrole-opensdn-webhook.yaml`.
fn words(object: &Value) -> String {
    let ObjectKey { kind, namespace, name, .. } = ObjectKey::of(object);
    let namespace: String = namespace.iter().map(|namespace| format!("-{namespace}")).collect();
    format!("{}{namespace}-{name}.yaml", kind.to_lowercase())
}

/// The installer applies what is in `manifests/` in the order of the names, and gives the machines what is in `openshift/`.
/// The Network has the name of the file that it takes the place of.
fn for_installer(values: &Values) -> Result<Vec<(String, Value)>, Failure> {
    if values.platform != Platform::Openshift {
        let message = "the installer of OpenShift takes what is rendered for OpenShift";
        return Err(Failure::usage(message, "add --set platform=openshift"));
    }
    let mut files = Vec::new();
    for object in openshift_machines().map_err(|error| broken(&error))? {
        let name = match object.get("kind").and_then(Value::as_str) {
            Some("Network") => "manifests/cluster-network-02-config.yml".to_owned(),
            _ => format!("openshift/99-opensdn-{}", words(&object)),
        };
        files.push((name, object));
    }
    for step in steps(values)? {
        let order = match step.phase {
            Phase::Definitions => "01",
            Phase::Access => "02",
            Phase::Program => "03",
            Phase::Policies => "04",
        };
        // Namespaces are the first of their step by their number.
        let named = step.objects.into_iter().enumerate().map(|(at, object)| {
            (format!("manifests/{order}-opensdn-{at:02}-{}", words(&object)), object)
        });
        files.extend(named);
    }
    Ok(files)
}

fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    let message = format!("the files cannot be written to {}", folder.display());
    let hint = "name another folder, or correct its permissions";
    Failure::new(Exit::Usage, "unwritable-output", message, hint).because(error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_installer_gets_each_object_in_the_order_of_the_names() {
        let openshift = Values { platform: Platform::Openshift, ..Values::default() };
        let files = for_installer(&openshift).unwrap();
        let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.len(), files.len());
        let is_yaml = |name: &&str| name.ends_with(".yaml") || name.ends_with(".yml");
        assert!(names.iter().all(is_yaml), "{names:?}");
        let machines = names.iter().filter(|name| name.starts_with("openshift/99-")).count();
        assert_eq!(machines, 10);
        assert!(names.contains("manifests/cluster-network-02-config.yml"));
        // The installer applies by name: a CRD before its objects, a namespace before what is in it.
        let at = |wanted: &str| names.iter().position(|name| name.contains(wanted)).unwrap();
        assert!(at("customresourcedefinition") < at("-namespace-opensdn-system"));
        assert!(at("-namespace-opensdn-system") < at("-deployment-"));
        assert!(at("-deployment-") < at("-admissionpolicy-"));
    }

    #[test]
    fn for_policies_there_are_those_of_the_values_and_nothing_else() {
        let of = |values: &Values| policies(values).unwrap();
        let all = of(&Values::default());
        let kinds: BTreeSet<&str> =
            all.iter().filter_map(|(_, one)| one.get("kind")?.as_str()).collect();
        assert_eq!(kinds, BTreeSet::from(["AdmissionPolicy"]));
        let mut values = Values::default();
        values.policies.tf_operator = true;
        let more = of(&values);
        assert!(more.len() > all.len());
        assert!(more.iter().any(|(name, _)| name.contains("tf-operator-limits")), "{more:?}");
    }

    #[test]
    fn the_installer_gets_nothing_for_another_platform() {
        let failure = for_installer(&Values::default()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
    }
}
