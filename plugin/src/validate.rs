//! Manifests judged as a cluster would judge them: texts, schemas and rules, policies, and the
//! documents as a set.
//!
//! ```text
//! names --inputs--> texts --read twice--> documents
//!   first:  parts that look-ups want  --> table
//!   second: schema, policies          --> findings, claims --> conflicts --> report
//! ```
//!
//! Documents are read twice and kept never, so that memory depends on what is found. How findings
//! are written is in `report`; the command line is in `commands/validate.rs`.

mod baseline;
mod claims;
mod fix;
mod inputs;
mod judge;
mod kustomize;
mod live;
mod policies;
mod schemas;
mod suppress;
mod table;
mod written;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use opensdn_manifests::{Document, KubernetesVersion, Source, Sources, read};

use crate::exit::Failure;
use crate::report::{Finding, NotChecked, Place, Severity, Step, ValidationReport, codes};
use crate::runtime::Runtime;
use claims::Claims;
pub(crate) use fix::validate_and_fix;
use inputs::{Input, Inputs};
use judge::{Judge, Judged, Lens};
use live::Live;
use policies::{Choice, InForce, Modules};
use schemas::Schemas;
use table::Table;
use written::{Written, of_text};

/// What is to be validated, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    /// Files, folders, globs, `-`.
    pub(crate) names: Vec<PathBuf>,
    /// Modules and AdmissionPolicies, which add or replace.
    pub(crate) policies: Vec<PathBuf>,
    /// Settings by the name of the policy.
    pub(crate) settings: Option<PathBuf>,
    /// A report whose findings are known.
    pub(crate) baseline: Option<PathBuf>,
    /// The version of Kubernetes whose rules count.
    pub(crate) as_of: Option<KubernetesVersion>,
    /// The namespace of objects that name none.
    pub(crate) namespace: Option<String>,
    /// Whether unknown kinds are errors.
    pub(crate) strict: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Validated {
    /// Everything that was found.
    pub(crate) report: ValidationReport,
    /// The texts that were read, in their order.
    pub(crate) files: Vec<String>,
    /// The files among them, by their numbers.
    pub(crate) paths: BTreeMap<usize, PathBuf>,
    /// Whether something that was named could not be read.
    pub(crate) unreadable: bool,
}

/// Validates. `client` asks the living cluster, where the user wants that.
///
/// # Errors
/// What was named stands for nothing, a policy cannot be put in force, or the cluster does not
/// answer. What is wrong with the manifests is no error but in the report.
pub(crate) fn validate(
    runtime: &Runtime,
    task: &Task,
    client: Option<Client>,
) -> Result<Validated, Failure> {
    let schemas = Schemas::built_in(task.as_of);
    let inputs = inputs::collect(&task.names)?;
    let choice = Choice { policies: task.policies.clone(), settings: task.settings.clone() };
    let in_force = policies::assemble(runtime, &choice)?;
    let live = client.map(Live::new);
    let mut table = Table::of(&in_force.set);
    let mut modules = Modules::default();
    first_pass(&inputs, &schemas, &mut table, &mut modules);
    if let Some(live) = &live {
        runtime.block_on(live.fill(&mut table))?;
    }
    let judge = Judge {
        runtime,
        in_force: &in_force,
        lens: Lens::of(&in_force.set),
        schemas: &schemas,
        table: Arc::new(table),
        modules: &modules,
        live: live.as_ref(),
        namespace: task.namespace.as_deref(),
        strict: task.strict,
        blind: Arc::default(),
    };
    let blind = Arc::clone(&judge.blind);
    let mut gathered = Gathered::default();
    second_pass(&inputs, &judge, &mut gathered)?;
    if let Some(live) = &live {
        runtime.block_on(live.add_claims(&mut gathered.claims))?;
    }
    let mut validated = gathered.finish(inputs, &in_force, &blind);
    if let Some(path) = &task.baseline {
        baseline::apply(path, &mut validated.report)?;
    }
    validated.report.settle();
    Ok(validated)
}

/// Reads every text once for what others will look up. What cannot be read is told by the second.
fn first_pass(inputs: &Inputs, schemas: &Schemas, table: &mut Table, modules: &mut Modules) {
    for input in &inputs.inputs {
        for source in sources(input).into_iter().flatten().flatten() {
            for document in read(&source).documents {
                let (group, kind) = group_and_kind(&document);
                modules.offer(&document.value);
                if table.wants(&group, &kind) {
                    table.add(&group, &kind, &schemas.as_stored(&document.value));
                }
            }
        }
    }
}

fn second_pass(inputs: &Inputs, judge: &Judge<'_>, gathered: &mut Gathered) -> Result<(), Failure> {
    for input in &inputs.inputs {
        let sources = match sources(input) {
            Ok(sources) => sources,
            Err(error) => {
                gathered.lose(input, &error);
                continue;
            }
        };
        for source in sources {
            match source {
                Ok(source) => judge_source(input, &source, judge, gathered)?,
                Err(error) => gathered.lose(input, &error),
            }
        }
    }
    Ok(())
}

fn judge_source(
    input: &Input,
    source: &Source,
    judge: &Judge<'_>,
    gathered: &mut Gathered,
) -> Result<(), Failure> {
    let (origin, file_number) = (input.origin, input.number);
    let parsed = read(source);
    for problem in parsed.problems {
        let place = match problem.span {
            Some(span) => Place::of_span(origin, file_number, source, span),
            None => Place::of_file(origin, source.name(), file_number),
        };
        gathered.findings.push(of_text(place, problem, Step::Syntax));
    }
    for document in &parsed.documents {
        let written = Written { document, source, origin, file_number };
        gathered.take(judge.judge(written)?);
    }
    Ok(())
}

fn sources(input: &Input) -> io::Result<Sources<BufReader<Box<dyn io::Read>>>> {
    Ok(Sources::new(input.name.clone(), BufReader::with_capacity(1 << 16, input.open()?)))
}

fn group_and_kind(document: &Document) -> (String, String) {
    let api_version = document.api_version().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), document.kind().unwrap_or_default().to_owned())
}

/// What has been found so far.
#[derive(Default)]
struct Gathered {
    findings: Vec<Finding>,
    not_checked: Vec<NotChecked>,
    claims: Claims,
    objects: usize,
    ignored: usize,
    unreadable: bool,
}

impl Gathered {
    fn take(&mut self, judged: Judged) {
        let Judged { object, identity, place, findings, claims, not_checked, ignored } = judged;
        if ignored {
            self.ignored += 1;
        } else {
            self.objects += 1;
        }
        self.findings.extend(findings);
        self.not_checked.extend(not_checked);
        // An object without a name gets one from the API server; without a kind it is none.
        if object.name.is_empty() || object.kind.is_empty() {
            claims.into_iter().for_each(|claimant| self.claims.add(claimant));
            return;
        }
        match self.claims.define(identity, &object, place) {
            // Its claims are those of the first, so only that it is there twice is worth telling.
            Some(twice) => self.findings.push(twice),
            None => claims.into_iter().for_each(|claimant| self.claims.add(claimant)),
        }
    }

    /// A text that was there a moment ago.
    fn lose(&mut self, input: &Input, error: &io::Error) {
        let (message, hint) = inputs::explain(&input.name, error);
        let place = Place::of_file(input.origin, input.name.clone(), input.number);
        self.findings.push(unreadable(place, message, hint));
        self.unreadable = true;
    }

    fn finish(
        mut self,
        inputs: Inputs,
        in_force: &InForce,
        blind: &Mutex<BTreeSet<String>>,
    ) -> Validated {
        self.findings.extend(self.claims.conflicts());
        let Inputs { inputs, unreadable: lost, not_checked, .. } = inputs;
        let unreadable = self.unreadable || !lost.is_empty();
        for one in lost {
            self.findings.push(self::unreadable(one.place, one.message, one.hint));
        }
        self.not_checked.extend(not_checked);
        let blind: Vec<String> =
            blind.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        if !blind.is_empty() {
            self.not_checked.push(NotChecked {
                what: format!("what policies look up of {}", blind.join(", ")),
                why: "the documents have none; --live asks the cluster".to_owned(),
            });
        }
        let (suppressed, findings) =
            self.findings.into_iter().partition(|one| one.suppression.is_some());
        let mut report = ValidationReport {
            findings,
            suppressed,
            not_checked: self.not_checked,
            policies: in_force.ids.values().cloned().collect(),
            ..ValidationReport::default()
        };
        report.summary.files = inputs.len();
        report.summary.objects = self.objects;
        report.summary.ignored = self.ignored;
        let paths = inputs.iter().filter_map(|one| Some((one.number, one.path()?.to_owned())));
        let paths = paths.collect();
        let files = inputs.into_iter().map(|input| input.name).collect();
        Validated { report, files, paths, unreadable }
    }
}

fn unreadable(place: Place, message: String, hint: String) -> Finding {
    Finding {
        code: codes::UNREADABLE.to_owned(),
        severity: Severity::Error,
        step: Step::Syntax,
        title: String::new(),
        message,
        hint,
        object: None,
        pointer: None,
        place,
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}
