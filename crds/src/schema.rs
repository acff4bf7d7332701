//! What a derive cannot say about a schema: ranges, lengths, and CEL rules whose messages carry
//! the codes of the rule catalogue. Each type names its own constraints in a function
//! `constraints`, which runs when the schema is generated; so they hold wherever the type is used,
//! nested in a Manager as well.
//!
//! The API server puts the full path of the field and the value found in front of each message,
//! so a message names the field, what is allowed and what to do.

use schemars::Schema;
use serde_json::{Map, Value, json};

/// The longest string that a rule reads, unless a shorter limit is natural.
pub(crate) const TEXT: u64 = 1024;
/// The longest value of a variable of the environment: a list of all nodes of a large cluster fits.
pub(crate) const VARIABLE: u64 = 8192;
/// The longest host name.
pub(crate) const HOST: u64 = 253;

const VALIDATIONS: &str = "x-kubernetes-validations";

/// The fields of one type, to add constraints to.
pub(crate) struct Fields<'a>(&'a mut Schema);

impl<'a> Fields<'a> {
    /// The fields of the type whose schema this is.
    pub(crate) fn of(schema: &'a mut Schema) -> Self {
        Self(schema)
    }

    /// TCP or UDP ports.
    pub(crate) fn ports(self, code: &str, names: &[&str]) -> Self {
        self.range(code, names, 1, 65535, "a port from 1 to 65535")
    }

    /// Integers from `least` to `most`.
    pub(crate) fn range(
        mut self,
        code: &str,
        names: &[&str],
        least: i64,
        most: i64,
        allowed: &str,
    ) -> Self {
        for name in names {
            self = self.set(name, "minimum", json!(least)).set(name, "maximum", json!(most)).field(
                code,
                name,
                &format!("self >= {least} && self <= {most}"),
                &format!("must be {allowed}"),
            );
        }
        self
    }

    /// Integers of at least `least`.
    pub(crate) fn at_least(
        mut self,
        code: &str,
        names: &[&str],
        least: i64,
        allowed: &str,
    ) -> Self {
        for name in names {
            self = self.set(name, "minimum", json!(least)).field(
                code,
                name,
                &format!("self >= {least}"),
                &format!("must be {allowed}"),
            );
        }
        self
    }

    /// Strings that match a regular expression, or are empty, which counts as unset.
    pub(crate) fn matches(
        mut self,
        code: &str,
        names: &[&str],
        regex: &str,
        longest: u64,
        allowed: &str,
    ) -> Self {
        for name in names {
            self = self.longest(&[name], longest).field(
                code,
                name,
                &format!("self == '' || self.matches(r'{regex}')"),
                &format!("must be {allowed}"),
            );
        }
        self
    }

    /// IPv4 networks such as 10.0.0.0/24, or empty.
    pub(crate) fn networks(mut self, code: &str, names: &[&str]) -> Self {
        for name in names {
            self = self.longest(&[name], 64).field(
                code,
                name,
                "self == '' || (isCIDR(self) && cidr(self).ip().family() == 4)",
                "must be an IPv4 network with its prefix length, such as 10.0.0.0/24",
            );
        }
        self
    }

    /// The longest value of strings.
    pub(crate) fn longest(mut self, names: &[&str], characters: u64) -> Self {
        for name in names {
            self = self.set(name, "maxLength", json!(characters));
        }
        self
    }

    /// The most items of lists.
    pub(crate) fn most_items(mut self, names: &[&str], items: u64) -> Self {
        for name in names {
            self = self.set(name, "maxItems", json!(items));
        }
        self
    }

    /// The longest item of lists of strings.
    pub(crate) fn longest_item(self, name: &str, characters: u64) -> Self {
        self.edit_inner(name, "items", |items| {
            items.insert("maxLength".to_owned(), json!(characters));
        })
    }

    /// The most entries of a map of strings, and its longest value.
    pub(crate) fn map(self, name: &str, entries: u64, characters: u64) -> Self {
        self.set(name, "maxProperties", json!(entries)).edit_inner(
            name,
            "additionalProperties",
            |values| {
                values.insert("maxLength".to_owned(), json!(characters));
            },
        )
    }

    /// Any other keyword of a field.
    pub(crate) fn set(self, name: &str, keyword: &str, value: Value) -> Self {
        self.edit(name, |field| {
            field.insert(keyword.to_owned(), value);
        })
    }

    /// Takes a keyword away that the derive has set.
    pub(crate) fn remove(self, name: &str, keyword: &str) -> Self {
        self.edit(name, |field| {
            field.remove(keyword);
        })
    }

    /// A CEL rule on one field; `self` is its value. An empty code is for rules of our own kinds,
    /// which the catalogue does not number.
    pub(crate) fn field(self, code: &str, name: &str, rule: &str, advice: &str) -> Self {
        let message = message(code, &format!("{name} {advice}"));
        self.edit(name, |field| add_rule(field, rule, &message))
    }

    /// A CEL rule on each item of a list, `self` is the item.
    pub(crate) fn items(self, code: &str, name: &str, rule: &str, advice: &str) -> Self {
        let message = message(code, advice);
        self.edit_inner(name, "items", |items| add_rule(items, rule, &message))
    }

    /// A CEL rule on the whole type; `self` is the object.
    pub(crate) fn rule(self, code: &str, rule: &str, advice: &str) -> Self {
        self.add(json!({ "rule": rule, "message": message(code, advice) }))
    }

    /// A CEL rule on the whole type whose finding is about one field of it.
    pub(crate) fn rule_at(self, field: &str, code: &str, rule: &str, advice: &str) -> Self {
        self.add(json!({
            "rule": rule,
            "message": message(code, advice),
            "fieldPath": format!(".{field}"),
        }))
    }

    /// A CEL rule on the whole type, by which a field must be given.
    pub(crate) fn required(self, field: &str, code: &str, rule: &str, advice: &str) -> Self {
        self.add(json!({
            "rule": rule,
            "message": message(code, advice),
            "fieldPath": format!(".{field}"),
            "reason": "FieldValueRequired",
        }))
    }

    fn add(self, rule: Value) -> Self {
        if let Some(object) = self.0.as_object_mut() {
            push_rule(object, rule);
        }
        self
    }

    fn edit(self, name: &str, change: impl FnOnce(&mut Map<String, Value>)) -> Self {
        let properties = self.0.as_object_mut().and_then(|schema| {
            schema.entry("properties").or_insert_with(|| json!({})).as_object_mut()
        });
        if let Some(properties) = properties {
            match properties.get_mut(name).and_then(Value::as_object_mut) {
                Some(field) => change(field),
                // A constraint on a field that is not there must not vanish: the name with its
                // blanks is no legal field, and a test looks for it.
                None => {
                    properties.insert(format!("no such field: {name}"), json!({}));
                }
            }
        }
        self
    }

    fn edit_inner(
        self,
        name: &str,
        keyword: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Self {
        self.edit(name, |field| {
            let inner = field.entry(keyword).or_insert_with(|| json!({}));
            if let Some(inner) = inner.as_object_mut() {
                change(inner);
            }
        })
    }
}

/// A rule's message: the code, then what is wrong and what to do.
pub(crate) fn message(code: &str, text: &str) -> String {
    if code.is_empty() { text.to_owned() } else { format!("{code} {text}") }
}

fn add_rule(schema: &mut Map<String, Value>, rule: &str, message: &str) {
    push_rule(schema, json!({ "rule": rule, "message": message }));
}

fn push_rule(schema: &mut Map<String, Value>, rule: Value) {
    let rules = schema.entry(VALIDATIONS).or_insert_with(|| json!([]));
    if let Some(rules) = rules.as_array_mut() {
        rules.push(rule);
    }
}
