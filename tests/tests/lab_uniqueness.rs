//! Uniqueness as shipped: in pods on three real nodes, with objects that were there
//! before the product, with one replica cut off from the API server and another killed while two
//! hundred clients want the same fifty keys, and with the webhook away. Against processes of this
//! machine: `uniqueness`, and each rule by itself: `claims`.

use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_deploy::names::NAMESPACE;
use opensdn_testing::contention::{CLIENTS, contend, one_per_key, until_claims_fit};
use opensdn_testing::creation_order::wait_for_next_second;
use opensdn_testing::eventually::{TIMEOUT, eventually};
use opensdn_testing::installer::install_crds;
use opensdn_testing::lab_product::{Build, CONFIGURATIONS, LabProduct, REPLICAS};
use opensdn_testing::link_local::{reported, service};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::address_of;
use opensdn_testing::sandbox::lab::fault::{Party, Signal};
use opensdn_testing::{Failed, Outcome};
use serde_json::json;
use tokio::time::{sleep, timeout};

const TAKEN: &str = "is already taken by LinkLocalService default/";
const HAND_MADE: &str = r#"{"apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim",
    "metadata": {"name": "hand-made"},
    "spec": {"scope": "link-local-address", "key": "169.254.8.99:80",
             "holder": {"group": "opensdn.io", "kind": "LinkLocalService", "name": "mine"}}}"#;

struct World<'s> {
    sandbox: &'s Sandbox,
    product: LabProduct<'s>,
    client: Client,
    services: Api<LinkLocalService>,
}

fn refused<T>(answer: kube::Result<T>) -> Result<String, Failed> {
    match answer {
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(error) => Err(error.into()),
        Ok(_) => Err("it was stored".into()),
    }
}

impl<'s> World<'s> {
    async fn prepare(sandbox: &'s Sandbox) -> Result<Self, Failed> {
        let product = LabProduct::prepare(sandbox, Build::Release).await?;
        let client = sandbox.client()?;
        let services = Api::namespaced(client.clone(), "default");
        Ok(Self { sandbox, product, client, services })
    }

    async fn create(&self, name: &str, ip: &str) -> kube::Result<LinkLocalService> {
        let service = service(&json!({"name": name}), ip).map_err(kube::Error::SerdeError)?;
        self.services.create(&PostParams::default(), &service).await
    }

    async fn move_to(&self, name: &str, ip: &str) -> kube::Result<LinkLocalService> {
        let patch = Patch::Merge(json!({"spec": {"ip": ip}}));
        self.services.patch(name, &PatchParams::default(), &patch).await
    }

    async fn remove(&self, name: &str) -> Outcome {
        self.services.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The claim of this address, by a live read.
    async fn claim(&self, ip: &str) -> Result<Option<UniqueClaimSpec>, Failed> {
        let claims: Api<UniqueClaim> = Api::all(self.client.clone());
        let listed = claims.list(&ListParams::default()).await?;
        let key = format!("{ip}:80");
        Ok(listed.into_iter().map(|claim| claim.spec).find(|claim| claim.key == key))
    }

    async fn until_held_by(&self, ip: &str, holder: Option<&str>) {
        let held = async || {
            let claim = self.claim(ip).await.map(|claim| claim.map(|claim| claim.holder.name));
            claim.is_ok_and(|name| name.as_deref() == holder)
        };
        eventually(&format!("{ip} is held by {holder:?}"), held).await;
    }

    /// Two stored objects want one address: the older has it, the newer gets a condition.
    async fn newer_is_reported(&self, ip: &str, older: &str, younger: &str) -> Outcome {
        self.until_held_by(ip, Some(older)).await;
        let is_reported =
            async || reported(&self.services, younger).await.is_ok_and(|text| text.is_some());
        let waited = async {
            while !is_reported().await {
                sleep(Duration::from_millis(300)).await;
            }
        };
        if timeout(TIMEOUT, waited).await.is_err() {
            return Err(
                format!("{younger} has no condition: {}", self.product.logs().await?).into()
            );
        }
        let text = reported(&self.services, younger).await?.unwrap_or_default();
        for part in [ip, older, younger] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(reported(&self.services, older).await?, None);
        let gauge = "opensdn_webhook_unique_conflicts{scope=\"link-local-address\"} 1";
        let raised = async || self.product.metrics().await.iter().any(|text| text.contains(gauge));
        eventually("the leader's metric counts it once", raised).await;
        Ok(())
    }

    /// Removes both, the newer last: it gets what the older had.
    async fn newer_inherits(&self, ip: &str, older: &str, younger: &str) -> Outcome {
        self.remove(older).await?;
        self.until_held_by(ip, Some(younger)).await;
        self.remove(younger).await?;
        self.until_held_by(ip, None).await;
        Ok(())
    }

    /// What was there before the product.
    async fn what_was_there_is_claimed_oldest_first(&self) -> Outcome {
        install_crds(&self.client, &opensdn_crds::all()).await?;
        self.create("z-older", "169.254.8.1").await?;
        wait_for_next_second().await;
        self.create("a-younger", "169.254.8.1").await?;
        self.product.apply().await?;
        self.product.wait_until_in_force().await?;
        self.newer_is_reported("169.254.8.1", "z-older", "a-younger").await?;
        self.newer_inherits("169.254.8.1", "z-older", "a-younger").await
    }

    /// A dry run holds nothing, and says the same.
    async fn a_dry_run_takes_nothing(&self) -> Outcome {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let object = service(&json!({"name": "dry"}), "169.254.8.41")?;
        self.services.create(&dry, &object).await?;
        assert_eq!(self.claim("169.254.8.41").await?.map(|claim| claim.holder.name), None);
        self.create("wet", "169.254.8.41").await?;
        let said = refused(self.services.create(&dry, &object).await)?;
        assert!(said.contains(&format!("{TAKEN}wet ")), "{said}");
        Ok(())
    }

    /// The API server asks its quotas when all webhooks have agreed, so the claim is
    /// there already.
    async fn a_later_step_refuses(&self) -> Outcome {
        self.product.kubectl(&["create", "namespace", "full"]).await?;
        let count = "--hard=count/linklocalservices.opensdn.io=0";
        self.product.kubectl(&["create", "quota", "none", "-n", "full", count]).await?;
        let services: Api<LinkLocalService> = Api::namespaced(self.client.clone(), "full");
        let object = service(&json!({"name": "never"}), "169.254.8.42")?;
        let said = refused(services.create(&PostParams::default(), &object).await)?;
        assert!(said.contains("quota"), "{said}");
        let claim = self.claim("169.254.8.42").await?;
        assert_eq!(claim.map(|claim| claim.holder.name).as_deref(), Some("never"));
        let said = refused(self.create("hindered", "169.254.8.42").await)?;
        assert!(said.contains("not stored (yet)"), "{said}");
        Ok(())
    }

    /// All keys of a request or none, and none for good by a call that broke off.
    async fn one_per_key_wins_whatever_breaks(&self) -> Outcome {
        let lab = self.sandbox.lab().ok_or("no lab")?;
        let pods = self.product.pods().await?;
        let [cut, killed, _] = pods.as_slice() else {
            return Err(format!("not three replicas: {pods:?}").into());
        };
        let cut = address_of(cut).ok_or("the replica has no address")?;
        let connections: Vec<_> =
            (0..CLIENTS / 10).map(|_| self.sandbox.client()).collect::<Result<_, _>>()?;
        let mut fault = None;
        let breaks = async || {
            fault = Some(lab.partition_pair(Party::ControlPlane, Party::Pod(cut))?);
            let killed = killed.name_any();
            let signal = Signal::Kill;
            drop(lab.signal_container(&self.client, NAMESPACE, &killed, "webhook", signal).await?);
            Ok(())
        };
        let answers = contend(&connections, CLIENTS, breaks).await?;
        drop(fault);
        one_per_key(&self.client, &answers).await?;
        until_claims_fit(&self.client).await?;
        Ok(self.product.wait_until_rolled_out().await?)
    }

    async fn a_change_takes_the_new_before_it_leaves_the_old(&self) -> Outcome {
        self.create("other", "169.254.8.11").await?;
        self.create("moves", "169.254.8.12").await?;
        let said = refused(self.move_to("moves", "169.254.8.11").await)?;
        assert!(said.contains(&format!("{TAKEN}other ")), "{said}");
        let held = self.claim("169.254.8.12").await?.map(|claim| claim.holder.name);
        assert_eq!(held.as_deref(), Some("moves"), "a refused change costs nothing");
        let said = refused(self.create("third", "169.254.8.12").await)?;
        assert!(said.contains(&format!("{TAKEN}moves ")), "{said}");

        self.move_to("moves", "169.254.8.13").await?;
        let held = self.claim("169.254.8.13").await?.map(|claim| claim.holder.name);
        assert_eq!(held.as_deref(), Some("moves"), "taken before it is stored");
        Ok(())
    }

    /// What no object holds any more is free, when no request that may
    /// still be on its way can want it.
    async fn what_was_left_is_free(&self) -> Outcome {
        until_claims_fit(&self.client).await?;
        self.create("third", "169.254.8.12").await?;
        self.create("hindered", "169.254.8.42").await?;
        Ok(())
    }

    async fn an_object_gets_its_own_claim_again(&self) -> Outcome {
        let apply = PatchParams::apply("lab").force();
        let again = service(&json!({"name": "again"}), "169.254.8.21")?;
        for _ in 0..3 {
            self.services.patch("again", &apply, &Patch::Apply(&again)).await?;
        }
        // Deleted, and at once made again: its claim may still be there.
        self.remove("again").await?;
        let stored = self.services.patch("again", &apply, &Patch::Apply(&again)).await?;
        let completed = async || {
            let claim = self.claim("169.254.8.21").await.ok().flatten();
            claim.is_some_and(|claim| claim.holder.uid == stored.uid())
        };
        eventually("the claim has the new object's uid", completed).await;

        let generated = service(&json!({"generateName": "generated-"}), "169.254.8.22")?;
        let generated = self.services.create(&PostParams::default(), &generated).await?;
        let name = generated.name_any();
        self.until_held_by("169.254.8.22", Some(&name)).await;
        let said = refused(self.create("second", "169.254.8.22").await)?;
        assert!(said.contains(&format!("{TAKEN}{name} ")), "{said}");
        Ok(())
    }

    async fn claims_are_seen_by_all_and_written_by_the_webhook_only(&self) -> Outcome {
        let seen = self.product.kubectl(&["get", "uniqueclaims"]).await?;
        assert!(seen.contains("169.254.8.21:80") && seen.contains("again"), "{seen}");
        // An administrator's, to which RBAC allows everything.
        let create = ["create", "-f", "-"];
        let output = self.sandbox.kubectl_with_input(&create, HAND_MADE).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("written by the webhook"), "{said}");
        self.create("mine", "169.254.8.99").await?;
        Ok(())
    }

    async fn what_got_in_unjudged_is_found(&self) -> Outcome {
        self.create("judged", "169.254.8.31").await?;
        wait_for_next_second().await;
        self.product.scale(0).await?;
        let gone = async || self.product.pods().await.is_ok_and(|pods| pods.is_empty());
        eventually("no replica is left", gone).await;
        // While a replica on its way out still answers, they may be put back.
        let bypassed = async || {
            let delete = ["delete", "--ignore-not-found", CONFIGURATIONS, "opensdn-webhook"];
            drop(self.product.kubectl(&delete).await);
            self.create("unjudged", "169.254.8.31").await.is_ok()
        };
        eventually("an object is stored that no policy judged", bypassed).await;
        self.product.scale(REPLICAS).await?;
        self.product.wait_until_in_force().await?;
        self.newer_is_reported("169.254.8.31", "judged", "unjudged").await?;
        self.newer_inherits("169.254.8.31", "judged", "unjudged").await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_one_holder_and_everybody_can_see_which() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let world = World::prepare(&sandbox).await?;
    world.what_was_there_is_claimed_oldest_first().await?;
    world.one_per_key_wins_whatever_breaks().await?;
    world.a_change_takes_the_new_before_it_leaves_the_old().await?;
    world.a_dry_run_takes_nothing().await?;
    world.a_later_step_refuses().await?;
    world.an_object_gets_its_own_claim_again().await?;
    world.claims_are_seen_by_all_and_written_by_the_webhook_only().await?;
    world.what_got_in_unjudged_is_found().await?;
    world.what_was_left_is_free().await
}
