//! Why an image could not be read or written.

use std::io;
use std::path::PathBuf;

use crate::exit::{Exit, Failure};
use crate::part_file::PartFileError;

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
    /// Whether the registry was asked, and does not give what was asked for.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Login { .. } | Self::Absent { .. } => true,
            Self::Said { status, .. } => status.is_client_error() && !self.is_passing(),
            _ => false,
        }
    }

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

impl From<PartFileError> for Error {
    fn from(error: PartFileError) -> Self {
        match error {
            PartFileError::Exists(path) => Self::Exists { path },
            PartFileError::Busy(path) => Self::Busy { path },
            PartFileError::Write { path, source } => Self::Write { path, source },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, code) = error.outcome();
        let mut failure = Failure::new(exit, code, error.to_string(), error.hint());
        failure.causes = opensdn_error_chain::error_causes(&error).into_iter().skip(1).collect();
        failure
    }
}

impl Error {
    /// How the command ends, and the word for scripts.
    fn outcome(&self) -> (Exit, &'static str) {
        match self {
            Self::Connect { .. } | Self::TimedOut { .. } | Self::BrokeOff { .. } => {
                (Exit::Unreachable, "registry")
            }
            Self::Said { status, .. } if *status == http::StatusCode::FORBIDDEN => {
                (Exit::Unreachable, "registry-login")
            }
            Self::Said { .. } => (Exit::Unreachable, "registry"),
            Self::Login { .. } => (Exit::Unreachable, "registry-login"),
            Self::Absent { .. } => (Exit::Unreachable, "no-image"),
            Self::Wrong { .. } => (Exit::Unreachable, "wrong-digest"),
            Self::Certificates { .. } | Self::Read { .. } => (Exit::Usage, "unreadable-file"),
            Self::Credentials { .. } => (Exit::Usage, "registry-login"),
            Self::Archive { .. } => (Exit::Usage, "broken-archive"),
            Self::Write { .. } => (Exit::Usage, "unwritable-archive"),
            Self::Exists { .. } => (Exit::Refused, "exists"),
            Self::Busy { .. } => (Exit::Refused, "busy"),
        }
    }

    /// What to do.
    fn hint(&self) -> String {
        let hint = match self {
            Self::Connect { host, .. } => {
                return format!(
                    "is the name right, and does a proxy lead there (HTTPS_PROXY)? A CA of your own: --registry-ca FILE. \
                     For HTTP without TLS: --insecure-registry {host}"
                );
            }
            Self::Login { host, has_login: true, .. } => {
                return format!(
                    "the login of the file is refused; log in again: docker login {host}"
                );
            }
            Self::Login { host, has_login: false, .. } => {
                return format!(
                    "log in first: docker login {host}, or podman login --authfile ~/.docker/config.json {host}"
                );
            }
            Self::TimedOut { .. } | Self::BrokeOff { .. } => {
                "run it again: what has arrived is not sent again"
            }
            Self::Said { status, .. } if *status == http::StatusCode::FORBIDDEN => {
                "does the account of your login have the right to this repository?"
            }
            Self::Said { .. } => "look into the registry's log; run it again to continue",
            Self::Absent { .. } => "look at its name and its tag",
            Self::Wrong { .. } => {
                "nothing of it was kept; something on the way, or the registry, is broken"
            }
            Self::Certificates { .. } => "--registry-ca wants certificates (PEM)",
            Self::Credentials { .. } => {
                "correct it, or name the folder of another config.json by DOCKER_CONFIG"
            }
            Self::Archive { .. } => {
                "nothing was sent; save it or copy it again, and compare with sha256sum"
            }
            Self::Write { .. } => {
                "is there room? Run it again to continue, or name another file: --out FILE"
            }
            Self::Read { .. } => "correct its name or its permissions",
            Self::Exists { .. } => "remove it, or name another file: --out FILE",
            Self::Busy { .. } => "wait for it, or name another file: --out FILE",
        };
        hint.to_owned()
    }
}
