//! `audit`: what the policies say of what a cluster has stored, and what one would say if it were
//! enforced. Nothing is written.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use opensdn_validate::{WhatIf, what_if};

use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::live::Live;
use crate::output::{CheckedFormat, CheckedOutput};
use crate::runtime::Runtime;
use crate::ui::Ui;

mod found;
mod junit;
mod reported;

pub(crate) use found::AuditFindings;

const EXAMPLES: &str = "\
Examples:
  # What the webhook's last audit found in what is stored
  kubectl opensdn audit

  # In one namespace, for a script
  kubectl opensdn audit -n tf -o json

  # For a system of continuous integration
  kubectl opensdn audit -o junit > audit.xml

  # What would be refused if this policy were enforced now; it need not be in the cluster
  kubectl opensdn audit --what-if plaintext.yaml

Without -n all namespaces are meant, whatever the context says. The webhook audits an hour after
the last time, and a minute after its policies have changed.

Exit codes: 0 nothing found, 1 findings as bad as --fail-on or worse, 3 there is no audit to be
read.";

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Audit {
    /// Judge what is stored by this policy instead, as if it were enforced: a module (.wasm), or
    /// AdmissionPolicies (.yaml) whose modules are built in, in a ConfigMap beside them, or files
    /// relative to it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    what_if: Vec<PathBuf>,
    /// How bad a finding must be for exit code 1.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "SEVERITY",
        env = "KUBECTL_OPENSDN_AUDIT_FAIL_ON",
        hide_env = true
    )]
    fail_on: FailOn,
    /// Exit with 0 whatever is found.
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    webhook: WebhookNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: CheckedOutput,
}

impl Audit {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        self.what_if.iter().try_for_each(|file| is_file(file))?;
        let runtime = Runtime::start(global)?;
        let live = Live::new(runtime.block_on(global.client())?);
        let namespace = global.cluster.namespace.as_deref();
        let found = if self.what_if.is_empty() {
            runtime.block_on(reported::read(&live, &self.webhook.control_namespace, namespace))?
        } else {
            let policies = self.what_if.clone();
            let asked = WhatIf { policies, namespace: namespace.map(str::to_owned) };
            AuditFindings::of(runtime.block_on(what_if(runtime.loader()?, &asked, &live))?)
        };
        let layout = ui.layout();
        match self.output.output {
            CheckedFormat::Junit => {
                ui.write(|out| found.write_junit(self.fail_on.severity(), out))?
            }
            _ => ui.answer(&found, |out| found.write(layout, out))?,
        }
        for note in found.notes() {
            ui.note(&note);
        }
        if let Some(hint) = found.hint() {
            ui.hint(&hint);
        }
        let worst = found.worst();
        let fails = worst.is_some_and(|worst| worst >= self.fail_on.severity());
        Ok(match (fails, found.is_unknown()) {
            _ if self.exit_zero => Exit::Done,
            (true, _) => Exit::Findings,
            (false, true) => Exit::Unreachable,
            (false, false) => Exit::Done,
        })
    }
}

/// Who gives the name of a policy that the cluster has is told how to get a file of it.
fn is_file(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        return Ok(());
    }
    let shown = file.display();
    let is_name = file.extension().is_none() && file.components().count() == 1;
    let hint = if is_name {
        format!(
            "--what-if takes files; of a policy that is in the cluster: kubectl get admissionpolicy {shown} -o yaml \
             > {shown}.yaml"
        )
    } else {
        "--what-if takes a module (.wasm) or AdmissionPolicies (.yaml)".to_owned()
    };
    Err(Failure::usage(format!("there is no file {shown}"), hint))
}
