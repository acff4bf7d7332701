//! Findings for people, each with its line and a caret under what is meant. One mistake at many
//! places of an object is written once, with all its places.

use std::io::{self, Write};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet,
    normalize_untrusted_str,
};

use opensdn_policy_host::is_unseen;

use super::layout::{Layout, wrap};
use super::location::{Excerpt, Location};
use super::mistakes::{Mistake, mistakes};
use super::{Fixed, Severity, ValidationReport};

/// What is before the text of a note: the gutter, `= note: `.
const NOTE_INDENT: usize = 16;

/// The text without anything that a terminal would obey.
#[must_use]
pub fn printable(text: &str) -> String {
    normalize_untrusted_str(text).chars().map(harmless).collect()
}

/// The same in one line: a line break cannot make a line of its own.
#[must_use]
pub fn one_line(text: &str) -> String {
    // Many blanks would end the line where it is wrapped.
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same with line breaks that are seen: no line begins with what a document says, which CI may take for a command.
#[must_use]
pub fn in_line(text: &str) -> String {
    printable(text).replace('\r', "\\r").replace('\n', "\\n")
}

/// Line breaks and tabs are text, too.
fn harmless(letter: char) -> char {
    let is_usual = ['\n', '\r', '\t'].contains(&letter);
    if is_unseen(letter) && !is_usual { char::REPLACEMENT_CHARACTER } else { letter }
}

/// Writes what was fixed, every finding, then what was suppressed.
pub fn write(report: &ValidationReport, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    let decor = if layout.unicode { DecorStyle::Unicode } else { DecorStyle::Ascii };
    // Whether colours are wanted is the stream's business, which strips them where they are not.
    let renderer = Renderer::styled().decor_style(decor).term_width(layout.width);
    for one in &report.fixed {
        writeln!(out, "{}", fixed(one))?;
    }
    if !report.fixed.is_empty() && !report.findings.is_empty() {
        writeln!(out)?;
    }
    for mistake in mistakes(&report.findings) {
        writeln!(out, "{}\n", renderer.render(&[group(&mistake, layout)]))?;
    }
    if !report.suppressed.is_empty() {
        writeln!(out, "suppressed:")?;
    }
    for finding in &report.suppressed {
        let reason =
            finding.suppression.as_ref().map(|one| one.reason.as_str()).unwrap_or_default();
        let text = format!(
            "{}: {}: {} (because: {reason})",
            finding.place.text(),
            finding.code,
            finding.message
        );
        let lines = wrap(&in_line(&text), layout.width.saturating_sub(4));
        writeln!(out, "  {}", lines.join("\n    "))?;
    }
    Ok(())
}

fn group(mistake: &Mistake<'_>, layout: Layout) -> Group<'static> {
    let finding = mistake.first;
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let message = in_line(mistake.message);
    let headline = match finding.title.as_str() {
        "" => message.clone(),
        title => in_line(title),
    };
    let prefix = finding.code.len() + "warning[]: ".len();
    let headline = wrap(&headline, layout.width.saturating_sub(prefix)).join("\n");
    let label = (!finding.title.is_empty()).then_some(message.as_str());
    let fits = |label: &str| label_fits(&finding.place, label, layout.width);
    let below = label.filter(|label| !fits(label));
    let mut group = level.primary_title(headline).id(finding.code.clone()).elements(place(
        &finding.place,
        AnnotationKind::Primary,
        label.filter(|one| fits(one)),
    ));
    for related in &finding.related {
        let text = in_line(&related.message);
        let shown = label_fits(&related.place, &text, layout.width).then_some(text.as_str());
        group = group.elements(place(&related.place, AnnotationKind::Context, shown));
        if shown.is_none() {
            let text = format!("{}: {text}", in_line(&related.place.text()));
            group = group.element(Level::NOTE.message(note(&text, layout)));
        }
    }
    let message = below.map(|message| (Level::NOTE, message.to_owned()));
    let notes = message.into_iter().chain(notes(mistake));
    group.elements(notes.map(|(level, text)| level.message(note(&text, layout))))
}

/// What is below the lines of the source.
fn notes(mistake: &Mistake<'_>) -> Vec<(Level<'static>, String)> {
    let Mistake { first: finding, others, .. } = mistake;
    let mut notes = Vec::new();
    if !others.is_empty() {
        let places: Vec<String> = others.iter().map(|other| in_line(&other.place.text())).collect();
        notes.push((Level::NOTE.with_name("also at"), places.join("\n")));
    }
    if !finding.hint.is_empty() {
        notes.push((Level::HELP, in_line(&finding.hint)));
    }
    if let Some(object) = finding.object.as_ref().filter(|object| !object.name.is_empty()) {
        let field = finding.pointer.as_deref().filter(|pointer| !pointer.is_empty());
        let field = field.map(|pointer| format!(" {pointer}")).unwrap_or_default();
        let text = in_line(&format!("{object}{field}"));
        notes.push((Level::NOTE.with_name("object"), text));
    }
    if let Some(policy) = &finding.policy {
        let digest = policy.digest.get(.."sha256:".len() + 12).unwrap_or(&policy.digest);
        let text = format!("{} {} ({digest})", policy.name, policy.version);
        notes.push((Level::NOTE.with_name("policy"), in_line(&text)));
    }
    notes
}

fn note(text: &str, layout: Layout) -> String {
    wrap(&printable(text), layout.width.saturating_sub(NOTE_INDENT)).join("\n")
}

/// A place with its line, or without where there is none to show.
fn place(place: &Location, kind: AnnotationKind, label: Option<&str>) -> Vec<Element<'static>> {
    let path = in_line(&place.file);
    match (&place.excerpt, place.line) {
        (Some(excerpt), Some(line)) => {
            let mut annotation: Annotation<'static> = kind.span(span(excerpt));
            if let Some(label) = label {
                annotation = annotation.label(label.to_owned());
            }
            let snippet = Snippet::source(excerpt.line.clone())
                .line_start(line)
                .path(path)
                .annotation(annotation);
            vec![snippet.into()]
        }
        (_, line) => {
            let mut origin = Origin::path(path);
            if let Some(line) = line {
                origin = origin.line(line);
            }
            if let Some(column) = place.column {
                origin = origin.char_column(column);
            }
            vec![origin.into(), annotate_snippets::Padding.into()]
        }
    }
}

fn span(excerpt: &Excerpt) -> std::ops::Range<usize> {
    excerpt.start..excerpt.end
}

/// Whether the label ends before the right margin, behind the line's number and the carets.
fn label_fits(place: &Location, label: &str, width: usize) -> bool {
    let (Some(excerpt), Some(line)) = (&place.excerpt, place.line) else { return false };
    let gutter = line.to_string().len() + 3;
    let before = excerpt.line.get(..excerpt.end).unwrap_or_default();
    gutter + before.chars().count() + 1 + label.chars().count() <= width
}

/// What was fixed, in one line.
pub fn fixed(one: &Fixed) -> String {
    let Fixed { code, place, fix } = one;
    let text = format!("fixed {}: {} is {} now ({code})", place.text(), fix.before, fix.after);
    in_line(&text)
}

/// The last line for people: `3 errors, 1 warning in 6 files, 14 objects`.
pub fn summary(report: &ValidationReport, took: std::time::Duration) -> String {
    let summary = &report.summary;
    let mut text = format!(
        "{} in {}, {}, {}, {} ms",
        found(report),
        plural(summary.files, "file"),
        plural(summary.objects, "object"),
        plural(report.policies.len(), "policy"),
        took.as_millis()
    );
    if !report.fixed.is_empty() {
        text.push_str(&format!("; {} fixed", report.fixed.len()));
    }
    if summary.suppressed > 0 {
        text.push_str(&format!("; {} suppressed", summary.suppressed));
    }
    if summary.ignored > 0 {
        let objects = plural(summary.ignored, "object");
        text.push_str(&format!("; {objects} of other kinds ignored"));
    }
    text
}

/// `2 errors, 8 warnings at 31 places`: what people have to fix, and in how many places.
fn found(report: &ValidationReport) -> String {
    let mistakes = mistakes(&report.findings);
    let words =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "note")];
    let of = |severity| mistakes.iter().filter(|one| one.first.severity == severity).count();
    let counts = words.map(|(severity, word)| (of(severity), word));
    let found = counts.into_iter().filter(|(number, _)| *number > 0);
    let found: Vec<String> = found.map(|(number, word)| plural(number, word)).collect();
    match report.findings.len() {
        0 => "nothing found".to_owned(),
        places if places == mistakes.len() => found.join(", "),
        places => format!("{} at {places} places", found.join(", ")),
    }
}

fn plural(number: usize, word: &str) -> String {
    match (number, word.strip_suffix('y')) {
        (1, _) => format!("1 {word}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_or_does_not_show_is_printed() {
        let text = "a\u{1b}[31m\u{9b}2J\u{9d}0;t\u{200b}\u{202e}\u{feff}ä\n\tb";
        let printed = printable(text);
        assert!(
            printed.chars().all(|letter| !letter.is_control() || "\n\t".contains(letter)),
            "{printed:?}"
        );
        assert!(!printed.contains(['\u{200b}', '\u{202e}', '\u{feff}']), "{printed:?}");
        assert!(printed.contains('ä'));
        assert_eq!(one_line("a \n  do:   b"), "a do: b");
    }

    #[test]
    fn no_line_begins_with_what_a_document_says() {
        let named = "a\n::error::x";
        let place = Location { file: "f\r\n::error::f".to_owned(), ..Location::default() };
        let finding = super::super::Finding {
            code: "OSDN1303".to_owned(),
            severity: Severity::Error,
            step: super::super::Step::Schema,
            title: format!("title of {named}"),
            message: format!("message of {named}"),
            hint: format!(
                "hint of {named}, and much more that does not fit into a line with ::error::y"
            ),
            place,
            object: None,
            pointer: None,
            related: Vec::new(),
            policy: None,
            suppression: None,
            fix: None,
        };
        let report = ValidationReport { findings: vec![finding], ..ValidationReport::default() };
        let mut out = Vec::new();
        write(&report, Layout { width: 80, unicode: true }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("message of a\\n::error::x"), "{text}");
        let is_command = |line: &str| line.trim_start().starts_with("::");
        assert!(!text.lines().any(is_command), "{text}");
    }
}
