//! What was asked and written, in order.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use http::{Method, StatusCode};
use hyper::body::Bytes;
use serde_json::Value;

use super::request::Asked;
use super::rule::Fault;

/// A write that was counted.
#[derive(Clone, PartialEq, Eq)]
pub struct Write {
    /// `PATCH`.
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// The answer; none, if there was none.
    pub status: Option<StatusCode>,
    body: Bytes,
}

impl Write {
    pub(super) fn new(asked: &Asked, body: &Bytes) -> Self {
        let (method, path) = (asked.method.clone(), asked.path.clone());
        Self { method, path, status: None, body: body.clone() }
    }

    /// What was sent; nothing where that is no JSON.
    #[must_use]
    pub fn body(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Without what was sent, which may be long, and secret.
impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.method, self.path, self.status)
    }
}

#[derive(Debug)]
pub(super) struct Journal {
    pub(super) requests: Vec<Asked>,
    pub(super) writes: Vec<Write>,
    pub(super) last: Instant,
    /// By the number of the write, from 0.
    pub(super) faults: BTreeMap<usize, Fault>,
}

impl Journal {
    pub(super) fn new(faults: impl IntoIterator<Item = (usize, Fault)>) -> Self {
        let (last, faults) = (Instant::now(), faults.into_iter().collect());
        Self { requests: Vec::new(), writes: Vec::new(), last, faults }
    }
}
