//! What becomes of a key whose holder gives it up while another stored object needs it: it is handed
//! over, and free at no moment. A claim that is deleted and made again has another UID, so that it is
//! the same object shows that no moment was missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use opensdn_crds::config::Config;
use opensdn_crds::manager::Manager;
use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_policy_host::Scope;
use opensdn_policy_host::lookup::Documents;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::controller::{Replica, remove, until_held_by};
use super::*;
use crate::admission::config;

/// Where a Config has its first link-local service.
const POINTER: &str = "/spec/serviceConfiguration/linklocalServices/0/ip";

/// A cluster whose claim controllers wait for two seconds only, and of which the tests have a
/// namespace each.
async fn cluster() -> Result<Client, Failed> {
    static SHARED: OnceCell<Sandbox> = OnceCell::const_new();
    shared(&SHARED).await
}

/// A Manager with one link-local service, and the Config that an operator has made of it.
struct Pair {
    manager: Manager,
    config: Config,
    managers: Api<Manager>,
    configs: Api<Config>,
}

impl Pair {
    async fn store(client: &Client, namespace: &str, ip: &str) -> Result<Self, Failed> {
        let service = json!({"ipFabricServiceHost": "10.0.0.10", "name": format!("of-{namespace}"),
            "ip": ip, "port": 80});
        let made: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &made).await?;
        let (managers, configs) = (
            Api::<Manager>::namespaced(client.clone(), namespace),
            Api::<Config>::namespaced(client.clone(), namespace),
        );
        let of_manager = config("config1", &Value::Null, &service);
        let of_manager = of_manager.get("spec").ok_or("a Config without a spec")?;
        let manager = serde_json::from_value(json!({
            "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "cluster1"},
            "spec": {"services": {"config": {"metadata": {"name": "config1"}, "spec": of_manager}}},
        }))?;
        let manager = managers.create(&PostParams::default(), &manager).await?;
        let config = config("config1", &json!(manager.uid()), &service);
        let config = serde_json::from_value(config)?;
        let config = configs.create(&PostParams::default(), &config).await?;
        Ok(Self { manager, config, managers, configs })
    }

    /// A replica whose policies see the Manager as it was at first, and always: no lookup lags more.
    async fn replica(&self, client: &Client, lease: &str) -> Result<Replica, Failed> {
        let lookup = Documents::new(vec![serde_json::to_value(&self.manager)?]);
        Replica::with_lookup(client, lease, SHORT_GRACE, Scope::default(), lookup).await
    }

    async fn take_from_manager(&self) -> Outcome {
        let without = json!({"spec": {"services": {"config": {"spec":
            {"serviceConfiguration": {"linklocalServices": null}}}}}});
        let patch = Patch::Merge(without);
        self.managers.patch("cluster1", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn take_from_config(&self) -> Outcome {
        let without = json!({"spec": {"serviceConfiguration": {"linklocalServices": null}}});
        let patch = Patch::Merge(without);
        self.configs.patch("config1", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn give_to_manager(&self) -> Outcome {
        let at = "/spec/services/config/spec/serviceConfiguration/linklocalServices";
        let manager = serde_json::to_value(&self.manager)?;
        let services = manager.pointer(at).ok_or("the Manager had none at first")?;
        let with = json!({"spec": {"services": {"config": {"spec":
            {"serviceConfiguration": {"linklocalServices": services}}}}}});
        self.managers.patch("cluster1", &PatchParams::default(), &Patch::Merge(with)).await?;
        Ok(())
    }

    /// Writes the ownerReferences of the Config.
    async fn set_owners(&self, references: &Value) -> Outcome {
        let owners = Patch::Merge(json!({"metadata": {"ownerReferences": references}}));
        self.configs.patch("config1", &PatchParams::default(), &owners).await?;
        Ok(())
    }

    fn holder(&self) -> Holder {
        Holder {
            group: "tf.tungsten.io".into(),
            version: "v1alpha1".into(),
            kind: "Manager".into(),
            namespace: self.manager.namespace().unwrap_or_default(),
            name: "cluster1".into(),
            uid: self.manager.uid().unwrap_or_default(),
        }
    }
}

/// The claim of the key, by a live read.
async fn claim_of(client: &Client, key: &str) -> Result<UniqueClaim, Failed> {
    let api: Api<UniqueClaim> = Api::all(client.clone());
    Ok(api.get(&opensdn_webhook::claims::claim_name("link-local-address", key)).await?)
}

/// Another object that asks for the key all the time, until `stop`; how often it got it.
fn thief(claims: &Claims, key: &str, stop: &Arc<AtomicBool>) -> JoinHandle<(usize, usize)> {
    let (claims, key, stop) = (claims.clone(), key.to_owned(), Arc::clone(stop));
    tokio::spawn(async move {
        let (mut asked, mut got) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            asked += 1;
            if let Ok(taken) = take(&claims, "thief", &[&key]).await {
                got += 1;
                drop(taken);
            }
        }
        (asked, got)
    })
}

/// Waits until a claim without a holder, taken now, has been released: for longer than the grace.
async fn grace_passes(client: &Client, replica: &Replica, key: &str) -> Outcome {
    let wanted = [claim(key)];
    replica.claims.take(&holder("nobody"), &wanted, &[], soon()).await?.commit();
    until_held_by(client, key, None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_a_manager_gives_up_stays_claimed_while_its_config_has_it() -> Outcome {
    let client = cluster().await?;
    let key = "169.254.20.1:80";
    let pair = Box::pin(Pair::store(&client, "gives-up", "169.254.20.1")).await?;
    let replica = pair.replica(&client, "gives-up").await?;
    let _controller = replica.start_controller(&client);
    until_held_by(&client, key, Some("cluster1")).await?;
    let claim = claim_of(&client, key).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let thief = thief(&replica.claims, key, &stop);
    pair.take_from_manager().await?;
    until_held_by(&client, key, Some("config1")).await?;
    grace_passes(&client, &replica, "169.254.20.2:80").await?;
    let inherited = claim_of(&client, key).await?;
    assert_eq!(inherited.uid(), claim.uid(), "it was deleted and made again");
    let StoredHolder { kind, uid, .. } = &inherited.spec.holder;
    assert_eq!((kind.as_str(), uid), ("Config", &pair.config.uid()));
    assert_eq!(inherited.spec.holder.pointer.as_deref(), Some(POINTER));
    stop.store(true, Ordering::Relaxed);
    let (asked, got) = thief.await?;
    assert!(asked > 0 && got == 0, "another object got the key {got} of {asked} times");

    pair.take_from_config().await?;
    until_held_by(&client, key, None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_of_a_deleted_manager_keeps_its_key() -> Outcome {
    let client = cluster().await?;
    let key = "169.254.21.1:80";
    let pair = Box::pin(Pair::store(&client, "deleted", "169.254.21.1")).await?;
    let replica = pair.replica(&client, "deleted").await?;
    let _controller = replica.start_controller(&client);
    until_held_by(&client, key, Some("cluster1")).await?;
    let claim = claim_of(&client, key).await?;
    // No garbage collector of this cluster deletes what is left without its owner.
    pair.managers.delete("cluster1", &DeleteParams::default()).await?;
    until_held_by(&client, key, Some("config1")).await?;
    assert_eq!(claim_of(&client, key).await?.uid(), claim.uid());
    pair.configs.delete("config1", &DeleteParams::default()).await?;
    until_held_by(&client, key, None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_gets_an_entry_back_that_its_config_has_inherited() -> Outcome {
    let client = cluster().await?;
    let key = "169.254.22.1:80";
    let pair = Box::pin(Pair::store(&client, "returns", "169.254.22.1")).await?;
    let replica = pair.replica(&client, "returns").await?;
    let controller = replica.start_controller(&client);
    until_held_by(&client, key, Some("cluster1")).await?;
    pair.take_from_manager().await?;
    until_held_by(&client, key, Some("config1")).await?;
    // The rest is what requests do.
    controller.abort();
    let inherited = claim_of(&client, key).await?;
    let wanted = [claim(key)];
    let manager = pair.holder();
    let another = Holder { uid: "another".into(), ..manager.clone() };
    let refused = conflicts(replica.claims.take(&another, &wanted, &[], soon()).await)?;
    assert_eq!(refused[0].held.name, "config1");
    // Its UID is no secret: what says to have it and is not stored under its own name owns nothing.
    let forged = Holder { name: "another".into(), ..manager.clone() };
    let refused = conflicts(replica.claims.take(&forged, &wanted, &[], soon()).await)?;
    assert_eq!(refused[0].held.name, "config1");
    assert_eq!(claim_of(&client, key).await?.spec.holder, inherited.spec.holder);

    replica.claims.check(&manager, &wanted, soon()).await?;
    drop(replica.claims.take(&manager, &wanted, &[], soon()).await?);
    until("what a refused request has taken is the Config's again", || async {
        Ok(held_by(&client, key).await?.as_deref() == Some("config1"))
    })
    .await?;
    replica.claims.take(&manager, &wanted, &[], soon()).await?.commit();
    let claim = claim_of(&client, key).await?;
    assert_eq!((claim.spec.holder.kind.as_str(), claim.uid()), ("Manager", inherited.uid()));
    Ok(())
}

/// By an ownerReference a policy may exempt an object whose owner claims the key, as far as lookups show.
/// Whether the owner does is read live before the claim goes, and then it is handed over.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_reference_that_is_added_to_a_holder_frees_no_key() -> Outcome {
    let client = cluster().await?;
    let key = "169.254.24.1:80";
    let pair = Box::pin(Pair::store(&client, "gets-owner", "169.254.24.1")).await?;
    let owners = json!(pair.config.owner_references());
    pair.set_owners(&Value::Null).await?;
    pair.take_from_manager().await?;
    // Its lookups show the Manager with the entry.
    let replica = pair.replica(&client, "gets-owner").await?;
    let _controller = replica.start_controller(&client);
    until_held_by(&client, key, Some("config1")).await?;
    let claim = claim_of(&client, key).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let thief = thief(&replica.claims, key, &stop);
    pair.set_owners(&owners).await?;
    grace_passes(&client, &replica, "169.254.24.2:80").await?;
    grace_passes(&client, &replica, "169.254.24.3:80").await?;
    assert_eq!(held_by(&client, key).await?.as_deref(), Some("config1"));
    assert_eq!(claim_of(&client, key).await?.uid(), claim.uid(), "it was deleted and made again");

    pair.give_to_manager().await?;
    until_held_by(&client, key, Some("cluster1")).await?;
    assert_eq!(claim_of(&client, key).await?.uid(), claim.uid(), "it was deleted and made again");
    stop.store(true, Ordering::Relaxed);
    let (asked, got) = thief.await?;
    assert!(asked > 0 && got == 0, "another object got the key {got} of {asked} times");
    Ok(())
}

/// Both take themselves for the leader, as when one was paused; and the other ends wherever it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_handed_over_is_free_at_no_moment_with_two_leaders_that_come_and_go()
-> Outcome {
    let client = cluster().await?;
    let first = Replica::start(&client, "first", SHORT_GRACE, Scope::default()).await?;
    let second = Replica::start(&client, "second", SHORT_GRACE, Scope::default()).await?;
    let _first = first.start_controller(&client);
    let mut running = second.start_controller(&client);
    for round in 0..6_u64 {
        let ip = format!("169.254.23.{round}");
        let key = format!("{ip}:80");
        let [older, heir] = ["older", "heir"].map(|name| format!("{name}-{round}"));
        store(&client, &older, &ip).await?;
        until_held_by(&client, &key, Some(&older)).await?;
        store(&client, &heir, &ip).await?;
        until("both know that it wants the key", || async {
            Ok(super::controller::reported(&client, &heir).await?.is_some())
        })
        .await?;
        let claim = claim_of(&client, &key).await?;
        remove(&client, &older).await?;
        // Each round it ends a little later.
        sleep(Duration::from_millis(round * 7)).await;
        running.abort();
        // What it holds is dropped before the next one starts.
        drop(running.await);
        running = second.start_controller(&client);
        until_held_by(&client, &key, Some(&heir)).await?;
        assert_eq!(claim_of(&client, &key).await?.uid(), claim.uid(), "round {round}");
        remove(&client, &heir).await?;
        until_held_by(&client, &key, None).await?;
    }
    Ok(())
}
