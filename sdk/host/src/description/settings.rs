//! The settings of a policy against the schema that it brought. A validator does as much as the
//! schema says: it follows references, so few bytes can ask for depth without end (a chain of
//! references) and for work without end (two references on each of sixty levels). So what a
//! validator would do is counted first, with references followed, and what is too much is refused.

use std::borrow::Cow;
use std::iter;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::text::{MAX_QUOTED_BYTES, MAX_TEXT_BYTES, cut, quoted};

/// Bytes of a settings schema.
pub const MAX_SCHEMA_BYTES: usize = 32 << 10;
/// Levels of a settings schema, its references followed.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// JSON values in a settings schema, those behind a reference counted at each reference.
pub const MAX_SCHEMA_VALUES: usize = 10_000;
/// Bytes of the automaton of one pattern.
pub const MAX_PATTERN_BYTES: usize = 256 << 10;
/// Values of the schema (references followed) times bytes of the settings.
pub const MAX_SETTINGS_STEPS: usize = 20_000_000;

/// A pattern counts as this many values: it takes memory as long as the policy is there.
const PATTERN_VALUES: usize = 100;
/// Up to as many steps, every error is collected; beyond, they could be more than memory holds.
const MAX_COLLECTED_STEPS: usize = 200_000;
/// More errors than these are of no help.
const MAX_ERRORS: usize = 20;

/// With these, what a reference leads to is only known while a validator runs.
const REFUSED: [&str; 6] =
    ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"];
/// The drafts in which a reference means what is counted here.
const DRAFTS: [&str; 3] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
];

/// A settings schema cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SchemaError {
    #[error("it is not JSON")]
    NotJson(#[source] serde_json::Error),
    #[error("it has {0} bytes; {MAX_SCHEMA_BYTES} are possible")]
    TooLong(usize),
    #[error("with its references followed it is deeper than {MAX_SCHEMA_DEPTH} levels")]
    TooDeep,
    #[error("with its references followed it has more than {MAX_SCHEMA_VALUES} values")]
    TooLarge,
    #[error("{0:?} refers to itself; write it out to the depth that is needed")]
    Recursive(String),
    #[error("{0:?} is not a reference into this schema, such as \"#/$defs/name\"")]
    Reference(String),
    #[error("{0:?} cannot be used in it")]
    Keyword(String),
    #[error("{0:?} is no draft that can be used; 2020-12, 2019-09 and draft-07 are")]
    Draft(String),
    #[error("it is wrong: {0}")]
    Wrong(String),
}

/// What checks the settings of one policy.
pub(crate) struct SettingsSchema {
    validator: Validator,
    /// Its values, references followed.
    values: usize,
}

/// Before the text is parsed.
pub(super) fn check_size(schema: &str) -> Result<(), SchemaError> {
    if schema.len() > MAX_SCHEMA_BYTES { Err(SchemaError::TooLong(schema.len())) } else { Ok(()) }
}

impl SettingsSchema {
    pub(crate) fn new(schema: &Value) -> Result<Self, SchemaError> {
        let values = measure(schema)?;
        let patterns =
            PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let validator = jsonschema::options()
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| SchemaError::Wrong(text(&error)))?;
        Ok(Self { validator, values })
    }

    /// Everything that is wrong with the settings; empty if nothing.
    pub(crate) fn check(&self, settings: &Value) -> Vec<String> {
        let length = settings.to_string().len();
        let steps = self.values.saturating_mul(length);
        if steps > MAX_SETTINGS_STEPS {
            return vec![format!("its {length} bytes are too many for a schema of this size")];
        }
        if steps > MAX_COLLECTED_STEPS {
            let first = self.validator.validate(settings).err();
            return first.iter().map(|error| said_of(settings, error)).collect();
        }
        let errors = self.validator.iter_errors(settings).take(MAX_ERRORS);
        errors.map(|error| said_of(settings, &error)).collect()
    }
}

fn said_of(settings: &Value, error: &ValidationError<'_>) -> String {
    match unexpected(settings, error) {
        Some(names) => {
            let names = format!("Additional properties are not allowed ({names})");
            at(error, cut(&names, MAX_QUOTED_BYTES))
        }
        None => text(error),
    }
}

/// Where a schema knows no field at all, its validator speaks of the first value only, at the place
/// of the object: "False schema does not allow ...".
fn unexpected(settings: &Value, error: &ValidationError<'_>) -> Option<String> {
    if !matches!(error.kind(), ValidationErrorKind::FalseSchema) {
        return None;
    }
    let Some(Value::Object(object)) = settings.pointer(error.instance_path().as_str()) else {
        return None;
    };
    let is_inside = object.values().next() == Some(error.instance().as_ref());
    let names: Vec<String> = object.keys().map(|name| format!("'{name}'")).collect();
    let verb = if names.len() == 1 { "was" } else { "were" };
    is_inside.then(|| format!("{} {verb} unexpected", names.join(", ")))
}

fn text(error: &ValidationError<'_>) -> String {
    let value = error.instance().to_string();
    let said = error.masked_with(quoted(&value)).to_string();
    // These quote the names of fields besides, as many as there are.
    let most = match error.kind() {
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedItems { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. }
        | ValidationErrorKind::PropertyNames { .. } => MAX_QUOTED_BYTES,
        _ => MAX_TEXT_BYTES,
    };
    at(error, cut(&said, most))
}

fn at(error: &ValidationError<'_>, said: Cow<'_, str>) -> String {
    let place = error.instance_path().to_string();
    let place = quoted(&place);
    if place.is_empty() { said.into_owned() } else { format!("{place}: {said}") }
}

/// How many values a validator has to do with at most, for each value of the settings.
fn measure(schema: &Value) -> Result<usize, SchemaError> {
    if let Some(Value::String(draft)) = schema.get("$schema")
        && !DRAFTS.contains(&draft.trim_end_matches('#'))
    {
        return Err(SchemaError::Draft(cut(draft, MAX_TEXT_BYTES).into_owned()));
    }
    let mut measure = Measure { root: schema, values: 0, followed: Vec::new() };
    measure.value(schema, 0)?;
    Ok(measure.values)
}

struct Measure<'s> {
    root: &'s Value,
    values: usize,
    /// The references that lead to where it is.
    followed: Vec<&'s str>,
}

impl<'s> Measure<'s> {
    fn count(&mut self, values: usize) -> Result<(), SchemaError> {
        self.values += values;
        if self.values > MAX_SCHEMA_VALUES { Err(SchemaError::TooLarge) } else { Ok(()) }
    }

    /// Not every value is a schema, but every schema is a value.
    fn value(&mut self, value: &'s Value, depth: usize) -> Result<(), SchemaError> {
        self.count(1)?;
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, depth + 1)),
            Value::Object(map) => self.object(map, depth),
            _ => Ok(()),
        }
    }

    fn object(&mut self, map: &'s Map<String, Value>, depth: usize) -> Result<(), SchemaError> {
        for (key, value) in map {
            let is_keyword = matches!(value, Value::String(_) | Value::Bool(_));
            let is_draft = key == "$schema" && depth > 0;
            if is_keyword && (is_draft || REFUSED.contains(&key.as_str())) {
                return Err(SchemaError::Keyword(key.clone()));
            }
            self.patterns(key, value)?;
        }
        // A validator goes through all of it once more for what nothing else has evaluated.
        let again = ["unevaluatedProperties", "unevaluatedItems"];
        let times = if again.iter().any(|key| map.contains_key(*key)) { 2 } else { 1 };
        for values in iter::repeat_n(map, times) {
            values.values().try_for_each(|value| self.value(value, depth + 1))?;
            if let Some(Value::String(target)) = map.get("$ref") {
                self.follow(target, depth)?;
            }
        }
        Ok(())
    }

    fn patterns(&mut self, key: &str, value: &Value) -> Result<(), SchemaError> {
        match (key, value) {
            ("pattern", Value::String(_)) => self.count(PATTERN_VALUES),
            ("patternProperties", Value::Object(map)) => {
                self.count(PATTERN_VALUES.saturating_mul(map.len()))
            }
            _ => Ok(()),
        }
    }

    fn follow(&mut self, target: &'s str, depth: usize) -> Result<(), SchemaError> {
        let named = || cut(target, MAX_TEXT_BYTES).into_owned();
        // Escapes that a validator would read otherwise are left to none.
        let pointer = target
            .strip_prefix('#')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .filter(|rest| !rest.contains('%'))
            .ok_or_else(|| SchemaError::Reference(named()))?;
        let value = self.root.pointer(pointer).ok_or_else(|| SchemaError::Reference(named()))?;
        if self.followed.contains(&pointer) {
            return Err(SchemaError::Recursive(named()));
        }
        self.followed.push(pointer);
        self.value(value, depth + 1)?;
        self.followed.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
