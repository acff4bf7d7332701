//! The request that policies judge, as the host's user hands it in.

use std::collections::BTreeMap;

use crate::{contract::Operation, scan::Document};

/// What a user asks the API server to do, with the objects found in its text.
#[derive(Clone, Debug)]
pub struct Request<'r> {
    /// Create, update, delete or connect.
    pub operation: Operation,
    /// API group; `""` is the core group.
    pub group: &'r str,
    /// API version, without the group.
    pub version: &'r str,
    /// Kind.
    pub kind: &'r str,
    /// `""`, or `status`, `scale` …
    pub subresource: &'r str,
    /// Name; empty while generateName has not made one.
    pub name: &'r str,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: &'r str,
    /// Labels of the namespace, where they are known. Unknown labels match every selector: a
    /// policy is not skipped for lack of knowledge.
    pub namespace_labels: Option<&'r BTreeMap<String, String>>,
    /// Name of the user.
    pub user: &'r str,
    /// Groups of the user.
    pub groups: &'r [String],
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The object as it will be; absent on delete.
    pub object: Option<Document<'r>>,
    /// The object as it is stored; absent on create.
    pub old_object: Option<Document<'r>>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request without an object.
    pub(crate) fn request<'r>(group: &'r str, kind: &'r str, operation: Operation) -> Request<'r> {
        Request {
            operation,
            group,
            version: "v1",
            kind,
            subresource: "",
            name: "n",
            namespace: "ns",
            namespace_labels: None,
            user: "u",
            groups: &[],
            dry_run: false,
            object: None,
            old_object: None,
        }
    }
}
