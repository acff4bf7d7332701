//! `common.env`, the file of variables from which the old scripts made a nested cluster: read as text, never run. Its
//! scripts let a shell evaluate it, so that a value may be anything; here one that a shell would compute is an error.
//! Meaning of the variables: OpenSDN-io/tf-container-builder, `parse-env.sh` and `containers/base/common.sh`. Deliberately
//! not here: what is wrong with the cluster that it describes (a plan says that).

use std::collections::BTreeMap;

mod imported;

pub(crate) use imported::{Imported, import};

/// A value, and the line in which it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Assignment {
    line: usize,
    /// Nothing where a shell would have to compute it.
    value: Option<String>,
}

/// The variables of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommonEnv {
    assignments: BTreeMap<String, Assignment>,
    /// Lines that assign nothing.
    other: Vec<usize>,
}

impl CommonEnv {
    /// Reads it; of several assignments the last one holds.
    pub(crate) fn parse(text: &str) -> Self {
        let mut env = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let number = number + 1;
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            env.take_line(number, line);
            // What follows until the quote ends is of the value, and may be a secret.
            if let Some(quote) = open_quote(line) {
                lines.by_ref().map(|(_, line)| line).find(|line| line.contains(quote));
            }
        }
        env
    }

    /// The assignments of a line: several with blanks between, or with semicolons.
    fn take_line(&mut self, number: usize, line: &str) {
        for statement in statements(line) {
            match statement {
                Statement::Assigns(all) => {
                    for (name, value) in all {
                        self.assignments
                            .insert(name.to_owned(), Assignment { line: number, value });
                    }
                }
                Statement::Other => self.other.push(number),
            }
        }
        self.other.dedup();
    }

    /// Whether it sets a variable at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.assignments.is_empty()
    }

    /// The value, where it is set to something.
    ///
    /// # Errors
    /// A shell would have to compute it.
    fn get(&self, name: &str) -> Result<Option<&str>, String> {
        let Some(Assignment { line, value }) = self.assignments.get(name) else { return Ok(None) };
        match value {
            Some(value) => Ok(Some(value.as_str()).filter(|value| !value.is_empty())),
            None => Err(format!(
                "line {line}: {name} is computed by a shell, or is not on one line: write its value"
            )),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.assignments.keys().map(String::as_str)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// What stands between two semicolons.
enum Statement<'a> {
    /// Variables; nothing as the value where a shell would compute it.
    Assigns(Vec<(&'a str, Option<String>)>),
    /// Something else.
    Other,
}

fn statements(line: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() && !rest.starts_with('#') {
        let mut assigned = Vec::new();
        rest = rest.strip_prefix("export ").unwrap_or(rest).trim_start();
        let is_command = loop {
            let Some((name, value)) = assignment(rest) else { break !rest.is_empty() };
            let Some((value, after)) = literal(value) else {
                // Where the value ends is not known then.
                assigned.push((name, None));
                rest = "";
                break false;
            };
            assigned.push((name, Some(value)));
            rest = after.trim_start();
            if rest.is_empty() || rest.starts_with(['#', ';']) {
                break false;
            }
        };
        if is_command {
            // Variables before a command are for that alone, and what it is a shell knows.
            found.push(Statement::Other);
            assigned.iter_mut().for_each(|(_, value)| *value = None);
            rest = "";
        }
        if !assigned.is_empty() {
            found.push(Statement::Assigns(assigned));
        }
        rest = rest.trim_start_matches(';').trim_start();
    }
    found
}

/// The name and what follows; of `A+=1` the value is what a shell would compute.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    match name.strip_suffix('+') {
        Some(name) => is_name(name).then_some((name, "$")),
        None => is_name(name).then_some((name, value)),
    }
}

/// What a shell would assign, where it has nothing to compute, and what follows.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.chars();
    loop {
        let rest = letters.as_str();
        match letters.next() {
            None => return Some((value, rest)),
            Some('\'') => value.push_str(&until(&mut letters, '\'')?),
            Some('"') => {
                let inner = until(&mut letters, '"')?;
                if inner.contains(['$', '`', '\\']) {
                    return None;
                }
                value.push_str(&inner);
            }
            Some('$' | '`' | '\\' | '(' | ')' | '<' | '>' | '|' | '&' | '*' | '?' | '[' | '~') => {
                return None;
            }
            Some(';' | ' ' | '\t') => return Some((value, rest)),
            Some(letter) => value.push(letter),
        }
    }
}

fn until(letters: &mut std::str::Chars<'_>, end: char) -> Option<String> {
    let (inner, rest) = letters.as_str().split_once(end)?;
    *letters = rest.chars();
    Some(inner.to_owned())
}

/// The quote that is open at the end of the line.
fn open_quote(line: &str) -> Option<char> {
    let mut open = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (None | Some('"'), '\\') => drop(letters.next()),
            (None, '#') => break,
            (None, '\'' | '"') => open = Some(letter),
            (Some(quote), letter) if quote == letter => open = None,
            _ => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str) -> Result<Option<String>, String> {
        CommonEnv::parse(text).get("A").map(|value| value.map(str::to_owned))
    }

    #[test]
    fn values_are_those_that_a_shell_would_assign() {
        for (text, value) in [
            ("A=1", "1"),
            ("export A=\"a b\"", "a b"),
            ("A='x' # why", "x"),
            ("A=10.0.0.1,10.0.0.2", "10.0.0.1,10.0.0.2"),
            ("A=\"{'name': 'n'}\"", "{'name': 'n'}"),
            ("A=a'b'\"c\"", "abc"),
            ("A=1;", "1"),
            ("A=1\nB=2\n  A=3", "3"),
            ("A=it#is", "it#is"),
            ("B=2 A=1", "1"),
            ("B=2; export A=1", "1"),
            ("A=1; reboot", "1"),
            ("B=\"x\nA=2\"\nA=1", "1"),
        ] {
            assert_eq!(get(text), Ok(Some(value.to_owned())), "{text}");
        }
        for text in ["", "# A=1", "A=", "A=''", "B=1"] {
            assert_eq!(get(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn nothing_is_computed_and_what_a_shell_would_compute_is_an_error_with_its_line() {
        for text in [
            "A=$(reboot)",
            "A=`reboot`",
            "A=$B",
            "A=\"${B:-1}\"",
            "A=\"a",
            "A='a",
            "A=(1 2)",
            "A=a b",
            "A+=1",
            "A=1 reboot",
            "A=a\\ b",
            "A=~/x",
        ] {
            let error = get(&format!("# first\n{text}")).unwrap_err();
            assert!(error.starts_with("line 2: A is computed by a shell"), "{text}: {error}");
        }
    }

    /// The rest of a secret looks like a variable.
    #[test]
    fn what_follows_in_a_quote_is_of_the_value() {
        let env = CommonEnv::parse("A=\"first\nc2VjcmV0a2V5=\nB=2\"\nC=3\nD='it\n'\nE=5");
        assert_eq!(env.names().collect::<Vec<_>>(), ["A", "C", "D", "E"]);
        assert!(env.other.is_empty() && env.get("A").is_err());
        // A quote within a comment opens none.
        let env = CommonEnv::parse("A=1 # don't\nB=2");
        assert_eq!(env.names().collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn lines_that_assign_nothing_are_known() {
        let env = CommonEnv::parse("if true\nA=1\nsource other.env\n1A=2");
        assert_eq!(env.other, [1, 3, 4]);
        assert!(CommonEnv::parse("# nothing").is_empty() && !env.is_empty());
    }
}
