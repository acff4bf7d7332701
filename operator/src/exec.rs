//! Runs programs in the pods of members: what a service takes by its command line alone.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, AttachedProcess};
use opensdn_runtime::call::{Call, CallError, Verb};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// Most of what a program says that is read, in bytes; the rest is left.
const MOST_OUTPUT: u64 = 1 << 20;

/// Where programs of members are run.
pub trait Exec: Debug + Send + Sync {
    /// Runs a program in a container of the member with that address, without input. No argument may be a secret: the
    /// node shows it.
    fn run<'a>(
        &'a self,
        address: &'a str,
        container: &'a str,
        command: &'a [&'a str],
        limit: Duration,
    ) -> BoxFuture<'a, Result<Output, ExecError>>;
}

/// What a program came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// 0, where all went well.
    pub code: i32,
    /// What it said.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

/// What a program says, as far as a status or a log takes it: Java's traces are long, and what an image says is not ours.
#[must_use]
pub fn brief(said: &str) -> String {
    said.trim().chars().take(300).collect()
}

/// Why it is not known what a program came to. It may have run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExecError {
    #[error("no pod runs at {0}")]
    NoPod(String),
    #[error(transparent)]
    Call(Box<CallError>),
    #[error("read what the program says")]
    Read(#[source] std::io::Error),
    #[error("the program has not ended within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the program was not run: {0}")]
    NotRun(String),
}

/// Where no pod runs: for a service that is asked by its own protocol alone.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Exec for Nowhere {
    fn run<'a>(
        &'a self,
        address: &'a str,
        _: &'a str,
        _: &'a [&'a str],
        _: Duration,
    ) -> BoxFuture<'a, Result<Output, ExecError>> {
        std::future::ready(Err(ExecError::NoPod(address.to_owned()))).boxed()
    }
}

/// In pods, by the API server.
#[derive(Clone)]
pub struct InPods {
    api: Api<Pod>,
    pods: BTreeMap<String, String>,
}

impl Debug for InPods {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("InPods").field("pods", &self.pods).finish_non_exhaustive()
    }
}

impl InPods {
    /// With the names of pods by their addresses.
    #[must_use]
    pub fn new(client: kube::Client, namespace: &str, pods: BTreeMap<String, String>) -> Self {
        Self { api: Api::namespaced(client, namespace), pods }
    }

    async fn run_in_pod(
        &self,
        address: &str,
        container: &str,
        command: &[&str],
        limit: Duration,
    ) -> Result<Output, ExecError> {
        let pod = self.pods.get(address).ok_or_else(|| ExecError::NoPod(address.to_owned()))?;
        let attach =
            AttachParams::default().container(container).stdin(false).stdout(true).stderr(true);
        let call = Call::new(Verb::Create, "pods/exec").name(pod.clone());
        let started = self.api.exec(pod, command.iter().copied(), &attach);
        let process = call.run(started).await.map_err(|error| ExecError::Call(Box::new(error)))?;
        timeout(limit, output(process)).await.map_err(|_| ExecError::Timeout(limit))?
    }
}

impl Exec for InPods {
    fn run<'a>(
        &'a self,
        address: &'a str,
        container: &'a str,
        command: &'a [&'a str],
        limit: Duration,
    ) -> BoxFuture<'a, Result<Output, ExecError>> {
        self.run_in_pod(address, container, command, limit).boxed()
    }
}

async fn output(mut process: AttachedProcess) -> Result<Output, ExecError> {
    let (out, err) = (process.stdout(), process.stderr());
    let status = process.take_status();
    let (stdout, stderr) = tokio::join!(read(out), read(err));
    let (stdout, stderr) = (stdout.map_err(ExecError::Read)?, stderr.map_err(ExecError::Read)?);
    let status = match status {
        Some(status) => status.await,
        None => None,
    };
    let Some(status) = status else {
        return Err(ExecError::NotRun("the connection was lost".to_owned()));
    };
    if status.status.as_deref() == Some("Success") {
        return Ok(Output { code: 0, stdout, stderr });
    }
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let code = causes.into_iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    match code.and_then(|cause| cause.message?.parse().ok()) {
        Some(code) => Ok(Output { code, stdout, stderr }),
        None => Err(ExecError::NotRun(status.message.unwrap_or_default())),
    }
}

/// The other end must not wait for us, so all is read, and the rest thrown away.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(stream) = stream else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    let mut first = stream.take(MOST_OUTPUT);
    first.read_to_end(&mut bytes).await?;
    tokio::io::copy(&mut first.into_inner(), &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
