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
    /// The only namespace whose objects are judged. What is looked up, and what has a claim, may be in any.
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
        namespace: asked.namespace.as_deref(),
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
    let claiming = active.set.bindings().filter(|binding| binding.policy.metadata().claims);
    let claiming = Subjects::of(claiming, &kinds_of).kinds;
    for kind in subjects.kinds {
        judging.judge_kind(cluster, &kind, claiming.contains(&kind)).await?;
    }
    Ok(judging.end())
}

struct Judging<'a> {
    set: &'a PolicySet,
    table: Arc<Table>,
    /// The only one whose objects are judged.
    namespace: Option<&'a str>,
    /// Who claims what: scope and key.
    claims: BTreeMap<(String, String), Vec<(StoredObject, Claim)>>,
    said: WouldSay,
}

impl Judging<'_> {
    fn not_checked(&mut self, what: String, why: String) {
        self.said.not_checked.push(NotChecked { what, why });
    }

    /// What a claim collides with may be in any namespace: where something is claimed all are read.
    async fn judge_kind(
        &mut self,
        cluster: &dyn Cluster,
        kind: &(String, String),
        claims: bool,
    ) -> Result<(), Error> {
        let namespace = if claims { None } else { self.namespace };
        let Err(why) = self.judge_all(cluster, kind, namespace).await? else { return Ok(()) };
        match self.namespace {
            Some(one) if claims => {
                let what = format!("what is claimed by each {} outside of {one}", kind.1);
                self.not_checked(what, why);
                if let Err(why) = self.judge_all(cluster, kind, Some(one)).await? {
                    self.not_checked(kind.1.clone(), why);
                }
            }
            _ => self.not_checked(kind.1.clone(), why),
        }
        Ok(())
    }

    /// Page by page: of what is judged only what was found stays in memory. The inner error says why the
    /// user may not list them.
    async fn judge_all(
        &mut self,
        cluster: &dyn Cluster,
        (group, kind): &(String, String),
        namespace: Option<&str>,
    ) -> Result<Result<(), String>, Error> {
        // Where the list begins again, most have been judged.
        let mut judged = BTreeSet::new();
        let mut after = None;
        loop {
            let page = cluster.page(group, kind, namespace, after).await?;
            match page.listed {
                Listed::Objects(objects) => {
                    for object in objects.iter().filter_map(StoredObject::read) {
                        let name = (object.namespace.clone(), object.name.clone());
                        if judged.insert(name) {
                            self.judge(&object).await;
                        }
                    }
                }
                Listed::NotServed => {
                    self.not_checked(kind.to_owned(), "the cluster does not serve it".to_owned());
                }
                Listed::Forbidden(why) => return Ok(Err(why)),
            }
            after = page.next;
            if after.is_none() {
                return Ok(Ok(()));
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
        for claim in verdicts.iter().flat_map(|verdict| verdict.claims.iter()) {
            let holders = self.claims.entry((claim.scope.clone(), claim.key.clone())).or_default();
            if holders.iter().all(|(holder, _)| holder.uid != object.uid) {
                holders.push((object.identity(), claim.clone()));
            }
        }
        if is_meant(self.namespace, object) {
            self.said.objects += 1;
            let found = distinct(verdicts).into_iter();
            self.said.findings.extend(found.map(|one| (object.identity(), one)));
        }
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
        let context = Context { lookup: Arc::new(view), deadline, is_background: false };
        let labels = self.table.namespace_labels(namespace);
        let verdict = self.set.evaluate_stored(object, evaluate_as, labels, &context).await;
        verdict.map_err(|error| error.to_string())
    }

    /// Of several objects that claim one key the oldest has it, as in the cluster.
    fn end(self) -> WouldSay {
        let Self { claims, namespace, mut said, .. } = self;
        for mut holders in claims.into_values() {
            holders.sort_by(|(one, _), (other, _)| {
                (&one.created, &one.uid).cmp(&(&other.created, &other.uid))
            });
            let mut holders = holders.into_iter();
            let Some((first, held)) = holders.next() else { continue };
            let others = holders.filter(|(other, claim)| {
                is_meant(namespace, other) && !held.shares_with(claim.value.as_deref())
            });
            said.findings.extend(others.map(|(object, claim)| {
                let found = conflict(&first, claim);
                (object, found)
            }));
        }
        said
    }
}

/// Whether the object is to be judged, not only asked for what it claims.
fn is_meant(namespace: Option<&str>, object: &StoredObject) -> bool {
    namespace.is_none_or(|one| one == object.namespace)
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
