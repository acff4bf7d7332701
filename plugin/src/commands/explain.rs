//! `explain`: what a code means, what a field of our custom resources is, and the schema of what a command answers; all
//! without a cluster.

use std::cell::LazyCell;
use std::ffi::OsStr;
use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalogue::{self, Explanation, Finder, Meaning, Severity};
use crate::exit::{Exit, Failure};
use crate::fields::{self, Depth, FieldExplanation, Kinds, Missing};
use crate::output::Answer;
use crate::schemas;
use crate::ui::{Layout, Ui, style, wrap};

const EXAMPLES: &str = "\
Examples:
  # Why was my manifest refused, and what can I do?
  kubectl opensdn explain OSDN1202

  # What does this field do, and what may stand in it? (kind, plural or short name)
  kubectl opensdn explain manager.spec.services.config.spec.serviceConfiguration.apiPort

  # All fields of a kind, as a tree
  kubectl opensdn explain vrouter --recursive

  # Every code there is
  kubectl opensdn explain

  # The JSON Schema of what `version -o json` answers
  kubectl opensdn explain --schema Versions

The codes of a policy that is not built in are in its module: kubectl opensdn policy explain.";

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// Codes, such as OSDN1202, 1202, schema-type, or the id of a check; or fields of our custom resources, such as
    /// vrouter.spec. Without one all codes are listed.
    #[arg(value_name = "CODE|FIELD", add = ArgValueCompleter::new(words))]
    words: Vec<String>,
    /// Show the fields of fields, too.
    #[arg(long, requires = "words")]
    recursive: bool,
    /// Print the JSON Schema of this kind of answer instead.
    #[arg(long, value_name = "KIND", conflicts_with_all = ["words", "output"], add = ArgValueCompleter::new(kinds))]
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
    /// The fields that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldExplanation>,
}

impl Answer for Explanations {
    const KIND: &'static str = "Explanations";
}

impl Explain {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        if let Some(kind) = &self.schema {
            return print_schema(kind, ui);
        }
        let depth = if self.recursive { Depth::All } else { Depth::One };
        let all = catalogue::all();
        let (answer, both) = match self.words.as_slice() {
            [] => (Explanations { explanations: all, fields: Vec::new() }, Vec::new()),
            words => chosen(words, &all, &LazyCell::new(Kinds::built_in), depth)?,
        };
        for word in both {
            ui.note(&format!("{word} is a code and a kind: both are explained"));
        }
        let layout = ui.layout();
        match self.output {
            Format::Name => {
                ui.write(|out| answer.names().try_for_each(|name| writeln!(out, "{name}")))?
            }
            _ if self.words.is_empty() => {
                ui.answer(&answer, |out| list(&answer.explanations, layout, out))?;
            }
            _ => ui.answer(&answer, |out| answer.write(depth, layout, out))?,
        }
        Ok(Exit::Done)
    }
}

impl Explanations {
    /// Codes, and the paths of fields.
    fn names(&self) -> impl Iterator<Item = &str> {
        let codes = self.explanations.iter().map(|one| one.code.as_str());
        codes.chain(self.fields.iter().map(|one| one.field.path.as_str()))
    }

    fn write(&self, depth: Depth, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        for (at, one) in self.explanations.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            describe(one, layout, out)?;
        }
        for (at, one) in self.fields.iter().enumerate() {
            if at + self.explanations.len() > 0 {
                writeln!(out)?;
            }
            fields::describe(one, depth, layout, out)?;
        }
        Ok(())
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

/// What was asked for, in the order asked: codes, then fields. What is both is in both, and named.
fn chosen<'w>(
    words: &'w [String],
    all: &[Explanation],
    kinds: &LazyCell<Kinds>,
    depth: Depth,
) -> Result<(Explanations, Vec<&'w str>), Failure> {
    let mut chosen = Explanations { explanations: Vec::new(), fields: Vec::new() };
    let mut both = Vec::new();
    for word in words {
        let code = catalogue::normalized(word);
        let known = all.iter().find(|one| one.code == code);
        chosen.explanations.extend(known.cloned());
        // To read the schemas takes longer than all the rest.
        if known.is_some() && !may_be_kind(word) {
            continue;
        }
        match kinds.explain(word, depth) {
            Ok(field) => {
                chosen.fields.push(field);
                both.extend(known.map(|_| word.as_str()));
            }
            Err(_) if known.is_some() => {}
            Err(missing) => return Err(unknown(word, all, (missing, kinds))),
        }
    }
    Ok((chosen, both))
}

/// Whether a kind could be called so.
fn may_be_kind(word: &str) -> bool {
    let first = word.split('.').next().unwrap_or_default();
    first.chars().all(|letter| letter.is_ascii_alphabetic())
}

fn unknown(word: &str, all: &[Explanation], (missing, kinds): (Missing, &Kinds)) -> Failure {
    let mut hints = missing.hint();
    match missing {
        Missing::Field { parent, name, has_fields, .. } => {
            let message = match has_fields {
                true => format!("{parent} has no field {name}"),
                false => format!("{parent} has no fields, so none that is called {name}"),
            };
            hints.push(format!("what there is: kubectl opensdn explain {parent}"));
            Failure::new(Exit::Usage, "unknown-field", message, sentences(&hints))
        }
        Missing::Kind { word: first, nearest, .. } if word.contains('.') => {
            // What the field is called says nothing of the kind that is meant.
            hints.truncate(usize::from(!nearest.is_empty()));
            hints.push(format!("there are: {}", kinds.words().join(", ")));
            let message = format!("none of our custom resources is a {first}");
            Failure::new(Exit::Usage, "unknown-kind", message, sentences(&hints))
        }
        Missing::Kind { .. } => no_code(word, all, hints),
    }
}

fn no_code(word: &str, all: &[Explanation], mut meant: Vec<String>) -> Failure {
    let nearest = catalogue::nearest(&catalogue::normalized(word), all);
    let is_code = word.to_ascii_uppercase().starts_with("OSDN")
        || word.starts_with(|first: char| first.is_ascii_digit());
    if is_code {
        meant.clear();
    }
    let code = match nearest.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean {one}?")),
        [before @ .., last] => Some(format!("did you mean {} or {last}?", before.join(", "))),
    };
    let list = "all codes: kubectl opensdn explain; those of your own policies: policy explain";
    let hints: Vec<String> = code.into_iter().chain(meant).chain([list.to_owned()]).collect();
    let what = if is_code { "code" } else { "code or kind" };
    let message = format!("there is no {what} {word}");
    Failure::new(Exit::Usage, "unknown-code", message, sentences(&hints))
}

/// One after the other; after a question there is its mark.
fn sentences(all: &[String]) -> String {
    all.join("; ").replace("?; ", "? ")
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
            let severity = meaning.severity.word();
            let width = width(code);
            let indent = width + 9;
            let mut lines = wrap(&meaning.title, layout.width.saturating_sub(indent)).into_iter();
            let first = lines.next().unwrap_or_default();
            writeln!(out, "{strong}{code:<width$}{strong:#}  {severity:<5}  {first}")?;
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
            Severity::Deny | Severity::Fatal => style::ERROR,
            Severity::Warn => style::WARNING,
            Severity::Info => style::STRONG,
        };
        let word = meaning.severity.word();
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

fn words(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let upper = typed.to_ascii_uppercase();
    let fits = |code: &str| code.to_ascii_uppercase().starts_with(&upper);
    let codes = catalogue::all().into_iter().filter(|one| fits(&one.code)).map(|one| {
        let title = one.meanings.into_iter().next().map(|meaning| meaning.title.into());
        CompletionCandidate::new(one.code).help(title)
    });
    let fields = match may_be_kind(&typed) {
        true => Kinds::built_in().beginning_with(&typed),
        false => Vec::new(),
    };
    let fields = fields
        .into_iter()
        .map(|(path, said)| CompletionCandidate::new(path).help(Some(said.into())));
    codes.chain(fields).collect()
}

fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let kinds = schemas::PUBLISHED.iter().map(|one| one.kind);
    kinds.filter(|kind| kind.starts_with(current.as_ref())).map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_code_and_a_kind_is_explained_as_both() {
        let explanation = Explanation { code: "redis".to_owned(), meanings: Vec::new() };
        let kinds: LazyCell<Kinds> = LazyCell::new(Kinds::built_in);
        let words = ["redis".to_owned(), "OSDN4001".to_owned()];
        let mut all = catalogue::all();
        let (found, both) = chosen(&words, &all, &kinds, Depth::One).unwrap();
        assert_eq!((found.explanations.len(), found.fields.len(), both.len()), (1, 1, 0));
        all.push(explanation);
        let (found, both) = chosen(&words, &all, &kinds, Depth::One).unwrap();
        assert_eq!((found.explanations.len(), found.fields.len()), (2, 1));
        assert_eq!(both, ["redis"]);
    }
}
