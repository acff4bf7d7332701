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
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = number + 1;
            match line.split_once('=').filter(|(name, _)| is_name(name)) {
                Some((name, value)) => {
                    let assignment = Assignment { line: number, value: literal(value) };
                    env.assignments.insert(name.to_owned(), assignment);
                }
                None => env.other.push(number),
            }
        }
        env
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

/// What a shell would assign, where it has nothing to compute.
fn literal(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => value.push_str(&until(&mut letters, '\'')?),
            '"' => {
                let inner = until(&mut letters, '"')?;
                if inner.contains(['$', '`', '\\']) {
                    return None;
                }
                value.push_str(&inner);
            }
            '$' | '`' | '\\' | '(' | ')' | '<' | '>' | '|' | '&' | '*' | '?' | '[' | '~' => {
                return None;
            }
            ';' => return is_rest_ignored(letters.as_str()).then_some(value),
            ' ' | '\t' => {
                return is_rest_ignored(letters.as_str()).then_some(value);
            }
            letter => value.push(letter),
        }
    }
    Some(value)
}

fn until(letters: &mut std::str::Chars<'_>, end: char) -> Option<String> {
    let (inner, rest) = letters.as_str().split_once(end)?;
    *letters = rest.chars();
    Some(inner.to_owned())
}

/// Whether nothing but a comment follows: else the line is a command with a variable for it alone.
fn is_rest_ignored(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with('#')
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
            "A=1; reboot",
            "A=a\\ b",
            "A=~/x",
        ] {
            let error = get(&format!("# first\n{text}")).unwrap_err();
            assert!(error.starts_with("line 2: A is computed by a shell"), "{text}: {error}");
        }
    }

    #[test]
    fn lines_that_assign_nothing_are_known() {
        let env = CommonEnv::parse("if true\nA=1\nsource other.env\n1A=2");
        assert_eq!(env.other, [1, 3, 4]);
        assert!(CommonEnv::parse("# nothing").is_empty() && !env.is_empty());
    }
}
