//! `policy new`: the project of a policy that builds and passes its cases at once.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use opensdn_policy_templates::{Language, Project, Sdk};
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::policy::{new, project::check_name};
use crate::shell::quoted;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # A policy about two kinds of OpenSDN, in Rust
  kubectl opensdn policy new mtu-room --kinds Vrouter,Manager

  # A policy about your own kind, in JavaScript
  kubectl opensdn policy new no-owner --lang javascript --kinds example.com/v1/Database";

/// Arguments of `policy new`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct New {
    /// What is wrong when the policy has a finding: no-owner.
    #[arg(value_name = "NAME")]
    name: String,
    /// What it is written in.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "LANGUAGE",
        env = "KUBECTL_OPENSDN_POLICY_NEW_LANG",
        hide_env = true
    )]
    lang: Lang,
    /// What it is about: group/version/Kind, or an OpenSDN kind alone.
    #[arg(long, value_delimiter = ',', default_value = "Manager", value_name = "KIND,..")]
    kinds: Vec<String>,
    /// Where the Rust SDK comes from: a checkout of the product, or a version in a registry
    /// [default: its source is written into the project].
    #[arg(long, value_name = "PATH|VERSION")]
    sdk: Option<String>,
    /// The project's folder, which is not there yet or is empty [default: NAME].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
    #[command(flatten)]
    _output: Output,
}

/// What a policy is written in.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Lang {
    /// Rust, with an SDK.
    #[default]
    Rust,
    /// JavaScript on QuickJS, by componentize-qjs.
    #[value(alias = "js")]
    Javascript,
    /// Python, by componentize-py.
    Python,
    /// C, by clang.
    C,
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Self::Rust,
            Lang::Javascript => Self::JavaScript,
            Lang::Python => Self::Python,
            Lang::C => Self::C,
        }
    }
}

/// What `policy new` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyProject {
    /// Name of the policy.
    name: String,
    /// What it is written in.
    language: &'static str,
    /// What it is about.
    kinds: Vec<String>,
    /// The project's folder.
    folder: PathBuf,
    /// Its files, below that folder.
    files: Vec<PathBuf>,
}

impl Answer for PolicyProject {
    const KIND: &'static str = "PolicyProject";
}

impl New {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        check_name(&self.name)?;
        let project = self.project()?;
        let folder = self.dir.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        let files = new::write(&project, &folder)?;
        let answer = PolicyProject {
            name: project.name,
            language: project.language.name(),
            kinds: project.kinds.iter().map(ToString::to_string).collect(),
            folder,
            files,
        };
        ui.answer(&answer, |out| human(&answer, out))?;
        if let Sdk::Release(version) = &project.sdk {
            ui.warn(&format!(
                "cargo must find opensdn-policy-sdk {version} in a registry; if it does not, leave --sdk out"
            ));
        }
        ui.hint(&format!(
            "next: cd {} && kubectl opensdn policy build && kubectl opensdn policy test",
            quoted(&answer.folder.display().to_string())
        ));
        Ok(Exit::Done)
    }

    fn project(&self) -> Result<Project, Failure> {
        let language = Language::from(self.lang);
        let sdk = new::sdk(self.sdk.as_deref())?;
        if language != Language::Rust && sdk != Sdk::Embedded {
            let message = format!("--sdk is for Rust; {language} is built from the contract alone");
            return Err(Failure::usage(message, "leave --sdk out"));
        }
        let mut kinds = Vec::new();
        for word in &self.kinds {
            let kind = new::kind(word)?;
            // The template names a type and a case after each.
            if kinds.iter().any(|other: &opensdn_policy_templates::Kind| other.kind == kind.kind) {
                let message = format!("the kind {} is named twice", kind.kind);
                return Err(Failure::usage(message, "add the second group by hand"));
            }
            kinds.push(kind);
        }
        Ok(Project { name: self.name.clone(), language, kinds, sdk })
    }
}

fn human(answer: &PolicyProject, out: &mut dyn Write) -> io::Result<()> {
    let source = |path: &&PathBuf| path.starts_with("src");
    let source = answer.files.iter().find(source).map(|path| path.display().to_string());
    let cases = answer.files.iter().filter(|path| path.starts_with("cases")).count();
    let rest = answer.files.len().saturating_sub(cases + 1);
    writeln!(
        out,
        "created {}/ ({}, {cases} cases, {rest} other files)",
        answer.folder.display(),
        source.unwrap_or_default(),
    )
}
