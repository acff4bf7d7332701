//! Uniqueness through the whole product: a real API server, three replicas of the webhook, two
//! hundred clients that want the same fifty keys at once. The parts are tested in `claims`, the
//! same in pods in `lab_uniqueness`.

use std::time::Duration;

use opensdn_testing::contention::{CLIENTS, contend, one_per_key, until_claims_fit};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};

/// Short, but longer than any request of this test takes.
const GRACE: Duration = Duration::from_secs(20);
/// Several for each key that is tried. On real nodes all users try at once (`lab_uniqueness`).
const TRIES_AT_ONCE: usize = 20;

struct World {
    sandbox: Sandbox,
    product: Product,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        let grace = format!("--claim-grace={}", GRACE.as_secs());
        let installation = Installation::built()?.replicas(3).argument(grace);
        let product = installation.install(&sandbox).await?;
        Ok(Self { sandbox, product })
    }

    async fn one_wins(&self, meanwhile: impl AsyncFnOnce() -> Outcome) -> Outcome {
        // A connection for every ten, as of so many users.
        let connections = (0..CLIENTS / 10).map(|_| self.sandbox.client());
        let connections: Vec<_> = connections.collect::<Result<_, _>>()?;
        let answers = contend(&connections, TRIES_AT_ONCE, meanwhile).await?;
        let client = self.sandbox.client()?;
        one_per_key(&client, &answers).await?;
        until_claims_fit(&client).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hundred_clients_one_per_key_wins_and_the_others_are_told_who() -> Outcome {
    let world = World::start().await?;
    world.one_wins(async || Ok(())).await
}

/// Calls that end in the middle cost no client a key for good.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_when_a_replica_is_killed_in_the_middle() -> Outcome {
    let world = World::start().await?;
    let kill = async || {
        world.product.kill_replica(0);
        Ok(())
    };
    world.one_wins(kill).await
}
