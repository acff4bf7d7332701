//! Evaluation of CEL rules. The language and its functions are kube-cel's; here is what the API
//! server does around them: which fields a rule can see, that a null field is an absent one, and
//! what becomes of errors.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;

use super::found::Found;
use super::library::Library;
use super::node::{Additional, Kind, Node};
use super::rule::{Compiled, Rule};
use super::unknown::dotted;
use crate::problem::{Problem, Severity, codes};
use crate::source_map::join;

/// Names that CEL reserves, and that a field therefore has in a disguise.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Checks the rules of an object.
pub(crate) fn check(object: &Value, node: &Node, found: &mut Found) {
    Library::with(|library| Evaluation { library, found }.node(object, node, true, ""));
}

struct Evaluation<'a> {
    library: &'a Library,
    found: &'a mut Found,
}

impl Evaluation<'_> {
    fn node(&mut self, value: &Value, node: &Node, is_root: bool, at: &str) {
        if value.is_null() || !node.has_rules {
            return;
        }
        self.rules(value, node, is_root, at);
        for inner in &node.all_of {
            self.node(value, inner, is_root, at);
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(node) = node.field(name).filter(|node| node.has_rules) {
                        self.node(value, node, false, &join(at, name));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = node.items.as_deref().filter(|node| node.has_rules) {
                    for (index, item) in items.iter().enumerate() {
                        self.node(item, node, false, &format!("{at}/{index}"));
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, value: &Value, node: &Node, is_root: bool, at: &str) {
        if node.rules.is_empty() {
            return;
        }
        if self.found.blocks(at) {
            return self.found.skip(node.rules.len());
        }
        let mut scope = self.library.functions.new_inner_scope();
        scope.add_variable_from_value("self", seen(value, node, is_root));
        for rule in &node.rules {
            match rule.expression.compiled() {
                Ok(compiled) if compiled.transition && !rule.optional_old => {}
                Ok(compiled) => self.rule(rule, compiled, &scope, at),
                Err(error) => {
                    let why = format!("cannot be read: {error}");
                    self.found.push(not_checked(rule, at, &why));
                }
            }
        }
    }

    fn rule(&mut self, rule: &Rule, compiled: &Compiled, scope: &Context<'_>, at: &str) {
        let mut old = scope.new_inner_scope();
        let scope = if rule.optional_old {
            match &self.library.none {
                Some(none) => old.add_variable_from_value("oldSelf", none.clone()),
                None => return self.found.push(not_checked(rule, at, "needs optional values")),
            }
            &old
        } else {
            scope
        };
        let problem = match Cel::resolve(&compiled.expression, scope) {
            Ok(Cel::Bool(true)) => return,
            Ok(Cel::Bool(false)) if rule.field.is_empty() && !rule.subject.is_empty() => {
                let shown = format!("{at}{}", rule.subject);
                return self.found.push_shown(broken(rule, scope, at), shown);
            }
            Ok(Cel::Bool(false)) => broken(rule, scope, at),
            Ok(_) => not_checked(rule, at, "gives no boolean"),
            Err(error) if is_fault_of_value(&error) => {
                let message =
                    format!("{}: {error} evaluating rule: {}", dotted(at), rule.words(|_| None).1);
                Problem::error(rule.code(), message).pointer(format!("{at}{}", rule.field))
            }
            Err(error) => not_checked(rule, at, &format!("cannot be evaluated here: {error}")),
        };
        self.found.push(problem);
    }
}

fn broken(rule: &Rule, scope: &Context<'_>, at: &str) -> Problem {
    let (code, message) = rule.words(|compiled| match Cel::resolve(&compiled.expression, scope) {
        Ok(Cel::String(text)) => Some(text.to_string()),
        _ => None,
    });
    Problem::error(&code, message).pointer(format!("{at}{}", rule.field))
}

fn not_checked(rule: &Rule, at: &str, why: &str) -> Problem {
    let text = rule.expression.text().trim();
    let message = format!("a rule was not checked, for it {why}: {text}");
    Problem::new(Severity::Info, codes::NOT_CHECKED, message)
        .pointer(format!("{at}{}", rule.field))
        .hint("the API server checks it")
}

/// Errors that the API server has as well, and refuses the object for. All others may be gaps of
/// the library.
const fn is_fault_of_value(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::NoSuchKey(_)
            | ExecutionError::DivisionByZero(_)
            | ExecutionError::RemainderByZero(_)
            | ExecutionError::Overflow(..)
            | ExecutionError::IndexOutOfBounds(_)
    )
}

/// A value as a rule sees it.
fn seen(value: &Value, node: &Node, is_root: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (node.kind, number.as_i64()) {
            (Some(Kind::Number), _) | (_, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
            (_, Some(number)) => Cel::Int(number),
        },
        Value::String(text) => seen_text(text, node),
        Value::Array(items) => {
            let untyped = Node::default();
            let node = node.items.as_deref().unwrap_or(&untyped);
            Cel::List(Arc::new(items.iter().map(|item| seen(item, node, false)).collect()))
        }
        Value::Object(fields) => seen_fields(fields, node, is_root || node.embedded),
    }
}

fn seen_fields(fields: &serde_json::Map<String, Value>, node: &Node, is_object: bool) -> Cel {
    let mut map = HashMap::new();
    let mut put = |name: String, value: Cel| map.insert(Key::String(Arc::new(name)), value);
    let is_map = node.properties.is_empty() && !is_object;
    let untyped = Node::default();
    for (name, value) in fields {
        match (&node.additional, node.properties.get(name)) {
            (Additional::Of(node), _) if is_map => {
                put(name.clone(), seen(value, node, false));
            }
            // Within an untyped value everything is seen; that is kube-cel's choice for it.
            _ if is_map && (node.kind.is_none() || node.preserve) => {
                put(name.clone(), seen(value, &untyped, false));
            }
            _ if is_object && name == "metadata" => {
                put(name.clone(), seen_metadata(value));
            }
            _ if is_object && (name == "apiVersion" || name == "kind") => {
                put(name.clone(), seen(value, &untyped, false));
            }
            // A null field is an absent one.
            (_, Some(node)) if !value.is_null() => {
                put(escaped(name), seen(value, node, false));
            }
            _ => {}
        }
    }
    Cel::Map(Map { map: Arc::new(map) })
}

/// Of metadata rules see the name only, lest they become a way round admission. A name that is to
/// be generated is there already when the API server checks rules.
fn seen_metadata(metadata: &Value) -> Cel {
    const GENERATED: &str = "xxxxx";
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let prefix = text("generateName");
    let name = match (text("name"), prefix) {
        (None, Some(prefix)) => Some(format!("{prefix}{GENERATED}")),
        (name, _) => name.map(str::to_owned),
    };
    let given = [("name", name), ("generateName", prefix.map(str::to_owned))];
    let map = given.into_iter().filter_map(|(name, value)| {
        Some((Key::String(Arc::new(name.to_owned())), Cel::String(Arc::new(value?))))
    });
    Cel::Map(Map { map: Arc::new(map.collect()) })
}

/// Texts of certain formats are times, durations or bytes in CEL.
fn seen_text(text: &str, node: &Node) -> Cel {
    let format = node.format.as_deref().filter(|_| !node.int_or_string);
    let converted =
        format.and_then(|format| Library::with(|library| library.convert(format, text)));
    converted.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

/// A field's name as rules write it.
fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
