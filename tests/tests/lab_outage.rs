//! The webhook is not there at all: before it starts, when all replicas are down, and after its
//! namespace was deleted. Everything else in the cluster works, and recovery is possible.
//! Deliberately not here: what breaks while some of it is there (`lab_webhook`).

use std::time::Duration;

use opensdn_deploy::names::NAMESPACE;
use opensdn_testing::eventually::eventually;
use opensdn_testing::lab_product::{Build, CONFIGURATIONS, LabProduct, REPLICAS};
use opensdn_testing::lab_under_load::users_of;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};

const GOOD: &str = r#"{"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
"metadata": {"name": "NAME", "namespace": "default"},
"spec": {"ip": "169.254.20.1", "port": 80,
         "fabric": {"addresses": ["10.1.1.1"], "port": 8080}}}"#;
const CONFIG_MAP: &str = r#"{"apiVersion": "v1", "kind": "ConfigMap",
"metadata": {"generateName": "others-", "namespace": "default"}}"#;
const NO_PODS: &str = r#"{"apiVersion": "v1", "kind": "ResourceQuota",
"metadata": {"name": "no-pods"}, "spec": {"hard": {"pods": "0"}}}"#;

struct World<'s> {
    product: LabProduct<'s>,
    sandbox: &'s Sandbox,
}

impl World<'_> {
    /// What kubectl says when it creates this, if it is refused.
    async fn refused(&self, object: &str) -> Result<Option<String>, Failed> {
        let output = self.sandbox.kubectl_with_input(&["create", "-f", "-"], object).await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(said))
    }

    async fn is_judged(&self, name: &str) -> Result<bool, Failed> {
        let said = self.refused(&GOOD.replace("NAME", name)).await?.unwrap_or_default();
        Ok(said.contains("is already taken by"))
    }

    /// Its own kinds are refused and it is said why; nothing else notices.
    async fn is_missed(&self) -> Outcome {
        let said = self.refused(&GOOD.replace("NAME", "second")).await?;
        let said = said.ok_or("an object was stored that no policy judged")?;
        assert!(said.contains("failed calling webhook") && said.contains("opensdn"), "{said}");
        assert_eq!(self.refused(CONFIG_MAP).await?, None);
        self.product
            .kubectl(&["rollout", "restart", "-n", "kube-system", "deployment/coredns"])
            .await?;
        let coredns = ["rollout", "status", "-n", "kube-system", "deployment/coredns"];
        self.product.kubectl(&[&coredns[..], &["--timeout=60s"]].concat()).await?;
        Ok(())
    }

    /// Replicas that are on their way out still judge.
    async fn until_missed(&self) {
        let missed = async || {
            let said = self.refused(&GOOD.replace("NAME", "second")).await;
            said.is_ok_and(|said| said.is_some_and(|said| said.contains("failed calling webhook")))
        };
        eventually("no replica judges", missed).await;
    }

    async fn until_judged(&self, what: &str) {
        let judged = async || self.is_judged("second").await.is_ok_and(|judged| judged);
        eventually(what, judged).await;
    }

    /// Before the first start: the pods of the webhook are refused for a while.
    async fn starts_late(&self) -> Outcome {
        self.product.kubectl(&["create", "namespace", NAMESPACE]).await?;
        let quota = ["-n", NAMESPACE, "create", "-f", "-"];
        let output = self.sandbox.kubectl_with_input(&quota, NO_PODS).await?;
        assert!(output.status.success());
        self.product.apply().await?;
        let refused = async || {
            let events = self.product.kubectl(&["-n", NAMESPACE, "get", "events"]).await;
            events.is_ok_and(|events| events.contains("exceeded quota"))
        };
        eventually("the webhook's pods are refused", refused).await;
        self.product.kubectl(&["-n", NAMESPACE, "delete", "resourcequota", "no-pods"]).await?;
        // Nothing else is to be done: the Deployment's controller tries again.
        Ok(self.product.wait_until_in_force().await?)
    }

    async fn all_replicas_down(&self) -> Outcome {
        self.product.scale(0).await?;
        self.until_missed().await;
        self.is_missed().await?;
        self.product.scale(REPLICAS).await?;
        self.product.wait_until_in_force().await?;
        self.until_judged("the replicas are back").await;
        Ok(())
    }

    /// By the command that the book gives; then nothing is judged.
    async fn switch_off(&self) -> Outcome {
        self.until_missed().await;
        self.product.kubectl(&["delete", CONFIGURATIONS, "opensdn-webhook"]).await?;
        let unjudged = GOOD.replace("NAME", "unjudged");
        let stored = async || self.refused(&unjudged).await.is_ok_and(|said| said.is_none());
        eventually("an object is stored that no policy judged", stored).await;
        self.product.kubectl(&["delete", "linklocalservice", "unjudged"]).await?;
        Ok(())
    }

    async fn emergency(&self) -> Outcome {
        self.product.scale(0).await?;
        self.switch_off().await?;
        self.product.scale(REPLICAS).await?;
        self.product.wait_until_in_force().await?;
        self.until_judged("the webhook has put its configuration back").await;
        Ok(())
    }

    /// What the book says to do when nothing can be written any more, in one command.
    async fn pod_network_is_broken(&self) -> Outcome {
        let fault = self.sandbox.lab().ok_or("a lab")?.keep_api_server_from_pods()?;
        self.switch_off().await?;
        // What writes them sees the deletion at once and tries again every few seconds.
        for _ in 0..20 {
            let found = self.product.kubectl(&["get", CONFIGURATIONS, "-o", "name"]).await?;
            assert!(!found.contains("opensdn-webhook"), "restored, and the way out is closed");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        fault.undo()?;
        self.until_judged("the configuration is restored when the network is back").await;
        Ok(())
    }

    async fn namespace_deleted(&self) -> Outcome {
        self.product.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=120s"]).await?;
        self.is_missed().await?;
        self.product.apply().await?;
        self.product.wait_until_in_force().await?;
        self.until_judged("the new installation judges").await;
        self.product.kubectl(&["get", "linklocalservice", "first"]).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_replica_nothing_unjudged_is_stored_and_the_cluster_goes_on() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let world =
        World { product: LabProduct::prepare(&sandbox, Build::Release).await?, sandbox: &sandbox };
    world.starts_late().await?;
    assert_eq!(world.refused(&GOOD.replace("NAME", "first")).await?, None);
    world.until_judged("a second one is refused").await;
    world.emergency().await?;
    world.pod_network_is_broken().await?;
    // While users work, to the end.
    let load = users_of(&sandbox, &world.product).await?;
    load.recovers("all replicas are down", Box::pin(world.all_replicas_down())).await?;
    load.recovers("the namespace is deleted", Box::pin(world.namespace_deleted())).await?;
    Ok(load.nothing_bad_is_stored().await?)
}
