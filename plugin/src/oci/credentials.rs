//! Logins to registries, from the file that `docker login` writes. Never from the command line, which everyone on the
//! machine can read, and never shown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opensdn_manifests::read_limited;
use serde::Deserialize;

use super::error::Error;

/// The most of the file: some hundred bytes for each registry.
const MOST: u64 = 16 << 20;

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(super) name: String,
    pub(super) password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Login")
    }
}

impl Login {
    /// The value of the header.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", self.name, self.password)))
    }
}

/// The logins of the file.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    path: PathBuf,
    logins: BTreeMap<String, Entry>,
    helper: Option<String>,
    helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    auths: BTreeMap<String, Entry>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Entry")
    }
}

impl Credentials {
    /// Those of the user: of the folder in `DOCKER_CONFIG`, else of `~/.docker`. None where there is no file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn of_user() -> Result<Self, Error> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = set("DOCKER_CONFIG").map(PathBuf::from);
        let folder = folder.or_else(|| set("HOME").map(|home| Path::new(&home).join(".docker")));
        let Some(path) = folder.map(|folder| folder.join("config.json")) else {
            return Ok(Self::default());
        };
        match read_limited(&path, MOST) {
            Ok(bytes) => Self::read(path, &bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::Credentials { path, why: error.to_string() }),
        }
    }

    /// Those of a Secret of type kubernetes.io/dockerconfigjson.
    ///
    /// # Errors
    /// They are not as docker login writes them.
    pub(crate) fn of_secret(bytes: &[u8]) -> Result<Self, Error> {
        Self::read(PathBuf::from(".dockerconfigjson"), bytes)
    }

    fn read(path: PathBuf, bytes: &[u8]) -> Result<Self, Error> {
        match serde_json::from_slice(bytes) {
            Ok(File { auths, creds_store, cred_helpers }) => {
                let logins = auths.into_iter().map(|(key, entry)| (host(&key).to_owned(), entry));
                Ok(Self {
                    path,
                    logins: logins.collect(),
                    helper: creds_store,
                    helpers: cred_helpers,
                })
            }
            // Without the text: it has secrets.
            Err(error) => {
                let why = format!("line {} is not as docker login writes it", error.line());
                Err(Error::Credentials { path, why })
            }
        }
    }

    /// The login for a registry.
    ///
    /// # Errors
    /// There is one, in a form that is not known.
    pub(crate) fn of(&self, registry: &str) -> Result<Option<Login>, Error> {
        let wrong = |why: String| Err(Error::Credentials { path: self.path.clone(), why });
        let Some(entry) = self.logins.get(registry).filter(|entry| !entry.is_empty()) else {
            // Without one it may go well: many registries are read without a login.
            return Ok(None);
        };
        if !entry.identitytoken.is_empty() {
            return wrong(format!(
                "the entry of {registry} is an identity token, which is not known; log in by name and password"
            ));
        }
        if entry.auth.is_empty() {
            let (name, password) = (entry.username.clone(), entry.password.clone());
            return Ok(Some(Login { name, password }));
        }
        let decoded = BASE64_STANDARD.decode(entry.auth.trim()).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        match decoded.as_deref().and_then(|text| text.trim_end_matches('\0').split_once(':')) {
            Some((name, password)) => {
                Ok(Some(Login { name: name.to_owned(), password: password.to_owned() }))
            }
            None => wrong(format!("the login of {registry} is not NAME:PASSWORD in base64")),
        }
    }

    /// The file.
    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The program that has the login, if one has it: it is not asked.
    pub(crate) fn helper(&self, registry: &str) -> Option<&str> {
        self.helpers.get(registry).or(self.helper.as_ref()).map(String::as_str)
    }
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.auth.is_empty() && self.username.is_empty() && self.identitytoken.is_empty()
    }
}

/// A key of the file is a registry, or an address of one.
fn host(key: &str) -> &str {
    let key = key.trim_start_matches("https://").trim_start_matches("http://");
    match key.split('/').next().unwrap_or_default() {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(text: &str) -> Result<Credentials, Error> {
        Credentials::read("config.json".into(), text.as_bytes())
    }

    #[test]
    fn logins_are_found_as_docker_writes_them() {
        let text = r#"{"auths": {"https://index.docker.io/v1/": {"auth": "dTpw"}, "r.example:5000": {"username": "u", "password": "p:q"},
            "helped.example": {}, "token.example": {"auth": "dTpw", "identitytoken": "x"}, "bad.example": {"auth": "?"}}, "credsStore": "desktop"}"#;
        let credentials = credentials(text).unwrap();
        let of =
            |host: &str| credentials.of(host).unwrap().map(|login| (login.name, login.password));
        assert_eq!(of("docker.io"), Some(("u".to_owned(), "p".to_owned())));
        assert_eq!(of("r.example:5000"), Some(("u".to_owned(), "p:q".to_owned())));
        assert_eq!(
            (of("helped.example"), credentials.helper("helped.example")),
            (None, Some("desktop"))
        );
        assert!(credentials.of("token.example").is_err() && credentials.of("bad.example").is_err());
    }

    #[test]
    fn a_broken_file_is_reported_without_what_is_in_it() {
        let why = credentials(r#"{"auths": {"r": {"auth": hunter2}}}"#).unwrap_err().to_string();
        assert!(why.contains("line 1") && !why.contains("hunter2"), "{why}");
        let login = Login { name: "u".into(), password: "hunter2".into() };
        assert_eq!(format!("{login:?}"), "Login");
    }
}
