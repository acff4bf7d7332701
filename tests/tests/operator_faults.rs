//! The operator while its writes fail: for every single write that it makes of a Manager, the operator is killed
//! before it arrives, or after, or the API server refuses it. In the end everything is as if nothing had happened, and
//! nothing more is written. Which write it is decides a number, and no clock.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::iter;
use opensdn_testing::eventually::eventually;
use opensdn_testing::fault_proxy::{Fault, FaultProxy, Which, Write};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::signal::Signal;
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

/// A control plane with three nodes, on which nothing runs.
async fn with_nodes() -> Result<Sandbox, Failed> {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    for node in ["a", "b", "c"] {
        let labels = json!({"node-role.kubernetes.io/control-plane": ""});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}});
        send(&sandbox, &["create"], &node).await?.success();
    }
    Ok(sandbox)
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
    let sandbox = with_nodes().await?;
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

/// What an API server does to some requests for a while.
struct Trouble {
    name: &'static str,
    which: Which,
    fault: Fault,
    /// From the first of these tries to the second it takes at least that.
    tries: [usize; 2],
    at_least: Duration,
}

/// What is tried again after 1, 2, 4 seconds by a pass, and at first when something else changes; by kube within a call after 5, 10,
/// 20 milliseconds, or when the API server says; a watch after 100 milliseconds.
fn troubles() -> Vec<Trouble> {
    let file = || Which::writes().of("configmaps").named("redis1-redis-files").always();
    let (watch, list) = (Which::watches(), Which::lists());
    let sets = |which: Which| which.of("statefulsets").always();
    let trouble = |name, which, fault, tries, milliseconds| {
        let at_least = Duration::from_millis(milliseconds);
        Trouble { name, which, fault, tries, at_least }
    };
    let mut all = vec![
        trouble("conflict", file(), Fault::Answer(409), [3, 5], 1_000),
        trouble("gone", file(), Fault::Answer(410), [3, 5], 1_000),
        trouble("busy", file(), Fault::RetryAfter(429, 1), [1, 4], 2_500),
        trouble("away", file(), Fault::RetryAfter(503, 2), [1, 3], 3_500),
        trouble("unavailable", file(), Fault::Answer(503), [1, 9], 1_000),
        trouble("reset", file(), Fault::Reset, [3, 5], 1_000),
        trouble("cut", file(), Fault::Cut, [1, 1], 0),
        trouble("hang", file(), Fault::LoseRequest, [1, 2], 9_000),
        trouble("expired", sets(watch.clone()), Fault::Expire, [1, 10], 800),
        trouble("expired-at-once", sets(watch.clone()), Fault::Answer(410), [1, 10], 800),
        trouble("watch-reset", sets(watch.clone()), Fault::Reset, [1, 8], 1_000),
        trouble("list-refused", sets(list.clone()), Fault::Answer(500), [1, 8], 1_000),
    ];
    if long_runs::are_asked_for() {
        all.push(trouble("list-silent", sets(list), Fault::Silent, [1, 2], 29_000));
        all.push(trouble("watch-silent", sets(watch), Fault::Silent, [1, 2], 44_000));
    }
    all
}

/// The state in the end, after a trouble.
async fn troubled(sandbox: &Sandbox, trouble: &Trouble, expected: &Value) -> Result<Value, Failed> {
    let Trouble { name, which, fault, tries, at_least } = trouble;
    let namespace = format!("trouble-{name}");
    kubectl(sandbox, &["create", "namespace", &namespace]).await?.success();
    let proxy = FaultProxy::start(sandbox.client()?, []).await?;
    let disturbance = proxy.disturb(which.clone(), *fault);
    let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
    let operator = Operator::start_with(sandbox, &kubeconfig, &namespace)?;
    let run = Run { sandbox, namespace, proxy, operator };
    send(sandbox, &["create"], &manager(&run.namespace)).await?.success();
    let tried = async |times: usize| {
        let is_tried = async || disturbance.times() >= times;
        eventually(&format!("{name}: it is tried {times} times"), is_tried).await;
    };
    let [from, to] = *tries;
    tried(from).await;
    let begun = Instant::now();
    tried(to).await;
    let (took, times) = (begun.elapsed(), disturbance.times());
    assert!(took >= *at_least, "{name}: tried {times} times, the last within {took:?}");
    disturbance.end();
    // What was refused is tried again, ever later.
    let mut state = run.ended().await?;
    for _ in 0..RETRIES {
        if state == *expected {
            break;
        }
        run.proxy.quiet_for(QUIET).await;
        state = run.state().await?;
    }
    Ok(state)
}

impl Run<'_> {
    /// The state when all is there that can be without pods.
    async fn ended(&self) -> Result<Value, Failed> {
        let has_set = async || {
            let state = self.state().await.unwrap_or_default();
            state.as_array().into_iter().flatten().any(|one| one["kind"] == "StatefulSet")
        };
        eventually(&format!("{}: the StatefulSet is there", self.namespace), has_set).await;
        self.proxy.quiet_for(QUIET).await;
        self.state().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_api_server_refuses_or_hangs_it_tries_again_and_not_all_the_time() -> Outcome {
    let sandbox = with_nodes().await?;
    let run = Run::start(&sandbox, "undisturbed", &[]).await?;
    send(&sandbox, &["create"], &manager(&run.namespace)).await?.success();
    let expected = run.ended().await?;
    let troubles = troubles();
    let runs = troubles.iter().map(|trouble| async {
        let state = troubled(&sandbox, trouble, &expected).await?;
        let state = serde_json::to_string_pretty(&state)?;
        Ok::<_, Failed>((trouble.name, state))
    });
    let ended: Vec<Result<_, Failed>> = iter(runs).buffer_unordered(6).collect().await;
    let expected = serde_json::to_string_pretty(&expected)?;
    for ended in ended {
        let (name, state) = ended?;
        assert_eq!(state, expected, "{name}");
    }
    Ok(())
}

/// Whose the Lease is.
async fn holder(sandbox: &Sandbox, namespace: &str) -> String {
    let lease = read(sandbox, &["-n", namespace, "leases", opensdn_operator::LEASE]).await;
    let lease = lease.unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// For how many seconds it holds: far less than a test waits, and far more than an API server needs to answer.
const LEASE_SECONDS: u32 = 12;

/// The first of two is stopped when it has asked so many things of its first passes, and continues when the second leads and has
/// made something else of the Manager.
async fn stopped(sandbox: &Sandbox, asked: usize) -> Outcome {
    let namespace = format!("stopped-{asked}");
    kubectl(sandbox, &["create", "namespace", &namespace]).await?.success();
    let mut proxies = Vec::new();
    for _ in 0..2 {
        proxies.push(FaultProxy::start(sandbox.client()?, []).await?);
    }
    let files = proxies.iter().map(|proxy| proxy.kubeconfig(sandbox.data_folder()));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<_> = files.iter().map(|file| file.as_path()).collect();
    let operator = Operator::beside_each_other(sandbox, &paths, &namespace, LEASE_SECONDS)?;
    let [first, second] = [0, 1].map(|number| format!("operator-{number}-of-{namespace}"));
    operator.start(0)?;
    eventually("the first leads", async || holder(sandbox, &namespace).await == first).await;
    operator.start(1)?;
    let held = proxies[0].disturb(Which::reads().after(asked), Fault::Hold);
    send(sandbox, &["create"], &manager(&namespace)).await?.success();
    held.happened(1).await;
    operator.signal(0, Signal::STOP)?;
    eventually("the second leads", async || holder(sandbox, &namespace).await == second).await;
    let mut changed = manager(&namespace)["spec"]["services"]["redis"][0].clone();
    changed["spec"]["serviceConfiguration"]["redisPort"] = json!(7000);
    let patch = json!({"spec": {"services": {"redis": [changed]}}}).to_string();
    let change = ["patch", "-n", &namespace, "managers.tf.tungsten.io", "it", "--type=merge", "-p"];
    kubectl(sandbox, &[&change[..], &[&patch]].concat()).await?.success();
    let has_changed = async || {
        let file = ["-n", &namespace, "configmaps", "redis1-redis-files"];
        read(sandbox, &file).await.is_ok_and(|file| file["data"].to_string().contains("7000"))
    };
    eventually("the second has made it so", has_changed).await;
    proxies[1].quiet_for(QUIET).await;
    let versions = async || -> Result<Vec<String>, Failed> {
        let list = read(sandbox, &["-n", &namespace, KINDS]).await?;
        let version = |one: &Value| one["metadata"]["resourceVersion"].to_string();
        Ok(list["items"].as_array().into_iter().flatten().map(version).collect())
    };
    let (before, written) = (versions().await?, proxies[0].writes().len());
    // What it has asked is answered when it continues.
    held.end();
    proxies[0].quiet_for(QUIET).await;
    operator.signal(0, Signal::CONT)?;
    eventually("the first ends", async || !operator.runs(0)).await;
    proxies[1].quiet_for(QUIET).await;
    let late = proxies[0].writes().split_off(written);
    assert!(late.is_empty(), "{asked}: written by who leads no more: {late:?}");
    assert_eq!(versions().await?, before, "{asked}");
    assert_eq!(holder(sandbox, &namespace).await, second);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_stopped_for_longer_than_its_lease_writes_nothing_more_and_ends() -> Outcome {
    let sandbox = with_nodes().await?;
    let runs = [0, 3, 6, 9].map(|asked| stopped(&sandbox, asked));
    futures::future::join_all(runs).await.into_iter().collect()
}
