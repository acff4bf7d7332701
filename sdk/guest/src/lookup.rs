//! What a policy may know about the rest of the cluster.

use serde::de::DeserializeOwned;

use crate::{
    Failure,
    bindings::opensdn::policy::{cluster, types as wire},
    reads::without_value,
};

/// An index over the objects of one kind: a constant, listed in `policy!`. The host keeps it
/// current, so a lookup costs the same with ten objects and with a hundred thousand.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    /// A name of your choice, unique in the policy.
    pub name: &'static str,
    /// API group; `""` is the core group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Where an object's keys are; a segment `*` means every element. `""` puts every object
    /// under the key `""`.
    pub key: &'static str,
    /// What a lookup returns of each object.
    pub reads: &'static [&'static str],
}

impl Index {
    /// The object of that name, if there is one.
    ///
    /// # Errors
    /// The host cannot answer now. Pass it on with `?`: not knowing is not the same as absent.
    pub fn get(&self, namespace: &str, name: &str) -> Result<Option<Found>, Failure> {
        cluster::get(self.name, namespace, name)
            .map(|found| found.map(Found))
            .map_err(|reason| self.failure(&reason))
    }

    /// All objects that have the key, ordered by namespace and name.
    ///
    /// # Errors
    /// The host cannot answer now.
    pub fn find(&self, key: &str) -> Result<Vec<Found>, Failure> {
        cluster::find(self.name, key)
            .map(|found| found.into_iter().map(Found).collect())
            .map_err(|reason| self.failure(&reason))
    }

    /// The first objects that have the key, ordered by namespace and name: at most so many, and fewer where
    /// they are more than an evaluation may look up. Use it where tenants can make objects with
    /// the key: by as many as they like they would end an evaluation that calls [`Index::find`].
    ///
    /// # Errors
    /// The host cannot answer now.
    pub fn find_first(&self, key: &str, most: u32) -> Result<Vec<Found>, Failure> {
        cluster::find_first(self.name, key, most)
            .map(|found| found.into_iter().map(Found).collect())
            .map_err(|reason| self.failure(&reason))
    }

    fn failure(&self, reason: &str) -> Failure {
        Failure(format!("cannot look up {} objects: {reason}", self.kind))
    }

    pub(crate) fn into_wire(self) -> wire::Index {
        wire::Index {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            key: self.key.to_owned(),
            reads: self.reads.iter().map(|pointer| (*pointer).to_owned()).collect(),
        }
    }
}

/// An object that a lookup found.
#[derive(Clone, Debug)]
pub struct Found(cluster::Found);

impl Found {
    /// Namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// UID.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// The part number `number` of [`Index::reads`]; `None` where the object has none.
    ///
    /// # Errors
    /// The part has another type, or there is no such number.
    pub fn part<T: DeserializeOwned>(&self, number: usize) -> Result<Option<T>, Failure> {
        let part = self
            .0
            .parts
            .get(number)
            .ok_or_else(|| Failure(format!("the index declares no part {number}")))?;
        part.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
            let why = without_value(&error);
            Failure(format!("object {} is unreadable: {why}", self.name()))
        })
    }
}
