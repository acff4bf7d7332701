//! Which parts the webhook has, and what each is given: discovery, lookup caches, policies, webhook
//! configurations, claims, audit. Joins `admission` to what a review asks besides policies. What
//! each part does is in its own module; signals, ports and certificates are in `startup`; the process that
//! only writes the webhook configurations is in `wiring/configuration_only.rs`.

mod configuration_only;

use std::sync::Arc;

use kube::Client;
use opensdn_pki::Published;
use opensdn_policy_host::lookup::Lookup;
use opensdn_policy_host::{
    Claim, EvalFailure, FailureMode, FailureReason, Finding, Mode, Severity,
};
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::Drain;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::active::ActivePolicies;
use crate::admission::{Admission, Claimed, Labels, Purpose, ReviewBackend};
use crate::args::{Args, Run};
use crate::audit::Audit;
use crate::certificates::Bundle;
use crate::claims::controller::ClaimController;
use crate::claims::{ClaimError, Claims, Conflict, Holder};
use crate::configuration::{self, Serving, WriterDeps, bundle};
use crate::evaluate::Evaluator;
use crate::lookup::LookupCaches;
use crate::metrics::Metrics;
use crate::path_tokens::{PathToken, PathTokens};
use crate::policies::check::Checker;
use crate::policies::engines::Engines;
use crate::policies::{self, ClaimsProgress, Demanded, Rollout};
use crate::replicas::Replicas;

pub use configuration_only::{ConfigurationContext, start as start_configuration_only};

/// What the parts are started from.
pub struct Context {
    /// The command line.
    pub args: Args,
    /// The API server.
    pub client: Client,
    /// Where to count.
    pub metrics: Metrics,
    /// Where each part adds its checks.
    pub readiness: Readiness,
    /// Whether this replica acts for all.
    pub leadership: Leadership,
    /// When to stop.
    pub drain: Drain,
    /// What to write into webhook configurations as `caBundle`; none if the certificate is not
    /// ours, and they are to be left as they are.
    pub bundle: Bundle,
    /// Where to say which bundle all webhook configurations carry, and since when: without it a
    /// rotation of the CA waits.
    pub published: watch::Sender<Option<Published>>,
    /// What callers show in their paths.
    pub path_tokens: PathTokens,
    /// Where to say which one all webhook configurations carry: without it none is replaced.
    pub published_path: watch::Sender<Option<PathToken>>,
}

/// What a review asks besides policies.
pub struct ReviewContext {
    lookups: LookupCaches,
    checker: Checker,
    claims: Claims,
}

/// Starts everything that reviews need, and what the leader does in the background.
#[must_use]
pub fn start(context: Context, engines: Engines) -> Admission<ReviewContext> {
    let Context { args, client, metrics, .. } = &context;
    let staleness = args.lookup.staleness();
    // One for all parts: two could answer differently.
    let discovery = Discovery::start(client.clone(), staleness / 3);
    let lookups = LookupCaches::start(
        client.clone(),
        discovery.clone(),
        staleness,
        metrics.clone(),
        context.readiness.clone(),
    );
    let active = Arc::new(ActivePolicies::new(metrics.clone()));
    let claimed = watch::Sender::new(ClaimsProgress::default());
    let (checker, rollout) =
        start_policies(&context, engines, &active, &lookups, &discovery, claimed.subscribe());
    let claims = Claims::start(client.clone(), args.claims.grace(), metrics.clone());
    let progress = ClaimProgress { rollout, claimed };
    start_background(&context, &active, &lookups, discovery, &claims, progress);
    Admission::new(active, ReviewContext { lookups, checker, claims }, context.metrics)
}

/// Policies, and the webhook configurations that follow from them.
fn start_policies(
    context: &Context,
    engines: Engines,
    active: &Arc<ActivePolicies>,
    lookups: &LookupCaches,
    discovery: &Discovery,
    claims: watch::Receiver<ClaimsProgress>,
) -> (Checker, Rollout) {
    let Context { args, client, metrics, readiness, leadership, drain, .. } = context;
    let replicas = Replicas::start(
        client.clone(),
        &args.namespace,
        &args.replica,
        leadership.clone(),
        readiness.clone(),
        drain.clone(),
    );
    let loader = policies::LoaderDeps {
        client: client.clone(),
        engines,
        folder: args.policies.policy_folder.clone(),
        limits: args.policies.limits(),
        metrics: metrics.clone(),
        readiness: readiness.clone(),
    };
    let deps = policies::Deps {
        replica: args.replica.clone(),
        active: Arc::clone(active),
        lookups: lookups.clone(),
        discovery: discovery.clone(),
        leadership: leadership.clone(),
        replicas,
        claims,
    };
    let policies = policies::start(loader, deps);
    start_configuration(context, discovery.clone(), policies.demand);
    (policies.checker, policies.rollout)
}

/// The webhook configurations, which are only watched where another process writes them.
fn start_configuration(context: &Context, discovery: Discovery, demand: Demanded) {
    let args = &context.args;
    let deps = configuration::Deps {
        client: context.client.clone(),
        published: context.published.clone(),
        published_path: context.published_path.clone(),
        drain: context.drain.clone(),
        metrics: context.metrics.configuration(),
    };
    let writer = (args.run == Run::All).then(|| WriterDeps {
        client: context.client.clone(),
        replica: args.replica.clone(),
        address: args.configuration.address(&args.namespace, &args.certificate.service),
        has_client_auth: args.certificate.client_ca.is_some(),
        namespace: args.namespace.clone(),
        user: args.configuration.user(&args.namespace),
        serving: Serving::Here,
        discovery,
        demand,
        bundle: match &args.configuration.ca_bundle {
            Some(path) => bundle::follow_file(path.clone()),
            None => context.bundle.clone(),
        },
        path_token: context.path_tokens.current(),
        leadership: context.leadership.clone(),
        drain: context.drain.clone(),
        readiness: context.readiness.clone(),
        metrics: context.metrics.configuration(),
    });
    configuration::start(deps, writer);
}

/// What the claim controller asks of the policies, and what it reports to them.
struct ClaimProgress {
    rollout: Rollout,
    claimed: watch::Sender<ClaimsProgress>,
}

/// What only the leader does: the audit and the claim controller.
fn start_background(
    context: &Context,
    active: &Arc<ActivePolicies>,
    lookups: &LookupCaches,
    discovery: Discovery,
    claims: &Claims,
    ClaimProgress { rollout, claimed }: ClaimProgress,
) {
    let Context { args, client, leadership, .. } = context;
    let labels = {
        let lookups = lookups.clone();
        move |namespace: &str| lookups.namespace_labels(namespace)
    };
    let evaluator = Evaluator::new(Arc::clone(active), Arc::new(lookups.clone()), Arc::new(labels));
    let counts = context.metrics.background();
    let audit = Audit::new(
        client.clone(),
        evaluator.clone(),
        claims.clone(),
        discovery.clone(),
        &args.namespace,
        args.audit.timing(),
        context.metrics.audit(),
    );
    let controller = ClaimController::new(
        client.clone(),
        claims.clone(),
        evaluator,
        discovery,
        &args.replica,
        counts,
    )
    .waiting_for(Arc::new(move |policy: &str| rollout.is_complete(policy)))
    .reporting_to(claimed);
    tokio::spawn(context.metrics.background().follow(leadership.clone()));
    tokio::spawn(audit.run(leadership.clone()));
    tokio::spawn(controller.run(leadership.clone()));
}

impl ReviewBackend for ReviewContext {
    async fn claim(
        &self,
        holder: Holder,
        claims: Vec<Claim>,
        old: Vec<Claim>,
        purpose: Purpose,
        deadline: Instant,
    ) -> Claimed {
        if purpose == Purpose::Create && self.claims.is_name_taken(&holder, deadline).await {
            return Claimed { name_is_taken: true, ..Claimed::default() };
        }
        let result = if purpose == Purpose::DryRun {
            self.claims.check(&holder, &claims, deadline).await
        } else {
            self.claims.take(&holder, &claims, &old, deadline).await.map(|guard| {
                guard.commit();
            })
        };
        match result {
            Ok(()) => Claimed::default(),
            Err(ClaimError::Held(conflicts)) => {
                let findings = conflicts.iter().map(finding).collect();
                let held_by = conflicts.into_iter().map(|conflict| conflict.held.uid).collect();
                Claimed { findings, held_by, ..Claimed::default() }
            }
            Err(error) => {
                let failures = failures(&claims, &error_chain(&error));
                Claimed { failures, ..Claimed::default() }
            }
        }
    }

    async fn check_policy(&self, object: &str) -> Vec<Finding> {
        self.checker.check(object).await
    }

    fn namespace_labels(&self, namespace: &str) -> Option<Arc<Labels>> {
        self.lookups.namespace_labels(namespace)
    }

    fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::new(self.lookups.clone())
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

/// One failure per policy that claims: each of them is inconclusive.
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
            reason: FailureReason::Inconclusive(why.to_owned()).shortened(),
        })
        .collect()
}
