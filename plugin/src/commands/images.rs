//! `images`: which images an installation and its components need, and how they come to a registry or a machine that does not
//! reach theirs. How an image is copied is in `oci.rs`.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::oci::reference::Reference;
use crate::output::{Answer, Output};
use crate::runtime::Runtime;
use crate::ui::Ui;

pub(crate) mod sources;
pub(crate) mod transfer;

use sources::Sources;
use transfer::{Load, Mirror, RegistryFlags, Save};

const EXAMPLES: &str = "\
Examples:
  # Everything from the registry that you reach into one that the nodes reach
  kubectl opensdn images mirror --set registry=registry.example.com/opensdn \\
    --manager manager.yaml --to registry.local:5000/opensdn

  # The same by way of a file
  kubectl opensdn images save --set registry=registry.example.com/opensdn \\
    --manager manager.yaml --out opensdn.tar
  kubectl opensdn images load opensdn.tar --to registry.local:5000/opensdn";

const LIST_EXAMPLES: &str = "\
Examples:
  # What has to be in the registry before install
  kubectl opensdn images list --set registry=registry.local:5000/opensdn

  # For a script: one image a line
  kubectl opensdn images list -f prod.yaml

  # With the digests that their tags stand for now, to name them by these
  kubectl opensdn images list --set registry=registry.local:5000/opensdn --resolve

  # With those of the components that a Manager names, of a file or of the cluster
  kubectl opensdn images list --manager manager.yaml
  kubectl get managers.tf.tungsten.io -A -o yaml | kubectl opensdn images list --manager -";

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
    /// Save images from their registries into one file, to carry it where these are not reached.
    Save(Save),
    /// Send the images of a file to a registry.
    Load(Load),
    /// Copy images from their registries to another one.
    Mirror(Mirror),
}

/// Arguments of `images list`.
#[derive(Debug, Args)]
#[command(after_long_help = LIST_EXAMPLES)]
struct List {
    #[command(flatten)]
    sources: Sources,
    /// Ask the registries for the digests of images that are named by tags, with the logins of this machine.
    #[arg(long)]
    resolve: bool,
    #[command(flatten)]
    registry: RegistryFlags,
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
pub(crate) struct Image {
    /// As nodes pull it.
    pub(crate) reference: String,
    /// Its digest, where it is named by one, or a registry has said which its tag stands for (--resolve).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// What runs it.
    pub(crate) used_by: Vec<ObjectKey>,
}

impl Answer for ImageList {
    const KIND: &'static str = "ImageList";
}

impl Images {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match &self.command {
            ImagesCommand::List(list) => list.run(global, ui),
            ImagesCommand::Save(save) => save.run(global, ui),
            ImagesCommand::Load(load) => load.run(global, ui),
            ImagesCommand::Mirror(mirror) => mirror.run(global, ui),
        }
    }
}

impl Image {
    /// With its digest, where that is known, as a runtime takes it.
    fn pinned(&self) -> String {
        match &self.digest {
            Some(digest) if !self.reference.contains('@') => format!("{}@{digest}", self.reference),
            _ => self.reference.clone(),
        }
    }
}

impl List {
    fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let mut answer = ImageList { images: self.sources.images()? };
        let mut are_known = true;
        if self.resolve {
            are_known = self.resolve(&mut answer.images, global, ui)?;
        } else if self.registry.is_given() {
            let message = "without --resolve no registry is asked";
            return Err(Failure::usage(
                message,
                "add --resolve, or leave the flags of registries out",
            ));
        }
        ui.answer(&answer, |out| {
            answer.images.iter().try_for_each(|image| writeln!(out, "{}", image.pinned()))
        })?;
        Ok(if are_known { Exit::Done } else { Exit::Unreachable })
    }

    /// Gives each image the digest that its registry says; of one that it does not say, why. Whether all are known.
    fn resolve(&self, images: &mut [Image], global: &Global, ui: &mut Ui) -> Result<bool, Failure> {
        let mut are_known = true;
        let registries = self.registry.registries()?;
        let runtime = Runtime::start(global)?;
        for image in images.iter_mut().filter(|image| image.digest.is_none()) {
            let reference = &image.reference;
            ui.progress(&format!("asking for the digest of {reference}"));
            let found = match reference.parse::<Reference>() {
                // By its name alone an image of another publisher would be found.
                Ok(_) if !reference.contains('/') => Err("no registry is named for it".to_owned()),
                Ok(of) => {
                    let asked = runtime.block_on(Box::pin(registries.digest(&of)));
                    asked.map_err(|error| error.to_string())
                }
                Err(why) => Err(why),
            };
            match found {
                Ok(digest) => image.digest = Some(digest.to_string()),
                Err(why) => {
                    are_known = false;
                    ui.warn(&format!("the digest of {reference} is not known: {why}"));
                }
            }
        }
        Ok(are_known)
    }
}
