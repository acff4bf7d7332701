//! What is asked of registries, by the OCI's distribution specification: manifests and blobs, read and written. Who is
//! asked without a login and refuses gets one, where there is one.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;

use super::credentials::Credentials;
use super::digest::Digest;
use super::error::Error;
use super::http::{Body, Http, location, nothing, small, whole};
use super::manifest::{INDEXES, MANIFESTS, MOST};
use super::reference::Reference;
use super::token::{Challenge, address, challenge, token};

/// The registry behind docker.io.
const HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// The most of an answer that is no content.
const MOST_SAID: u64 = 1 << 20;
const MOST_REDIRECTS: usize = 5;
/// So often something is tried that may go well the next time.
pub(super) const ATTEMPTS: u32 = 3;

/// All registries, with what they have granted.
pub(crate) struct Registries {
    http: Http,
    credentials: Credentials,
    /// What is sent for a repository, by the right to write.
    granted: Mutex<BTreeMap<(String, String, bool), HeaderValue>>,
}

/// A manifest that was read.
pub(crate) struct Manifest {
    pub(crate) bytes: Vec<u8>,
    pub(crate) media_type: String,
}

/// Content on its way to a registry, and why it is not what it should be, if it is not.
pub(crate) struct Feed {
    pub(super) body: Body,
    pub(super) broken: Arc<OnceLock<String>>,
}

/// What came of an attempt to write a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Sent,
    /// The registry took it from another repository of its own.
    Mounted,
}

/// How long to wait before something is tried again.
pub(super) async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_secs(1 << attempt)).await;
}

impl Registries {
    pub(crate) fn new(http: Http, credentials: Credentials) -> Self {
        Self { http, credentials, granted: Mutex::default() }
    }

    /// A manifest by tag or digest.
    ///
    /// # Errors
    /// It is not there, is too large, or is another one than it should be.
    pub(crate) async fn manifest(&self, of: &Reference, wanted: &str) -> Result<Manifest, Error> {
        let image = format!("{}/{} {wanted}", of.host, of.repository);
        let uri = self.uri(of, &format!("manifests/{wanted}"))?;
        let response = self.ask(of, false, Method::GET, uri, Bytes::new()).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(Error::Absent { image });
        }
        let response = self.success(of, response, "GET of a manifest").await?;
        let text = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let media_type = text("content-type").unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_owned();
        // Some say application/json of everything: then the manifest itself has to say what it is.
        let is_known = INDEXES.iter().chain(&MANIFESTS).any(|known| *known == media_type);
        let media_type = if is_known { media_type } else { String::new() };
        let said = text("docker-content-digest");
        let wrong =
            |why: String| Error::Wrong { host: of.host.clone(), why: format!("{image}: {why}") };
        let Some(bytes) = small(response.into_body(), MOST, &format!("GET of {image}")).await?
        else {
            return Err(wrong(format!("its manifest is larger than {} MiB", MOST >> 20)));
        };
        let found = Digest::of(&bytes);
        let expected: Option<Digest> =
            wanted.parse().ok().or_else(|| said.and_then(|said| said.parse().ok()));
        match expected.filter(|expected| *expected != found) {
            Some(expected) => Err(wrong(format!("instead of {expected} there is {found}"))),
            None => Ok(Manifest { bytes, media_type }),
        }
    }

    /// Whether the registry has the image. Asked once and by HEAD, which no registry counts as a pull.
    ///
    /// # Errors
    /// The registry does not say so.
    pub(crate) async fn has_manifest(&self, of: &Reference) -> Result<bool, Error> {
        let uri = self.uri(of, &format!("manifests/{}", of.wanted()))?;
        let (method, bytes) = (Method::HEAD, Bytes::new());
        let sent = Sent { at: of, push: false, method, uri, bytes, media_type: "" };
        let response = self.once(&sent).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        self.success(of, response, "HEAD of a manifest").await.map(|_| true)
    }

    /// The digest of what the reference stands for, of all its platforms. Asked by HEAD where the registry says it so.
    ///
    /// # Errors
    /// The image is not there, or the registry does not say.
    pub(crate) async fn digest(&self, of: &Reference) -> Result<Digest, Error> {
        let wanted = of.wanted();
        let uri = self.uri(of, &format!("manifests/{wanted}"))?;
        let response = self.ask(of, false, Method::HEAD, uri, Bytes::new()).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(Error::Absent { image: of.to_string() });
        }
        let response = self.success(of, response, "HEAD of a manifest").await?;
        let said =
            response.headers().get("docker-content-digest").and_then(|one| one.to_str().ok());
        match said.and_then(|said| said.parse().ok()) {
            Some(digest) => Ok(digest),
            None => Ok(Digest::of(&self.manifest(of, &wanted).await?.bytes)),
        }
    }

    /// Whether the repository has it: a manifest or a blob.
    ///
    /// # Errors
    /// The registry does not say so.
    pub(super) async fn has(
        &self,
        at: &Reference,
        kind: &str,
        digest: Digest,
    ) -> Result<bool, Error> {
        let uri = self.uri(at, &format!("{kind}/{digest}"))?;
        let response = self.ask(at, true, Method::HEAD, uri, Bytes::new()).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        self.success(at, response, "HEAD").await.map(|_| true)
    }

    /// A blob, as it comes: who reads it has to compare it with its digest.
    ///
    /// # Errors
    /// The registry does not give it.
    pub(super) async fn blob(&self, of: &Reference, digest: Digest) -> Result<Incoming, Error> {
        let uri = self.uri(of, &format!("blobs/{digest}"))?;
        let response = self.ask(of, false, Method::GET, uri, Bytes::new()).await?;
        if response.status() == StatusCode::NOT_FOUND {
            let image = format!("{}/{} {digest}", of.host, of.repository);
            return Err(Error::Absent { image });
        }
        Ok(self.success(of, response, "GET of a blob").await?.into_body())
    }

    /// Writes a blob, or has the registry take it from another repository of its own.
    ///
    /// # Errors
    /// The registry does not take it, or what was fed was not what it should be.
    pub(super) async fn put_blob(
        &self,
        to: &Reference,
        (digest, size): (Digest, u64),
        from: Option<&str>,
        feed: impl AsyncFnOnce() -> Result<Feed, Error>,
    ) -> Result<Put, Error> {
        let query = from.map(|from| format!("?mount={digest}&from={from}")).unwrap_or_default();
        let uri = self.uri(to, &format!("blobs/uploads/{query}"))?;
        let begun = self.ask(to, true, Method::POST, uri.clone(), Bytes::new()).await?;
        if begun.status() == StatusCode::CREATED {
            return Ok(Put::Mounted);
        }
        let begun = self.success(to, begun, "POST of an upload").await?;
        let wrong = |why: &str| Error::Wrong { host: to.host.clone(), why: why.to_owned() };
        let address = location(&begun, &uri).filter(|address| self.http.is_allowed(address));
        let address = address.ok_or_else(|| wrong("it did not say where to upload"))?;
        let joint = if address.query().is_some() { '&' } else { '?' };
        let address: Uri = format!("{address}{joint}digest={digest}")
            .parse()
            .map_err(|_| wrong("it said a broken address for an upload"))?;
        let Feed { body, broken } = feed().await?;
        let mut request = Request::put(&address)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, size);
        if address.authority() == uri.authority()
            && let Some(granted) = self.granted(to, true)
        {
            request = request.header(header::AUTHORIZATION, granted);
        }
        let request = request.body(body).map_err(|_| wrong("it said a broken address"))?;
        let sent = self.http.send(request, "PUT of a blob", size).await;
        if let Some(why) = broken.get() {
            return Err(Error::Wrong { host: to.host.clone(), why: format!("not sent: {why}") });
        }
        let sent = sent?;
        if sent.status() == StatusCode::UNAUTHORIZED {
            // What was granted is over: the next attempt gets it anew.
            self.forget(to);
            let what = "PUT of a blob".to_owned();
            return Err(Error::BrokeOff {
                what,
                source: io::Error::from(io::ErrorKind::PermissionDenied),
            });
        }
        self.success(to, sent, "PUT of a blob").await.map(|_| Put::Sent)
    }

    /// Writes a manifest under a tag or its digest.
    ///
    /// # Errors
    /// The registry does not take it.
    pub(super) async fn put_manifest(
        &self,
        to: &Reference,
        name: &str,
        manifest: &Manifest,
    ) -> Result<(), Error> {
        let uri = self.uri(to, &format!("manifests/{name}"))?;
        let bytes = Bytes::from(manifest.bytes.clone());
        let request = Sent {
            at: to,
            push: true,
            method: Method::PUT,
            uri,
            bytes,
            media_type: &manifest.media_type,
        };
        let response = self.tried(&request).await?;
        self.success(to, response, "PUT of a manifest").await.map(|_| ())
    }

    fn uri(&self, at: &Reference, path: &str) -> Result<Uri, Error> {
        let host = if at.host == HUB.0 { HUB.1 } else { &at.host };
        let scheme = self.http.scheme(&at.host);
        let uri = format!("{scheme}://{host}/v2/{}/{path}", at.repository).parse();
        uri.map_err(|_| Error::Wrong {
            host: at.host.clone(),
            why: "no address can be made for it".to_owned(),
        })
    }

    async fn ask(
        &self,
        at: &Reference,
        push: bool,
        method: Method,
        uri: Uri,
        bytes: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        self.tried(&Sent { at, push, method, uri, bytes, media_type: "" }).await
    }

    /// Asks until there is an answer that would be the same the next time.
    async fn tried(&self, sent: &Sent<'_>) -> Result<Response<Incoming>, Error> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let asked = match self.once(sent).await {
                Ok(response) if response.status().is_server_error() => {
                    self.success(sent.at, response, sent.method.as_str()).await
                }
                other => other,
            };
            match asked {
                Err(error) if error.is_passing() && attempt < ATTEMPTS => pause(attempt).await,
                other => return other,
            }
        }
    }

    /// Asks once; with what the registry then wants, once more. Goes where it is sent.
    async fn once(&self, sent: &Sent<'_>) -> Result<Response<Incoming>, Error> {
        let granted = self.granted(sent.at, sent.push);
        let response = self.http.send(sent.request(&sent.uri, granted)?, &sent.what(), 0).await?;
        let response = if response.status() == StatusCode::UNAUTHORIZED {
            let granted = self.grant(sent, response.headers()).await?;
            let again =
                self.http.send(sent.request(&sent.uri, Some(granted))?, &sent.what(), 0).await?;
            if again.status() == StatusCode::UNAUTHORIZED {
                self.forget(sent.at);
                return Err(self.login(sent, true));
            }
            again
        } else {
            response
        };
        self.follow(sent, response).await
    }

    /// Blobs often are elsewhere. What the registry was shown is not shown there.
    async fn follow(
        &self,
        sent: &Sent<'_>,
        mut response: Response<Incoming>,
    ) -> Result<Response<Incoming>, Error> {
        let mut asked = sent.uri.clone();
        let may = sent.method == Method::GET || sent.method == Method::HEAD;
        for _ in 0..MOST_REDIRECTS {
            if !may || !response.status().is_redirection() {
                return Ok(response);
            }
            let next = location(&response, &asked).filter(|next| self.http.is_allowed(next));
            let Some(next) = next else { break };
            let is_same =
                next.authority() == sent.uri.authority() && next.scheme() == sent.uri.scheme();
            let granted = self.granted(sent.at, sent.push).filter(|_| is_same);
            response = self.http.send(sent.request(&next, granted)?, &sent.what(), 0).await?;
            asked = next;
        }
        let why = "it sends to an address that is not asked: without TLS, or too often".to_owned();
        Err(Error::Wrong { host: sent.at.host.clone(), why })
    }

    /// Gets what the registry wants.
    async fn grant(&self, sent: &Sent<'_>, headers: &HeaderMap) -> Result<HeaderValue, Error> {
        let login = self.credentials.of(&sent.at.host)?;
        let value = match challenge(headers) {
            Some(Challenge::Bearer { realm, service }) => {
                let actions = if sent.push { "pull,push" } else { "pull" };
                let scope = format!("repository:{}:{actions}", sent.at.repository);
                let address = address(&realm, service.as_deref(), &scope);
                let wrong = |why: &str| Error::Wrong {
                    host: sent.at.host.clone(),
                    why: format!("the address for tokens, {realm}, {why}"),
                };
                let address: Uri = address.parse().map_err(|_| wrong("is none"))?;
                if !self.http.is_allowed(&address) {
                    return Err(wrong("is without TLS"));
                }
                let mut request = Request::get(address);
                if let Some(login) = &login {
                    request = request.header(header::AUTHORIZATION, secret(&login.basic())?);
                }
                let request = request.body(nothing()).map_err(|_| wrong("is none"))?;
                let answer = self.http.send(request, "GET of a token", 0).await?;
                match answer.status() {
                    StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                        return Err(self.login(sent, login.is_some()));
                    }
                    status if !status.is_success() => return Err(wrong(&format!("said {status}"))),
                    _ => {}
                }
                let answer = small(answer.into_body(), MOST_SAID, "GET of a token").await?;
                let token = answer.and_then(|answer| token(&answer));
                format!("Bearer {}", token.ok_or_else(|| wrong("gave no token"))?)
            }
            Some(Challenge::Basic) => login.ok_or_else(|| self.login(sent, false))?.basic(),
            None => return Err(self.login(sent, login.is_some())),
        };
        let value = secret(&value)?;
        self.all_granted().insert(sent.at_key(), value.clone());
        Ok(value)
    }

    fn all_granted(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<(String, String, bool), HeaderValue>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn granted(&self, at: &Reference, push: bool) -> Option<HeaderValue> {
        self.all_granted().get(&(at.host.clone(), at.repository.clone(), push)).cloned()
    }

    fn forget(&self, at: &Reference) {
        self.all_granted()
            .retain(|(host, repository, _), _| *host != at.host || *repository != at.repository);
    }

    fn login(&self, sent: &Sent<'_>, has_login: bool) -> Error {
        let (host, what) = (sent.at.host.clone(), sent.what());
        match self.credentials.helper(&host).filter(|_| !has_login) {
            Some(helper) => Error::Credentials {
                path: self.credentials.path().to_owned(),
                why: format!(
                    "the login of {host} is kept by the program docker-credential-{helper}, which is not run; write it into a \
                     config.json of its own: podman login --authfile FOLDER/config.json {host}"
                ),
            },
            None => Error::Login { host, what, has_login },
        }
    }

    /// An answer that is a success; else what it says.
    async fn success(
        &self,
        at: &Reference,
        response: Response<Incoming>,
        what: &str,
    ) -> Result<Response<Incoming>, Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let said = small(response.into_body(), MOST_SAID, what).await.ok().flatten();
        let said = said.map(|said| message(&said)).unwrap_or_default();
        let what = format!("{what} in {}", at.repository);
        Err(Error::Said { host: at.host.clone(), what, status, said })
    }
}

/// The first of a registry's messages.
fn message(body: &[u8]) -> String {
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let first = body.as_ref().and_then(|body| body.pointer("/errors/0"));
    let part = |key: &str| first.and_then(|first| first.get(key)?.as_str()).unwrap_or_default();
    let said = format!(": {} {}", part("code"), part("message"));
    said.trim_end_matches([' ', ':']).chars().take(300).collect()
}

/// A header that is shown nowhere.
fn secret(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text).map_err(|_| Error::Wrong {
        host: "the login".to_owned(),
        why: "it has characters that no header can have".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A request that can be sent again.
struct Sent<'a> {
    at: &'a Reference,
    push: bool,
    method: Method,
    uri: Uri,
    bytes: Bytes,
    media_type: &'a str,
}

impl Sent<'_> {
    fn what(&self) -> String {
        format!("{} in {}", self.method, self.at.repository)
    }

    fn at_key(&self) -> (String, String, bool) {
        (self.at.host.clone(), self.at.repository.clone(), self.push)
    }

    fn request(&self, uri: &Uri, granted: Option<HeaderValue>) -> Result<Request<Body>, Error> {
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        request = request.header(header::USER_AGENT, "kubectl-opensdn");
        for form in INDEXES.iter().chain(&MANIFESTS) {
            request = request.header(header::ACCEPT, *form);
        }
        if let Some(granted) = granted {
            request = request.header(header::AUTHORIZATION, granted);
        }
        if !self.media_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, self.media_type);
        }
        let body = match self.method {
            Method::PUT | Method::POST => whole(self.bytes.clone()),
            _ => nothing(),
        };
        request
            .body(body)
            .map_err(|error| Error::Wrong { host: self.at.host.clone(), why: error.to_string() })
    }
}
