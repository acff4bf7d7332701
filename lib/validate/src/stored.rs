//! What policies would say of what a cluster has stored, if they were enforced now: the same that the
//! webhook's audit says of those in force. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opensdn_policy_host::stored::{EvaluateAs, Found, StoredObject, Subjects, Weight, distinct};
use opensdn_policy_host::{Claim, Context, Mode, PolicySet};
use tokio::time::Instant;

use crate::active_policies::{self, PolicyOptions};
use crate::cluster::{self, Cluster, Listed};
use crate::error::Error;
use crate::loader::Loader;
use crate::report::{NotChecked, PolicyId};
use crate::table::{Table, View};

/// How long all policies together may take for one object.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Which policies, and of which objects.
#[derive(Clone, Debug, Default)]
pub struct WhatIf {
    /// Modules (`.wasm`) and AdmissionPolicies (`.yaml`).
    pub policies: Vec<PathBuf>,
    /// The only namespace whose objects are judged. What is looked up may be in any.
    pub namespace: Option<String>,
}

/// What they would say.
#[derive(Debug, Default)]
pub struct WouldSay {
    /// By object, in the order of kinds and lists.
    pub findings: Vec<(StoredObject, Found)>,
    /// Objects that were judged.
    pub objects: usize,
    /// The policies.
    pub policies: Vec<PolicyId>,
    /// What was not judged, and why.
    pub not_checked: Vec<NotChecked>,
}

/// Judges what is stored by these policies alone, each as if it enforced.
///
/// # Errors
/// A policy cannot be used, or the cluster does not answer.
pub async fn what_if(
    loader: Loader<'_>,
    asked: &WhatIf,
    cluster: &dyn Cluster,
) -> Result<WouldSay, Error> {
    let options = PolicyOptions { policies: asked.policies.clone(), ..PolicyOptions::default() };
    let active = active_policies::enforcing(loader, &options).await?;
    let mut table = Table::of(&active.set);
    cluster::fill(&mut table, cluster).await?;
    let mut judging = Judging {
        set: &active.set,
        table: Arc::new(table),
        claims: BTreeMap::new(),
        said: WouldSay { policies: active.ids.into_values().collect(), ..WouldSay::default() },
    };
    let mut served = BTreeMap::new();
    for group in Subjects::whole_groups(active.set.bindings()) {
        let kinds = cluster.kinds(&group).await?;
        served.insert(group, kinds);
    }
    let kinds_of = |group: &str| served.get(group).cloned().unwrap_or_default();
    let subjects = Subjects::of(active.set.bindings(), &kinds_of);
    for (policy, why) in subjects.not_listed {
        judging.not_checked(format!("policy {policy}"), why);
    }
    for (group, kind) in subjects.kinds {
        judging.judge_kind(cluster, (&group, &kind), asked.namespace.as_deref()).await?;
    }
    Ok(judging.end())
}

struct Judging<'a> {
    set: &'a PolicySet,
    table: Arc<Table>,
    /// Who claims what: scope and key.
    claims: BTreeMap<(String, String), Vec<(StoredObject, Claim)>>,
    said: WouldSay,
}

impl Judging<'_> {
    fn not_checked(&mut self, what: String, why: String) {
        self.said.not_checked.push(NotChecked { what, why });
    }

    /// Page by page: of what is judged only what was found stays in memory.
    async fn judge_kind(
        &mut self,
        cluster: &dyn Cluster,
        (group, kind): (&str, &str),
        namespace: Option<&str>,
    ) -> Result<(), Error> {
        // Where the list begins again, most have been judged.
        let mut judged = BTreeSet::new();
        let mut after = None;
        loop {
            let page = cluster.page(group, kind, namespace, after).await?;
            match page.listed {
                Listed::Objects(objects) => {
                    for object in objects.iter().filter_map(StoredObject::read) {
                        let is_meant = namespace.is_none_or(|one| one == object.namespace);
                        let name = (object.namespace.clone(), object.name.clone());
                        if is_meant && judged.insert(name) {
                            self.judge(&object).await;
                        }
                    }
                }
                Listed::NotServed => {
                    self.not_checked(kind.to_owned(), "the cluster does not serve it".to_owned());
                }
                Listed::Forbidden(why) => self.not_checked(kind.to_owned(), why),
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn judge(&mut self, object: &StoredObject) {
        let mut verdicts = Vec::new();
        for evaluate_as in [EvaluateAs::Created, EvaluateAs::Updated] {
            match self.verdict(object, evaluate_as).await {
                Ok(verdict) => verdicts.push(verdict),
                Err(why) => return self.not_checked(object.title(), why),
            }
        }
        self.said.objects += 1;
        for claim in verdicts.iter().flat_map(|verdict| verdict.claims.iter()) {
            let holders = self.claims.entry((claim.scope.clone(), claim.key.clone())).or_default();
            if holders.iter().all(|(holder, _)| holder.uid != object.uid) {
                holders.push((object.identity(), claim.clone()));
            }
        }
        let found = distinct(verdicts).into_iter();
        self.said.findings.extend(found.map(|one| (object.identity(), one)));
    }

    async fn verdict(
        &self,
        object: &StoredObject,
        evaluate_as: EvaluateAs,
    ) -> Result<opensdn_policy_host::Verdict, String> {
        let StoredObject { group, kind, namespace, name, .. } = object;
        let (kind, place) = ((group.clone(), kind.clone()), (namespace.clone(), name.clone()));
        let view = View::new(&self.table, kind, place, &Arc::default());
        let deadline = Instant::now() + EVALUATION_TIMEOUT;
        let context = Context { lookup: Arc::new(view), deadline };
        let labels = self.table.namespace_labels(namespace);
        let verdict = self.set.evaluate_stored(object, evaluate_as, labels, &context).await;
        verdict.map_err(|error| error.to_string())
    }

    /// Of several objects that claim one key the oldest has it, as in the cluster.
    fn end(self) -> WouldSay {
        let mut said = self.said;
        for mut holders in self.claims.into_values() {
            holders.sort_by(|(one, _), (other, _)| {
                (&one.created, &one.uid).cmp(&(&other.created, &other.uid))
            });
            let mut holders = holders.into_iter();
            let Some((first, held)) = holders.next() else { continue };
            let others = holders.filter(|(_, claim)| !held.shares_with(claim.value.as_deref()));
            said.findings.extend(others.map(|(object, claim)| {
                let found = conflict(&first, claim);
                (object, found)
            }));
        }
        said
    }
}

fn conflict(first: &StoredObject, claim: Claim) -> Found {
    let Claim { scope, key, pointer, policy, code, .. } = claim;
    Found {
        policy,
        mode: Mode::Enforce,
        code,
        weight: Weight::Denial,
        pointer,
        message: format!("{key:?} ({scope}) is taken by {}, which is older", first.title()),
        hint: "give one of them another, or delete the one that is not needed".to_owned(),
    }
}
