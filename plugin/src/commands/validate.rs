//! `validate`: what the webhook would say, before anything reaches a cluster.

use std::path::PathBuf;
use std::time::Instant;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum, ValueHint};
use opensdn_manifests::KubernetesVersion;
use opensdn_validate::report::{self, Finding, ValidationReport};
use opensdn_validate::{Cluster, Task, Validated, validate, validate_and_fix};

use crate::atomic_write::replace;
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::live::Live;
use crate::output::Answer;
use crate::runtime::Runtime;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Everything in a folder, as the webhook with its default policies would judge it
  kubectl opensdn validate deploy/

  # What a pipe brings, with findings at the lines of a pull request
  kustomize build overlays/prod | kubectl opensdn validate - -o github

  # As a change of what the live cluster has, which answers lookups too; nothing is written
  kubectl opensdn validate --live manager.yaml

  # For a cluster that upstream's tf-operator runs
  kubectl opensdn validate --operator tf-operator deploy/

  # Put misspelt fields right, then look at what remains
  kubectl opensdn validate --fix deploy/

  # With your own policy, and with another setting of a built-in one
  kubectl opensdn validate --policy mtu-room.wasm --settings settings.yaml deploy/

Suppress a finding with a reason: a comment `# opensdn-ignore: CODE reason` at its line or above,
or the annotation opensdn.io/ignore: \"CODE reason; CODE reason\" of the object.

Exit codes: 0 nothing found, 1 findings as bad as --fail-on or worse, 2 unreadable input.";

/// Arguments of `validate`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Validate {
    /// Files, folders (*.yaml, *.yml and *.json, at any depth; or a kustomization), globs, or - for
    /// standard input.
    #[arg(required_unless_present = "filename", value_name = "FILE|DIR|GLOB|-", value_hint = ValueHint::AnyPath)]
    names: Vec<PathBuf>,
    /// The same as an argument, as kubectl apply has it.
    #[arg(short, long, value_name = "FILE|DIR|GLOB|-", value_hint = ValueHint::AnyPath)]
    filename: Vec<PathBuf>,
    /// Ask the live cluster too, read-only: for lookups, for claims, and for the stored version
    /// of each object, of which it is then a change. Files win over the cluster.
    #[arg(long)]
    live: bool,
    /// A policy to add, or to put in the place of that of the same name: a module (.wasm), or
    /// AdmissionPolicies (.yaml) whose modules are built in, in a ConfigMap beside them, or files
    /// relative to it.
    #[arg(long = "policy", value_name = "FILE", value_hint = ValueHint::FilePath)]
    policies: Vec<PathBuf>,
    /// Settings of policies: a mapping from names of policies to their settings.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    settings: Option<PathBuf>,
    /// Who runs the cluster; with tf-operator, what it cannot do is found too.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "OPERATOR",
        env = "KUBECTL_OPENSDN_VALIDATE_OPERATOR",
        hide_env = true
    )]
    operator: Operator,
    /// Judge by the rules of this version of Kubernetes, such as 1.33.
    #[arg(long, value_name = "VERSION", env = "KUBECTL_OPENSDN_VALIDATE_AS_OF", hide_env = true)]
    as_of: Option<KubernetesVersion>,
    /// An earlier report (-o json); what it has does not count.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    baseline: Option<PathBuf>,
    /// Put right in the files what has one right form: a field with one near name, a value in the
    /// wrong case. What remains is reported.
    #[arg(long)]
    fix: bool,
    /// Refuse objects of kinds that neither a schema nor a policy knows.
    #[arg(long, env = "KUBECTL_OPENSDN_VALIDATE_STRICT", hide_env = true, value_parser = FalseyValueParser::new())]
    strict: bool,
    /// How bad a finding must be for exit code 1.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "SEVERITY",
        env = "KUBECTL_OPENSDN_VALIDATE_FAIL_ON",
        hide_env = true
    )]
    fail_on: FailOn,
    /// Exit with 0 whatever is found; unreadable input still counts.
    #[arg(long)]
    exit_zero: bool,
    /// How findings are written.
    #[arg(
        short,
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        env = "KUBECTL_OPENSDN_VALIDATE_OUTPUT",
        hide_env = true
    )]
    output: Format,
    #[command(flatten)]
    _cluster: AsksCluster,
}

/// Who runs the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Operator {
    /// Ours.
    #[default]
    Opensdn,
    /// Upstream's operator: manifests must work with what it can do.
    TfOperator,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, with the lines that are meant.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub: annotations of a pull request.
    Github,
    /// JUnit's XML, for reports of builds.
    Junit,
}

impl Answer for ValidationReport {
    const KIND: &'static str = "ValidationReport";
}

/// What to do instead of giving `--cluster` for what `--live` does.
pub(crate) const LIVE_NOT_CLUSTER: &str = "to ask the live cluster too: --live. --cluster NAME \
    is kubectl's flag for another cluster of the kubeconfig, and needs --live";

impl Validate {
    pub(crate) fn asks_cluster(&self) -> bool {
        self.live
    }

    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let started = Instant::now();
        self.check_cluster_flags(global)?;
        self.check_fix()?;
        let runtime = Runtime::start(global)?;
        if let Some(why) = runtime.uncached() {
            ui.warn(why);
        }
        let live = match self.live {
            true => Some(Live::new(runtime.block_on(global.client())?)),
            false => None,
        };
        let cluster = live.as_ref().map(|live| live as &dyn Cluster);
        let (loader, task) = (runtime.loader()?, self.task(global));
        let validated = match self.fix {
            true => runtime.block_on(validate_and_fix(loader, &task, cluster, &replace))?,
            false => runtime.block_on(validate(loader, &task, cluster))?,
        };
        self.write(&validated, ui)?;
        self.note(&validated, ui);
        ui.note(&report::summary(&validated.report, started.elapsed()));
        self.suggest_fix(&validated, ui);
        Ok(self.exit(&validated))
    }

    /// `--namespace` says where objects go that name none; the others are for `--live` only.
    fn check_cluster_flags(&self, global: &Global) -> Result<(), Failure> {
        if self.live {
            return Ok(());
        }
        let mut flags = global.cluster.clone();
        flags.namespace = None;
        if flags.given() == Some("--cluster") {
            let why = "validate asks no cluster without --live";
            return flags.must_be_absent(why, LIVE_NOT_CLUSTER);
        }
        flags.must_be_absent(
            "validate asks no cluster without --live",
            "add --live, or leave it out",
        )
    }

    fn check_fix(&self) -> Result<(), Failure> {
        let mut names = self.names.iter().chain(&self.filename);
        if self.fix && names.any(|name| name.as_os_str() == "-") {
            let message = "--fix changes files, and standard input (-) is none";
            return Err(Failure::usage(message, "name the files, or leave --fix out"));
        }
        Ok(())
    }

    fn task(&self, global: &Global) -> Task {
        Task {
            names: self.names.iter().chain(&self.filename).cloned().collect(),
            policies: self.policies.clone(),
            settings: self.settings.clone(),
            operator: match self.operator {
                Operator::Opensdn => opensdn_validate::Operator::Opensdn,
                Operator::TfOperator => opensdn_validate::Operator::TfOperator,
            },
            baseline: self.baseline.clone(),
            as_of: self.as_of,
            namespace: global.cluster.namespace.clone(),
            strict: self.strict,
        }
    }

    fn write(&self, validated: &Validated, ui: &mut Ui) -> Result<(), Failure> {
        let Validated { report, files, .. } = validated;
        let layout = ui.layout();
        match self.output {
            Format::Human | Format::Json | Format::Yaml => {
                ui.answer(report, |out| report::write_human(report, layout, out))
            }
            Format::Sarif => ui.write(|out| report::write_sarif(report, out)),
            Format::Github => ui.write(|out| report::write_github(report, out)),
            Format::Junit => ui.write(|out| report::write_junit(report, files, out)),
        }
    }

    fn exit(&self, validated: &Validated) -> Exit {
        let worst = validated.report.findings.iter().map(|one| one.severity).max();
        if validated.unreadable {
            Exit::Usage
        } else if !self.exit_zero && worst.is_some_and(|worst| worst >= self.fail_on.severity()) {
            Exit::Findings
        } else {
            Exit::Done
        }
    }

    /// What is no finding, for people; documents have it within.
    fn note(&self, validated: &Validated, ui: &mut Ui) {
        let report = &validated.report;
        if !matches!(self.output, Format::Human | Format::Json | Format::Yaml) {
            for one in &report.fixed {
                ui.note(&report::fixed(one));
            }
        }
        for one in &report.not_checked {
            ui.note(&format!("not checked: {}: {}", one.what, one.why));
        }
    }

    fn suggest_fix(&self, validated: &Validated, ui: &mut Ui) {
        let Validated { report, paths, .. } = validated;
        let of_file =
            |one: &&Finding| one.fix.is_some() && paths.contains_key(&one.place.file_number);
        let fixable = report.findings.iter().filter(of_file).count();
        if fixable > 0 && !self.fix {
            ui.hint(&format!("--fix puts {fixable} of these right, in the files"));
        }
        if self.operator == Operator::TfOperator {
            ui.hint(
                "to have a webhook in the cluster judge so: kubectl opensdn policy manifest tf-operator-limits | \
                 kubectl apply -f -",
            );
            ui.hint(
                "and keys of Secrets, of which it then reads each whole: echo 'saltedPassword: true' | kubectl opensdn \
                 policy manifest missing-secret-key --settings - | kubectl apply -f -",
            );
        }
    }
}
