//! The kubectl plugin. A command is one file in `commands`: its arguments, and a `run` that writes
//! the answer to [`Ui`] and returns an [`Exit`] or a [`Failure`]. What several commands need is
//! beside them, each in a module named after what it holds.

use std::ffi::OsString;
use std::process::ExitCode;

mod atomic_write;
mod bundle;
mod catalogue;
mod certificates;
mod checks;
mod cli;
mod clients;
mod commands;
mod completion;
mod config;
mod connectivity;
mod convert;
mod dry_run;
mod exit;
mod fail_on;
#[cfg(test)]
#[path = "../tests/cli/fake_api_server.rs"]
mod fake_api_server;
mod fields;
mod install;
mod live;
mod logs;
mod manifest_diff;
mod nested;
mod oci;
mod output;
mod parse;
mod part_file;
mod plugins;
mod policy;
mod probe;
mod runtime;
mod schemas;
mod secret_mask;
mod shell;
mod signals;
mod snapshot;
mod status;
mod ui;
mod upgrade;

pub use cli::{Cli, Color, Global, Progress};
pub use clients::{AsksCluster, ClusterFlags, NamesContext, Token, unanswered};
pub use exit::{Exit, Failure};
pub use output::{API_VERSION, Answer, DocumentFormat, Format, Output};
pub use ui::{Layout, Ui, style, wrap};

use parse::Parsed;
pub use parse::command;

/// Runs one command line and says how the process ends.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // Asked by this program itself, to have a process of its own for what may end it.
    if let Some(request) = opensdn_module_process::compile_request(args.iter().cloned()) {
        return opensdn_module_process::run(&request);
    }
    if let Some(request) = policy::module_info::request(&args) {
        return policy::module_info::run(request);
    }
    if let Some(words) = completion::words(&args) {
        // An error is not shown here: kubectl and the shell offer nothing then.
        let _ = Ui::plain(anstream::ColorChoice::Never, None)
            .write(|out| completion::answer(words, out));
        return Exit::Done.into();
    }
    match parse::parse(&args) {
        Parsed::Command { cli, document_format, warnings } => {
            let mut ui = Ui::new(&cli.global, document_format);
            warnings.iter().for_each(|warning| ui.warn(warning));
            finish(cli.command.run(&cli.global, &mut ui), &mut ui)
        }
        Parsed::Text { text, color } => {
            let mut ui = Ui::plain(color, None);
            let written = ui.write(|out| write!(out, "{}", text.ansi()));
            finish(written.map(|()| Exit::Done), &mut ui)
        }
        Parsed::Failure { failure, color, document_format } => {
            finish(Err(failure), &mut Ui::plain(color, document_format))
        }
    }
}

fn finish(result: Result<Exit, Failure>, ui: &mut Ui) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            ui.failure(&failure);
            failure.exit.into()
        }
    }
}
