//! What the sandbox promises to those who test with it.

use std::error::Error;
use std::time::Instant;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use opensdn_tests::sandbox::Sandbox;

type Outcome = Result<(), Box<dyn Error>>;

async fn create_namespace(client: &Client, name: &str) -> Result<(), kube::Error> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.map(drop)
}

#[tokio::test]
async fn is_ready_in_ten_seconds() -> Outcome {
    let started = Instant::now();
    let sandbox = Sandbox::start().await?;
    println!("ready after {:?}", started.elapsed());
    create_namespace(&sandbox.client()?, "first").await?;
    Ok(())
}
