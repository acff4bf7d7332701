//! Tokens of Keystone, by version 3 or 2 of its API. A password and a token are in no text that anyone reads. What
//! tokens are for is not known here.

use std::fmt;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use opensdn_http_client as http_client;
use opensdn_http_client::{HttpClient, Incoming, read_whole, whole_body};
use serde_json::{Value, json};

/// The most of an answer: a catalogue of services can be long.
const MOST: u64 = 4 << 20;

/// A password, which no debug output shows.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// As it was read.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Password")
    }
}

/// With what Keystone is asked.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// `https://HOST:5000`, with or without `/v3` or `/v2.0`.
    pub auth_url: String,
    /// Name of the user.
    pub user: String,
    /// Its password.
    pub password: Password,
    /// Name of the project, of the tenant in version 2.
    pub project: String,
    /// Name of the user's domain; not in version 2.
    pub user_domain: String,
    /// Name of the project's domain; not in version 2.
    pub project_domain: String,
}

/// What the Config API takes for a login.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(HeaderValue);

impl Token {
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// A text of the server without the token, which it may repeat. What is cut of it is hidden, too.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        let token = self.0.to_str().unwrap_or_default();
        let shown = text.replace(token, "(token)");
        let begin = token.get(..16).filter(|begin| shown.contains(begin));
        if begin.is_some() { String::new() } else { shown }
    }

    fn new(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(text).ok().filter(|value| !value.is_empty())?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address that is none.
    #[error("{0:?} is no address of Keystone: write it as https://HOST:5000/v3, without a login")]
    Address(String),
    /// There is no answer.
    #[error("the Keystone {address} does not answer")]
    Unreachable {
        /// Its address.
        address: String,
        /// Why.
        source: http_client::Error,
    },
    /// The login is refused.
    #[error(
        "the Keystone {address} refuses the login of the user {user} for the project {project} (401): look at the names of \
         user, project and both domains, and at the password"
    )]
    Login {
        /// Its address.
        address: String,
        /// Name of the user.
        user: String,
        /// Name of the project.
        project: String,
    },
    /// Another answer than a token.
    #[error("the Keystone {address} answers {status} to a login{hint}")]
    Refused {
        /// Its address.
        address: String,
        /// What it answers.
        status: StatusCode,
        /// What may be the cause.
        hint: &'static str,
    },
    /// An answer without a token.
    #[error("the Keystone {address} answers without a token: is this the address of a Keystone?")]
    NoToken {
        /// Its address.
        address: String,
    },
}

impl Error {
    /// Whether it may go well the next time.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V3,
    V2,
}

/// The way to tokens.
pub struct Keystone {
    http: HttpClient,
    credentials: Credentials,
    /// Where tokens are, in the order in which they are tried.
    addresses: Vec<(Uri, Version)>,
}

impl Keystone {
    /// Without a version in the address, version 3 is asked first.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(http: HttpClient, credentials: Credentials) -> Result<Self, Error> {
        let wrong = || Error::Address(without_login(&credentials.auth_url));
        if credentials.auth_url.contains(['@', '?']) {
            return Err(wrong());
        }
        let mut addresses = Vec::new();
        for (text, version) in token_addresses(&credentials.auth_url) {
            let uri: Uri = text.parse().map_err(|_| wrong())?;
            let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
            if !is_http || uri.authority().is_none() {
                return Err(wrong());
            }
            addresses.push((uri, version));
        }
        Ok(Self { http, credentials, addresses })
    }

    /// A new token.
    ///
    /// # Errors
    /// There is none within the limit.
    pub(crate) async fn token(&self, limit: Duration) -> Result<Token, Error> {
        let mut last = None;
        for (uri, version) in &self.addresses {
            match self.token_of(uri, *version, limit).await {
                Err(Error::Refused { status: StatusCode::NOT_FOUND, address, hint }) => {
                    let status = StatusCode::NOT_FOUND;
                    last = Some(Error::Refused { address, status, hint });
                }
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| Error::Address(without_login(&self.credentials.auth_url))))
    }

    async fn token_of(&self, uri: &Uri, version: Version, limit: Duration) -> Result<Token, Error> {
        let address = uri.to_string();
        let unreachable = |source| Error::Unreachable { address: address.clone(), source };
        let body = self.request(version).to_string();
        let request = Request::post(uri)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(whole_body(body.into()))
            .map_err(|_| Error::Address(address.clone()))?;
        let response = self.http.send(request, limit).await.map_err(unreachable)?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            let Credentials { user, project, .. } = self.credentials.clone();
            return Err(Error::Login { address, user, project });
        }
        if !status.is_success() {
            let hint = match status {
                StatusCode::NOT_FOUND => ": does the address end with the version, /v3 or /v2.0?",
                StatusCode::BAD_REQUEST => ": are user, project and both domains set?",
                StatusCode::FORBIDDEN => ": is the account locked or its password expired?",
                _ => "",
            };
            return Err(Error::Refused { address, status, hint });
        }
        let token = of_answer(response, version, limit).await.map_err(unreachable)?;
        token.ok_or(Error::NoToken { address })
    }

    fn request(&self, version: Version) -> Value {
        let Credentials { user, password, project, user_domain, project_domain, .. } =
            &self.credentials;
        match version {
            Version::V2 => json!({"auth": {
                "passwordCredentials": {"username": user, "password": password.0},
                "tenantName": project,
            }}),
            Version::V3 => json!({"auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {
                        "name": user, "domain": {"name": user_domain}, "password": password.0,
                    }},
                },
                "scope": {"project": {"name": project, "domain": {"name": project_domain}}},
            }}),
        }
    }
}

/// Version 3 has it in the head, version 2 in the body.
async fn of_answer(
    response: Response<Incoming>,
    version: Version,
    limit: Duration,
) -> Result<Option<Token>, http_client::Error> {
    if version == Version::V3 {
        let token = response.headers().get("x-subject-token");
        return Ok(token.and_then(|token| Token::new(token.to_str().ok()?)));
    }
    let read = tokio::time::timeout(limit, read_whole(response.into_body(), MOST, limit)).await;
    let body =
        read.map_err(|_| http_client::Error::BrokeOff(std::io::ErrorKind::TimedOut.into()))??;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(body.pointer("/access/token/id").and_then(Value::as_str).and_then(Token::new))
}

fn token_addresses(auth_url: &str) -> Vec<(String, Version)> {
    let url = auth_url.trim().trim_end_matches('/');
    let without = url.trim_end_matches("/auth/tokens").trim_end_matches("/tokens");
    let v3 = |base: &str| (format!("{base}/v3/auth/tokens"), Version::V3);
    let v2 = |base: &str| (format!("{base}/v2.0/tokens"), Version::V2);
    match (without.strip_suffix("/v3"), without.strip_suffix("/v2.0")) {
        (Some(base), _) => vec![v3(base)],
        (_, Some(base)) => vec![v2(base)],
        _ => vec![v3(url), v2(url)],
    }
}

/// An address for an error: it may have been given with a password, in any place.
pub(crate) fn without_login(url: &str) -> String {
    let uri: Option<Uri> = url.trim().parse().ok();
    let shown = uri.as_ref().and_then(|uri| {
        let host = uri.authority().filter(|_| !url.contains('@'))?;
        Some(format!("{}://{host}{}", uri.scheme_str()?, uri.path()))
    });
    shown.unwrap_or_else(|| "(not shown, as it may have a password)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(auth_url: &str) -> Credentials {
        Credentials {
            auth_url: auth_url.to_owned(),
            user: "admin".to_owned(),
            password: Password::new("c0ntrail123".to_owned()),
            project: "demo".to_owned(),
            user_domain: "Default".to_owned(),
            project_domain: "Other".to_owned(),
        }
    }

    fn keystone(auth_url: &str) -> Result<Keystone, Error> {
        let http = HttpClient::new(http_client::Trust::unverified(), Duration::from_secs(1));
        Keystone::new(http.unwrap(), credentials(auth_url))
    }

    #[test]
    fn the_version_is_that_of_the_address_or_both_are_tried() {
        let asked = |url: &str| {
            let addresses = keystone(url).unwrap().addresses;
            addresses.iter().map(|(uri, _)| uri.to_string()).collect::<Vec<String>>()
        };
        let v3 = "https://k:5000/v3/auth/tokens";
        for url in ["https://k:5000/v3", "https://k:5000/v3/", v3] {
            assert_eq!(asked(url), [v3], "{url}");
        }
        let v2 = "http://k:35357/v2.0/tokens";
        for url in ["http://k:35357/v2.0", v2] {
            assert_eq!(asked(url), [v2], "{url}");
        }
        assert_eq!(
            asked("http://k/identity"),
            ["http://k/identity/v3/auth/tokens", "http://k/identity/v2.0/tokens"]
        );
    }

    #[test]
    fn both_versions_are_asked_as_upstreams_client_does() {
        let keystone = keystone("http://k:5000").unwrap();
        let v3 = keystone.request(Version::V3);
        assert_eq!(v3.pointer("/auth/identity/password/user/domain/name").unwrap(), "Default");
        assert_eq!(v3.pointer("/auth/identity/password/user/password").unwrap(), "c0ntrail123");
        assert_eq!(v3.pointer("/auth/scope/project/domain/name").unwrap(), "Other");
        let v2 = keystone.request(Version::V2);
        assert_eq!(v2.pointer("/auth/tenantName").unwrap(), "demo");
        assert_eq!(v2.pointer("/auth/passwordCredentials/username").unwrap(), "admin");
    }

    #[test]
    fn a_password_is_in_no_text() {
        assert!(!format!("{:?}", credentials("http://k:5000")).contains("c0ntrail123"));
        for url in ["http://admin:c0ntrail123@k:5000", "admin:c0ntrail123@k", "ftp://k", "k:5000"] {
            let error = keystone(url).err().unwrap();
            assert!(!format!("{error} {error:?}").contains("c0ntrail123"), "{error}");
        }
        for url in ["http://k:5000/v3?password=c0ntrail123", "http://admin:c0ntrail/123@x@k/v3"] {
            let error = keystone(url).err().unwrap();
            assert!(!format!("{error} {error:?}").contains("c0ntrail"), "{error}");
        }
        assert_eq!(format!("{:?}", Token::new("secret").unwrap().header()), "Sensitive");
    }

    #[test]
    fn a_token_that_a_server_repeats_is_hidden() {
        let token = Token::new("gAAAAABn0123456789abcdef").unwrap();
        assert_eq!(token.hidden_in("bad token gAAAAABn0123456789abcdef."), "bad token (token).");
        assert_eq!(token.hidden_in("no such network"), "no such network");
        assert_eq!(token.hidden_in("bad token gAAAAABn01234567…"), "", "a part of it is cut off");
    }
}
