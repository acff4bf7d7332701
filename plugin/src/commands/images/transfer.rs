//! `images save`, `load` and `mirror`: what they are told, and what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use schemars::JsonSchema;
use serde::Serialize;

use super::sources::Sources;
use crate::cli::Global;
use crate::dry_run::outside_the_cluster;
use crate::exit::{Exit, Failure};
use crate::oci::archive::{Archive, Part};
use crate::oci::copy::{self, Counts, Known, Origin, amount};
use crate::oci::credentials::Credentials;
use crate::oci::http::Http;
use crate::oci::layout;
use crate::oci::reference::{Place, Reference, is_host};
use crate::oci::registry::Registries;
use crate::output::{Answer, Output};
use crate::runtime::Runtime;
use crate::ui::Ui;

const SAVE_EXAMPLES: &str = "\
Examples:
  # The operator and the webhook, and all images that a Manager names
  kubectl opensdn images save --set registry=registry.example.com/opensdn \\
    --manager manager.yaml --out opensdn.tar

  # Onto a node that has no registry at all
  sudo ctr -n k8s.io images import opensdn.tar

The file is an OCI image layout. A run that was interrupted leaves FILE.part; the same command
continues there. Logins are those of docker login (~/.docker/config.json or
$DOCKER_CONFIG/config.json); programs that keep logins (credsStore, credHelpers) are not run.

Exit codes: 0 done, 2 a name or the file cannot be used, 3 a registry does not answer, refuses,
or sends something else than it said, 5 the file exists.";

const LOAD_EXAMPLES: &str = "\
Examples:
  # To the registry of which the nodes pull
  kubectl opensdn images load opensdn.tar --to registry.local:5000/opensdn

  # How they will be called there
  kubectl opensdn images load opensdn.tar --to registry.local:5000/opensdn --dry-run=client

All of the file is compared with its digests before anything is sent. What the registry has is
not sent again. Each image keeps the last part of its name and its tag, as `registry` of the
values wants it.

Exit codes: 0 done, 2 the file is broken, 3 the registry does not answer or refuses.";

const MIRROR_EXAMPLES: &str = "\
Examples:
  # What would be copied where?
  kubectl opensdn images mirror --set registry=registry.example.com/opensdn \\
    --manager manager.yaml --to registry.local:5000/opensdn --dry-run=client

  # Only for one kind of machine
  kubectl opensdn images mirror --set registry=registry.example.com/opensdn \\
    --to registry.local:5000/opensdn --platform linux/amd64

What the registry has is not sent again, so that a run that was interrupted continues. Each
image keeps the last part of its name and its tag; a Manager must name it as it is called there.

Exit codes: 0 done, 2 a name cannot be used, 3 a registry does not answer, refuses, or sends
something else than it said.";

/// How registries are reached.
#[derive(Clone, Debug, Args)]
pub(super) struct RegistryFlags {
    /// Ask this registry (with its port) by HTTP without TLS: anyone on the way can read logins and change what is not
    /// pinned by digest.
    #[arg(long, value_name = "HOST", value_parser = host, help_heading = "Registry flags")]
    insecure_registry: Vec<String>,
    /// Certificates of authorities for registries (PEM), besides those of this machine.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Registry flags")]
    registry_ca: Option<PathBuf>,
}

fn host(text: &str) -> Result<String, &'static str> {
    if is_host(text) { Ok(text.to_owned()) } else { Err("must be HOST or HOST:PORT") }
}

fn platform(text: &str) -> Result<String, &'static str> {
    let parts: Vec<&str> = text.split('/').collect();
    let is_part =
        |part: &&str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric());
    match (2..=3).contains(&parts.len()) && parts.iter().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("must be OS/ARCHITECTURE, as in linux/amd64"),
    }
}

/// Arguments of `images save`.
#[derive(Debug, Args)]
#[command(after_long_help = SAVE_EXAMPLES)]
pub(super) struct Save {
    /// The file. It must not exist.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    #[command(flatten)]
    sources: Sources,
    /// Of images for several platforms only this one.
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    platform: Option<String>,
    #[command(flatten)]
    registry: RegistryFlags,
    #[command(flatten)]
    _output: Output,
}

/// Arguments of `images load`.
#[derive(Debug, Args)]
#[command(after_long_help = LOAD_EXAMPLES)]
pub(super) struct Load {
    /// The file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The registry, with folders.
    #[arg(long, value_name = "REGISTRY")]
    to: Place,
    /// Show what would be sent; no registry is asked
    /// (without a value it means client, the older spelling).
    #[arg(long, value_name = "HOW", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client", value_parser = outside_the_cluster())]
    dry_run: bool,
    #[command(flatten)]
    registry: RegistryFlags,
    #[command(flatten)]
    _output: Output,
}

/// Arguments of `images mirror`.
#[derive(Debug, Args)]
#[command(after_long_help = MIRROR_EXAMPLES)]
pub(super) struct Mirror {
    /// The registry, with folders.
    #[arg(long, value_name = "REGISTRY")]
    to: Place,
    #[command(flatten)]
    sources: Sources,
    /// Of images for several platforms only this one.
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    platform: Option<String>,
    /// Show what would be copied; no registry is asked
    /// (without a value it means client, the older spelling).
    #[arg(long, value_name = "HOW", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client", value_parser = outside_the_cluster())]
    dry_run: bool,
    #[command(flatten)]
    registry: RegistryFlags,
    #[command(flatten)]
    _output: Output,
}

/// What `images save`, `load` and `mirror` answer.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageTransfer {
    /// The file that was written or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
    /// Whether nothing was done.
    dry_run: bool,
    /// By source.
    images: Vec<Transferred>,
    /// Blobs that were sent or written.
    blobs_sent: usize,
    /// Their bytes.
    bytes_sent: u64,
    /// Blobs that were there already.
    blobs_there: usize,
}

/// An image.
#[derive(Debug, Serialize, JsonSchema)]
struct Transferred {
    /// What it is called where it comes from.
    source: String,
    /// What it is called where it is sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The digest of what the name stands for; nothing where no registry was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// What it is for, where that is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    platforms: Vec<String>,
}

impl Answer for ImageTransfer {
    const KIND: &'static str = "ImageTransfer";
}

impl ImageTransfer {
    fn add(&mut self, source: &Reference, target: Option<&Reference>, image: Option<&copy::Image>) {
        self.images.push(Transferred {
            source: source.to_string(),
            target: target.map(ToString::to_string),
            digest: image.map(|image| image.digest.to_string()),
            platforms: image.map(|image| image.platforms.clone()).unwrap_or_default(),
        });
    }

    fn count(&mut self, counts: Counts) {
        self.blobs_sent += counts.sent;
        self.bytes_sent += counts.bytes;
        self.blobs_there += counts.there;
    }

    fn show(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        ui.answer(self, |out| {
            self.images.iter().try_for_each(|one| {
                let target = one.target.iter().map(|target| format!(" -> {target}"));
                let digest = one.digest.iter().map(|digest| format!("  {digest}"));
                let more: String = target.chain(digest).collect();
                writeln!(out, "{}{more}", one.source)
            })
        })?;
        if !self.dry_run {
            let (sent, there) = (self.blobs_sent, self.blobs_there);
            ui.note(&format!(
                "{sent} blobs copied, {}; {there} were there already",
                amount(self.bytes_sent)
            ));
        }
        Ok(Exit::Done)
    }
}

impl RegistryFlags {
    /// Whether any of them is.
    pub(super) fn is_given(&self) -> bool {
        !self.insecure_registry.is_empty() || self.registry_ca.is_some()
    }

    pub(super) fn registries(&self) -> Result<Registries, Failure> {
        let http = Http::new(self.registry_ca.as_deref(), &self.insecure_registry)?;
        Ok(Registries::new(http, Credentials::of_user()?))
    }
}

/// The targets, each for one source.
fn targets(sources: &[Reference], to: &Place) -> Result<Vec<Reference>, Failure> {
    let mut taken: BTreeMap<Reference, &Reference> = BTreeMap::new();
    let mut targets = Vec::new();
    for source in sources {
        let target = source.at(to);
        if let Some(other) = taken.insert(target.clone(), source).filter(|other| *other != source) {
            let message = format!("{other} and {source} would both be called {target}");
            return Err(Failure::usage(message, "copy one of them to another folder"));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// An index that is named by its digest has to stay whole.
fn suits(reference: &Reference, image: &copy::Image) -> Result<(), Failure> {
    match reference.digest.filter(|digest| *digest != image.digest) {
        None => Ok(()),
        Some(_) => Err(Failure::new(
            Exit::Usage,
            "unsuited-image",
            format!("{reference} is named by the digest of all its platforms"),
            "leave --platform out, or name the image by its tag",
        )),
    }
}

impl Save {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let sources = self.sources.references(ui)?;
        let registries = self.registry.registries()?;
        let mut part = Part::open(&self.out)?;
        let mut answer = ImageTransfer {
            archive: Some(self.out.display().to_string()),
            ..ImageTransfer::default()
        };
        let mut named = Vec::new();
        let runtime = Runtime::start(global)?;
        for source in &sources {
            ui.progress(&format!("reading {source}"));
            let image = runtime.block_on(Box::pin(async {
                let origin = Origin::Registry(&registries, source);
                copy::image(origin, &source.wanted(), "", self.platform.as_deref()).await
            }))?;
            suits(source, &image)?;
            let mut tell = |text: &str| ui.progress(text);
            let saved = copy::save(&registries, source, &image, &mut part, &mut tell);
            answer.count(runtime.block_on(Box::pin(saved))?);
            answer.add(source, None, Some(&image));
            named.push((source.clone(), image.media_type.clone(), image.digest, image.size));
        }
        layout::finish(part, &named)?;
        answer.show(ui)
    }
}

impl Load {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let archive = Archive::open(&self.file)?;
        let named = layout::images(&archive)?;
        let sources: Vec<Reference> = named.iter().map(|one| one.reference.clone()).collect();
        let targets = targets(&sources, &self.to)?;
        let runtime = Runtime::start(global)?;
        let mut answer = ImageTransfer {
            archive: Some(self.file.display().to_string()),
            dry_run: self.dry_run,
            ..ImageTransfer::default()
        };
        let (mut images, mut checked) = (Vec::new(), BTreeSet::new());
        for one in &named {
            let descriptor = &one.descriptor;
            ui.progress(&format!("comparing {} with its digests", one.reference));
            let (wanted, said) = (descriptor.digest.to_string(), &descriptor.media_type);
            let image = copy::image(Origin::Archive(&archive), &wanted, said, None);
            let image = runtime.block_on(Box::pin(image))?;
            copy::check(&archive, &image, &mut checked)?;
            images.push(image);
        }
        let registries = self.registry.registries()?;
        let mut known = Known::new();
        for ((source, target), image) in sources.iter().zip(&targets).zip(&images) {
            if !self.dry_run {
                let mut tell = |text: &str| ui.progress(text);
                let origin = Origin::Archive(&archive);
                let sent = copy::send(origin, image, &registries, target, &mut known, &mut tell);
                answer.count(runtime.block_on(Box::pin(sent))?);
            }
            answer.add(source, Some(target), Some(image));
        }
        answer.show(ui)
    }
}

impl Mirror {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let sources = self.sources.references(ui)?;
        let targets = targets(&sources, &self.to)?;
        let mut answer = ImageTransfer { dry_run: self.dry_run, ..ImageTransfer::default() };
        if self.dry_run {
            sources
                .iter()
                .zip(&targets)
                .for_each(|(source, target)| answer.add(source, Some(target), None));
            return answer.show(ui);
        }
        let registries = self.registry.registries()?;
        let runtime = Runtime::start(global)?;
        let mut known = Known::new();
        for (source, target) in sources.iter().zip(&targets) {
            ui.progress(&format!("reading {source}"));
            let origin = Origin::Registry(&registries, source);
            let wanted = source.wanted();
            let image = copy::image(origin, &wanted, "", self.platform.as_deref());
            let image = runtime.block_on(Box::pin(image))?;
            suits(source, &image)?;
            let mut tell = |text: &str| ui.progress(text);
            let sent = copy::send(origin, &image, &registries, target, &mut known, &mut tell);
            answer.count(runtime.block_on(Box::pin(sent))?);
            answer.add(source, Some(target), Some(&image));
        }
        answer.show(ui)
    }
}
