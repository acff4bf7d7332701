//! Fixes in the file what is wrong and has one right form: the name of a field, the case of a
//! value. Only the bytes that are wrong change; comments and everything else stay. What is right is
//! the schema's to say (`opensdn_manifests`).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use opensdn_manifests::{Problem, Source, read_limited_text};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::inputs::{MOST_IN_MEMORY, shown};
use crate::loader::Loader;
use crate::report::{Finding, Fix, Fixed, Location, Origin};
use crate::{Task, Validated, validate};

/// A name that is fixed may show that something within is wrong; no schema is as deep as this.
const ROUNDS: usize = 32;

/// The fix of a problem, where the text is one that can be changed without a doubt.
pub(super) fn of_problem(source: &Source, problem: &Problem) -> Option<Fix> {
    let (right, span) = (problem.fix.as_deref()?, problem.span?);
    // A change of what an anchor holds would change it for every alias.
    if has_alias(source.text()) || !is_word(right) {
        return None;
    }
    let before = source.text().get(span.start..span.end)?;
    let quoted = |quote| before.strip_prefix(quote)?.strip_suffix(quote);
    let after = if is_word(before) {
        right.to_owned()
    } else if quoted('"').is_some_and(is_word) {
        format!("\"{right}\"")
    } else if quoted('\'').is_some_and(is_word) {
        format!("'{right}'")
    } else {
        return None;
    };
    Some(Fix { before: before.to_owned(), after })
}

/// Whether YAML reads it as that text, in quotes or not.
fn is_word(text: &str) -> bool {
    let other = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|one| one.is_ascii_alphanumeric() || "_.-/".contains(one))
        && !other.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether there may be an alias. That a text or comment may look like one costs a fix only.
fn has_alias(text: &str) -> bool {
    let after_star = text.split('*').skip(1);
    after_star.into_iter().any(|rest| rest.starts_with(|one: char| !one.is_whitespace()))
}

/// Puts a text in the place of a file.
type Replace<'a> = &'a dyn Fn(&Path, &[u8]) -> io::Result<()>;

/// Validates, and puts right what can be, until nothing is left that can be. The report is about
/// the files as they then are. `replace` writes a file as a whole.
///
/// # Errors
/// As for [`validate`], or a file cannot be written.
pub async fn validate_and_fix(
    loader: Loader<'_>,
    task: &Task,
    cluster: Option<&dyn Cluster>,
    replace: Replace<'_>,
) -> Result<Validated, Error> {
    let mut fixed = Vec::new();
    let mut validated = validate(loader, task, cluster).await?;
    for _ in 0..ROUNDS {
        let now = apply(&validated, replace)?;
        if now.is_empty() {
            break;
        }
        fixed.extend(now);
        validated = validate(loader, task, cluster).await?;
    }
    validated.report.fixed = fixed;
    Ok(validated)
}

/// Writes the fixes of a report into its files.
fn apply(validated: &Validated, replace: Replace<'_>) -> Result<Vec<Fixed>, Error> {
    let mut by_file: BTreeMap<usize, Vec<(&Finding, &Fix)>> = BTreeMap::new();
    for finding in &validated.report.findings {
        let Some(fix) = finding.fix.as_ref().filter(|_| finding.place.origin == Origin::File)
        else {
            continue;
        };
        by_file.entry(finding.place.file_number).or_default().push((finding, fix));
    }
    let mut fixed = Vec::new();
    for (number, fixes) in by_file {
        if let Some(path) = validated.paths.get(&number) {
            fixed.extend(apply_to(path, &fixes, replace)?);
        }
    }
    Ok(fixed)
}

fn apply_to(
    path: &Path,
    fixes: &[(&Finding, &Fix)],
    replace: Replace<'_>,
) -> Result<Vec<Fixed>, Error> {
    // A file that has gone since, or is no text any more, is reported by the next round.
    let Ok(mut text) = read_limited_text(path, MOST_IN_MEMORY) else { return Ok(Vec::new()) };
    let mut edits: BTreeMap<usize, (&Finding, &Fix)> = BTreeMap::new();
    for (finding, fix) in fixes {
        let Some(at) = offset(&text, &finding.place) else { continue };
        if text.get(at..).is_some_and(|rest| rest.starts_with(&fix.before)) {
            edits.entry(at).or_insert((finding, fix));
        }
    }
    // From the end, so that what is in front stays where it is.
    for (at, (_, fix)) in edits.iter().rev() {
        text.replace_range(*at..at + fix.before.len(), &fix.after);
    }
    if edits.is_empty() {
        return Ok(Vec::new());
    }
    replace(path, text.as_bytes()).map_err(|error| {
        let message = format!("{} cannot be written", shown(path));
        let hint = "give yourself the right to write to the file and its folder";
        Error::input("unwritable-output", message, hint).because(&error)
    })?;
    let fixed = |(finding, fix): (&Finding, &Fix)| Fixed {
        code: finding.code.clone(),
        place: finding.place.clone(),
        fix: fix.clone(),
    };
    Ok(edits.into_values().map(fixed).collect())
}

/// The byte at the line and column of a place.
fn offset(text: &str, place: &Location) -> Option<usize> {
    let (line, column) = (place.line?, place.column?);
    let start = match line {
        0 => return None,
        1 => 0,
        line => text.match_indices('\n').nth(line - 2)?.0 + 1,
    };
    let mut characters =
        text.get(start..)?.char_indices().filter(|(_, character)| *character != '\u{feff}');
    Some(start + characters.nth(column.checked_sub(1)?)?.0)
}

#[cfg(test)]
mod tests {
    use opensdn_manifests::read;

    use super::*;
    use crate::schemas::compiled;

    /// What would be written in the place of what.
    fn fixes(text: &str) -> Vec<(String, String)> {
        let source = Source::new("f", text);
        let documents = read(&source).documents;
        let problems = documents.iter().flat_map(|document| compiled().check(document, None));
        let found = problems.filter_map(|problem| of_problem(&source, &problem));
        found.map(|fix| (fix.before, fix.after)).collect()
    }

    fn link_local(spec: &str) -> String {
        format!(
            "apiVersion: opensdn.io/v1alpha1\nkind: LinkLocalService\nmetadata: {{name: a}}\nspec: {spec}\n"
        )
    }

    #[track_caller]
    fn fixed(spec: &str, expected: &[(&str, &str)]) {
        let found = fixes(&link_local(spec));
        let found: Vec<(&str, &str)> =
            found.iter().map(|(before, after)| (before.as_str(), after.as_str())).collect();
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn a_field_with_one_near_name_gets_it_in_its_quotes() {
        fixed("{prot: 1}", &[("prot", "port")]);
        fixed("{\"prot\": 1}", &[("\"prot\"", "\"port\"")]);
        fixed("{'Port': 1}", &[("'Port'", "'port'")]);
        fixed("{fabrc: {adresses: []}}", &[("fabrc", "fabric")]);
    }

    #[test]
    fn a_value_in_the_wrong_case_gets_the_right_one() {
        let manager = |level: &str| {
            format!(
                "apiVersion: tf.tungsten.io/v1alpha1\nkind: Config\nmetadata: {{name: a}}\nspec: \
                 {{commonConfiguration: {{logLevel: {level}}}}}\n"
            )
        };
        let pair = |before: &str, after: &str| vec![(before.to_owned(), after.to_owned())];
        assert_eq!(fixes(&manager("Debug")), pair("Debug", "debug"));
        assert_eq!(fixes(&manager("\"DEBUG\"")), pair("\"DEBUG\"", "\"debug\""));
        assert_eq!(fixes(&manager("debgu")), []);
    }

    #[test]
    fn what_could_be_meant_otherwise_is_left() {
        fixed("{prot: 1, port: 2}", &[]);
        fixed("{prot: 1, prt: 2}", &[]);
        fixed("{pt: 1}", &[]);
        fixed("{nothing: 1}", &[]);
        fixed("{\"pr\\u006ft\": 1}", &[]);
    }

    #[test]
    fn nothing_is_put_right_beside_an_alias() {
        fixed("&a {prot: 1, x: *a}", &[]);
        let shared = link_local("&a {prot: 1}") + "extra: *a\n";
        assert_eq!(fixes(&shared), []);
    }

    #[test]
    fn a_place_is_found_in_characters_and_behind_a_byte_order_mark() {
        let place = |line, column| Location {
            line: Some(line),
            column: Some(column),
            ..Location::default()
        };
        assert_eq!(offset("\u{feff}ab\nä: b", &place(1, 2)), Some(4));
        assert_eq!(offset("ab\nä: b", &place(2, 2)), Some(5));
        assert_eq!(offset("ab", &place(2, 1)), None);
    }
}
