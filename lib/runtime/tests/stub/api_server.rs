//! The server: a function from a request to an answer, and the requests that came.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) uri: String,
    pub(crate) body: Value,
}

type Answer = dyn Fn(&Seen) -> Option<(u16, String)> + Send + Sync;

/// The server and the requests that came.
#[derive(Clone)]
pub(crate) struct ApiServer {
    answer: Arc<Answer>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl ApiServer {
    /// Starts it. A request for which `answer` has none is never answered.
    pub(crate) async fn start(
        answer: impl Fn(&Seen) -> Option<(u16, Value)> + Send + Sync + 'static,
    ) -> (Self, Client) {
        let text = move |seen: &Seen| answer(seen).map(|(code, body)| (code, body.to_string()));
        Self::start_text(text).await
    }

    /// The same for answers that cannot be made as a `Value`.
    pub(crate) async fn start_text(
        answer: impl Fn(&Seen) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> (Self, Client) {
        let server = Self { answer: Arc::new(answer), seen: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut config = Config::new(url.parse().unwrap());
        // A proxy of this machine's environment must not see the request.
        config.proxy_url = None;
        config.default_retry = false;
        (server, Client::try_from(config).unwrap())
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(State(server): State<ApiServer>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body: Bytes = to_bytes(body, usize::MAX).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let seen = Seen { method: head.method.to_string(), uri: head.uri.to_string(), body };
    server.seen.lock().unwrap().push(seen.clone());
    let Some((code, body)) = (server.answer)(&seen) else {
        return std::future::pending().await;
    };
    let code = StatusCode::from_u16(code).unwrap();
    (code, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// An answer that refuses.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    (code, status)
}
