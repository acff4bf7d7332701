//! The check of values against their types, as `_validate_complex_type` and its like do it: what Python calls false is
//! not looked at, text that is a number becomes one, nothing is required. Deliberately not here: any rule of what makes
//! sense, for the Config API has none of them.

use serde_json::{Map, Value};

use super::python;
use super::schema::{Class, Count, Field, Property, Shape};

const MODULE: &str = "vnc_api.gen.resource_xsd";

/// Checks the typed properties of a body; converts what upstream converts.
///
/// # Errors
/// What upstream answers after `Bad property in …: `.
pub(super) fn properties(
    typed: impl Iterator<Item = &'static Property>,
    body: &mut Map<String, Value>,
) -> Result<(), String> {
    for property in typed {
        if let Some(value) = body.get_mut(property.name).filter(|value| !python::is_falsy(value)) {
            one_property(property, value)?;
        }
    }
    Ok(())
}

fn one_property(property: &Property, value: &mut Value) -> Result<(), String> {
    let name = property.name;
    let class_name = match &property.shape {
        Shape::Class(class) => class_text(class),
        Shape::AnyObject => format!("<class '{MODULE}'>"),
        simple => {
            *value = simple_value(name, simple, value)
                .map_err(|error| format!("Error validating property {error}"))?;
            return Ok(());
        }
    };
    if !value.is_object() {
        let shown = python::text(value);
        return Err(format!("Error in property {name} type {class_name} value of {shown} "));
    }
    let Shape::Class(class) = &property.shape else { return Ok(()) };
    complex_value(class, value).map_err(|error| {
        format!("Error validating property {name} value {} {error}", python::repr(value))
    })
}

fn class_text(class: &Class) -> String {
    format!("<class '{MODULE}.{}'>", class.name)
}

/// One value of a class, such as one element of a list.
///
/// # Errors
/// What upstream says of it.
pub(super) fn complex_value(class: &Class, value: &mut Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let kind = python::type_name(value);
    let Value::Object(fields) = value else {
        return Err(format!("'{kind}' object has no attribute 'items'"));
    };
    for (key, value) in fields {
        let field = class.fields.iter().find(|field| field.name == key);
        let field = field
            .ok_or_else(|| format!("class {} does not have field {key}", class_text(class)))?;
        if !python::is_falsy(value) {
            one_field(field, value)?;
        }
    }
    Ok(())
}

fn one_field(field: &Field, value: &mut Value) -> Result<(), String> {
    if field.count == Count::One {
        return one_item(field, value);
    }
    let Value::Array(items) = value else {
        let (name, shown) = (field.name, python::text(value));
        return Err(format!("Field {name} must be a list. Received value: {shown}"));
    };
    items.iter_mut().try_for_each(|item| one_item(field, item))
}

fn one_item(field: &Field, item: &mut Value) -> Result<(), String> {
    match &field.shape {
        Shape::Class(class) => complex_value(class, item),
        Shape::AnyObject => Ok(()),
        simple => {
            *item = simple_value(field.name, simple, item)?;
            Ok(())
        }
    }
}

fn simple_value(name: &str, shape: &Shape, value: &Value) -> Result<Value, String> {
    let shown = || python::text(value);
    match shape {
        _ if value.is_null() => Ok(Value::Null),
        Shape::Integer(range) => {
            let number = python::integer(value)
                .ok_or_else(|| format!("{name}: integer value expected instead of {}", shown()))?;
            match (range, number.as_i64()) {
                (Some((low, high)), Some(it)) if it < *low || it > *high => {
                    Err(format!("{name}: value must be between {low} and {high}"))
                }
                _ => Ok(number),
            }
        }
        Shape::Boolean if !value.is_boolean() => {
            Err(format!("{name}: true/false expected instead of {}", shown()))
        }
        Shape::Text(allowed) => match value.as_str() {
            None => Err(format!("{name}: string value expected instead of {}", shown())),
            Some(text) if !allowed.is_empty() && !allowed.contains(&text) => {
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                Err(format!("{name}: value must be one of {}", python::list(&allowed)))
            }
            Some(_) => Ok(value.clone()),
        },
        _ => Ok(value.clone()),
    }
}
