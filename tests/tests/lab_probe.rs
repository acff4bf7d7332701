//! `kubectl opensdn check --probe` on real nodes: the kubelet pulls and runs the pods, which look at real interfaces,
//! ports and files. What each check makes of what nodes answer is tested in the plugin, and a run that is interrupted
//! in `plugin_check`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::path::Path;

use opensdn_deploy::names::operator::NAME;
use opensdn_testing::development_image::DevelopmentImage;
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::sandbox::lab::{Lab, TOOLS_IMAGE};
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::LABEL;
use crate::plugin_check::{check, namespaces};
use crate::plugin_status::document;

/// The agent's, which a component has to have.
const PORT: u16 = 9091;

/// Starts a process on the node that has the port on all of its addresses; its number there.
fn hold_port(lab: &Lab, node: &str) -> Result<String, Failed> {
    let python = format!(
        "import socket,time;s=socket.socket();s.bind((\"0.0.0.0\",{PORT}));s.listen(1);time.sleep(600)"
    );
    let script = format!(
        "python3 -c '{python}' >/dev/null 2>&1 & pid=$!; \
         for try in $(seq 100); do grep -q ':{PORT:04X} ' /proc/net/tcp && break; sleep 0.1; done; echo $pid"
    );
    Ok(lab.run_on(node, "hold a port", &script)?.trim().to_owned())
}

/// The node drops what others send to its port of the Config API, and rejects what they send to that of RabbitMQ.
const RULES: [&str; 2] = [
    "INPUT --protocol tcp --dport 8082 ! --in-interface lo --jump DROP",
    "INPUT --protocol tcp --dport 5673 ! --in-interface lo --jump REJECT --reject-with tcp-reset",
];

fn iptables(lab: &Lab, node: &str, verb: &str) -> Result<(), Failed> {
    for rule in RULES {
        lab.run_on(node, "filter ports", &format!("iptables --wait {verb} {rule}"))?;
    }
    Ok(())
}

/// All nodes reach each other; then one does not let two ports through.
async fn nodes_reach_each_other(sandbox: &Sandbox, lab: &Lab, admin: &Path) -> Outcome {
    let nodes: Vec<String> = lab.nodes().map(|node| node.name().to_owned()).collect();
    let [first, .., last] = &*nodes else { return Err("too few nodes".into()) };
    let command = ["check", "--probe", "--only", "P203"];
    let (report, code) = document(admin, &command)?;
    let reached = check(&report, "P203");
    assert_eq!((&reached["result"], code), (&Value::from("ok"), 0), "{reached:#}");
    assert_eq!(reached["nodes"].as_array().map(Vec::len), Some(3), "{reached:#}");

    iptables(lab, last, "--insert")?;
    let (report, code) = document(admin, &command)?;
    iptables(lab, last, "--delete")?;
    let reached = check(&report, "P203");
    assert_eq!((&reached["result"], code), (&Value::from("fail"), 1), "{reached:#}");
    let (result, said) = of_node(reached, first);
    let dropped = format!("to {last}, port 8082/TCP of Config: no answer in 3 s");
    let rejected = format!("to {last}, port 5673/TCP of Rabbitmq: refused, although");
    assert!(result == "fail" && said.contains(&dropped) && said.contains(&rejected), "{said}");
    assert_eq!(of_node(reached, last).0, "ok", "it reaches the others: {reached:#}");
    assert_eq!(namespaces(sandbox).await?, Vec::<String>::new());
    Ok(())
}

/// An image that is on the nodes, and one whose registry there is not: what the kubelets say, and nothing is left.
async fn nodes_pull_images(sandbox: &Sandbox, admin: &Path) -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("manager.yaml");
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let containers = [
        container("agent", TOOLS_IMAGE),
        container("nodemanager", "registry.invalid/opensdn/agent:1"),
    ];
    let vrouter = json!({"metadata": {"name": "v"}, "spec": {"serviceConfiguration": {"containers": containers}}});
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "m", "namespace": "default"}, "spec": {"services": {"vrouters": [vrouter]}}});
    std::fs::write(&file, manager.to_string())?;
    let file = file.display().to_string();
    let pull = ["check", "--probe", "--pull=all", "--only", "I801", "-f", &file];
    let (report, code) = document(admin, &pull)?;
    let images = check(&report, "I801");
    assert_eq!((&images["result"], code), (&Value::from("fail"), 1), "{images:#}");
    let results = images["nodes"].as_array().ok_or("no nodes")?;
    assert_eq!(results.len(), 3, "{images:#}");
    for one in results {
        let said = one["message"].as_str().unwrap_or_default();
        assert!(said.starts_with("registry.invalid/opensdn/agent:1: "), "{said}");
        assert!(said.contains("ErrImagePull") && !said.contains(TOOLS_IMAGE), "{said}");
    }
    let left = kubectl(sandbox, &["get", "pods", "-n", "default", "-o", "name"]).await?;
    assert_eq!(left.success(), "");
    assert_eq!(namespaces(sandbox).await?, Vec::<String>::new());
    Ok(())
}

fn of_node<'a>(check: &'a Value, node: &str) -> (&'a str, &'a str) {
    let mut nodes = check["nodes"].as_array().into_iter().flatten();
    let found = nodes.find(|one| one["name"] == node).unwrap_or(&Value::Null);
    let text = |key: &str| found[key].as_str().unwrap_or_default();
    (text("result"), text("message"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_says_what_it_has_and_nothing_is_left_on_them() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    lab.load_image(DevelopmentImage::of_ours(NAME)?.archive()).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    let admin = sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?;

    let (report, _) = document(&admin, &["check", "--probe"])?;
    let nodes: Vec<String> = lab.nodes().map(|node| node.name().to_owned()).collect();
    assert_eq!(nodes.len(), 3);
    for id in ["P201", "D303", "D304", "S502", "C401", "T602", "V702"] {
        let check = check(&report, id);
        let results = check["nodes"].as_array().ok_or("no nodes")?;
        assert_eq!(results.len(), 3, "{check:#}");
        assert_ne!(check["result"], "skipped", "{check:#}");
    }
    for node in &nodes {
        assert_eq!(of_node(check(&report, "P201"), node).0, "ok", "{:#}", check(&report, "P201"));
        let mtu = lab.run_on(node, "its MTU", "ip -o link show | grep -v ' lo:'")?;
        let (result, said) = of_node(check(&report, "D304"), node);
        assert_eq!(result, "ok", "{said}");
        let number = said.rsplit(' ').next().unwrap_or_default();
        assert!(mtu.contains(&format!("mtu {number} ")), "{said} is not in {mtu}");
        // All nodes have the clock of this machine.
        let (result, said) = of_node(check(&report, "T602"), node);
        assert!(!said.contains("not compared") && result != "fail", "{said}");
    }
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    let other = nodes.first().ok_or("no nodes")?;
    let held = nodes.last().ok_or("no nodes")?;
    let pid = hold_port(lab, held)?;
    let (report, code) = document(&admin, &["check", "--probe", "--only", "P201"])?;
    let ports = check(&report, "P201");
    assert_eq!((&ports["result"], code), (&Value::from("fail"), 1), "{ports:#}");
    let (result, said) = of_node(ports, held);
    let expected = format!("port {PORT}/TCP of Vrouter is held by python3");
    assert!(result == "fail" && said.contains(&expected), "{result}: {said}");
    assert_eq!(of_node(ports, other), ("ok", "all free"), "{ports:#}");
    lab.run_on(held, "let the port go", &format!("kill {pid}"))?;

    let one = ["check", "--probe", "--only", "P201", "--node", held.as_str()];
    let (report, code) = document(&admin, &one)?;
    let ports = check(&report, "P201");
    assert_eq!((&ports["result"], code), (&Value::from("ok"), 0), "{ports:#}");
    assert_eq!(ports["nodes"].as_array().map(Vec::len), Some(1), "{ports:#}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    nodes_reach_each_other(&sandbox, lab, &admin).await?;
    nodes_pull_images(&sandbox, &admin).await?;

    // An image that no node can pull: each node says so, and nothing stays.
    let line = "check --probe --only P201 --probe-image registry.invalid/x:1 --probe-timeout 60s";
    let none: Vec<&str> = line.split(' ').collect();
    let (report, _) = document(&admin, &none)?;
    let ports = check(&report, "P201");
    assert_eq!(ports["result"], "uncertain", "{ports:#}");
    let said = of_node(ports, other).1;
    assert!(said.contains("Image") || said.contains("image"), "{said}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());
    Ok(())
}
