//! What a process says on its admin port, which is plain HTTP.

use std::net::SocketAddr;

use kube::{Client, Config};

use crate::Failed;

/// What it answers to `GET <path>` with a status of success, such as `/metrics`.
///
/// # Errors
/// It does not answer, or with another status.
pub async fn get(admin: SocketAddr, path: &str) -> Result<String, Failed> {
    let client = Client::try_from(Config::new(format!("http://{admin}").parse()?))?;
    Ok(client.request_text(http::Request::get(path).body(Vec::new())?).await?)
}
