//! `policy run`: one evaluation, with everything that it saw.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum, ValueHint};
use opensdn_policy_host::cases::{self, Case, CaseRequest, Conditions, Expected};
use opensdn_policy_host::lookup::{Call, Documents, Lookup, NoLookup, Record, Recording, Replay};
use opensdn_policy_host::{Metering, Operation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::output::{API_VERSION, Output};
use crate::policy::answer::Outcome;
use crate::policy::dev_policy::{DevPolicy, LimitFlags};
use crate::policy::evaluation::PolicyRun;
use crate::policy::reference::Module;
use crate::policy::{cluster, objects};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # What does a policy say to the change of an object, and what did it see of it?
  kubectl opensdn policy run even-quorum -f new.yaml --old old.yaml

  # Lookups are answered by files
  kubectl opensdn policy run build/mine.wasm -f vrouter.yaml --objects nodes.yaml

  # Lookups are answered by the cluster and written down, then repeated without it
  kubectl opensdn policy run build/mine.wasm -f vrouter.yaml --record lookups.json
  kubectl opensdn policy run build/mine.wasm -f vrouter.yaml --replay lookups.json";

/// Arguments of `policy run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The policy: a file, a built-in policy's name[@version] or sha256:PREFIX [default: the
    /// component in build/].
    #[arg(value_name = "POLICY", add = crate::completion::policies())]
    policy: Option<String>,
    /// The object as it will be; - reads standard input.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "old")]
    filename: Option<PathBuf>,
    /// The object as it is stored; alone it means that the object is deleted.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    old: Option<PathBuf>,
    /// What is asked for [default: create, update or delete, by the objects].
    #[arg(long, value_enum, ignore_case = true, value_name = "OPERATION")]
    operation: Option<OperationFlag>,
    /// Who asks.
    #[arg(long, value_name = "NAME")]
    request_user: Option<String>,
    /// A group of who asks (repeatable).
    #[arg(long, value_name = "NAME")]
    request_group: Vec<String>,
    /// The subresource that is asked for, such as status.
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,
    /// Nothing will be stored.
    #[arg(long)]
    request_dry_run: bool,
    /// Settings of the policy (YAML or JSON).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    settings: Option<PathBuf>,
    /// Files with the objects that answer lookups.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, num_args = 1.., conflicts_with_all = ["record", "replay"])]
    objects: Vec<PathBuf>,
    /// Answer lookups from the cluster, which is only read, and write them into this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Answer lookups from this file; one that is not in it is an error.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    replay: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OperationFlag {
    Create,
    Update,
    Delete,
}

/// A file of recorded lookups.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordFile {
    api_version: String,
    kind: String,
    /// Digest of the policy that asked.
    policy: String,
    /// Every question and its answer.
    calls: Vec<Call>,
}

const RECORD_KIND: &str = "LookupRecord";

/// What answers lookups, and what must be done with it afterwards.
enum Source {
    Plain(Arc<dyn Lookup>),
    Recording(Arc<Recording>, PathBuf),
    Replay(Arc<Replay>),
}

impl Run {
    pub(crate) fn asks_cluster(&self) -> bool {
        self.record.is_some()
    }

    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        if !self.asks_cluster() {
            let hint = "add --record FILE, or leave it out";
            global.cluster.must_be_absent("without --record no cluster is asked", hint)?;
        }
        let module = Module::find(self.policy.as_deref())?;
        let case = self.case()?;
        let dev = DevPolicy::start(global, ui, &module, Metering::Fuel)?;
        check_settings(&dev, &case)?;
        let source = self.source(global, &dev)?;
        let recording = Arc::new(Recording::new(source.lookup()));
        let conditions = Conditions {
            lookup: Some(Arc::clone(&recording) as Arc<dyn Lookup>),
            limits: self.limits.or_of_project(Path::new("."))?.limits(),
            meter: dev.meter()?,
        };
        let judged = dev.block_on(cases::judge(&dev.policy, &case, &conditions));
        let report = judged.map_err(|error| {
            let message = "the object cannot be handed to a policy";
            Failure::new(Exit::Usage, "unreadable-object", message, "").because(&error)
        })?;
        if !report.reached {
            return Err(not_concerned(&dev, &case));
        }
        source.finish(&dev, ui)?;
        let record = recording.record();
        let answer = PolicyRun::new(&dev.policy, &module, &report, &record);
        let width = ui.layout().width;
        ui.answer(&answer, |out| answer.write(width, out))?;
        Ok(match answer.outcome {
            Outcome::Allow | Outcome::Warn if answer.problems.is_empty() => Exit::Done,
            _ => Exit::Findings,
        })
    }

    fn case(&self) -> Result<Case, Failure> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(objects::one).transpose();
        let operation = self.operation.map(|operation| match operation {
            OperationFlag::Create => Operation::Create,
            OperationFlag::Update => Operation::Update,
            OperationFlag::Delete => Operation::Delete,
        });
        Ok(Case {
            description: String::new(),
            settings: settings(self.settings.as_deref())?,
            request: CaseRequest {
                operation,
                subresource: self.subresource.clone().unwrap_or_default(),
                user: self.request_user.clone().unwrap_or_default(),
                groups: self.request_group.clone(),
                dry_run: self.request_dry_run,
                ..CaseRequest::default()
            },
            object: read(&self.filename)?,
            old_object: read(&self.old)?,
            cluster: Vec::new(),
            expect: Expected::default(),
            remedy: None,
        })
    }

    fn source(&self, global: &Global, dev: &DevPolicy) -> Result<Source, Failure> {
        if let Some(path) = &self.replay {
            return Ok(Source::Replay(Arc::new(Replay::new(recorded(path)?))));
        }
        if let Some(path) = &self.record {
            let indexes = &dev.policy.metadata().indexes;
            let objects = dev.block_on(async {
                let client = global.client().await?;
                cluster::objects(client, indexes).await
            })?;
            let recording = Recording::new(Arc::new(Documents::new(objects)));
            return Ok(Source::Recording(Arc::new(recording), path.clone()));
        }
        if self.objects.is_empty() {
            return Ok(Source::Plain(Arc::new(NoLookup)));
        }
        let mut found = Vec::new();
        for path in &self.objects {
            found.extend(objects::all(path)?);
        }
        Ok(Source::Plain(Arc::new(Documents::new(found))))
    }
}

impl Source {
    fn lookup(&self) -> Arc<dyn Lookup> {
        match self {
            Self::Plain(lookup) => Arc::clone(lookup),
            Self::Recording(recording, _) => Arc::clone(recording) as Arc<dyn Lookup>,
            Self::Replay(replay) => Arc::clone(replay) as Arc<dyn Lookup>,
        }
    }

    /// Keeps what was recorded; refuses what a record did not have.
    fn finish(&self, dev: &DevPolicy, ui: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Recording(recording, path) => keep(dev, recording.record(), path, ui),
            Self::Replay(replay) => match replay.missing().as_slice() {
                [] => Ok(()),
                missing => {
                    let message = format!("the record lacks the lookup {}", missing.join(", "));
                    let hint = "record it again: policy run --record FILE";
                    Err(Failure::new(Exit::Usage, "not-in-record", message, hint))
                }
            },
        }
    }
}

/// The policy's settings in a file; `{}` without one.
pub(super) fn settings(path: Option<&Path>) -> Result<Value, Failure> {
    match path {
        Some(path) => objects::mapping(path),
        None => Ok(Value::Object(serde_json::Map::new())),
    }
}

fn recorded(path: &Path) -> Result<Record, Failure> {
    let refused = |error: &dyn std::error::Error| {
        let message = format!("{} is not a record of lookups", path.display());
        let hint = "make one: kubectl opensdn policy run --record FILE";
        Failure::new(Exit::Usage, "unreadable-file", message, hint).because(error)
    };
    let text = objects::text(path)?;
    let file: RecordFile = serde_json::from_str(&text).map_err(|error| refused(&error))?;
    if file.api_version == API_VERSION && file.kind == RECORD_KIND {
        return Ok(Record { calls: file.calls });
    }
    let message = format!("{} is a {} of {}", path.display(), file.kind, file.api_version);
    let hint = format!("needed is a {RECORD_KIND} of {API_VERSION}");
    Err(Failure::new(Exit::Usage, "unreadable-file", message, hint))
}

fn keep(dev: &DevPolicy, record: Record, path: &Path, ui: &mut Ui) -> Result<(), Failure> {
    let secrets = record.calls.iter().any(|call| call.index.kind == "Secret");
    let file = RecordFile {
        api_version: API_VERSION.to_owned(),
        kind: RECORD_KIND.to_owned(),
        policy: dev.policy.digest().to_string(),
        calls: record.calls,
    };
    let failed = |error: &dyn std::error::Error| {
        let message = format!("{} cannot be written", path.display());
        Failure::new(Exit::Usage, "unwritable-file", message, "choose another place").because(error)
    };
    let mut text = serde_json::to_string_pretty(&file).map_err(|error| failed(&error))?;
    text.push('\n');
    write_private(path, &text).map_err(|error| failed(&error))?;
    let number = file.calls.len();
    ui.note(&format!("{number} lookups written to {}", path.display()));
    if secrets {
        ui.warn(&format!("{} holds what the policy reads of Secrets", path.display()));
    }
    Ok(())
}

/// Parts of a cluster are not for other users' eyes.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn check_settings(dev: &DevPolicy, case: &Case) -> Result<(), Failure> {
    let problems = dev.policy.check_settings(&case.settings);
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!("the settings do not fit {}", dev.policy.metadata().name);
    let hint = "what it takes: kubectl opensdn policy inspect";
    let mut failure = Failure::new(Exit::Usage, "bad-settings", message, hint);
    failure.causes = problems;
    Err(failure)
}

fn not_concerned(dev: &DevPolicy, case: &Case) -> Failure {
    let object = case.object.as_ref().or(case.old_object.as_ref());
    let text = |key: &str| {
        let value = object.and_then(|object| object.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let metadata = dev.policy.metadata();
    let message = format!(
        "{} is not about this request for {} {}, and was not asked",
        metadata.name,
        text("apiVersion"),
        text("kind")
    );
    let mut kinds: Vec<String> = metadata
        .interests
        .iter()
        .map(|interest| {
            let operations: Vec<String> =
                interest.operations.iter().map(|one| format!("{one:?}").to_uppercase()).collect();
            let group = if interest.group.is_empty() { "the core group" } else { &interest.group };
            format!("{} of {group} ({})", interest.kind, operations.join(", "))
        })
        .collect();
    kinds.dedup();
    let hint = format!("it is about {}", kinds.join("; "));
    Failure::new(Exit::Usage, "not-concerned", message, hint)
}
