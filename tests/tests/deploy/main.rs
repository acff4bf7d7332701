//! `deploy/webhook` in a real API server: the base is taken, the rights in it are those in use,
//! and it can be taken out again when no webhook lives. Deliberately not here: whether the
//! Deployment's pods run, which needs nodes.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

mod kustomize;
mod removal;
mod rights;

use std::error::Error;
use std::future::Future;
use std::process::Output;
use std::time::Duration;

use opensdn_tests::sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

type Failed = Box<dyn Error + Send + Sync>;
type Outcome = Result<(), Failed>;

const WEBHOOK: &str = env!("CARGO_BIN_EXE_webhook-of-tests");
const PATIENCE: Duration = Duration::from_secs(60);
/// As whom the webhook is known to the API server.
const ACCOUNT: &str = "system:serviceaccount:opensdn-system:opensdn-webhook";

/// What kubectl said.
struct Said {
    ok: bool,
    out: String,
    err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { ok: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    #[track_caller]
    fn success(&self) -> &str {
        assert!(self.ok, "kubectl failed: {}", self.err);
        &self.out
    }

    /// Refused, with all of these in the reason.
    #[track_caller]
    fn refused(&self, parts: &[&str]) {
        assert!(!self.ok, "must be refused, but kubectl said: {}", self.out);
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing in: {}", self.err);
        }
    }
}

async fn kubectl(sandbox: &Sandbox, arguments: &[&str]) -> Result<Said, Failed> {
    Ok(Said::of(&sandbox.kubectl(arguments).await?))
}

/// `kubectl <arguments> -f -` with the object as input.
async fn send(sandbox: &Sandbox, arguments: &[&str], object: &Value) -> Result<Said, Failed> {
    let arguments = [arguments, &["-f", "-"]].concat();
    let input = object.to_string();
    Ok(Said::of(&sandbox.kubectl_with_input(&arguments, &input).await?))
}

async fn read(sandbox: &Sandbox, arguments: &[&str]) -> Result<Value, Failed> {
    let arguments = [&["get", "-o", "json"], arguments].concat();
    Ok(serde_json::from_str(kubectl(sandbox, &arguments).await?.success())?)
}

fn service(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"ip": ip, "port": 80, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
    })
}

/// Waits until it is so.
async fn eventually<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) {
    let so = async {
        while !is().await {
            sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(timeout(PATIENCE, so).await.is_ok(), "not within {PATIENCE:?}: {what}");
}
