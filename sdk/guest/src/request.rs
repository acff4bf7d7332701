//! The request that a policy judges.

use crate::{Failure, Operation, Reads, Unreadable, bindings::opensdn::policy::types as wire};

/// What the user asks for, with the parts of the object that the policy declared.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// Create, update, delete or connect.
    pub operation: Operation,
    /// API group of the object; `""` is the core group.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Kind of the object.
    pub kind: String,
    /// `""`, or `status`, `scale` …
    pub subresource: String,
    /// Name of the object; empty in the mutating step of a create with generateName.
    pub name: String,
    /// Namespace of the object; empty for a cluster-scoped one.
    pub namespace: String,
    /// Name of the user who asks.
    pub user: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The object as it will be; absent on delete.
    pub object: Option<T>,
    /// The object as it is stored; absent on create.
    pub old_object: Option<T>,
}

impl<T: Reads> Request<T> {
    pub(crate) fn from_wire(request: wire::Request) -> Result<Self, Failure> {
        Ok(Self {
            operation: Operation::from_wire(request.operation),
            object: read(&request.object)?,
            old_object: read(&request.old_object)?,
            group: request.group,
            version: request.version,
            kind: request.kind,
            subresource: request.subresource,
            name: request.name,
            namespace: request.namespace,
            user: request.user,
            groups: request.groups,
            dry_run: request.dry_run,
        })
    }
}

/// An empty list means "no such object": a declaration has at least one part.
fn read<T: Reads>(parts: &[Option<String>]) -> Result<Option<T>, Unreadable> {
    if parts.is_empty() { Ok(None) } else { T::from_parts(parts).map(Some) }
}

impl From<Unreadable> for Failure {
    fn from(unreadable: Unreadable) -> Self {
        Self(unreadable.to_string())
    }
}
