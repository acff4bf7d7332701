//! The files of cases: where they are found, what is in them, and how an accepted answer is
//! written into one without touching anything else. What a case means is in the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opensdn_manifests::read_limited_text;
use opensdn_policy_host::cases::{Case, Expected};
use serde::Serialize;

use super::reference::{BUILD_FOLDER, Module, Origin};
use crate::exit::{Exit, Failure};

/// The folder of a project's cases.
const CASES_FOLDER: &str = "cases";

/// A file with one case.
#[derive(Clone, Debug)]
pub(crate) struct CaseFile {
    /// The name that people see.
    pub(crate) name: String,
    /// Where it is; a built-in policy's cases are part of this program.
    pub(crate) path: Option<PathBuf>,
    /// Its text, or why it cannot be read.
    pub(crate) text: Result<String, String>,
}

impl CaseFile {
    /// The case in it.
    ///
    /// # Errors
    /// It cannot be read or understood; the text says where.
    pub(crate) fn case(&self) -> Result<Case, String> {
        parse(self.text.as_ref().map_err(Clone::clone)?)
    }
}

fn parse(text: &str) -> Result<Case, String> {
    serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
}

/// The cases of the files and folders; without any, those of the policy's project, or those that a
/// built-in policy comes with.
///
/// # Errors
/// There is none.
pub(crate) fn find(places: &[PathBuf], module: &Module) -> Result<Vec<CaseFile>, Failure> {
    if places.is_empty() {
        return match &module.origin {
            Origin::BuiltIn(name) => Ok(of_built_in(name)),
            Origin::File(component) => in_folder(&beside(component)),
        };
    }
    let mut found = Vec::new();
    for place in places {
        if place.is_dir() {
            found.extend(in_folder(place)?);
        } else {
            found.push(read(place));
        }
    }
    Ok(found)
}

/// The cases that a built-in policy comes with.
pub(crate) fn of_built_in(name: &str) -> Vec<CaseFile> {
    let cases = opensdn_policies::cases(name).iter();
    let file = |(file, text): &(&str, &str)| CaseFile {
        name: format!("{CASES_FOLDER}/{file}"),
        path: None,
        text: Ok((*text).to_owned()),
    };
    cases.map(file).collect()
}

/// A component is in its project's build folder; the cases are beside that.
fn beside(component: &Path) -> PathBuf {
    let folder = component.parent().unwrap_or(Path::new(""));
    let project = if folder.file_name().is_some_and(|name| name == BUILD_FOLDER) {
        folder.parent().unwrap_or(Path::new(""))
    } else {
        folder
    };
    project.join(CASES_FOLDER)
}

fn in_folder(folder: &Path) -> Result<Vec<CaseFile>, Failure> {
    let none = |error: Option<io::Error>| {
        let message = format!("there are no cases in {}", folder.display());
        let hint = "write one file for each, such as cases/no-owner-is-refused.yaml, with object \
                    and expect; or name them with --cases";
        let failure = Failure::new(Exit::Usage, "no-cases", message, hint);
        error.map_or(failure.clone(), |error| failure.because(&error))
    };
    let entries = fs::read_dir(folder).map_err(|error| none(Some(error)))?;
    let is_case = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str());
        matches!(end, Some("yaml" | "yml" | "json"))
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_case).collect();
    paths.sort();
    if paths.is_empty() {
        return Err(none(None));
    }
    Ok(paths.iter().map(|path| read(path)).collect())
}

/// The most of a file with cases.
const MOST: u64 = 64 << 20;

fn read(path: &Path) -> CaseFile {
    let text = read_limited_text(path, MOST).map_err(|error| format!("it cannot be read: {error}"));
    CaseFile { name: path.display().to_string(), path: Some(path.to_owned()), text }
}

/// Why an accepted answer is not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcceptError {
    /// The case is part of this program.
    #[error("the cases of a built-in policy cannot be changed")]
    BuiltIn,
    /// `expect` is not a key of a block at the beginning of a line.
    #[error("write `expect:` at the beginning of a line, so that it can be replaced by itself")]
    Place,
    /// The text cannot be made, or would mean something else.
    #[error("the file would not mean the same any more; change it by hand")]
    Meaning,
    /// The file cannot be written.
    #[error("the file cannot be written")]
    Write(#[source] io::Error),
}

/// Writes the expectation into the file; everything else stays as it is, byte for byte.
///
/// # Errors
/// Nothing has been written.
pub(crate) fn accept(file: &CaseFile, expected: &Expected) -> Result<(), AcceptError> {
    let (Some(path), Ok(text)) = (&file.path, &file.text) else {
        return Err(AcceptError::BuiltIn);
    };
    let text = replaced(text, expected)?;
    fs::write(path, text).map_err(AcceptError::Write)
}

/// The text with another expectation.
fn replaced(text: &str, expected: &Expected) -> Result<String, AcceptError> {
    #[derive(Serialize)]
    struct Part<'e> {
        expect: &'e Expected,
    }
    let part = serde_saphyr::to_string(&Part { expect: expected });
    let mut part = part.map_err(|_| AcceptError::Meaning)?;
    if text.contains("\r\n") {
        part = part.replace('\n', "\r\n");
    }
    let (start, end) = extent(text).ok_or(AcceptError::Place)?;
    let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else {
        return Err(AcceptError::Place);
    };
    let new = format!("{before}{part}{after}");
    if means(&new, text, expected) { Ok(new) } else { Err(AcceptError::Meaning) }
}

/// From the line `expect:` to the end of what belongs to it. Comments and blank lines behind it do
/// not.
fn extent(text: &str) -> Option<(usize, usize)> {
    let (mut offset, mut start, mut end) = (0, None, 0);
    for line in text.split_inclusive('\n') {
        let after = offset + line.len();
        let is_key = line.starts_with("expect:");
        let belongs = line.starts_with([' ', '\t', '}', ']']);
        let empty = line.trim().is_empty() || line.trim_start().starts_with('#');
        match start {
            None if is_key => (start, end) = (Some(offset), after),
            None => {}
            Some(_) if is_key => return None,
            Some(_) if empty => {}
            Some(_) if belongs => end = after,
            Some(_) => break,
        }
        offset = after;
    }
    Some((start?, end))
}

/// Whether the new text is a case with this expectation and otherwise that of the old text.
fn means(new: &str, old: &str, expected: &Expected) -> bool {
    let (Ok(new_case), Ok(_)) = (parse(new), parse(old)) else { return false };
    let rest = |text: &str| -> Option<serde_json::Value> {
        let mut value: serde_json::Value = serde_saphyr::from_str(text).ok()?;
        value.as_object_mut()?.remove("expect");
        Some(value)
    };
    new_case.expect == *expected && rest(new).is_some() && rest(new) == rest(old)
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::cases::Expected;
    use serde_json::{Value, json};

    use super::{AcceptError, replaced};

    fn expected(value: Value) -> Expected {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_the_expectation_is_rewritten() {
        let text = "# why\ndescription: a  # kept\nexpect: {findings: [],\n  }\n\n# after\nobject:\n  kind: 'X'   # kept too\n";
        let finding = json!({"code": "A1", "severity": "deny", "pointer": "/a", "message": "x: y"});
        let new = replaced(text, &expected(json!({"findings": [finding]}))).unwrap();
        let (before, rest) = new.split_once("expect:").unwrap();
        assert_eq!(before, "# why\ndescription: a  # kept\n");
        assert!(rest.ends_with("\n\n# after\nobject:\n  kind: 'X'   # kept too\n"), "{rest}");
        assert!(rest.contains("code: A1"), "{rest}");
    }

    #[test]
    fn an_expectation_at_the_end_and_windows_lines_are_replaced_too() {
        let text = "object: {kind: X}\r\nexpect:\r\n  findings: []\r\n  failure: gone";
        let new = replaced(text, &expected(json!({"findings": []}))).unwrap();
        assert!(new.starts_with("object: {kind: X}\r\nexpect:\r\n"), "{new:?}");
        assert!(!new.contains("gone"));
    }

    #[test]
    fn a_case_whose_expectation_is_not_a_block_is_left_alone() {
        let text = r#"{"object": {"kind": "X"}, "expect": {"failure": "a"}}"#;
        let refused = replaced(text, &Expected::default());
        assert!(matches!(refused, Err(AcceptError::Place)));
        let text = "object:\n  text: |\n    a\n\nexpect:\n  failure: |\n    a\nb: unknown\n";
        assert!(matches!(replaced(text, &Expected::default()), Err(AcceptError::Meaning)));
    }
}
