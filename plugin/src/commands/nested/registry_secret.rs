//! `nested registry-secret`: the Secret with the login to the registry of the images, made or changed; and `--check`, which
//! says of the one that is there whether the pods of nested mode can pull by it.

use std::io::{self, Write};

use clap::{Args, ValueHint};
use opensdn_nested_workloads::registry;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

use crate::cli::Global;
use crate::clients::{AsksCluster, unanswered};
use crate::commands::install::DryRun as DryRunFlag;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::plan::DryRun;
use crate::install::requests::{Apply, Requests};
use crate::nested::registry_check::{self, Asked, RegistryTrial, Severity};
use crate::nested::registry_login::LoginFlags;
use crate::output::{Answer, DocumentFormat, Format, Output};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::ui::{Ui, one_line};

/// Where nested manifest puts the pods.
const NAMESPACE: &str = "kube-system";

const EXAMPLES: &str = "\
Examples:
  # The password from a file, or from standard input
  kubectl opensdn nested registry-secret opensdn-registry --registry hub.example.com \\
    --username alice --password-file password.txt
  pass show hub | kubectl opensdn nested registry-secret opensdn-registry \\
    --registry hub.example.com --username alice --password-file - --yes

  # Its name for the manifest
  kubectl opensdn nested manifest --registry-secret opensdn-registry ...

  # Can the pods pull by it? With --online the registry is asked, too
  kubectl opensdn nested registry-secret opensdn-registry --check --online

  # The Secret itself for a tool that encrypts it; nothing is applied
  kubectl opensdn nested registry-secret opensdn-registry --registry hub.example.com \\
    --username alice --password-file password.txt --show-secret | kubeseal > sealed.yaml

The password is never an argument: it is in the file, or in the variable
OPENSDN_REGISTRY_PASSWORD. It is shown nowhere, --show-secret excepted. The Secret has to be in
the namespace of the pods: -n, kube-system unless given. The key of the login is the registry's
host; a path behind it is left out.

Exit codes: 0 done, or --check found no error, 1 it found one, 2 the arguments or a file, 3 the
cluster cannot be asked or refuses, 5 not confirmed, or the Secret is another tool's.";

/// Arguments of `nested registry-secret`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct RegistrySecretCommand {
    /// Name of the Secret.
    #[arg(value_name = "NAME")]
    name: String,
    /// Say what would be done; nothing is applied. With client the API server is not asked whether it would take it
    /// (without a value it means server, the older spelling).
    #[arg(long, conflicts_with = "check", value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "server")]
    dry_run: DryRunFlag,
    /// Print the Secret, password included, and apply nothing; no cluster is asked.
    #[arg(long, conflicts_with_all = ["check", "dry_run"])]
    show_secret: bool,
    /// Take over what another tool has written into the Secret.
    #[arg(long, conflicts_with_all = ["check", "show_secret"])]
    force_conflicts: bool,
    /// Do not ask.
    #[arg(short, long, conflicts_with = "check")]
    yes: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    login: LoginFlags,
    #[command(flatten)]
    check: CheckFlags,
    #[command(flatten)]
    _cluster: AsksCluster,
}

/// How a Secret that is there is looked at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Check")]
struct CheckFlags {
    /// Look at the Secret that is there, and change nothing.
    #[arg(long, conflicts_with_all = ["registry", "username", "password_file", "email"])]
    check: bool,
    /// Images that have to be covered beside those of the pods.
    #[arg(long, value_name = "IMAGE", value_delimiter = ',', requires = "check")]
    image: Vec<String>,
    /// Ask the registry, from this machine, whether it takes the login and has the images.
    #[arg(long, requires = "check")]
    online: bool,
    /// Ask these registries without TLS.
    #[arg(long, value_name = "REGISTRY", requires = "online")]
    insecure_registry: Vec<String>,
    /// Certificates of the authorities for registries' certificates (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "online")]
    registry_ca: Option<PathBuf>,
}

/// What `nested registry-secret` answers; the login is not in it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistrySecret {
    /// Its namespace.
    namespace: String,
    /// Its name.
    name: String,
    /// The registry as the login's key has it.
    registry: String,
    /// What was done, or would be.
    action: Action,
    /// Whether it was only shown.
    dry_run: bool,
}

impl Answer for RegistrySecret {
    const KIND: &'static str = "RegistrySecret";
}

/// What is done to the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Action {
    /// There was none.
    Create,
    /// It had another content.
    Change,
    /// It was right.
    None,
}

impl RegistrySecretCommand {
    pub(super) fn asks_cluster(&self) -> bool {
        !self.show_secret
    }

    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let namespace = global.cluster.namespace.as_deref().unwrap_or(NAMESPACE);
        if self.check.check {
            return Runtime::start(global)?.block_on(self.look(namespace, global, ui));
        }
        let (secret, registry) = self.secret(namespace)?;
        if self.show_secret {
            return self.show(&secret, ui);
        }
        let answer = RegistrySecret {
            namespace: namespace.to_owned(),
            name: self.name.clone(),
            registry,
            action: Action::None,
            dry_run: self.dry_run != DryRunFlag::None,
        };
        Runtime::start(global)?.block_on(self.apply(answer, &secret, global, ui))
    }

    /// The Secret, and the key of its login.
    fn secret(&self, namespace: &str) -> Result<(Value, String), Failure> {
        let login = self.login.login()?;
        let refused = |error: &dyn std::error::Error| {
            let message = "no Secret can be made of these values";
            let hint = "--registry hub.example.com:5000 or hub.example.com, --username, and a name of lower case letters";
            Failure::new(Exit::Usage, "unusable-login", message, hint).because(error)
        };
        let secret = registry::secret(&self.name, namespace, &login);
        let secret = secret.map_err(|error| refused(&error))?;
        let object = serde_json::to_value(&secret).map_err(|error| refused(&error))?;
        Ok((object, registry::key(&login.server).to_owned()))
    }

    fn show(&self, secret: &Value, ui: &mut Ui) -> Result<Exit, Failure> {
        let format = match self.output.output {
            Format::Json => DocumentFormat::Json,
            Format::Human | Format::Yaml => DocumentFormat::Yaml,
        };
        ui.write(|out| format.write_value(secret, out))?;
        Ok(Exit::Done)
    }

    async fn apply(
        &self,
        mut answer: RegistrySecret,
        secret: &Value,
        global: &Global,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let (client, server) = global.client_and_server().await?;
        ui.progress(&format!("asking {server}"));
        let requests = Requests::new(client);
        let stored = requests.get(&ObjectKey::of(secret)).await?;
        answer.action = match &stored {
            None => Action::Create,
            Some(stored) if content(stored) == content(secret) => Action::None,
            Some(_) => Action::Change,
        };
        if answer.action != Action::None && self.dry_run != DryRunFlag::Client {
            self.refuse_if_foreign(&requests.dry_run(secret, self.force_conflicts).await?)?;
        }
        if answer.dry_run || answer.action == Action::None {
            ui.answer(&answer, |out| answer.write(out))?;
            return Ok(Exit::Done);
        }
        if !self.yes {
            let RegistrySecret { namespace, name, registry, .. } = &answer;
            let what = format!(
                "write the login of {registry} into the Secret {namespace}/{name} of {server}"
            );
            ui.confirm(&what)?;
        }
        let doing = format!("apply {}", ObjectKey::of(secret));
        let applied = requests.apply(secret, self.force_conflicts, Apply::Store).await;
        applied.map_err(|error| unanswered(&doing, &error))?;
        ui.answer(&answer, |out| answer.write(out))?;
        ui.hint("the pods have to name it: nested manifest --registry-secret; then: --check");
        Ok(Exit::Done)
    }

    fn refuse_if_foreign(&self, answer: &DryRun) -> Result<(), Failure> {
        match answer {
            DryRun::Stored(_) => Ok(()),
            DryRun::Conflicts { fields, .. } => {
                let mut managers: Vec<&str> =
                    fields.iter().map(|(_, manager)| manager.as_str()).collect();
                managers.dedup();
                let message =
                    format!("the Secret {} was written by {}", self.name, managers.join(", "));
                let hint = "to take it over: --force-conflicts; or choose another name";
                Err(Failure::new(Exit::Refused, "conflict", message, hint))
            }
            DryRun::Refused(why) | DryRun::Untried(why) => {
                let message = format!("the cluster refuses the Secret {}", self.name);
                let hint = "the type of a Secret cannot be changed: delete it first, or choose another name";
                let mut failure = Failure::new(Exit::Unreachable, "refused", message, hint);
                failure.causes.push(why.clone());
                Err(failure)
            }
        }
    }

    async fn look(&self, namespace: &str, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let CheckFlags { image, online, insecure_registry, registry_ca, .. } = &self.check;
        let trial = match online {
            true => Some(RegistryTrial::new(registry_ca.as_deref(), insecure_registry)?),
            false => None,
        };
        let (client, server) = global.client_and_server().await?;
        ui.progress(&format!("asking {server}"));
        let asker = Asker::new(client);
        asker.version(&server).await?;
        let asked = Asked { name: &self.name, namespace, images: image };
        let report = registry_check::look(&asker, &asked, trial.as_ref()).await?;
        let layout = ui.layout();
        ui.answer(&report, |out| report.write(layout, out))?;
        let is_error = |severity: &Severity| *severity == Severity::Error;
        match report.findings.iter().map(|one| &one.severity).any(is_error) {
            true => Ok(Exit::Findings),
            false => Ok(Exit::Done),
        }
    }
}

/// What of a Secret is ours.
fn content(secret: &Value) -> (Option<&Value>, Option<&Value>) {
    (secret.get("type"), secret.get("data"))
}

impl RegistrySecret {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { namespace, name, registry, action, dry_run } = self;
        let what = match (action, dry_run) {
            (Action::Create, true) => "would be created",
            (Action::Change, true) => "would be changed",
            (Action::Create, false) => "was created",
            (Action::Change, false) => "was changed",
            (Action::None, _) => "is as it should be",
        };
        let line = format!("The Secret {namespace}/{name} with the login of {registry} {what}.");
        writeln!(out, "{}", one_line(&line))
    }
}
