//! What a live cluster adds, read only: objects for lookups, the stored version of an object, claims
//! that are taken. How a cluster is queried is not known here; callers that validate
//! against one implement [`Cluster`].

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use opensdn_crds::unique_claim::UniqueClaimSpec;
use opensdn_policy_host::Claim;
use serde_json::Value;

use crate::claims::{Claimant, Claims};
use crate::error::Error;
use crate::report::{Location, ObjectId, Origin};
use crate::table::Table;

/// An answer of a cluster. An error ends the validation.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// A live cluster, which is only read.
pub trait Cluster {
    /// Objects of the kind, in all namespaces or in one; a kind that lives in none is listed as a whole. The first
    /// of them, or those after the page that named `after`: who judges them need not have all in memory.
    fn page<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
        after: Option<String>,
    ) -> Answer<'a, Page>;

    /// The kinds of a group that the cluster serves.
    fn kinds<'a>(&'a self, group: &'a str) -> Answer<'a, Vec<String>>;

    /// The object as it is stored, if it is.
    fn get<'a>(&'a self, object: ObjectName<'a>) -> Answer<'a, Option<Value>>;

    /// The claims that are taken; none where the cluster does not serve UniqueClaims.
    fn claims(&self) -> Answer<'_, Vec<UniqueClaimSpec>>;
}

/// What names an object in a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ObjectName<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace; empty: the client's own for a kind that lives in namespaces.
    pub namespace: &'a str,
    /// Name; an object without one is not stored yet.
    pub name: &'a str,
}

/// Objects of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// These.
    pub listed: Listed,
    /// What names this page, where there are more. Empty: what was read is too old to be continued, and the list
    /// begins again.
    pub next: Option<String>,
}

impl From<Listed> for Page {
    fn from(listed: Listed) -> Self {
        Self { listed, next: None }
    }
}

/// What came of a list.
#[derive(Clone, Debug)]
pub enum Listed {
    /// These.
    Objects(Vec<Value>),
    /// The cluster does not serve the kind.
    NotServed,
    /// The user may not list the kind, and why. Lookups of it then have no answer.
    Forbidden(String),
}

/// Adds what lookups may want of the cluster; files that are in the table already win.
///
/// # Errors
/// The cluster does not answer at all.
pub(crate) async fn fill(table: &mut Table, cluster: &dyn Cluster) -> Result<(), Error> {
    let mut forbidden = HashMap::new();
    for kind in table.kinds() {
        let mut after = None;
        loop {
            let page = cluster.page(&kind.0, &kind.1, None, after).await?;
            match page.listed {
                Listed::Objects(objects) => {
                    objects.iter().for_each(|object| table.add(&kind.0, &kind.1, object));
                }
                Listed::NotServed => {}
                Listed::Forbidden(why) => {
                    forbidden.insert(kind.clone(), why);
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    table.set_live(forbidden);
    Ok(())
}

/// Adds the claims that are taken by objects which are not among the documents.
///
/// # Errors
/// The cluster does not answer, or not this user.
pub(crate) async fn add_claims(claims: &mut Claims, cluster: &dyn Cluster) -> Result<(), Error> {
    for stored in cluster.claims().await? {
        let holder = stored.holder;
        let namespace = holder.namespace.unwrap_or_default();
        let identity =
            (holder.group.clone(), holder.kind.clone(), namespace.clone(), holder.name.clone());
        if claims.defines(&identity) {
            continue;
        }
        let version = holder.version.unwrap_or_default();
        let api_version = match holder.group.as_str() {
            "" => version,
            group => format!("{group}/{version}"),
        };
        let object = ObjectId { api_version, kind: holder.kind, namespace, name: holder.name };
        let place = Location::of_file(Origin::Cluster, format!("cluster: {object}"), 0);
        claims.add(Claimant {
            object,
            place,
            claim: Claim {
                scope: stored.scope,
                key: stored.key,
                value: stored.value,
                pointer: holder.pointer.unwrap_or_default(),
                policy: String::new(),
                code: String::new(),
            },
            title: String::new(),
            policy: None,
            granted: None,
        });
    }
    Ok(())
}
