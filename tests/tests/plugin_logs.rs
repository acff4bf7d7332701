//! `kubectl opensdn logs`, and the logs of a support bundle, of a real API server that asks a kubelet of ours for them.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::plugin_status::plugin;

/// What containers have written, by `pod/container`.
type Logs = BTreeMap<String, String>;

/// A kubelet that knows nothing but logs; its port.
pub(crate) async fn kubelet(sandbox: &Sandbox, logs: Logs) -> Result<u16, Failed> {
    let (certificate, key) = sandbox.kubelet_certificate()?;
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(opensdn_pki::crypto_provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let (acceptor, logs) = (TlsAcceptor::from(Arc::new(config)), Arc::new(logs));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, logs) = (acceptor.clone(), logs.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut asked = vec![0; 8192];
                let read = stream.read(&mut asked).await.unwrap_or_default();
                let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
                // GET /containerLogs/NAMESPACE/POD/CONTAINER?…
                let path = asked.split(['?', ' ']).nth(1).unwrap_or_default();
                let key = path.trim_start_matches("/containerLogs/tf/");
                let answer = match logs.get(key) {
                    Some(log) => format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{log}",
                        log.len()
                    ),
                    None => {
                        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                            .to_owned()
                    }
                };
                // The API server may have gone.
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    Ok(port)
}

/// Nodes whose kubelet that is, each with a pod of the Redis.
pub(crate) async fn pods(sandbox: &Sandbox, port: u16, nodes: &[&str]) -> Outcome {
    for node in nodes {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
        send(sandbox, &["create"], &object).await?.success();
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        patch(sandbox, &["node", node], &status).await?;
        pod(sandbox, "tf", node).await?;
    }
    Ok(())
}

/// A pod of the Redis, whose containers run.
async fn pod(sandbox: &Sandbox, namespace: &str, node: &str) -> Outcome {
    let name = format!("redis-{node}");
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"tf_manager": "redis", "redis": "redis1"}},
            "spec": {"nodeName": node, "serviceAccountName": "default", "automountServiceAccountToken": false,
                "containers": [{"name": "redis", "image": "i"}, {"name": "stunnel", "image": "i"}]}});
    send(sandbox, &["create"], &pod).await?.success();
    let container = |name: &str| json!({"name": name, "image": "i", "imageID": "i", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [container("redis"), container("stunnel")]}});
    patch(sandbox, &["pod", &name, "-n", namespace], &status).await?;
    Ok(())
}

async fn patch(sandbox: &Sandbox, what: &[&str], status: &Value) -> Outcome {
    let patch =
        [&["patch"], what, &["--subresource=status", "--type=merge", "-p", &status.to_string()]];
    kubectl(sandbox, &patch.concat()).await?.success();
    Ok(())
}

pub(crate) fn log(pairs: &[(&str, &str)]) -> Logs {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_of_all_nodes_are_one_and_what_may_not_be_read_is_named() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    kubectl(&sandbox, &["create", "serviceaccount", "default", "-n", "tf"]).await?.success();
    let logs = log(&[
        (
            "redis-w1/redis",
            "2026-11-25T00:00:01Z INFO one\n2026-11-25T00:00:04Z ERROR four\u{1b}[2J\n2026-11-25T00:00:05Z  of four\n",
        ),
        ("redis-w1/stunnel", ""),
        ("redis-w2/redis", "2026-11-25T00:00:02.5Z WARN two\n2026-11-25T00:00:03Z INFO three\n"),
    ]);
    pods(&sandbox, kubelet(&sandbox, logs).await?, &["w1", "w2"]).await?;
    // A tenant's, with the label; it would be read as another of the Redis.
    kubectl(&sandbox, &["create", "namespace", "other"]).await?.success();
    kubectl(&sandbox, &["create", "serviceaccount", "default", "-n", "other"]).await?.success();
    pod(&sandbox, "other", "w1").await?;
    let kubeconfig = sandbox.kubeconfig();
    let lines = |arguments: &[&str]| -> Result<(Vec<String>, Option<i32>), Failed> {
        let output = plugin(&kubeconfig, &[&["logs"], arguments].concat())?;
        let text = String::from_utf8(output.stdout)?;
        assert!(!text.contains('\u{1b}'), "{text:?}");
        Ok((text.lines().map(str::to_owned).collect(), output.status.code()))
    };
    let (all, code) = lines(&["redis", "--container", "redis"])?;
    let expected = [
        "w1  redis  2026-11-25T00:00:01.000Z  INFO one",
        "w2  redis  2026-11-25T00:00:02.500Z  WARN two",
        "w2  redis  2026-11-25T00:00:03.000Z  INFO three",
        "w1  redis  2026-11-25T00:00:04.000Z  ERROR four\u{241b}[2J",
        "w1  redis  2026-11-25T00:00:05.000Z   of four",
    ];
    assert_eq!((all.as_slice(), code), (&expected.map(str::to_owned)[..], Some(0)));
    let (grave, _) = lines(&["--node", "w1", "--level", "warning", "--container", "redis", "-f"])?;
    assert_eq!(grave, expected[3..]);
    // The kubelet has no such log: the others are shown.
    let output = plugin(&kubeconfig, &["logs", "redis"])?;
    let said = String::from_utf8(output.stderr)?;
    assert!(
        output.status.code() == Some(1) && said.contains("not read: w2 redis-w2 stunnel: "),
        "{said}"
    );
    let (none, code) = lines(&["cassandra"])?;
    assert_eq!((none.len(), code), (0, Some(3)));
    let (none, code) = lines(&["no-such-thing"])?;
    assert_eq!((none.len(), code), (0, Some(2)));
    // Nodes and namespaces are completed by what the cluster has.
    let cluster = format!("--kubeconfig={}", kubeconfig.display());
    for (words, expected) in [
        (&["status", &cluster, "--node", "w"][..], "w1\nw2\n:4\n"),
        (&["logs", &cluster, "--node", "w2"], "w2\n:4\n"),
        (&["status", &cluster, "-n", "t"], "tf\n:4\n"),
        (&["logs", &cluster, "oper"], "operator\n:4\n"),
        (&["status", "--kubeconfig=/dev/null", "--node", "w"], ":4\n"),
    ] {
        let mut command = Command::new(program("kubectl-opensdn")?);
        let output = command.env_clear().arg("__complete").args(words).output()?;
        assert_eq!(String::from_utf8(output.stdout)?, expected, "{words:?}");
    }
    let bob = sandbox.kubeconfig_for(&User::new("bob"))?;
    let output = plugin(&bob, &["logs", "redis"])?;
    let said = String::from_utf8(output.stderr)?;
    assert!(output.status.code() == Some(3) && said.contains("pods may not be listed"), "{said}");
    Ok(())
}

/// That they are read, of real kubelets, is in `lab_short`: an API server asks no node of this machine for more than logs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_node_that_may_not_be_asked_for_are_named_with_the_reason() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    kubectl(&sandbox, &["create", "serviceaccount", "default", "-n", "tf"]).await?.success();
    let run = |kubeconfig: &std::path::Path, arguments: &[&str]| -> Result<_, Failed> {
        let output = plugin(kubeconfig, arguments)?;
        Ok((String::from_utf8(output.stderr)?, output.status.code()))
    };
    let kubeconfig = sandbox.kubeconfig();
    let (said, code) = run(&kubeconfig, &["logs", "--files"])?;
    assert!(said.contains("has a folder for files") && code == Some(3), "{said}");
    let empty = log(&[("redis-w1/redis", ""), ("redis-w1/stunnel", "")]);
    pods(&sandbox, kubelet(&sandbox, empty).await?, &["w1"]).await?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "config", "namespace": "tf", "labels": {"tf_manager": "config"}},
        "spec": {"nodeName": "w1", "serviceAccountName": "default", "automountServiceAccountToken": false,
            "containers": [{"name": "api", "image": "i"}],
            "volumes": [{"name": "contrail-logs", "hostPath": {"path": "/var/log/contrail/config"}}]}});
    send(&sandbox, &["create"], &pod).await?.success();

    let (said, code) = run(&kubeconfig, &["logs", "config", "--files"])?;
    let named = "not read: w1 /var/log/contrail/config: ";
    assert!(said.contains(&format!("{named}address not allowed")) && code == Some(3), "{said}");
    let bob = sandbox.kubeconfig_for(&User::new("bob"))?;
    let role = ["create", "clusterrole", "pods", "--verb=list", "--resource=pods"];
    kubectl(&sandbox, &role).await?.success();
    let bind = ["create", "clusterrolebinding", "bob", "--clusterrole=pods", "--user=bob"];
    kubectl(&sandbox, &bind).await?.success();
    let (said, code) = run(&bob, &["logs", "config", "--files"])?;
    assert!(said.contains(named) && said.contains("nodes/proxy") && code == Some(3), "{said}");
    assert_eq!(run(&kubeconfig, &["logs", "--files", "--follow"])?.1, Some(2));

    let folder = tempfile::tempdir()?;
    for (name, more, code) in [("a", None, 1), ("b", Some("--no-files"), 0)] {
        let archive = folder.path().join(format!("{name}.tar.gz")).display().to_string();
        let bundle = ["support-bundle", "--out", &archive];
        let (said, ended) = run(&kubeconfig, &[&bundle[..], more.as_slice()].concat())?;
        assert_eq!(ended, Some(code), "{said}");
        assert_eq!(said.contains("w1 /var/log/contrail/config"), code == 1, "{said}");
    }
    Ok(())
}
