//! `version`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::ui::Ui;

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// What `version` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Versions {
    /// Version of this program.
    client: String,
}

impl Answer for Versions {
    const KIND: &'static str = "Versions";
}

impl Version {
    pub(crate) fn run(&self, _global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let versions = Versions { client: env!("CARGO_PKG_VERSION").to_owned() };
        ui.answer(&versions, |out| writeln!(out, "client   {}", versions.client))?;
        Ok(Exit::Done)
    }
}
