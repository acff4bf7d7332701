//! Claims against a real API server: who gets a key, what is given back, what a dry run writes.
//! Without a webhook in between: that is `uniqueness.rs`.

mod controller;
mod inheritance;
mod sharing;

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_policy_host::{Claim, Scope};
use opensdn_runtime::path::segment;
use opensdn_testing::creation_order::wait_for_next_second;
use opensdn_testing::link_local::service;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::shared::Shared;
use opensdn_testing::{Failed, Outcome};
use opensdn_webhook::claims::{
    ClaimError, ClaimGuard, Claims, Conflict, GRACE, Holder, HolderState,
};
use opensdn_webhook::metrics::Metrics;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
const SHORT_GRACE: Duration = Duration::from_secs(2);

/// Each test has keys of its own, and no controller looks after them.
async fn client() -> Result<Client, Failed> {
    let client = Shared::with_crds().await?.client()?;
    until_claims_are_listed(&client).await?;
    Ok(client)
}

/// A client of a sandbox with our CRDs, started by the first test that asks.
async fn shared(sandbox: &'static OnceCell<Sandbox>) -> Result<Client, Failed> {
    Ok(sandbox.get_or_try_init(start).await?.client()?)
}

async fn start() -> Result<Sandbox, Failed> {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let client = sandbox.client()?;
    until_claims_are_listed(&client).await?;
    Ok(sandbox)
}

/// A definition is established some time before lists of its objects are answered.
async fn until_claims_are_listed(client: &Client) -> Outcome {
    until("lists are answered", || async {
        match Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 429 => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await
}

fn claims(client: &Client, grace: Duration) -> Claims {
    Claims::start(client.clone(), grace, Metrics::new())
}

fn holder(name: &str) -> Holder {
    Holder {
        group: "opensdn.io".into(),
        version: "v1alpha1".into(),
        kind: "LinkLocalService".into(),
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
    }
}

fn claim(key: &str) -> Claim {
    Claim {
        scope: "link-local-address".into(),
        key: key.into(),
        value: None,
        pointer: "/spec/ip".into(),
        policy: "unique".into(),
        code: "OSDN1001".into(),
    }
}

fn soon() -> Instant {
    Instant::now() + TIMEOUT
}

async fn take(claims: &Claims, name: &str, keys: &[&str]) -> Result<ClaimGuard, ClaimError> {
    let wanted: Vec<Claim> = keys.iter().map(|key| claim(key)).collect();
    claims.take(&holder(name), &wanted, &[], soon()).await
}

/// What was in the way of a call that has to be refused.
fn conflicts<T>(result: Result<T, ClaimError>) -> Result<Vec<Conflict>, Failed> {
    match result {
        Err(ClaimError::Held(conflicts)) => Ok(conflicts),
        Err(error) => Err(error.into()),
        Ok(_) => Err("not refused".into()),
    }
}

/// Who holds the key, by a live read.
async fn held_by(client: &Client, key: &str) -> Result<Option<String>, kube::Error> {
    let listed = Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await?;
    let found = listed.items.into_iter().find(|found| found.spec.key == key);
    Ok(found.map(|found| found.spec.holder.name))
}

async fn until<F: Future<Output = Result<bool, kube::Error>>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Outcome {
    let wait = async {
        while !condition().await? {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    timeout(TIMEOUT, wait).await.map_err(|_| format!("never came: {what}"))?
}

async fn store(client: &Client, name: &str, ip: &str) -> Result<LinkLocalService, Failed> {
    let service = service(&json!({"name": name}), ip)?;
    let services: Api<LinkLocalService> = Api::namespaced(client.clone(), "default");
    Ok(services.create(&PostParams::default(), &service).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_takers_at_three_replicas_one_wins_and_all_others_learn_who() -> Outcome {
    let client = client().await?;
    let replicas = [(); 3].map(|()| claims(&client, GRACE));
    let takers = (0..50).map(|number| {
        let claims = replicas[number % 3].clone();
        tokio::spawn(
            async move { take(&claims, &format!("taker-{number}"), &["1.0.0.1:80"]).await },
        )
    });
    let (mut winners, mut named) = (0, Vec::new());
    for taker in futures::future::join_all(takers).await {
        match taker? {
            Ok(taken) => winners += taken.commit(),
            lost => named.extend(conflicts(lost)?.into_iter().map(|conflict| conflict.held.name)),
        }
    }
    assert_eq!((winners, named.len()), (1, 49));
    let winner = held_by(&client, "1.0.0.1:80").await?.ok_or("no claim")?;
    assert!(named.iter().all(|name| *name == winner), "{winner}: {named:?}");
    Ok(())
}

#[tokio::test]
async fn a_request_takes_all_its_keys_or_none_and_names_everything_in_the_way() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let keys: Vec<String> = (0..6).map(|number| format!("2.0.0.{number}:80")).collect();
    take(&claims, "first", &[&keys[1], &keys[4]]).await?.commit();
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut in_the_way: Vec<String> = conflicts(take(&claims, "second", &all).await)?
        .into_iter()
        .map(|conflict| conflict.claim.key)
        .collect();
    in_the_way.sort();
    assert_eq!(in_the_way, [&*keys[1], &*keys[4]]);
    for key in [0, 2, 3, 5] {
        assert_eq!(held_by(&client, &keys[key]).await?, None, "{}", keys[key]);
    }
    Ok(())
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_says_the_same() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    claims.check(&holder("dry"), &[claim("3.0.0.1:80")], soon()).await?;
    assert_eq!(held_by(&client, "3.0.0.1:80").await?, None);
    take(&claims, "wet", &["3.0.0.1:80"]).await?.commit();
    let refused = conflicts(claims.check(&holder("dry"), &[claim("3.0.0.1:80")], soon()).await)?;
    assert_eq!(refused[0].held.name, "wet");
    claims.check(&holder("wet"), &[claim("3.0.0.1:80")], soon()).await?;
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_cancelled_gives_back() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    drop(take(&claims, "unheard", &["4.0.0.1:80"]).await?);
    until("the claim is given back", || async {
        Ok(held_by(&client, "4.0.0.1:80").await?.is_none())
    })
    .await?;
    // However far it has come when its caller goes away.
    for pause in 0..20 {
        let keys = ["4.0.0.2:80", "4.0.0.3:80", "4.0.0.4:80"];
        let name = format!("cancelled-{pause}");
        drop(timeout(Duration::from_millis(pause), take(&claims, &name, &keys)).await);
        let holder = format!("after-{pause}");
        until("the keys are free", || async {
            match take(&claims, &holder, &keys).await {
                Ok(taken) => Ok({
                    drop(taken);
                    true
                }),
                Err(_) => Ok(false),
            }
        })
        .await?;
    }
    until("nothing is left", || async {
        Ok(held_by(&client, "4.0.0.2:80").await?.is_none()
            && held_by(&client, "4.0.0.3:80").await?.is_none()
            && held_by(&client, "4.0.0.4:80").await?.is_none())
    })
    .await
}

#[tokio::test]
async fn the_same_object_gets_its_own_claim_again_also_under_a_new_uid() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    take(&claims, "again", &["5.0.0.1:80"]).await?.commit();
    assert_eq!(take(&claims, "again", &["5.0.0.1:80"]).await?.commit(), 0);
    let retry = Holder { uid: "another".into(), ..holder("again") };
    let refused = claims.take(&retry, &[claim("5.0.0.1:80")], &[], soon()).await?;
    drop(refused);
    let listed = Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await?;
    let found = listed.items.into_iter().find(|found| found.spec.key == "5.0.0.1:80");
    assert_eq!(found.ok_or("it was given back")?.spec.holder.uid.as_deref(), Some("another"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_for_one_object_get_its_claim_and_not_a_refusal() -> Outcome {
    let client = client().await?;
    let replicas = [(); 3].map(|()| claims(&client, GRACE));
    let takers = (0..9).map(|number| {
        let claims = replicas[number % 3].clone();
        tokio::spawn(async move {
            let holder = Holder { uid: format!("uid-{number}"), ..holder("same") };
            claims.take(&holder, &[claim("6.0.0.1:80")], &[], soon()).await.map(ClaimGuard::commit)
        })
    });
    let mut new = 0;
    for taker in futures::future::join_all(takers).await {
        new += taker??;
    }
    assert_eq!(new, 1);
    Ok(())
}

#[tokio::test]
async fn a_refusal_says_whether_the_holder_is_stored() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let stored = store(&client, "stored", "7.0.0.1").await?;
    let uid = stored.metadata.uid.ok_or("no uid")?;
    let owner = Holder { uid, ..holder("stored") };
    claims.take(&owner, &[claim("7.0.0.1:80")], &[], soon()).await?.commit();
    take(&claims, "pending", &["7.0.0.2:80"]).await?.commit();

    let refused = conflicts(take(&claims, "other", &["7.0.0.1:80"]).await)?;
    assert_eq!(refused[0].state, HolderState::Stored);
    assert_eq!(
        refused[0].message(),
        "7.0.0.1:80 (link-local-address) is already taken by LinkLocalService default/stored (/spec/ip)"
    );
    let hint = refused[0].hint();
    assert!(hint.contains("after a change try again two minutes later"), "{hint}");
    let refused = conflicts(take(&claims, "other", &["7.0.0.2:80"]).await)?;
    assert!(matches!(refused[0].state, HolderState::Pending { .. }), "{:?}", refused[0].state);
    assert!(refused[0].hint().contains("try again in"), "{}", refused[0].hint());
    Ok(())
}

#[tokio::test]
async fn a_claim_without_a_holder_is_taken_over_after_the_grace_and_not_before() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, SHORT_GRACE);
    let begun = Instant::now();
    take(&claims, "never-stored", &["8.0.0.1:80"]).await?.commit();
    until("it is taken over", || async {
        match take(&claims, "next", &["8.0.0.1:80"]).await {
            Ok(taken) => Ok(taken.commit() == 1),
            Err(_) => Ok(false),
        }
    })
    .await?;
    assert!(begun.elapsed() >= SHORT_GRACE, "{:?}", begun.elapsed());
    assert_eq!(held_by(&client, "8.0.0.1:80").await?.as_deref(), Some("next"));
    Ok(())
}

#[tokio::test]
async fn an_update_that_changes_no_claim_writes_nothing() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let (owner, wanted) = (holder("unchanged"), [claim("9.0.0.1:80")]);
    claims.take(&owner, &wanted, &[], soon()).await?.commit();
    let version = async || {
        let listed = Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await?;
        let found = listed.items.into_iter().find(|found| found.spec.key == "9.0.0.1:80");
        Ok::<_, kube::Error>(found.and_then(|found| found.metadata.resource_version))
    };
    // At once, as soon as the watch has shown the claim.
    until("nothing is written", || async {
        let before = version().await?;
        let taken = claims.take(&owner, &wanted, &wanted, soon()).await;
        Ok(taken.is_ok_and(|taken| taken.commit() == 0) && version().await? == before)
    })
    .await?;
    // Without knowing that the stored object makes it, the claim has to be made newer.
    let before = version().await?;
    claims.take(&owner, &wanted, &[], soon()).await?.commit();
    assert_ne!(version().await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_keys_are_taken_all_or_none_and_again() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let keys: Vec<String> =
        (0..514).map(|number| format!("11.0.{}.{}:80", number / 256, number % 256)).collect();
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let held = async |by: &str| {
        let listed = Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await?;
        let is_theirs = |found: &&UniqueClaim| found.spec.holder.name == by;
        Ok::<_, kube::Error>(listed.items.iter().filter(is_theirs).count())
    };
    take(&claims, "in-the-way", &[all[300]]).await?.commit();
    let conflicts = conflicts(take(&claims, "many", &all).await)?;
    assert_eq!(conflicts.len(), 1);
    assert_eq!(held("many").await?, 0, "none of the others stays");

    let rest: Vec<&str> = all.iter().copied().filter(|key| *key != all[300]).collect();
    assert_eq!(take(&claims, "many", &rest).await?.commit(), 513);
    assert_eq!(held("many").await?, 513);
    assert_eq!(take(&claims, "many", &rest).await?.commit(), 0, "they are its own");
    assert_eq!(held("many").await?, 513);
    Ok(())
}

/// So many as a Config with 257 link-local entries has addresses. A user who tries again must not wait
/// longer each time.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_257_entries_are_taken_in_seconds_and_a_retry_is_not_much_slower() -> Outcome {
    // A machine that does nothing else should need a tenth of it.
    const MOST: Duration = Duration::from_secs(10);
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let keys: Vec<String> =
        (0..257).map(|number| format!("13.0.{}.{}:80", number / 256, number % 256)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let taken = async || -> Result<(usize, Duration), Failed> {
        let started = Instant::now();
        let guard = timeout(MOST, take(&claims, "entries", &keys)).await??;
        Ok((guard.commit(), started.elapsed()))
    };
    let (count, first) = taken().await?;
    assert_eq!(count, 257);
    let (count, again) = taken().await?;
    assert_eq!(count, 0, "they are its own");
    assert!(again < first * 5, "{again:?} after {first:?}");
    Ok(())
}

/// They take them in waves, at the same time and from several replicas.
#[tokio::test(flavor = "multi_thread")]
async fn of_objects_that_want_the_same_keys_at_most_one_gets_them_and_none_gets_a_part() -> Outcome
{
    let client = client().await?;
    let replicas = [(); 3].map(|()| claims(&client, GRACE));
    let keys: Vec<String> = (0..40).map(|number| format!("12.0.0.{number}:80")).collect();
    let mut won = 0;
    // Where each of them has lost to another nobody has won: that may be so in any one round, and not in all.
    let mut rounds = 0..60;
    while let Some(round) = rounds.next().filter(|round| *round < 4 || won == 0) {
        let takers = replicas.iter().enumerate().map(|(number, claims)| {
            let (claims, mut keys) = (claims.clone(), keys.clone());
            // Each wants them in another order, and one key of its own.
            keys.rotate_left(number * 13);
            keys.push(format!("12.0.{}.{number}:80", 1 + round));
            tokio::spawn(async move {
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                take(&claims, &format!("crossing-{round}-{number}"), &keys).await
            })
        });
        let mut winners = Vec::new();
        for taker in futures::future::join_all(takers).await {
            match taker? {
                Ok(guard) => winners.push(guard),
                lost => drop(conflicts(lost)?),
            }
        }
        assert!(winners.len() <= 1, "{winners:?}");
        won += winners.len();
        drop(winners);
        until("nothing is left", || async {
            let listed =
                Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await?;
            Ok(listed.items.iter().all(|found| !found.spec.key.starts_with("12.0.")))
        })
        .await?;
    }
    assert!(won > 0, "nobody ever gets through");
    Ok(())
}

/// RBAC's names are no DNS names: they may have colons, spaces, and whatever else is one segment of a
/// path.
#[tokio::test]
async fn an_object_of_another_kind_holds_a_key_whatever_its_name_is() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, SHORT_GRACE);
    let roles: Api<ClusterRole> = Api::all(client.clone());
    for (number, name) in ["system:x y", "ä?b#c&d", "A+B;c=1,(d)"].into_iter().enumerate() {
        let role = ClusterRole {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            ..ClusterRole::default()
        };
        let stored = roles.create(&PostParams::default(), &role).await?;
        let owner = Holder {
            group: "rbac.authorization.k8s.io".into(),
            version: "v1".into(),
            kind: "ClusterRole".into(),
            namespace: String::new(),
            name: name.into(),
            uid: stored.metadata.uid.unwrap_or_default(),
        };
        let key = format!("14.0.0.{number}:80");
        claims.take(&owner, &[claim(&key)], &[], soon()).await?.commit();
        let refused = conflicts(take(&claims, "other", &[&key]).await)?;
        assert_eq!((&refused[0].state, &*refused[0].held.name), (&HolderState::Stored, name));
        roles.delete(&segment(name), &DeleteParams::default()).await?;
        until("a role that is gone loses it", || async {
            Ok(take(&claims, "other", &[&key]).await.is_ok())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_object_whose_name_is_none_takes_nothing() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    for nobody in [
        Holder { name: "a b".into(), ..holder("x") },
        Holder { name: String::new(), ..holder("x") },
        Holder { namespace: "n/m".into(), ..holder("x") },
    ] {
        let refused = claims.take(&nobody, &[claim("13.0.0.1:80")], &[], soon()).await;
        assert!(matches!(refused, Err(ClaimError::NoName(_))), "{refused:?}");
        let checked = claims.check(&nobody, &[claim("13.0.0.1:80")], soon()).await;
        assert!(matches!(checked, Err(ClaimError::NoName(_))), "{checked:?}");
    }
    assert_eq!(held_by(&client, "13.0.0.1:80").await?, None);
    Ok(())
}
