//! The report of `policy test` as JUnit's XML, which CI systems show.

use std::io::{self, Write};

use opensdn_validate::junit::{Case, Outcome, Problem, Suite, write_suite};

use super::test_report::{CaseAnswer, CaseResult, PolicyTest};

/// Writes the report. A message without a case is a failed case named `coverage`.
pub(crate) fn write(report: &PolicyTest, out: &mut dyn Write) -> io::Result<()> {
    let name = report.policy_name();
    let mut cases: Vec<Case> = report.cases.iter().map(|one| case(name, one)).collect();
    let uncovered = report.uncovered();
    if !uncovered.is_empty() {
        let message = format!("no case gives {}", uncovered.join(", "));
        cases.push(Case {
            class: name.to_owned(),
            name: "coverage".to_owned(),
            place: None,
            seconds: None,
            outcome: Outcome::Failed(Problem { message, ..Problem::default() }),
        });
    }
    write_suite(&Suite { name: name.to_owned(), cases }, out)
}

fn case(policy: &str, case: &CaseAnswer) -> Case {
    let problem = || Problem {
        kind: None,
        message: case.problems.first().cloned().unwrap_or_default(),
        text: case.problems.join("\n"),
    };
    let outcome = match case.result {
        CaseResult::Passed | CaseResult::Updated => Outcome::Passed,
        CaseResult::Failed => Outcome::Failed(problem()),
        CaseResult::Unreadable => Outcome::Error(problem()),
    };
    Case {
        class: policy.to_owned(),
        name: case.file.clone(),
        place: None,
        seconds: Some(case.microseconds() / 1e6),
        outcome,
    }
}
