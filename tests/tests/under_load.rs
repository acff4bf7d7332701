//! A steady load through a real API server while all that may change under it does: policies, the
//! CA, replicas; and while the API server and etcd are down. Deliberately not here: what single
//! policies find, the rules of a rotation (the webhook's `certificates`), clients that want the
//! same keys (`uniqueness`).

use opensdn_testing::admin_changes::{AdminChanges, certificate_expiry};
use opensdn_testing::admin_port;
use opensdn_testing::eventually::eventually;
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::steady_load::SteadyLoad;
use opensdn_testing::{Failed, Outcome};

const CONTROL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples/control.yaml");
const REPLICAS: usize = 3;
const CLIENTS: usize = 3;

/// The product under load. Dropping it ends the load.
struct World {
    load: SteadyLoad,
    changes: AdminChanges,
    product: Product,
    sandbox: Sandbox,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        // Before the replicas: then their lookups know it from the beginning.
        for arguments in [&["create", "namespace", "tf"][..], &["apply", "-f", CONTROL]] {
            let output = sandbox.kubectl(arguments).await?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let product = Installation::built()?.replicas(REPLICAS).install(&sandbox).await?;
        let clients = (0..CLIENTS).map(|_| sandbox.client()).collect::<Result<_, _>>()?;
        let load = SteadyLoad::start(clients, "tf").await?;
        let changes = AdminChanges::new(sandbox.client()?, REPLICAS);
        Ok(Self { load, changes, product, sandbox })
    }

    /// When each replica's certificate expires, as it says itself.
    async fn expiries(&self) -> Vec<String> {
        let mut expiries = Vec::new();
        for backend in self.product.backends() {
            let metrics = admin_port::get(backend.admin, "/metrics").await.unwrap_or_default();
            expiries.extend(certificate_expiry(&metrics));
        }
        expiries
    }

    /// Each replica once: ended as the kubelet does, and started again.
    async fn drain_and_start(&self) -> Outcome {
        for (number, backend) in self.product.backends().iter().enumerate() {
            self.product.drain_replica(number).await;
            self.product.start_replica(number)?;
            let ready = async || admin_port::get(backend.admin, "/ready").await.is_ok();
            eventually(&format!("replica {number} is ready again"), ready).await;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_changes_or_goes_away_no_bad_object_is_stored_and_no_good_one_refused() -> Outcome
{
    let world = World::start().await?;
    world.load.unnoticed("policies change", world.changes.swap_policies()).await?;
    world
        .load
        .unnoticed("the CA changes", world.changes.rotate_ca(async || world.expiries().await))
        .await?;
    world.load.unnoticed("replicas are drained", world.drain_and_start()).await?;
    let restart = world.sandbox.restart_api_server();
    world.load.recovers("the API server is restarted", restart).await?;
    let restart = world.sandbox.restart_etcd();
    world.load.recovers("etcd is restarted", restart).await?;
    world.load.unnoticed("policies change again", world.changes.swap_policies()).await?;
    Ok(world.load.nothing_bad_is_stored().await?)
}
