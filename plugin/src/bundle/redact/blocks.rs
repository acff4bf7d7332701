//! Lines that belong to the key above them: of YAML, and of files of settings that are continued.

use super::names::{OF_REFERENCE, is_place};

/// The length of the lines that are further in than the key in this column; `text` begins with their newline. Items of
/// a list may be in the column of the key.
pub(super) fn deeper(text: &str, column: usize, may_be_items: bool) -> usize {
    let mut length = 0;
    let mut until_here = 0;
    while let Some(behind) = text.get(length..).and_then(|rest| rest.strip_prefix('\n')) {
        let line = behind.get(..behind.find('\n').unwrap_or(behind.len())).unwrap_or_default();
        let content = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - content.len();
        length += 1 + line.len();
        if content.trim().is_empty() {
            continue;
        }
        let is_item =
            may_be_items && indent == column && (content.starts_with("- ") || content == "-");
        if indent <= column && !is_item {
            break;
        }
        until_here = length;
    }
    until_here
}

/// Whether the lines say which secret is meant, and have none: `secret:` with `secretName: x` below it.
pub(super) fn is_reference(lines: &str) -> bool {
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let line = line.trim_start_matches("- ").trim_start();
            line.split_once(':').is_some_and(|(field, value)| {
                OF_REFERENCE.contains(&field)
                    && (is_place(value)
                        || (["kind", "apiVersion"].contains(&field) && is_kind(value)))
            })
        })
}

fn is_kind(value: &str) -> bool {
    ["Secret", "ConfigMap", "ServiceAccount"].contains(&value.trim())
}
