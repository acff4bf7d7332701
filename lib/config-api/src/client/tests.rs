//! Calls of servers on this machine that give canned answers.

use std::collections::VecDeque;
use std::sync::Arc;

use http::Method;
use opensdn_http_client::Trust;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::keystone::{Credentials, Password};
use crate::operations::Version;

/// A server that gives one answer after the other, each on a connection of its own, and remembers what it was asked.
pub(crate) struct Canned {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    pub(crate) async fn start<T: ToString>(answers: impl IntoIterator<Item = T>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut answers: VecDeque<String> =
            answers.into_iter().map(|one| one.to_string()).collect();
        let requests = asked.clone();
        tokio::spawn(async move {
            while let Some(answer) = answers.pop_front() {
                let (stream, _) = listener.accept().await.unwrap();
                let request = exchange(stream, &answer).await;
                requests.lock().unwrap().push(request);
            }
        });
        Self { address, asked }
    }

    pub(crate) fn api(&self, keystone: Option<&Canned>) -> ConfigApi {
        api(&[&self.address], keystone)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn exchange(stream: TcpStream, answer: &str) -> String {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut request).await.unwrap() > 0, "{request:?}");
    }
    let length = request.to_lowercase();
    let length =
        length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    request + &String::from_utf8(body).unwrap()
}

fn http_client() -> HttpClient {
    HttpClient::new(Trust::unverified(), Duration::from_secs(5)).unwrap()
}

pub(crate) fn api(addresses: &[&str], keystone: Option<&Canned>) -> ConfigApi {
    let keystone = keystone.map(|canned| {
        let credentials = Credentials {
            auth_url: format!("{}/v3", canned.address),
            user: "admin".to_owned(),
            password: Password::new("s3cret".to_owned()),
            project: "admin".to_owned(),
            user_domain: "Default".to_owned(),
            project_domain: "Default".to_owned(),
        };
        Keystone::new(http_client(), credentials).unwrap()
    });
    let addresses: Vec<String> = addresses.iter().map(|one| (*one).to_owned()).collect();
    ConfigApi::new(http_client(), &addresses, keystone, Duration::from_secs(10)).unwrap()
}

pub(crate) fn answer(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

pub(crate) fn ok(body: &Value) -> String {
    answer("200 OK", "application/json", &body.to_string())
}

fn token(text: &str) -> String {
    format!(
        "HTTP/1.1 201 Created\r\nX-Subject-Token: {text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// What the filter of `aaa_mode` cloud-admin says under Python 3: a length, and no body.
const CUT: &str = "HTTP/1.1 403 Permission Denied\r\nContent-type: text/plain\r\nContent-Length: 21\r\n\
                   Connection: close\r\n\r\n";

#[tokio::test]
async fn a_token_that_has_expired_is_replaced_once() {
    let expired = answer("401 Unauthorized", "text/html", "");
    let found = ok(&json!({"uuid": "u"}));
    let canned = Canned::start([expired, found.clone(), found]).await;
    let keystone = Canned::start([token("t1"), token("t2")]).await;
    let api = canned.api(Some(&keystone));
    assert_eq!(api.id_of("k", &["a"]).await.unwrap().as_deref(), Some("u"));
    assert_eq!(api.id_of("k", &["a"]).await.unwrap().as_deref(), Some("u"));
    let sent: Vec<bool> =
        canned.asked().iter().map(|one| one.contains("x-auth-token: t2")).collect();
    assert_eq!(sent, [false, true, true]);
    assert!(canned.asked().iter().all(|one| one.contains("content-type: application/json")));
    assert_eq!((keystone.asked().len(), api.calls()), (2, 3));
}

#[tokio::test]
async fn a_token_that_is_refused_twice_is_an_error_without_the_token() {
    let refused = answer("401 Unauthorized", "application/json", "{}");
    let canned = Canned::start([&refused, &refused]).await;
    let keystone = Canned::start([token("t1"), token("t2")]).await;
    let error = canned.api(Some(&keystone)).aaa_mode().await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("is this the Keystone") && !text.contains("t2"), "{text}");
    let canned = Canned::start([&refused]).await;
    let error = canned.api(None).aaa_mode().await.unwrap_err().to_string();
    assert!(error.contains("name Keystone, a user and its password"), "{error}");
}

#[tokio::test]
async fn a_login_that_keystone_refuses_is_said_without_the_password() {
    let keystone = Canned::start([answer("401 Unauthorized", "application/json", "{}")]).await;
    let error = api(&["http://127.0.0.1:1"], Some(&keystone)).aaa_mode().await.unwrap_err();
    let Error::Login(source) = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("refuses the login of the user admin"), "{source}");
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_login_that_failed_is_not_tried_again_by_the_next_call() {
    let keystone = Canned::start([answer("401 Unauthorized", "application/json", "{}")]).await;
    let api = api(&["http://127.0.0.1:1"], Some(&keystone));
    for _ in 0..3 {
        let error = api.aaa_mode().await.unwrap_err();
        let Error::Login(source) = &error else { panic!("{error:?}") };
        assert!(source.to_string().contains("refuses the login"), "{source}");
    }
    assert_eq!(keystone.asked().len(), 1);
}

#[tokio::test]
async fn the_cut_403_is_known_by_its_status_and_that_of_rbac_by_its_text() {
    let error = Canned::start([CUT]).await.api(None).aaa_mode().await.unwrap_err().to_string();
    assert!(
        error.ends_with("the user needs the role admin, by that name (aaa_mode cloud-admin)"),
        "{error}"
    );
    let said = "Permission Denied for bob as ['member'] to U global-vrouter-config in admin";
    let rbac = Canned::start([answer("403 Forbidden", "text/html", said)]).await;
    let error = rbac.api(None).aaa_mode().await.unwrap_err().to_string();
    assert!(error.ends_with(&format!("403: {said}")), "{error}");
}

#[tokio::test]
async fn an_unavailable_server_is_asked_again_and_one_that_is_not_there_is_passed_over() {
    let unavailable = answer("503 Service Unavailable", "text/html", "x");
    let canned = Canned::start([unavailable, ok(&json!({"aaa-mode": "rbac"}))]).await;
    let api = api(&["http://127.0.0.1:1", &canned.address], None);
    assert_eq!(api.aaa_mode().await.unwrap(), crate::AaaMode::Rbac);
    assert_eq!(api.calls(), 4);
}

#[tokio::test]
async fn a_write_of_properties_is_not_repeated_where_it_may_have_been_done() {
    let canned = Canned::start([answer("503 Service Unavailable", "text/html", "x")]).await;
    let error = canned.api(None).put("k", "u", serde_json::Map::new()).await.unwrap_err();
    assert!(error.is_passing(), "{error}");
    assert_eq!(canned.asked().len(), 1);
    let unsent = api(&["http://127.0.0.1:1", &canned.address], None);
    assert!(unsent.put("k", "u", serde_json::Map::new()).await.unwrap_err().is_passing());
}

#[tokio::test]
async fn a_call_ends_at_its_limit() {
    let canned = Canned::start([ok(&json!({}))]).await;
    let limit = Duration::from_millis(300);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let api =
        ConfigApi::new(http_client(), &[silent, "http://127.0.0.1:1".to_owned()], None, limit);
    let begin = Instant::now();
    let error = api.unwrap().aaa_mode().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    drop(canned);
}

#[tokio::test]
async fn what_is_not_there_is_no_error_and_a_version_is_compared_by_the_server() {
    let absent = answer("404 Not Found", "text/html", "Name ['a'] not found");
    let unchanged = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_owned();
    let changed = ok(&json!({"k": {}}));
    let canned = Canned::start([absent.clone(), unchanged, changed, absent]).await;
    let api = canned.api(None);
    assert_eq!(api.id_of("k", &["a"]).await.unwrap(), None);
    assert_eq!(api.version("k", "u", "\"1\"").await.unwrap(), Version::Newest);
    assert_eq!(api.version("k", "u", "\"1\"").await.unwrap(), Version::Outdated);
    assert_eq!(api.version("k", "u", "\"1\"").await.unwrap(), Version::Outdated);
    assert!(canned.asked()[1].contains("if-none-match: \"1\"\r\n"), "{:?}", canned.asked());
}

#[tokio::test]
async fn an_answer_that_is_no_json_or_too_long_is_no_config_api() {
    let canned =
        Canned::start([answer("200 OK", "text/html", "<html>"), ok(&json!([1, 2, 3]))]).await;
    let api = canned.api(None);
    let error = api.aaa_mode().await.unwrap_err().to_string();
    assert!(error.contains("is this the address of a Config API?"), "{error}");
    let error = api.call(&Call { most: 3, ..Call::new(Method::GET, "/") }).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn an_address_is_a_server_alone() {
    let refused =
        ["", "host:8082", "ftp://h", "http://u:s3cret@h:8082", "http://h:8082/v1", "http://h?a"];
    for text in refused {
        let error = ConfigApi::new(http_client(), &[text.to_owned()], None, Duration::ZERO);
        let error = error.err().unwrap().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert!(ConfigApi::new(http_client(), &[], None, Duration::ZERO).is_err());
}

#[tokio::test]
async fn a_page_is_no_stream_of_events_and_another_server_may_be_asked_first() {
    let page = answer("200 OK", "text/html", "<html>");
    let stream = answer("200 OK", "text/event-stream; charset=utf-8", ":\n\n");
    let (one, other) = (Canned::start([page]).await, Canned::start([stream]).await);
    let api = api(&[&one.address, &other.address], None);
    let error = api.events("/watch").await.unwrap_err().to_string();
    assert!(error.contains("no events"), "{error}");
    api.prefer_another();
    assert!(api.events("/watch").await.is_ok());
    assert!(other.asked()[0].contains("accept: text/event-stream\r\n"), "{:?}", other.asked());
}

#[tokio::test]
async fn a_write_that_may_not_be_made_any_more_is_not_sent_and_a_read_is() {
    let canned = Canned::start([ok(&json!({}))]).await;
    let api = canned.api(None).only_while(|| false);
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let error = api.call(&Call::new(method, "/virtual-network/1")).await.unwrap_err();
        assert!(matches!(error, Error::NotSent { .. }), "{error}");
    }
    assert!(canned.asked().is_empty());
    assert!(api.call(&Call::new(Method::GET, "/virtual-network/1")).await.is_ok());
}
