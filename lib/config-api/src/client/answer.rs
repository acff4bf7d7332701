//! An answer of the Config API: its status before its body, which may be cut, and a body that is not longer than it may
//! be. What it means is not known here.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Response, StatusCode, header};
use opensdn_http_client as http_client;
use opensdn_http_client::{Incoming, read_whole};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::Reading;
use super::error::{Error, Refusal, SentToken};
use super::values::{self, Unread};
use crate::keystone::Token;
use crate::limits;

/// The most of a text that says why.
const MOST_SAID: u64 = 64 << 10;
const MOST_SHOWN: usize = 400;

/// An answer that is no error.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With the version of the object.
    Body { value: Value, etag: Option<String> },
    /// A list, of which each element is read by itself.
    List(List),
    /// The version that was sent is the newest.
    NotModified,
    /// They are still to come.
    Events(Incoming),
}

/// Whether errors have what the server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    Shown,
    Hidden,
}

/// The text of a list.
#[derive(Debug)]
pub(crate) struct List {
    bytes: Vec<u8>,
    asked: Asked,
}

impl List {
    /// What is made of each element of the list with that name.
    ///
    /// # Errors
    /// It is no list, or an element is too large.
    pub(crate) fn each(&self, name: &str, mut take: impl FnMut(Value)) -> Result<(), Error> {
        match values::each(&self.bytes, name, self.asked.most_values, &mut take) {
            Ok(true) => Ok(()),
            // What is no list was not read: an empty one says so.
            Ok(false) => Err(self.asked.unreadable("something that is no list")),
            Err(unread) => Err(self.asked.unread(&unread)),
        }
    }
}

/// What was asked of whom, for errors.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) address: String,
    pub(super) what: String,
    pub(super) most: u64,
    pub(super) most_values: usize,
    pub(super) reading: Reading,
    pub(super) texts: Texts,
}

impl Asked {
    pub(super) fn unreachable(&self, source: http_client::Error) -> Error {
        let (address, what) = (self.address.clone(), self.what.clone());
        Error::Unreachable { address, what, source: Box::new(source) }
    }

    pub(super) fn unreadable(&self, why: &str) -> Error {
        let (address, what) = (self.address.clone(), self.what.clone());
        Error::Unreadable { address, what, why: why.to_owned() }
    }

    fn too_large(&self, most: &str) -> Error {
        limits::exceed();
        let (address, what) = (self.address.clone(), self.what.clone());
        Error::TooLarge { address, what, most: most.to_owned() }
    }

    pub(super) async fn answer(
        self,
        response: Response<Incoming>,
        limit: Duration,
        token: Option<&Token>,
    ) -> Result<Answer, Error> {
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(Answer::NotModified);
        }
        if !status.is_success() {
            let mut said = match self.texts {
                Texts::Shown => said(response, limit).await,
                Texts::Hidden => String::new(),
            };
            if let Some(token) = token {
                said = token.hidden_in(&said);
            }
            let sent = token.map_or(SentToken::Absent, |_| SentToken::Sent);
            let refusal = Refusal::new(status, said, sent);
            let (address, what) = (self.address.clone(), self.what.clone());
            return Err(Error::Refused { address, what, refusal });
        }
        if self.reading == Reading::Events {
            return self.events(response);
        }
        let etag = response.headers().get(header::ETAG);
        let etag = etag.and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        let read = tokio::time::timeout(limit, read_whole(response.into_body(), self.most, limit));
        let bytes = match read.await {
            Ok(Err(http_client::Error::TooLong { most })) => {
                return Err(self.too_large(&format!("{most} bytes")));
            }
            Ok(read) => read.map_err(|error| self.unreachable(error))?,
            Err(_) => {
                let source = http_client::Error::TimedOut { host: self.address.clone(), limit };
                return Err(self.unreachable(source));
            }
        };
        if self.reading == Reading::List {
            return Ok(Answer::List(List { bytes, asked: self }));
        }
        if bytes.is_empty() {
            return Ok(Answer::Body { value: Value::Null, etag });
        }
        let value =
            values::read(&bytes, self.most_values).map_err(|unread| self.unread(&unread))?;
        Ok(Answer::Body { value, etag })
    }

    fn unread(&self, unread: &Unread) -> Error {
        match unread {
            Unread::NoJson => self.unreadable("no JSON"),
            Unread::TooMany => self.too_large(&format!("{} values", self.most_values)),
        }
    }
}

impl Asked {
    fn events(&self, response: Response<Incoming>) -> Result<Answer, Error> {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // A proxy's page is no silent stream.
        if kind.split(';').next().unwrap_or_default().trim() != Reading::Events.media_type() {
            return Err(self.unreadable("no events"));
        }
        Ok(Answer::Events(response.into_body()))
    }
}

/// The time of a server.
pub(super) fn date(headers: &HeaderMap) -> Option<SystemTime> {
    let date = headers.get(header::DATE)?.to_str().ok()?;
    OffsetDateTime::parse(date, &Rfc2822).ok().map(SystemTime::from)
}

/// What an answer says of its error, in one line; nothing where the body is cut, too long or a page.
async fn said(response: Response<Incoming>, limit: Duration) -> String {
    let read = tokio::time::timeout(limit, read_whole(response.into_body(), MOST_SAID, limit));
    // The status says what is wrong: a text that cannot be read is no other error.
    let Ok(Ok(bytes)) = read.await else { return String::new() };
    line(&bytes)
}

/// Not what changes the order of a text, or is not seen.
fn is_shown(letter: char) -> bool {
    let is_hidden = matches!(
        letter,
        '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
    );
    !letter.is_control() && !is_hidden
}

fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let json: Option<Value> = serde_json::from_str(&text).ok();
    let message = json.as_ref().and_then(|json| {
        let message = json.pointer("/error/message").or_else(|| json.pointer("/error/title"));
        message.or(Some(json)).and_then(Value::as_str)
    });
    let text = message.unwrap_or(&text);
    if text.trim_start().starts_with('<') {
        return String::new();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let shown: String = words.join(" ").chars().filter(|c| is_shown(*c)).collect();
    match shown.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("{}…", shown.get(..at).unwrap_or_default()),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_says_is_one_line_without_markup() {
        assert_eq!(line(b"Name ['a',\n 'b'] not found\n"), "Name ['a', 'b'] not found");
        assert_eq!(line(b"<html>\n<title>404</title>"), "");
        let keystone =
            br#"{"error": {"code": 401, "title": "Unauthorized", "message": "no token"}}"#;
        assert_eq!(line(keystone), "no token");
        assert_eq!(line(&vec![b'a'; 1000]).chars().count(), MOST_SHOWN + 1);
        assert_eq!(line(b"a\x1b[31mb"), "a[31mb");
    }

    #[test]
    fn the_time_is_that_of_the_answer() {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(date(&headers), Some(expected));
        headers.insert(header::DATE, "now".parse().unwrap());
        assert_eq!(date(&headers), None);
    }
}
