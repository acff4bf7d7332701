//! `policy inspect`: what a reviewer wants to know before a module is trusted.

use std::io::{self, Write};

use clap::Args;
use opensdn_error_chain::error_chain;
use opensdn_policy_host::{Index, Interest, Message, Metadata, Policy, Step};
use opensdn_validate::ModuleError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::policy::answer::{bytes, place, severity, step_name};
use crate::policy::module_info::{Form, ModuleInfo};
use crate::policy::reference::Module;
use crate::runtime::Runtime;
use crate::ui::{Ui, wrap};

const EXAMPLES: &str = "\
Examples:
  # What may this module know and do?
  kubectl opensdn policy inspect build/mine.wasm

  # For a program
  kubectl opensdn policy inspect even-quorum -o json";

/// Arguments of `policy inspect`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// The policy: a file, a built-in policy's name[@version] or sha256:PREFIX [default: the
    /// component in build/].
    #[arg(value_name = "POLICY", add = crate::completion::policies())]
    policy: Option<String>,
    #[command(flatten)]
    _output: Output,
}

/// What `policy inspect` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyInspection {
    /// The file, or `built-in` and its name.
    source: String,
    /// `sha256:` and the digits of the bytes.
    digest: String,
    /// Bytes.
    size: usize,
    /// The world that it fits; absent if it fits none.
    world: Option<&'static str>,
    /// What the bytes show of themselves.
    #[serde(flatten)]
    info: ModuleInfo,
    /// What it says of itself; absent if it cannot.
    description: Option<Description>,
    /// One word for why it is refused.
    fault: Option<&'static str>,
}

impl Answer for PolicyInspection {
    const KIND: &'static str = "PolicyInspection";
}

/// What a policy says of itself.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Description {
    name: String,
    version: String,
    summary: String,
    /// Whether it changes objects.
    mutates: bool,
    /// Whether it can want something to be unique.
    claims: bool,
    /// The kinds it is about, and what it reads of them.
    interests: Vec<InterestAnswer>,
    /// What it looks up in the cluster.
    look_ups: Vec<LookUpAnswer>,
    /// What it can say.
    messages: Vec<MessageAnswer>,
    /// JSON Schema of its settings.
    settings_schema: Value,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InterestAnswer {
    /// `mutate` or `validate`.
    step: &'static str,
    group: String,
    kind: String,
    operations: Vec<String>,
    /// JSON Pointers; `""` is everything.
    reads: Vec<String>,
    /// Whether it reads everything.
    reads_whole_object: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LookUpAnswer {
    index: String,
    group: String,
    kind: String,
    /// Where an object's keys are.
    key: String,
    /// What it gets to know of an object.
    reads: Vec<String>,
    /// Whether that is everything.
    reads_whole_object: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MessageAnswer {
    code: String,
    severity: &'static str,
    title: String,
}

impl Inspect {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let module = Module::find(self.policy.as_deref())?;
        let runtime = Runtime::start(global)?;
        let loaded = runtime.load(&module.bytes, None)?;
        let info = runtime.block_on(ModuleInfo::by_process(runtime.process(), &module.bytes));
        let inspection = PolicyInspection::of(&module, info, &loaded);
        let width = ui.layout().width;
        ui.answer(&inspection, |out| inspection.write(width, out))?;
        Ok(if loaded.is_ok() { Exit::Done } else { Exit::Findings })
    }
}

impl PolicyInspection {
    fn of(module: &Module, mut info: ModuleInfo, loaded: &Result<Policy, ModuleError>) -> Self {
        if let Err(error) = loaded {
            // What the bytes show is clearer than what the linker says; what a policy says of
            // itself, and what it takes to compile it, only shows when that is done.
            let hint = error.hint().map(|hint| format!("{}; {hint}", error_chain(error)));
            if hint.is_some() || info.problems.is_empty() {
                info.problems.insert(0, hint.unwrap_or_else(|| error_chain(error)));
            }
        }
        Self {
            source: module.origin.to_string(),
            digest: module.digest().to_string(),
            size: module.bytes.len(),
            world: loaded.is_ok().then_some("opensdn:policy/policy@1.0.0"),
            info,
            description: loaded.as_ref().ok().map(|policy| Description::of(policy.metadata())),
            fault: loaded.as_ref().err().map(ModuleError::fault),
        }
    }

    fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        match &self.description {
            Some(Description { name, version, summary, .. }) => {
                writeln!(out, "{name} {version}: {summary}\n")?;
            }
            None => writeln!(out, "{} is not a policy\n", self.source)?,
        }
        for problem in &self.info.problems {
            for (number, line) in wrap(problem, width.saturating_sub(10)).iter().enumerate() {
                let title = if number == 0 { "problem" } else { "" };
                writeln!(out, "{title:8}  {line}")?;
            }
        }
        writeln!(out, "source    {}", self.source)?;
        writeln!(out, "digest    {}", self.digest)?;
        writeln!(out, "size      {}", bytes(self.size))?;
        writeln!(out, "world     {}", self.world.unwrap_or("does not fit"))?;
        if self.info.form == Form::Component {
            writeln!(out, "imports   {}", list(&self.info.imports))?;
            writeln!(out, "exports   {}", list(&self.info.exports))?;
        }
        let producers = self.info.producers.iter();
        let producers: Vec<String> =
            producers.map(|one| format!("{} {}", one.name, one.version)).collect();
        let producers = match producers.as_slice() {
            [] => "it does not say".to_owned(),
            producers => format!("{} (as it says)", producers.join(", ")),
        };
        writeln!(out, "made by   {producers}")?;
        match &self.description {
            Some(description) => description.write(out),
            None => Ok(()),
        }
    }
}

impl Description {
    fn of(metadata: &Metadata) -> Self {
        Self {
            name: metadata.name.clone(),
            version: metadata.version.clone(),
            summary: metadata.summary.clone(),
            mutates: metadata.has(Step::Mutate),
            claims: metadata.claims,
            interests: metadata.interests.iter().map(InterestAnswer::from).collect(),
            look_ups: metadata.indexes.iter().map(LookUpAnswer::from).collect(),
            messages: metadata.messages.iter().map(MessageAnswer::from).collect(),
            settings_schema: metadata.settings_schema.clone(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let yes = |yes: bool| if yes { "yes" } else { "no" };
        writeln!(out, "mutates   {}", yes(self.mutates))?;
        writeln!(out, "claims    {}", yes(self.claims))?;
        writeln!(out, "\nis asked about, and reads")?;
        for interest in &self.interests {
            let InterestAnswer { step, group, kind, operations, .. } = interest;
            let group = if group.is_empty() { "the core group" } else { group };
            writeln!(out, "  {step} {kind} of {group} ({})", operations.join(", "))?;
            write_reads(&interest.reads, out)?;
        }
        if !self.look_ups.is_empty() {
            writeln!(out, "\nlooks up in the cluster, and reads")?;
        }
        for LookUpAnswer { index, group, kind, key, reads, .. } in &self.look_ups {
            let group = if group.is_empty() { "the core group" } else { group };
            writeln!(out, "  {index}: {kind} of {group} by {}", by(key))?;
            write_reads(reads, out)?;
        }
        writeln!(out, "\ncan say")?;
        for MessageAnswer { code, severity, title } in &self.messages {
            writeln!(out, "  {code}  {severity:4}  {title}")?;
        }
        writeln!(out, "\nsettings")?;
        self.write_settings(out)
    }

    fn write_settings(&self, out: &mut dyn Write) -> io::Result<()> {
        let properties = self.settings_schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return writeln!(out, "  none");
        };
        for (name, schema) in properties {
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            writeln!(out, "  {name}  {}", about.lines().next().unwrap_or_default())?;
        }
        Ok(())
    }
}

fn write_reads(reads: &[String], out: &mut dyn Write) -> io::Result<()> {
    for pointer in reads {
        writeln!(out, "    {}", place(pointer))?;
    }
    Ok(())
}

fn by(key: &str) -> &str {
    if key.is_empty() { "nothing: all of them" } else { key }
}

fn list(words: &[String]) -> String {
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

impl From<&Interest> for InterestAnswer {
    fn from(interest: &Interest) -> Self {
        let operations = interest.operations.iter();
        Self {
            step: step_name(interest.step),
            group: interest.group.clone(),
            kind: interest.kind.clone(),
            operations: operations.map(|one| format!("{one:?}").to_uppercase()).collect(),
            reads: interest.reads.clone(),
            reads_whole_object: interest.reads.iter().any(String::is_empty),
        }
    }
}

impl From<&Index> for LookUpAnswer {
    fn from(index: &Index) -> Self {
        Self {
            index: index.name.clone(),
            group: index.group.clone(),
            kind: index.kind.clone(),
            key: index.key.clone(),
            reads: index.reads.clone(),
            reads_whole_object: index.reads.iter().any(String::is_empty),
        }
    }
}

impl From<&Message> for MessageAnswer {
    fn from(message: &Message) -> Self {
        Self {
            code: message.code.clone(),
            severity: severity(message.severity),
            title: message.title.clone(),
        }
    }
}
