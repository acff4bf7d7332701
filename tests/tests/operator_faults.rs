//! The operator while its writes fail: for every single write that it makes of a Manager, the operator is killed
//! before it arrives, or after, or the API server refuses it. In the end everything is as if nothing had happened, and
//! nothing more is written. Which write it is decides a number, and no clock.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::iter;
use opensdn_testing::eventually::eventually;
use opensdn_testing::fault_proxy::{Fault, FaultProxy, Write};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome, long_runs};
use serde_json::{Value, json};

/// Longer than between two writes of one pass.
const QUIET: Duration = Duration::from_millis(700);
/// So often at most it is looked whether the end has come: longer than the operator waits at first.
const RETRIES: usize = 100;
/// What the operator makes in a namespace.
const KINDS: &str = "managers.tf.tungsten.io,redis.tf.tungsten.io,webuis.tf.tungsten.io,serviceaccounts,\
    configmaps,secrets,poddisruptionbudgets,statefulsets";
/// Fewer would mean that the operator does less than it is to.
const LEAST_WRITES: usize = 12;

/// The operator for one namespace, behind a proxy.
struct Run<'s> {
    sandbox: &'s Sandbox,
    namespace: String,
    proxy: FaultProxy,
    operator: Operator,
}

impl<'s> Run<'s> {
    async fn start(
        sandbox: &'s Sandbox,
        name: &str,
        faults: &[(usize, Fault)],
    ) -> Result<Self, Failed> {
        let namespace = format!("run-{name}");
        kubectl(sandbox, &["create", "namespace", &namespace]).await?.success();
        let proxy = FaultProxy::start(sandbox.client()?, faults.iter().copied()).await?;
        let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
        let operator = Operator::start_with(sandbox, &kubeconfig, &namespace)?;
        Ok(Self { sandbox, namespace, proxy, operator })
    }

    async fn passes(&self) -> f64 {
        self.operator.metric(0, "opensdn_reconcile_total").await
    }

    /// Kills the operator where a fault has taken place, and waits until it has nothing to write.
    async fn settle(&self, is_killed: &mut bool) -> Outcome {
        let until_seen =
            eventually("it has looked at the Manager", async || self.passes().await > 0.0);
        tokio::select! {
            () = until_seen => {}
            () = self.proxy.broken(), if !*is_killed => {}
        }
        loop {
            self.proxy.quiet_for(QUIET).await;
            if *is_killed || !self.proxy.is_broken() {
                return Ok(());
            }
            *is_killed = true;
            self.operator.kill(0);
            self.operator.start(0)?;
            eventually("it has looked again", async || self.passes().await > 0.0).await;
        }
    }

    /// A Manager with two services, of which one changes and the other goes.
    async fn play(&self, is_killed: &mut bool) -> Result<Value, Failed> {
        send(self.sandbox, &["create"], &manager(&self.namespace)).await?.success();
        self.settle(is_killed).await?;
        let redis = manager(&self.namespace)["spec"]["services"]["redis"][0].clone();
        let mut changed = redis;
        changed["spec"]["serviceConfiguration"]["redisPort"] = json!(7000);
        let annotations = json!({"opensdn.io/confirm-loss": "Webui/webui1"});
        let patch = json!({"metadata": {"annotations": annotations},
            "spec": {"services": {"redis": [changed], "webui": null}}});
        let patch = patch.to_string();
        let change =
            ["patch", "-n", &self.namespace, "managers.tf.tungsten.io", "it", "--type=merge"];
        kubectl(self.sandbox, &[&change[..], &["-p", &patch]].concat()).await?.success();
        let seen = async || {
            let what = ["-n", &self.namespace, "managers.tf.tungsten.io", "it"];
            let manager = read(self.sandbox, &what).await.unwrap_or_default();
            self.proxy.is_broken() && !*is_killed
                || manager["status"]["observedGeneration"] == manager["metadata"]["generation"]
        };
        eventually("it has seen the change", seen).await;
        self.settle(is_killed).await?;
        self.state().await
    }

    /// What there is, but for what is different each time.
    async fn state(&self) -> Result<Value, Failed> {
        let list = read(self.sandbox, &["-n", &self.namespace, KINDS]).await?;
        let mut objects = list["items"].as_array().cloned().unwrap_or_default();
        objects.retain(|one| one["metadata"]["name"] != "kube-root-ca.crt");
        objects.iter_mut().for_each(mask);
        let text = serde_json::to_string(&objects)?.replace(&self.namespace, "NAMESPACE");
        Ok(serde_json::from_str(&text)?)
    }

    /// Every object is looked at once more, and nothing is written.
    async fn is_stable(&self) -> Result<bool, Failed> {
        let (writes, before) = (self.proxy.writes().len(), self.passes().await);
        let label = ["label", "-n", &self.namespace, "managers.tf.tungsten.io", "it", "look=again"];
        kubectl(self.sandbox, &label).await?.success();
        eventually("it has looked again", async || self.passes().await > before).await;
        self.proxy.quiet_for(QUIET).await;
        Ok(self.proxy.writes().len() == writes)
    }
}

fn manager(namespace: &str) -> Value {
    let image = |name: &str| format!("registry.example.com/{name}:1");
    opensdn_testing::manager::manager(namespace, "it", &["Redis", "Webui"], image)
}

/// Takes out times, versions, identities, keys, and digests of what has identities in it.
fn mask(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.values_mut().for_each(|value| *value = json!("masked"));
        }
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        owners.into_iter().flatten().for_each(|owner| owner["uid"] = json!("masked"));
    }
    let is_secret = object["kind"] == "Secret" || object["metadata"]["name"] == "csr-signer-ca";
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut).filter(|_| is_secret)
    {
        data.values_mut().for_each(|value| *value = json!("masked"));
    }
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition["lastTransitionTime"] = json!("masked");
    }
}

/// The state at the end, and what was written for it.
async fn undisturbed(sandbox: &Sandbox, name: &str) -> Result<(Value, Vec<Write>), Failed> {
    let run = Run::start(sandbox, name, &[]).await?;
    let state = run.play(&mut true).await?;
    assert!(
        run.is_stable().await?,
        "writes of a pass with nothing to do: {:?}",
        run.proxy.writes()
    );
    Ok((state, run.proxy.writes()))
}

/// Whether the fault was reached.
async fn disturbed(
    sandbox: &Sandbox,
    number: usize,
    fault: Fault,
    expected: &Value,
) -> Result<bool, Failed> {
    let name = format!("{number}-{fault:?}").to_lowercase().replace(['(', ')'], "-");
    let run = Run::start(sandbox, name.trim_end_matches('-'), &[(number, fault)]).await?;
    // After an answer it continues by itself.
    let mut is_killed = matches!(fault, Fault::Answer(_));
    let mut state = run.play(&mut is_killed).await?;
    let what = format!("write {number}, {fault:?}");
    // What was refused is tried again, ever later.
    for _ in 0..RETRIES {
        if state == *expected {
            break;
        }
        run.proxy.quiet_for(QUIET).await;
        state = run.state().await?;
    }
    if state != *expected {
        let writes = run.proxy.writes();
        return Err(format!("{what}: {state:#}\nis not\n{expected:#}\n{writes:#?}").into());
    }
    if !run.is_stable().await? {
        return Err(format!("{what}: it writes on: {:#?}", run.proxy.writes()).into());
    }
    let namespace = ["delete", "namespace", &run.namespace, "--wait=false"];
    kubectl(sandbox, &namespace).await?.success();
    Ok(run.proxy.is_broken())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_fails_the_end_is_the_same_and_stays() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    for node in ["a", "b", "c"] {
        let labels = json!({"node-role.kubernetes.io/control-plane": ""});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}});
        send(&sandbox, &["create"], &node).await?.success();
    }
    let (expected, writes) = undisturbed(&sandbox, "first").await?;
    let (again, _) = undisturbed(&sandbox, "second").await?;
    assert_eq!(expected, again, "what differs by itself is to be masked");
    assert!(writes.len() >= LEAST_WRITES, "{writes:#?}");
    let codes = [409, 429, 500, 503];
    let ways = [Some(Fault::LoseRequest), Some(Fault::LoseAnswer), None];
    let faults = long_runs::pairs((0..writes.len()).collect(), ways);
    let faults = faults.into_iter().map(|(number, fault)| {
        (number, fault.unwrap_or(Fault::Answer(codes[number % codes.len()])))
    });
    let runs = faults.map(|(number, fault)| disturbed(&sandbox, number, fault, &expected));
    let ended: Vec<Result<bool, Failed>> = iter(runs).buffer_unordered(6).collect().await;
    let number = ended.len();
    let reached = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let reached = reached.into_iter().filter(|reached| *reached).count();
    // The last write may be another after a restart, but nearly all are reached.
    assert!(reached + number / 10 + 2 >= number, "{reached} of {number} faults took place");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stops_keeps_the_lease_while_a_pass_is_under_way_and_leaves_it_in_time() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    // The first write gets no answer, so the pass does not end.
    let run = Run::start(&sandbox, "stopped", &[(0, Fault::LoseRequest)]).await?;
    send(&sandbox, &["create"], &manager(&run.namespace)).await?.success();
    run.proxy.broken().await;
    let holder = async || {
        let lease =
            read(&sandbox, &["-n", &run.namespace, "leases", opensdn_operator::LEASE]).await;
        lease.unwrap_or_default()["spec"]["holderIdentity"].clone()
    };
    assert_ne!(holder().await, Value::Null);
    let mut stop = std::pin::pin!(run.operator.stop(0));
    let while_it_stops = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_ne!(holder().await, Value::Null, "another would lead while it writes");
        }
    };
    tokio::select! {
        () = &mut stop => return Err("it did not wait for its pass".into()),
        () = while_it_stops => {}
    }
    stop.await;
    // A killed one would have left it held.
    assert!([Value::Null, json!("")].contains(&holder().await));
    Ok(())
}
