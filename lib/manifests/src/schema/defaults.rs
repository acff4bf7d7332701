//! Nulls and defaults as the API server treats them before it checks anything.

use serde_json::Value;

use super::node::Node;

/// Removes nulls from fields that cannot be null and have no default: to the API server they are
/// not set. Entries of lists stay, and are refused later.
pub(crate) fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(node) = node.field(name) else { return true };
                if value.is_null() && !node.nullable && node.default.is_none() {
                    return false;
                }
                drop_nulls(value, node);
                true
            });
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| drop_nulls(item, node));
            }
        }
        _ => {}
    }
}

/// Writes defaults to fields that are not set, or null where they cannot be.
pub(crate) fn write(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            for (name, node) in &node.properties {
                let Some(default) = &node.default else { continue };
                let unset = fields.get(name).is_none_or(|value| value.is_null() && !node.nullable);
                if unset {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(node) = node.field(name) {
                    write_entry(value, node);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| write_entry(item, node));
            }
        }
        _ => {}
    }
}

fn write_entry(value: &mut Value, node: &Node) {
    if let Some(default) = node.default.as_ref().filter(|_| value.is_null() && !node.nullable) {
        *value = default.clone();
    }
    write(value, node);
}
