//! A Kubemanager of a nested cluster while the operator's writes fail: for every single write the operator is killed
//! before it arrives, or after, or the API server refuses it. In the end everything is as if nothing had happened. What the
//! controller of DaemonSets does is done by hand.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::cell::Cell;

use futures::StreamExt as _;
use futures::stream::iter;
use opensdn_testing::eventually::eventually;
use opensdn_testing::fault_proxy::{Fault, FaultProxy, Write};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator_nested::{login, nested, secret};

const KINDS: &str = "kubemanagers.tf.tungsten.io,serviceaccounts,configmaps,secrets,daemonsets,deployments,\
    statefulsets";
/// Seven objects, and a status before and after the CNI agent is ready.
const LEAST_WRITES: usize = 9;

/// The operator for one namespace, behind a proxy.
struct Run<'s> {
    sandbox: &'s Sandbox,
    namespace: String,
    proxy: FaultProxy,
    operator: Operator,
    is_killed: Cell<bool>,
}

impl<'s> Run<'s> {
    async fn start(
        sandbox: &'s Sandbox,
        name: &str,
        fault: Option<(usize, Fault)>,
    ) -> Result<Self, Failed> {
        let namespace = format!("run-{name}");
        kubectl(sandbox, &["create", "namespace", &namespace]).await?.success();
        let mut it = nested("km");
        it["spec"]["commonConfiguration"] = login();
        for mut object in [secret("50%a"), it] {
            object["metadata"]["namespace"] = json!(namespace);
            send(sandbox, &["create"], &object).await?.success();
        }
        let proxy = FaultProxy::start(sandbox.client()?, fault).await?;
        let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
        let operator = Operator::start_with(sandbox, &kubeconfig, &namespace)?;
        // After an answer it continues by itself.
        let is_killed = Cell::new(matches!(fault, Some((_, Fault::Answer(_)))));
        Ok(Self { sandbox, namespace, proxy, operator, is_killed })
    }

    async fn objects(&self) -> Result<Vec<Value>, Failed> {
        let list = read(self.sandbox, &["-n", &self.namespace, KINDS]).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Whether kube-manager is started, after a step of whoever has to do something.
    async fn is_done(&self) -> Result<bool, Failed> {
        if self.proxy.is_broken() && !self.is_killed.replace(true) {
            self.operator.kill(0);
            self.operator.start(0)?;
        }
        let objects = self.objects().await?;
        let of_kind = |kind: &str| objects.iter().find(|one| one["kind"] == kind);
        let agent = of_kind("DaemonSet").filter(|agent| agent["status"]["numberReady"] != 1);
        if let Some(agent) = agent {
            self.is_ready(agent).await?;
        }
        let says = of_kind("Kubemanager").map(|it| it["status"].to_string()).unwrap_or_default();
        let is_started = "kube-manager: 0 of 1 pods ready; CNI agent: 1 of 1 pods ready";
        Ok(of_kind("Deployment").is_some() && says.contains(is_started))
    }

    /// As the controller of DaemonSets says it.
    async fn is_ready(&self, agent: &Value) -> Outcome {
        let generation = &agent["metadata"]["generation"];
        let status = json!({"status": {"observedGeneration": generation, "desiredNumberScheduled": 1,
            "currentNumberScheduled": 1, "updatedNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1}});
        let name = agent["metadata"]["name"].as_str().unwrap_or_default();
        let patch = ["patch", "-n", &self.namespace, "daemonset", name, "--subresource=status"];
        let how = ["--type=merge", "-p", &status.to_string()];
        kubectl(self.sandbox, &[&patch[..], &how].concat()).await?.success();
        Ok(())
    }

    /// What there is in the end, and what was written for it.
    async fn end(&self) -> Result<(Vec<Value>, Vec<Write>), Failed> {
        let done = async || self.is_done().await.unwrap_or_default();
        eventually(&format!("kube-manager is started in {}", self.namespace), done).await;
        let objects = self.objects().await?;
        let all = objects.iter().map(|one| stripped(one, &self.namespace));
        Ok((all.collect(), self.proxy.writes()))
    }
}

/// What is the same each time.
fn stripped(object: &Value, namespace: &str) -> Value {
    let mut spec = object["spec"].clone();
    if object["kind"] == "Deployment" {
        spec["template"]["metadata"]["annotations"]["opensdn.io/secrets"] = json!("masked");
    }
    let name = &object["metadata"]["name"];
    let data = if name == "kube-root-ca.crt" { &Value::Null } else { &object["data"] };
    let text = json!([
        object["kind"],
        name,
        object["metadata"]["labels"],
        spec,
        data,
        object["metadata"]["ownerReferences"][0]["name"]
    ]);
    serde_json::from_str(&text.to_string().replace(namespace, "NAMESPACE")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_of_a_nested_kubemanager_fails_the_end_is_the_same() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
    send(&sandbox, &["create"], &node).await?.success();
    let (expected, writes) = Run::start(&sandbox, "first", None).await?.end().await?;
    assert!(writes.len() >= LEAST_WRITES, "{writes:#?}");
    let faults = (0..writes.len()).flat_map(|number| {
        [Fault::LoseRequest, Fault::LoseAnswer, Fault::Answer(500)].map(|fault| (number, fault))
    });
    let (sandbox, expected) = (&sandbox, &expected);
    let runs = faults.map(|(number, fault)| async move {
        let name = format!("{number}-{fault:?}").to_lowercase().replace(['(', ')'], "-");
        let name = name.trim_end_matches('-');
        let run = Run::start(sandbox, name, Some((number, fault))).await?;
        let (state, writes) = run.end().await?;
        assert_eq!(&state, expected, "write {number}, {fault:?}: {writes:#?}");
        Ok::<bool, Failed>(run.proxy.is_broken())
    });
    let ended: Vec<Result<bool, Failed>> = iter(runs).buffer_unordered(4).collect().await;
    let number = ended.len();
    let reached = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let reached = reached.into_iter().filter(|reached| *reached).count();
    // The last write may be another after a restart, but nearly all are reached.
    assert!(reached + 6 >= number, "{reached} of {number} faults took place");
    Ok(())
}
