//! Policies on objects that are stored, by the same `PolicySet::evaluate` as requests: for the audit,
//! for claims, and for what a policy would say if it were in force.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::contract::Operation;
use crate::request::Request;
use crate::scan::{self, Paths, ScanError};
use crate::set::{Context, PolicySet};
use crate::verdict::Verdict;

mod found;
mod subjects;

pub use found::{Found, Weight, distinct};
pub use subjects::Subjects;

/// Who asks, for policies that look at the user and for exemptions.
pub const USER: &str = "system:opensdn-audit";

/// For which operation an object is evaluated: policies may differ between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvaluateAs {
    /// As if it were created now.
    Created,
    /// As if it were updated to what it is.
    Updated,
}

/// A stored object.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// API group; empty for the core group.
    pub group: String,
    /// Version in which it was read.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// `creationTimestamp`: in UTC and whole seconds, so its order is that of its text.
    pub created: String,
    text: String,
}

impl StoredObject {
    /// Reads the object; `None` if it has no kind or name.
    #[must_use]
    pub fn read(object: &Value) -> Option<Self> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = match text("/apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text("/apiVersion")),
        };
        let stored = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
            uid: text("/metadata/uid").to_owned(),
            created: text("/metadata/creationTimestamp").to_owned(),
            text: object.to_string(),
        };
        (!stored.kind.is_empty() && !stored.name.is_empty()).then_some(stored)
    }

    /// What names it, without what is in it: for who keeps many. The policies find nothing in that.
    #[must_use]
    pub fn identity(&self) -> Self {
        Self {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            created: self.created.clone(),
            text: "{}".to_owned(),
        }
    }

    /// As its user knows it: `Kind namespace/name`.
    #[must_use]
    pub fn title(&self) -> String {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() {
            format!("{kind} {name}")
        } else {
            format!("{kind} {namespace}/{name}")
        }
    }
}

impl PolicySet {
    /// The verdict of the policies on a stored object. `labels` are those of its namespace, where they are
    /// known.
    ///
    /// # Errors
    /// Its text could be read in two ways; the API server stores no such object.
    pub async fn evaluate_stored(
        &self,
        stored: &StoredObject,
        evaluate_as: EvaluateAs,
        labels: Option<&BTreeMap<String, String>>,
        context: &Context,
    ) -> Result<Verdict, ScanError> {
        let mut paths = Paths::new();
        let mount = paths.mount("", self.paths());
        let found = scan::scan(stored.text.as_bytes(), &paths)?;
        let object = found.document(&mount);
        let request = Request {
            operation: match evaluate_as {
                EvaluateAs::Created => Operation::Create,
                EvaluateAs::Updated => Operation::Update,
            },
            group: &stored.group,
            version: &stored.version,
            kind: &stored.kind,
            subresource: "",
            name: &stored.name,
            namespace: &stored.namespace,
            namespace_labels: labels,
            user: USER,
            groups: &[],
            // As for a request that counts: the verdict is to be the same.
            dry_run: false,
            object,
            old_object: object.filter(|_| evaluate_as == EvaluateAs::Updated),
        };
        Ok(self.evaluate(&request, context).await)
    }
}
