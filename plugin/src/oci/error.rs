//! Why an image could not be read or written.

use std::io;
use std::path::PathBuf;

use crate::exit::{Exit, Failure};

/// Why.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{host} cannot be reached")]
    Connect { host: String, source: hyper_util::client::legacy::Error },
    #[error("{host} did not answer {what} within {seconds} s")]
    TimedOut { host: String, what: String, seconds: u64 },
    #[error("{what} broke off")]
    BrokeOff { what: String, source: io::Error },
    #[error("{host} said {status} to {what}{said}")]
    Said { host: String, what: String, status: http::StatusCode, said: String },
    #[error("{host} wants a login for {what}")]
    Login { host: String, what: String, has_login: bool },
    #[error("{image} is not there")]
    Absent { image: String },
    /// What a registry sent is not what it should be.
    #[error("{host}: {why}")]
    Wrong { host: String, why: String },
    #[error("the certificates for registries cannot be read: {why}")]
    Certificates { why: String },
    #[error("{} cannot be used: {why}", path.display())]
    Credentials { path: PathBuf, why: String },
    /// A file that is no layout, or not whole.
    #[error("{} is no archive of images that can be used: {why}", path.display())]
    Archive { path: PathBuf, why: String },
    #[error("{} cannot be written", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    #[error("{} is being written by another run", path.display())]
    Busy { path: PathBuf },
}

impl Error {
    /// Whether it may go well the next time.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::TimedOut { .. } | Self::BrokeOff { .. } => true,
            Self::Said { status, .. } => {
                status.is_server_error() || *status == http::StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, code, hint) = match &error {
            Error::Connect { host, .. } => (
                Exit::Unreachable,
                "registry",
                format!(
                    "is the name right, and does a proxy lead there (HTTPS_PROXY)? A CA of your own: --registry-ca FILE. \
                     For HTTP without TLS: --insecure-registry {host}"
                ),
            ),
            Error::TimedOut { .. } | Error::BrokeOff { .. } => (
                Exit::Unreachable,
                "registry",
                "run it again: what has arrived is not sent again".to_owned(),
            ),
            Error::Said { status, .. } if *status == http::StatusCode::FORBIDDEN => (
                Exit::Unreachable,
                "registry-login",
                "does the account of your login have the right to this repository?".to_owned(),
            ),
            Error::Said { .. } => (
                Exit::Unreachable,
                "registry",
                "look into the registry's log; run it again to continue".to_owned(),
            ),
            Error::Login { host, has_login: true, .. } => (
                Exit::Unreachable,
                "registry-login",
                format!("the login of the file is refused; log in again: docker login {host}"),
            ),
            Error::Login { host, has_login: false, .. } => (
                Exit::Unreachable,
                "registry-login",
                format!(
                    "log in first: docker login {host}, or podman login --authfile ~/.docker/config.json {host}"
                ),
            ),
            Error::Absent { .. } => {
                (Exit::Unreachable, "no-image", "look at its name and its tag".to_owned())
            }
            Error::Wrong { .. } => (
                Exit::Unreachable,
                "wrong-digest",
                "nothing of it was kept; something on the way, or the registry, is broken"
                    .to_owned(),
            ),
            Error::Certificates { .. } => (
                Exit::Usage,
                "unreadable-file",
                "--registry-ca wants certificates (PEM)".to_owned(),
            ),
            Error::Credentials { .. } => (
                Exit::Usage,
                "registry-login",
                "correct it, or name the folder of another config.json by DOCKER_CONFIG".to_owned(),
            ),
            Error::Archive { .. } => (
                Exit::Usage,
                "broken-archive",
                "nothing was sent; save it or copy it again, and compare with sha256sum".to_owned(),
            ),
            Error::Write { .. } => (
                Exit::Usage,
                "unwritable-archive",
                "is there room? Run it again to continue, or name another file: --out FILE"
                    .to_owned(),
            ),
            Error::Read { .. } => {
                (Exit::Usage, "unreadable-file", "correct its name or its permissions".to_owned())
            }
            Error::Exists { .. } => {
                (Exit::Refused, "exists", "remove it, or name another file: --out FILE".to_owned())
            }
            Error::Busy { .. } => {
                (Exit::Refused, "busy", "wait for it, or name another file: --out FILE".to_owned())
            }
        };
        let mut failure = Failure::new(exit, code, error.to_string(), hint);
        failure.causes = opensdn_error_chain::error_causes(&error).into_iter().skip(1).collect();
        failure
    }
}
