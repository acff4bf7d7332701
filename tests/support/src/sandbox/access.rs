//! Clients of the sandbox's API server: for the administrator, any user, any service
//! account; as `kube::Client` and as kubeconfig file. Deliberately not here: rights, which a
//! test grants with RBAC objects as on any cluster.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::AuthInfo;
use kube::{Api, Client, Config};

use super::certificates::{Authority, CertificateError, Identity, write_private};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The certificate or the file could not be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The address of the API server is none.
    #[error("read the address {url}")]
    Address {
        /// The address.
        url: String,
        /// What the library said.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The client library refused the configuration.
    #[error("make a client for {name}")]
    Client {
        /// Whose access it is.
        name: String,
        /// What the kube library said.
        #[source]
        source: kube::Error,
    },
    /// A file of a running sandbox is not there.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
    /// The API server gave no token.
    #[error("get a token for service account {namespace}/{name}: create the account first")]
    Token {
        /// Namespace of the account.
        namespace: String,
        /// Name of the account.
        name: String,
        /// What the API server said.
        #[source]
        source: kube::Error,
    },
}

/// A user by name and groups, as Kubernetes' RBAC sees one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// What RBAC calls the user.
    pub name: String,
    /// What RBAC calls the user's groups; `system:authenticated` comes by itself.
    pub groups: Vec<String>,
}

impl User {
    /// A user in no group.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// The same user in one more group.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Who may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("kubernetes-admin").in_group("system:masters")
    }
}

/// How a client proves who it is.
enum Proof {
    Certificate(Identity),
    /// The administrator speaks for the user.
    Impersonation(Identity, User),
    Token(String),
}

/// Makes clients of one API server.
pub(super) struct Access {
    authority: Arc<Authority>,
    url: String,
    folder: PathBuf,
    admin: Proof,
    made: AtomicU32,
}

impl Access {
    /// For the API server on that port of the loopback interface; kubeconfigs go to `folder`.
    pub(super) fn new(
        authority: Arc<Authority>,
        port: u16,
        folder: &Path,
    ) -> Result<Self, AccessError> {
        let admin = prove(&authority, &User::admin())?;
        let access = Self {
            authority,
            url: format!("https://127.0.0.1:{port}"),
            folder: folder.to_owned(),
            admin,
            made: AtomicU32::new(0),
        };
        write_private(&access.admin_kubeconfig(), &access.kubeconfig(&access.admin))?;
        Ok(access)
    }

    /// For the API server of a running sandbox with this data folder.
    pub(super) fn of_running(folder: &Path) -> Result<Self, AccessError> {
        let read = |path: PathBuf| match fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(source) => Err(AccessError::Read { path, source }),
        };
        let authority = Authority::read(&folder.join("keys"))?;
        let kubeconfig = read(folder.join("kubeconfig"))?;
        let url = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: "));
        let admin = prove(&authority, &User::admin())?;
        Ok(Self {
            authority: Arc::new(authority),
            url: url.unwrap_or_default().to_owned(),
            folder: folder.to_owned(),
            admin,
            made: AtomicU32::new(0),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    pub(super) fn admin_kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// A client of the administrator. A new one each time: a client works only as long as
    /// the runtime that made it, and a sandbox may be shared by tests with one each.
    pub(super) fn client(&self) -> Result<Client, AccessError> {
        self.client_with("kubernetes-admin", &self.admin)
    }

    pub(super) fn client_for(&self, user: &User) -> Result<Client, AccessError> {
        self.client_with(&user.name, &prove(&self.authority, user)?)
    }

    pub(super) fn kubeconfig_for(&self, user: &User) -> Result<PathBuf, AccessError> {
        self.save(&prove(&self.authority, user)?)
    }

    /// A kubeconfig's text for a client that reaches the API server elsewhere.
    pub(super) fn kubeconfig_text(&self, user: &User, url: &str) -> Result<String, AccessError> {
        Ok(self.kubeconfig_at(&prove(&self.authority, user)?, url))
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) async fn client_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Client, AccessError> {
        self.client_with(name, &self.token(namespace, name).await?)
    }

    pub(super) async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf, AccessError> {
        self.save(&self.token(namespace, name).await?)
    }

    async fn token(&self, namespace: &str, name: &str) -> Result<Proof, AccessError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, namespace);
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..Default::default() };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .map_err(|source| AccessError::Token {
                namespace: namespace.into(),
                name: name.into(),
                source,
            })?;
        Ok(Proof::Token(answer.status.map(|status| status.token).unwrap_or_default()))
    }

    fn save(&self, proof: &Proof) -> Result<PathBuf, AccessError> {
        // A number, because a user's name may hold anything, a slash too.
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        // The process too: several may use one sandbox.
        let name = format!("{}-{number}.yaml", std::process::id());
        let path = self.folder.join("kubeconfigs").join(name);
        write_private(&path, &self.kubeconfig(proof))?;
        Ok(path)
    }

    fn client_with(&self, name: &str, proof: &Proof) -> Result<Client, AccessError> {
        let url = self
            .url
            .parse()
            .map_err(|source| AccessError::Address { url: self.url.clone(), source })?;
        // Neither from the environment nor from a file: a proxy of the caller must not see
        // loopback traffic.
        let mut config = Config::new(url);
        config.root_cert = Some(vec![self.authority.der()]);
        config.auth_info = proof.auth_info();
        // A test must see the API server's own answer, not that of a second try.
        config.default_retry = false;
        Client::try_from(config).map_err(|source| AccessError::Client { name: name.into(), source })
    }

    fn kubeconfig(&self, proof: &Proof) -> String {
        self.kubeconfig_at(proof, &self.url)
    }

    fn kubeconfig_at(&self, proof: &Proof, url: &str) -> String {
        let mut text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\n\
             contexts:\n- name: sandbox\n  context: {{cluster: sandbox, user: sandbox}}\n\
             clusters:\n- name: sandbox\n  cluster:\n    server: {}\n    \
             certificate-authority-data: {}\n\
             users:\n- name: sandbox\n  user:\n",
            url,
            encode(&self.ca_pem())
        );
        for (key, value) in proof.kubeconfig_lines() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "    {key}: {value}");
        }
        text
    }
}

fn prove(authority: &Authority, user: &User) -> Result<Proof, CertificateError> {
    Ok(match user.groups.as_slice() {
        [] => Proof::Certificate(authority.client(&user.name, None)?),
        [group] => Proof::Certificate(authority.client(&user.name, Some(group))?),
        _ => Proof::Impersonation(
            authority.client("kubernetes-admin", Some("system:masters"))?,
            user.clone(),
        ),
    })
}

impl Proof {
    fn auth_info(&self) -> AuthInfo {
        let mut info = AuthInfo::default();
        match self {
            Self::Token(token) => info.token = Some(token.clone().into()),
            Self::Certificate(identity) => identify(&mut info, identity),
            Self::Impersonation(identity, user) => {
                identify(&mut info, identity);
                info.impersonate = Some(user.name.clone());
                info.impersonate_groups = Some(user.groups.clone());
            }
        }
        info
    }

    fn kubeconfig_lines(&self) -> Vec<(&'static str, String)> {
        let certificate = |identity: &Identity| {
            vec![
                ("client-certificate-data", encode(&identity.certificate)),
                ("client-key-data", encode(&identity.key)),
            ]
        };
        match self {
            Self::Token(token) => vec![("token", token.clone())],
            Self::Certificate(identity) => certificate(identity),
            Self::Impersonation(identity, user) => {
                let mut lines = certificate(identity);
                lines.push(("as", serde_json::json!(user.name).to_string()));
                lines.push(("as-groups", serde_json::json!(user.groups).to_string()));
                lines
            }
        }
    }
}

fn identify(info: &mut AuthInfo, identity: &Identity) {
    info.client_certificate_data = Some(encode(&identity.certificate));
    info.client_key_data = Some(encode(&identity.key).into());
}

fn encode(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
