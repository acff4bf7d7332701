//! The product in a lab while users work: what an administrator does to it, what breaks, and what
//! that costs the users. The measure is always the same: no wrong verdict, and how many requests
//! failed. Deliberately not here: in which order all this happens (`lab_webhook`, the bench `lab`).

use std::future::Future;
use std::time::Duration;

use futures::future::try_join3;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::EvictParams;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::admin_changes::AdminChanges;
use crate::eventually::eventually;
use crate::lab_product::{LabProduct, LabProductError, REPLICAS};
use crate::sandbox::Sandbox;
use crate::sandbox::lab::fault::{Party, Signal};
use crate::sandbox::lab::{Lab, address_of, node_of};
use crate::steady_load::SteadyLoad;
use crate::{Failed, Outcome};
use opensdn_deploy::names::{NAMESPACE, configuration, webhook};

const USERS: usize = 3;
const CONTROL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/samples/control.yaml");
/// Longer than a request may take: one that hangs has failed by then.
const QUIET: Duration = Duration::from_secs(6);
/// So long requests may fail before a test says that it does not end.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What something cost the users.
#[derive(Debug)]
pub struct Cost {
    /// What it was.
    pub what: String,
    /// Requests that the webhook did not answer, each with its error.
    pub failed: Vec<String>,
    /// Requests with a right verdict meanwhile.
    pub judged: usize,
    /// How long it lasted, until all was as before.
    pub took: Duration,
}

/// Users who work with what the product judges.
///
/// # Errors
/// Good objects cannot be stored.
pub async fn users_of(sandbox: &Sandbox, product: &LabProduct<'_>) -> Result<SteadyLoad, Failed> {
    product.kubectl(&["create", "namespace", "tf"]).await?;
    product.kubectl(&["apply", "-f", CONTROL]).await?;
    // The replicas learn of it by their watches, and nothing shows when each has.
    sleep(Duration::from_secs(2)).await;
    let clients = (0..USERS).map(|_| sandbox.client()).collect::<Result<_, _>>()?;
    Ok(SteadyLoad::start(clients, "tf").await?)
}

/// The product under load.
pub struct LabUnderLoad<'s> {
    load: SteadyLoad,
    changes: AdminChanges,
    product: LabProduct<'s>,
    lab: &'s Lab,
    client: Client,
}

impl<'s> LabUnderLoad<'s> {
    /// Starts the load on an installed product.
    ///
    /// # Errors
    /// Good objects cannot be stored.
    pub async fn start(sandbox: &'s Sandbox, product: LabProduct<'s>) -> Result<Self, Failed> {
        let load = users_of(sandbox, &product).await?;
        let (client, lab) = (sandbox.client()?, sandbox.lab().ok_or("there are no real nodes")?);
        let changes = AdminChanges::new(client.clone(), REPLICAS);
        Ok(Self { load, changes, product, lab, client })
    }

    /// The product.
    #[must_use]
    pub fn product(&self) -> &LabProduct<'s> {
        &self.product
    }

    /// The load.
    #[must_use]
    pub fn load(&self) -> &SteadyLoad {
        &self.load
    }

    /// Users do not notice it: not one request fails.
    ///
    /// # Errors
    /// It cannot be done, or all is not as before afterwards.
    ///
    /// # Panics
    /// A request failed.
    pub async fn unnoticed(&self, what: &str, change: impl Future<Output = Outcome>) -> Outcome {
        self.load.unnoticed(what, Box::pin(change)).await?;
        self.settled().await
    }

    /// It may cost requests, but no wrong verdict; afterwards all is as before.
    ///
    /// # Errors
    /// It cannot be done, or all is not as before afterwards.
    ///
    /// # Panics
    /// A verdict was wrong.
    pub async fn recovers(
        &self,
        what: &str,
        change: impl Future<Output = Outcome>,
    ) -> Result<Cost, Failed> {
        let (begun, before) = (Instant::now(), self.load.judged());
        let mut failed = self.load.recovers(what, Box::pin(change)).await?;
        // The others did not reach the API server.
        failed.retain(|error| error.contains("webhook"));
        self.settled().await?;
        let judged = self.load.judged() - before;
        Ok(Cost { what: what.to_owned(), failed, judged, took: begun.elapsed() })
    }

    /// All replicas are there, ready and within reach.
    async fn settled(&self) -> Outcome {
        self.product.wait_until_rolled_out().await?;
        let all = async || self.all_answer().await.is_ok_and(|number| number == REPLICAS);
        eventually("three replicas answer, and no more", all).await;
        Ok(())
    }

    async fn all_answer(&self) -> Result<usize, Failed> {
        let pods = self.product.pods().await?;
        for pod in &pods {
            self.product.admin(&pod.name_any(), "/ready").await?;
        }
        Ok(pods.len())
    }

    /// Replaces every pod, as an upgrade does.
    ///
    /// # Errors
    /// It does not come to its end.
    pub async fn rolling_update(&self) -> Outcome {
        Ok(self.product.restart().await?)
    }

    /// AdminChanges policies to and fro.
    ///
    /// # Errors
    /// The API server does not take a change.
    pub async fn swap_policies(&self) -> Outcome {
        self.changes.swap_policies().await
    }

    /// AdminChanges policies and the CA while this happens.
    ///
    /// # Errors
    /// As of each.
    pub async fn amid_changes(&self, event: impl Future<Output = Outcome>) -> Outcome {
        let (policies, ca) = (Box::pin(self.swap_policies()), Box::pin(self.rotate_ca()));
        try_join3(Box::pin(event), policies, ca).await.map(drop)
    }

    /// How long it takes until a changed policy is in force in every replica.
    ///
    /// # Errors
    /// The API server does not take the change.
    pub async fn swap_one_policy(&self, mode: &str) -> Result<Duration, Failed> {
        let begun = Instant::now();
        self.changes.swap("plaintext", json!({"mode": mode})).await?;
        Ok(begun.elapsed())
    }

    /// Empties each node in turn, as for maintenance.
    ///
    /// # Errors
    /// A node is not emptied within two minutes.
    pub async fn drain_each_node(&self) -> Outcome {
        for node in self.lab.nodes() {
            let flags = ["--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"];
            self.product.kubectl(&[&["drain", node.name()][..], &flags].concat()).await?;
            self.product.wait_until_rolled_out().await?;
            self.product.kubectl(&["uncordon", node.name()]).await?;
        }
        Ok(())
    }

    /// Evicts one replica, and tries to evict a second one at once: its PodDisruptionBudget keeps
    /// two.
    ///
    /// # Errors
    /// The first is not evicted, or the second one is.
    pub async fn evict_replicas(&self) -> Outcome {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let names = self.product.pods().await?.into_iter().map(|pod| pod.name_any());
        let [first, second, ..] = &*names.collect::<Vec<_>>() else {
            return Err("there are no two replicas".into());
        };
        let evicted = async || pods.evict(first, &EvictParams::default()).await.is_ok();
        // The budget may not have noticed yet that all replicas are ready again.
        eventually("a replica is evicted", evicted).await;
        match pods.evict(second, &EvictParams::default()).await {
            Err(kube::Error::Api(status)) if status.message.contains("disruption budget") => {}
            other => return Err(format!("a second replica is evicted: {other:?}").into()),
        }
        Ok(self.product.wait_until_rolled_out().await?)
    }

    /// Keeps the replicas to their NetworkPolicy while policies and the CA change: they need no
    /// more than it allows.
    ///
    /// # Errors
    /// It is not enforced, or they need more.
    pub async fn within_the_network_policy(&self) -> Outcome {
        let policies: Api<NetworkPolicy> = Api::namespaced(self.client.clone(), NAMESPACE);
        let parts = [
            (webhook::NAME, self.product.pods().await?),
            (configuration::NAME, self.product.writers().await?),
        ];
        let mut enforced = Vec::new();
        for (name, pods) in parts {
            let policy = policies.get(name).await?;
            for pod in &pods {
                enforced.push(self.lab.enforce(&policy, pod)?);
                // Nothing listens there: without a policy the refusal comes at once.
                match self.product.ask(&pod.name_any(), 8081, "/").await {
                    Err(LabProductError::Silent { .. }) => {}
                    other => return Err(format!("the policy is not enforced: {other:?}").into()),
                }
            }
        }
        self.amid_changes(async { Ok(()) }).await?;
        for fault in enforced {
            fault.undo()?;
        }
        Ok(())
    }

    /// AdminChanges the webhook's CA.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub async fn rotate_ca(&self) -> Outcome {
        self.changes.rotate_ca(async || self.product.certificate_expiries().await).await
    }

    async fn a_replica(&self) -> Result<Pod, Failed> {
        Ok(self.product.pods().await?.into_iter().next().ok_or("there is no replica")?)
    }

    /// The replica that acts for all.
    async fn leader(&self) -> Result<Pod, Failed> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let lease = leases.get(webhook::LEADER_LEASE).await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).ok_or("no leader")?;
        let mut pods = self.product.pods().await?.into_iter();
        Ok(pods.find(|pod| pod.name_any() == holder).ok_or("the leader's pod is gone")?)
    }

    /// Kills the process of a replica.
    ///
    /// # Errors
    /// There is none.
    pub async fn kill_a_replica(&self) -> Outcome {
        let pod = self.a_replica().await?.name_any();
        let killed =
            self.lab.signal_container(&self.client, NAMESPACE, &pod, "webhook", Signal::Kill);
        Ok(killed.await?.undo()?)
    }

    /// Kills the processes that write the webhook configurations, all of them.
    ///
    /// # Errors
    /// There is none, or they do not come back.
    pub async fn kill_the_writers(&self) -> Outcome {
        for pod in self.product.writers().await? {
            let (name, signal) = (pod.name_any(), Signal::Kill);
            let killed =
                self.lab.signal_container(&self.client, NAMESPACE, &name, "configuration", signal);
            killed.await?.undo()?;
        }
        Ok(self.product.wait_until_rolled_out().await?)
    }

    /// Cuts a replica off from the API server, until no request is sent to it any more.
    ///
    /// # Errors
    /// Requests still fail after two minutes.
    pub async fn cut_off_a_replica(&self) -> Outcome {
        let address = address_of(&self.a_replica().await?).ok_or("the replica has no address")?;
        let fault = self.lab.partition_pair(Party::ControlPlane, Party::Pod(address))?;
        self.until_nothing_fails().await?;
        Ok(fault.undo()?)
    }

    /// Pulls the cable of the node whose replica acts for all, until another one does and no
    /// request is sent there any more.
    ///
    /// # Errors
    /// Requests still fail after two minutes.
    pub async fn cut_off_the_leaders_node(&self) -> Outcome {
        let leader = self.leader().await?;
        let fault = self.lab.partition(node_of(&leader).ok_or("the leader is on no node")?)?;
        self.until_nothing_fails().await?;
        let another =
            async || self.leader().await.is_ok_and(|now| now.name_any() != leader.name_any());
        eventually("another replica leads", another).await;
        Ok(fault.undo()?)
    }

    /// Switches a node with a replica off, until no request is sent there any more, and on again.
    ///
    /// # Errors
    /// Requests still fail after two minutes, or the node does not come back.
    pub async fn kill_a_node(&self) -> Outcome {
        let pod = self.a_replica().await?;
        let node = node_of(&pod).ok_or("the replica is on no node")?;
        self.lab.kill_node(node)?;
        self.until_nothing_fails().await?;
        Ok(self.lab.start_node(&self.client, node).await?)
    }

    /// A break lasts until the cluster has routed around it.
    async fn until_nothing_fails(&self) -> Outcome {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let before = self.load.unjudged();
            sleep(QUIET).await;
            self.load.goes_on("something is broken").await;
            if self.load.unjudged() == before {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err("requests still fail".into());
            }
        }
    }
}
