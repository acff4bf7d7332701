//! What the operator hears of daemons by introspect, on a real control plane: pods are simulated, and their agents are
//! servers of this machine with the certificates that the operator has made for them. What pages say is tested in the
//! operator, what `status` makes of it in the plugin, and what an upgrade does in `lib/upgrade`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::written_cluster::manager;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::operator::LABEL;
use crate::operator_upgrade::WHOLE;
use crate::plugin_status::{document, plugin};

const MANAGER: [&str; 3] = ["managers.tf.tungsten.io", "-n=tf", "cluster1"];
const DOWN: &str = "XMPP:control-node:10.0.0.1 connection down";

/// An agent as it speaks of itself; what it says can be changed.
struct Agent(Arc<Mutex<&'static str>>);

impl Agent {
    /// At that address, with the certificate of its pod.
    async fn start(
        sandbox: &Sandbox,
        address: &str,
        port: u16,
        state: &'static str,
    ) -> Result<Self, Failed> {
        let secret = read(sandbox, &["secret", "-n=tf", "vrouter1-secret-certificates"]).await?;
        let part = |key: String| -> Result<Vec<u8>, Failed> {
            let text = secret["data"][&key].as_str().ok_or(format!("there is no {key}"))?;
            Ok(STANDARD.decode(text)?)
        };
        let certificates = part(format!("server-{address}.crt"))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificates).collect();
        let key = PrivateKeyDer::from_pem_slice(&part(format!("server-key-{address}.pem"))?)?;
        let config = ServerConfig::builder_with_provider(opensdn_pki::crypto_provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain?, key)?;
        let (acceptor, state) = (TlsAcceptor::from(Arc::new(config)), Arc::new(Mutex::new(state)));
        let listener = TcpListener::bind((address, port)).await?;
        let said = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let page = page(*said.lock().unwrap_or_else(PoisonError::into_inner));
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut asked = vec![0; 8192];
                    let read = stream.read(&mut asked).await.unwrap_or_default();
                    let is_asked =
                        asked[..read].starts_with(b"GET /Snh_SandeshUVECacheReq?x=NodeStatus ");
                    let status = if is_asked { "200 OK" } else { "404 Not Found" };
                    let length = page.len();
                    let answer =
                        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{page}");
                    // The operator may have gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Ok(Self(state))
    }

    fn becomes(&self, state: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

fn page(state: &str) -> String {
    let (session, why) = if state == "Functional" { ("Up", "") } else { ("Down", DOWN) };
    format!(
        "<NodeStatusUVE><data><NodeStatus><process_status><list><ProcessStatus>\
         <module_id>contrail-vrouter-agent</module_id><state>{state}</state><connection_infos><list>\
         <ConnectionInfo><type>XMPP</type><name>control-node:10.0.0.1</name><status>{session}</status></ConnectionInfo>\
         </list></connection_infos><description>{why}</description></ProcessStatus></list></process_status>\
         </NodeStatus></data></NodeStatusUVE>"
    )
}

async fn introspect(sandbox: &Sandbox) -> Value {
    let manager = read(sandbox, &MANAGER).await.unwrap_or_default();
    let mut services = manager["status"]["services"].as_array().into_iter().flatten();
    let vrouters = services.find(|one| one["kind"] == "Vrouter");
    vrouters.unwrap_or(&Value::Null)["introspect"].clone()
}

/// A group of vrouters whose pods are on this machine: their names, in the order of their addresses.
async fn running(sandbox: &Sandbox, port: u16) -> Result<Vec<String>, Failed> {
    kubectl(sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    // What a group of vrouters waits for.
    let mut manager =
        manager(&["Cassandra", "Config", "Control", "Rabbitmq", "Vrouter", "Zookeeper"]);
    manager["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]["envVariablesConfig"] =
        json!({"VROUTER_AGENT_INTROSPECT_PORT": port.to_string()});
    send(sandbox, &["create"], &manager).await?.success();
    let pods = ["pods", "-n=tf", "-l=tf_manager=vrouter"];
    let all_ready = async || {
        let pods = read(sandbox, &pods).await.unwrap_or_default();
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        pods.len() == 3 && pods.iter().all(|pod| pod["status"]["phase"] == "Running")
    };
    eventually("the pods of the vrouters run", all_ready).await;
    let pods = read(sandbox, &pods).await?;
    let items = pods["items"].as_array().into_iter().flatten();
    let mut names: Vec<String> =
        items.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect();
    names.sort_unstable();
    for (name, number) in names.iter().zip(1..) {
        let address = format!("127.0.79.{number}");
        let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}}).to_string();
        let patch =
            ["patch", "pod", "-n=tf", name, "--subresource=status", "--type=merge", "-p", &status];
        kubectl(sandbox, &patch).await?.success();
    }
    let has_certificates = async || {
        let secret = ["secret", "-n=tf", "vrouter1-secret-certificates"];
        let data = read(sandbox, &secret).await.unwrap_or_default()["data"].clone();
        (1..=3).all(|number| data.get(format!("server-127.0.79.{number}.crt")).is_some())
    };
    eventually("there are certificates for the addresses", has_certificates).await;
    Ok(names)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_a_control_node_is_in_the_status_though_its_pod_is_ready() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let operator = Operator::install_asking_daemons(&sandbox).await?;
    // One that is free at an address of this test's is free at its others.
    let port = TcpListener::bind("127.0.79.9:0").await?;
    let number = port.local_addr()?.port();
    let pods = running(&sandbox, number).await?;
    let _first = Agent::start(&sandbox, "127.0.79.1", number, "Functional").await?;
    let second = Agent::start(&sandbox, "127.0.79.2", number, "Non-Functional").await?;
    let bad = json!([
        {"pod": pods[1], "container": "vrouteragent", "state": "initializing", "message": DOWN},
        {"pod": pods[2], "container": "vrouteragent", "state": "initializing",
            "message": "does not listen for introspect yet"}]);
    let is_said = async || {
        let mut said = introspect(&sandbox).await;
        for one in said["notActive"].as_array_mut().into_iter().flatten() {
            one.as_object_mut().map(|one| one.remove("node"));
        }
        // They are listed by their nodes.
        let has = |one: &Value| said["notActive"].as_array().is_some_and(|all| all.contains(one));
        said["functional"] == 1
            && said["daemons"] == 3
            && said["xmpp"] == json!({"up": 1, "all": 3})
            && bad.as_array().is_some_and(|bad| bad.iter().all(has))
    };
    eventually("two agents are said not to work", is_said).await;

    let (report, code) = document(&sandbox.kubeconfig(), &["status"])?;
    assert_eq!((&report["state"], code), (&json!("degraded"), 1), "{report:#}");
    assert_eq!(report["xmpp"], json!({"ready": 1, "wanted": 3}));
    let mut causes = report["causes"].as_array().into_iter().flatten();
    let cause = causes.find(|one| one["kind"] == "Vrouter").ok_or("it is no cause")?;
    assert!(
        cause["message"].as_str().is_some_and(|text| text.contains("vrouteragent: ")),
        "{cause}"
    );
    let text = plugin(&sandbox.kubeconfig(), &["status", "--depth", "2"])?;
    let text = String::from_utf8(text.stdout)?;
    assert!(text.contains("xmpp 1/3") && text.contains(DOWN), "{text}");
    // A command is one line, however long.
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("kubectl "));
    assert!(lines.all(|line| line.chars().count() <= 80), "{text}");

    let _third = Agent::start(&sandbox, "127.0.79.3", number, "Functional").await?;
    second.becomes("Functional");
    let all = json!({"functional": 3, "daemons": 3, "xmpp": {"up": 3, "all": 3},
        "xmppSessions": {"up": 3, "all": 3}});
    eventually("all agents work", async || introspect(&sandbox).await == all).await;

    // Who leads next takes nothing back before it has asked itself.
    let before = read(&sandbox, &MANAGER).await?["metadata"]["resourceVersion"].clone();
    operator.stop(0).await;
    second.becomes("Non-Functional");
    operator.start(0)?;
    let said = async || {
        let now = introspect(&sandbox).await;
        assert!(
            now == all || now["xmpp"] == json!({"up": 2, "all": 3}),
            "it takes back what it has not asked: {now}"
        );
        now != all
    };
    eventually("the next one has asked", said).await;
    assert_ne!(read(&sandbox, &MANAGER).await?["metadata"]["resourceVersion"], before);
    Ok(())
}

/// What the Upgrade says of itself.
async fn upgrade(sandbox: &Sandbox) -> Value {
    let upgrade = ["upgrades.opensdn.io", "-n=tf", "up"];
    read(sandbox, &upgrade).await.unwrap_or_default()["status"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_waits_behind_a_wave_for_an_agent_that_has_lost_its_control_node() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let _operator = Operator::install_asking_daemons(&sandbox).await?;
    let port = TcpListener::bind("127.0.79.8:0").await?.local_addr()?.port();
    running(&sandbox, port).await?;
    let mut agents = Vec::new();
    for number in 1..=3 {
        let address = format!("127.0.79.{number}");
        agents.push(Agent::start(&sandbox, &address, port, "Functional").await?);
    }
    let all_work = async || introspect(&sandbox).await["xmpp"] == json!({"up": 3, "all": 3});
    eventually("all agents work", all_work).await;
    let is_ready = async || {
        let manager = read(&sandbox, &MANAGER).await.unwrap_or_default();
        let mut all = manager["status"]["conditions"].as_array().into_iter().flatten();
        all.any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    eventually_within(WHOLE, "the Manager is Ready", is_ready).await;

    let spec = json!({"manager": "cluster1", "soak": "1s", "waveTimeout": "10m", "prePull": false,
        "images": [{"container": "zookeeper", "image": "registry.example.com/contrail-external-zookeeper:R24.2"}]});
    let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "up", "namespace": "tf"}, "spec": spec});
    send(&sandbox, &["create"], &object).await?.success();
    let begins = async || upgrade(&sandbox).await["phase"] == "Running";
    eventually("it begins", begins).await;
    agents[1].becomes("Non-Functional");
    let of_vrouter = |status: &Value| {
        let mut all = status["snapshot"].as_array().into_iter().flatten();
        all.find(|one| one["service"] == "Vrouter/vrouter1").cloned()
    };
    let before = of_vrouter(&upgrade(&sandbox).await).ok_or("it is not in the snapshot")?;
    assert_eq!(before["xmpp"], json!({"up": 3, "all": 3}), "{before}");
    let why = "Vrouter/vrouter1: 2 of 3 agents with a control node, 3 before (xmpp-as-before)";
    let waits = async || {
        let status = upgrade(&sandbox).await;
        assert_ne!(status["phase"], "Succeeded", "{status:#}");
        status["message"].as_str().is_some_and(|message| message.contains(why))
    };
    eventually_within(WHOLE, "its gate is shut", waits).await;
    agents[1].becomes("Functional");
    let is_over = async || upgrade(&sandbox).await["phase"] == "Succeeded";
    eventually_within(WHOLE, "it succeeds", is_over).await;
    let gate = upgrade(&sandbox).await["waves"][0]["gate"].clone();
    let mut checks = gate.as_array().into_iter().flatten();
    let xmpp = checks.find(|check| check["name"] == "xmpp-as-before").ok_or("no such check")?;
    let said = "Vrouter/vrouter1: 3 of 3 agents with a control node, 3 before";
    assert_eq!((&xmpp["passed"], &xmpp["message"]), (&json!(true), &json!(said)));
    Ok(())
}
