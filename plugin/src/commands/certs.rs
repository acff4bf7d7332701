//! `certs`: the certificates of OpenSDN in a cluster. What is said of them is decided in `certificates.rs`.

use clap::{Args, Subcommand};
use k8s_openapi::jiff::Timestamp;

use crate::certificates::ask::world;
use crate::certificates::{CertificatesReport, State, assess};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

const GROUP_EXAMPLES: &str = "\
Examples:
  # Which certificate ends first?
  kubectl opensdn certs status";

const EXAMPLES: &str = "\
Examples:
  # Which certificate ends first, and is each issued by a CA that the pods trust?
  kubectl opensdn certs status

  # For a script: those that end within two months
  kubectl opensdn certs status -o json | jq '.certificates[] | select(.days < 60)'

States: ok; late, with less than 60 days, though the operator renews at two thirds of a year;
urgent, with less than 14; expired; untrusted, where none of the CAs issued it that the pods of its
namespace trust; unreadable.

It reads the Secrets that the operator has made and that of the webhook's CA; keys are not kept.
The operator renews certificates by itself. To replace a CA now:
  kubectl annotate -n NAMESPACE secret/opensdn-ca opensdn.io/rotate-ca=now

Exit codes: 0 none needs care, 1 one is urgent or worse, 3 nothing could be read.";

/// Arguments of `certs`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = GROUP_EXAMPLES)]
pub(crate) struct Certs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show all certificates, the worst first.
    Status(CertsStatus),
}

/// Arguments of `certs status`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct CertsStatus {
    /// The namespace that the webhook runs in.
    #[arg(
        long,
        env = "OPENSDN_NAMESPACE",
        hide_env_values = true,
        default_value = opensdn_deploy::names::NAMESPACE,
        value_name = "NAME"
    )]
    control_namespace: String,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

impl Certs {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let What::Status(status) = &self.what;
        let runtime = Runtime::start(global)?;
        let report = runtime.block_on(status.ask(global))?;
        ui.answer(&report, |out| report.write(out))?;
        for unread in &report.not_read {
            ui.warn(&format!("not read: {}: {}", unread.what, unread.why));
        }
        let is_untrusted = report.certificates.iter().any(|one| one.state == State::Untrusted);
        if is_untrusted {
            ui.hint("the operator issues an untrusted one again by itself: does it run? kubectl opensdn status");
        }
        Ok(match () {
            () if report.is_bad() => Exit::Findings,
            () if report.certificates.is_empty() && !report.not_read.is_empty() => {
                Exit::Unreachable
            }
            () => Exit::Done,
        })
    }
}

impl CertsStatus {
    async fn ask(&self, global: &Global) -> Result<CertificatesReport, Failure> {
        let (client, server) = global.client_and_server().await?;
        let asker = Asker::new(client);
        asker.version(&server).await?;
        let world =
            world(&asker, global.cluster.namespace.as_deref(), &self.control_namespace).await;
        Ok(assess(&world, Timestamp::now()))
    }
}
