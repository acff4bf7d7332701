//! What the commands have in common that write into the cloud: what is asked before, where the list is saved as it was,
//! and what is said while it takes minutes.

use std::fs::File;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use opensdn_config_api::apply as rows;
use opensdn_nested_cloud::Error;
use serde_json::Value;

use crate::dry_run::outside_the_cluster;
use crate::exit::{Exit, Failure};
use crate::nested::waited::waited;
use crate::ui::Ui;

/// How a command writes into the cloud.
#[derive(Debug, Args)]
pub(super) struct WritingFlags {
    /// The folder in which the list is saved as it was before.
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    backup_dir: PathBuf,
    /// Show what would be done; nothing is written
    /// (without a value it means client, the older spelling).
    #[arg(long, value_name = "HOW", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client", value_parser = outside_the_cluster())]
    pub(super) dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
}

impl WritingFlags {
    /// The list as it was, in a new file of the folder: no other is written over, nor followed where it is a link.
    ///
    /// # Errors
    /// The file cannot be written; the error has the folder.
    pub(super) fn save(&self, cluster: &str, rows: &Value) -> io::Result<String> {
        let folder = &self.backup_dir;
        let in_folder = |error: io::Error| {
            io::Error::new(error.kind(), format!("{} (--backup-dir): {error}", folder.display()))
        };
        let seconds = k8s_openapi::jiff::Timestamp::now().as_second();
        let text = serde_json::to_string_pretty(rows).map_err(io::Error::other)? + "\n";
        for number in 0..100 {
            let name = format!("linklocal-services-before-{cluster}-{seconds}-{number}.json");
            let path = folder.join(name);
            match File::create_new(&path) {
                Ok(mut file) => {
                    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
                    written.map_err(in_folder)?;
                    return Ok(path.display().to_string());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(in_folder(error)),
            }
        }
        Err(in_folder(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Why it was not done; `hint` says how it continues.
pub(super) fn failed(error: &Error, code: &'static str, message: &str, hint: &str) -> Failure {
    if let Error::Rows(rows::Error::Backup(_)) = error {
        let hint = "name a folder in which a file can be made: --backup-dir";
        return Failure::new(Exit::Usage, "no-backup", "nothing was written", hint).because(error);
    }
    Failure::new(Exit::Unreachable, code, message, hint).because(error)
}

/// Writes, and says so while it lasts.
pub(super) async fn writing<T>(ui: &mut Ui, work: impl Future<Output = T>) -> T {
    ui.progress("writing into the Config API");
    let waiting =
        "writing into the Config API; a run that was killed holds its lock for two minutes";
    waited(ui, waiting, work).await
}
