//! What a create through a real API server costs more with the webhook, which shares the cores with it:
//! without a webhook, with one that has no policy, with all built-in ones; and how much of that the webhook
//! itself takes. Deliberately not here: reviews per second (`webhook`).

mod surroundings;

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_testing::Failed;
use opensdn_testing::admin_port;
use opensdn_testing::kubectl;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::time::Instant;

type Outcome<T> = Result<T, Failed>;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");
/// Creates of which the median counts; each is deleted again.
const CREATES: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let bare = Sandbox::builder().only_api_server().start().await?;
    opensdn_testing::installer::install_crds(&bare.client()?, &opensdn_crds::all()).await?;
    surroundings::create(&bare).await?;
    let without = creates(&bare).await?;
    drop(bare);

    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let product = Installation::built()?.without_policies().install(&sandbox).await?;
    surroundings::create(&sandbox).await?;
    let mut rows = rows("without the webhook", &without);
    rows.extend(with(&sandbox, &product, "with it and no policy").await?);
    enforce_all(&sandbox).await?;
    let all = with(&sandbox, &product, "with it and all built-in policies").await?;
    let more = all.first().map_or(0.0, |row| row.value) - without.percentile(0.5) / 1_000.0;
    rows.extend(all);
    rows.push(Row::new("what all policies add, p50", more, "ms").aim("2"));
    report("create", &rows)?;
    Ok(())
}

async fn with(sandbox: &Sandbox, product: &Product, how: &str) -> Outcome<Vec<Row>> {
    let before = reviewed(product).await?;
    let sample = creates(sandbox).await?;
    let after = reviewed(product).await?;
    let mut rows = rows(how, &sample);
    let (count, seconds) = (after.0 - before.0, after.1 - before.1);
    if count > 0.0 {
        let mean = seconds / count * 1_000.0;
        rows.push(Row::new(format!("{how}: one review, in the webhook, mean"), mean, "ms"));
        #[allow(clippy::cast_precision_loss, reason = "hundreds")]
        let per_write = count / (2 * CREATES) as f64;
        rows.push(Row::new(format!("{how}: reviews for each write"), per_write, ""));
    }
    Ok(rows)
}

fn rows(how: &str, sample: &Sample) -> Vec<Row> {
    let row = |what: &str, share| {
        Row::new(format!("create a Vrouter {how}, {what}"), sample.percentile(share) / 1e3, "ms")
    };
    vec![row("p50", 0.5), row("p99", 0.99)]
}

/// One after the other, as one user waits for them.
async fn creates(sandbox: &Sandbox) -> Outcome<Sample> {
    let kind = GroupVersionKind::gvk("tf.tungsten.io", "v1alpha1", "Vrouter");
    let resource = ApiResource::from_gvk_with_plural(&kind, "vrouters");
    let api: Api<DynamicObject> = Api::namespaced_with(sandbox.client()?, "tf", &resource);
    let text = std::fs::read_to_string(format!("{SAMPLES}/vrouter.yaml"))?;
    let sample: Value = serde_saphyr::from_str(&text)?;
    let mut took = Vec::new();
    for number in 0..CREATES + CREATES / 10 {
        let mut object = sample.clone();
        let name = format!("bench-{number}");
        let metadata = object.get_mut("metadata").ok_or("metadata")?;
        *metadata.get_mut("name").ok_or("a name")? = json!(name);
        // So that it may be deleted again.
        metadata["annotations"] = json!({"opensdn.io/confirm-loss": format!("Vrouter/{name}")});
        let object: DynamicObject = serde_json::from_value(object)?;
        let begun = Instant::now();
        api.create(&PostParams::default(), &object).await?;
        took.push(begun.elapsed());
        api.delete(&name, &DeleteParams::default()).await?;
    }
    Ok(Sample::new(took.split_off(CREATES / 10)))
}

async fn enforce_all(sandbox: &Sandbox) -> Outcome<()> {
    let api: Api<AdmissionPolicy> = Api::all(sandbox.client()?);
    for policy in opensdn_policies::ALL {
        let object = serde_json::from_value(json!({
            "apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
            "metadata": {"name": policy.name}, "spec": {"module": {"builtIn": policy.name}},
        }))?;
        api.create(&PostParams::default(), &object).await?;
    }
    let ready = ["wait", "--for=condition=Ready", "admissionpolicies", "--all", "--timeout=120s"];
    kubectl::kubectl(sandbox, &ready).await?.success();
    // The webhook configurations follow.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}

/// How many reviews the webhook has answered, and how many seconds they took together.
async fn reviewed(product: &Product) -> Outcome<(f64, f64)> {
    let metrics =
        admin_port::get(product.backends().first().ok_or("a replica")?.admin, "/metrics").await?;
    let sum = |name: &str| -> f64 {
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    let name = "opensdn_webhook_review_duration_seconds";
    Ok((sum(&format!("{name}_count")), sum(&format!("{name}_sum"))))
}
