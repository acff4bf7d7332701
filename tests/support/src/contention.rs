//! Two hundred users that want the same fifty keys at once, and whether exactly one of them got
//! each. Deliberately not here: what happens to the product meanwhile, which is the tests' matter.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::unique_claim::UniqueClaim;
use serde_json::json;
use tokio::sync::{Barrier, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};

use crate::Failed;
use crate::link_local::service;

/// How many users there are.
pub const CLIENTS: usize = 200;
/// How many keys they want, each user one.
pub const KEYS: usize = 50;
/// Far more than two hundred users take on two cores that others use, too.
const TIMEOUT: Duration = Duration::from_secs(300);
/// A user tries again after this time, and after twice that each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Without it the tries alone would be more than two cores answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// What the API server answered to a user in the end.
#[derive(Debug)]
pub enum Answer {
    /// The key is the user's.
    Stored,
    /// Another has it; why.
    Refused(String),
}

/// All users start at once, over these connections; each tries until it has an answer about its
/// key. `meanwhile` happens when some have one. So many tries are on their way at a time: on a slow
/// machine all two hundred at once would take longer than a webhook may, each time.
///
/// # Errors
/// A user has no answer within five minutes.
pub async fn contend(
    connections: &[Client],
    tries_at_once: usize,
    meanwhile: impl AsyncFnOnce() -> Result<(), Failed>,
) -> Result<Vec<Answer>, Failed> {
    let start = Arc::new(Barrier::new(CLIENTS));
    let tries = Arc::new(Semaphore::new(tries_at_once));
    let (sender, mut answered) = mpsc::channel(CLIENTS);
    let mut tasks = Vec::new();
    for (number, client) in connections.iter().cycle().take(CLIENTS).enumerate() {
        let (client, start, sender) = (client.clone(), Arc::clone(&start), sender.clone());
        let tries = Arc::clone(&tries);
        tasks.push(tokio::spawn(async move {
            start.wait().await;
            let answer = create(&client, number, &tries).await;
            sender.send(()).await.map(|()| answer)
        }));
    }
    for _ in 0..CLIENTS / 10 {
        answered.recv().await;
    }
    meanwhile().await?;
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await???);
    }
    Ok(answers)
}

/// Exactly one service per key is stored, every other user learned which.
///
/// # Errors
/// The API server does not say what is stored.
///
/// # Panics
/// It is not so.
pub async fn one_per_key(client: &Client, answers: &[Answer]) -> Result<(), Failed> {
    let stored = stored(client).await?;
    let by_key: BTreeMap<String, String> =
        stored.iter().map(|service| (service.spec.ip.clone(), service.name_any())).collect();
    assert_eq!((stored.len(), by_key.len()), (KEYS, KEYS));
    for (number, answer) in answers.iter().enumerate() {
        let winner = by_key.get(&address(number)).ok_or("a key without a winner")?;
        match answer {
            Answer::Stored => assert_eq!(*winner, name(number)),
            Answer::Refused(why) => {
                let holder = format!("LinkLocalService default/{winner} ");
                assert!(why.contains(&holder), "{winner} is not named: {why}");
            }
        }
    }
    Ok(())
}

/// Waits until every claim is of an object that is stored, and every stored object has one.
///
/// # Errors
/// It is not so within five minutes; says why.
pub async fn until_claims_fit(client: &Client) -> Result<(), Failed> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match claims_fit(client).await {
            Ok(()) => return Ok(()),
            Err(why) if Instant::now() > deadline => return Err(why.into()),
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}

async fn claims_fit(client: &Client) -> Result<(), String> {
    let read = async {
        let claims = Api::<UniqueClaim>::all(client.clone());
        Ok::<_, Failed>((stored(client).await?, claims.list(&ListParams::default()).await?.items))
    };
    let (services, claims) = read.await.map_err(|error| error.to_string())?;
    let uids: BTreeSet<String> = services.iter().filter_map(|service| service.uid()).collect();
    let mut made: HashMap<String, usize> = HashMap::new();
    for claim in claims {
        let uid = claim.spec.holder.uid.clone().unwrap_or_default();
        if !uids.contains(&uid) {
            return Err(format!("{:?} is of no stored object", claim.spec));
        }
        *made.entry(uid).or_default() += 1;
    }
    let fit = made.len() == uids.len() && made.values().all(|number| *number == 1);
    if fit { Ok(()) } else { Err(format!("not one claim each: {made:?}")) }
}

async fn stored(client: &Client) -> Result<Vec<LinkLocalService>, Failed> {
    let services: Api<LinkLocalService> = Api::all(client.clone());
    Ok(services.list(&ListParams::default()).await?.items)
}

fn name(number: usize) -> String {
    format!("service-{number}")
}

/// Users of the same key are beside each other, so that some of them try at once however few may.
fn address(number: usize) -> String {
    format!("169.254.7.{}", number / (CLIENTS / KEYS))
}

/// Tries until there is an answer about the key: a call of the webhook that broke off, or took
/// too long, is not one, and a user would try again.
async fn create(client: &Client, number: usize, tries: &Semaphore) -> Result<Answer, String> {
    let service = service(&json!({"name": name(number)}), &address(number))
        .map_err(|error| error.to_string())?;
    let services: Api<LinkLocalService> = Api::namespaced(client.clone(), "default");
    let tries = async {
        let mut pause = FIRST_PAUSE;
        loop {
            // It is never closed.
            let turn = tries.acquire().await;
            let answer = services.create(&PostParams::default(), &service).await;
            drop(turn);
            match answer {
                Ok(_) => return Answer::Stored,
                Err(kube::Error::Api(status)) if status.message.contains("is already taken by") => {
                    // One that is not stored yet may still lose: that answer is not final.
                    if !status.message.contains("not stored (yet)") {
                        return Answer::Refused(status.message.clone());
                    }
                }
                // An earlier try was stored, and its answer was lost.
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                    return Answer::Stored;
                }
                Err(error) => tracing::debug!(%error, number, "tried again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    };
    timeout(TIMEOUT, tries).await.map_err(|_| format!("no answer for {}", name(number)))
}
