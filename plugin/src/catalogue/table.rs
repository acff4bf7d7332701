//! Reads the two generated tables: `policies/README.md` and `crds/RULES.md`.

use super::{Finder, Meaning, Rule, Severity, reasons};

/// `(code, meaning)` of each message of each policy.
pub(super) fn policies(text: &str) -> impl Iterator<Item = (&str, Meaning)> {
    let mut policy = "";
    text.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix("## ") {
            policy = name.trim();
        }
        let mut cells = coded(line)?;
        let code = cells.next()?.trim();
        let mut cell = || cells.next().map(unescaped);
        let severity = match cell()?.as_str() {
            "deny" => Severity::Deny,
            _ => Severity::Warn,
        };
        let meaning = Meaning {
            found_by: Finder::Policy,
            policy: Some(policy.to_owned()),
            severity,
            title: cell()?,
            why: cell()?,
            remedy: cell()?,
            rules: Vec::new(),
            sources: Vec::new(),
        };
        Some((code, meaning))
    })
}

/// `(code, meaning)` of each rule in the schemas.
pub(super) fn rules(text: &str) -> impl Iterator<Item = (&str, Meaning)> {
    text.lines().filter_map(|line| {
        let mut cells = coded(line)?;
        let code = cells.next()?.trim();
        let rule = Rule { message: unescaped(cells.next()?), fields: unescaped(cells.next()?) };
        let (title, why, remedy) = match reasons::of(code) {
            Some(reason) => (reason.title, reason.why, reason.remedy),
            // A rule without a reason of its own still says what it demands.
            None => (rule.message.as_str(), "", "correct the field as the message says"),
        };
        let meaning = Meaning {
            found_by: Finder::Schema,
            policy: None,
            severity: Severity::Deny,
            title: title.to_owned(),
            why: why.to_owned(),
            remedy: remedy.to_owned(),
            rules: vec![rule],
            sources: Vec::new(),
        };
        Some((code, meaning))
    })
}

/// The cells of a row that begins with a code.
fn coded(line: &str) -> Option<impl Iterator<Item = &str>> {
    let row = line.strip_prefix("| OSDN")?;
    let row = row.strip_suffix(" |")?;
    let start = line.len().checked_sub(row.len() + " |".len() + "OSDN".len())?;
    let row = line.get(start..line.len().checked_sub(" |".len())?)?;
    // A bar within a cell is written `\|`, so the separator is a bar between blanks.
    Some(row.split(" | "))
}

fn unescaped(cell: &str) -> String {
    cell.trim().replace("\\|", "|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_row_of_a_policy() {
        let text = "## even-quorum\n\n| OSDN1202 | deny | a \\| b | why | what |\n";
        let read: Vec<(&str, Meaning)> = policies(text).collect();
        let [(code, meaning)] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(*code, "OSDN1202");
        assert_eq!(meaning.policy.as_deref(), Some("even-quorum"));
        assert_eq!([&meaning.title, &meaning.why, &meaning.remedy], ["a | b", "why", "what"],);
        assert_eq!(meaning.severity, Severity::Deny);
    }

    #[test]
    fn passes_over_what_has_no_code() {
        assert_eq!(policies("| code | severity |\n| --- | --- |\n| `x` | y | z |\n").count(), 0);
    }
}
