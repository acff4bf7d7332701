//! `policy bench`: what evaluations cost, against the limits and an earlier result.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use opensdn_policy_host::cases::{self, Case, Conditions, Report};
use opensdn_policy_host::{Cost, Limits, Metering, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::{API_VERSION, Answer, Output};
use crate::policy::answer::{Identity, bytes, count, short, step_name, time};
use crate::policy::case_files::{self, CaseFile};
use crate::policy::dev_policy::{DevPolicy, LimitFlags};
use crate::policy::measurement::{Change, Measurement, Trend};
use crate::policy::objects;
use crate::policy::reference::Module;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Every case of a project
  kubectl opensdn policy bench

  # Is it slower than it was? Exit code 1 if so.
  kubectl opensdn policy bench -o json > before.json
  kubectl opensdn policy bench --compare before.json";

/// The longest that one request is measured.
const BUDGET: Duration = Duration::from_secs(5);
/// Runs before anything is measured.
const WARM_UP: usize = 20;

/// Arguments of `policy bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// The policy: a file, a built-in policy's name[@version] or sha256:PREFIX [default: the
    /// component in build/].
    #[arg(value_name = "POLICY", add = crate::completion::policies())]
    policy: Option<String>,
    /// Files or folders of cases whose requests are measured [default: cases/ of the project].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, num_args = 1.., conflicts_with = "filename")]
    cases: Vec<PathBuf>,
    /// Measure the creation of this object instead.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    filename: Option<PathBuf>,
    /// Files with the objects that answer its lookups.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, num_args = 1.., requires = "filename")]
    objects: Vec<PathBuf>,
    /// Runs of each request; fewer where they take longer than 5 seconds.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    samples: u32,
    /// An earlier answer (-o json) to compare with.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    compare: Option<PathBuf>,
    /// What a change may be beyond the noise before it counts.
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000))]
    tolerance: u32,
    /// Do not fail where something is slower or beyond a limit.
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    _output: Output,
}

/// What `policy bench` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyBench {
    /// The policy.
    policy: Identity,
    /// Every request and step.
    measurements: Vec<Measurement>,
    /// Cases in which the policy gives no answer; how long that takes is not measured.
    skipped: Vec<String>,
    /// Milliseconds that an evaluation may take.
    time_limit_milliseconds: u64,
    /// Memory that an evaluation may take.
    memory_limit_bytes: usize,
    /// What is beyond a limit.
    exceeded: Vec<String>,
    /// The digest of the policy that it is compared with.
    compared_with: Option<String>,
    /// What has changed.
    changes: Vec<Change>,
}

impl Answer for PolicyBench {
    const KIND: &'static str = "PolicyBench";
}

/// What an earlier answer has to hold.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Earlier {
    api_version: String,
    kind: String,
    policy: Identity,
    measurements: Vec<Measurement>,
}

impl Bench {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let module = Module::find(self.policy.as_deref())?;
        let earlier = self.compare.as_deref().map(earlier).transpose()?;
        let requests = self.requests(&module)?;
        let limits = self.limits.or_of_project(Path::new("."))?.limits();
        let timed = DevPolicy::start(global, ui, &module, Metering::Time)?;
        let fuelled = DevPolicy::start(global, ui, &module, Metering::Fuel)?;
        let mut measurements = Vec::new();
        let mut skipped = Vec::new();
        for (name, case) in &requests {
            ui.progress(&format!("measuring {name}"));
            let measured = self.measure(name, case, limits, &timed, &fuelled)?;
            if measured.is_empty() {
                skipped.push(name.clone());
            }
            measurements.extend(measured);
        }
        if measurements.is_empty() {
            let message = "the policy answers none of the requests, so nothing is measured";
            let hint = "see why: kubectl opensdn policy test, or policy run";
            return Err(Failure::new(Exit::Findings, "no-answer", message, hint));
        }
        let tolerance = f64::from(self.tolerance);
        let answer = PolicyBench {
            policy: Identity::of(&timed.policy, &module),
            exceeded: exceeded(&measurements, limits),
            changes: changes(&measurements, earlier.as_ref(), tolerance),
            compared_with: earlier.map(|earlier| earlier.policy.digest),
            time_limit_milliseconds: u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
            memory_limit_bytes: limits.memory,
            skipped,
            measurements,
        };
        ui.answer(&answer, |out| answer.write(out))?;
        Ok(if answer.is_good() || self.exit_zero { Exit::Done } else { Exit::Findings })
    }

    /// The requests and their names.
    fn requests(&self, module: &Module) -> Result<Vec<(String, Case)>, Failure> {
        if let Some(path) = &self.filename {
            let mut cluster = Vec::new();
            for path in &self.objects {
                cluster.extend(objects::all(path)?);
            }
            let case = Case { object: Some(objects::one(path)?), cluster, ..Case::default() };
            return Ok(vec![(path.display().to_string(), case)]);
        }
        let read = |file: CaseFile| match file.case() {
            Ok(case) => Ok((file.name, case)),
            Err(error) => {
                let message = format!("{} is not a case: {error}", file.name);
                Err(Failure::new(Exit::Usage, "unreadable-file", message, "fix or remove it"))
            }
        };
        case_files::find(&self.cases, module)?.into_iter().map(read).collect()
    }

    /// Nothing if the policy gives no answer.
    fn measure(
        &self,
        name: &str,
        case: &Case,
        limits: Limits,
        timed: &DevPolicy,
        fuelled: &DevPolicy,
    ) -> Result<Vec<Measurement>, Failure> {
        let generous =
            Limits { time: Conditions::default().limits.time.max(limits.time), ..limits };
        let counted = judge(fuelled, case, generous)?;
        if !counted.verdict.failures.is_empty() || !counted.mutation.failures.is_empty() {
            return Ok(Vec::new());
        }
        let samples = usize::try_from(self.samples).unwrap_or(usize::MAX);
        let mut costs: Vec<(Step, Cost)> = Vec::new();
        let started = Instant::now();
        for number in 0..samples.saturating_add(WARM_UP) {
            let report = judge(timed, case, generous)?;
            if number >= WARM_UP {
                costs.extend(report.costs);
            }
            if started.elapsed() > BUDGET && number > 2 * WARM_UP {
                break;
            }
        }
        let of_step = |step: Step| {
            let costs: Vec<Cost> =
                costs.iter().filter(|(one, _)| *one == step).map(|(_, cost)| *cost).collect();
            let fuel = counted.costs.iter().find(|(one, _)| *one == step);
            Measurement::of(name, step_name(step), &costs, fuel.and_then(|(_, cost)| cost.fuel))
        };
        Ok([Step::Mutate, Step::Validate].into_iter().filter_map(of_step).collect())
    }
}

fn judge(dev: &DevPolicy, case: &Case, limits: Limits) -> Result<Report, Failure> {
    let conditions = Conditions { limits, meter: dev.meter()?, ..Conditions::default() };
    dev.block_on(cases::judge(&dev.policy, case, &conditions)).map_err(|error| {
        let message = "the object cannot be handed to a policy";
        Failure::new(Exit::Usage, "unreadable-object", message, "").because(&error)
    })
}

fn earlier(path: &Path) -> Result<Earlier, Failure> {
    let hint = "make one: kubectl opensdn policy bench -o json";
    let message = format!("{} is not an answer of policy bench", path.display());
    let refused = || Failure::new(Exit::Usage, "unreadable-file", message.clone(), hint);
    let earlier: Earlier =
        serde_json::from_str(&objects::text(path)?).map_err(|error| refused().because(&error))?;
    if earlier.api_version != API_VERSION || earlier.kind != PolicyBench::KIND {
        return Err(refused());
    }
    Ok(earlier)
}

fn exceeded(measurements: &[Measurement], limits: Limits) -> Vec<String> {
    let time_limit = limits.time.as_secs_f64() * 1e6;
    let mut exceeded = Vec::new();
    for Measurement { request, step, evaluate, memory_bytes, .. } in measurements {
        if evaluate.p99_microseconds > time_limit {
            let (took, limit) = (time(evaluate.p99_microseconds), time(time_limit));
            exceeded.push(format!("{request} {step}: p99 {took}, the limit is {limit}"));
        }
        if *memory_bytes > limits.memory {
            let (took, limit) = (bytes(*memory_bytes), bytes(limits.memory));
            exceeded.push(format!("{request} {step}: memory {took}, the limit is {limit}"));
        }
    }
    exceeded
}

fn changes(now: &[Measurement], earlier: Option<&Earlier>, tolerance: f64) -> Vec<Change> {
    let then = earlier.map(|earlier| earlier.measurements.as_slice()).unwrap_or_default();
    let change = |measured: &Measurement| {
        let is_same =
            |other: &&Measurement| other.request == measured.request && other.step == measured.step;
        then.iter().find(is_same).map(|before| measured.since(before, tolerance))
    };
    now.iter().filter_map(change).collect()
}

impl PolicyBench {
    fn is_good(&self) -> bool {
        let worse = |change: &Change| change.time == Trend::Worse || change.fuel == Trend::Worse;
        self.exceeded.is_empty() && !self.changes.iter().any(worse)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for measured in &self.measurements {
            let Measurement { request, step, instantiate, evaluate, .. } = measured;
            writeln!(out, "{request}")?;
            writeln!(
                out,
                "  instantiate {}  {step} p50 {} p99 {}  noise {:.0} %  fuel {}  memory {} peak",
                time(instantiate.p50_microseconds),
                time(evaluate.p50_microseconds),
                time(evaluate.p99_microseconds),
                measured.noise_percent,
                measured.fuel.map_or_else(|| "-".to_owned(), count),
                bytes(measured.memory_bytes),
            )?;
        }
        for name in &self.skipped {
            writeln!(out, "{name}\n  not measured: the policy gives no answer")?;
        }
        let limit = bytes(self.memory_limit_bytes);
        writeln!(out, "limits: {} ms / {limit}", self.time_limit_milliseconds)?;
        for text in &self.exceeded {
            writeln!(out, "BEYOND THE LIMIT  {text}")?;
        }
        self.write_changes(out)
    }

    fn write_changes(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(digest) = &self.compared_with else { return Ok(()) };
        writeln!(out, "\ncompared with {}", short(digest))?;
        if self.changes.is_empty() {
            writeln!(out, "  nothing: none of the requests was measured then")?;
        }
        for change in &self.changes {
            let Change { request, step, time_percent, threshold_percent, .. } = change;
            let fuel = match change.fuel_percent {
                Some(percent) => format!("{percent:+.1} % {}", change.fuel.word()),
                None => "not counted".to_owned(),
            };
            let word = change.time.word();
            writeln!(
                out,
                "  {request} {step}: time {time_percent:+.1} % {word} (noise {threshold_percent:.1} %), fuel {fuel}",
            )?;
        }
        Ok(())
    }
}
