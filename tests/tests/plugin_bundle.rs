//! `kubectl opensdn support-bundle` of a real API server with secrets planted in objects of every sort.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::process::Command;

use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_logs::{kubelet, log, pods};
use crate::plugin_status::{document, plugin};

const SECRET: &str = "hunter2-hunter2";

/// Objects with the secret in each place where people and programs put one.
async fn plant(sandbox: &Sandbox) -> Outcome {
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    kubectl(sandbox, &["create", "namespace", "tf"]).await?.success();
    kubectl(sandbox, &["create", "serviceaccount", "default", "-n", "tf"]).await?.success();
    let named = |name: &str| json!({"name": name, "namespace": "tf", "annotations": {"example.io/login": format!("password={SECRET}")}});
    let tf = |kind: &str, spec: Value| json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": kind, "metadata": named("x"), "spec": spec});
    let files = format!(
        "[rabbit]\nrabbit_password = {SECRET}\n---\nadminPassword: {SECRET}\nurl: amqp://guest:{SECRET}@host:5673/\n\
         export KEYSTONE_AUTH_ADMIN_PASSWORD={SECRET}\nkey \"rndc-key\" {{ secret \"{SECRET}\"; }};\n\
         {{\"token\": \"{SECRET}\"}}\nAuthorization: Bearer {SECRET}\n\
         -----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----\n"
    );
    let container = json!({"name": "c", "image": "i", "args": ["--password", SECRET, format!("--token={SECRET}")],
        "command": ["sh", "-c", format!("export DB_PASSWORD='{SECRET}'; run")],
        "env": [{"name": "MYSQL_ROOT_PASSWORD", "value": SECRET}, {"name": "URL", "value": format!("http://u:{SECRET}@h/")}]});
    let pod = json!({"containers": [container], "serviceAccountName": "default", "automountServiceAccountToken": false});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let core = |kind: &str, more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": named("x")});
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    };
    let apps = |kind: &str, more: Value| json!({"apiVersion": "apps/v1", "kind": kind, "metadata": named("x"), "spec": more});
    for object in [
        core("Secret", json!({"stringData": {"plain": SECRET, "user": SECRET}})),
        core(
            "ConfigMap",
            json!({"data": {"files": files}, "binaryData": {"blob": "aHVudGVyMi1odW50ZXIy"}}),
        ),
        core("Pod", json!({"spec": pod})),
        core("Service", json!({"spec": {"ports": [{"port": 80}]}})),
        apps("Deployment", json!({"selector": selector, "template": template})),
        apps(
            "StatefulSet",
            json!({"serviceName": "x", "selector": selector, "template": template}),
        ),
        apps("DaemonSet", json!({"selector": selector, "template": template})),
        tf(
            "Rabbitmq",
            json!({"serviceConfiguration": {"password": SECRET, "erlangCookie": SECRET}}),
        ),
        tf(
            "Vrouter",
            json!({"serviceConfiguration": {"k8sToken": SECRET, "barbicanPassword": SECRET, "metadataProxySecret": SECRET,
            "vrouterDecryptKey": SECRET, "keystoneAuthAdminPassword": SECRET, "envVariablesConfig": {"A_PASSWORD": SECRET}}}),
        ),
        tf(
            "Manager",
            json!({"commonConfiguration": {"authParameters": {"keystoneAuthParameters": {"adminPassword": SECRET}}}}),
        ),
    ] {
        // As people do it: the whole object is in an annotation again.
        send(sandbox, &["create", "--save-config"], &object).await?.success();
    }
    Ok(())
}

fn untar(archive: &std::path::Path, folder: &std::path::Path) -> Result<String, Failed> {
    let output = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new("tar").arg("-xzOf").arg(archive).output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// What daemons and kernels have written, with a secret in each form.
fn written() -> String {
    format!(
        "2026-11-25T00:00:01Z connecting to amqp://guest:{SECRET}@host:5673/\n2026-11-25T00:00:02Z login with password={SECRET} of bob\n\
         2026-11-25T00:00:03Z {{\"token\": \"{SECRET}\"}}\n2026-11-25T00:00:04Z Authorization: Bearer {SECRET}\n\
         2026-11-25T00:00:05Z -----BEGIN PRIVATE KEY-----\n2026-11-25T00:00:05Z {SECRET}\n2026-11-25T00:00:05Z -----END PRIVATE KEY-----\n\
         2026-11-25T00:00:06Z argv: --admin-password {SECRET} --x\n2026-11-25T00:00:07Z X-Auth-Token: {SECRET}\n2026-11-25T00:00:08Z all is well\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_that_was_planted_anywhere_is_in_the_bundle() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    plant(&sandbox).await?;
    let written = written();
    let logs = log(&[("redis-w1/redis", &written), ("redis-w1/stunnel", &written)]);
    pods(&sandbox, kubelet(&sandbox, logs).await?, &["w1"]).await?;
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("a.tar.gz");
    let out = archive.display().to_string();
    // The API server proxies to no kubelet at loopback, by which files of nodes and words of kernels are read.
    let flags = ["support-bundle", "--no-files", "--out", &out];
    let (report, code) = document(&sandbox.kubeconfig(), &flags)?;
    assert_eq!((code, &report["failed"]), (0, &json!([])), "{report:#}");
    let text = untar(&archive, folder.path())?;
    for secret in [SECRET, "aHVudGVyMi1odW50ZXIy"] {
        let at = text.find(secret);
        let around = at.map(|at| {
            text.get(at.saturating_sub(300)..(at + 50).min(text.len())).unwrap_or_default()
        });
        assert_eq!(around, None);
    }
    // What is no secret is there.
    for kept in [
        "all is well",
        "rabbit_password = <redacted>",
        "\"erlangCookie\": \"<redacted>\"",
        "MYSQL_ROOT_PASSWORD",
    ] {
        assert!(text.contains(kept), "{kept} is missing");
    }
    let files = report["files"].as_array().cloned().unwrap_or_default();
    let has = |path: &str| {
        files.iter().any(|file| {
            file["path"] == path && file["sha256"].as_str().is_some_and(|sum| sum.len() == 64)
        })
    };
    for path in [
        "status.json",
        "check.json",
        "namespaces/tf/secrets.json",
        "opensdn/rabbitmqs.json",
        "cluster/nodes.json",
        "logs/tf/redis-w1/redis.log",
    ] {
        assert!(has(path), "{path}: {files:#?}");
    }
    // A file that is there is not written over.
    assert_eq!(
        plugin(&sandbox.kubeconfig(), &["support-bundle", "--out", &out])?.status.code(),
        Some(2)
    );

    // With few rights there is an archive too, and its manifest says what is missing.
    let bob = sandbox.kubeconfig_for(&User::new("bob"))?;
    let archive = folder.path().join("b.tar.gz");
    let output = plugin(&bob, &["support-bundle", "--out", &archive.display().to_string()])?;
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = untar(&archive, folder.path())?;
    assert!(text.contains("\"failed\": [") && text.contains("secrets is forbidden"), "{text}");
    let plan = plugin(&bob, &["support-bundle", "--dry-run"])?;
    assert!(String::from_utf8(plan.stdout)?.contains("/api/v1/namespaces/tf/pods\n"));
    Ok(())
}
