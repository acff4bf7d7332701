//! Asks the API server for the parts of a snapshot: a list in one call whatever its length, an object by its name, a
//! review. A part that may not be read is unknown with the reason; only where nothing can be asked at all is that
//! a failure. Nothing is written but by `patch`: a review is stored nowhere.

use futures::{AsyncBufRead, AsyncReadExt as _, StreamExt as _};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Error};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{Read, list, text};
use crate::clients::{is_absent, unanswered, why};
use crate::exit::Failure;
use crate::install::object::MANAGER;
use crate::install::requests::Apply;

/// So many objects are in the first page of a list.
const FIRST: usize = 50;
/// And so many in the others: as many as are about so large.
const MOST: usize = 500;
const BYTES: usize = 8 << 20;

/// Asks one API server.
#[derive(Clone)]
pub(crate) struct Asker {
    client: Client,
}

/// What the API server says of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answered {
    /// The body.
    pub(crate) body: Value,
    /// Its clock, by the header Date: to the second.
    pub(crate) date: Option<Timestamp>,
}

/// The beginning of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// The list, with its first objects.
    pub(crate) list: Value,
    /// There are no more.
    pub(crate) is_whole: bool,
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) bytes: Vec<u8>,
    /// When the file was changed last.
    pub(crate) changed: Option<Timestamp>,
}

/// Why a text was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRead {
    /// There is none of that name.
    #[error("there is none: the answer is 404")]
    Absent,
    /// Nothing listens at the port to which the API server should pass it on.
    #[error("{0}")]
    Refused(String),
    /// What the API server says, in words.
    #[error("{0}")]
    Failed(String),
}

impl From<Error> for NotRead {
    fn from(error: Error) -> Self {
        match &error {
            Error::Api(status) if status.code == 404 => Self::Absent,
            // In the words of Go's net package alone: the code is that of a pod that is not reached.
            Error::Api(status) if status.message.ends_with("connect: connection refused") => {
                Self::Refused(why(&error))
            }
            _ => Self::Failed(why(&error)),
        }
    }
}

/// The last bytes alone.
fn range(last: u64) -> String {
    format!("bytes=-{last}")
}

impl Asker {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The version of the API server: the first question, whose answer says whether there is anything to ask.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn version(&self, server: &str) -> Result<Answered, Failure> {
        let doing = format!("ask {server} for its version");
        self.whole("/version").await.map_err(|error| unanswered(&doing, &error))
    }

    async fn whole(&self, path: &str) -> Result<Answered, Error> {
        let request = Request::get(path).body(kube::client::Body::empty());
        let response = self.client.send(request.map_err(Error::HttpError)?).await?;
        let (status, date) = (response.status(), response.headers().get(http::header::DATE));
        let date = date.and_then(|date| date.to_str().ok()).and_then(of_http);
        if !status.is_success() {
            // The same again by the way that makes an error of it.
            let request = Request::get(path).body(Vec::new()).map_err(Error::HttpError)?;
            let body = self.client.request::<Value>(request).await?;
            return Ok(Answered { body, date });
        }
        let bytes = response.into_body().collect_bytes().await?;
        let body = serde_json::from_slice(&bytes).map_err(Error::SerdeError)?;
        Ok(Answered { body, date })
    }

    /// The objects of a list, without a limit: the number of calls does not depend on that of objects.
    pub(crate) async fn list(&self, path: &str) -> Read<Vec<Value>> {
        match self.get(path).await {
            Read::Known(mut list) => match list.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => Read::Known(items),
                // What says so is no API server: one that has none says an empty list, or null.
                Some(Value::Null) => Read::Known(Vec::new()),
                _ => Read::Unknown(format!("the answer to {path} is no list")),
            },
            Read::Absent => Read::Absent,
            Read::Unknown(why) => Read::Unknown(why),
        }
    }

    /// What `pick` makes of the objects of a list, which is asked for in pages: others make objects as large and as many as they
    /// like, and one page is held at a time.
    pub(crate) async fn picked<T>(
        &self,
        path: &str,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Read<Vec<T>> {
        let mut found = Vec::new();
        let pages = self.pages(path, usize::MAX, |page| {
            found.extend(list(&page, "/items").filter_map(&pick));
        });
        pages.await.map(|_| found)
    }

    /// A list as it comes, asked for in pages, and no more of it than about so many bytes.
    pub(crate) async fn part(&self, path: &str, most: usize) -> Read<Part> {
        let mut whole: Option<Value> = None;
        let pages = self.pages(path, most, |mut page| {
            if let Some(metadata) = page.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("continue");
                metadata.remove("remainingItemCount");
            }
            let Some(list) = &mut whole else {
                whole = Some(page);
                return;
            };
            let more = page.get_mut("items").map(Value::take);
            if let (Some(Value::Array(all)), Some(Value::Array(more))) =
                (list.get_mut("items"), more)
            {
                all.extend(more);
            }
        });
        let is_whole = pages.await;
        is_whole.map(|is_whole| Part { list: whole.unwrap_or_default(), is_whole })
    }

    /// Goes through the pages of a list until about so many bytes are read; whether that is all of it.
    async fn pages(&self, path: &str, most: usize, mut take: impl FnMut(Value)) -> Read<bool> {
        let (mut limit, mut token, mut read) = (FIRST, String::new(), 0);
        let with = if path.contains('?') { '&' } else { '?' };
        loop {
            let path = format!("{path}{with}limit={limit}{token}");
            let (page, bytes) = match self.page_of_list(&path).await {
                Read::Known(page) => page,
                Read::Absent => return Read::Absent,
                Read::Unknown(why) => return Read::Unknown(why),
            };
            let next = text(&page, "/metadata/continue").to_owned();
            let each = bytes / list(&page, "/items").count().max(1);
            limit = (BYTES / each.max(1)).clamp(1, MOST);
            read += bytes;
            take(page);
            if next.is_empty() || read >= most {
                return Read::Known(next.is_empty());
            }
            token = format!("&continue={}", utf8_percent_encode(&next, NON_ALPHANUMERIC));
        }
    }

    /// A page of a list, and how many bytes it had.
    async fn page_of_list(&self, path: &str) -> Read<(Value, usize)> {
        let request = match Request::get(path).body(Vec::new()) {
            Ok(request) => request,
            Err(error) => return Read::Unknown(error.to_string()),
        };
        let text = match self.client.request_text(request).await {
            Ok(text) => text,
            Err(Error::Api(status)) if is_absent(&status) => return Read::Absent,
            Err(error) => return Read::Unknown(why(&error)),
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(page)
                if page.get("items").is_some_and(|items| items.is_array() || items.is_null()) =>
            {
                Read::Known((page, text.len()))
            }
            _ => Read::Unknown(format!("the answer to {path} is no list")),
        }
    }

    /// An object.
    pub(crate) async fn get(&self, path: &str) -> Read<Value> {
        self.send(Method::GET, path, Vec::new()).await
    }

    /// What the API server says of something that it does not store.
    pub(crate) async fn review(&self, path: &str, review: &Value) -> Read<Value> {
        self.send(Method::POST, path, review.to_string().into_bytes()).await
    }

    /// The first bytes of a text, whatever else comes.
    ///
    /// # Errors
    /// There is none, or why it was not read.
    pub(crate) async fn page(&self, path: &str, most: u64) -> Result<String, NotRead> {
        let request = Request::get(path).body(Vec::new()).map_err(Error::HttpError)?;
        let reader = self.client.request_stream(request).await?;
        let mut bytes = Vec::new();
        let read = Box::pin(reader).take(most).read_to_end(&mut bytes).await;
        read.map_err(|error| NotRead::Failed(error.to_string()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The lines of a text as they come, of its last bytes where so many are given; else why there are none.
    ///
    /// # Errors
    /// What the API server says, in words.
    pub(crate) async fn lines(
        &self,
        path: &str,
        last: Option<u64>,
    ) -> Result<impl AsyncBufRead + use<>, String> {
        let request = match last {
            Some(last) => Request::get(path).header(http::header::RANGE, range(last)),
            None => Request::get(path),
        };
        let request = request.body(Vec::new()).map_err(|error| error.to_string())?;
        self.client.request_stream(request).await.map_err(|error| why(&error))
    }

    /// The end of a file of a node, by a kubelet that gives parts of files.
    ///
    /// # Errors
    /// There is none, or why it was not read.
    pub(crate) async fn end(&self, path: &str, last: u64) -> Result<End, NotRead> {
        let request = Request::get(path).header(http::header::RANGE, range(last));
        let request = request.body(kube::client::Body::empty()).map_err(Error::HttpError)?;
        let response = self.client.send(request).await?;
        match response.status() {
            http::StatusCode::NOT_FOUND => return Err(NotRead::Absent),
            status if !status.is_success() => {
                return Err(NotRead::Failed(format!("the API server says {status}")));
            }
            _ => {}
        }
        let changed = response.headers().get(http::header::LAST_MODIFIED);
        let changed = changed.and_then(|date| date.to_str().ok()).and_then(of_http);
        let mut body = response.into_body().into_data_stream();
        let (mut bytes, most) = (Vec::new(), usize::try_from(last).unwrap_or(usize::MAX));
        while let Some(chunk) = body.next().await {
            bytes.extend_from_slice(&chunk?);
            // One that gives a file whole: its end is what counts.
            if bytes.len() > most.saturating_mul(2) {
                bytes.drain(..bytes.len() - most);
            }
        }
        bytes.drain(..bytes.len().saturating_sub(most));
        Ok(End { bytes, changed })
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// It is not there, or may not be changed.
    pub(crate) async fn patch(
        &self,
        path: &str,
        patch: &Value,
        apply: Apply,
    ) -> Result<(), Failure> {
        let tried = if apply == Apply::DryRun { "&dryRun=All" } else { "" };
        let path_and_query = format!("{path}?fieldManager={MANAGER}{tried}");
        let request = Request::patch(path_and_query)
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(patch.to_string().into_bytes());
        let doing = format!("change {path}");
        let request = request.map_err(|error| unanswered(&doing, &Error::HttpError(error)))?;
        let changed = self.client.request::<Value>(request).await;
        changed.map(drop).map_err(|error| unanswered(&doing, &error))
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Read<Value> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, "application/json").body(body);
        let request = match request {
            Ok(request) => request,
            Err(error) => return Read::Unknown(error.to_string()),
        };
        match self.client.request::<Value>(request).await {
            Ok(value) => Read::Known(value),
            Err(Error::Api(status)) if is_absent(&status) => Read::Absent,
            Err(error) => Read::Unknown(why(&error)),
        }
    }
}

/// `Tue, 24 Nov 2026 18:33:23 GMT`.
fn of_http(date: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = date.split(' ').skip(1);
    let day = parts.next()?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|one| *one == month)? + 1;
    let (year, clock) = (parts.next()?, parts.next()?);
    format!("{year}-{month:02}-{day}T{clock}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::of_tests;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};

    fn asker(answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Asker {
        let server = FakeApiServer::start(answer);
        Asker::new(of_tests(server.url()))
    }

    const LIST: &str = "/apis/tf.tungsten.io/v1alpha1/managers";

    #[tokio::test]
    async fn a_kind_that_is_not_served_and_an_object_that_is_not_there_are_absent() {
        // The first is a text, the second a Status: kube-apiserver 1.33 to 1.36.
        let asker = asker(|request, _| match request.ends_with("/managers") {
            true => Reply::Text(404, "404 page not found\n"),
            false => refusal(404, "NotFound", "managers.tf.tungsten.io \"a\" not found"),
        });
        assert_eq!(asker.list(LIST).await, Read::Absent);
        assert_eq!(asker.get(&format!("{LIST}/a")).await, Read::Absent);
    }

    #[tokio::test]
    async fn what_a_proxy_does_not_know_is_not_absent() {
        for reply in ["<html>404 Not Found</html>", "no such page", ""] {
            let asker = asker(move |_, _| Reply::Text(404, reply));
            let read = asker.list(LIST).await;
            assert!(matches!(read, Read::Unknown(_)), "{reply:?}: {read:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_no_list_is_unknown_and_an_empty_one_is_known() {
        let asker = asker(|_, before| match before {
            0 => Reply::Document(200, "", json!({"kind": "ManagerList", "items": null})),
            _ => Reply::Document(200, "", json!({"kind": "Other"})),
        });
        assert_eq!(asker.list(LIST).await, Read::Known(Vec::new()));
        let why = format!("the answer to {LIST} is no list");
        assert_eq!(asker.list(LIST).await, Read::Unknown(why));
    }

    #[test]
    fn the_clock_of_the_api_server_is_read_from_its_date() {
        let read = of_http("Tue, 24 Nov 2026 18:33:23 GMT");
        assert_eq!(read, "2026-11-24T18:33:23Z".parse().ok());
        assert_eq!(of_http("yesterday"), None);
    }
}
