//! A field, written for people.

use std::io::{self, Write};

use serde_json::Value;

use super::{Depth, Field, FieldCode, FieldExplanation, FieldRule};
use crate::ui::{Layout, style, wrap};

/// Writes what is known of the field, and of its fields: each with its text, or all of them as a tree.
pub(crate) fn describe(
    explanation: &FieldExplanation,
    depth: Depth,
    layout: Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let strong = style::STRONG;
    let FieldExplanation { api_version, kind, field, codes } = explanation;
    writeln!(out, "{strong}{}{strong:#}  {}", field.path, kind_of(field))?;
    paragraph(2, "of:   ", &format!("{kind}, {api_version}"), layout, out)?;
    paragraph(2, "", &field.description, layout, out)?;
    facts(2, field, layout, out)?;
    for FieldRule { code, message, rule: _ } in &field.rules {
        let code = code.iter().map(|code| format!("{code} ")).collect::<String>();
        paragraph(2, "rule: ", &format!("{code}{message}"), layout, out)?;
    }
    for FieldCode { code, policy, severity, title } in codes {
        let severity = severity.word();
        let said = format!("{code} ({severity}, by the policy {policy}) {title}");
        paragraph(2, "code: ", &said, layout, out)?;
    }
    if field.fields.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    match depth {
        Depth::All => tree(&field.fields, 2, out),
        Depth::One => field.fields.iter().try_for_each(|one| child(one, layout, out)),
    }
}

fn child(field: &Field, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    let strong = style::STRONG;
    writeln!(out, "  {strong}{}{strong:#}  {}", name(field), kind_of(field))?;
    paragraph(6, "", &field.description, layout, out)?;
    facts(6, field, layout, out)
}

fn tree(fields: &[Field], indent: usize, out: &mut dyn Write) -> io::Result<()> {
    fields.iter().try_for_each(|field| {
        writeln!(out, "{:indent$}{}  {}", "", name(field), kind_of(field))?;
        tree(&field.fields, indent + 2, out)
    })
}

fn name(field: &Field) -> &str {
    field.path.rsplit('.').next().unwrap_or_default()
}

fn kind_of(field: &Field) -> String {
    let required = if field.required { " (required)" } else { "" };
    format!("<{}>{required}", field.type_name)
}

/// What is filled in, and which values there are.
fn facts(indent: usize, field: &Field, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    if let Some(default) = &field.default {
        paragraph(indent, "default: ", &shown(default), layout, out)?;
    }
    if !field.allowed.is_empty() {
        let values: Vec<String> = field.allowed.iter().map(shown).collect();
        paragraph(indent, "one of: ", &values.join(", "), layout, out)?;
    }
    paragraph(indent, "", &bounds(field).join("; "), layout, out)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}

/// Each pair of limits in words.
fn bounds(field: &Field) -> Vec<String> {
    let mut said = Vec::new();
    for (prefix, of) in [("", ""), ("items.", "each "), ("values.", "each value ")] {
        let bound = |keyword: &str| field.bounds.get(&format!("{prefix}{keyword}"));
        let pairs = [
            ("minimum", "maximum", ""),
            ("minLength", "maxLength", " characters"),
            ("minItems", "maxItems", " items"),
            ("minProperties", "maxProperties", " entries"),
        ];
        for (least, most, unit) in pairs {
            said.extend(range(bound(least), bound(most)).map(|range| format!("{of}{range}{unit}")));
        }
        for (keyword, words) in [
            ("multipleOf", "a multiple of"),
            ("pattern", "as in"),
            ("listMapKeys", "each known by"),
        ] {
            said.extend(bound(keyword).map(|value| format!("{of}{words} {}", list(value))));
        }
        let exclusive = [
            ("exclusiveMinimum", "more than the least"),
            ("exclusiveMaximum", "less than the most"),
        ];
        for (keyword, words) in exclusive {
            said.extend(bound(keyword).map(|_| format!("{of}{words}")));
        }
    }
    said
}

fn list(value: &Value) -> String {
    let items: Option<Vec<String>> =
        value.as_array().map(|items| items.iter().map(shown).collect());
    items.map_or_else(|| shown(value), |items| items.join(", "))
}

fn range(least: Option<&Value>, most: Option<&Value>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

fn paragraph(
    indent: usize,
    label: &str,
    text: &str,
    layout: Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let room = layout.width.saturating_sub(indent + label.len());
    let mut label = label.to_owned();
    for line in wrap(text, room) {
        writeln!(out, "{:indent$}{label}{line}", "")?;
        label = " ".repeat(label.len());
    }
    Ok(())
}
