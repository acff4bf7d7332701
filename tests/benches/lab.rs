//! The product in pods on three real nodes, as `lab_webhook` tests it: how long until it refuses,
//! how long until a change is everywhere, what it adds to an apply, what each fault costs, and
//! whether memory and open files stay what they were. `LAB_MINUTES` says how long the last is
//! looked at (default 10), `LAB_WITHOUT_FAULTS` skips to it. Deliberately not here: reviews per second (`webhook`).

use std::fs;
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};
use opensdn_deploy::names::NAMESPACE;
use opensdn_testing::Failed;
use opensdn_testing::installer::install_crds;
use opensdn_testing::lab_product::{Build, LabProduct};
use opensdn_testing::lab_under_load::{Cost, LabUnderLoad};
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::sandbox::{Sandbox, lab};
use serde_json::json;
use tokio::time::{Instant, sleep};

type Outcome<T> = Result<T, Failed>;

/// Applies of which the median counts; each has an address of its own.
const APPLIES: u8 = 200;
/// AdminChanges of a policy of which the median counts.
const CHANGES: usize = 20;

#[tokio::main(worker_threads = 2)]
async fn main() -> Outcome<()> {
    if let Err(missing) = lab::available() {
        #[allow(clippy::print_stdout, reason = "a benchmark's output is its purpose")]
        {
            println!("lab: left out, for {missing}");
        }
        return Ok(());
    }
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let client = sandbox.client()?;
    let product = LabProduct::prepare(&sandbox, Build::Release).await?;
    install_crds(&client, &opensdn_crds::all()).await?;
    let mut rows = vec![applies(&client, "without the webhook").await?];
    rows.push(until_refused(&client, &product).await?);
    product.wait_until_in_force().await?;
    rows.push(applies(&client, "with the webhook, all built-in policies").await?);

    let world = LabUnderLoad::start(&sandbox, product).await?;
    rows.push(changes(&world).await?);
    // What starting has taken is given back by then; no metric shows when.
    sleep(Duration::from_secs(30)).await;
    rows.extend(held(&sandbox, &client, &world, "in the first minute").await?);
    if std::env::var_os("LAB_WITHOUT_FAULTS").is_none() {
        rows.extend(Box::pin(faults(&sandbox, &world)).await?);
    }
    rows.extend(Box::pin(long_run(&sandbox, &client, &world)).await?);
    world.load().nothing_bad_is_stored().await?;
    report("lab", &rows)?;
    Ok(())
}

fn objects(client: &Client, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// Each with an address and a name of its own, so that each needs a claim of its own.
async fn applies(client: &Client, how: &str) -> Outcome<Row> {
    let api = objects(client, "opensdn.io", "LinkLocalService", "linklocalservices");
    let mut took = Vec::new();
    for number in 0..APPLIES {
        let good: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
            "metadata": {"name": format!("bench-{number}")},
            "spec": {"ip": format!("169.254.30.{number}"), "port": 80,
                     "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
        }))?;
        let begun = Instant::now();
        api.create(&PostParams::default(), &good).await?;
        took.push(begun.elapsed());
    }
    for number in 0..APPLIES {
        api.delete(&format!("bench-{number}"), &DeleteParams::default()).await?;
    }
    let milliseconds = Sample::new(took).percentile(0.5) / 1_000.0;
    Ok(Row::new(format!("create a LinkLocalService {how}, p50"), milliseconds, "ms"))
}

/// From the beginning of `kubectl apply -k` to the first refusal of a bad object.
async fn until_refused(client: &Client, product: &LabProduct<'_>) -> Outcome<Row> {
    let api = objects(client, "tf.tungsten.io", "Vrouter", "vrouters");
    let bad: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter", "metadata": {"name": "bench"},
        "spec": {"serviceConfiguration": {"physicalInterface": "e0$(reboot)"}},
    }))?;
    // Nothing is stored meanwhile.
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let begun = Instant::now();
    let refused = async {
        loop {
            match api.create(&dry, &bad).await {
                Err(kube::Error::Api(status)) if status.message.contains("[OSDN1812]") => {
                    return Ok::<_, Failed>(begun.elapsed());
                }
                // Not called yet, or not to be reached.
                Ok(_) | Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let applied = async { Ok(product.apply().await?) };
    let (took, ()) = futures::future::try_join(refused, applied).await?;
    Ok(Row::new("from kubectl apply -k to the first refused object", took.as_secs_f64(), "s"))
}

async fn changes(world: &LabUnderLoad<'_>) -> Outcome<Row> {
    let mut took = Vec::new();
    for turn in 0..CHANGES {
        took.push(world.swap_one_policy(if turn % 2 == 0 { "warn" } else { "enforce" }).await?);
    }
    let milliseconds = Sample::new(took).percentile(0.5) / 1_000.0;
    let row =
        Row::new("a policy's change to all replicas, as its status says, p50", milliseconds, "ms");
    Ok(row.aim("1,000"))
}

async fn faults(sandbox: &Sandbox, world: &LabUnderLoad<'_>) -> Outcome<Vec<Row>> {
    let restart = async { Ok(sandbox.restart_api_server().await?) };
    let costs = [
        world.recovers("rolling update", world.rolling_update()).await?,
        world.recovers("each node drained", world.drain_each_node()).await?,
        world.recovers("CA rotated", world.rotate_ca()).await?,
        world.recovers("policies changed", world.swap_policies()).await?,
        world.recovers("replica killed", world.kill_a_replica()).await?,
        world.recovers("API server restarted", restart).await?,
        world.recovers("replica cut off from the API server", world.cut_off_a_replica()).await?,
        world.recovers("leader's node cut off", world.cut_off_the_leaders_node()).await?,
        world.recovers("node killed", world.kill_a_node()).await?,
    ];
    Ok(costs.iter().map(row_of).collect())
}

fn row_of(cost: &Cost) -> Row {
    let Cost { what, failed, judged, took } = cost;
    let name = format!("{what}: failed requests, of {} in {took:.0?}", judged + failed.len());
    #[allow(clippy::cast_precision_loss, reason = "a few requests")]
    Row::new(name, failed.len() as f64, "").aim("0")
}

/// Memory and open files of all replicas, four times while faults follow each other.
async fn long_run(
    sandbox: &Sandbox,
    client: &Client,
    world: &LabUnderLoad<'_>,
) -> Outcome<Vec<Row>> {
    let minutes =
        std::env::var("LAB_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(10.0);
    let mut rows = Vec::new();
    let begun = Instant::now();
    for quarter in 1..=4_u8 {
        let end = f64::from(quarter) / 4.0 * minutes;
        while begun.elapsed().as_secs_f64() < end * 60.0 {
            world.recovers("policies changed", world.swap_policies()).await?;
            world.recovers("replica cut off", world.cut_off_a_replica()).await?;
            world.recovers("CA rotated", world.rotate_ca()).await?;
        }
        let when = format!("after {end} minutes of faults");
        rows.extend(held(sandbox, client, world, &when).await?);
    }
    Ok(rows)
}

async fn held(
    sandbox: &Sandbox,
    client: &Client,
    world: &LabUnderLoad<'_>,
    when: &str,
) -> Outcome<[Row; 3]> {
    let lab = sandbox.lab().ok_or("there are no real nodes")?;
    let (mut own, mut mapped, mut files) = (0.0_f64, 0.0_f64, 0.0_f64);
    for pod in world.product().pods().await? {
        for process in lab.processes_of(client, NAMESPACE, &pod.name_any(), "webhook").await? {
            let status = fs::read_to_string(format!("/proc/{process}/status"))?;
            own = own.max(mebibytes(&status, "RssAnon:")?);
            mapped = mapped.max(mebibytes(&status, "RssFile:")?);
            #[allow(clippy::cast_precision_loss, reason = "a few files")]
            let open = fs::read_dir(format!("/proc/{process}/fd"))?.count() as f64;
            files = files.max(open);
        }
    }
    Ok([
        Row::new(format!("memory of the largest replica {when}"), own, "MiB"),
        Row::new(format!("and pages of files, which the system may drop, {when}"), mapped, "MiB"),
        Row::new(format!("open files of the replica with the most {when}"), files, ""),
    ])
}

/// A line of `/proc/PID/status`, which counts in KiB.
fn mebibytes(status: &str, name: &str) -> Outcome<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes: f64 = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or_else(|| format!("the system does not tell {name}"))?
        .parse()?;
    Ok(kibibytes / 1_024.0)
}
