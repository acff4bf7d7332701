//! `version`.

use clap::Args;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {}

impl Version {
    pub(crate) fn run(&self, _global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        // Standard output that is closed has no reader.
        let _ = writeln!(ui.out, "client   {}", env!("CARGO_PKG_VERSION"));
        Ok(Exit::Done)
    }
}
