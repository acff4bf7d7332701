//! The webhook as it is shipped, in pods on three real nodes, while users work and things break.
//! The measure is always the same: no wrong verdict, and how many requests failed. Deliberately
//! not here: what the lab itself can do (`lab_cluster`), all replicas down and the namespace gone
//! (`lab_outage`), clients that want the same keys (`lab_uniqueness`).

/// The gate leaves these out where no lab can be had.
mod real_nodes {
    use std::future::Future;
    use std::time::Duration;

    use futures::future::try_join;
    use k8s_openapi::api::coordination::v1::Lease;
    use k8s_openapi::api::core::v1::Pod;
    use kube::{Api, ResourceExt as _};
    use opensdn_tests::changes::{Changes, Failed};
    use opensdn_tests::eventually::eventually;
    use opensdn_tests::lab_product::{LabProduct, REPLICAS, address_of, node_of};
    use opensdn_tests::product::NAMESPACE;
    use opensdn_tests::sandbox::Sandbox;
    use opensdn_tests::sandbox::lab::Lab;
    use opensdn_tests::sandbox::lab::fault::{Blow, Party};
    use opensdn_tests::steady_load::SteadyLoad;
    use tokio::time::{Instant, sleep};

    type Outcome = Result<(), Failed>;

    const USERS: usize = 3;
    const CONTROL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples/control.yaml");

    /// The product under load.
    struct World<'s> {
        load: SteadyLoad,
        changes: Changes,
        product: LabProduct<'s>,
        sandbox: &'s Sandbox,
    }

    impl<'s> World<'s> {
        async fn start(sandbox: &'s Sandbox) -> Result<Self, Failed> {
            let product = LabProduct::install(sandbox).await?;
            product.kubectl(&["create", "namespace", "tf"]).await?;
            product.kubectl(&["apply", "-f", CONTROL]).await?;
            let clients = (0..USERS).map(|_| sandbox.client()).collect::<Result<_, _>>()?;
            let load = SteadyLoad::start(clients, "tf").await?;
            let changes = Changes::new(sandbox.client()?, REPLICAS);
            Ok(Self { load, changes, product, sandbox })
        }

        fn lab(&self) -> Result<&Lab, Failed> {
            Ok(self.sandbox.lab().ok_or("no lab")?)
        }

        /// Nobody notices it: not one request fails.
        async fn unnoticed(&self, what: &str, change: impl Future<Output = Outcome>) -> Outcome {
            self.load.unnoticed(what, change).await?;
            self.settled().await
        }

        /// It may cost requests, which are counted, but no wrong verdict; afterwards all is as before.
        async fn recovers(&self, what: &str, change: impl Future<Output = Outcome>) -> Outcome {
            let (begun, before) = (Instant::now(), self.load.judged());
            let failed = self.load.recovers(what, change).await?;
            let judged = self.load.judged() - before;
            println!("{what}: {} failed, {judged} judged in {:.1?}", failed.len(), begun.elapsed());
            if let Some(first) = failed.first() {
                println!("    such as: {first}");
            }
            self.settled().await
        }

        /// All replicas are there and ready again.
        async fn settled(&self) -> Outcome {
            self.product.wait_until_rolled_out().await?;
            let all = async || self.product.pods().await.is_ok_and(|pods| pods.len() == REPLICAS);
            eventually("three replicas and no more", all).await;
            Ok(())
        }

        async fn rolling_update(&self) -> Outcome {
            let restart = ["-n", NAMESPACE, "rollout", "restart", "deployment/opensdn-webhook"];
            self.product.kubectl(&restart).await?;
            Ok(self.product.wait_until_rolled_out().await?)
        }

        async fn drain_each_node(&self) -> Outcome {
            for node in ["node-1", "node-2", "node-3"] {
                let flags = ["--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"];
                self.product.kubectl(&[&["drain", node][..], &flags].concat()).await?;
                self.product.wait_until_rolled_out().await?;
                self.product.kubectl(&["uncordon", node]).await?;
            }
            Ok(())
        }

        async fn rotate_ca(&self) -> Outcome {
            self.changes.rotate_ca(async || Ok(self.product.certificate_expiries().await?)).await
        }

        async fn pod(&self) -> Result<Pod, Failed> {
            Ok(self.product.pods().await?.into_iter().next().ok_or("no replica")?)
        }

        /// The replica that acts for all.
        async fn leader(&self) -> Result<Pod, Failed> {
            let leases: Api<Lease> = Api::namespaced(self.sandbox.client()?, NAMESPACE);
            let lease = leases.get("opensdn-webhook-leader").await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).ok_or("no leader")?;
            let pods = self.product.pods().await?;
            Ok(pods
                .into_iter()
                .find(|pod| pod.name_any() == holder)
                .ok_or("the leader's pod is gone")?)
        }

        async fn kill_a_replica(&self) -> Outcome {
            let pod = self.pod().await?.name_any();
            let client = self.sandbox.client()?;
            let lab = self.lab()?;
            drop(lab.strike_container(&client, NAMESPACE, &pod, "webhook", Blow::Kill).await?);
            Ok(())
        }

        /// Until requests succeed without those that are out of reach.
        async fn while_it_lasts(&self, what: &str) -> Outcome {
            let deadline = Instant::now() + Duration::from_secs(120);
            loop {
                let before = self.load.unjudged();
                self.load.goes_on(what).await;
                sleep(Duration::from_secs(6)).await;
                if self.load.unjudged() == before {
                    return Ok(());
                }
                if Instant::now() > deadline {
                    return Err(format!("{what}: requests still fail").into());
                }
            }
        }

        async fn partition_of_the_leaders_node(&self) -> Outcome {
            let leader = self.leader().await?;
            let fault =
                self.lab()?.partition(node_of(&leader).ok_or("the leader is on no node")?)?;
            self.while_it_lasts("partition of the leader's node").await?;
            let other = async || match self.leader().await {
                Ok(now) => now.name_any() != leader.name_any(),
                Err(_) => false,
            };
            eventually("another replica leads", other).await;
            Ok(fault.undo()?)
        }

        async fn partition_of_one_replica(&self) -> Outcome {
            let pod = self.pod().await?;
            let address = address_of(&pod).ok_or("the replica has no address")?;
            let lab = self.lab()?;
            let fault = lab.partition_pair(Party::ControlPlane, Party::Pod(address))?;
            self.while_it_lasts("partition between the API server and a replica").await?;
            Ok(fault.undo()?)
        }

        async fn kill_a_node(&self) -> Outcome {
            let pod = self.pod().await?;
            let node = node_of(&pod).ok_or("the replica is on no node")?;
            self.lab()?.kill_node(node)?;
            self.while_it_lasts("a node is dead").await?;
            let client = self.sandbox.client()?;
            Ok(self.lab()?.start_node(&client, node).await?)
        }

        /// One replica on each node, by the namespace's own rules.
        async fn is_installed_as_promised(&self) -> Outcome {
            let pods = self.product.pods().await?;
            let mut nodes: Vec<&str> = pods.iter().filter_map(node_of).collect();
            nodes.sort_unstable();
            assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
            let root = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"},
            "spec": {"containers": [{"name": "c", "image": "opensdn-webhook:0.1.0"}]}}"#;
            let output = self
                .sandbox
                .kubectl_with_input(&["-n", NAMESPACE, "create", "-f", "-"], root)
                .await?;
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("violates PodSecurity \"restricted"), "{said}");
            self.product
                .kubectl(&["-n", NAMESPACE, "get", "pdb,networkpolicy", "opensdn-webhook"])
                .await?;
            Ok(())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whatever_breaks_in_the_cluster_no_verdict_is_wrong() -> Outcome {
        let sandbox = Sandbox::with_real_nodes(3).await?;
        let world = World::start(&sandbox).await?;
        world.is_installed_as_promised().await?;

        world.unnoticed("rolling update", world.rolling_update()).await?;
        let both = async {
            try_join(world.rolling_update(), world.changes.swap_policies()).await.map(drop)
        };
        world.unnoticed("policies change in a rolling update", both).await?;
        world.unnoticed("the CA changes", world.rotate_ca()).await?;
        world.unnoticed("each node is drained", world.drain_each_node()).await?;

        world.recovers("a replica is killed", world.kill_a_replica()).await?;
        let restart = async { Ok(sandbox.restart_api_server().await?) };
        world.recovers("the API server is restarted", restart).await?;
        let cut = world.partition_of_one_replica();
        world.recovers("a replica and the API server are cut off from each other", cut).await?;
        let cut = world.partition_of_the_leaders_node();
        world.recovers("the leader's node is cut off", cut).await?;
        world.recovers("a node is killed", world.kill_a_node()).await?;

        world.unnoticed("the CA changes again", world.rotate_ca()).await?;
        Ok(world.load.nothing_bad_is_stored().await?)
    }
}
