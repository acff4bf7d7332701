//! Keys that objects share because they say the same of them: who joins, who is refused, what is given back, and
//! when a shared key is free. Deliberately not here: which objects say the same, which the policies decide.

use opensdn_testing::link_local::service;

use super::controller::{Replica, remove, reported, until_held_by};
use super::*;

fn valued(key: &str, value: &str) -> Claim {
    Claim { value: Some(value.to_owned()), ..claim(key) }
}

async fn ask(
    claims: &Claims,
    name: &str,
    key: &str,
    value: &str,
) -> Result<ClaimGuard, ClaimError> {
    claims.take(&holder(name), &[valued(key, value)], &[], soon()).await
}

async fn spec(client: &Client, key: &str) -> Result<UniqueClaimSpec, Failed> {
    let listed = Api::<UniqueClaim>::all(client.clone()).list(&ListParams::default()).await?;
    let found = listed.items.into_iter().find(|found| found.spec.key == key);
    Ok(found.ok_or("no claim")?.spec)
}

async fn says(client: &Client, key: &str) -> Result<(String, Option<String>, bool), Failed> {
    let spec = spec(client, key).await?;
    Ok((spec.holder.name, spec.value, spec.shared == Some(true)))
}

#[tokio::test]
async fn objects_that_say_the_same_share_a_key_and_another_value_is_refused() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let key = "198.51.100.1:80";
    let is = |name: &str, shared| (name.to_owned(), Some("x".to_owned()), shared);
    ask(&claims, "a", key, "x").await?.commit();
    assert_eq!(says(&client, key).await?, is("a", false));

    let other = conflicts(ask(&claims, "other", key, "y").await)?;
    assert_eq!(other[0].held.name, "a");
    let none = claims.take(&holder("none"), &[claim(key)], &[], soon()).await;
    assert_eq!(conflicts(none)?.len(), 1, "without a value nothing is shared");

    // One that is refused in the end leaves it as it was.
    drop(ask(&claims, "refused", key, "x").await?);
    until("it is given back", || async {
        Ok(says(&client, key).await.is_ok_and(|said| said == is("a", false)))
    })
    .await?;
    claims.check(&holder("b"), &[valued(key, "x")], soon()).await?;
    assert_eq!(says(&client, key).await?, is("a", false), "a dry run writes nothing");
    ask(&claims, "b", key, "x").await?.commit();
    assert_eq!(says(&client, key).await?, is("b", true));

    // Not even the holder may say something else of it now.
    let changed = conflicts(ask(&claims, "b", key, "y").await)?;
    assert_eq!(changed[0].state, HolderState::Shared);
    assert!(changed[0].message().contains("is shared by"), "{}", changed[0].message());
    let dry = claims.check(&holder("b"), &[valued(key, "y")], soon()).await;
    assert_eq!(conflicts(dry)?[0].state, HolderState::Shared);
    let other = conflicts(ask(&claims, "other", key, "y").await)?;
    assert!(other[0].message().contains("LinkLocalService default/b"), "{}", other[0].message());
    Ok(())
}

#[tokio::test]
async fn who_has_a_key_alone_may_say_something_else_of_it() -> Outcome {
    let client = client().await?;
    let claims = claims(&client, GRACE);
    let key = "198.51.100.2:80";
    ask(&claims, "alone", key, "x").await?.commit();
    // Unless that is not allowed in the end.
    drop(ask(&claims, "alone", key, "z").await?);
    until("it says again what it said", || async {
        Ok(says(&client, key).await.is_ok_and(|said| said.1.as_deref() == Some("x")))
    })
    .await?;
    // What is allowed need not be stored: by its value none may have the key, nor by that of before.
    ask(&claims, "alone", key, "y").await?.commit();
    assert_eq!(says(&client, key).await?, ("alone".into(), None, false));
    for value in ["x", "y"] {
        let refused = conflicts(ask(&claims, "other", key, value).await)?;
        assert_eq!(refused[0].held.name, "alone", "{value}");
    }
    // A user who tries again gets through.
    ask(&claims, "alone", key, "y").await?.commit();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_takers_with_two_values_at_three_replicas_all_winners_have_one() -> Outcome {
    let client = client().await?;
    let replicas = [(); 3].map(|()| claims(&client, GRACE));
    let takers = (0..12).map(|number| {
        let claims = replicas[number % 3].clone();
        let value = if number % 2 == 0 { "even" } else { "odd" };
        tokio::spawn(async move {
            let taken = ask(&claims, &format!("sharer-{number}"), "198.51.100.3:80", value).await;
            (value, taken.map(ClaimGuard::commit))
        })
    });
    let mut winners = Vec::new();
    for taker in futures::future::join_all(takers).await {
        match taker? {
            (value, Ok(_)) => winners.push(value),
            // More of them at once than a claim is tried for: to be tried again, and no loser.
            (_, Err(ClaimError::Contended { .. })) => {}
            (_, lost) => assert!(!conflicts(lost)?.is_empty()),
        }
    }
    let (_, value, _) = says(&client, "198.51.100.3:80").await?;
    assert!(!winners.is_empty());
    assert!(winners.iter().all(|winner| Some(*winner) == value.as_deref()), "{winners:?}");
    Ok(())
}

async fn store_row(client: &Client, name: &str, row: &str, ip: &str) -> Outcome {
    let mut object = service(&json!({"name": name}), ip)?;
    object.spec.name = Some(row.to_owned());
    let services: Api<LinkLocalService> = Api::namespaced(client.clone(), "default");
    services.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// A cluster whose claim controller waits for two seconds only.
async fn cluster() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_key_is_free_when_the_last_of_its_objects_is_gone() -> Outcome {
    let client = cluster().await?;
    let key = "169.254.31.1:80";
    // Stored while nothing judged them: two rows that are one, and one that is another.
    store_row(&client, "first", "agents", "169.254.31.1").await?;
    wait_for_next_second().await;
    store_row(&client, "second", "Agents", "169.254.31.1").await?;
    store_row(&client, "another", "metrics", "169.254.31.1").await?;
    let replica = Replica::start(&client, "sharing", SHORT_GRACE, Scope::default()).await?;
    let _controller = replica.start_controller(&client);
    until("the claim is shared", || async {
        Ok(says(&client, key).await.is_ok_and(|said| said.2))
    })
    .await?;
    until("the other row is reported", || async {
        Ok(reported(&client, "another").await?.is_some())
    })
    .await?;
    assert_eq!(reported(&client, "second").await?, None, "it says the same");

    remove(&client, "another").await?;
    let (held, ..) = says(&client, key).await?;
    let left = if held == "first" { "second" } else { "first" };
    remove(&client, &held).await?;
    until_held_by(&client, key, Some(left)).await?;
    // Some time after that it has the key alone.
    until("it is shared no more", || async {
        Ok(says(&client, key).await.is_ok_and(|said| said.0 == left && !said.2))
    })
    .await?;
    remove(&client, left).await?;
    until_held_by(&client, key, None).await
}
