//! What a review asks besides policies: claims, AdmissionPolicies, labels, look-ups. Joins
//! `admission` to `cluster` and `claims`, none of which knows the others.

use std::sync::Arc;

use opensdn_policy_host::lookup::Lookup;
use opensdn_policy_host::{
    Claim, EvalFailure, FailureMode, FailureReason, Finding, Mode, Severity,
};
use opensdn_runtime::error_chain;
use tokio::time::Instant;

use crate::admission::{Admission, Claimed, Labels, Surroundings};
use crate::audit::{Audit, Judge};
use crate::claims::{ClaimError, Claims, Conflict, Holder, keeper};
use crate::cluster::{Cluster, Engines};
use crate::process::Parts;

/// What a review asks besides policies.
pub struct Reviewing {
    cluster: Cluster,
    claims: Claims,
}

/// Starts everything that reviews need, and what the leader does in the background.
#[must_use]
pub fn start(parts: Parts, engines: Engines) -> Admission<Reviewing> {
    let cluster = Cluster::start(&parts, engines);
    let Parts { args, client, metrics, leadership, .. } = parts;
    let claims = Claims::start(client.clone(), args.background.grace(), metrics.clone());
    let labels = {
        let cluster = cluster.clone();
        move |namespace: &str| cluster.namespace_labels(namespace)
    };
    let judge = Judge::new(cluster.serving(), cluster.lookup(), Arc::new(labels));
    let counts = metrics.background();
    let audit = Audit::new(
        client.clone(),
        judge.clone(),
        &args.namespace,
        args.background.timing(),
        counts.clone(),
    );
    let keeper = keeper::Keeper::new(client, claims.clone(), judge, &args.replica, counts);
    tokio::spawn(audit.run(leadership.clone()));
    tokio::spawn(keeper.run(leadership));
    let serving = cluster.serving();
    Admission::new(serving, Reviewing { cluster, claims }, metrics)
}

impl Surroundings for Reviewing {
    async fn claim(
        &self,
        holder: Holder,
        claims: Vec<Claim>,
        old: Vec<Claim>,
        dry_run: bool,
        deadline: Instant,
    ) -> Claimed {
        let result = if dry_run {
            self.claims.look(&holder, &claims, deadline).await
        } else {
            self.claims.take(&holder, &claims, &old, deadline).await.map(|taken| {
                taken.keep();
            })
        };
        match result {
            Ok(()) => Claimed::default(),
            Err(ClaimError::Held(conflicts)) => {
                Claimed { findings: conflicts.iter().map(finding).collect(), failures: Vec::new() }
            }
            Err(error) => {
                Claimed { findings: Vec::new(), failures: failures(&claims, &error_chain(&error)) }
            }
        }
    }

    async fn check_policy(&self, object: &str) -> Vec<Finding> {
        self.cluster.check_admission_policy(object.as_bytes()).await
    }

    fn namespace_labels(&self, namespace: &str) -> Option<Arc<Labels>> {
        self.cluster.namespace_labels(namespace)
    }

    fn lookup(&self) -> Arc<dyn Lookup> {
        self.cluster.lookup()
    }
}

fn finding(conflict: &Conflict) -> Finding {
    let Claim { pointer, policy, code, .. } = conflict.claim.clone();
    Finding {
        policy,
        mode: Mode::Enforce,
        code,
        severity: Severity::Deny,
        pointer,
        message: conflict.message(),
        hint: conflict.hint(),
    }
}

/// One failure per policy that claims: each of them could not tell.
fn failures(claims: &[Claim], why: &str) -> Vec<EvalFailure> {
    let mut policies: Vec<&String> = claims.iter().map(|claim| &claim.policy).collect();
    policies.sort();
    policies.dedup();
    policies
        .into_iter()
        .map(|policy| EvalFailure {
            policy: policy.clone(),
            mode: Mode::Enforce,
            // Unique means always: without its claim nothing is stored.
            failure_mode: FailureMode::Fail,
            reason: FailureReason::Inconclusive(why.to_owned()),
        })
        .collect()
}
