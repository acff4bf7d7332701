//! Calls of the Config API: which of its servers is asked, with which token, how often, and for how long. What is asked
//! is in `operations`.

mod answer;
mod error;
mod values;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use opensdn_http_client::{HttpClient, Incoming, whole_body};
use serde_json::Value;
use tokio::time::Instant;

use crate::jitter::jittered;
use crate::keystone::{self, Keystone, Token};
use crate::limits;

pub(crate) use answer::Answer;
use answer::Texts;
pub use error::{Error, Refusal, SentToken};

/// The first wait until the same is asked again; each is twice as long as the one before.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// Until a Keystone is asked again that gave no answer, and one that refused the login.
const NO_ANSWER_PAUSE: Duration = Duration::from_secs(2);
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// The servers of a Config API.
pub struct ConfigApi {
    http: HttpClient,
    /// Scheme and authority of each.
    addresses: Vec<Uri>,
    /// Which of them answered last.
    first: AtomicUsize,
    keystone: Option<Keystone>,
    login: tokio::sync::Mutex<LoggedIn>,
    limit: Duration,
    calls: AtomicU64,
    texts: Texts,
    /// Whether something may be written now.
    may_write: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The clock of the server at a time of ours.
    clock: Mutex<Option<(SystemTime, Instant)>>,
}

/// What came of the last login.
#[derive(Default)]
struct LoggedIn {
    token: Option<Token>,
    /// Until when Keystone is not asked again, and what it said.
    failed: Option<(Instant, Arc<keystone::Error>)>,
}

/// What is asked.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: &'a str,
    pub(crate) body: Option<&'a Value>,
    /// The version that is known already.
    pub(crate) etag: Option<&'a str>,
    pub(crate) repeat: Repeat,
    pub(crate) login: Login,
    /// The most of an answer.
    pub(crate) most: u64,
    pub(crate) reading: Reading,
}

/// How an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As JSON that comes to its end.
    Whole,
    /// The same, element by element.
    List,
    /// As events, by the caller, as they come.
    Events,
}

/// Whether the same may be asked twice, where it is not known whether a server has done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The second time changes nothing.
    Safe,
    /// It would overwrite what has changed meanwhile.
    Unsafe,
}

/// Whether a token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    WhereConfigured,
    Never,
}

impl ConfigApi {
    /// Any of the servers is asked that answers, `https://HOST:8082`. `limit` is for each call with all its repetitions.
    /// Without Keystone no token is sent, as is right where `aaa_mode` is `no-auth`.
    ///
    /// # Errors
    /// An address is none, or there is none.
    pub fn new(
        http: HttpClient,
        addresses: &[String],
        keystone: Option<Keystone>,
        limit: Duration,
    ) -> Result<Self, Error> {
        let addresses: Result<Vec<Uri>, Error> =
            addresses.iter().map(|address| server(address)).collect();
        let addresses = addresses?;
        if addresses.is_empty() {
            return Err(Error::NoAddress);
        }
        Ok(Self {
            http,
            addresses,
            first: AtomicUsize::new(0),
            keystone,
            login: tokio::sync::Mutex::default(),
            limit,
            calls: AtomicU64::new(0),
            texts: Texts::Shown,
            may_write: Arc::new(|| true),
            clock: Mutex::default(),
        })
    }

    /// Errors have no word of what the server says: who chose the server need not be who may read what it says.
    #[must_use]
    pub fn without_texts(self) -> Self {
        Self { texts: Texts::Hidden, ..self }
    }

    /// For what only one replica may do: `may_write` is asked right before each write is sent, also one that is tried again, and
    /// where it says no the call fails with [`Error::NotSent`]. Only a GET is no write.
    #[must_use]
    pub fn only_while(self, may_write: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { may_write: Arc::new(may_write), ..self }
    }

    /// How many requests were sent to its servers, repeated ones as well.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The time of the server that answered last, where it says one; else that of this machine.
    #[must_use]
    pub fn server_time(&self) -> SystemTime {
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        clock.map_or_else(SystemTime::now, |(time, at)| time + at.elapsed())
    }

    /// The limit of a call.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Asks another server first the next time.
    pub(crate) fn prefer_another(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    /// Opens a stream of events at the first server that offers one; each is asked once.
    pub(crate) async fn events(&self, path: &str) -> Result<Incoming, Error> {
        let call = Call { reading: Reading::Events, ..Call::new(Method::GET, path) };
        match self.each(&call, Instant::now() + self.limit).await? {
            Answer::Events(body) => Ok(body),
            Answer::Body { .. } | Answer::List(_) | Answer::NotModified => Err(Error::Unreadable {
                address: "that was asked".to_owned(),
                what: format!("GET {path}"),
                why: "no events".to_owned(),
            }),
        }
    }

    /// Asks until there is an answer that would be the same the next time, or the limit is over.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Answer, Error> {
        let deadline = Instant::now() + self.limit;
        let mut delay = FIRST_DELAY;
        loop {
            let error = match self.each(call, deadline).await {
                // One that is not safe to repeat would be outdated after a wait.
                Err(error) if call.repeat == Repeat::Safe && call.may_repeat(&error) => error,
                other => return other,
            };
            if Instant::now() + delay >= deadline {
                return Err(error);
            }
            tokio::time::sleep(jittered(delay)).await;
            delay = (delay * 2).min(LONGEST_DELAY);
        }
    }

    /// Asks each server once, until one answers.
    async fn each(&self, call: &Call<'_>, deadline: Instant) -> Result<Answer, Error> {
        let count = self.addresses.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut last = Error::NoAddress;
        for step in 0..count {
            let at = (first + step) % count;
            let Some(address) = self.addresses.get(at) else { continue };
            // One that accepts connections and does not answer leaves time for the others.
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(count - step).unwrap_or(1);
            match self.with_token(address, call, share).await {
                Err(error) if call.may_repeat(&error) => last = error,
                answered => {
                    self.first.store(at, Ordering::Relaxed);
                    return answered;
                }
            }
        }
        Err(last)
    }

    /// Asks with a token; where it has expired, once more with a new one.
    async fn with_token(
        &self,
        address: &Uri,
        call: &Call<'_>,
        limit: Duration,
    ) -> Result<Answer, Error> {
        let keystone = self.keystone.as_ref().filter(|_| call.login == Login::WhereConfigured);
        let Some(keystone) = keystone else { return self.once(address, call, None, limit).await };
        let token = self.token(keystone, None, limit).await?;
        match self.once(address, call, Some(&token), limit).await {
            Err(Error::Refused { refusal: Refusal::Unauthorized { .. }, .. }) => {
                let token = self.token(keystone, Some(&token), limit).await?;
                self.once(address, call, Some(&token), limit).await
            }
            other => other,
        }
    }

    /// The token that is known unless it is the refused one; else a new one. Each call of a pass would log in by itself: a login
    /// that failed is not tried again at once, as some accounts are locked after a few.
    async fn token(
        &self,
        keystone: &Keystone,
        refused: Option<&Token>,
        limit: Duration,
    ) -> Result<Token, Error> {
        let mut login = self.login.lock().await;
        if let Some(token) = login.token.as_ref().filter(|token| Some(*token) != refused) {
            return Ok(token.clone());
        }
        if let Some((until, error)) = &login.failed
            && Instant::now() < *until
        {
            return Err(Error::Login(error.clone()));
        }
        match keystone.token(limit).await {
            Ok(token) => {
                *login = LoggedIn { token: Some(token.clone()), failed: None };
                Ok(token)
            }
            Err(error) => {
                let pause = if error.is_passing() { NO_ANSWER_PAUSE } else { REFUSED_PAUSE };
                let error = Arc::new(error);
                login.failed = Some((Instant::now() + pause, error.clone()));
                Err(Error::Login(error))
            }
        }
    }

    async fn once(
        &self,
        address: &Uri,
        call: &Call<'_>,
        token: Option<&Token>,
        limit: Duration,
    ) -> Result<Answer, Error> {
        let what = format!("{} {}", call.method, call.path);
        let (most, most_values) = limits::lower(call.most, values::MOST_VALUES);
        let asked = answer::Asked {
            address: address.to_string(),
            what,
            most,
            most_values,
            reading: call.reading,
            texts: self.texts,
        };
        let request = call.request(address, token).map_err(|_| asked.unreadable("no request"))?;
        if call.method != Method::GET && !(self.may_write)() {
            return Err(Error::NotSent { what: asked.what });
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        let response =
            self.http.send(request, limit).await.map_err(|error| asked.unreachable(error))?;
        if let Some(time) = answer::date(response.headers()) {
            let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
            *clock = Some((time, Instant::now()));
        }
        let left = limit.saturating_sub(begin.elapsed());
        asked.answer(response, left, token).await
    }
}

impl Reading {
    fn media_type(self) -> &'static str {
        match self {
            Self::Whole | Self::List => "application/json",
            Self::Events => "text/event-stream",
        }
    }
}

impl Call<'_> {
    fn request(
        &self,
        address: &Uri,
        token: Option<&Token>,
    ) -> Result<Request<opensdn_http_client::Body>, http::Error> {
        let address = address.to_string();
        let uri = format!("{}{}", address.trim_end_matches('/'), self.path);
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(uri)
            // A body of another type is answered with 200 and has no effect.
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, self.reading.media_type());
        if let Some(etag) = self.etag {
            request = request.header(header::IF_NONE_MATCH, HeaderValue::from_str(etag)?);
        }
        if let Some(token) = token {
            request = request.header("x-auth-token", token.header());
        }
        let body = self.body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        request.body(whole_body(body))
    }

    /// Whether it is worth asking another server, or the same later.
    fn may_repeat(&self, error: &Error) -> bool {
        match error {
            Error::Unreachable { source, .. } => self.repeat == Repeat::Safe || source.is_unsent(),
            Error::Refused { refusal: Refusal::Unavailable(_), .. } => self.repeat == Repeat::Safe,
            Error::Login(error) => error.is_passing(),
            _ => false,
        }
    }
}

/// The address of a server without a path.
fn server(text: &str) -> Result<Uri, Error> {
    let wrong = || Error::Address(keystone::without_login(text));
    let uri: Uri = text.trim().parse().map_err(|_| wrong())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_login = text.contains('@');
    let is_plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
    if is_http && !has_login && is_plain { Ok(uri) } else { Err(wrong()) }
}

#[cfg(test)]
pub(crate) mod tests;
