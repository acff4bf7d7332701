//! `policy build`: the component of the policy in this folder, and its digest.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use opensdn_policy_build::TARGET;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::policy::build::{Repeatable, build};
use crate::policy::project::Project;
use crate::runtime::Runtime;
use crate::ui::Ui;

/// The contract that a component fits when the host has loaded it.
const WORLD: &str = "opensdn:policy@1.0.0";

/// What the API server stores of a ConfigMap at most.
const CONFIG_MAP: usize = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  # In a policy's project: writes build/NAME.wasm
  kubectl opensdn policy build

  # The digest alone, for a script
  kubectl opensdn policy build -o json | jq -r .digest";

/// Arguments of `policy build`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BuildPolicy {
    /// The project's folder.
    #[arg(default_value = ".", value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    #[command(flatten)]
    _output: Output,
}

/// What `policy build` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyBuild {
    /// Name of the policy.
    name: String,
    /// Version of the policy.
    version: String,
    /// What it is written in.
    language: String,
    /// The component, seen from where the command was run.
    file: PathBuf,
    /// Size of the component in bytes.
    size: usize,
    /// The contract that it fits.
    world: &'static str,
    /// By which it is pinned.
    digest: String,
    /// Whether another machine gets the same bytes from the same source. Absent: it depends on
    /// the project's own tools.
    reproducible: Option<bool>,
}

impl Answer for PolicyBuild {
    const KIND: &'static str = "PolicyBuild";
}

impl BuildPolicy {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let project = Project::read(&self.dir)?;
        ui.progress(&format!("building {} ({})", project.name, project.language));
        let runtime = Runtime::start(global)?;
        let built = build(&project, &runtime)?;
        let metadata = built.policy.metadata();
        let answer = PolicyBuild {
            name: metadata.name.clone(),
            version: metadata.version.clone(),
            language: project.language,
            file: built.file,
            size: built.bytes.len(),
            world: WORLD,
            digest: built.policy.digest().to_string(),
            reproducible: match built.repeatable {
                Repeatable::Anywhere => Some(true),
                Repeatable::Here(_) => Some(false),
                Repeatable::Unknown => None,
            },
        };
        ui.answer(&answer, |out| human(&answer, out))?;
        if let Repeatable::Here(folders) = &built.repeatable {
            let folders: Vec<_> = folders.iter().map(|path| path.display().to_string()).collect();
            ui.warn(&format!(
                "another machine gets another digest: the paths of {} are part of the bytes",
                folders.join(", ")
            ));
        }
        if answer.size > CONFIG_MAP {
            ui.hint(
                "larger than a ConfigMap can be (1 MiB): give it to the webhook as a file, module.folder",
            );
        }
        Ok(Exit::Done)
    }
}

fn human(answer: &PolicyBuild, out: &mut dyn Write) -> io::Result<()> {
    let PolicyBuild { name, version, language, file, size, world, digest, reproducible } = answer;
    let from = if language == "rust" { TARGET } else { language.as_str() };
    let repeated = match reproducible {
        Some(true) => "  reproducible",
        Some(false) | None => "",
    };
    let size = size.div_ceil(1024);
    writeln!(out, "{name} {version}  {from} -> component  {size} KiB{repeated}")?;
    writeln!(out, "world   {world}")?;
    writeln!(out, "digest  {digest}")?;
    writeln!(out, "file    {}", file.display())
}
