//! Collects what is refused.

use crate::invalid::{InvalidInputs, InvalidValue};
use crate::shape::Shape;

/// As many as a user would write; the objects stay far below the limit of the API server.
const MOST: usize = 64;

/// What has been refused so far.
#[derive(Default)]
pub(super) struct Fields {
    wrong: Vec<InvalidValue>,
}

impl Fields {
    pub(super) fn refuse(&mut self, field: &str, value: &str, rule: &'static str) {
        let (field, value) = (field.to_owned(), value.to_owned());
        self.wrong.push(InvalidValue { field, value, rule });
    }

    pub(super) fn shape(&mut self, field: &str, value: &str, shape: &Shape) {
        if !shape.holds(value) {
            self.refuse(field, value, shape.rule);
        }
    }

    pub(super) fn optional(&mut self, field: &str, value: Option<&str>, shape: &Shape) {
        if let Some(value) = value {
            self.shape(field, value, shape);
        }
    }

    /// At least one, and none twice.
    pub(super) fn list(&mut self, field: &str, values: &[String], shape: &Shape) {
        if values.is_empty() || values.len() > MOST {
            self.refuse(
                field,
                &format!("{} values", values.len()),
                "must have from 1 to 64 values",
            );
        }
        for (at, value) in values.iter().enumerate() {
            self.shape(field, value, shape);
            if values.iter().take(at).any(|other| other == value) {
                self.refuse(field, value, "must have each value once");
            }
        }
    }

    /// The port, and where it is none the default beside a refusal.
    pub(super) fn port(&mut self, field: &str, given: Option<i64>, default: u16) -> u16 {
        let Some(port) = given else { return default };
        match u16::try_from(port) {
            Ok(right) if right > 0 => right,
            _ => {
                self.refuse(field, &port.to_string(), "must be a port from 1 to 65535");
                default
            }
        }
    }

    pub(super) fn end(self) -> Result<(), InvalidInputs> {
        if self.wrong.is_empty() { Ok(()) } else { Err(InvalidInputs(self.wrong)) }
    }
}
