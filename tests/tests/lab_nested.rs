//! A nested cluster on real nodes, whose cloud has the fake of the Config API and on each node a stand-in of the vrouter
//! agent: what `nested apply` writes is reached by pods, and `nested verify` sees what works and what is cut. kube-manager
//! and the CNI agent are pods that only run, as their images cannot be had; the file that the latter writes is the lab's
//! network with the way to link-local services. Deliberately not here: what is said where no pod answers
//! (`plugin_nested_verify`), and what each answer means (the plugin).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_deploy::names::operator::NAME;
use opensdn_testing::config_api::Service;
use opensdn_testing::development_image::DevelopmentImage;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::lab_cloud::{LabCloud, SERVICE_ADDRESSES};
use opensdn_testing::output::text;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::{Lab, TOOLS_IMAGE};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_check::namespaces;

const CONFIG_PORT: u16 = 8082;
/// The pods of the lab have no others.
const PODS: &str = "10.244.0.0/16";

async fn apply(cloud: &LabCloud<'_>) -> Outcome {
    let file = cloud.nested_cluster()?;
    let file = file.to_str().unwrap_or_default();
    let apply = ["nested", "apply", "--yes", "-f", file, "--pod-subnets", PODS];
    let applied = cloud.plugin(&apply)?;
    assert_eq!(applied.status.code(), Some(0), "{}", text(&applied));
    cloud.settled().await;
    Ok(())
}

/// What is not as it has to be, as `PART CODE SUBJECT`, and the exit code. Whatever is found, nothing is left behind
/// and nothing is written.
async fn verify(sandbox: &Sandbox, cloud: &LabCloud<'_>) -> Result<(Value, i32), Failed> {
    let file = cloud.nested_cluster()?;
    let file = file.to_str().unwrap_or_default();
    let before = cloud.api().entries();
    let verify = ["nested", "verify", "-f", file, "--pod-subnets", PODS, "-o", "json"];
    let output = cloud.plugin(&verify)?;
    let answer = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", text(&output)))?;
    assert_eq!(namespaces(sandbox).await?, Vec::<String>::new());
    assert_eq!(cloud.api().entries(), before);
    Ok((answer, output.status.code().unwrap_or(-1)))
}

/// Each thing that fails, by its part and code. All else is as it has to be, on all three nodes.
fn failed(answer: &Value) -> Vec<(&str, &str)> {
    let mut failed = Vec::new();
    for one in answer["results"].as_array().into_iter().flatten() {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        let part = word("part");
        let nodes = one["nodes"].as_array().map_or(0, Vec::len);
        let is_of_nodes = ["services", "node-files", "pods"].contains(&part);
        assert_eq!(nodes, if is_of_nodes { 3 } else { 0 }, "{one:#}");
        match word("result") {
            "fail" => failed.push((part, word("code"))),
            result => assert_eq!(result, "ok", "{one:#}"),
        }
    }
    failed
}

/// Where the fabric's Config API is for pods.
fn config(cloud: &LabCloud<'_>) -> Result<String, Failed> {
    let entries = cloud.api().entries();
    let mut all = entries.as_array().into_iter().flatten();
    let row = all.find(|row| row["linklocal_service_port"] == CONFIG_PORT);
    let row = row.ok_or("the Config API has no link-local service")?;
    Ok(row["linklocal_service_ip"].as_str().unwrap_or_default().to_owned())
}

/// Pods that only run, by the names of the two workloads; and on each node what the CNI agent writes.
async fn run_workloads(sandbox: &Sandbox, lab: &Lab) -> Outcome {
    for node in lab.nodes() {
        let of_lab = lab.run_on(node.name(), "read", "cat /etc/cni/net.d/10-lab.conflist")?;
        let of_lab: Value = serde_json::from_str(&of_lab)?;
        let mut network = of_lab["plugins"][0].clone();
        network["cniVersion"] = of_lab["cniVersion"].clone();
        // Of one name, so that addresses are given once.
        network["name"] = of_lab["name"].clone();
        let routes = network["ipam"]["routes"].as_array_mut().ok_or("no routes")?;
        routes.push(json!({"dst": SERVICE_ADDRESSES}));
        let write = format!("cat >/etc/cni/net.d/10-contrail.conf <<'end'\n{network}\nend\n");
        lab.run_on(node.name(), "write what the CNI agent writes", &write)?;
    }
    for (kind, name) in
        [("Deployment", "opensdn-kube-manager"), ("DaemonSet", "opensdn-kubernetes-cni-agent")]
    {
        let labels = json!({"app": name});
        let container = json!({"name": "c", "image": TOOLS_IMAGE, "imagePullPolicy": "Never",
            "command": ["sleep", "3600"]});
        let pod = json!({"hostNetwork": true, "terminationGracePeriodSeconds": 1, "containers": [container]});
        let object = json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}});
        send(sandbox, &["create"], &object).await?.success();
        let object = format!("{}/{name}", kind.to_lowercase());
        let status = ["-n", "kube-system", "rollout", "status", &object, "--timeout=120s"];
        kubectl(sandbox, &status).await?.success();
    }
    Ok(())
}

/// The homepage of the Config API, as a pod on the node gets it.
async fn from_a_pod(sandbox: &Sandbox, node: &str, address: &str) -> Result<Value, Failed> {
    let name = format!("asks-on-{node}");
    // Not by wget, which ends at names in an image without a C library. A request that is whole and not closed is answered.
    let ask =
        format!(r"(printf 'GET / HTTP/1.0\r\n\r\n'; sleep 2) | nc -w 5 {address} {CONFIG_PORT}");
    let container = json!({"name": "c", "image": TOOLS_IMAGE, "imagePullPolicy": "Never",
        "command": ["sh", "-c", ask]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [container]}});
    send(sandbox, &["create"], &pod).await?.success();
    let pod = format!("pod/{name}");
    let ended = ["wait", "--for=jsonpath={.status.phase}=Succeeded", &pod, "--timeout=60s"];
    if !kubectl(sandbox, &ended).await?.ok {
        let described = kubectl(sandbox, &["describe", &pod]).await?;
        return Err(format!("{address} is not reached: {}", described.out).into());
    }
    let said = kubectl(sandbox, &["logs", &pod]).await?;
    kubectl(sandbox, &["delete", &pod, "--now"]).await?.success();
    // containerd keeps lines and not how they end.
    let page = said.success().lines().last().unwrap_or_default();
    Ok(serde_json::from_str(page)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_reach_the_fabric_by_what_is_applied_and_verify_sees_what_is_cut() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    lab.load_image(DevelopmentImage::of_ours(NAME)?.archive()).await?;
    let cloud = LabCloud::start(&sandbox)?;
    apply(&cloud).await?;
    let applied = cloud.api().entries();
    assert_eq!(
        applied.as_array().map(Vec::len),
        Some(8),
        "the metadata row and seven: {applied:#}"
    );

    // Nodes reach all services; without the network of the CNI agent pods have no way there.
    let (answer, code) = verify(&sandbox, &cloud).await?;
    let expected = [
        ("node-files", "OSDN3083"),
        ("workloads", "OSDN3082"),
        ("workloads", "OSDN3082"),
        ("pods", "OSDN3087"),
    ];
    assert_eq!((failed(&answer), code), (expected.to_vec(), 1), "{answer:#}");

    run_workloads(&sandbox, lab).await?;
    let at = config(&cloud)?;
    for node in lab.nodes() {
        let page = from_a_pod(&sandbox, node.name(), &at).await?;
        assert!(page["links"].is_array(), "{page:#}");
    }
    let (answer, code) = verify(&sandbox, &cloud).await?;
    assert_eq!((failed(&answer), code), (vec![], 0), "{answer:#}");
    let services = answer["results"].as_array().into_iter().flatten();
    let services = services.filter(|one| one["part"] == "services").count();
    assert_eq!(services, 7, "{answer:#}");

    // Another client removes the row of the Config API.
    let mut cut = applied.clone();
    cut.as_array_mut().ok_or("no list")?.retain(|row| row["linklocal_service_port"] != CONFIG_PORT);
    cloud.api().write_entries(cut).map_err(|refusal| refusal.text)?;
    cloud.settled().await;
    let (answer, code) = verify(&sandbox, &cloud).await?;
    let expected = [("cloud", "OSDN3090"), ("services", "OSDN3080"), ("pods", "OSDN3087")];
    assert_eq!((failed(&answer), code), (expected.to_vec(), 1), "{answer:#}");
    apply(&cloud).await?;
    assert_eq!(config(&cloud)?, at, "the address is not another one");

    // The row is there, and what it leads to is not.
    cloud.api().stop(Service::Keystone);
    let (answer, code) = verify(&sandbox, &cloud).await?;
    assert_eq!((failed(&answer), code), (vec![("services", "OSDN3080")], 1), "{answer:#}");
    let mut services = answer["results"].as_array().into_iter().flatten();
    let cut = services.find(|one| one["result"] == "fail").unwrap_or(&Value::Null);
    assert!(cut["subject"].as_str().is_some_and(|said| said.ends_with(":35357")), "{cut:#}");
    Ok(())
}
