//! A schema in the form in which it is checked: patterns and rules compiled once, and only those
//! keywords that a structural schema of a CustomResourceDefinition can have.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::rule::{Rule, Rules};

/// The schema of one value.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: Option<Kind>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve: bool,
    pub(crate) embedded: bool,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) limits: Limits,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: Option<String>,
    pub(crate) list: ListKind,
    pub(crate) default: Option<Value>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
    pub(crate) rules: Vec<Rule>,
    /// Whether it, or something in it, has rules.
    pub(crate) has_rules: bool,
}

/// The types of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// What may be beside the named fields.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    /// Nothing: it is pruned.
    #[default]
    Nothing,
    /// Anything.
    Anything,
    /// Fields of one schema: a map.
    Of(Box<Node>),
}

/// How the entries of a list are identified.
#[derive(Debug, Default)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Numeric bounds.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) minimum: Option<f64>,
    pub(crate) above_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) below_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) length: (Option<i64>, Option<i64>),
    pub(crate) items: (Option<i64>, Option<i64>),
    pub(crate) properties: (Option<i64>, Option<i64>),
}

/// A regular expression; not compiled where it is too large, or none of those that exist here.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regex: Option<Regex>,
}

impl Node {
    pub(crate) fn new(schema: &JSONSchemaProps, rules: &mut Rules) -> Self {
        let one = |schema: &JSONSchemaProps, rules: &mut Rules| Box::new(Self::new(schema, rules));
        let properties: BTreeMap<_, _> = schema
            .properties
            .iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), Self::new(schema, rules)))
            .collect();
        let additional = match &schema.additional_properties {
            None | Some(JSONSchemaPropsOrBool::Bool(false)) => Additional::Nothing,
            Some(JSONSchemaPropsOrBool::Bool(true)) => Additional::Anything,
            Some(JSONSchemaPropsOrBool::Schema(schema)) => Additional::Of(one(schema, rules)),
        };
        let items = match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(schema)) => Some(one(schema, rules)),
            Some(JSONSchemaPropsOrArray::Schemas(_)) | None => None,
        };
        let all_of = Self::all(schema.all_of.as_deref(), rules);
        let own = rules.of(schema.x_kubernetes_validations.as_deref().unwrap_or_default());
        let inside = |nodes: &[Self]| nodes.iter().any(|node| node.has_rules);
        let has_rules = !own.is_empty()
            || properties.values().any(|node| node.has_rules)
            || matches!(&additional, Additional::Of(node) if node.has_rules)
            || items.as_ref().is_some_and(|node| node.has_rules)
            || inside(&all_of);
        Self {
            kind: schema.type_.as_deref().and_then(Kind::new),
            nullable: schema.nullable == Some(true),
            int_or_string: schema.x_kubernetes_int_or_string == Some(true),
            preserve: schema.x_kubernetes_preserve_unknown_fields == Some(true),
            embedded: schema.x_kubernetes_embedded_resource == Some(true),
            properties,
            additional,
            items,
            required: schema.required.clone().unwrap_or_default(),
            allowed: schema.enum_.iter().flatten().map(|value| value.0.clone()).collect(),
            limits: Limits::new(schema),
            pattern: schema.pattern.clone().map(Pattern::new),
            format: schema.format.clone().filter(|format| !format.is_empty()),
            list: ListKind::new(schema),
            default: schema.default.as_ref().map(|value| value.0.clone()),
            all_of,
            any_of: Self::all(schema.any_of.as_deref(), rules),
            one_of: Self::all(schema.one_of.as_deref(), rules),
            not: schema.not.as_deref().map(|schema| one(schema, rules)),
            rules: own,
            has_rules,
        }
    }

    fn all(schemas: Option<&[JSONSchemaProps]>, rules: &mut Rules) -> Vec<Self> {
        schemas.unwrap_or_default().iter().map(|schema| Self::new(schema, rules)).collect()
    }

    /// The schema of a field: the named one, or that of a map's values.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(node), _) => Some(node),
            (None, Additional::Of(node)) => Some(node),
            (None, Additional::Nothing | Additional::Anything) => None,
        }
    }
}

impl Kind {
    fn new(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl ListKind {
    fn new(schema: &JSONSchemaProps) -> Self {
        match schema.x_kubernetes_list_type.as_deref() {
            Some("set") => Self::Set,
            Some("map") => Self::Map(schema.x_kubernetes_list_map_keys.clone().unwrap_or_default()),
            _ => Self::Atomic,
        }
    }
}

impl Limits {
    fn new(schema: &JSONSchemaProps) -> Self {
        Self {
            minimum: schema.minimum,
            above_minimum: schema.exclusive_minimum == Some(true),
            maximum: schema.maximum,
            below_maximum: schema.exclusive_maximum == Some(true),
            multiple_of: schema.multiple_of,
            length: (schema.min_length, schema.max_length),
            items: (schema.min_items, schema.max_items),
            properties: (schema.min_properties, schema.max_properties),
        }
    }
}

impl Pattern {
    fn new(text: String) -> Self {
        let regex = Regex::new(&text).ok();
        Self { text, regex }
    }
}
