//! `certs`: the certificates of OpenSDN in a cluster. What is said of them is decided in `certificates.rs`.

use std::collections::BTreeSet;

use clap::{Args, Subcommand, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use opensdn_deploy::names::operator::GIVEN_CA_SECRET;

use crate::certificates::ask::world;
use crate::certificates::renew::{self, CertificatesRenewal, Renewal, Wanted};
use crate::certificates::{CertificatesReport, State, assess};
use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::commands::install::DryRun;
use crate::completion::objects::renewable;
use crate::exit::{Exit, Failure};
use crate::install::requests::Apply;
use crate::output::ObjectsOutput;
use crate::runtime::Runtime;
use crate::snapshot::Read;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

const RENEW_EXAMPLES: &str = "\
Examples:
  # What would start again?
  kubectl opensdn certs renew --all --dry-run=client

  # Those of one component
  kubectl opensdn certs renew redis1

  # A new CA, and after it all certificates
  kubectl opensdn certs renew opensdn-ca

The operator issues them by itself at two thirds of a year; this asks it to do so now, by an
annotation of the Secret. It goes from one address to the next when all pods are ready and three
minutes have passed.

Exit codes: 0 asked for, 2 there is none of that name, 3 the cluster cannot be asked, 5 not
confirmed.";

const GROUP_EXAMPLES: &str = "\
Examples:
  # Which certificate ends first?
  kubectl opensdn certs status

  # Have the certificates of one component issued again
  kubectl opensdn certs renew redis1";

const EXAMPLES: &str = "\
Examples:
  # Which certificate ends first, and is each issued by a CA that the pods trust?
  kubectl opensdn certs status

  # For a script: those that end within two months
  kubectl opensdn certs status -o json | jq '.certificates[] | select(.days < 60)'

States: ok; late, with less than 60 days, though the operator renews at two thirds of a year;
urgent, with less than 14; expired; untrusted, where none of the CAs issued it that the pods of
its namespace trust; unreadable.

It reads the Secrets that the operator has made and that of the webhook's CA; keys are not kept.
The operator renews certificates by itself. To have it done now: kubectl opensdn certs renew

Exit codes: 0 none needs care, 1 one is urgent or worse, 3 something could not be read.";

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
    /// Have the operator issue certificates again before they are due.
    Renew(CertsRenew),
}

/// Arguments of `certs renew`.
#[derive(Debug, Args)]
#[command(after_long_help = RENEW_EXAMPLES)]
struct CertsRenew {
    /// A Secret with certificates, or what uses it, such as redis1; a CA by its Secret.
    #[arg(value_name = "NAME", required_unless_present = "all", add = renewable())]
    name: Option<String>,
    /// All but CAs.
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Show what would be renewed; nothing is asked for. With server the API server is asked whether it would take it
    /// (without a value it means client, the older spelling).
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    dry_run: DryRun,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    webhook: WebhookNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: ObjectsOutput,
}

/// Arguments of `certs status`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct CertsStatus {
    #[command(flatten)]
    webhook: WebhookNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: StatusFormat,
}

/// How certificates are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum StatusFormat {
    /// For people.
    #[default]
    Human,
    /// The same with the time of each end.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// The Secrets alone, one a line: `secret/opensdn-ca`.
    Name,
}

impl Certs {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let status = match &self.what {
            What::Status(status) => status,
            What::Renew(renew) => return renew.run(global, ui),
        };
        let runtime = Runtime::start(global)?;
        let report = runtime.block_on(status.ask(global, ui))?;
        let layout = ui.layout();
        match status.output {
            StatusFormat::Name => {
                let secrets = report.certificates.iter().map(|one| one.secret.as_str());
                let names: BTreeSet<&str> = secrets.collect();
                ui.show(|out| names.iter().try_for_each(|name| writeln!(out, "secret/{name}")))?;
            }
            output => {
                let is_wide = output == StatusFormat::Wide;
                ui.answer(&report, |out| report.write(is_wide, layout, out))?;
            }
        }
        for unread in &report.not_read {
            ui.warn(&format!("not read: {}: {}", unread.what, unread.why));
        }
        let is_untrusted = report.certificates.iter().any(|one| one.state == State::Untrusted);
        if is_untrusted {
            ui.hint("the operator issues an untrusted one again by itself: does it run? kubectl opensdn status");
        }
        Ok(match () {
            () if report.is_bad() => Exit::Findings,
            // What could not be looked at is not well.
            () if !report.not_read.is_empty() => Exit::Unreachable,
            () => Exit::Done,
        })
    }
}

impl CertsStatus {
    async fn ask(&self, global: &Global, ui: &mut Ui) -> Result<CertificatesReport, Failure> {
        let (client, server) = global.client_and_server().await?;
        ui.progress(&format!("asking {server}"));
        let asker = Asker::new(client);
        asker.version(&server).await?;
        let world =
            world(&asker, global.cluster.namespace.as_deref(), &self.webhook.control_namespace)
                .await;
        Ok(assess(&world, Timestamp::now()))
    }
}

impl CertsRenew {
    fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let runtime = Runtime::start(global)?;
        let (client, server) = runtime.block_on(global.client_and_server())?;
        let asker = Asker::new(client);
        let wanted = self.name.clone().map_or(Wanted::All, Wanted::Named);
        let secrets = runtime.block_on(Box::pin(self.planned(global, &asker, &server, &wanted)))?;
        let answer = CertificatesRenewal { dry_run: self.dry_run != DryRun::None, secrets };
        ui.note(&format!("{} ({server})", global.cluster.context_in_use().unwrap_or_default()));
        let (at_work, renewed): (Vec<&Renewal>, Vec<&Renewal>) =
            answer.secrets.iter().partition(|one| one.is_asked);
        for one in at_work {
            let Renewal { namespace, secret, used_by, .. } = one;
            ui.note(&format!("  at work  {namespace}/{secret} of {used_by}: asked for before"));
        }
        for one in &renewed {
            let Renewal { namespace, secret, used_by, effect, .. } = one;
            ui.note(&format!("  renews   {namespace}/{secret} of {used_by}"));
            ui.note(&format!("           {effect}"));
        }
        if !answer.dry_run && !self.yes && !renewed.is_empty() {
            ui.confirm("have the operator renew these")?;
        }
        if self.dry_run != DryRun::Client {
            let apply = if answer.dry_run { Apply::DryRun } else { Apply::Store };
            for one in &renewed {
                let path = format!("/api/v1/namespaces/{}/secrets/{}", one.namespace, one.secret);
                runtime.block_on(asker.patch(&path, &one.patch(Timestamp::now()), apply))?;
            }
        }
        let names = answer.secrets.iter().map(|one| format!("secret/{}", one.secret));
        ui.answer_objects(self.output.output, &answer, names, |out| {
            answer.secrets.iter().try_for_each(|one| {
                let word = match (one.is_asked, answer.dry_run) {
                    (true, _) => "asked for before, and at work",
                    (false, true) => "would be asked for",
                    (false, false) => "asked for",
                };
                writeln!(out, "{}/{}  {word}", one.namespace, one.secret)
            })
        })?;
        if !answer.dry_run {
            ui.hint("to see how far it is: kubectl opensdn certs status");
        }
        Ok(Exit::Done)
    }

    async fn planned(
        &self,
        global: &Global,
        asker: &Asker,
        server: &str,
        wanted: &Wanted,
    ) -> Result<Vec<Renewal>, Failure> {
        asker.version(server).await?;
        let namespace = global.cluster.namespace.as_deref();
        let world = world(asker, namespace, &self.webhook.control_namespace).await;
        // What may not be read is not taken for absent.
        let unread = world.not_read.first();
        let planned = match (renew::plan(&world, wanted), unread) {
            (Ok(planned), None) => planned,
            (Ok(planned), Some(_)) if *wanted != Wanted::All => planned,
            (_, Some(unread)) => {
                return Err(unreadable(&format!("{} may not be read", unread.what), &unread.why));
            }
            (Err(failure), None) => return Err(failure),
        };
        for ca in planned.iter().filter(|one| one.addresses == 0) {
            let given = format!("/api/v1/namespaces/{}/secrets/{GIVEN_CA_SECRET}", ca.namespace);
            match asker.get(&given).await {
                Read::Absent => {}
                Read::Known(_) => {
                    let message = format!(
                        "the CA of {} is yours: the Secret {GIVEN_CA_SECRET} has it",
                        ca.namespace
                    );
                    let hint =
                        "put another one into that Secret; the operator then announces and uses it";
                    return Err(Failure::new(Exit::Refused, "given-ca", message, hint));
                }
                Read::Unknown(why) => {
                    let message = format!(
                        "whether the CA of {} is yours is not known: the Secret {GIVEN_CA_SECRET} may not be read",
                        ca.namespace
                    );
                    return Err(unreadable(&message, &why));
                }
            }
        }
        Ok(planned)
    }
}

fn unreadable(message: &str, why: &str) -> Failure {
    let hint = "it needs the right to list, get and patch Secrets of OpenSDN's namespaces";
    let mut failure = Failure::new(Exit::Unreachable, "forbidden", message, hint);
    failure.causes.push(why.to_owned());
    failure
}
