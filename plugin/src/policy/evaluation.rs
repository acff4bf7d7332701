//! What `policy run` answers: one evaluation with everything that the policy saw and said.

use std::io::{self, Write};

use opensdn_policy_host::cases::Report;
use opensdn_policy_host::lookup::{Answered, Record};
use opensdn_policy_host::{Policy, Seen};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{
    CostAnswer, FindingAnswer, Identity, Outcome, bytes, count, place, step_name, time,
};
use super::reference::Module;
use crate::output::Answer;
use crate::ui::wrap;

/// Characters of a value that people are shown.
const SHOWN: usize = 60;

/// One evaluation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyRun {
    /// The policy.
    policy: Identity,
    /// The answer in one word.
    pub(crate) outcome: Outcome,
    /// What it was handed, step by step.
    saw: Vec<SeenAnswer>,
    /// What it asked the cluster.
    look_ups: Vec<LookupAnswer>,
    /// What it found.
    findings: Vec<FindingAnswer>,
    /// What it wants to be unique.
    claims: Vec<ClaimAnswer>,
    /// What it wants changed, as a JSON Patch.
    patch: Value,
    /// Why there is no answer.
    failures: Vec<FailureAnswer>,
    /// What is wrong with its patch: it does not fit, or a second run wants another one.
    pub(crate) problems: Vec<String>,
    /// What it cost.
    costs: Vec<CostAnswer>,
}

impl Answer for PolicyRun {
    const KIND: &'static str = "PolicyRun";
}

/// What the policy was handed in one step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SeenAnswer {
    /// `mutate` or `validate`.
    step: &'static str,
    /// Parts of the object; absent on delete.
    object: Option<Vec<PartAnswer>>,
    /// Parts of the old object; absent on create.
    old_object: Option<Vec<PartAnswer>>,
}

/// A declared part.
#[derive(Debug, Serialize, JsonSchema)]
struct PartAnswer {
    /// JSON Pointer.
    pointer: String,
    /// Whether the object has it.
    present: bool,
    /// Its value.
    value: Value,
}

/// A question to the cluster and its answer.
#[derive(Debug, Serialize, JsonSchema)]
struct LookupAnswer {
    /// The policy's name of the index.
    index: String,
    /// Kind of the objects.
    kind: String,
    /// What was asked.
    question: String,
    /// Names of the objects that were found, with their namespaces.
    found: Vec<String>,
    /// Why there is no answer.
    error: Option<String>,
}

/// Something that must be unique.
#[derive(Debug, Serialize, JsonSchema)]
struct ClaimAnswer {
    scope: String,
    key: String,
    pointer: String,
    code: String,
}

/// Why there is no answer.
#[derive(Debug, Serialize, JsonSchema)]
struct FailureAnswer {
    /// One word: `trap`, `deadline`, `memory` …
    category: &'static str,
    message: String,
}

impl PolicyRun {
    pub(crate) fn new(policy: &Policy, module: &Module, report: &Report, record: &Record) -> Self {
        let claim = |claim: &opensdn_policy_host::Claim| ClaimAnswer {
            scope: claim.scope.clone(),
            key: claim.key.clone(),
            pointer: claim.pointer.clone(),
            code: claim.code.clone(),
        };
        let failures = report.mutation.failures.iter().chain(&report.verdict.failures);
        Self {
            policy: Identity::of(policy, module),
            outcome: Outcome::of(report),
            saw: report.seen.iter().map(seen).collect(),
            look_ups: record.calls.iter().map(look_up).collect(),
            findings: report.verdict.findings.iter().map(FindingAnswer::from).collect(),
            claims: report.verdict.claims.iter().map(claim).collect(),
            patch: json!(report.mutation.patch),
            failures: failures
                .map(|failure| FailureAnswer {
                    category: failure.reason.category(),
                    message: failure.reason.to_string(),
                })
                .collect(),
            problems: report.problems.clone(),
            costs: report.costs.iter().map(CostAnswer::of).collect(),
        }
    }

    /// For people.
    pub(crate) fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let Identity { name, version, .. } = &self.policy;
        writeln!(out, "{}  {name} {version}", self.outcome.word())?;
        self.write_said(width, out)?;
        for saw in &self.saw {
            for (title, parts) in [("object", &saw.object), ("old object", &saw.old_object)] {
                let Some(parts) = parts else { continue };
                writeln!(out, "\n{} saw of the {title}", saw.step)?;
                for part in parts {
                    writeln!(out, "  {}  {}", place(&part.pointer), shown(part))?;
                }
            }
        }
        if !self.look_ups.is_empty() {
            writeln!(out, "\nlooked up")?;
        }
        for LookupAnswer { index, kind, question, found, error } in &self.look_ups {
            let answer = match error {
                Some(error) => format!("no answer: {error}"),
                None if found.is_empty() => "nothing".to_owned(),
                None => found.join(", "),
            };
            writeln!(out, "  {index}  {kind} {question}: {answer}")?;
        }
        writeln!(out)?;
        for CostAnswer { step, fuel, microseconds, memory_bytes } in &self.costs {
            let fuel = fuel.map_or_else(|| "-".to_owned(), count);
            let (time, memory) = (time(*microseconds), bytes(*memory_bytes));
            writeln!(out, "{step}  {time}  fuel {fuel}  memory {memory} peak")?;
        }
        Ok(())
    }

    fn write_said(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        for FindingAnswer { code, severity, pointer, message, hint } in &self.findings {
            writeln!(out, "  {severity}  {code}  {}", place(pointer))?;
            for line in wrap(message, width.saturating_sub(6)) {
                writeln!(out, "      {line}")?;
            }
            for (number, line) in wrap(hint, width.saturating_sub(12)).iter().enumerate() {
                writeln!(out, "      {} {line}", if number == 0 { "hint:" } else { "     " })?;
            }
        }
        for ClaimAnswer { scope, key, pointer, .. } in &self.claims {
            writeln!(out, "  claims {scope} {key:?} at {}", place(pointer))?;
        }
        for operation in self.patch.as_array().into_iter().flatten() {
            writeln!(out, "  patch  {operation}")?;
        }
        for FailureAnswer { message, .. } in &self.failures {
            writeln!(out, "  no answer: {message}")?;
        }
        for problem in &self.problems {
            writeln!(out, "  problem: {problem}")?;
        }
        Ok(())
    }
}

fn seen(seen: &Seen) -> SeenAnswer {
    let part = |part: &opensdn_policy_host::Part| PartAnswer {
        pointer: part.pointer.clone(),
        present: part.text.is_some(),
        value: part
            .text
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default(),
    };
    let parts = |parts: &Option<Vec<opensdn_policy_host::Part>>| {
        parts.as_ref().map(|parts| parts.iter().map(part).collect())
    };
    SeenAnswer {
        step: step_name(seen.step),
        object: parts(&seen.object),
        old_object: parts(&seen.old_object),
    }
}

fn look_up(call: &opensdn_policy_host::lookup::Call) -> LookupAnswer {
    let (found, error) = match &call.answer {
        Answered::Found(objects) => {
            let name = |object: &opensdn_policy_host::lookup::FoundObject| {
                if object.namespace.is_empty() {
                    object.name.clone()
                } else {
                    format!("{}/{}", object.namespace, object.name)
                }
            };
            (objects.iter().map(name).collect(), None)
        }
        Answered::Error(error) => (Vec::new(), Some(error.clone())),
    };
    LookupAnswer {
        index: call.index.name.clone(),
        kind: call.index.kind.clone(),
        question: call.question.to_string(),
        found,
        error,
    }
}

/// A value in one line.
fn shown(part: &PartAnswer) -> String {
    if !part.present {
        return "(absent)".to_owned();
    }
    let text = part.value.to_string();
    if text.chars().count() <= SHOWN {
        return text;
    }
    let beginning: String = text.chars().take(SHOWN).collect();
    format!("{beginning}... ({} bytes)", text.len())
}
