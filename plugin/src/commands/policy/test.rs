//! `policy test`: the cases of a policy against its component.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use opensdn_policy_host::cases::{self, Case, Conditions, Report};
use opensdn_policy_host::{Limits, Meter, Metering};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::{CheckedFormat, CheckedOutput};
use crate::policy::case_files::{self, CaseFile};
use crate::policy::dev_policy::{DevPolicy, LimitFlags};
use crate::policy::junit;
use crate::policy::reference::Module;
use crate::policy::test_report::{self, CaseAnswer, CaseResult, PolicyTest, Requirement};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # In a policy's project: all cases in cases/ against build/NAME.wasm
  kubectl opensdn policy test

  # Only some, and take what the policy says now as what it has to say
  kubectl opensdn policy test --filter no-owner --update

  # A policy that comes with the product, with your own cases
  kubectl opensdn policy test even-quorum --cases our-cases/";

/// Arguments of `policy test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Test {
    /// The policy: a file, a built-in policy's name[@version] or sha256:PREFIX [default: the
    /// component in build/].
    #[arg(value_name = "POLICY", add = crate::completion::policies())]
    policy: Option<String>,
    /// Files or folders of cases [default: cases/ of the policy's project].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, num_args = 1..)]
    cases: Vec<PathBuf>,
    /// Only cases with this text in the name of their file.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Write what the policy says into the cases that fail; only `expect` is rewritten.
    #[arg(long)]
    update: bool,
    /// Do not fail where a message of the policy has no case.
    #[arg(long)]
    no_coverage: bool,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    output: CheckedOutput,
}

impl Test {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let module = Module::find(self.policy.as_deref())?;
        let files = self.chosen(case_files::find(&self.cases, &module)?)?;
        let dev = DevPolicy::start(global, ui, &module, Metering::Fuel)?;
        let tester = Tester {
            dev: &dev,
            limits: self.limits.or_of_project(Path::new("."))?.limits(),
            meter: dev.meter()?,
            update: self.update,
        };
        let cases: Vec<CaseAnswer> = files.iter().map(|file| tester.test(file)).collect();
        let partial = self.no_coverage || self.filter.is_some();
        let required = if partial { Requirement::None } else { Requirement::Coverage };
        let report = PolicyTest::new(&dev.policy, &module, cases, required);
        let columns = ui.layout().width;
        match self.output.output {
            CheckedFormat::Junit => ui.write(|out| junit::write(&report, out))?,
            _ => ui.answer(&report, |out| test_report::write(&report, columns, out))?,
        }
        Ok(report.exit())
    }

    fn chosen(&self, files: Vec<CaseFile>) -> Result<Vec<CaseFile>, Failure> {
        let Some(part) = &self.filter else { return Ok(files) };
        let chosen: Vec<_> = files.into_iter().filter(|file| file.name.contains(part)).collect();
        if chosen.is_empty() {
            let message = format!("no case has {part:?} in the name of its file");
            let hint = "leave --filter out to see all cases";
            return Err(Failure::new(Exit::Usage, "no-cases", message, hint));
        }
        Ok(chosen)
    }
}

/// Runs cases.
struct Tester<'t> {
    dev: &'t DevPolicy,
    limits: Limits,
    meter: Meter,
    update: bool,
}

impl Tester<'_> {
    fn test(&self, file: &CaseFile) -> CaseAnswer {
        let case = match file.case() {
            Ok(case) => case,
            Err(error) => return CaseAnswer::unreadable(file, error),
        };
        let defaults = Conditions::default();
        // More time than in the webhook, on a machine that does other things too; the fuel shows
        // more about how long it takes.
        let time = self.limits.time.max(defaults.limits.time);
        let limits = Limits { time, ..self.limits };
        let conditions = Conditions { limits, meter: self.meter.clone(), ..defaults };
        let run = cases::run_under(&self.dev.policy, &case, &conditions);
        match self.dev.block_on(run) {
            Ok(report) => self.judged(file, &case, &report),
            Err(error) => CaseAnswer::unreadable(file, error.to_string()),
        }
    }

    fn judged(&self, file: &CaseFile, case: &Case, report: &Report) -> CaseAnswer {
        let mut answer = CaseAnswer::judged(file, case, report);
        if self.update && answer.result == CaseResult::Failed {
            self.accept(file, case, report, &mut answer);
        }
        answer
    }

    /// What cannot be expected (settings that do not fit, a patch that is not idempotent) stays a
    /// failure: it is asked again whether the case passes with its new expectation.
    fn accept(&self, file: &CaseFile, case: &Case, report: &Report, answer: &mut CaseAnswer) {
        let expect = case.expect.accepting(report);
        let accepted = Case { expect, ..case.clone() };
        let conditions = Conditions {
            limits: Limits { time: Conditions::default().limits.time, ..self.limits },
            ..Conditions::default()
        };
        let again = self.dev.block_on(cases::run_under(&self.dev.policy, &accepted, &conditions));
        if !again.is_ok_and(|report| report.problems.is_empty()) {
            answer.problems.push("not updated: this is not a matter of what is expected".into());
            return;
        }
        match case_files::accept(file, &accepted.expect) {
            Ok(()) => answer.result = CaseResult::Updated,
            Err(error) => answer.problems.push(format!("not updated: {error}")),
        }
    }
}
