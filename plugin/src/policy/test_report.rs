//! What `policy test` answers: the cases one by one, and which messages of the policy they give.

use std::collections::BTreeSet;
use std::io::{self, Write};

use opensdn_policy_host::Policy;
use opensdn_policy_host::cases::{Case, Report};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{CostAnswer, FindingAnswer, Identity, Outcome, count, place, time};
use super::case_files::CaseFile;
use super::reference::Module;
use crate::exit::Exit;
use crate::output::Answer;
use crate::ui::wrap;

/// What `policy test` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyTest {
    /// The policy.
    policy: Identity,
    /// Every case, in the order of the files.
    pub(crate) cases: Vec<CaseAnswer>,
    /// Which of the policy's messages the cases give.
    coverage: Coverage,
    /// Numbers of cases.
    pub(crate) summary: Summary,
}

impl Answer for PolicyTest {
    const KIND: &'static str = "PolicyTest";
}

/// What became of one case.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CaseAnswer {
    /// The file.
    pub(crate) file: String,
    /// Why the case matters.
    description: String,
    /// How it ended.
    pub(crate) result: CaseResult,
    /// What the policy said, in one word; absent where it was not asked.
    outcome: Option<Outcome>,
    /// What it found.
    findings: Vec<FindingAnswer>,
    /// What it cost.
    pub(crate) costs: Vec<CostAnswer>,
    /// Everything that is not as expected.
    pub(crate) problems: Vec<String>,
    #[serde(skip)]
    codes: BTreeSet<String>,
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CaseResult {
    /// The policy said what the case expects.
    Passed,
    /// It did not.
    Failed,
    /// It did not, and the case has been changed.
    Updated,
    /// The file is no case.
    Unreadable,
}

/// What besides passing cases is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// A case for each message.
    Coverage,
    /// Nothing.
    None,
}

/// Which of the policy's messages the cases give.
#[derive(Debug, Serialize, JsonSchema)]
struct Coverage {
    /// Codes that a case gives.
    reached: Vec<String>,
    /// Codes that none gives.
    missing: Vec<String>,
    /// Whether a missing one is a failure: not with a filter, nor with --no-coverage.
    required: bool,
}

/// Numbers of cases.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Summary {
    passed: usize,
    pub(crate) failed: usize,
    updated: usize,
    pub(crate) unreadable: usize,
}

fn codes(report: &Report) -> BTreeSet<String> {
    let found = report.verdict.findings.iter().map(|finding| finding.code.clone());
    found.chain(report.verdict.claims.iter().map(|claim| claim.code.clone())).collect()
}

impl CaseAnswer {
    /// Of a case that was run.
    pub(crate) fn judged(file: &CaseFile, case: &Case, report: &Report) -> Self {
        let passed = report.problems.is_empty();
        Self {
            file: file.name.clone(),
            description: case.description.clone(),
            result: if passed { CaseResult::Passed } else { CaseResult::Failed },
            outcome: Some(Outcome::of(report)),
            findings: report.verdict.findings.iter().map(FindingAnswer::from).collect(),
            costs: report.costs.iter().map(CostAnswer::of).collect(),
            problems: report.problems.clone(),
            codes: codes(report),
        }
    }

    /// Of a file that is no case.
    pub(crate) fn unreadable(file: &CaseFile, problem: String) -> Self {
        Self {
            file: file.name.clone(),
            description: String::new(),
            result: CaseResult::Unreadable,
            outcome: None,
            findings: Vec::new(),
            costs: Vec::new(),
            problems: vec![problem],
            codes: BTreeSet::new(),
        }
    }

    /// Time of all steps, in microseconds.
    pub(crate) fn microseconds(&self) -> f64 {
        self.costs.iter().map(|cost| cost.microseconds).sum()
    }

    fn fuel(&self) -> u64 {
        self.costs.iter().filter_map(|cost| cost.fuel).sum()
    }
}

fn coverage(policy: &Policy, cases: &[CaseAnswer], required: bool) -> Coverage {
    let declared = policy.metadata().messages.iter().map(|message| message.code.clone());
    let given = |code: &String| cases.iter().any(|case| case.codes.contains(code));
    let (reached, missing) = declared.partition(given);
    Coverage { reached, missing, required }
}

impl Summary {
    fn of(cases: &[CaseAnswer]) -> Self {
        let mut summary = Self::default();
        for case in cases {
            match case.result {
                CaseResult::Passed => summary.passed += 1,
                CaseResult::Failed => summary.failed += 1,
                CaseResult::Updated => summary.updated += 1,
                CaseResult::Unreadable => summary.unreadable += 1,
            }
        }
        summary
    }
}

impl PolicyTest {
    /// Of all cases. Where `required`, a message without a case is a failure.
    pub(crate) fn new(
        policy: &Policy,
        module: &Module,
        cases: Vec<CaseAnswer>,
        required: Requirement,
    ) -> Self {
        Self {
            policy: Identity::of(policy, module),
            coverage: coverage(policy, &cases, required == Requirement::Coverage),
            summary: Summary::of(&cases),
            cases,
        }
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        let uncovered = self.coverage.required && !self.coverage.missing.is_empty();
        if self.summary.unreadable > 0 {
            Exit::Usage
        } else if self.summary.failed > 0 || uncovered {
            Exit::Findings
        } else {
            Exit::Done
        }
    }

    /// The name of the policy.
    pub(crate) fn policy_name(&self) -> &str {
        &self.policy.name
    }

    /// What is missing, where that is a failure.
    pub(crate) fn uncovered(&self) -> &[String] {
        if self.coverage.required { &self.coverage.missing } else { &[] }
    }
}

/// For people.
pub(crate) fn write(report: &PolicyTest, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    for case in &report.cases {
        write_case(case, columns, out)?;
    }
    let Summary { passed, failed, updated, unreadable } = report.summary;
    let mut parts = vec![format!("{passed} passed")];
    for (number, word) in [(failed, "failed"), (updated, "updated"), (unreadable, "unreadable")] {
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    let Coverage { reached, missing, .. } = &report.coverage;
    let all = reached.len() + missing.len();
    let messages = if all == 1 { "message" } else { "messages" };
    let summary = parts.join(", ");
    writeln!(out, "{summary}; coverage: {} of {all} {messages} reached", reached.len())?;
    if !missing.is_empty() {
        writeln!(out, "no case gives {}", missing.join(", "))?;
    }
    Ok(())
}

/// First what is short, so that the columns are aligned.
fn write_case(case: &CaseAnswer, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let word = match (case.result, case.outcome) {
        (CaseResult::Passed, Some(outcome)) => outcome.word(),
        (CaseResult::Passed | CaseResult::Failed, _) => "FAILED",
        (CaseResult::Updated, _) => "updated",
        (CaseResult::Unreadable, _) => "UNREADABLE",
    };
    let (time, fuel) = if case.costs.is_empty() {
        (String::new(), String::new())
    } else {
        (time(case.microseconds()), format!("fuel {}", count(case.fuel())))
    };
    writeln!(out, "{word:10} {time:>9}  {fuel:10}  {}", case.file)?;
    if case.result == CaseResult::Passed {
        for FindingAnswer { code, pointer, .. } in &case.findings {
            writeln!(out, "    {code} at {}", place(pointer))?;
        }
    }
    for line in case.problems.iter().flat_map(|problem| wrap(problem, columns.saturating_sub(4))) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}
