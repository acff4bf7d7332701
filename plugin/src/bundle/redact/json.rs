//! JSON within a text: the whole, or what is from a brace to the end of a line.

use serde_json::Value;

use super::objects;

/// Without secrets, line by line; a line that had none stays as it was.
pub(super) fn lines(text: &str) -> String {
    if let Some(clean) = whole(text) {
        return clean;
    }
    let mut clean = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let end = line.get(content.len()..).unwrap_or_default();
        let start = if content.ends_with('}') {
            content.find('{')
        } else if content.ends_with(']') && content.trim_start().starts_with('[') {
            content.find('[')
        } else {
            None
        };
        let parts = start.and_then(|start| content.split_at_checked(start));
        match parts.and_then(|(before, json)| Some((before, changed(json)?))) {
            Some((before, json)) => {
                clean.push_str(before);
                clean.push_str(&json);
                clean.push_str(end);
            }
            None => clean.push_str(line),
        }
    }
    clean
}

fn whole(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let is_json = trimmed.starts_with(['{', '[']) && trimmed.ends_with(['}', ']']);
    if !is_json {
        return None;
    }
    let clean = changed(trimmed)?;
    let end = if text.ends_with('\n') { "\n" } else { "" };
    Some(format!("{clean}{end}"))
}

/// Written anew, if it was JSON and had a secret.
fn changed(json: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    let before = value.clone();
    objects::clean(&mut value);
    if value == before {
        return None;
    }
    if json.contains('\n') {
        serde_json::to_string_pretty(&value).ok()
    } else {
        serde_json::to_string(&value).ok()
    }
}
