//! What the claim controller and the audit do in the background.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams};
use opensdn_policy_host::lookup::Documents;
use opensdn_policy_host::{
    Binding, Cache, Engine, KindRule, Limits, Mode, Operation, Policy, PolicySet, Ratcheting,
};
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::leader::{Election, Leadership};
use opensdn_runtime::shutdown::{self, Shutdown};
use opensdn_testing::link_local;
use opensdn_testing::{Failed, Outcome};
use opensdn_webhook::active::ActivePolicies;
use opensdn_webhook::audit::{Audit, REPORT, REPORT_KEY, Timing};
use opensdn_webhook::claims::controller::ClaimController;
use opensdn_webhook::evaluate::Evaluator;
use opensdn_webhook::policies::ClaimsProgress;
use tokio::task::JoinHandle;

use super::*;

/// The built-in policy, loaded once for all tests.
async fn policy() -> Result<Policy, Failed> {
    static LOADED: OnceCell<Policy> = OnceCell::const_new();
    let load = async || -> Result<Policy, Failed> {
        let built_in = opensdn_policies::find("duplicate-link-local").ok_or("no such policy")?;
        let (engine, cache) = (Engine::start(8)?, Cache::of_user()?);
        Ok(Policy::load(&engine, built_in.bytes, None, cache.as_ref()).await?)
    };
    Ok(LOADED.get_or_try_init(load).await?.clone())
}

fn binding(policy: &Policy, scope: Scope) -> Binding {
    Binding {
        name: "unique".into(),
        policy: policy.clone(),
        settings: "{}".into(),
        mode: Mode::Enforce,
        failure_mode: None,
        ratcheting: Ratcheting::Enabled,
        scope,
        limits: Limits { time: TIMEOUT, ..Limits::default() },
    }
}

/// One replica's background work; it ends with the test.
pub(super) struct Replica {
    pub(super) claims: Claims,
    evaluator: Evaluator,
    leadership: Leadership,
    metrics: Metrics,
    serving: Arc<ActivePolicies>,
    discovery: Discovery,
    _shutdown: Shutdown,
}

impl Replica {
    pub(super) async fn start(
        client: &Client,
        lease: &str,
        grace: Duration,
        scope: Scope,
    ) -> Result<Self, Failed> {
        Self::with_lookup(client, lease, grace, scope, Documents::new(Vec::new())).await
    }

    /// One whose policies find these objects.
    pub(super) async fn with_lookup(
        client: &Client,
        lease: &str,
        grace: Duration,
        scope: Scope,
        lookup: Documents,
    ) -> Result<Self, Failed> {
        let metrics = Metrics::new();
        let serving = Arc::new(ActivePolicies::new(metrics.clone()));
        serving.swap(PolicySet::new(vec![binding(&policy().await?, scope)], Vec::new()));
        let lookup = Arc::new(lookup);
        let (shutdown, drain) = shutdown::channel();
        Ok(Self {
            claims: claims(client, grace),
            evaluator: Evaluator::new(Arc::clone(&serving), lookup, Arc::new(|_| None)),
            leadership: Leadership::start(
                client.clone(),
                Election::new("default", lease, "replica"),
                drain,
            ),
            metrics,
            serving,
            discovery: Discovery::start(client.clone(), Duration::from_secs(10)),
            _shutdown: shutdown,
        })
    }

    fn controller(&self, client: &Client) -> ClaimController {
        ClaimController::new(
            client.clone(),
            self.claims.clone(),
            self.evaluator.clone(),
            self.discovery.clone(),
            "replica",
            self.metrics.background(),
        )
    }

    pub(super) fn start_controller(&self, client: &Client) -> JoinHandle<()> {
        tokio::spawn(self.controller(client).run(self.leadership.clone()))
    }
}

fn services(client: &Client) -> Api<LinkLocalService> {
    Api::namespaced(client.clone(), "default")
}

pub(super) async fn remove(client: &Client, name: &str) -> Outcome {
    services(client).delete(name, &DeleteParams::default()).await?;
    Ok(())
}

pub(super) async fn reported(client: &Client, name: &str) -> Result<Option<String>, kube::Error> {
    link_local::reported(&services(client), name).await
}

/// What the metric says.
fn conflicts_counted(replica: &Replica) -> Result<Option<String>, std::fmt::Error> {
    let metrics = opensdn_runtime::metrics::encode(&replica.metrics.registry())?;
    let name = "opensdn_webhook_unique_conflicts{scope=\"link-local-address\"} ";
    Ok(metrics.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned))
}

pub(super) async fn until_held_by(client: &Client, key: &str, holder: Option<&str>) -> Outcome {
    let what = format!("{key} is held by {holder:?}");
    until(&what, || async { Ok(held_by(client, key).await?.as_deref() == holder) }).await
}

/// A cluster whose claim controller has the grace of a real one.
async fn patient() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

/// A cluster in which claims are made by policies that this replica does not have.
async fn unloaded() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

/// A cluster in which a status cannot be written for a while.
async fn troubled() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

/// A cluster with hundreds of claims that no object holds.
async fn crowded() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

/// A cluster whose claim controller waits for two seconds only.
async fn impatient() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

/// Stores two that want one address, the older first.
async fn store_in_turn(client: &Client, [older, younger]: [&str; 2], ip: &str) -> Outcome {
    store(client, older, ip).await?;
    wait_for_next_second().await;
    store(client, younger, ip).await?;
    Ok(())
}

/// Whether they got in while no webhook judged, or were there before the product; and what a change
/// has left is released at once.
#[tokio::test(flavor = "multi_thread")]
async fn stored_objects_are_claimed_oldest_first_and_the_younger_gets_a_condition() -> Outcome {
    let client = patient().await?;
    store_in_turn(&client, ["z-older", "a-younger"], "169.254.1.1").await?;
    let replica = Replica::start(&client, "stored", GRACE, Scope::default()).await?;
    let _controller = replica.start_controller(&client);

    let key = "169.254.1.1:80";
    until_held_by(&client, key, Some("z-older")).await?;
    until("the conflict is reported", || async {
        Ok(reported(&client, "a-younger").await?.is_some())
    })
    .await?;
    let text = reported(&client, "a-younger").await?.unwrap_or_default();
    for part in [key, "LinkLocalService default/z-older", "LinkLocalService default/a-younger"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(reported(&client, "z-older").await?, None);
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let about = |event: &Event| event.regarding.as_ref().and_then(|about| about.name.clone());
    until("there is an event about the younger", || async {
        let listed = events.list(&ListParams::default()).await?;
        let is_ours = |event: &&Event| event.reason.as_deref() == Some("UniqueConflict");
        let ours = listed.items.iter().find(is_ours);
        Ok(ours.and_then(about).as_deref() == Some("a-younger"))
    })
    .await?;
    assert_eq!(conflicts_counted(&replica)?.as_deref(), Some("1"));

    // However often policies change meanwhile, each is counted once.
    let policies = PolicySet::new(vec![binding(&policy().await?, Scope::default())], Vec::new());
    replica.serving.swap(policies);
    store_in_turn(&client, ["first-of-two", "second-of-two"], "169.254.1.2").await?;
    until("the second is reported", || async {
        Ok(reported(&client, "second-of-two").await?.is_some())
    })
    .await?;
    assert_eq!(conflicts_counted(&replica)?.as_deref(), Some("2"));
    remove(&client, "second-of-two").await?;
    remove(&client, "first-of-two").await?;

    // Well before the grace is over: the holder was stored, and is gone.
    remove(&client, "z-older").await?;
    until_held_by(&client, key, Some("a-younger")).await?;
    until("all is well", || async { Ok(reported(&client, "a-younger").await?.is_none()) }).await?;
    remove(&client, "a-younger").await?;
    until_held_by(&client, key, None).await
}

/// A status cannot be written while a webhook that is asked about it does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_younger_gets_its_condition_as_soon_as_its_status_can_be_written() -> Outcome {
    let client = troubled().await?;
    store_in_turn(&client, ["first", "second"], "169.254.4.1").await?;
    let hindrance: ValidatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": "out-of-reach"},
        "webhooks": [{
            "name": "out-of-reach.example.io", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["opensdn.io"], "apiVersions": ["v1alpha1"],
                "operations": ["UPDATE"], "resources": ["linklocalservices/status"]}],
        }],
    }))?;
    let hindrances: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    hindrances.create(&PostParams::default(), &hindrance).await?;
    let status = Patch::Merge(json!({"status": {"conditions": []}}));
    let change = PatchParams::default();
    until("a status cannot be written", || async {
        Ok(services(&client).patch_status("second", &change, &status).await.is_err())
    })
    .await?;

    let replica = Replica::start(&client, "troubled", GRACE, Scope::default()).await?;
    let _controller = replica.start_controller(&client);
    until("the conflict is known", || async {
        Ok(conflicts_counted(&replica).is_ok_and(|counted| counted.as_deref() == Some("1")))
    })
    .await?;
    // It would be reported at once; that it is not takes a while to see.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(reported(&client, "second").await?, None);
    hindrances.delete("out-of-reach", &DeleteParams::default()).await?;
    until("the conflict is reported", || async { Ok(reported(&client, "second").await?.is_some()) })
        .await
}

/// Of a create that a later step refused, and of a change that was refused; not one whose object
/// asks again.
#[tokio::test(flavor = "multi_thread")]
async fn claims_that_no_stored_object_makes_are_released_after_the_grace() -> Outcome {
    let client = impatient().await?;
    let replica = Replica::start(&client, "orphans", SHORT_GRACE, Scope::default()).await?;
    let _controller = replica.start_controller(&client);
    let stored = store(&client, "keeps", "169.254.2.1").await?;
    until_held_by(&client, "169.254.2.1:80", Some("keeps")).await?;

    let begun = Instant::now();
    let owner = Holder { uid: stored.metadata.uid.clone().unwrap_or_default(), ..holder("keeps") };
    let unique = |key| Claim { policy: "unique".into(), ..claim(key) };
    // Refused by a later step: a create, and an update of an object that exists.
    let never = [unique("169.254.2.2:80")];
    replica.claims.take(&holder("never"), &never, &[], soon()).await?.commit();
    let update = [unique("169.254.2.3:80")];
    replica.claims.take(&owner, &update, &[], soon()).await?.commit();
    // A create that lost to the one of the same name that is stored.
    let lost = [unique("169.254.2.1:80")];
    replica.claims.take(&holder("keeps"), &lost, &[], soon()).await?.commit();

    until_held_by(&client, "169.254.2.2:80", None).await?;
    until_held_by(&client, "169.254.2.3:80", None).await?;
    assert!(begun.elapsed() >= SHORT_GRACE, "{:?}", begun.elapsed());
    let claims: Api<UniqueClaim> = Api::all(client.clone());
    until("the claim has the stored object's uid", || async {
        let listed = claims.list(&ListParams::default()).await?;
        let found = listed.items.into_iter().find(|found| found.spec.key == "169.254.2.1:80");
        Ok(found.is_some_and(|found| found.spec.holder.uid == stored.metadata.uid))
    })
    .await
}

/// Where something creates objects that are never stored, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_orphans_do_not_delay_the_release_of_a_deleted_objects_key() -> Outcome {
    const ORPHANS: usize = 600;
    let client = crowded().await?;
    let key = "169.254.8.1:80";
    store(&client, "deleted", "169.254.8.1").await?;
    let api: Api<UniqueClaim> = Api::all(client.clone());
    let create = async |number: usize| -> Outcome {
        let name = format!("never-{number}");
        let orphan = claim_object(&format!("orphan-{number}"), &name, "unique")?;
        api.create(&PostParams::default(), &orphan).await?;
        Ok(())
    };
    let created = stream::iter(0..ORPHANS).map(create).buffer_unordered(16);
    created.try_collect::<Vec<()>>().await?;
    let orphans = async || -> Result<usize, kube::Error> {
        let listed = api.list(&ListParams::default()).await?;
        Ok(listed.items.iter().filter(|claim| claim.spec.key.starts_with("orphan")).count())
    };

    // It sees them all at once, and so they are all to be released at once.
    let replica = Replica::start(&client, "crowded", SHORT_GRACE, Scope::default()).await?;
    let _controller = replica.start_controller(&client);
    until_held_by(&client, key, Some("deleted")).await?;
    until("it has begun", || async { Ok(orphans().await? < ORPHANS) }).await?;
    remove(&client, "deleted").await?;
    until_held_by(&client, key, None).await?;
    let left = orphans().await?;
    assert!(left > 0, "the key was free only after all of them");
    until("they go, too", || async { Ok(orphans().await? == 0) }).await
}

/// As an older version of the webhook could take it for a forged review.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_holder_cannot_be_asked_for_is_released() -> Outcome {
    let client = impatient().await?;
    let replica = Replica::start(&client, "unaddressable", SHORT_GRACE, Scope::default()).await?;
    let api: Api<UniqueClaim> = Api::all(client.clone());
    for (key, name) in [("169.254.5.1:80", "no name at all"), ("169.254.5.2:80", "nor/this")] {
        let forged = claim_object(key, name, "unique")?;
        api.create(&PostParams::default(), &forged).await?;
    }
    let _controller = replica.start_controller(&client);
    until_held_by(&client, "169.254.5.1:80", None).await?;
    until_held_by(&client, "169.254.5.2:80", None).await
}

/// The claim of an object that is stored, made by a policy. Its name is the webhook's own for it.
fn claim_object(key: &str, holder: &str, policy: &str) -> Result<UniqueClaim, Failed> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim",
        "metadata": {"name": opensdn_webhook::claims::claim_name("link-local-address", key)},
        "spec": {"scope": "link-local-address", "key": key, "policy": policy, "holder": {
            "group": "opensdn.io", "version": "v1alpha1", "kind": "LinkLocalService",
            "namespace": "default", "name": holder}}}))?)
}

/// The object does not make the claim by the policy that is active here; but it was made by another,
/// which is enforced and could not be loaded here.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_the_policy_does_not_release_its_claims() -> Outcome {
    let client = unloaded().await?;
    let replica =
        Replica::start(&client, "unloaded", Duration::from_secs(1), Scope::default()).await?;
    let active = PolicySet::new(vec![binding(&policy().await?, Scope::default())], Vec::new());
    let enforcing = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    replica.serving.swap_with(active.clone(), enforcing(&["unique", "not-loaded"]));
    let _controller = replica.start_controller(&client);
    store(&client, "stored", "169.254.6.1").await?;
    until_held_by(&client, "169.254.6.1:80", Some("stored")).await?;
    let claims: Api<UniqueClaim> = Api::all(client.clone());
    let of = |key: &str, policy: &str| claim_object(key, "stored", policy);
    for made in [of("kept", "not-loaded")?, of("released", "unique")?] {
        claims.create(&PostParams::default(), &made).await?;
    }
    // It was made at the same time, and is of the same age.
    until_held_by(&client, "released", None).await?;
    assert_eq!(held_by(&client, "kept").await?.as_deref(), Some("stored"));

    // Once no object says that it is enforced, it goes, if later than others.
    replica.serving.swap_with(active, enforcing(&["unique"]));
    until_held_by(&client, "kept", None).await
}

/// As after the webhook was switched off; who leads next finds them claimed.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_says_of_which_policies_objects_were_stored_without_claims_and_the_next_does_not()
-> Outcome {
    let client = unloaded().await?;
    store(&client, "unclaimed", "169.254.8.1").await?;
    let replica = Replica::start(&client, "unclaimed", GRACE, Scope::default()).await?;
    let (first, next): (&[&str], &[&str]) = (&["unique"], &[]);
    for expected in [first, next] {
        let progress = tokio::sync::watch::Sender::new(ClaimsProgress::default());
        let mut said = progress.subscribe();
        let controller = replica.controller(&client).reporting_to(progress);
        let running = tokio::spawn(controller.run(replica.leadership.clone()));
        let claimed = said.wait_for(|progress| progress.claimed.is_some());
        let claimed = timeout(TIMEOUT, claimed).await??.clone();
        assert_eq!(claimed.unclaimed.keys().collect::<Vec<_>>(), expected);
        assert!(claimed.unclaimed.values().all(|one| !one.are_left));
        running.abort();
        drop(running.await);
    }
    until_held_by(&client, "169.254.8.1:80", Some("unclaimed")).await
}

/// Another replica may still rely on the keys that the version before made.
#[tokio::test(flavor = "multi_thread")]
async fn claims_under_old_keys_stay_until_all_replicas_run_the_new_policy() -> Outcome {
    let client = unloaded().await?;
    let replica = Replica::start(&client, "rollout", SHORT_GRACE, Scope::default()).await?;
    let (all_run_it, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let claimed = tokio::sync::watch::Sender::new(ClaimsProgress::default());
    let mut done = claimed.subscribe();
    let controller = {
        let (all_run_it, asked) = (Arc::clone(&all_run_it), Arc::clone(&asked));
        let rolled_out = move |policy: &str| {
            assert_eq!(policy, "unique");
            asked.fetch_add(1, Ordering::Relaxed);
            all_run_it.load(Ordering::Relaxed)
        };
        replica.controller(&client).waiting_for(Arc::new(rolled_out)).reporting_to(claimed)
    };
    let _controller = tokio::spawn(controller.run(replica.leadership.clone()));
    store(&client, "moved", "169.254.7.1").await?;
    until_held_by(&client, "169.254.7.1:80", Some("moved")).await?;
    timeout(TIMEOUT, done.wait_for(|progress| progress.claimed.is_some())).await??;
    let claims: Api<UniqueClaim> = Api::all(client.clone());
    let old = claim_object("an-old-key", "moved", "unique")?;
    claims.create(&PostParams::default(), &old).await?;
    until("its release is considered twice", || async { Ok(asked.load(Ordering::Relaxed) > 1) })
        .await?;
    assert_eq!(held_by(&client, "an-old-key").await?.as_deref(), Some("moved"));
    all_run_it.store(true, Ordering::Relaxed);
    until_held_by(&client, "an-old-key", None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_reports_what_is_stored_and_what_it_did_not_check() -> Outcome {
    let client = patient().await?;
    // Nova's metadata proxy would swallow it: a denial at admission, had there been one.
    store(&client, "metadata-proxy", "169.254.3.1").await?;
    store_in_turn(&client, ["audit-older", "audit-younger"], "169.254.3.77").await?;
    let rule = |kind: &str| KindRule {
        group: "opensdn.io".into(),
        version: None,
        kind: kind.into(),
        operations: vec![Operation::Create, Operation::Update],
    };
    let scope = Scope { kinds: vec![rule("LinkLocalService")], ..Scope::default() };
    let replica = Replica::start(&client, "audit", GRACE, scope).await?;
    let timing = Timing { first: Duration::ZERO, interval: TIMEOUT };
    let (evaluator, metrics) = (replica.evaluator.clone(), replica.metrics.audit());
    let discovery = replica.discovery.clone();
    let _controller = replica.start_controller(&client);
    let younger = || async { Ok(reported(&client, "audit-younger").await?.is_some()) };
    until("the conflict of two stored objects is known", younger).await?;
    let claims = replica.claims.clone();
    let audit =
        Audit::new(client.clone(), evaluator, claims, discovery, "default", timing, metrics);
    let _audit = tokio::spawn(audit.run(replica.leadership.clone()));

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    until("there is a report", || async { Ok(maps.get_opt(REPORT).await?.is_some()) }).await?;
    let data: BTreeMap<String, String> = maps.get(REPORT).await?.data.unwrap_or_default();
    let text = data.get(REPORT_KEY).ok_or("no report")?;
    let report: serde_json::Value = serde_json::from_str(text)?;
    assert!(report["objects"]["opensdn.io/LinkLocalService"].as_i64() > Some(0), "{report:#}");
    let policy = &report["policies"]["unique"];
    assert_eq!(policy["failures"], 0, "{report:#}");
    let examples = policy["examples"].as_array().ok_or("no examples")?;
    let found = examples.iter().any(|example| {
        example["object"] == "LinkLocalService default/metadata-proxy"
            && example["code"] == "OSDN3012"
    });
    assert!(found, "{report:#}");
    let of = |name: &str| {
        let object = format!("LinkLocalService default/{name}");
        examples.iter().filter(|example| example["object"] == *object).collect::<Vec<_>>()
    };
    let conflicts = of("audit-younger");
    let messages: Vec<&str> =
        conflicts.iter().filter_map(|example| example["message"].as_str()).collect();
    assert!(
        messages.iter().any(|message| {
            message.contains("169.254.3.77")
                && message.contains("claimed by LinkLocalService default/audit-older")
        }),
        "{report:#}"
    );
    assert!(of("audit-older").is_empty(), "the older one keeps it: {report:#}");
    Ok(())
}
