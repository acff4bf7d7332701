//! `explain`: what a code means, and the schema of what a command answers; both without a cluster.

use std::ffi::OsStr;
use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalogue::{self, Explanation, Finder, Meaning, Severity};
use crate::exit::{Exit, Failure};
use crate::output::Answer;
use crate::schemas;
use crate::ui::{Layout, Ui, style, wrap};

const EXAMPLES: &str = "\
Examples:
  # Why was my manifest refused, and what can I do?
  kubectl opensdn explain OSDN1202

  # Every code there is
  kubectl opensdn explain

  # The JSON Schema of what `version -o json` answers
  kubectl opensdn explain --schema Versions

The codes of a policy that is not built in are in its module: kubectl opensdn policy explain.";

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The codes, such as OSDN1202, 1202, schema-type, or the id of a check; without one all are listed.
    #[arg(value_name = "CODE", add = ArgValueCompleter::new(codes))]
    codes: Vec<String>,
    /// Print the JSON Schema of this kind of answer instead.
    #[arg(long, value_name = "KIND", conflicts_with_all = ["codes", "output"], add = ArgValueCompleter::new(kinds))]
    schema: Option<String>,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How codes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// The codes alone, one a line.
    Name,
}

/// What `explain` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explanations {
    /// By code.
    explanations: Vec<Explanation>,
}

impl Answer for Explanations {
    const KIND: &'static str = "Explanations";
}

impl Explain {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        if let Some(kind) = &self.schema {
            return print_schema(kind, ui);
        }
        let all = catalogue::all();
        let answer = Explanations {
            explanations: if self.codes.is_empty() { all } else { chosen(&self.codes, all)? },
        };
        let layout = ui.layout();
        let each = &answer.explanations;
        match self.output {
            Format::Name => {
                ui.write(|out| each.iter().try_for_each(|one| writeln!(out, "{}", one.code)))?
            }
            _ if self.codes.is_empty() => ui.answer(&answer, |out| list(each, layout, out))?,
            _ => ui.answer(&answer, |out| {
                each.iter().enumerate().try_for_each(|(at, one)| {
                    if at > 0 {
                        writeln!(out)?;
                    }
                    describe(one, layout, out)
                })
            })?,
        }
        Ok(Exit::Done)
    }
}

fn print_schema(kind: &str, ui: &mut Ui) -> Result<Exit, Failure> {
    let Some(published) = schemas::PUBLISHED.iter().find(|one| one.kind.eq_ignore_ascii_case(kind))
    else {
        let kinds: Vec<&str> = schemas::PUBLISHED.iter().map(|one| one.kind).collect();
        let hint = format!("there are: {}", kinds.join(", "));
        return Err(Failure::usage(format!("no command answers with a {kind}"), hint));
    };
    ui.write(|out| {
        serde_json::to_writer_pretty(&mut *out, &published.schema())?;
        writeln!(out)
    })?;
    Ok(Exit::Done)
}

/// The explanations asked for, in the order asked.
fn chosen(codes: &[String], all: Vec<Explanation>) -> Result<Vec<Explanation>, Failure> {
    codes
        .iter()
        .map(|text| {
            let code = catalogue::normalized(text);
            all.iter().find(|one| one.code == code).cloned().ok_or_else(|| unknown(text, &all))
        })
        .collect()
}

fn unknown(text: &str, all: &[Explanation]) -> Failure {
    let nearest = catalogue::nearest(&catalogue::normalized(text), all);
    let list = "all codes: kubectl opensdn explain; those of your own policies: policy explain";
    let hint = match nearest.as_slice() {
        [] => list.to_owned(),
        [one] => format!("did you mean {one}? {list}"),
        [before @ .., last] => format!("did you mean {} or {last}? {list}", before.join(", ")),
    };
    Failure::new(Exit::Usage, "unknown-code", format!("there is no code {text}"), hint)
}

fn list(all: &[Explanation], layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    let strong = style::STRONG;
    let numbered = |code: &str| code.starts_with("OSDN");
    // Those without a number are longer, and are in columns of their own.
    let width = |code: &str| {
        let alike = all.iter().filter(|one| numbered(&one.code) == numbered(code));
        alike.map(|one| one.code.len()).max().unwrap_or_default()
    };
    for Explanation { code, meanings } in all {
        for meaning in meanings {
            let severity = word(meaning.severity);
            let width = width(code);
            let indent = width + 8;
            let mut lines = wrap(&meaning.title, layout.width.saturating_sub(indent)).into_iter();
            let first = lines.next().unwrap_or_default();
            writeln!(out, "{strong}{code:<width$}{strong:#}  {severity:<4}  {first}")?;
            for line in lines {
                writeln!(out, "{:indent$}{line}", "")?;
            }
        }
    }
    Ok(())
}

fn describe(explanation: &Explanation, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    for (at, meaning) in explanation.meanings.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let (strong, code) = (style::STRONG, &explanation.code);
        let severity = match meaning.severity {
            Severity::Deny => style::ERROR,
            Severity::Warn => style::WARNING,
            Severity::Info => style::STRONG,
        };
        let word = word(meaning.severity);
        writeln!(
            out,
            "{strong}{code}{strong:#}  {severity}{word}{severity:#}  {}",
            finder(meaning)
        )?;
        paragraph("", &meaning.title, layout, out)?;
        paragraph("why: ", &meaning.why, layout, out)?;
        paragraph("do:  ", &meaning.remedy, layout, out)?;
        for rule in &meaning.rules {
            writeln!(out)?;
            paragraph("rule: ", &rule.message, layout, out)?;
            paragraph("for:  ", &rule.fields, layout, out)?;
        }
        for (number, source) in meaning.sources.iter().enumerate() {
            paragraph(if number == 0 { "see: " } else { "     " }, source, layout, out)?;
        }
    }
    Ok(())
}

fn paragraph(label: &str, text: &str, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    const INDENT: usize = 2;
    let room = layout.width.saturating_sub(INDENT + label.len());
    let mut label = label.to_owned();
    for line in wrap(text, room) {
        writeln!(out, "{:INDENT$}{label}{line}", "")?;
        label = " ".repeat(label.len());
    }
    Ok(())
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Deny => "deny",
        Severity::Warn => "warn",
        Severity::Info => "info",
    }
}

fn finder(meaning: &Meaning) -> String {
    match meaning.found_by {
        Finder::Policy => {
            format!("by the policy {}", meaning.policy.as_deref().unwrap_or_default())
        }
        Finder::Schema => "by the schema, in the API server".to_owned(),
        Finder::AdmissionPolicy => "by the webhook, about an AdmissionPolicy".to_owned(),
        Finder::Validate => "by validate, of a text, a schema or a set of documents".to_owned(),
        Finder::Check => "by check, of a cluster: what has to be so".to_owned(),
        Finder::NestedSetup => {
            "by nested registry-secret and nested insecure-registry, of what pods and nodes need to pull".to_owned()
        }
        Finder::NestedPlan => "by nested plan, of a nested cluster and its cloud".to_owned(),
        Finder::NestedVerify => "by nested verify, of a nested cluster that is set up".to_owned(),
        Finder::Upgrade => "by upgrade plan and by the operator, of an upgrade".to_owned(),
    }
}

fn codes(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy().to_ascii_uppercase();
    let fits = |code: &str| code.to_ascii_uppercase().starts_with(&current);
    let fitting = catalogue::all().into_iter().filter(|one| fits(&one.code));
    fitting
        .map(|one| {
            let title = one.meanings.into_iter().next().map(|meaning| meaning.title.into());
            CompletionCandidate::new(one.code).help(title)
        })
        .collect()
}

fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let kinds = schemas::PUBLISHED.iter().map(|one| one.kind);
    kinds.filter(|kind| kind.starts_with(current.as_ref())).map(CompletionCandidate::new).collect()
}
