//! A request as it came, whole, and its parts as the framework of the Config API reads them.

use http::{HeaderMap, Method, header};
use hyper::body::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::store::Refusal;

pub(super) struct Asked {
    pub(super) method: Method,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// `http://HOST:PORT`, as the client called it.
    pub(super) base: String,
}

impl Asked {
    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// One that is a list with commas.
    pub(super) fn list(&self, name: &str) -> Option<Vec<String>> {
        let value = self.parameter(name)?;
        Some(value.split(',').map(str::to_owned).collect())
    }

    /// `'true' in value.lower()`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.parameter(name).is_some_and(|value| value.to_lowercase().contains("true"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// `request.json`: nothing for an empty body, and for another type than JSON.
    ///
    /// # Errors
    /// It is called JSON and is none.
    pub(super) fn json(&self) -> Result<Option<Value>, Refusal> {
        let name = self.header(header::CONTENT_TYPE.as_str()).unwrap_or_default().to_lowercase();
        let name = name.split(';').next().unwrap_or_default().trim();
        let is_json = ["application/json", "application/json-rpc"].contains(&name);
        if !is_json || self.body.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&self.body).map(Some).map_err(|_| Refusal::internal())
    }
}

/// `a=b&c=d`.
pub(super) fn query(text: &str) -> Vec<(String, String)> {
    let decode =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        })
        .collect()
}
