//! `images list`: which images an installation needs, for a registry or nodes without internet. Components' own images are
//! not among them: a Manager names these.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use opensdn_deploy::names::NAMESPACE;
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::values::{ValuesArgs, steps};
use crate::output::{Answer, Output};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # What has to be in the registry before install
  kubectl opensdn images list --set registry=registry.local:5000/opensdn

  # For a script: one image a line
  kubectl opensdn images list -f prod.yaml";

/// Arguments of `images`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Images {
    #[command(subcommand)]
    command: ImagesCommand,
}

/// What to do with images.
#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// List the images that an installation needs, one a line.
    List(List),
}

/// Arguments of `images list`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct List {
    #[command(flatten)]
    values: ValuesArgs,
    #[command(flatten)]
    _output: Output,
}

/// What `images list` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImageList {
    /// By reference.
    images: Vec<Image>,
}

/// An image.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Image {
    /// As nodes pull it.
    reference: String,
    /// What runs it.
    used_by: Vec<ObjectKey>,
}

impl Answer for ImageList {
    const KIND: &'static str = "ImageList";
}

impl Images {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let ImagesCommand::List(list) = &self.command;
        let mut images: BTreeMap<String, Vec<ObjectKey>> = BTreeMap::new();
        for object in steps(&list.values.read(NAMESPACE)?)?.iter().flat_map(|step| &step.objects) {
            let containers = object.pointer("/spec/template/spec/containers");
            for container in containers.and_then(|all| all.as_array()).into_iter().flatten() {
                if let Some(image) = container.get("image").and_then(|image| image.as_str()) {
                    images.entry(image.to_owned()).or_default().push(ObjectKey::of(object));
                }
            }
        }
        let images = images.into_iter().map(|(reference, used_by)| Image { reference, used_by });
        let answer = ImageList { images: images.collect() };
        ui.answer(&answer, |out| {
            answer.images.iter().try_for_each(|image| writeln!(out, "{}", image.reference))
        })?;
        Ok(Exit::Done)
    }
}
