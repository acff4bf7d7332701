//! CEL rules of schemas, compiled once each, and only when they are needed: a schema repeats the
//! rules of its parts many times, and most commands see few kinds.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use kube_cel::cel::parser::{Expression, Parser};

use super::cel_optional;
use crate::problem::codes;

/// A rule of one place in a schema.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) expression: Arc<Cel>,
    message_expression: Option<Arc<Cel>>,
    code: String,
    message: String,
    /// Where the field is that the rule blames, from the rule's own value.
    pub(crate) field: String,
    /// The only field that the rule reads, likewise; empty if there are several.
    pub(crate) subject: String,
    pub(crate) optional_old: bool,
}

/// An expression of CEL.
#[derive(Debug)]
pub(crate) struct Cel {
    text: String,
    compiled: OnceLock<Result<Compiled, String>>,
}

/// An expression that was understood.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) expression: Expression,
    /// It compares with the object as it was, so it does not apply to a new one.
    pub(crate) transition: bool,
}

/// Makes the rules of all schemas, sharing expressions.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    expressions: HashMap<String, Arc<Cel>>,
}

impl Rules {
    pub(crate) fn of(&mut self, rules: &[ValidationRule]) -> Vec<Rule> {
        rules.iter().map(|rule| self.rule(rule)).collect()
    }

    fn rule(&mut self, rule: &ValidationRule) -> Rule {
        let told = rule.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
        let message =
            told.map_or_else(|| format!("failed rule: {}", rule.rule.trim()), str::to_owned);
        let (code, message) = split_code(&message);
        Rule {
            expression: self.expression(&rule.rule),
            message_expression: rule
                .message_expression
                .as_deref()
                .map(|text| self.expression(text)),
            code: code.to_owned(),
            message: message.to_owned(),
            field: rule.field_path.as_deref().map(pointer_of_path).unwrap_or_default(),
            subject: only_field(&rule.rule).unwrap_or_default(),
            optional_old: rule.optional_old_self == Some(true),
        }
    }

    fn expression(&mut self, text: &str) -> Arc<Cel> {
        let make = || Arc::new(Cel { text: text.to_owned(), compiled: OnceLock::new() });
        Arc::clone(self.expressions.entry(text.to_owned()).or_insert_with(make))
    }
}

impl Rule {
    /// Code and message where the rule is broken; a message made by an expression wins.
    pub(crate) fn words(&self, made: impl FnOnce(&Compiled) -> Option<String>) -> (String, String) {
        let made = self
            .message_expression
            .as_ref()
            .and_then(|cel| cel.compiled().ok())
            .and_then(made)
            .filter(|message| !message.trim().is_empty() && !message.contains('\n'));
        match made {
            Some(message) => {
                let (code, message) = split_code(&message);
                (code.to_owned(), message.to_owned())
            }
            None => (self.code.clone(), self.message.clone()),
        }
    }

    /// The code, else that of rules without one.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }
}

impl Cel {
    /// The expression as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The expression, understood now if it was not before; else why it is not.
    pub(crate) fn compiled(&self) -> Result<&Compiled, &str> {
        let compile = || {
            let parser = Parser::default().enable_optional_syntax(true);
            let mut expression = parser.parse(&self.text).map_err(|error| error.to_string())?;
            cel_optional::rewrite(&mut expression);
            let transition = expression.references().has_variable("oldSelf");
            Ok(Compiled { expression, transition })
        };
        self.compiled.get_or_init(compile).as_ref().map_err(String::as_str)
    }
}

/// The code with which a message begins, `OSDN1234` or `[OSDN1234]`, and the rest.
fn split_code(message: &str) -> (&str, &str) {
    let (word, rest) = message.split_once(char::is_whitespace).unwrap_or((message, ""));
    let word = word.trim_end_matches(':').trim_start_matches('[').trim_end_matches(']');
    let number = word.strip_prefix("OSDN").unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        (word, rest.trim_start())
    } else {
        (codes::RULE, message)
    }
}

/// The pointer of a rule's `fieldPath`: `.spec.name`, `.labels['a/b']`.
fn pointer_of_path(path: &str) -> String {
    let mut pointer = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']").unwrap_or((quoted, ""))
        } else {
            let bare = rest.strip_prefix('.').unwrap_or(rest);
            bare.split_at(bare.find(['.', '[']).unwrap_or(bare.len()))
        };
        if name.is_empty() && after.len() >= rest.len() {
            break;
        }
        pointer = crate::source_map::join(&pointer, name);
        rest = after;
    }
    pointer
}

/// The pointer of the field that an expression reads, if it reads a single one. Judged by the text:
/// it decides on what is underlined, and on nothing else.
fn only_field(expression: &str) -> Option<String> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '?';
    let mut fields = expression.split("self").skip(1).map(|after| {
        let end = after.find(|c: char| !name(c)).unwrap_or(after.len());
        let (path, rest) = after.split_at(end);
        let path = path.trim_end_matches(['.', '?']);
        // What is called is a function, not a field.
        let path = if rest.starts_with('(') {
            path.rsplit_once('.').map(|(path, _)| path)
        } else {
            Some(path)
        };
        path.unwrap_or_default().replace('?', "").replace('.', "/")
    });
    let first = fields.next().filter(|path| path.starts_with('/'))?;
    fields.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{only_field, pointer_of_path, split_code};

    #[test]
    fn the_only_field_of_a_rule_is_seen() {
        let only = |text| only_field(text);
        assert_eq!(only("size(self.metadata.name) <= 30"), Some("/metadata/name".to_owned()));
        assert_eq!(only("self.?a.?b.orValue('') != 'x'"), Some("/a/b".to_owned()));
        assert_eq!(only("!has(self.a) || self.a > 0"), Some("/a".to_owned()));
        assert_eq!(only("self.a == self.b"), None);
        assert_eq!(only("self >= 1"), None);
        assert_eq!(only("self.all(x, x.y)"), None);
    }

    #[test]
    fn codes_stand_before_the_message() {
        assert_eq!(split_code("OSDN1107 too long"), ("OSDN1107", "too long"));
        assert_eq!(split_code("[OSDN1107] too long"), ("OSDN1107", "too long"));
        assert_eq!(split_code("OSDNx too long"), ("schema-rule", "OSDNx too long"));
        assert_eq!(split_code("too long"), ("schema-rule", "too long"));
    }

    #[test]
    fn field_paths_become_pointers() {
        assert_eq!(pointer_of_path(".a.b"), "/a/b");
        assert_eq!(pointer_of_path(".a['x/y'].z"), "/a/x~1y/z");
        assert_eq!(pointer_of_path("['x.y']"), "/x.y");
        assert_eq!(pointer_of_path(""), "");
    }
}
