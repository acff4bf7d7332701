//! The command line of `image-records`, which `deploy/images/program.sh` calls.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Parser, Subcommand};
use opensdn_error_chain::error_chain;
use serde_json::Value;

use crate::bill::{Toolchain, bill};
use crate::built::{self, Disagreement};
use crate::graph::{Graph, GraphError};
use crate::provenance::{Build, ProvenanceError, provenance};
use crate::{auditable, lock};

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Built(#[from] Disagreement),
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    #[error("use {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error("ask rustc for its version")]
    Rust,
}

/// Writes what goes with an image.
#[derive(Debug, Parser)]
#[command(name = "image-records", version)]
struct Line {
    #[command(subcommand)]
    record: Record,
}

#[derive(Debug, Subcommand)]
enum Record {
    /// The bill of materials, and the same list for the program
    Bill(BillArguments),
    /// Where the files of an image come from
    Provenance(ProvenanceArguments),
}

#[derive(Debug, Args)]
struct BillArguments {
    /// The workspace
    #[arg(long, default_value = ".")]
    workspace: PathBuf,
    /// The program's package
    #[arg(long)]
    package: String,
    /// What it was compiled for
    #[arg(long)]
    target: String,
    /// What Cargo said when it compiled it (`--message-format=json`): if the bill does not name exactly
    /// that, nothing is written
    #[arg(long)]
    built: Option<PathBuf>,
    /// Where the list for the program goes, the content of its section `.dep-v0`
    #[arg(long)]
    section: Option<PathBuf>,
    /// Where the bill goes
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct ProvenanceArguments {
    /// The program's package
    #[arg(long)]
    package: String,
    /// The program as it is in the image
    #[arg(long)]
    program: PathBuf,
    /// The OCI archive
    #[arg(long)]
    archive: PathBuf,
    /// The archive's `index.json`
    #[arg(long)]
    index: PathBuf,
    /// The bill of materials
    #[arg(long)]
    bill: PathBuf,
    /// Cargo.lock
    #[arg(long, default_value = "Cargo.lock")]
    lock: PathBuf,
    /// What the program was compiled for
    #[arg(long)]
    target: String,
    /// The commit, with `-modified` behind it where files differed from it
    #[arg(long)]
    revision: String,
    /// Where the source is to be had
    #[arg(long)]
    source: Option<String>,
    /// Who built
    #[arg(long, env = "OPENSDN_BUILDER", default_value = "https://opensdn.io/build/by-hand")]
    builder: String,
    /// Tools that took part, `NAME VERSION`
    #[arg(long)]
    tool: Vec<String>,
    /// Where the statement goes
    #[arg(long)]
    out: PathBuf,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let done = match Line::parse().record {
        Record::Bill(arguments) => write_bill(&arguments),
        Record::Provenance(arguments) => write_provenance(arguments),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    // No one reads it where standard error is closed.
    let _told = writeln!(io::stderr(), "image-records: failed to {}", error_chain(&error));
    ExitCode::FAILURE
}

fn write_bill(arguments: &BillArguments) -> Result<(), RecordError> {
    let BillArguments { workspace, package, target, .. } = arguments;
    let graph = Graph::of(workspace, package, target)?;
    if let Some(messages) = &arguments.built {
        built::check(&graph, &read(messages)?, target)?;
    }
    let checksums = lock::checksums(&read(&workspace.join("Cargo.lock"))?);
    let toolchain = Toolchain { rust: rust_version(workspace)?, target: target.clone() };
    write_document(&arguments.out, &bill(&graph, &checksums, &toolchain))?;
    arguments.section.iter().try_for_each(|file| write(file, &auditable::section(&graph)))
}

fn write_provenance(arguments: ProvenanceArguments) -> Result<(), RecordError> {
    let build = Build {
        program_name: arguments.package,
        program: arguments.program,
        archive: arguments.archive,
        index: arguments.index,
        bill: arguments.bill,
        lock: arguments.lock,
        target: arguments.target,
        revision: arguments.revision,
        source: arguments.source,
        builder: arguments.builder,
        tools: arguments.tool,
    };
    write_document(&arguments.out, &provenance(&build)?)
}

/// Of the compiler that Cargo takes there.
fn rust_version(workspace: &Path) -> Result<String, RecordError> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("--version").current_dir(workspace).output();
    let said = output.map_err(|_| RecordError::Rust)?.stdout;
    let version = String::from_utf8_lossy(&said).split(' ').nth(1).map(str::to_owned);
    version.ok_or(RecordError::Rust)
}

fn read(path: &Path) -> Result<String, RecordError> {
    fs::read_to_string(path).map_err(|error| RecordError::File(path.to_owned(), error))
}

fn write_document(path: &Path, document: &Value) -> Result<(), RecordError> {
    write(path, format!("{document:#}\n").as_bytes())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    fs::write(path, bytes).map_err(|error| RecordError::File(path.to_owned(), error))
}
