//! Manifests judged as a cluster would judge them: texts, schemas and rules, policies, and the
//! documents as a set.
//!
//! ```text
//! names --inputs--> texts --read twice--> documents
//!   first:  parts that lookups want   --> table
//!           workloads of nested mode  --> what is wrong with them
//!   second: schema, policies          --> findings, claims --> conflicts --> report
//! ```
//!
//! Documents are read twice and never kept, so that memory depends on what is found. How findings
//! are written is in `report`. Deliberately not here: command lines, how a cluster is asked (only
//! what is asked of one, [`Cluster`]), and writing of files.

mod active_policies;
mod baseline;
mod claims;
mod cluster;
mod collector;
mod documents;
mod error;
mod fix;
mod inputs;
mod judge;
pub mod junit;
mod kustomize;
mod loader;
mod located;
mod nested;
pub mod report;
mod schemas;
mod stored;
mod suppress;
mod table;
mod twice;

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use opensdn_manifests::{Document, KubernetesVersion, Source, Sources, read};

pub use active_policies::Operator;
use active_policies::{Modules, PolicyOptions};
pub use cluster::{Answer, Cluster, Listed, ObjectName, Page};
use collector::Collector;
pub use documents::{Text, documents};
pub use error::{Category, Error};
pub use fix::validate_and_fix;
use inputs::{Input, Inputs};
use judge::{Judge, ReadPaths};
pub use loader::{Loader, ModuleError};
use located::{Located, of_text};
use nested::NestedFindings;
use opensdn_nested_workloads::{DocumentId, Lint};
use report::{Location, Step, ValidationReport};
use schemas::Schemas;
pub use stored::{WhatIf, WouldSay, what_if};
use table::Table;

/// What is to be validated, and how.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Files, folders, globs, `-`.
    pub names: Vec<PathBuf>,
    /// Modules and AdmissionPolicies, which add or replace.
    pub policies: Vec<PathBuf>,
    /// Settings by the name of the policy.
    pub settings: Option<PathBuf>,
    /// Who is to run the cluster.
    pub operator: Operator,
    /// A report whose findings are known.
    pub baseline: Option<PathBuf>,
    /// The version of Kubernetes whose rules count.
    pub as_of: Option<KubernetesVersion>,
    /// The namespace of objects that name none.
    pub namespace: Option<String>,
    /// Whether unknown kinds are errors.
    pub strict: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Validated {
    /// Everything that was found.
    pub report: ValidationReport,
    /// The texts that were read, in their order.
    pub files: Vec<String>,
    /// The files among them, by their numbers.
    pub paths: BTreeMap<usize, PathBuf>,
    /// Whether something that was named could not be read.
    pub unreadable: bool,
}

/// Validates, against a live cluster where one is given.
///
/// # Errors
/// A name matches nothing, a policy cannot be used, or the cluster does not answer. What
/// is wrong with the manifests is no error but in the report.
pub async fn validate(
    loader: Loader<'_>,
    task: &Task,
    cluster: Option<&dyn Cluster>,
) -> Result<Validated, Error> {
    let schemas = Schemas::built_in(task.as_of);
    let inputs = inputs::collect(&task.names)?;
    let options = PolicyOptions {
        policies: task.policies.clone(),
        settings: task.settings.clone(),
        operator: task.operator,
    };
    let active = active_policies::assemble(loader, &options).await?;
    let mut table = Table::of(&active.set);
    let mut modules = Modules::default();
    let nested = first_pass(&inputs, &schemas, &mut table, &mut modules);
    if let Some(cluster) = cluster {
        cluster::fill(&mut table, cluster).await?;
    }
    let judge = Judge {
        loader,
        active: &active,
        read_paths: ReadPaths::of(&active.set),
        schemas: &schemas,
        table: Arc::new(table),
        modules: &modules,
        nested: &nested,
        cluster,
        namespace: task.namespace.as_deref(),
        strict: task.strict,
        unanswered: Arc::default(),
    };
    let unanswered = Arc::clone(&judge.unanswered);
    let mut collector = Collector::default();
    second_pass(&inputs, &judge, &mut collector).await?;
    if let Some(cluster) = cluster {
        cluster::add_claims(&mut collector.claims, cluster).await?;
    }
    let mut validated = collector.finish(inputs, &active, &unanswered);
    if let Some(path) = &task.baseline {
        baseline::apply(path, &mut validated.report)?;
    }
    validated.report.settle();
    Ok(validated)
}

/// Reads every text once for what others will look up. What cannot be read is reported by
/// the second.
fn first_pass(
    inputs: &Inputs,
    schemas: &Schemas,
    table: &mut Table,
    modules: &mut Modules,
) -> NestedFindings {
    let mut lint = Lint::default();
    for input in &inputs.inputs {
        let mut number = 0;
        for source in sources(input).into_iter().flatten().flatten() {
            let parsed = read(&source);
            for document in parsed.documents {
                let id = DocumentId { text: input.number, document: number };
                nested::offer(&mut lint, id, &document, &parsed.problems);
                number += 1;
                let (group, kind) = group_and_kind(&document);
                modules.offer(&document.value);
                if table.wants(&group, &kind) {
                    table.add(&group, &kind, &schemas.as_stored(&document.value));
                }
            }
        }
    }
    NestedFindings::of(&lint)
}

async fn second_pass(
    inputs: &Inputs,
    judge: &Judge<'_>,
    collector: &mut Collector,
) -> Result<(), Error> {
    for input in &inputs.inputs {
        let sources = match sources(input) {
            Ok(sources) => sources,
            Err(error) => {
                collector.lose(input, &error);
                continue;
            }
        };
        let mut number = 0;
        for source in sources {
            match source {
                Ok(source) => {
                    number += judge_source((input, number), &source, judge, collector).await?;
                }
                Err(error) => collector.lose(input, &error),
            }
        }
    }
    Ok(())
}

/// Judges the documents of a source, whose first has this number in its text, and says how many they are.
async fn judge_source(
    (input, first): (&Input, usize),
    source: &Source,
    judge: &Judge<'_>,
    collector: &mut Collector,
) -> Result<usize, Error> {
    let (origin, file_number) = (input.origin, input.number);
    let parsed = read(source);
    for problem in parsed.problems {
        let place = match problem.span {
            Some(span) => Location::of_span(origin, file_number, source, span),
            None => Location::of_file(origin, source.name(), file_number),
        };
        collector.findings.push(of_text(place, problem, Step::Syntax));
    }
    for (document, number) in parsed.documents.iter().zip(first..) {
        let located = Located { document, source, origin, file_number, number };
        collector.take(judge.judge(located).await?);
    }
    Ok(parsed.documents.len())
}

fn sources(input: &Input) -> io::Result<Sources<BufReader<Box<dyn io::Read>>>> {
    Ok(Sources::new(input.name.clone(), BufReader::with_capacity(1 << 16, input.open()?)))
}

fn group_and_kind(document: &Document) -> (String, String) {
    let api_version = document.api_version().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), document.kind().unwrap_or_default().to_owned())
}
