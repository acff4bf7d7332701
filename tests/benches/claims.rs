//! What it costs to take the claims of a Config with as many link-local entries as its schema allows,
//! from a real API server and etcd that share the cores: the first time, again for the same object,
//! and for another one that is refused.

use std::time::{Duration, Instant};

use opensdn_policy_host::Claim;
use opensdn_testing::Failed;
use opensdn_testing::installer::install_crds;
use opensdn_testing::measure::{Row, report};
use opensdn_testing::sandbox::Sandbox;
use opensdn_webhook::claims::{Claims, GRACE, Holder};
use opensdn_webhook::metrics::Metrics;

/// One for each entry.
const KEYS: usize = 257;
/// Longer than any review has.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let client = sandbox.client()?;
    install_crds(&client, &opensdn_crds::all()).await?;
    let claims = Claims::start(client, GRACE, Metrics::new());
    // Connections are made, and the definition is served.
    take(&claims, "warm-up", "10.0").await?;
    let mut rows = Vec::new();
    for (name, holder, network) in [
        ("take 257 claims", "first", "10.1"),
        ("take them again, for the same object", "first", "10.1"),
    ] {
        let started = Instant::now();
        take(&claims, holder, network).await?;
        rows.push(Row::new(name, millis(started), "ms").aim("1,000"));
    }
    let started = Instant::now();
    if take(&claims, "second", "10.1").await.is_ok() {
        return Err("another object got them".into());
    }
    rows.push(Row::new("refuse them to another object", millis(started), "ms"));
    report("claims", &rows)?;
    Ok(())
}

fn millis(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}

async fn take(claims: &Claims, name: &str, network: &str) -> Result<(), Failed> {
    let claim = |number: usize| Claim {
        scope: "link-local-address".into(),
        key: format!("{network}.{}.{}:80", number / 256, number % 256),
        value: None,
        pointer: "/spec/serviceConfiguration/linklocalServiceConfig".into(),
        policy: "unique".into(),
        code: "OSDN1001".into(),
    };
    let wanted: Vec<Claim> = (0..KEYS).map(claim).collect();
    let holder = Holder {
        group: "tf.tungsten.io".into(),
        version: "v1alpha1".into(),
        kind: "Config".into(),
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
    };
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    claims.take(&holder, &wanted, &[], deadline).await?.commit();
    Ok(())
}
