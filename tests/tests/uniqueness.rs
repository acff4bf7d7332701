//! Uniqueness through the whole product: a real API server, three replicas of the webhook, two
//! hundred clients that want the same fifty keys at once. The parts are tested in `claims`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::unique_claim::UniqueClaim;
use opensdn_tests::product::{Installation, Product};
use opensdn_tests::sandbox::Sandbox;
use serde_json::json;
use tokio::sync::{Barrier, Mutex, mpsc};
use tokio::time::{Instant, sleep, timeout};

type Outcome = Result<(), Box<dyn Error>>;

const WEBHOOK: &str = env!("CARGO_BIN_EXE_webhook-of-tests");
const CLIENTS: usize = 200;
const KEYS: usize = 50;
/// Short, but longer than any request of this test takes.
const GRACE: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(120);

/// What the API server answered to a client in the end.
enum Answer {
    Stored,
    Refused(String),
}

struct World {
    sandbox: Sandbox,
    product: Product,
}

impl World {
    async fn start() -> Result<Self, Box<dyn Error>> {
        // One after the other: the first compiles the policies, all others find them in the cache.
        static STARTING: Mutex<()> = Mutex::const_new(());
        let _starting = STARTING.lock().await;
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        let grace = format!("--claim-grace={}", GRACE.as_secs());
        let installation = Installation::of(WEBHOOK).replicas(3).argument(grace);
        let product = installation.install(&sandbox).await?;
        Ok(Self { sandbox, product })
    }

    /// All clients begin at once; each tries until it has an answer about its key. `meanwhile`
    /// happens when some have one.
    async fn rush(&self, meanwhile: impl FnOnce()) -> Result<Vec<Answer>, Box<dyn Error>> {
        let start = Arc::new(Barrier::new(CLIENTS));
        let (sender, mut answered) = mpsc::channel(CLIENTS);
        let mut tasks = Vec::new();
        let mut client = self.sandbox.client()?;
        for number in 0..CLIENTS {
            // Connections of their own for every ten, as of so many users.
            if number % 10 == 0 {
                client = self.sandbox.client()?;
            }
            let (client, start, sender) = (client.clone(), Arc::clone(&start), sender.clone());
            tasks.push(tokio::spawn(async move {
                start.wait().await;
                let answer = create(&client, number).await;
                sender.send(()).await.map(|()| answer)
            }));
        }
        for _ in 0..CLIENTS / 10 {
            answered.recv().await;
        }
        meanwhile();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await???);
        }
        Ok(answers)
    }

    /// Exactly one service per key is stored, every other client was told which.
    async fn one_per_key(&self, answers: &[Answer]) -> Outcome {
        let stored = self.stored().await?;
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

    /// Every claim is of an object that is stored, and every stored object has its two.
    async fn claims_fit(&self) -> Result<(), String> {
        let read = async {
            let services = self.stored().await?;
            let claims = Api::<UniqueClaim>::all(self.sandbox.client()?);
            Ok::<_, Box<dyn Error>>((services, claims.list(&ListParams::default()).await?.items))
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
        let fit = made.len() == uids.len() && made.values().all(|number| *number == 2);
        if fit { Ok(()) } else { Err(format!("not two claims each: {made:?}")) }
    }

    async fn until_claims_fit(&self) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.claims_fit().await {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() > deadline => return Err(why.into()),
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    async fn stored(&self) -> Result<Vec<LinkLocalService>, Box<dyn Error>> {
        let services: Api<LinkLocalService> = Api::all(self.sandbox.client()?);
        Ok(services.list(&ListParams::default()).await?.items)
    }
}

fn name(number: usize) -> String {
    format!("service-{number}")
}

fn address(number: usize) -> String {
    format!("169.254.7.{}", number % KEYS)
}

/// Tries until there is an answer about the key: a call of the webhook that broke off, or took
/// too long, is not one, and a user would try again.
async fn create(client: &Client, number: usize) -> Result<Answer, String> {
    let service: LinkLocalService = serde_json::from_value(json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name(number), "namespace": "default"},
        "spec": {
            "ip": address(number), "port": 80,
            "fabric": {"addresses": ["10.1.1.1"], "port": 8080},
        },
    }))
    .map_err(|error| error.to_string())?;
    let services: Api<LinkLocalService> = Api::namespaced(client.clone(), "default");
    let tries = async {
        loop {
            match services.create(&PostParams::default(), &service).await {
                Ok(_) => return Answer::Stored,
                Err(kube::Error::Api(status)) if status.message.contains("is already taken by") => {
                    // Whoever is not stored yet may lose: only then it is not the last word.
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
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, tries).await.map_err(|_| format!("no answer for {}", name(number)))
}

/// CL-01 through the product.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_hundred_clients_one_per_key_wins_and_the_others_are_told_who() -> Outcome {
    let world = World::start().await?;
    let answers = world.rush(|| ()).await?;
    world.one_per_key(&answers).await?;
    world.until_claims_fit().await
}

/// CL-01, CL-03, CL-04: calls that end in the middle cost nobody a key for good.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_when_a_replica_is_killed_in_the_middle() -> Outcome {
    let world = World::start().await?;
    let answers = world.rush(|| world.product.kill_replica(0)).await?;
    world.one_per_key(&answers).await?;
    world.until_claims_fit().await
}
