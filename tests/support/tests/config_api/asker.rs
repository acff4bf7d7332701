//! A client that hides nothing: any method, any body, any header, and the answer as it came.

use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use opensdn_testing::Failed;
use opensdn_testing::config_api::{FakeConfigApi, Settings};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A fake, and a client of it.
pub(crate) struct Asker {
    pub(crate) fake: FakeConfigApi,
    pub(crate) token: Option<String>,
}

/// An answer.
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// None, where it ended too early.
    pub(crate) body: Option<Vec<u8>>,
}

impl Said {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone().unwrap()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a request on a connection of its own: a client that shares them tries again by itself.
pub(crate) async fn send(
    url: &str,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Failed> {
    let stream = TcpStream::connect(url.trim_start_matches("http://")).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It ends with the server's side, and what it ends with is in the answer.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

/// One call.
pub(crate) async fn call(
    url: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Said, Failed> {
    let host = url.trim_start_matches("http://");
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = send(url, request.body(Full::new(body.into()))?).await?;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.ok().map(|body| body.to_bytes().to_vec());
    Ok(Said { status: parts.status.as_u16(), headers: parts.headers, body })
}

impl Asker {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self { fake: FakeConfigApi::start(settings).unwrap(), token: None }
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Said {
        let mut headers = headers.to_vec();
        if let Some(token) = &self.token {
            headers.push(("x-auth-token", token));
        }
        call(self.fake.url(), method, path, &headers, body).await.unwrap()
    }

    /// The same, where the connection may end without an answer.
    pub(crate) async fn try_get(&self, path: &str) -> Result<Said, Failed> {
        call(self.fake.url(), Method::GET, path, &[], "").await
    }

    pub(crate) async fn get(&self, path: &str) -> Said {
        self.ask(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Said {
        self.ask(Method::POST, path, &[("content-type", "application/json")], body.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Said {
        self.ask(Method::PUT, path, &[("content-type", "application/json")], body.to_string()).await
    }

    /// The path of the object with the list.
    pub(crate) fn path(&self) -> String {
        format!("/global-vrouter-config/{}", self.fake.global_vrouter_config())
    }

    /// Writes properties of that object.
    pub(crate) async fn put_properties(&self, properties: Value) -> Said {
        self.put(&self.path(), &json!({"global-vrouter-config": properties})).await
    }

    /// Writes the whole list.
    pub(crate) async fn put_entries(&self, entries: Value) -> Said {
        let list = json!({"linklocal_services": {"linklocal_service_entry": entries}});
        self.put_properties(list).await
    }

    /// Writes a list of one entry with this instead of its own field.
    pub(crate) async fn put_with(&self, field: &str, value: Value) -> Said {
        let mut entry = entry();
        entry[field] = value;
        self.put_entries(json!([entry])).await
    }

    /// Reads the object; its properties.
    pub(crate) async fn object(&self) -> Value {
        self.get(&self.path()).await.json()["global-vrouter-config"].clone()
    }

    /// The list as a reader gets it.
    pub(crate) async fn entries(&self) -> Value {
        self.object().await["linklocal_services"]["linklocal_service_entry"].clone()
    }

    pub(crate) async fn etag(&self) -> String {
        self.get(&self.path()).await.header("etag").to_owned()
    }

    /// Updates one element of a list or a map.
    pub(crate) async fn update_collection(&self, update: Value) -> Said {
        let uuid = self.fake.global_vrouter_config();
        let body = json!({"uuid": uuid, "updates": [update]});
        self.post("/prop-collection-update", &body).await
    }
}

/// An entry as it should be.
pub(crate) fn entry() -> Value {
    json!({"linklocal_service_name": "config", "linklocal_service_ip": "10.10.10.1",
        "linklocal_service_port": 8082, "ip_fabric_service_ip": ["192.168.1.100"],
        "ip_fabric_service_port": 8082, "ip_fabric_DNS_service_name": ""})
}
