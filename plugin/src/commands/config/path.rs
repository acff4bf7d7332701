//! `config path`: where the file is, or would be. It is not read, so this works when it is broken.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::location;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  $EDITOR \"$(kubectl opensdn config path)\"";

/// Arguments of `config path`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Path {
    #[command(flatten)]
    _output: Output,
}

/// What `config path` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigPath {
    /// The file.
    file: String,
    /// Whether it is there.
    exists: bool,
}

impl Answer for ConfigPath {
    const KIND: &'static str = "ConfigPath";
}

impl Path {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let path = location(global)?.path;
        let answer = ConfigPath { file: path.display().to_string(), exists: path.exists() };
        ui.answer(&answer, |out| writeln!(out, "{}", answer.file))?;
        if !answer.exists {
            ui.hint("it is not there yet: kubectl opensdn config set KEY VALUE makes it");
        }
        Ok(Exit::Done)
    }
}
