//! A cluster as those see it who use it: clients, kubeconfigs, kubectl. It may be of a sandbox that
//! this process started, or of one that another process keeps. Deliberately not here: the programs
//! that it consists of (`Sandbox`).

use std::path::{Path, PathBuf};
use std::process::Output;
use std::{fs, io};

use kube::Client;
use serde_json::Value;

use super::access::{Access, AccessError, User};
use super::binaries::{Binaries, BinariesError};
use super::kubectl::{self, KubectlError};

/// Why a running sandbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Its keys, or its kubeconfig, cannot be read.
    #[error("use the sandbox of {}; start it with `opensdn-sandbox up --dir {}`", folder.display(), folder.display())]
    Folder {
        /// The folder that was given.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: AccessError,
    },
    /// kubectl is not there.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
}

/// A cluster and what speaks to it.
pub struct Cluster {
    access: Access,
    binaries: Binaries,
    folder: PathBuf,
    has_crds: bool,
}

impl Cluster {
    pub(super) fn new(access: Access, binaries: Binaries, folder: &Path, has_crds: bool) -> Self {
        Self { access, binaries, folder: folder.to_owned(), has_crds }
    }

    /// The cluster of a sandbox that `opensdn-sandbox up --dir DIR` has started.
    ///
    /// # Errors
    /// There is none in that folder.
    pub async fn attach(dir: &Path) -> Result<Self, AttachError> {
        let folder = dir.join("data");
        let access = Access::of_running(&folder)
            .map_err(|source| AttachError::Folder { folder: dir.to_owned(), source })?;
        Ok(Self { access, binaries: Binaries::find(None).await?, folder, has_crds: false })
    }

    /// Whether it has served our CRDs from the start.
    pub(crate) fn has_crds(&self) -> bool {
        self.has_crds
    }

    pub(super) fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// A client of the cluster's administrator, for the runtime that calls.
    ///
    /// # Errors
    /// When the client library refuses its configuration.
    pub fn client(&self) -> Result<Client, AccessError> {
        self.access.client()
    }

    /// A client of that user, by a client certificate; of a user in several groups by
    /// impersonation, which the audit log then shows as `impersonatedUser`.
    ///
    /// # Errors
    /// When no certificate or client can be made.
    pub fn client_for(&self, user: &User) -> Result<Client, AccessError> {
        self.access.client_for(user)
    }

    /// A client of a service account, by a token that the API server gave.
    ///
    /// # Errors
    /// When the account does not exist.
    pub async fn client_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Client, AccessError> {
        self.access.client_for_service_account(namespace, name).await
    }

    /// The administrator's kubeconfig file.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.access.admin_kubeconfig()
    }

    /// A kubeconfig file of that user.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn kubeconfig_for(&self, user: &User) -> Result<PathBuf, AccessError> {
        self.access.kubeconfig_for(user)
    }

    /// A certificate and its key (PEM) for a kubelet on this machine, which the API server trusts.
    ///
    /// # Errors
    /// When none can be made.
    pub fn kubelet_certificate(&self) -> Result<(String, String), AccessError> {
        let made = self.access.authority().server("kubelet", &["127.0.0.1"])?;
        Ok((made.certificate, made.key))
    }

    /// A kubeconfig file of a service account.
    ///
    /// # Errors
    /// When the account does not exist.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf, AccessError> {
        self.access.kubeconfig_for_service_account(namespace, name).await
    }

    /// Runs the real kubectl of this version as the administrator.
    ///
    /// # Errors
    /// When it cannot be run; what it answers is in the output, its exit code too.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<Output, KubectlError> {
        self.kubectl_with_input(arguments, "").await
    }

    /// Runs kubectl with that standard input, for `apply -f -`.
    ///
    /// # Errors
    /// As [`Cluster::kubectl`].
    pub async fn kubectl_with_input(
        &self,
        arguments: &[&str],
        input: &str,
    ) -> Result<Output, KubectlError> {
        let command = self.kubectl_command(&self.kubeconfig())?;
        kubectl::run(command, arguments, input).await
    }

    /// kubectl as anyone, to be given arguments and run by the caller: nothing of the
    /// caller's environment reaches it, and its caches stay in the sandbox.
    ///
    /// # Errors
    /// When kubectl is not among the programs.
    pub fn kubectl_command(
        &self,
        kubeconfig: &Path,
    ) -> Result<tokio::process::Command, KubectlError> {
        let path = self.binaries.program("kubectl")?;
        Ok(kubectl::command(&path, kubeconfig, &self.folder))
    }

    /// Where kubectl of this version is.
    ///
    /// # Errors
    /// When it is not among the programs.
    pub fn kubectl_path(&self) -> Result<PathBuf, BinariesError> {
        self.binaries.program("kubectl")
    }

    /// Where the API server listens: `https://127.0.0.1:PORT`. It stays the same through
    /// restarts.
    #[must_use]
    pub fn api_server_url(&self) -> &str {
        self.access.url()
    }

    /// The certificate of the authority that the API server's certificate is from.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.access.ca_pem()
    }

    /// The audit log, one JSON object per line. A request is in it before it is answered.
    /// Requests to our own API groups are recorded whole, others without their bodies.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// What a user has asked of the API server so far: the events of the audit log, but for a last one that it is still
    /// writing.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn requests_of(&self, user: &str) -> io::Result<Vec<Value>> {
        let log = fs::read_to_string(self.audit_log())?;
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_of_user =
            |event: &Value| event.pointer("/user/username").and_then(Value::as_str) == Some(user);
        Ok(events.filter(is_of_user).collect())
    }

    /// The folder with data, keys, and the logs of the programs in `logs/`.
    #[must_use]
    pub fn data_folder(&self) -> &Path {
        &self.folder
    }
}
